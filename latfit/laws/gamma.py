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
    """log f = (k−1) log x − x/θ − log Γ(k) − k log θ: n, Σx and Σlog x are enough.

    Gamma law: u = (log shape, log scale).
    """

    law = "gamma"
    parameters = ("shape", "scale")

    def starts(self, batch: SampleBatch) -> list[Floats]:
        """Minka's approximation of the complete sample's estimate, the exponential law, and a longer tail."""
        log_mean = np.log(batch.mean_x)
        s = np.maximum(log_mean - batch.mean_log, 1e-12)
        log_k = np.log((3 - s + np.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s))
        return [
            np.array([log_k, log_mean - log_k]),
            np.array([np.zeros(batch.size), log_mean]),
            np.array([np.full(batch.size, -0.5), log_mean + 1.5]),
        ]

    def density(self, batch: SampleBatch, u: Floats) -> Jet:
        """Of all: n ((k−1) mean log x − x̄/θ − log Γ(k) − k log θ)."""
        n, k = batch.n, np.exp(u[0])
        ratio = batch.mean_x * np.exp(-u[1])
        by_k = k * (batch.mean_log - digamma(k) - u[1])
        value = n * (k * (batch.mean_log - u[1]) - batch.mean_log - ratio - gammaln(k))
        hess = [n * (by_k - k**2 * polygamma(1, k)), -n * k, -n * ratio]
        return Jet.of(value, [n * by_k, n * (ratio - k)], hess)

    def survival(self, t: Floats, u: Floats) -> Jet:
        """Log Q(k, t/θ); exact in log θ, by differences in log k."""
        k = np.exp(u[0])[:, None]
        y = t * np.exp(-u[1])[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            far, near, here, after, beyond = (np.log(gammaincc(k * np.exp(i * STEP), y)) for i in range(-2, 3))
            by_k = (far - 8 * near + 8 * after - beyond) / (12 * STEP)
            by_kk = (-far + 16 * near - 30 * here + 16 * after - beyond) / (12 * STEP**2)
            by_t = np.exp(k * np.log(y) - y - gammaln(k) - here)  # y f/S = ∂log S/∂log θ
            by_kt = by_t * (k * (np.log(y) - digamma(k)) - by_k)
            by_tt = by_t * (y - k - by_t)
        return Jet.of(here, [by_k, by_t], [by_kk, by_kt, by_tt])

    def probability(self, t: Floats, u: Floats) -> Floats:
        """P(k, t/θ)."""
        return np.asarray(gammainc(np.exp(u[0])[:, None], t * np.exp(-u[1])[:, None]))

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """P(k, t/θ) and its gradient; exact in log θ, by differences in log k."""
        k = np.exp(u[0])[:, None]
        y = t * np.exp(-u[1])[:, None]
        below, above = (gammainc(k * np.exp(step), y) for step in (-SMALL_STEP, SMALL_STEP))
        by_k = (above - below) / (2 * SMALL_STEP)
        return gammainc(k, y), np.array([by_k, -np.exp(k * np.log(y) - y - gammaln(k))])

    def natural(self, u: Floats, unit: float) -> tuple[Floats, Floats]:
        """Exponentials: shape = e^u₀, scale = e^u₁."""
        params = np.exp(u) * np.array([[1.0], [unit]])
        return params, params[:, None] * np.eye(2)[:, :, None]

    def unnatural(self, params: Floats, unit: float) -> Floats:
        """The logarithms."""
        return np.asarray(np.log(params / np.array([[1.0], [unit]])))


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
