"""The gamma law."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, poch, polygamma, xlogy

from latfit.laws.base import Parameter, register
from latfit.laws.continuous import ContinuousLaw
from latfit.laws.kernel import Jet, Kernel
from latfit.laws.samples import SampleBatch
from latfit.laws.special import log_gammaincc
from latfit.numbers import Floats

STEP = 2e-3  # five-point differences in log shape: error STEP⁴/30
SMALL_STEP = 1e-4  # two-point differences: error SMALL_STEP²/6


class GammaKernel(Kernel):
    """log f = (k−1) log x − k x/m − log Γ(k) − k log(m/k): n, Σx and Σlog x are enough.

    u = (log shape, log mean), m = shape · scale: the two hardly depend on each other, however narrow the law is.
    """

    law = "gamma"
    parameters = ("shape", "scale")

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Minka's approximation of the complete sample's estimate, wider laws, the exponential, and a longer tail."""
        log_mean, one = np.log(batch.mean_x), np.ones(batch.size)
        s = np.maximum(log_mean - batch.mean_log, 1e-12)
        log_k = np.log((3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s))
        moments = np.array([log_k, log_mean])
        wider = [moments + w * np.array([-2 * one, np.minimum(np.exp(-log_k / 2), 1.0)]) for w in (0.3, 0.9)]
        return [moments, *wider, np.array([0 * one, log_mean]), np.array([-0.5 * one, log_mean + 1.0])]

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
        """Log Q(k, k t/m); exact in log m, by differences in log k."""
        k = np.exp(u[0])[:, None]
        w = t * np.exp(-u[1])[:, None]
        y = k * w
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far, near, here, after, beyond = (log_gammaincc(k * c, y * c) for c in np.exp(STEP * np.arange(-2, 3)))
            by_k = (far - 8 * near + 8 * after - beyond) / (12 * STEP)
            by_kk = (-far + 16 * near - 30 * here + 16 * after - beyond) / (12 * STEP**2)
            by_m = np.exp(k * np.log(y) - y - gammaln(k) - here)  # y f/S = ∂log S/∂log m
            by_km = by_m * (k * (np.log(y) + 1 - w - digamma(k)) - by_k)
            by_mm = by_m * (y - k - by_m)
        return Jet.of(here, [by_k, by_m], [by_kk, by_km, by_mm])

    def probability(self, t: Floats, u: Floats) -> Floats:
        """P(k, k t/m)."""
        k = np.exp(u[0])[:, None]
        return np.asarray(gammainc(k, k * t * np.exp(-u[1])[:, None]))

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """P(k, k t/m) and its gradient; exact in log m, by differences in log k."""
        k = np.exp(u[0])[:, None]
        y = k * t * np.exp(-u[1])[:, None]
        below, above = (gammainc(k * c, y * c) for c in np.exp([-SMALL_STEP, SMALL_STEP]))
        by_k = (above - below) / (2 * SMALL_STEP)
        return gammainc(k, y), np.array([by_k, -np.exp(k * np.log(y) - y - gammaln(k))])

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """Exponentials: shape = e^u₀, scale = e^(u₁ − u₀)."""
        shape, scale, zero = np.exp(u[0]), unit * np.exp(u[1] - u[0]), np.zeros_like(u[0])
        return np.array([shape, scale]), np.array([np.array([shape, zero]), np.array([-scale, scale])])

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """The logarithms of the shape and of the mean."""
        log_k = np.log(params[0])
        return np.array([log_k, np.log(params[1] / unit) + log_k])


@register
@dataclass(frozen=True)
class Gamma(ContinuousLaw):
    """Sum of exponential stages, for any positive number of them.

    F(t) = P(shape, t/scale), the regularised incomplete gamma function.
    """

    name: ClassVar[str] = "gamma"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("shape", "positive"), Parameter("scale", "positive"))
    formula: ClassVar[str] = "F(t) = P(shape, t/scale), the incomplete gamma function"
    examples: ClassVar[tuple[str, ...]] = (
        "gamma(shape=2,scale=100)",
        "gamma(shape=0.4,scale=10)",
        "gamma(shape=50,scale=0.02)",
    )
    kernel: ClassVar[Kernel] = GammaKernel()
    tried_by: ClassVar[tuple[str, ...]] = ("mle", "ls")
    shape: float
    scale: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles, by mean ≈ their mean and sd ≈ their range / 1.349."""
        mean, std = (q1 + q2 + q3) / 3, max(q3 - q1, 1e-3 * q3) / 1.349
        return {"shape": (mean / std) ** 2, "scale": std**2 / mean}

    def scaled(self, factor: float) -> Gamma:
        """The law of factor · T."""
        return Gamma(self.shape, self.scale * factor)

    def _cdf(self, t: Floats) -> Floats:
        return np.asarray(gammainc(self.shape, t / self.scale), dtype=np.float64)

    def _sf(self, t: Floats) -> Floats:
        return np.asarray(gammaincc(self.shape, t / self.scale), dtype=np.float64)

    def _logsf(self, t: Floats) -> Floats:
        return log_gammaincc(self.shape, t / self.scale)

    def _logpdf(self, t: Floats) -> Floats:
        x = t / self.scale
        density = xlogy(self.shape - 1, x) - x - gammaln(self.shape) - np.log(self.scale)
        return np.where(t == np.inf, -np.inf, density)

    def _ppf(self, q: Floats) -> Floats:
        x = np.where(q < 0.5, gammaincinv(self.shape, q), gammainccinv(self.shape, 1 - q))
        return self.scale * x

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ shape (shape+1)…(shape+n−1) P(shape + n, t/scale)."""
        factor = np.power(self.scale, n) * poch(self.shape, n)
        return np.asarray(factor * gammainc(self.shape + n, t / self.scale), dtype=np.float64)

    def std(self) -> float:
        """The root of shape, times scale."""
        return self.scale * sqrt(self.shape)

    def draw(self, size: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """By numpy's generator."""
        return rng.gamma(self.shape, self.scale, size)
