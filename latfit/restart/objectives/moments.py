"""Moments of the completion time: the mean, the standard deviation, a higher moment."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, factorial
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import expected_duration, lost_moment, moments, std_duration
from latfit.restart.objectives import Figure, Objective, register
from latfit.restart.plan import Plan

MAX_ORDER = 20


@register
@dataclass(frozen=True)
class Mean(Objective):
    """E[J], the default."""

    name: ClassVar[str] = "mean"
    usage: ClassVar[str] = "mean"
    takes_parameter: ClassVar[bool] = False

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        return self.shift + expected_duration(law, t, cost=cost)

    def of_plan(self, plan: Plan) -> float:
        return plan.mean

    def slope(self, law: Law, cost: float) -> Figure | None:
        """S(t) − f̃(t) (E_J(t) + c), of the sign of dE_J/dt (van Moorsel & Wolter 2004, Theorem 2)."""

        def slope(t: Floats) -> Floats:
            E_J = expected_duration(law, t, cost=cost)
            with np.errstate(all="ignore"):
                lost = law.pdf(t) * (E_J + cost)
            return law.still_out(t) - np.where(np.isnan(lost), np.inf, lost)

        return slope


@register
@dataclass(frozen=True)
class Moment(Objective):
    """E[Jⁿ], which weighs long durations more the higher n is."""

    name: ClassVar[str] = "moment"
    usage: ClassVar[str] = f"moment:n with a whole n from 1 to {MAX_ORDER}"

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        return bool(1 <= value <= MAX_ORDER) and value == int(value)

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """E[Jⁿ] by van Moorsel & Wolter's Algorithm 1."""
        return self._shifted(moments(law, t, int(self.parameter), cost=cost))

    def of_plan(self, plan: Plan) -> float:
        if self.parameter > 2:
            raise RestartError(f"the objective {self} is known for one timeout only; take moment:2, std or a quantile")
        return plan.mean if self.parameter == 1 else plan.second_moment

    def slope(self, law: Law, cost: float) -> Figure | None:
        return lambda t: self._shifted(_moment_slopes(law, t, int(self.parameter), cost)[1])

    def limit(self, E_0: float) -> float:
        """N! E_0ⁿ, the moment of an exponential law."""
        return float(factorial(int(self.parameter)) * np.float64(E_0) ** self.parameter)

    def text(self, reported: float) -> str:
        return f"{reported:.6g} s^{self.parameter:g}"

    def _shifted(self, E: Floats) -> Floats:
        """E[(r + J′)ⁿ] from the moments of J′ (and the same for their slopes)."""
        n, r = int(self.parameter), np.float64(self.shift)  # whose powers are ∞ where a float's are an error
        return E[n] if r == 0 else np.asarray(sum(comb(n, k) * r ** (n - k) * E[k] for k in range(n + 1)))


@register
@dataclass(frozen=True)
class Std(Objective):
    """√Var J, for steady rather than short durations."""

    name: ClassVar[str] = "std"
    usage: ClassVar[str] = "std"
    takes_parameter: ClassVar[bool] = False

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """√Var J, whatever the wall-clock time."""
        return std_duration(law, t, cost=cost)

    def of_plan(self, plan: Plan) -> float:
        return plan.std

    def slope(self, law: Law, cost: float) -> Figure | None:
        """dE[J²]/dt − 2 E[J] dE[J]/dt."""

        def slope(t: Floats) -> Floats:
            E, dE = _moment_slopes(law, t, 2, cost)
            with np.errstate(all="ignore"):
                return np.asarray(dE[2] - 2 * E[1] * dE[1])

        return slope


def _moment_slopes(law: Law, t: Floats, order: int, cost: float) -> tuple[Floats, Floats]:
    """E[Jⁿ] and dE[Jⁿ]/dt for n = 0…order, by differentiating Algorithm 1 of van Moorsel & Wolter 2004."""
    E, F, S, f = moments(law, t, order, cost=cost), law.cdf(t), law.still_out(t), law.pdf(t)
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
