"""A higher moment E[Jⁿ] of the completion time."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import lost_moment, moments
from latfit.restart.objectives.base import Figure, Objective, register
from latfit.restart.times import density, has_density

if TYPE_CHECKING:
    from latfit.restart.plan import Plan

HIGHEST = 20


@register
@dataclass(frozen=True)
class Moment(Objective):
    """E[Jⁿ], which weighs long durations more the higher n is."""

    name: ClassVar[str] = "moment"
    usage: ClassVar[str] = f"moment:n with a whole n from 1 to {HIGHEST}"

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        """A whole number from 1 to 20."""
        return bool(1 <= value <= HIGHEST) and value == int(value)

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """E[Jⁿ] by van Moorsel & Wolter's Algorithm 1."""
        return self._shifted(moments(law, t, int(self.parameter), cost=cost))

    def of_plan(self, plan: Plan) -> float:
        """E[J] or E[J²]."""
        if self.parameter > 2:
            raise RestartError(f"the objective {self} is known for one timeout only; take moment:2, std or a quantile")
        return plan.mean if self.parameter == 1 else plan.second_moment

    def slope(self, law: Law, cost: float) -> Figure | None:
        """dE[Jⁿ]/dt."""
        if not has_density(law):
            return None
        return lambda t: self._shifted(moment_slopes(law, t, int(self.parameter), cost)[1])

    def limit(self, E_0: float) -> float:
        """N! E_0ⁿ, the moment of an exponential law."""
        return float(factorial(int(self.parameter)) * np.float64(E_0) ** self.parameter)

    def text(self, reported: float) -> str:
        """In the power of seconds."""
        return f"{reported:.6g} s^{self.parameter:g}"

    def _shifted(self, E: Floats) -> Floats:
        """E[(r + J′)ⁿ] from the moments of J′ (and the same for their slopes)."""
        n, r = int(self.parameter), np.float64(self.shift)  # whose powers are ∞ where a float's are an error
        return E[n] if r == 0 else np.asarray(sum(comb(n, k) * r ** (n - k) * E[k] for k in range(n + 1)))


def moment_slopes(law: Law, t: Floats, order: int, cost: float) -> tuple[Floats, Floats]:
    """E[Jⁿ] and dE[Jⁿ]/dt for n = 0…order, by differentiating Algorithm 1 of van Moorsel & Wolter 2004."""
    E, F, S, f = moments(law, t, order, cost=cost), law.cdf(t), law.still_out(t), density(law, t)
    dE = [np.zeros(np.shape(t))]
    with np.errstate(all="ignore"):
        for n in range(1, order + 1):
            total = f * ((t**n - (t + cost) ** n) - E[n]) + n * S * (t + cost) ** (n - 1)
            for k in range(1, n):
                m = n - k
                total += comb(n, k) * (m * S * (t + cost) ** (m - 1) - f * (t + cost) ** m) * E[k]
                total += comb(n, k) * lost_moment(law, m, t, cost) * dE[k]
            dE.append(total / F)
    return E, np.array(dE)
