"""The Weibull law: a hazard that is a power of time."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from scipy.special import gamma, gammainc, zeta

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw, log_spread


@register
@dataclass(frozen=True)
class Weibull(ContinuousLaw):
    """Stretched exponential: heavy tail for shape < 1, light for shape > 1.

    F(t) = 1 − exp(−(t/scale)^shape). Glatard et al. 2006, §3.4.
    """

    name: ClassVar[str] = "weibull"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("shape", "positive"), Parameter("scale", "positive"))
    formula: ClassVar[str] = "F(t) = 1 - exp(-(t/scale)^shape)"
    examples: ClassVar[tuple[str, ...]] = (
        "weibull(shape=2,scale=300)",
        "weibull(shape=0.7,scale=300)",
        "weibull(shape=12.5,scale=0.03)",
    )
    shape: float
    scale: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        shape = log(log(4) / log(4 / 3)) / log_spread(q1, q3)
        return {"shape": shape, "scale": q2 / log(2) ** (1 / shape)}

    def scaled(self, factor: float) -> Weibull:
        """The law of factor · T."""
        return Weibull(self.shape, self.scale * factor)

    def _cdf(self, t: Floats) -> Floats:
        return -np.expm1(self._logsf(t))

    def _logsf(self, t: Floats) -> Floats:
        return -((t / self.scale) ** self.shape)

    def _sf(self, t: Floats) -> Floats:
        return np.exp(self._logsf(t))

    def _logpdf(self, t: Floats) -> Floats:
        power = 0.0 if self.shape == 1 else (self.shape - 1) * np.log(t / self.scale)
        at_infinity: Floats = np.where(t == np.inf, -np.inf, power)
        return log(self.shape) - log(self.scale) + at_infinity + self._logsf(t)

    def _ppf(self, q: Floats) -> Floats:
        return self.scale * (-np.log1p(-q)) ** (1 / self.shape)

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
