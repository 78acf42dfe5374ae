"""Cancel after a timeout and submit again, for ever: the policy of the papers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from latfit.laws.base import Law, Parameter
from latfit.restart.derived import has_failures
from latfit.restart.plan import Plan, attempt
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register


@register
@dataclass(frozen=True)
class Timeout(Policy):
    """Each attempt is cancelled at age t and followed by the next; without t one attempt runs for as long as it takes.

    E = (∫₀ᵗ S + c S(t))/F̃(t), N = 1/F̃(t). van Moorsel & Wolter 2004, eq. 7; Glatard et al. 2006, eq. 6.
    """

    name = "timeout"
    parameters = (Parameter("t", "positive"),)
    example = "timeout(t=384)"
    says = "cancel after t and submit again"
    searched = True
    copies_at_once = 1
    t: float | None = None

    def plan(self, law: Law, cost: float) -> Plan:
        t = self.t or np.inf
        return Plan((attempt(law, t, pause=cost),), repeats=True, lattice=(law, t, cost) if has_failures(law) else None)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        t = self.t or np.inf
        return (Submission(k * (t + cost) if k else 0.0, t) for k in count())

    @property
    def most_submissions(self) -> int | None:
        return 1 if self.t is None else None

    def sentence(self, time: Written = in_seconds) -> str:
        return "Wait for as long as it takes" if self.t is None else f"Cancel and resubmit after {time(self.t)}"
