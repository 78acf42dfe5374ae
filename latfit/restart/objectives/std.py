"""The standard deviation of the completion time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import std_duration
from latfit.restart.objectives.base import Figure, Objective, register
from latfit.restart.objectives.moment import moment_slopes
from latfit.restart.times import has_density

if TYPE_CHECKING:
    from latfit.restart.plan import Plan


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
        """√Var J."""
        return plan.std

    def slope(self, law: Law, cost: float) -> Figure | None:
        """dE[J²]/dt − 2 E[J] dE[J]/dt."""
        return (lambda t: _variance_slope(law, t, cost)) if has_density(law) else None


def _variance_slope(law: Law, t: Floats, cost: float) -> Floats:
    E, dE = moment_slopes(law, t, 2, cost)
    with np.errstate(all="ignore"):
        return np.asarray(dE[2] - 2 * E[1] * dE[1])
