"""Several copies at once, of which the first to complete counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np

from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import has_failures, not_completed, still_out, with_copies
from latfit.restart.plan import Ages, Plan, attempt, overlapping
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register


@register
@dataclass(frozen=True)
class CopiesPolicy(Policy):
    """Submit b copies at once, cancel all at age t_inf and submit b again; without t_inf they are never cancelled.

    The attempt has the law 1 − (1−F̃)ᵇ; N = b/(1 − (1−F̃(t_inf))ᵇ).
    """

    name = "copies"
    parameters = (Parameter("b", "count"), Parameter("t_inf", "positive"))
    example = "copies(b=2,t_inf=435)"
    says = "submit b at once, cancel all after t_inf and submit b again"
    searched = True
    copies_at_once = 2
    b: int = 2
    t_inf: float | None = None

    def plan(self, law: Law, cost: float) -> Plan:
        t, first = self.t_inf or np.inf, with_copies(law, self.b)
        this = attempt(first, t, pause=cost, copies=self.b)
        if not has_failures(law):
            return Plan((this,), repeats=True)

        def running(u: Floats) -> Ages:  # b S (1−F̃)ᵇ⁻¹: a copy that failed is out no more
            out = self.b * still_out(law, u) * not_completed(law, u) ** (self.b - 1)
            return Ages(out, np.zeros_like(u), out)

        this = replace(this, job_seconds=overlapping(law, (0.0,), t, running).job_seconds)
        return Plan((this,), repeats=True, lattice=(first, t, cost))

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        t = self.t_inf or np.inf
        for k in count():
            start = k * (t + cost) if k else 0.0
            yield Submission(start, t)
            yield from [Submission(start, t, after=0.0)] * (self.b - 1)

    @property
    def most_submissions(self) -> int | None:
        return self.b if self.t_inf is None else None

    @classmethod
    def from_times(cls, time: float, ratio: float) -> CopiesPolicy:
        return cls(2, time)

    def sentence(self, time: Written = in_seconds) -> str:
        cancel = "" if self.t_inf is None else f", cancel all after {time(self.t_inf)} and submit again"
        return f"Submit {self.b} copies at once{cancel}"
