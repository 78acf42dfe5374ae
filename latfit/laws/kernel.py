"""What batched maximum likelihood needs to know of a law: log f and log S with two derivatives.

A kernel is the fitter's view of a law, in unconstrained parameters u of shape (p, B): one column a
sample. It stands in the law's file, and the law names it (`kernel`); a law without one is fitted one sample at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats


class Jet(NamedTuple):
    """A function's value (shape s), gradient (p, *s) and Hessian (p, p, *s)."""

    value: Floats
    grad: Floats
    hess: Floats

    @classmethod
    def of(cls, value: Floats, grad: Sequence[Floats], hess: Sequence[Floats]) -> Jet:
        """From p gradients and the upper triangle of the Hessian, row by row."""
        p = len(grad)
        full, entries = np.empty((p, p, *value.shape)), iter(hess)
        for i in range(p):
            for j in range(i, p):
                full[i, j] = full[j, i] = next(entries)
        return cls(value, np.array(grad), full)


class Kernel(ABC):
    """A law in unconstrained parameters u (p, B), times measured in any one unit."""

    law: str
    parameters: tuple[str, ...]
    free: tuple[str, ...]
    """The parameters that are estimated."""
    held_values: Floats
    """(h, B) the values of those that are read off the samples."""
    log_params: ClassVar[tuple[tuple[int, ...], ...]] = ()
    """Of laws whose free parameters are exp(log_params @ u), or log_params @ u where they are logarithms of times."""
    held: ClassVar[tuple[str, ...]] = ()
    """The last parameters, where they are read off the sample and not estimated."""
    min_distinct: ClassVar[int] = 2
    """With fewer distinct latencies the likelihood has no maximum."""
    zero_allowed: ClassVar[bool] = False
    """Whether the density at 0 is finite and positive."""
    followed: ClassVar[int] = 1
    """How many of the best starts are followed to their maximum."""
    regular: ClassVar[bool] = True
    """Whether the estimate has standard errors; if not, `closed_form` holds for censored samples too if ρ is free."""

    def __set_name__(self, law: Any, _: str) -> None:
        p = len(law.parameters) - len(self.held)
        self.law, self.parameters = law.name, tuple(each.name for each in law.parameters)
        self.free, units = self.parameters[:p], [each.unit for each in law.parameters[:p]]
        self._powers = np.array([[{"rate": -1.0, None: 0.0}.get(unit, 1.0)] for unit in units])
        self._is_log = np.array([[unit == "log-time"] for unit in units])
        self.held_values = np.empty((len(self.held), 1))

    def read(self, batch: SampleBatch) -> Floats:
        """The held parameters (h, B), read off the samples."""
        return np.empty((0, batch.size))

    def holding(self, held: Floats) -> Self:
        """The kernel of samples with these held parameters (h, B)."""
        if not self.held:
            return self
        kernel = copy(self)
        kernel.held_values = held
        return kernel

    def take(self, rows: NDArray[np.intp]) -> Self:
        return self if self.held_values.shape[1] == 1 else self.holding(self.held_values[:, rows])

    def refused(self, batch: SampleBatch) -> list[tuple[Bools, str]]:
        """Which samples (B,) have no estimate that this law could give, and why."""
        return []

    @abstractmethod
    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Starting points (p, B); the best of them is used."""

    @abstractmethod
    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over the completions of each sample."""

    def completions(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over completions that are points, Σ w log(P(cell)/width) over cells, P = S(low) − S(high)."""
        points = self.density(batch.points, u)
        if not batch.cell:
            return points
        cells = batch.cells
        low, high = (self.survival(edge, u) for edge in cells.edges)
        ratio = np.exp(high.value - low.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            share_low = 1 / (1 - ratio)  # S(low)/P, and S(high)/P = share_low − 1
            grad = share_low * low.grad - (share_low - 1) * high.grad
            outer_low, outer_high = (jet.grad[:, None] * jet.grad[None] for jet in (low, high))
            hess = share_low * (low.hess + outer_low) - (share_low - 1) * (high.hess + outer_high)
            value = low.value + np.log1p(-ratio) - np.log(cells.edges[1] - cells.edges[0])
        parts = (np.where(cells.weights > 0, part, 0.0) for part in (value, grad, hess - grad[:, None] * grad[None]))
        sums = (np.einsum("bm,...bm->...b", cells.weights, part) for part in parts)
        return Jet(*(a + b for a, b in zip(points, sums, strict=True)))

    @abstractmethod
    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S(t) for t of shape (B, k) or (1, k)."""

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The law's parameters in seconds, where `unit` seconds were 1, and ∂(free parameters)/∂u (p, p, B)."""
        matrix = np.array(self.log_params, dtype=np.float64)
        logs = matrix @ u + np.log(unit) * self._powers
        params = np.where(self._is_log, logs, np.exp(logs))
        jacobian = matrix[:, :, None] * np.where(self._is_log, 1.0, params)[:, None]
        held = np.broadcast_to(self.held_values, (len(self.held), u.shape[1]))
        return np.concatenate([params, unit * held]), jacobian

    def from_params(self, params: Floats, unit: float) -> Floats:
        """The inverse of `to_params`."""
        free = params[: len(self.free)]
        logs = np.where(self._is_log, free, np.log(np.where(self._is_log, 1.0, free))) - np.log(unit) * self._powers
        return np.asarray(np.linalg.solve(np.array(self.log_params, dtype=np.float64), logs))

    def closed_form(self, batch: SampleBatch) -> Floats | None:
        """The estimate of complete samples, where a formula gives it."""
        return None

    def probability(self, t: Floats, u: Floats) -> Floats:
        """F(t) alone, for t of shape (B, k) or (1, k)."""
        return self.cdf(t, u)[0]

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F(t) and its gradient (p, B, k), for least squares."""
        jet = self.survival(t, u)
        return -np.expm1(jet.value), -np.exp(jet.value) * jet.grad

    def limit_step(self, u: Floats, step: Floats) -> Floats:
        """(B,) the largest share of a Newton step that is safe; the parameters are logarithms or nearly so."""
        return np.asarray(np.minimum(1.0, 1.5 / np.maximum(np.abs(step).max(axis=0), 1e-300)))

    def curvature_scale(self, u: Floats) -> Floats:
        """(p, B) the natural size of each parameter, 1 for logarithms."""
        return np.ones_like(u)


class ExponentialLimit(Kernel):
    """A law that tends to the exponential law, which is not one of its members."""

    @abstractmethod
    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        """The u (p, B) at this distance from the exponential of this rate; at 1e-12 it is that law to rounding."""
