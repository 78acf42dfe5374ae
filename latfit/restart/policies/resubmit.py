"""Never cancel: submit again every d, and let all copies run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.plan import Plan, Round
from latfit.restart.policies.base import Policy, Submission, Written, in_seconds, register
from latfit.restart.rounds import attempt, not_completed, overlapping
from latfit.restart.times import has_failures

NEGLIGIBLE = 1e-12  # a chance of getting so far that nothing after it counts
MOST = 2000  # copies that are out at a time


@register
@dataclass(frozen=True)
class Resubmit(Policy):
    """P(J > n d + u) = Π_{k ≤ n} S(k d + u): another copy every d until one completes. Libman and Orda 2002.

    With a cost c the copies start every d + c.
    """

    name: ClassVar[str] = "resubmit"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("d", "positive"),)
    example: ClassVar[str] = "resubmit(d=306)"
    says: ClassVar[str] = "submit again every d and never cancel"
    searched: ClassVar[bool] = True
    needs_budget: ClassVar[bool] = True
    d: float

    def plan(self, law: Law, cost: float) -> Plan:
        """A round from each submission to the next, as many as can be reached."""
        rounds: list[Round] = []
        gap, reached = self.d + cost, 1.0
        while reached > NEGLIGIBLE and len(rounds) < MOST:
            rounds.append(self._round(law, gap, len(rounds)))
            reached *= rounds[-1].out
        if reached > 1e-9:
            raise RestartError(
                f"resubmit: with d = {self.d:g} s more than {MOST} copies would be out at a time; choose a larger d"
            )
        return Plan(tuple(rounds), repeats=rounds[-1].out > 0)

    def mean_submissions(self, law: Law, cost: float) -> float:
        """1 + Σ_n Π_{k ≤ n} S(k d)."""
        return float(1.0 + np.cumprod(not_completed(law, (self.d + cost) * np.arange(1.0, MOST + 1.0))).sum())

    def _round(self, law: Law, gap: float, n: int) -> Round:
        """Between submission n and the next one, with n + 1 copies out, given that none has completed before."""
        if n == 0 and not has_failures(law):
            return attempt(law, gap)
        ages: Floats = gap * np.arange(1.0, n + 1.0)
        before = not_completed(law, ages)
        ages, before = ages[before > 0], before[before > 0]

        def figures(u: Floats) -> tuple[Floats, Floats]:
            older = not_completed(law, np.asarray(u)[..., None] + ages) / before
            survival = np.asarray(not_completed(law, u) * np.prod(older, axis=-1))
            return survival, (n + 1) * survival

        copies = [(law, 0.0), *((law, age) for age in ages.tolist())]
        return overlapping(copies, gap, figures, submissions=1.0)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        """A copy every d + c, none of them cancelled."""
        return (Submission(k * (self.d + cost), np.inf) for k in count())

    @classmethod
    def spanned(cls, time: float, ratio: float) -> Resubmit:
        """The time is d."""
        return cls(time)

    def sentence(self, time: Written = in_seconds) -> str:
        """As an order."""
        return f"Submit again every {time(self.d)} and cancel none"
