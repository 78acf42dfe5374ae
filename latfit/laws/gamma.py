"""The gamma law."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, poch, polygamma, xlogy

from latfit.laws.base import ContinuousLaw, Parameter, register
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Floats


def log_gammaincc(a: ArrayLike, x: ArrayLike) -> Floats:
    """Logarithm of Q(a, x), the regularised upper incomplete gamma function, also where Q is below the smallest float.

    There x lies far above a and Legendre's continued fraction converges at once:
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
    """log f = (k−1) log x − k x/m − log Γ(k) − k log(m/k): n, Σx and Σlog x are enough.

    u = (log shape, log mean), m = shape · scale: the two hardly depend on each other, however narrow the law is.
    """

    log_params = ((1, 0), (-1, 1))

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Minka's approximation of the complete sample's estimate, wider laws, the exponential, and a longer tail."""
        log_mean, ones = np.log(batch.mean_x), np.ones(batch.size)
        s = np.maximum(log_mean - batch.mean_log, 1e-12)
        log_k = np.log((3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s))
        moments = np.array([log_k, log_mean])
        wider = [moments + w * np.array([-2 * ones, np.minimum(np.exp(-log_k / 2), 1.0)]) for w in (0.3, 0.9)]
        return [moments, *wider, np.array([0 * ones, log_mean]), np.array([-0.5 * ones, log_mean + 1.0])]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Of all: n (k (mean log x − log m + 1 − x̄/m) − mean log x − (log Γ(k) − k log k + k))."""
        n, k, log_k = batch.n, np.exp(u[0]), u[0]
        ratio = batch.mean_x * np.exp(-u[1])
        off = batch.mean_log - u[1] + 1 - ratio
        value = n * (k * off - batch.mean_log - (gammaln(k) - k * log_k + k))
        by_k, by_m = k * (off + log_k - digamma(k)), k * (ratio - 1)
        hess = [n * (by_k + k - k**2 * polygamma(1, k)), n * by_m, -n * k * ratio]
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


@register
@dataclass(frozen=True)
class Gamma(ContinuousLaw):
    """Sum of exponential stages, for any positive number of them."""

    name = "gamma"
    parameters = (Parameter("shape", "positive"), Parameter("scale", "positive", unit="time"))
    formula = "F(t) = P(shape, t/scale), the incomplete gamma function"
    examples = (
        "gamma(shape=2,scale=100)",
        "gamma(shape=0.4,scale=10)",
        "gamma(shape=50,scale=0.02)",
    )
    kernel = _GammaKernel()
    tried_by = ("mle", "ls")
    shape: float
    scale: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles, by mean ≈ their mean and sd ≈ their range / 1.349."""
        mean, std = (q1 + q2 + q3) / 3, max(q3 - q1, 1e-3 * q3) / 1.349
        return {"shape": (mean / std) ** 2, "scale": std**2 / mean}

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(gammainc(self.shape, t / self.scale), dtype=np.float64)

    def _logsf(self, t: Floats) -> Floats:
        return log_gammaincc(self.shape, t / self.scale)

    def _logpdf(self, t: Floats) -> Floats:
        x = t / self.scale
        density = xlogy(self.shape - 1, x) - x - gammaln(self.shape) - np.log(self.scale)
        return np.where(t == np.inf, -np.inf, density)

    def _ppf(self, q: Floats) -> Floats:
        return self.scale * np.where(q < 0.5, gammaincinv(self.shape, q), gammainccinv(self.shape, 1 - q))

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        factor = np.power(self.scale, n) * poch(self.shape, n)
        return np.asarray(factor * gammainc(self.shape + n, t / self.scale), dtype=np.float64)

    def std(self) -> float:
        return self.scale * sqrt(self.shape)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.gamma(self.shape, self.scale, size))
