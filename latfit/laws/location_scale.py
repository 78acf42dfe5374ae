"""Laws whose logarithm has a location and a scale: log-normal, Weibull, log-logistic.

u = (m, log s), and z = (log x − m)/s has a standard law. With l = log f₀(z) the derivatives of
log f = l − log s − log x are ∂m: −l′/s; ∂log s: −z l′ − 1; ∂m²: l″/s²; ∂m ∂log s: (l′ + z l″)/s; ∂log s²: z l′ + z² l″,
and those of log S = log S₀(z) are the same without the −1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class LocationScaleKernel(Kernel):
    """The standard law gives log f₀ and log S₀ with two derivatives in z; the rest is here."""

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
    def standard_draws(self, size: tuple[int, int], rng: np.random.Generator) -> Floats:
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

    parameters = ("shape", "scale")

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """Exponentials: shape = e^(−log s), scale = e^m."""
        shape, scale, zero = np.exp(-u[1]), np.exp(u[0]) * unit, np.zeros_like(u[0])
        return np.array([shape, scale]), np.array([np.array([zero, -shape]), np.array([scale, zero])])

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """Inverted: m = log scale, log s = −log shape."""
        return np.array([np.log(params[1] / unit), -np.log(params[0])])
