"""The expected duration E_J."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import expected_duration
from latfit.restart.objectives.base import Figure, Objective, register
from latfit.restart.times import density, has_density

if TYPE_CHECKING:
    from latfit.restart.plan import Plan


@register
@dataclass(frozen=True)
class Mean(Objective):
    """E[J], the default."""

    name: ClassVar[str] = "mean"
    usage: ClassVar[str] = "mean"
    takes_parameter: ClassVar[bool] = False

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """Wall-clock time and E_J(t)."""
        return self.shift + expected_duration(law, t, cost=cost)

    def of_plan(self, plan: Plan) -> float:
        """E[J]."""
        return plan.mean

    def slope(self, law: Law, cost: float) -> Figure | None:
        """S(t) − f̃(t) (E_J(t) + c)."""
        return (lambda t: mean_slope(law, t, cost)) if has_density(law) else None


def mean_slope(law: Law, t: Floats, cost: float) -> Floats:
    """S(t) − f̃(t) (E_J(t) + c), which has the sign of dE_J/dt (van Moorsel & Wolter 2004, Theorem 2)."""
    E_J = expected_duration(law, t, cost=cost)
    with np.errstate(all="ignore"):
        lost = density(law, t) * (E_J + cost)
    return law.still_out(t) - np.where(np.isnan(lost), np.inf, lost)
