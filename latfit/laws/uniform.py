"""The uniform law: every latency between two bounds is as likely."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from latfit.errors import LawError
from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw
from latfit.laws.piecewise_uniform import power_mean


@register
@dataclass(frozen=True)
class Uniform(ContinuousLaw):
    """Evenly spread between a and b.

    F(t) = (t − a)/(b − a) on [a, b]. Glatard et al. 2006, §3.1.
    """

    name: ClassVar[str] = "uniform"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("a", "non-negative"), Parameter("b", "positive"))
    formula: ClassVar[str] = "F(t) = (t-a)/(b-a) on [a,b]"
    examples: ClassVar[tuple[str, ...]] = ("uniform(a=100,b=500)", "uniform(a=0,b=1)")
    a: float
    b: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.b > self.a:
            raise LawError(f"{self.name}: b is {self.b:g} and a is {self.a:g}; b must be greater than a")

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        half = max(0.5 * (q3 - q1), 1e-3 * q3)
        return {"a": max(0.0, q1 - half), "b": q3 + half}

    @property
    def support(self) -> tuple[float, float]:
        """The bounds a and b."""
        return self.a, self.b

    @property
    def kinks(self) -> tuple[float, ...]:
        """The bounds a and b."""
        return self.a, self.b

    def scaled(self, factor: float) -> Uniform:
        """The law of factor · T."""
        return Uniform(self.a * factor, self.b * factor)

    def _cdf(self, t: Floats) -> Floats:
        return np.clip((t - self.a) / (self.b - self.a), 0.0, 1.0)

    def _sf(self, t: Floats) -> Floats:
        return np.clip((self.b - t) / (self.b - self.a), 0.0, 1.0)

    def _logpdf(self, t: Floats) -> Floats:
        return np.where((t >= self.a) & (t <= self.b), -np.log(self.b - self.a), -np.inf)

    def _ppf(self, q: Floats) -> Floats:
        return self.a + q * (self.b - self.a)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """F(t) times the mean of uⁿ over [a, t]."""
        return self._cdf(t) * power_mean(n, self.a, np.clip(t, self.a, self.b))

    def std(self) -> float:
        """(b − a)/√12."""
        return (self.b - self.a) / sqrt(12)
