"""Luby's universal sequence of timeouts, for when nothing is known of the law."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.restart.plan import Plan, Round, attempt
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register

MAX_LUBY_ATTEMPTS = 200_000


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
    says = "timeouts 1, 1, 2, 1, 1, 2, 4, … times unit, for when nothing is known"
    searched = True
    compared = False
    unit: float

    def plan(self, law: Law, cost: float) -> Plan:
        kinds: dict[int, Round] = {}
        rounds: list[Round] = []
        reached = 1.0
        for multiple in islice(luby_sequence(), MAX_LUBY_ATTEMPTS):
            if multiple not in kinds:
                kinds[multiple] = attempt(law, self.unit * multiple, pause=cost)
            rounds.append(kinds[multiple])
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
