"""The gamma law."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln, poch, xlogy

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw
from latfit.laws.special import log_gammaincc


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
