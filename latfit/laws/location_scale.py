"""Laws of log t with a location and a scale: the log-normal, the Weibull and the log-logistic law."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import Any, ClassVar

import numpy as np
from scipy.special import beta, betainc, betaincc, erfcx, expit, gamma, gammainc, log_ndtr, logit, ndtr, ndtri, zeta

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch, weighted_sum
from latfit.numbers import Floats


class LocationScaleKernel(Kernel):
    """Laws of log x with a location m and a scale s, derived from the standard law's log f₀ and log S₀.

    u = (m, log s), and z = (log x − m)/s has the standard law. With l = log f₀(z) the derivatives of
    log f = l − log s − log x are ∂m: −l′/s; ∂log s: −z l′ − 1; ∂m²: l″/s²; ∂m ∂log s: (l′ + z l″)/s;
    ∂log s²: z l′ + z² l″, and those of log S = log S₀(z) are the same without the −1.
    """

    log_params = ((0, -1), (1, 0))  # shape and scale
    spread: ClassVar[float]
    """The standard deviation of z."""
    middle: ClassVar[float]
    """The mean of z."""
    standard_cdf: ClassVar[Any]
    standard_ppf: ClassVar[Any]

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
        l0, l1, z_l1, l2, z_l2, zz_l2 = self.density_moments(batch, u)
        s, n = np.exp(u[1]), batch.n
        value = l0 - n * (u[1] + batch.mean_log)
        return Jet.of(value, [-l1 / s, -z_l1 - n], [l2 / s**2, (l1 + z_l2) / s, z_l1 + zz_l2])

    def survival(self, t: Floats, u: Floats) -> Jet:
        s, z = np.exp(u[1])[:, None], self.standard(np.log(t), u)
        l0, l1, l2 = self.log_survival(z)
        z_l1, z_l2 = z * l1, z * l2
        return Jet.of(l0, [-l1 / s, -z_l1], [l2 / s**2, (l1 + z_l2) / s, z_l1 + z * z_l2])

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        z = self.standard(np.log(t), u)
        slope = -self.standard_density(z)
        return self.standard_cdf(z), np.stack([slope * np.exp(-u[1])[:, None], slope * z])

    def standard_density(self, z: Floats) -> Floats:
        l0, l1, _ = self.log_survival(z)
        return np.asarray(-np.exp(l0) * l1)

    @abstractmethod
    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats: ...

    def probability(self, t: Floats, u: Floats) -> Floats:
        return np.asarray(self.standard_cdf(self.standard(np.log(t), u)))

    def standard(self, log_t: Floats, u: Floats) -> Floats:
        inverse = np.exp(-u[1])
        z = log_t * inverse[:, None]
        z -= (u[0] * inverse)[:, None]
        return np.asarray(z)


class LocationScaleLaw(ContinuousLaw):
    """log T = m + s Z, where Z has the standard law of the kernel."""

    kernel: ClassVar[LocationScaleKernel]

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles; equal quartiles are spread."""
        spread = np.clip(np.log(max(q3, 1e-300) / max(q1, 1e-300)), 1e-3, 10.0)
        low, middle, high = cls.kernel.standard_ppf(np.array([0.25, 0.5, 0.75]))
        s = spread / (high - low)
        params = cls.kernel.to_params(np.array([[log(q2) - s * middle], [np.log(s)]]), 1.0)[0][:, 0]
        return dict(zip(cls.kernel.parameters, map(float, params), strict=True))

    @cached_property
    def _place(self) -> tuple[float, float]:
        m, log_s = self.kernel.from_params(np.array([[value] for value in self.params.values()]), 1.0)[:, 0]
        with np.errstate(over="ignore"):
            return float(m), float(np.exp(log_s))

    def _z(self, t: Floats) -> Floats:
        m, s = self._place
        return (np.log(t) - m) / s

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(self.kernel.standard_cdf(self._z(t)))

    def _logsf(self, t: Floats) -> Floats:
        return self.kernel.log_survival(self._z(t))[0]

    def _ppf(self, q: Floats) -> Floats:
        m, s = self._place
        return np.asarray(np.exp(m + s * self.kernel.standard_ppf(q)))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        m, s = self._place
        with np.errstate(over="ignore"):  # latencies beyond all floats are ∞
            return np.asarray(np.exp(m + s * self.kernel.standard_draws(size, rng)))


@dataclass(frozen=True)
class ShapeScaleLaw(LocationScaleLaw):
    """Laws written with shape = 1/s and scale = e^m, whose standard density is e^z S₀(z)^k with k = `tail_power`."""

    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", unit="time"))
    tail_power: ClassVar[int]
    shape: float
    scale: float

    def _logpdf(self, t: Floats) -> Floats:
        (m, s), z = self._place, self._z(t)
        rise = 0.0 if s == 1 else (1 - s) * z
        return np.where(t == np.inf, -np.inf, self.tail_power * self._logsf(t) + rise - log(s) - m)


class _LognormalKernel(LocationScaleKernel):
    """l = −z²/2 − log √(2π), S₀ = Φ(−z); n, the mean and the variance of log x are sufficient."""

    log_params = ((1, 0), (0, 1))
    spread, middle = 1.0, 0.0
    standard_cdf, standard_ppf = ndtr, ndtri

    def closed_form(self, batch: SampleBatch) -> Floats:
        return np.array([batch.mean_log, np.log(batch.var_log) / 2])

    def standard_density(self, z: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        n, s = batch.n, np.exp(u[1])
        z = (batch.mean_log - u[0]) / s
        zz = batch.var_log / s**2 + z**2
        return -n * (zz / 2 + np.log(2 * np.pi) / 2), -n * z, -n * zz, -n, -n * z, -n * zz

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.standard_normal(size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Log Φ(−z), −h, −h (h − z) with h = φ/Φ(−z), the hazard."""
        h = np.sqrt(2 / np.pi) / erfcx(np.maximum(z, -37.0) / np.sqrt(2))
        return log_ndtr(-z), -h, -h * (h - z)


@register
@dataclass(frozen=True)
class LogNormal(LocationScaleLaw):
    """Normal in the logarithm: heavy tail, optimal timeout e^mu K(sigma, rho). Glatard et al. 2006, §3.5."""

    name = "lognormal"
    parameters = (Parameter("mu", "real", unit="log-time"), Parameter("sigma", "positive"))
    formula = "F(t) = Phi((log t - mu)/sigma)"
    examples = ("lognormal(mu=5.5,sigma=1)", "lognormal(mu=-2,sigma=0.25)", "lognormal(mu=0,sigma=2)")
    kernel = _LognormalKernel()
    mu: float
    sigma: float

    def _logpdf(self, t: Floats) -> Floats:
        density = -0.5 * self._z(t) ** 2 - np.log(t * self.sigma * np.sqrt(2 * np.pi))
        return np.where(t > 0, density, -np.inf)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """exp(n mu + n² sigma²/2) Φ(z − n sigma), below the mode of the integrand as tⁿ e^(−z²/2) erfcx(…)/2."""
        z = self._z(t)
        y = z - n * self.sigma
        below = 0.5 * np.exp(n * np.log(t) - 0.5 * z**2) * erfcx(-y / np.sqrt(2))
        above = np.exp(n * self.mu + 0.5 * np.square(n * self.sigma)) * ndtr(y)
        return np.where(t > 0, np.where(y < 0, below, above), 0.0)

    def std(self) -> float:
        """E[T] √(exp(sigma²) − 1); Glatard et al. 2006, eq. 11 prints the variance."""
        with np.errstate(over="ignore"):
            return float(self.mean() * np.sqrt(np.expm1(np.square(self.sigma))))


class _WeibullKernel(LocationScaleKernel):
    """l = z − e^z, l″ = −e^z = log S₀: three sums per step."""

    spread, middle = np.pi / np.sqrt(6), -float(np.euler_gamma)

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The usual ones, and the exponential law, so that the fit is never worse than that."""
        return [*super().starts(batch), np.array([np.log(batch.mean_x), np.zeros(batch.size)])]

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """From the sums of e^z, e^z log x and e^z (log x)², which give those of z e^z and z² e^z."""
        m, inverse = u[0], np.exp(-u[1])
        with np.errstate(over="ignore", invalid="ignore"):
            e = self.standard(batch.log_x, u)
            np.exp(e, out=e)
            if batch.weights.shape[0] > 1 or (batch.weights != 1).any():
                e *= batch.weights
            e0 = e.sum(axis=1)
            e *= batch.log_x
            y1, y2 = e.sum(axis=1), weighted_sum(e, batch.log_x)
            e1 = (y1 - m * e0) * inverse
            e2 = (y2 - m * (2 * y1 - m * e0)) * inverse**2
        sum_z = batch.n * (batch.mean_log - m) * inverse
        return sum_z - e0, batch.n - e0, sum_z - e1, -e0, -e1, -e2

    def standard_cdf(self, z: Floats) -> Floats:
        return np.asarray(-np.expm1(-np.exp(np.minimum(z, 300.0))))

    def standard_ppf(self, q: Floats) -> Floats:
        return np.asarray(np.log(-np.log1p(-q)))

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(np.log(rng.standard_exponential(size)))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        minus = -np.exp(np.minimum(z, 300.0))
        return minus, minus, minus


@register
@dataclass(frozen=True)
class Weibull(ShapeScaleLaw):
    """Stretched exponential: heavy tail for shape < 1, light for shape > 1. Glatard et al. 2006, §3.4."""

    name = "weibull"
    formula = "F(t) = 1 - exp(-(t/scale)^shape)"
    examples = ("weibull(shape=2,scale=300)", "weibull(shape=0.7,scale=300)", "weibull(shape=12.5,scale=0.03)")
    kernel = _WeibullKernel()
    tail_power = 1

    def _logsf(self, t: Floats) -> Floats:
        return -np.exp(self._z(t))

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ Γ(1 + n/shape) P(1 + n/shape, (t/scale)^shape); by quadrature where Γ and P leave the floats."""
        order = 1 + n / self.shape
        if order > 20:
            return super()._partial_moment(n, t)
        return float(np.power(self.scale, n)) * gamma(order) * gammainc(order, -self._logsf(t))

    def std(self) -> float:
        """√(Γ(1 + 2/shape) − Γ(1 + 1/shape)²) scale, by the series of log Γ where shape is large."""
        x = 1 / self.shape
        if x > 0.1:
            return super().std()
        j = np.arange(2, 30)
        log_ratio = np.sum(zeta(j) * (-x) ** j * (2.0**j - 2) / j)
        return float(self.scale * gamma(1 + x) * np.sqrt(np.expm1(log_ratio)))


class _LogLogisticKernel(LocationScaleKernel):
    """l = z − 2 log(1 + e^z), S₀ = 1/(1 + e^z)."""

    spread, middle = np.pi / np.sqrt(3), 0.0
    standard_cdf, standard_ppf = expit, logit

    def density_moments(self, batch: SampleBatch, u: Floats) -> tuple[Floats, ...]:
        """With q = 1/(1 + e^−z): l′ = 1 − 2q, l″ = −2q(1 − q)."""
        z, w = self.standard(batch.log_x, u), batch.weights
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

    def standard_draws(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.logistic(size=size))

    def log_survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        q = expit(z)
        return -(np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))), -q, -q * (1 - q)


@register
@dataclass(frozen=True)
class LogLogistic(ShapeScaleLaw):
    """Logistic in the logarithm: power tail, moments of orders below shape only."""

    name = "log-logistic"
    formula = "F(t) = 1/(1 + (t/scale)^-shape)"
    examples = (
        "log-logistic(shape=3,scale=200)",
        "log-logistic(shape=0.9,scale=5)",
        "log-logistic(shape=8,scale=0.4)",
    )
    kernel = _LogLogisticKernel()
    tail_power = 2

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ B(1 + n/shape, 1 − n/shape) I_F(1 + n/shape, 1 − n/shape); by quadrature where shape ≤ n."""
        if self.shape <= n:
            return super()._partial_moment(n, t)
        x = n / self.shape
        y = self._z(t)
        below = np.where(y < 0, betainc(1 + x, 1 - x, expit(y)), betaincc(1 - x, 1 + x, expit(-y)))
        return float(np.power(self.scale, n)) * beta(1 + x, 1 - x) * below
