"""Cancel after a timeout and submit again, for ever: the policy of the papers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from latfit.laws.base import Law, Parameter
from latfit.restart.plan import Plan
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register
from latfit.restart.rounds import attempt
from latfit.restart.times import has_failures


@register
@dataclass(frozen=True)
class Timeout(Policy):
    """Each attempt is cancelled at age t and followed by the next; without t one attempt runs for as long as it takes.

    E = (∫₀ᵗ S + c S(t))/F̃(t), N = 1/F̃(t). van Moorsel & Wolter 2004, eq. 7; Glatard et al. 2006, eq. 6.
    """

    name: ClassVar[str] = "timeout"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("t", "positive"),)
    example: ClassVar[str] = "timeout(t=384)"
    says: ClassVar[str] = "cancel after t and submit again"
    searched: ClassVar[bool] = True
    copies_at_once: ClassVar[int | None] = 1
    t: float | None = None

    def plan(self, law: Law, cost: float) -> Plan:
        t = np.inf if self.t is None else self.t
        return Plan((attempt(law, t, pause=cost),), repeats=True, lattice=(law, t, cost) if has_failures(law) else None)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        t = np.inf if self.t is None else self.t
        return (Submission(k * (t + cost) if k else 0.0, t) for k in count())

    @property
    def most_submissions(self) -> int | None:
        return 1 if self.t is None else None

    @classmethod
    def from_times(cls, time: float, ratio: float) -> Timeout:
        return cls(time)

    def sentence(self, time: Written = in_seconds) -> str:
        return "Wait for as long as it takes" if self.t is None else f"Cancel and resubmit after {time(self.t)}"
