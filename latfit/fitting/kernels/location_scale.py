"""Laws whose logarithm has a location and a scale: log-normal, Weibull, log-logistic.

u = (m, log s), and z = (log x − m)/s has a standard law. With l = log f₀(z) the derivatives of
log f = l − log s − log x are ∂m: −l′/s; ∂log s: −z l′ − 1; ∂m²: l″/s²; ∂m ∂log s: (l′ + z l″)/s; ∂log s²: z l′ + z² l″,
and those of log S = log S₀(z) are the same without the −1.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, expit, log_ndtr, ndtr

from latfit.fitting.batch import Floats, SampleBatch, weighted_sum
from latfit.fitting.kernel import Jet, Kernel, register_kernel


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


@register_kernel
class LognormalKernel(LocationScaleKernel):
    """l = −z²/2 − log √(2π): n, the mean and the variance of log x are enough; S₀ = Φ(−z)."""

    law = "lognormal"
    parameters = ("mu", "sigma")
    spread, middle = 1.0, 0.0

    def complete_form(self, batch: SampleBatch) -> Floats:
        """The mean and the standard deviation of log x."""
        return np.array([batch.mean_log, np.log(batch.var_log) / 2])

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """From Σz and Σz²."""
        n, s = batch.n, np.exp(u[1])
        z = (batch.mean_log - u[0]) / s
        zz = batch.var_log / s**2 + z**2
        return -n * (zz / 2 + np.log(2 * np.pi) / 2), -n * z, -n * zz, -n, -n * z, -n * zz

    def standard_cdf(self, z: Floats) -> Floats:
        """Φ(z)."""
        return np.asarray(ndtr(z))

    def standard_draws(self, size: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Normal."""
        return np.asarray(rng.standard_normal(size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log Φ(−z), −h, −h (h − z) with h = φ/Φ(−z), the hazard."""
        h = np.sqrt(2 / np.pi) / erfcx(np.maximum(z, -37.0) / np.sqrt(2))
        return log_ndtr(-z), -h, -h * (h - z)

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """As they are: mu = m, sigma = s."""
        one, zero = np.ones_like(u[0]), np.zeros_like(u[0])
        sigma = np.exp(u[1])
        return np.array([u[0] + np.log(unit), sigma]), np.array([np.array([one, zero]), np.array([zero, sigma])])

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """Inverted: m = mu, log s = log sigma."""
        return np.array([params[0] - np.log(unit), np.log(params[1])])


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


@register_kernel
class WeibullKernel(ShapeScaleKernel):
    """l = z − e^z, l″ = −e^z = log S₀: three sums over e^z a step."""

    law = "weibull"
    spread, middle = np.pi / np.sqrt(6), -float(np.euler_gamma)

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Those of the family, and the exponential law, so that the fit cannot end below it."""
        return [*super().starts(batch), np.array([np.log(batch.mean_x), np.zeros(batch.size)])]

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """From the sums of e^z, e^z log x and e^z (log x)², the last two turned into those of z e^z and z² e^z."""
        m, inverse = u[0], np.exp(-u[1])
        with np.errstate(over="ignore", invalid="ignore"):
            e = self.standard(batch, u)
            np.exp(e, out=e)
            if not batch.unweighted:
                e *= batch.weights
            e0 = e.sum(axis=1)
            y1, y2 = weighted_sum(e, batch.log_x), weighted_sum(e, batch.log_squared)
            e1 = (y1 - m * e0) * inverse
            e2 = (y2 - m * (2 * y1 - m * e0)) * inverse**2
        sum_z = batch.n * (batch.mean_log - m) * inverse
        return sum_z - e0, batch.n - e0, sum_z - e1, -e0, -e1, -e2

    def standard_cdf(self, z: Floats) -> Floats:
        """1 − exp(−e^z)."""
        return np.asarray(-np.expm1(-np.exp(np.minimum(z, 300.0))))

    def standard_draws(self, size: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Logarithms of exponential ones."""
        return np.asarray(np.log(rng.standard_exponential(size)))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """−e^z, three times."""
        minus = -np.exp(np.minimum(z, 300.0))
        return minus, minus, minus


@register_kernel
class LogLogisticKernel(ShapeScaleKernel):
    """l = z − 2 log(1 + e^z), S₀ = 1/(1 + e^z)."""

    law = "log-logistic"
    spread, middle = np.pi / np.sqrt(3), 0.0

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """With q = 1/(1 + e^−z): l′ = 1 − 2q, l″ = −2q(1 − q)."""
        z, w = self.standard(batch, u), batch.weights
        e = np.exp(-np.abs(z))
        softplus = np.maximum(z, 0) + np.log1p(e)
        e /= 1 + e
        q = np.where(z < 0, e, 1 - e)
        curve = -2 * q * (1 - q)
        z_curve = z * curve
        sum_z = batch.n * (batch.mean_log - u[0]) * np.exp(-u[1])
        l0 = sum_z - 2 * weighted_sum(w, softplus)
        l1, z_l1 = batch.n - 2 * weighted_sum(w, q), sum_z - 2 * weighted_sum(w, z * q)
        return l0, l1, z_l1, weighted_sum(w, curve), weighted_sum(w, z_curve), weighted_sum(w, z * z_curve)

    def standard_cdf(self, z: Floats) -> Floats:
        """1/(1 + e^−z)."""
        return np.asarray(expit(z))

    def standard_draws(self, size: tuple[int, int], rng: np.random.Generator) -> Floats:
        """Logistic."""
        return np.asarray(rng.logistic(size=size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """−log(1 + e^z), −q, −q(1 − q)."""
        q = expit(z)
        return -(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))), -q, -q * (1 - q)
