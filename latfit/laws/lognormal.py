"""The log-normal law: the body of most measured latencies."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw, log_spread


@register
@dataclass(frozen=True)
class LogNormal(ContinuousLaw):
    """The logarithm of the latency is normal: heavy tail, optimal timeout e^mu K(sigma, rho).

    F(t) = Φ((log t − mu)/sigma). Glatard et al. 2006, §3.5.
    """

    name: ClassVar[str] = "lognormal"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("mu", "real"), Parameter("sigma", "positive"))
    formula: ClassVar[str] = "F(t) = Phi((log t - mu)/sigma)"
    examples: ClassVar[tuple[str, ...]] = (
        "lognormal(mu=5.5,sigma=1)",
        "lognormal(mu=-2,sigma=0.25)",
        "lognormal(mu=0,sigma=2)",
    )
    mu: float
    sigma: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles."""
        return {"mu": log(q2), "sigma": log_spread(q1, q3) / (2 * float(ndtri(0.75)))}

    def scaled(self, factor: float) -> LogNormal:
        """The law of factor · T."""
        return LogNormal(self.mu + log(factor), self.sigma)

    def _z(self, t: Floats) -> Floats:
        return (np.log(t) - self.mu) / self.sigma

    def _cdf(self, t: Floats) -> Floats:
        return ndtr(self._z(t))

    def _sf(self, t: Floats) -> Floats:
        return ndtr(-self._z(t))

    def _logsf(self, t: Floats) -> Floats:
        return log_ndtr(-self._z(t))

    def _logpdf(self, t: Floats) -> Floats:
        density = -0.5 * self._z(t) ** 2 - np.log(t * self.sigma * np.sqrt(2 * np.pi))
        return np.where(t > 0, density, -np.inf)

    def _ppf(self, q: Floats) -> Floats:
        return np.exp(self.mu + self.sigma * ndtri(q))

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
