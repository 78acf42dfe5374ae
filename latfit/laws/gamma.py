"""The exponential law, the gamma law and mixtures of Erlang laws: sums of exponential stages."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, poch, xlogy, zeta

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


class _ExponentialKernel(Kernel):
    """u = log rate, log f = u − e^u x and log S = −e^u t; n and Σx are sufficient."""

    log_params = ((1,),)
    min_distinct = 1
    zero_allowed = True

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """The rate if all probes still out are outliers, and if none is."""
        waited = batch.mean_x * batch.n + (batch.c_weights * batch.c).sum(axis=1)
        return [-np.log(batch.mean_x)[None], np.log(batch.n / waited)[None]]

    def closed_form(self, batch: SampleBatch) -> Floats:
        return -np.log(batch.mean_x)[None]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        total = batch.n * batch.mean_x * np.exp(u[0])
        return Jet.of(batch.n * u[0] - total, [batch.n - total], [-total])

    def survival(self, t: Floats, u: Floats) -> Jet:
        log_s = -np.exp(u[0])[:, None] * t
        return Jet.of(log_s, [log_s], [log_s])


def log_gammaincc(a: ArrayLike, x: ArrayLike) -> Floats:
    """The logarithm of the regularised upper incomplete gamma function Q(a, x), even below the smallest float.

    There x is far above a, and Legendre's continued fraction converges quickly:
    Γ(a, x) = e⁻ˣ xᵃ / (x + 1 − a − 1(1 − a)/(x + 3 − a − 2(2 − a)/(x + 5 − a − …))).
    """
    a, x = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(x, dtype=np.float64))
    plain = gammaincc(a, x)
    far = plain <= 1e-290
    with np.errstate(all="ignore"):
        logs = np.log(plain)
        if far.any():
            a, x = a[far], x[far]
            fraction = np.zeros_like(x)
            for k in range(60, 0, -1):
                fraction = k * (k - a) / (x + 2 * k + 1 - a - fraction)
            tail = -x + a * np.log(x) - gammaln(a) - np.log(x + 1 - a - fraction)
            logs = np.asarray(logs)
            logs[far] = np.where(x == np.inf, -np.inf, tail)
    return np.asarray(logs)


class _GammaKernel(Kernel):
    """log f = (k−1) log x − k x/m − log Γ(k) − k log(m/k); n, Σx and Σlog x are sufficient.

    u = (log shape, log mean), m = shape · scale, are nearly uncorrelated, however narrow the law is.
    """

    log_params = ((1, 0), (-1, 1))

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Minka's approximation for complete samples, wider laws, the exponential, and a longer tail."""
        log_mean, ones = np.log(batch.mean_x), np.ones(batch.size)
        s = np.maximum(log_mean - batch.mean_log, 1e-12)
        log_k = np.log((3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s))
        moments = np.array([log_k, log_mean])
        wider = [moments + w * np.array([-2 * ones, np.minimum(np.exp(-log_k / 2), 1.0)]) for w in (0.3, 0.9)]
        return [moments, *wider, np.array([0 * ones, log_mean]), np.array([-0.5 * ones, log_mean + 1.0])]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """N (k (mean log x − log m + 1 − x̄/m) − mean log x − (log Γ(k) − k log k + k))."""
        n, k, log_k = batch.n, np.exp(u[0]), u[0]
        ratio = batch.mean_x * np.exp(-u[1])
        off = batch.mean_log - u[1] + 1 - ratio
        value = n * (k * off - batch.mean_log - (gammaln(k) - k * log_k + k))
        by_k, by_m = k * (off + log_k - digamma(k)), k * (ratio - 1)
        hess = [n * (by_k + k - k**2 * zeta(2, k)), n * by_m, -n * k * ratio]
        return Jet.of(value, [n * by_k, n * by_m], hess)

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log Q(k, k t/m); exact in log m, by five-point differences in log k, with an error of step⁴/30."""
        step = 2e-3
        k = np.exp(u[0])[:, None]
        w = t * np.exp(-u[1])[:, None]
        y = k * w
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far, near, centre, after, beyond = (log_gammaincc(k * c, y * c) for c in np.exp(step * np.arange(-2, 3)))
            by_k = (far - 8 * near + 8 * after - beyond) / (12 * step)
            by_kk = (-far + 16 * near - 30 * centre + 16 * after - beyond) / (12 * step**2)
            by_m = np.exp(k * np.log(y) - y - gammaln(k) - centre)  # y f/S = ∂log S/∂log m
            by_km = by_m * (k * (np.log(y) + 1 - w - digamma(k)) - by_k)
            by_mm = by_m * (y - k - by_m)
        return Jet.of(centre, [by_k, by_m], [by_kk, by_km, by_mm])

    def probability(self, t: Floats, u: Floats) -> Floats:
        k = np.exp(u[0])[:, None]
        return np.asarray(gammainc(k, k * t * np.exp(-u[1])[:, None]))

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """P(k, k t/m) and its gradient; exact in log m, by differences in log k, with an error of step²/6."""
        step = 1e-4
        k = np.exp(u[0])[:, None]
        y = k * t * np.exp(-u[1])[:, None]
        below, above = (gammainc(k * c, y * c) for c in np.exp([-step, step]))
        by_k = (above - below) / (2 * step)
        return gammainc(k, y), np.array([by_k, -np.exp(k * np.log(y) - y - gammaln(k))])


class StageLaw(ContinuousLaw):
    """A gamma law in any parametrisation: `shape` exponential stages in turn, each of mean `scale`.

    In a mixture both are arrays, and the formulas have an axis for its parts.
    """

    shape: Any
    scale: Any

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(gammainc(self.shape, t / self.scale), dtype=np.float64)

    def _logsf(self, t: Floats) -> Floats:
        return log_gammaincc(self.shape, t / self.scale)

    def _logpdf(self, t: Floats) -> Floats:
        x = t / self.scale
        density = xlogy(self.shape - 1, x) - x - gammaln(self.shape) - np.log(self.scale)
        return np.where(t == np.inf, -np.inf, density)

    def _ppf(self, q: Floats) -> Floats:
        return np.asarray(self.scale * np.where(q < 0.5, gammaincinv(self.shape, q), gammainccinv(self.shape, 1 - q)))

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        factor = np.power(self.scale, n) * poch(self.shape, n)
        return np.asarray(factor * gammainc(self.shape + n, t / self.scale), dtype=np.float64)

    def std(self) -> float:
        return float(self.scale * sqrt(self.shape))

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.gamma(self.shape, self.scale, size))


@register
@dataclass(frozen=True)
class Exponential(StageLaw):
    """Memoryless law: completions at a constant rate. Glatard et al. 2006, §3.3."""

    name = "exponential"
    parameters = (Parameter("rate", "positive", unit="rate"),)
    formula = "F(t) = 1 - exp(-rate t)"
    examples = ("exponential(rate=0.01)",)
    kernel = _ExponentialKernel()
    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self).update(shape=1.0, scale=1 / self.rate)

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """The rate from the median; histograms are fitted from here."""
        return {"rate": log(2) / q2}

    _cdf = ContinuousLaw._cdf

    def _logsf(self, t: Floats) -> Floats:
        return -self.rate * t


@register
@dataclass(frozen=True)
class Gamma(StageLaw):
    """Sum of exponential stages, for any positive number of them."""

    name = "gamma"
    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", unit="time"))
    formula = "F(t) = P(shape, t/scale), the incomplete gamma function"
    examples = ("gamma(shape=2,scale=100)", "gamma(shape=0.4,scale=10)", "gamma(shape=50,scale=0.02)")
    kernel = _GammaKernel()
    shape: float
    scale: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles, by mean ≈ their mean and sd ≈ their range / 1.349, for histograms."""
        mean, std = (q1 + q2 + q3) / 3, max(q3 - q1, 1e-3 * q3) / 1.349
        return {"shape": (mean / std) ** 2, "scale": std**2 / mean}


@register
@dataclass(frozen=True)
class ErlangMixture(StageLaw):
    """With probability p[i], phases[i] stages of rate rates[i] in turn: van Moorsel & Wolter's running example."""

    name = "erlang-mixture"
    parameters = (
        Parameter("p", "non-negative", many=True, rule="adds up to 1"),
        Parameter("phases", "count", many=True),
        Parameter("rates", "positive", many=True, unit="rate"),
    )
    formula = "F(t) = sum of p[i] P(phases[i], rates[i] t), P the incomplete gamma function"
    examples = (
        "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])",
        "erlang-mixture(p=[1],phases=[7],rates=[0.1])",
        "erlang-mixture(p=[0.5,0.3,0.2],phases=[1,3,20],rates=[5,0.5,0.1])",
    )
    p: tuple[float, ...]
    phases: tuple[int, ...]
    rates: tuple[float, ...]
    weights: ClassVar[Floats]
    log_weights: ClassVar[Floats]

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.array(self.p) / np.sum(self.p)
        with np.errstate(divide="ignore"):
            vars(self).update(weights=weights, log_weights=np.log(weights))
        vars(self).update(shape=np.array(self.phases, dtype=np.float64), scale=1 / np.array(self.rates))

    def _cdf(self, t: Floats) -> Floats:
        return super()._cdf(t[..., None]) @ self.weights

    def _logsf(self, t: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(super()._logsf(t[..., None]) + self.log_weights, axis=-1))

    def _logpdf(self, t: Floats) -> Floats:
        return np.asarray(np.logaddexp.reduce(super()._logpdf(t[..., None]) + self.log_weights, axis=-1))

    _ppf, draw = ContinuousLaw._ppf, ContinuousLaw.draw

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        return super()._partial_moment(n, t[..., None]) @ self.weights

    def sample(self, size: int | tuple[int, ...], rng: np.random.Generator) -> Floats:
        part = rng.choice(self.weights.size, size, p=self.weights)
        return np.asarray(rng.gamma(self.shape[part], self.scale[part]))

    def std(self) -> float:
        means, variances = self.shape * self.scale, self.shape * self.scale**2
        return float(np.sqrt(self.weights @ ((means - self.weights @ means) ** 2 + variances)))
