"""A quantile of the completion time: the tail instead of the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import completion_quantile
from latfit.restart.lattice import lattice_quantile
from latfit.restart.objectives.base import Objective, register
from latfit.restart.times import has_failures, inverse_cdf

if TYPE_CHECKING:
    from latfit.restart.plan import Plan

ATTEMPTS = np.arange(1.0, 301.0)


@register
@dataclass(frozen=True)
class Quantile(Objective):
    """The time within which a share q of the jobs is done."""

    name: ClassVar[str] = "quantile"
    usage: ClassVar[str] = "quantile:q with 0 < q < 1"

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        """Between 0 and 1."""
        return 0 < value < 1

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """The smallest x with F_J(x) ≥ q; with failures on the lattice of the clock."""
        if has_failures(law):
            return self.shift + lattice_quantile(law, self.parameter, t, cost)
        return self.shift + completion_quantile(law, self.parameter, t, cost=cost)

    def of_plan(self, plan: Plan) -> float:
        """The quantile of J."""
        return plan.quantile(self.parameter)

    def limit(self, E_0: float) -> float:
        """−E_0 log(1−q), the quantile of an exponential law."""
        return float(-E_0 * np.log1p(-self.parameter))

    def special_times(self, law: Law, cost: float) -> Floats:
        """F̃(t) = 1 − (1−q)^(1/k): one attempt less is enough from here on."""
        t = inverse_cdf(law, -np.expm1(np.log1p(-self.parameter) / ATTEMPTS))
        return t[np.isfinite(t) & (t > 0)]
