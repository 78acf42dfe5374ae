"""Delayed resubmission: a new copy every t0 while the one before goes on for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import has_failures, not_completed, still_out
from latfit.restart.plan import Ages, Plan, Round, attempt, overlapping
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register
from latfit.restart.policies.timeout import Timeout


@register
@dataclass(frozen=True)
class Delayed(Policy):
    """A copy starts at 0, t0, 2 t0, …; each is cancelled at age t_inf, with t0 ≤ t_inf ≤ 2 t0: at most two are out.

    A = ∫₀^{t_inf−t0} S(u) S(u+t0) du, B = S(t_inf) ∫_{t_inf−t0}^{t0} S; E = ∫₀^{t0} S + (A+B)/F̃(t_inf),
    N = 1 + S(t0)/F̃(t_inf), W = ∫₀^{t0} S + (2A+B)/F̃(t_inf). Lingrand, Montagnat and Glatard, HPDC 2009.
    With a cost c the copies start every t0 + c.
    """

    name = "delayed"
    parameters = (Parameter("t0", "positive"), Parameter("t_inf", "positive"))
    example = "delayed(t0=300,t_inf=450)"
    says = "submit again every t0, cancel each copy at age t_inf"
    searched = True
    ratios = (1.0, 2.0)
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
        if not float(still_out(law, gap)) > 0:
            return Plan((attempt(law, gap, pause=cost),), repeats=has_failures(law))
        if has_failures(law):
            return Plan((self._failing(law, gap, cost),), repeats=True)
        ages = (0.0, gap, gap - self.t_inf)  # the last one: where the older copy is cancelled
        two = overlapping(law, ages, gap, self._two_copies(law, gap))
        return Plan((attempt(law, gap), two), repeats=True)

    def _two_copies(self, law: Law, gap: float) -> Callable[[Floats], Ages]:
        """From one submission to the next, given that the copy before is still out at age `gap`."""
        left = self.t_inf - gap
        G_gap, S_gap = float(law.failed(np.array(gap))), float(still_out(law, gap))
        N_left = not_completed(law, np.array(left))

        def at(u: Floats) -> Ages:
            age, both = gap + np.minimum(u, left), u < left
            N, S = not_completed(law, u), still_out(law, u)
            older_N, older_S, older_G = not_completed(law, age) - G_gap, still_out(law, age), law.failed(age) - G_gap
            alive = np.where(both, older_S * N + older_G * S, older_N * S) / S_gap
            running = np.where(both, older_S * N + older_N * S, older_N * S) / S_gap
            done = 1 - older_N / S_gap * np.where(both, N, N_left + (law.cdf(np.array(left)) - law.cdf(u)))
            return Ages(alive, done, running)

        return at

    def _failing(self, law: Law, gap: float, cost: float) -> Round:
        """Until one completes or none is out: the first copy alone, then again and again an older and a younger one."""

        def alone(u: Floats) -> Ages:
            S = still_out(law, u)
            return Ages(S, law.cdf(u), S)

        one = overlapping(law, (0.0,), gap, alone)
        two = overlapping(law, (0.0, gap, gap - self.t_inf), gap, self._two_copies(law, gap))
        S_gap, ends = float(law.still_out(np.array(gap))), 1.0 - two.p_under_way
        if ends <= 0:
            return Round(np.inf, one.p_incomplete, np.inf, np.inf, np.inf, np.inf, np.inf, pause=cost)
        done = (1.0 - two.p_incomplete) / ends
        mean = two.mean / ends
        second = (two.second_moment + 2 * gap * two.p_under_way * mean) / ends
        lost = (two.lost_time - two.p_under_way * gap * done) / ends
        return Round(
            np.inf,
            p_incomplete=one.p_incomplete - S_gap * done,
            mean=one.mean + S_gap * mean,
            second_moment=one.second_moment + S_gap * (2 * gap * mean + second),
            lost_time=one.lost_time + S_gap * (lost - gap * done),
            submissions=1.0 + S_gap / ends,
            job_seconds=one.job_seconds + S_gap * two.job_seconds / ends,
            pause=cost,
        )

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        return (Submission(k * (self.t0 + cost), self.t_inf) for k in count())

    @classmethod
    def from_times(cls, time: float, ratio: float) -> Policy:
        return cls(time, time * ratio) if ratio > 1 + 1e-9 else Timeout(time)

    def sentence(self, time: Written = in_seconds) -> str:
        return f"Submit again every {time(self.t0)} and cancel each copy after {time(self.t_inf)}"
