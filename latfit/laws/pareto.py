"""The Pareto law of the second kind: a power tail from 0 on."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaincc

from latfit.laws.base import Floats, Parameter, register
from latfit.laws.continuous import ContinuousLaw
from latfit.laws.special import log1p_ratio


@register
@dataclass(frozen=True)
class Pareto(ContinuousLaw):
    """Power tail (Pareto II, Lomax): moments below nu only.

    F(t) = 1 − (a/(a + t))^nu. Glatard et al. 2006, §3.6.
    """

    name: ClassVar[str] = "pareto"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("a", "positive"), Parameter("nu", "positive"))
    formula: ClassVar[str] = "F(t) = 1 - (a/(a+t))^nu"
    examples: ClassVar[tuple[str, ...]] = ("pareto(a=100,nu=2.5)", "pareto(a=3,nu=0.8)", "pareto(a=2000,nu=20)")
    a: float
    nu: float

    @classmethod
    def start(cls, q1: float, q2: float, q3: float) -> dict[str, float]:
        """Rough parameters from the quartiles: q3/q2 = 2^(1/nu) + 1."""
        nu = log(2) / log(max(q3 / q2 - 1, 2 ** (1 / 20)))
        return {"a": q2 / (2 ** (1 / nu) - 1), "nu": nu}

    def scaled(self, factor: float) -> Pareto:
        """The law of factor · T."""
        return Pareto(self.a * factor, self.nu)

    def _cdf(self, t: Floats) -> Floats:
        return -np.expm1(self._logsf(t))

    def _sf(self, t: Floats) -> Floats:
        return np.exp(self._logsf(t))

    def _logsf(self, t: Floats) -> Floats:
        return -self.nu * log1p_ratio(t, self.a)

    def _logpdf(self, t: Floats) -> Floats:
        return log(self.nu) - log(self.a) - (self.nu + 1) * log1p_ratio(t, self.a)

    def _ppf(self, q: Floats) -> Floats:
        return self.a * np.expm1(-np.log1p(-q) / self.nu)

    def _partial_moment(self, n: int, t: Floats) -> Floats:
        """aⁿ n!/((nu−1)…(nu−n)) I_w(n+1, nu−n) with w = t/(a + t).

        By quadrature where nu ≤ n, so that M_n(∞) = ∞, and where nu is so large that I_w loses digits.
        """
        if not n < self.nu < 1e3:
            return super()._partial_moment(n, t)
        x = t / self.a
        share = np.where(x < 1, betainc(n + 1, self.nu - n, x / (1 + x)), betaincc(self.nu - n, n + 1, 1 / (1 + x)))
        whole = [i * self.a / (self.nu - i) for i in range(1, n + 1)]
        return share * float(np.prod(whole))

    def std(self) -> float:
        """a/(nu−1) √(nu/(nu−2)), ∞ for nu ≤ 2."""
        return self.a / (self.nu - 1) * sqrt(self.nu / (self.nu - 2)) if self.nu > 2 else np.inf
