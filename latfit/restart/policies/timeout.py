"""One attempt after another: a timeout, several copies at once with one, and Luby's sequence of timeouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import count, islice

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.derived import has_failures, not_completed, still_out, with_copies
from latfit.restart.plan import Ages, Plan, Round, attempt, overlapping
from latfit.restart.policies import Policy, Shorthand, Submission, Written, in_seconds, register

MAX_LUBY_ATTEMPTS = 200_000


@register
@dataclass(frozen=True)
class Timeout(Shorthand):
    """Cancel each attempt at age t and submit again; without t one attempt runs for as long as it takes.

    E = (∫₀ᵗ S + c S(t))/F̃(t), N = 1/F̃(t). van Moorsel & Wolter 2004, eq. 7; Glatard et al. 2006, eq. 6.
    """

    name = "timeout"
    parameters = (Parameter("t", "positive"),)
    example = "timeout(t=384)"
    searched = True
    copies_at_once = 1
    t: float | None = None

    @property
    def written_out(self) -> CopiesPolicy:
        return CopiesPolicy(1, self.t)

    def sentence(self, time: Written = in_seconds) -> str:
        return "Wait for as long as it takes" if self.t is None else f"Cancel and resubmit after {time(self.t)}"


@register
@dataclass(frozen=True)
class CopiesPolicy(Policy):
    """Submit b copies at once, cancel all at age t_inf and submit b again; without t_inf they are never cancelled.

    The attempt has the law 1 − (1−F̃)ᵇ; N = b/(1 − (1−F̃(t_inf))ᵇ).
    """

    name = "copies"
    parameters = (Parameter("b", "count"), Parameter("t_inf", "positive"))
    example = "copies(b=2,t_inf=435)"
    searched = True
    copies_at_once = 2
    b: int = 2
    t_inf: float | None = None

    def plan(self, law: Law, cost: float) -> Plan:
        t, first = self.t_inf or np.inf, with_copies(law, self.b)
        this = attempt(first, t, pause=cost, copies=self.b)

        def running(u: Floats) -> Ages:  # b S (1−F̃)ᵇ⁻¹: a copy that failed is out no more
            out = self.b * still_out(law, u) * not_completed(law, u) ** (self.b - 1)
            return Ages(out, out, np.zeros_like(u))

        if self.b > 1 and has_failures(law):
            this = replace(this, job_seconds=overlapping(law, (0.0,), t, running).job_seconds)
        return Plan((this,), repeats=True)

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


@register
@dataclass(frozen=True)
class Luby(Policy):
    """Timeouts 1, 1, 2, 1, 1, 2, 4, 1, … times `unit`. Luby, Sinclair and Zuckerman 1993.

    Its guarantee (a logarithmic factor from the optimum) is one for discrete steps and does not carry over to
    continuous time (Lorenz 2021): the unit matters.
    """

    name = "luby"
    parameters = (Parameter("unit", "positive"),)
    example = "luby(unit=60)"
    searched = True
    compared = False
    unit: float

    def plan(self, law: Law, cost: float) -> Plan:
        round_of = cache(lambda multiple: attempt(law, self.unit * multiple, pause=cost))
        rounds, reached = list[Round](), 1.0
        for multiple in islice(luby_sequence(), MAX_LUBY_ATTEMPTS):
            rounds.append(round_of(multiple))
            reached *= rounds[-1].p_incomplete
            if reached <= 1e-16:
                return Plan(tuple(rounds), repeats=rounds[-1].p_incomplete > 0)
        raise RestartError(
            f"luby: with a unit of {self.unit:g} s more than {MAX_LUBY_ATTEMPTS} attempts are needed; take a larger one"
        )

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        start = 0.0
        for multiple in luby_sequence():
            yield Submission(start, self.unit * multiple)
            start += self.unit * multiple + cost

    def sentence(self, time: Written = in_seconds) -> str:
        return f"Take timeouts of 1, 1, 2, 1, 1, 2, 4, … times {time(self.unit)}"


def luby_sequence() -> Iterator[int]:
    """1, 1, 2, 1, 1, 2, 4, …: the i-th is 2^(k−1) if i = 2^k − 1, else that of i − 2^(k−1) + 1."""
    for i in count(1):
        at = i
        while (at + 1) & at:  # at + 1 is not a power of two
            at -= (1 << (at.bit_length() - 1)) - 1
        yield (at + 1) >> 1
