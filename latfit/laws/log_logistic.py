"""The log-logistic law: like the log-normal, with a power tail."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from scipy.special import beta, betainc, betaincc, expit, log_expit

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw, log_spread


@register
@dataclass(frozen=True)
class LogLogistic(ContinuousLaw):
    """The logarithm of the latency is logistic: power tail, moments below shape only.

    F(t) = 1/(1 + (t/scale)^−shape).
    """

    name: ClassVar[str] = "log-logistic"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("shape", "positive"), Parameter("scale", "positive"))
    formula: ClassVar[str] = "F(t) = 1/(1 + (t/scale)^-shape)"
    examples: ClassVar[tuple[str, ...]] = (
        "log-logistic(shape=3,scale=200)",
        "log-logistic(shape=0.9,scale=5)",
        "log-logistic(shape=8,scale=0.4)",
    )
    shape: float
    scale: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        return {"shape": 2 * log(3) / log_spread(q1, q3), "scale": q2}

    def scaled(self, factor: float) -> LogLogistic:
        """The law of factor · T."""
        return LogLogistic(self.shape, self.scale * factor)

    def _y(self, t: Floats) -> Floats:
        return self.shape * (np.log(t) - log(self.scale))  # t / scale would underflow near 0

    def _cdf(self, t: Floats) -> Floats:
        return expit(self._y(t))

    def _sf(self, t: Floats) -> Floats:
        return expit(-self._y(t))

    def _logsf(self, t: Floats) -> Floats:
        return log_expit(-self._y(t))

    def _logpdf(self, t: Floats) -> Floats:
        y = self._y(t)
        at_zero = np.log(self.shape / self.scale) if self.shape == 1 else np.inf * (1 - self.shape)
        density = log(self.shape) - np.log(t) + log_expit(y) + log_expit(-y)
        return np.where(t > 0, density, at_zero)

    def _ppf(self, q: Floats) -> Floats:
        return self.scale * np.exp((np.log(q) - np.log1p(-q)) / self.shape)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """scaleⁿ B(1 + n/shape, 1 − n/shape) I_F(1 + n/shape, 1 − n/shape); by quadrature where shape ≤ n."""
        if self.shape <= n:
            return super()._partial_moment(n, t)
        x = n / self.shape
        y = self._y(t)
        below = np.where(y < 0, betainc(1 + x, 1 - x, expit(y)), betaincc(1 - x, 1 + x, expit(-y)))
        return float(np.power(self.scale, n)) * beta(1 + x, 1 - x) * below
