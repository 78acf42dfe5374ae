"""Delayed resubmission: a new copy every t0 while the one before goes on for a while."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.failing import failing_delay
from latfit.restart.plan import Plan, Round
from latfit.restart.policies.base import Policy, Submission, Written, in_seconds, register
from latfit.restart.policies.timeout import Timeout
from latfit.restart.rounds import attempt, not_completed, overlapping
from latfit.restart.times import has_failures


@register
@dataclass(frozen=True)
class Delayed(Policy):
    """A copy starts at 0, t0, 2 t0, …; each is cancelled at age t_inf, with t0 ≤ t_inf ≤ 2 t0: at most two are out.

    A = ∫₀^{t_inf−t0} S(u) S(u+t0) du, B = S(t_inf) ∫_{t_inf−t0}^{t0} S; E = ∫₀^{t0} S + (A+B)/F̃(t_inf),
    N = 1 + S(t0)/F̃(t_inf), W = ∫₀^{t0} S + (2A+B)/F̃(t_inf). Lingrand, Montagnat and Glatard, HPDC 2009.
    With a cost c the copies start every t0 + c.
    """

    name: ClassVar[str] = "delayed"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("t0", "positive"), Parameter("t_inf", "positive"))
    example: ClassVar[str] = "delayed(t0=300,t_inf=450)"
    says: ClassVar[str] = "submit again every t0, cancel each copy at age t_inf"
    searched: ClassVar[bool] = True
    ratios: ClassVar[tuple[float, float] | None] = (1.0, 2.0)
    t0: float
    t_inf: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.t0 <= self.t_inf <= 2 * self.t0 * (1 + 1e-12):
            raise RestartError(
                f"delayed: t_inf is {self.t_inf:g} s and t0 is {self.t0:g} s; it must lie between t0 and 2 t0, so that "
                "at most two copies are out"
            )

    def plan(self, law: Law, cost: float) -> Plan:
        """The first copy alone, then the stretch between two submissions again and again."""
        gap = self.t0 + cost
        if self.t_inf <= gap:  # with such a cost the copies do not overlap
            return Plan((attempt(law, self.t_inf, pause=gap - self.t_inf),), repeats=True)
        at_gap = float(not_completed(law, np.array(gap)))
        if at_gap <= 0:
            return Plan((attempt(law, gap, pause=cost),), repeats=has_failures(law))
        if has_failures(law):
            return Plan((failing_delay(law, gap, self.t_inf, cost),), repeats=True)
        return Plan((attempt(law, gap), self._stretch(law, gap, at_gap)), repeats=True)

    def mean_submissions(self, law: Law, cost: float) -> float:
        """1 + S(t0)/F̃(t_inf)."""
        if has_failures(law):
            return super().mean_submissions(law, cost)
        at_gap, at_end = not_completed(law, np.array([self.t0 + cost, self.t_inf]))
        if self.t_inf <= self.t0 + cost:
            at_gap = at_end
        return float(1.0 + at_gap / (1.0 - at_end)) if at_end < 1 else np.inf

    def _stretch(self, law: Law, gap: float, at_gap: float) -> Round:
        """From one submission to the next, given that the copy before is still out at age t0."""

        def figures(u: Floats) -> tuple[Floats, Floats]:
            older = not_completed(law, np.minimum(u + gap, self.t_inf))
            survival = older * not_completed(law, u) / at_gap
            return survival, survival * np.where(u + gap < self.t_inf, 2.0, 1.0)

        copies = ((law, 0.0), (law, gap), (law, gap - self.t_inf))  # the last one: where the older copy is cancelled
        return overlapping(copies, gap, figures, submissions=1.0)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        """A copy every t0 + c."""
        return (Submission(k * (self.t0 + cost), self.t_inf) for k in count())

    @classmethod
    def spanned(cls, time: float, ratio: float) -> Policy:
        """The first time is t0; copies that do not overlap are those of a timeout."""
        return cls(time, time * ratio) if ratio > 1 + 1e-9 else Timeout(time)

    def sentence(self, time: Written = in_seconds) -> str:
        """As an order."""
        return f"Submit again every {time(self.t0)} and cancel each copy after {time(self.t_inf)}"
