"""The exponential law: no memory, so no timeout matters."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial, log
from typing import ClassVar

import numpy as np
from scipy.special import gammainc

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw


@register
@dataclass(frozen=True)
class Exponential(ContinuousLaw):
    """Memoryless law: completions at a constant rate.

    F(t) = 1 − exp(−rate t). Glatard et al. 2006, §3.3.
    """

    name: ClassVar[str] = "exponential"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("rate", "positive"),)
    formula: ClassVar[str] = "F(t) = 1 - exp(-rate t)"
    examples: ClassVar[tuple[str, ...]] = ("exponential(rate=0.01)",)
    rate: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        return {"rate": log(2) / q2}

    def scaled(self, factor: float) -> Exponential:
        """The law of factor · T."""
        return Exponential(self.rate / factor)

    def _cdf(self, t: Floats) -> Floats:
        return -np.expm1(-self.rate * t)

    def _logsf(self, t: Floats) -> Floats:
        return -self.rate * t

    def _sf(self, t: Floats) -> Floats:
        return np.exp(-self.rate * t)

    def _logpdf(self, t: Floats) -> Floats:
        return log(self.rate) - self.rate * t

    def _ppf(self, q: Floats) -> Floats:
        return -np.log1p(-q) / self.rate

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """n!/rateⁿ P(n+1, rate t)."""
        return factorial(n) * float(np.power(1 / self.rate, n)) * gammainc(n + 1, self.rate * t)

    def std(self) -> float:
        """1/rate."""
        return 1 / self.rate
