"""The chance to miss a deadline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from latfit.errors import LatfitError
from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.completion import log_survival
from latfit.restart.lattice import lattice_survival
from latfit.restart.objectives.base import Objective, register
from latfit.restart.times import has_failures
from latfit.units import parse_duration

if TYPE_CHECKING:
    from latfit.restart.plan import Plan

ATTEMPTS = np.arange(1.0, 301.0)


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
        """Later than the wall-clock time."""
        return bool(shift < value < np.inf)

    @property
    def latest(self) -> float:
        """D, less the wall-clock time."""
        return self.parameter - self.shift

    def value(self, law: Law, t: Floats, cost: float) -> Floats:
        """P(J > D); with failures on the lattice of the clock."""
        if has_failures(law):
            return lattice_survival(law, self.latest, t, cost)
        return np.exp(log_survival(law, np.full(np.shape(t), self.latest), np.asarray(t), cost))

    def of_plan(self, plan: Plan) -> float:
        """P(J > D)."""
        return plan.survival(self.parameter)

    def limit(self, E_0: float) -> float:
        """The chance exp(−D/E_0) of an exponential law."""
        return float(np.exp(-self.parameter / E_0)) if E_0 > 0 else 0.0

    def special_times(self, law: Law, cost: float) -> Floats:
        """The timeouts with which k attempts fit exactly before D."""
        t = (self.latest - (ATTEMPTS - 1) * cost) / ATTEMPTS
        return t[t > 0]

    def report(self, figure: float) -> float:
        """The chance to be done in time."""
        return 1.0 - figure

    def text(self, reported: float) -> str:
        """As a share of the jobs."""
        return f"{reported:.2%} of jobs in time"
