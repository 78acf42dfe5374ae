"""A given schedule of timeouts and sleeps, as retry libraries run them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError, counted
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.plan import Plan
from latfit.restart.policies import Policy, Submission, Written, in_seconds, register
from latfit.restart.rounds import attempt

DRAWS = 256  # schedules with sleeps drawn evenly, whose distributions are averaged
EVEN = (np.arange(DRAWS) + 0.5) / DRAWS


@register
@dataclass(frozen=True)
class SchedulePolicy(Policy):
    """Attempts with timeouts τ₁…τ_K and sleeps between them; then one gives up. `jitter` is the share of a sleep drawn.

    A_i = Π_{j<i} S(τ_j): E = Σ A_i ∫₀^{τ_i} S + Σ A_{i+1} E[s_i], N = Σ A_i, P(success) = 1 − Π S(τ_i). With
    jitter = 1 (full jitter) a sleep is uniform on [0, s_i], with 0 it is s_i.
    """

    name: ClassVar[str] = "schedule"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("timeouts", "positive", many=True),
        Parameter("sleeps", "non-negative", many=True),
        Parameter("jitter", "non-negative"),
    )
    example: ClassVar[str] = "schedule(timeouts=[300,600,1200],sleeps=[10,20])"
    says: ClassVar[str] = "attempts with given timeouts and sleeps between them, then give up"
    timeouts: tuple[float, ...]
    sleeps: tuple[float, ...] = ()
    jitter: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sleeps and len(self.sleeps) != len(self.timeouts) - 1:
            raise RestartError(
                f"schedule: there are {len(self.timeouts)} timeouts and {len(self.sleeps)} sleeps; there is one sleep "
                "between two attempts, so one less"
            )
        if self.jitter > 1:
            raise RestartError(f"schedule: jitter is {self.jitter:g}; it is a share of the sleep, from 0 to 1")

    @property
    def most_submissions(self) -> int | None:
        return len(self.timeouts)

    @property
    def pauses(self) -> tuple[float, ...]:
        """The longest sleep after each attempt, 0 after the last."""
        return (*(self.sleeps or (0.0,) * (len(self.timeouts) - 1)), 0.0)

    def plan(self, law: Law, cost: float) -> Plan:
        rounds = [
            replace(
                attempt(law, tau, pause=cost + s * (1 - self.jitter / 2)), pause_variance=(s * self.jitter) ** 2 / 12
            )
            for tau, s in zip(self.timeouts, self.pauses, strict=True)
        ]
        starts = self._starts(cost) if self.jitter and any(self.pauses) else None
        return Plan(tuple(rounds), repeats=False, starts=starts)

    def _starts(self, cost: float) -> Floats:
        """The starts of the attempts for sleeps drawn evenly over their range (a Latin square)."""
        rng = np.random.default_rng(len(self.timeouts))
        steps = [
            tau + cost + s * (1 - self.jitter * rng.permutation(EVEN))
            for tau, s in zip(self.timeouts[:-1], self.pauses, strict=False)
        ]
        return np.cumsum([np.zeros(DRAWS), *steps], axis=0).T

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        start: Floats = np.zeros(size)
        for tau, s in zip(self.timeouts, self.pauses, strict=True):
            yield Submission(start, tau)
            start = start + tau + cost + s * (1 - self.jitter * rng.random(size))

    def sentence(self, time: Written = in_seconds) -> str:
        waits = ", then ".join(time(tau) for tau in self.timeouts[:4])
        more = " …" if len(self.timeouts) > 4 else ""
        return f"Wait {waits}{more} ({counted(len(self.timeouts), 'attempt')}), then give up"
