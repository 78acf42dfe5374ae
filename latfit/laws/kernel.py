"""What batched maximum likelihood needs to know of a law: log f and log S with two derivatives.

A kernel is the fitter's view of a law, in unconstrained parameters u of shape (p, B): one column a
sample. It stands in the law's file, and the law names it (`kernel`); a law without one is fitted one sample at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.laws.samples import SampleBatch, weighted_sum
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

    def summed(self, weights: Floats) -> Jet:
        """Σ over the last axis with weights."""
        p = self.grad.shape[0]
        grad = np.stack([weighted_sum(weights, self.grad[i]) for i in range(p)])
        hess = np.stack([np.stack([weighted_sum(weights, self.hess[i, j]) for j in range(p)]) for i in range(p)])
        return Jet(weighted_sum(weights, self.value), grad, hess)


class Kernel(ABC):
    """A law in unconstrained parameters u (p, B), times measured in any one unit."""

    law: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]]
    min_distinct: ClassVar[int] = 2  # with fewer distinct latencies the likelihood has no maximum
    zero_allowed: ClassVar[bool] = False  # is the density at 0 finite and positive?
    log_params: ClassVar[tuple[tuple[int, ...], ...]]  # of laws whose parameters are exp(log_params @ u)
    powers: ClassVar[tuple[int, ...]]  # and the power of time that each of them has
    held: ClassVar[tuple[str, ...]] = ()  # the last parameters, where they are read off the sample and not estimated
    followed: ClassVar[int] = 1  # how many of the best starts are followed to their maximum

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters that are estimated."""
        return self.parameters[: len(self.parameters) - len(self.held)]

    def read(self, batch: SampleBatch) -> Floats:
        """The held parameters (h, B), read off the samples."""
        return np.empty((0, batch.size))

    def holding(self, held: Floats) -> Kernel:
        """The kernel of samples with these held parameters (h, B)."""
        return self

    def refused(self, batch: SampleBatch) -> list[tuple[Bools, str]]:
        """Which samples (B,) have no estimate that this law could give, and why."""
        return []

    def is_law(self, u: Floats) -> Bools:
        """(B,) whether u is a law; others are not searched."""
        return np.ones(u.shape[1], dtype=bool)

    @abstractmethod
    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Starting points (p, B); the best of them is used."""

    @abstractmethod
    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over the completions of each sample."""

    def completions(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f(x) over the completions that are points and Σ w log(P(cell)/width) over those that are cells."""
        points = self.density(batch.points, u)
        if not batch.cell:
            return points
        return Jet(*(a + b for a, b in zip(points, cell_density(self, batch.cells, u), strict=True)))

    @abstractmethod
    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S(t) for t of shape (B, k) or (1, k)."""

    def to_params(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """The law's parameters (p, B) in seconds, where `unit` seconds were 1, and ∂parameters/∂u (p, p, B)."""
        matrix = np.array(self.log_params, dtype=np.float64)
        params = unit ** np.array(self.powers, dtype=np.float64)[:, None] * np.exp(matrix @ u)
        return params, matrix[:, :, None] * params[:, None]

    def from_params(self, params: Floats, unit: float) -> Floats:
        """The inverse of `to_params`."""
        in_unit = params / unit ** np.array(self.powers, dtype=np.float64)[:, None]
        return np.asarray(np.linalg.solve(np.array(self.log_params, dtype=np.float64), np.log(in_unit)))

    def closed_form(self, batch: SampleBatch) -> Floats | None:
        """The estimate with ρ free, where a formula gives it."""
        return None

    def complete_form(self, batch: SampleBatch) -> Floats | None:
        """The estimate where everything returned, where a formula gives it."""
        return None

    def probability(self, t: Floats, u: Floats) -> Floats:
        """F(t) alone, for t of shape (B, k) or (1, k)."""
        return np.asarray(-np.expm1(self.survival(t, u).value))

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F(t) and its gradient (p, B, k), for least squares."""
        jet = self.survival(t, u)
        return -np.expm1(jet.value), -np.exp(jet.value) * jet.grad

    def take(self, rows: NDArray[np.intp]) -> Kernel:
        """The kernel for some of the samples: the same for all."""
        return self

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


def cell_density(kernel: Kernel, batch: SampleBatch, u: Floats) -> Jet:
    """Σ w log(P(cell)/width) with P = S(low) − S(high), for latencies read on a coarse clock."""
    low, high = (kernel.survival(edge, u) for edge in batch.edges)
    ratio = np.exp(high.value - low.value)
    with np.errstate(divide="ignore", invalid="ignore"):
        share_low = 1 / (1 - ratio)  # S(low)/P, and S(high)/P = share_low − 1
        grad = share_low * low.grad - (share_low - 1) * high.grad
        outer_low, outer_high = (jet.grad[:, None] * jet.grad[None] for jet in (low, high))
        hess = share_low * (low.hess + outer_low) - (share_low - 1) * (high.hess + outer_high)
        width = batch.edges[1] - batch.edges[0]
        value = low.value + np.log1p(-ratio) - np.log(width)
    jet = Jet(value, grad, hess - grad[:, None] * grad[None])
    used = batch.weights > 0
    return Jet(*(np.where(used, part, 0.0) for part in jet)).summed(batch.weights)


class LocationScaleKernel(Kernel):
    """Laws whose logarithm has a location and a scale: the standard law gives log f₀ and log S₀, with two derivatives.

    u = (m, log s), and z = (log x − m)/s has a standard law. With l = log f₀(z) the derivatives of
    log f = l − log s − log x are ∂m: −l′/s; ∂log s: −z l′ − 1; ∂m²: l″/s²; ∂m ∂log s: (l′ + z l″)/s;
    ∂log s²: z l′ + z² l″, and those of log S = log S₀(z) are the same without the −1.
    """

    spread: ClassVar[float]  # the standard deviation of z
    middle: ClassVar[float]  # the mean of z

    @abstractmethod
    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """Σw of l, l′, z l′, l″, z l″, z² l″ over the completions."""

    @abstractmethod
    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log S₀, its first and its second derivative."""

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The moments of log x among completions, and a wider law for tails that were cut off."""
        sd = np.sqrt(np.maximum(batch.var_log, 1e-30))
        s = sd / self.spread
        moments = np.array([batch.mean_log - self.middle * s, np.log(s)])
        return [moments, *(moments + np.array([wider * sd, np.full_like(s, wider)]) for wider in (0.3, 0.9))]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Σ w log f from the moments of l, l′ and l″."""
        l0, l1, z_l1, l2, z_l2, zz_l2 = self.density_moments(batch, u)
        s, n = np.exp(u[1]), batch.n
        value = l0 - n * (u[1] + batch.mean_log)
        return Jet.of(value, [-l1 / s, -z_l1 - n], [l2 / s**2, (l1 + z_l2) / s, z_l1 + zz_l2])

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log S₀(z) with its derivatives in m and log s."""
        s = np.exp(u[1])[:, None]
        z = (np.log(t) - u[0][:, None]) / s
        l0, l1, l2 = self.log_survival(z)
        z_l1, z_l2 = z * l1, z * l2
        return Jet.of(l0, [-l1 / s, -z_l1], [l2 / s**2, (l1 + z_l2) / s, z_l1 + z * z_l2])

    @abstractmethod
    def standard_cdf(self, z: Floats) -> Floats:
        """F₀(z)."""

    @abstractmethod
    def standard_draws(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Values of z."""

    def probability(self, t: Floats, u: Floats) -> Floats:
        """F₀((log t − m)/s)."""
        inverse = np.exp(-u[1])
        z = np.log(t) * inverse[:, None]
        z -= (u[0] * inverse)[:, None]
        return self.standard_cdf(z)

    def standard(self, batch: SampleBatch, u: Floats) -> Floats:
        """Z = (log x − m)/s of every completion."""
        inverse = np.exp(-u[1])
        z = batch.log_x * inverse[:, None]
        z -= (u[0] * inverse)[:, None]
        return np.asarray(z)


class ShapeScaleKernel(LocationScaleKernel):
    """Laws written with shape = 1/s and scale = e^m."""

    parameters, log_params, powers = ("shape", "scale"), ((0, -1), (1, 0)), (0, 1)
