"""The distribution of the completion time: a quantile, the chance to miss a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latfit.errors import LatfitError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import completion_quantile, log_survival
from latfit.restart.lattice import lattice_quantile, lattice_survival
from latfit.restart.objectives import Objective, register
from latfit.restart.plan import Plan
from latfit.restart.times import has_failures, inverse_cdf
from latfit.units import parse_duration

ATTEMPTS = np.arange(1.0, 301.0)  # numbers of attempts at which the figures bend


@register
@dataclass(frozen=True)
class Quantile(Objective):
    """The time within which a share q of the jobs is done."""

    name: ClassVar[str] = "quantile"
    usage: ClassVar[str] = "quantile:q with 0 < q < 1"

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        return 0 < value < 1

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """The smallest x with F_J(x) ≥ q; with failures on the lattice of the clock."""
        if has_failures(law):
            return self.shift + lattice_quantile(law, self.parameter, t, cost)
        return self.shift + completion_quantile(law, self.parameter, t, cost=cost)

    def of_plan(self, plan: Plan) -> float:
        return plan.quantile(self.parameter)

    def limit(self, E_0: float) -> float:
        """−E_0 log(1−q), the quantile of an exponential law."""
        return float(-E_0 * np.log1p(-self.parameter))

    def special_times(self, law: Law, cost: float) -> Floats:
        """F̃(t) = 1 − (1−q)^(1/k): one attempt less is enough from here on."""
        t = inverse_cdf(law, -np.expm1(np.log1p(-self.parameter) / ATTEMPTS))
        return t[np.isfinite(t) & (t > 0)]


@register
@dataclass(frozen=True)
class Deadline(Objective):
    """P(J > D), reported as the chance 1 − P(J > D) to be done in time.

    No timeout is later than D: what is still out then has missed the deadline. Windows and speed-up are those of
    the chance to miss: within 5 % means P(J > D) at most 1.05 times the least one.
    """

    name: ClassVar[str] = "deadline"
    usage: ClassVar[str] = "deadline:D with D seconds (more than the wall-clock time) or a duration such as 20min"

    @classmethod
    def read(cls, number: str) -> float:
        """Seconds, or a duration with its unit."""
        try:
            return parse_duration(number)
        except LatfitError:
            return float(number)

    @classmethod
    def allows(cls, value: float, shift: float) -> bool:
        return bool(shift < value < np.inf)

    @property
    def latest(self) -> float:
        return self.parameter - self.shift

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """P(J > D); with failures on the lattice of the clock."""
        if has_failures(law):
            return lattice_survival(law, self.latest, t, cost)
        return np.exp(log_survival(law, np.full(np.shape(t), self.latest), np.asarray(t), cost))

    def of_plan(self, plan: Plan) -> float:
        return plan.survival(self.parameter)

    def limit(self, E_0: float) -> float:
        """The chance exp(−D/E_0) of an exponential law."""
        return float(np.exp(-self.parameter / E_0)) if E_0 > 0 else 0.0

    def special_times(self, law: Law, cost: float) -> Floats:
        """The timeouts with which k attempts fit exactly before D."""
        t = (self.latest - (ATTEMPTS - 1) * cost) / ATTEMPTS
        return t[t > 0]

    def report(self, figure: float) -> float:
        return 1.0 - figure

    def text(self, reported: float) -> str:
        return f"{reported:.2%} of jobs in time"
