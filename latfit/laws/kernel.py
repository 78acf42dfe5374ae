"""What batched fitting needs from a law: log f and log S with two derivatives.

A kernel is the fitter's view of a law, in unconstrained parameters u of shape (p, B), one column per sample. It is
defined in the law's file and is the law's `kernel`; a law without one is fitted one sample at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

import numpy as np

from latfit.errors import LawError
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
    """A law in unconstrained parameters u (p, B), with times in any unit.

    Parameters that are `held`, that is, read off the sample instead of estimated, come last in u, unchanged, and have
    no derivatives.
    """

    law: str
    parameters: tuple[str, ...]
    free: tuple[str, ...]
    """The parameters that are estimated."""
    log_params: ClassVar[Any] = ()
    """The matrix that gives the free parameters: exp(log_params @ u), or log_params @ u for real ones."""
    held: ClassVar[tuple[str, ...]] = ()
    """The last parameters, if they are read off the sample instead of estimated."""
    min_distinct: ClassVar[int] = 2
    """With fewer distinct latencies the likelihood has no maximum."""
    zero_allowed: ClassVar[bool] = False
    """Whether the density at 0 is finite and positive."""
    followed: ClassVar[int] = 1
    """How many of the best starts are followed to their maximum."""
    regular: ClassVar[bool] = True
    """Whether the estimate has standard errors. If not, `closed_form` also holds for censored samples, if ρ is free."""

    def __set_name__(self, law: Any, _: str) -> None:
        self.law, self.parameters = law.name, tuple(each.name for each in law.parameters)
        self.free = self.parameters[: len(self.parameters) - len(self.held)]
        self._declared = law.parameters
        self._real = np.array([[each.domain == "real"] for each in law.parameters[: len(self.free)]])

    def read(self, batch: SampleBatch) -> Floats:
        """The held parameters (h, B), read off the samples."""
        return np.empty((0, batch.size))

    def placed(self, start: Floats, batch: SampleBatch) -> Floats:
        """Every sample of the batch at the free parameters of one start (p, 1)."""
        free = np.repeat(start[: len(self.free)], batch.size, axis=1)
        return np.concatenate([free, self.read(batch)]) if self.held else free

    def refused(self, batch: SampleBatch) -> list[tuple[Bools, str]]:
        """The samples (B,) to which this law cannot be fitted, and why."""
        return []

    @abstractmethod
    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Starting points (p, B), of which the best is used."""

    @abstractmethod
    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over the completions of each sample."""

    def completions(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over points plus Σ w log(P(cell)/width) over cells, P = S(low) − S(high)."""
        points, cells = batch.points_and_cells
        start, end = np.maximum(cells.x - cells.cell / 2, 1e-300), cells.x + cells.cell / 2
        low, high = self.survival(start, u), self.survival(end, u)
        ratio = np.exp(high.value - low.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            share_low = 1 / (1 - ratio)  # S(low)/P, and S(high)/P = share_low − 1
            grad = share_low * low.grad - (share_low - 1) * high.grad
            outer_low, outer_high = (jet.grad[:, None] * jet.grad[None] for jet in (low, high))
            hess = share_low * (low.hess + outer_low) - (share_low - 1) * (high.hess + outer_high)
            value = low.value + np.log1p(-ratio) - np.log(end - start)
        parts = (np.where(cells.weights > 0, part, 0.0) for part in (value, grad, hess - grad[:, None] * grad[None]))
        sums = (np.einsum("bm,...bm->...b", cells.weights, part) for part in parts)
        return Jet(*(a + b for a, b in zip(self.density(points, u), sums, strict=True)))

    @abstractmethod
    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S(t) for t of shape (B, k) or (1, k)."""

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The parameters in seconds, if u is for times in units of `unit` seconds, and ∂(free ones)/∂u (p, p, B)."""
        p, matrix = len(self.free), np.array(self.log_params, dtype=np.float64)
        values = matrix @ u[:p]
        values = np.where(self._real, values, np.exp(values))
        params = self._in_unit([*values, *u[p:]], unit)
        slopes = np.where(self._real, self._in_unit(values + 1.0, unit) - params[:p], params[:p])
        return params, matrix[:, :, None] * slopes[:, None]

    def from_params(self, params: Floats, unit: float) -> Floats:
        """The inverse of `to_params`."""
        values, p = self._in_unit(params, 1.0 / unit), len(self.free)
        logs = np.where(self._real, values[:p], np.log(np.where(self._real, 1.0, np.maximum(values[:p], 1e-300))))
        return np.concatenate([np.linalg.solve(np.array(self.log_params, dtype=np.float64), logs), values[p:]])

    def _in_unit(self, values: Sequence[Floats] | Floats, unit: float) -> Floats:
        """The first parameters of the laws of unit · T."""
        return np.array([each.scaled(value, unit) for each, value in zip(self._declared, values, strict=False)])

    def closed_form(self, batch: SampleBatch) -> Floats | None:
        """The estimate of complete samples, if there is a formula."""
        return None

    def probability(self, t: Floats, u: Floats) -> Floats:
        """F(t) alone, for t of shape (B, k) or (1, k)."""
        return self.cdf(t, u)[0]

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F(t) and its gradient (p, B, k), for least squares."""
        jet = self.survival(t, u)
        return -np.expm1(jet.value), -np.exp(jet.value) * jet.grad

    def limit_step(self, u: Floats, step: Floats) -> Floats:
        """(B,) the largest safe share of a Newton step; by default u are logarithms."""
        return np.asarray(np.minimum(1.0, 1.5 / np.maximum(np.abs(step).max(axis=0), 1e-300)))

    def curvature_scale(self, u: Floats) -> Floats:
        """(p, B) the natural scale of each parameter, 1 for logarithms."""
        return np.ones_like(u)


class ExponentialLimit(Kernel):
    """A law that has the exponential law as a limit but not as a member."""

    @abstractmethod
    def near_exponential(self, log_rate: Floats, distance: float) -> Floats:
        """The u (p, B) at this distance from the exponential law; 1e-12 is that law to rounding."""


class DifferencesKernel(Kernel):
    """A law without a kernel: u are its parameters, positive ones in logarithms; derivatives are differences."""

    def __init__(self, law: Any) -> None:
        self.kind = law
        self.__set_name__(law, "kernel")
        self.log_params = np.eye(len(self.parameters))  # type: ignore[misc]
        self.min_distinct = len(self.parameters)  # type: ignore[misc]

    def build(self, u: Floats) -> Any:
        with np.errstate(over="ignore"):
            return self.kind(*map(float, np.where(self._real[:, 0], u, np.exp(u))))

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """From the quartiles, and from quartiles twice as far apart; a latency of 0 counts as half a step."""
        quartiles = np.maximum(batch.quantiles((0.25, 0.5, 0.75)), batch.step / 2)
        spread = np.array([[0.5], [1.0], [2.0]])
        rough = [[self.kind.start(*map(float, q)) for q in some.T] for some in (quartiles, spread * quartiles)]
        return [
            self.from_params(np.array([[r[name] for r in some] for name in self.parameters]), 1.0) for some in rough
        ]

    def _jet(self, formula: Callable[[Any, int], Any], shape: tuple[int, ...], u: Floats) -> Jet:
        """`formula` of the law in each column, an array of this shape, and its derivatives; NaN if u is not a law."""
        h, p = 3e-4, len(u)
        steps = h * np.eye(p)

        def at(move: Floats) -> Floats:
            values = np.full((u.shape[1], *shape), np.nan)
            for row, moved in enumerate(u.T + move):
                with suppress(LawError, OverflowError):
                    values[row] = formula(self.build(moved), row)
            return values

        centre, above, below = at(np.zeros(p)), [at(e) for e in steps], [at(-e) for e in steps]
        grad = [(a - b) / (2 * h) for a, b in zip(above, below, strict=True)]
        hess = []
        for i, e in enumerate(steps):
            hess.append((above[i] - 2 * centre + below[i]) / h**2)
            hess += [(at(e + f) - at(e - f) - at(f - e) + at(-e - f)) / (4 * h**2) for f in steps[i + 1 :]]
        return Jet.of(centre, grad, hess)

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        x, weights = (np.broadcast_to(part, (batch.size, part.shape[1])) for part in (batch.x, batch.weights))
        used = weights > 0
        return self._jet(lambda law, row: weights[row, used[row]] @ law.logpdf(x[row, used[row]]), (), u)

    def survival(self, t: Floats, u: Floats) -> Jet:
        # log S = −∞ has no differences; an S so small has no weight beside ρ
        return self._jet(lambda law, row: np.maximum(law.logsf(t[row % len(t)]), -700.0), t.shape[1:], u)

    def probability(self, t: Floats, u: Floats) -> Floats:
        return np.array([self.build(v).cdf(t[row % len(t)]) for row, v in enumerate(u.T)])
