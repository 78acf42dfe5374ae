"""The schedules that common tools run, under their own names and with their own defaults.

Each is a `schedule` of equal timeouts with sleeps between them, as the tool's documentation gives them; `timeout` is
what the client itself sets for each attempt.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import mul
from typing import ClassVar

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law, Parameter
from latfit.restart.plan import Plan
from latfit.restart.policies.base import Policy, Submission, Written, in_seconds, register
from latfit.restart.policies.schedule import SchedulePolicy

MOST_ATTEMPTS = 1000


@dataclass(frozen=True)
class Preset(Policy):
    """A schedule with other parameters: `attempts` of `timeout` seconds, and the sleeps of the tool."""

    drawn: ClassVar[float] = 0.0
    """The share of the longest sleep that is drawn: 0 is no jitter, 1 full jitter."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.params.items():
            if isinstance(value, int) and value > MOST_ATTEMPTS:
                raise RestartError(
                    f"{self.name}: {name} is {value}; schedules of at most {MOST_ATTEMPTS} attempts are followed"
                )

    @abstractmethod
    def sleeps(self) -> list[float]:
        """The (longest) sleep after each attempt but the last."""

    @property
    def schedule(self) -> SchedulePolicy:
        """The schedule that the tool runs."""
        sleeps = tuple(self.sleeps())
        timeout = float(self.params["timeout"])
        return SchedulePolicy((timeout,) * (len(sleeps) + 1), sleeps, self.drawn)

    @property
    def most_submissions(self) -> int | None:
        """One for each attempt."""
        return self.schedule.most_submissions

    def plan(self, law: Law, cost: float) -> Plan:
        """That of the schedule."""
        return self.schedule.plan(law, cost)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        """Those of the schedule."""
        return self.schedule.submissions(cost, size, rng)

    def sentence(self, time: Written = in_seconds) -> str:
        """That of the schedule."""
        return self.schedule.sentence(time)


ATTEMPTS = Parameter("attempts", "count")
TIMEOUT = Parameter("timeout", "positive")
WAIT, FACTOR = Parameter("wait", "non-negative"), Parameter("factor", "positive")
MAX = Parameter("max", "non-negative")


def _growing(attempts: int, first: float, factor: float, most: float) -> list[float]:
    """Sleeps first · factorⁱ, at most `most`."""
    return [min(s, most) for s in accumulate(repeat(factor, attempts - 2), mul, initial=first)][: attempts - 1]


@register
@dataclass(frozen=True)
class Tenacity(Preset):
    """`stop_after_attempt` with `wait_exponential`: sleeps wait · factorⁱ, at most max."""

    name: ClassVar[str] = "tenacity"
    parameters: ClassVar[tuple[Parameter, ...]] = (ATTEMPTS, TIMEOUT, WAIT, FACTOR, MAX)
    example: ClassVar[str] = "tenacity(attempts=5,timeout=10,wait=1,factor=2,max=60)"
    says: ClassVar[str] = "stop_after_attempt with wait_exponential"
    timeout: float
    attempts: int = 5
    wait: float = 1.0
    factor: float = 2.0
    max: float = 60.0

    def sleeps(self) -> list[float]:
        """Sleeps wait · factorⁱ, at most max."""
        return _growing(self.attempts, self.wait, self.factor, self.max)


@register
@dataclass(frozen=True)
class Stamina(Preset):
    """`stamina.retry`: 10 attempts, sleeps 0.1 · 2ⁱ plus up to 1 s of jitter (half of it counted), at most 5 s."""

    name: ClassVar[str] = "stamina"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        ATTEMPTS,
        TIMEOUT,
        WAIT,
        FACTOR,
        MAX,
        Parameter("jitter", "non-negative"),
    )
    example: ClassVar[str] = "stamina(attempts=10,timeout=10)"
    says: ClassVar[str] = "stamina.retry with its defaults (without its total timeout)"
    timeout: float
    attempts: int = 10
    wait: float = 0.1
    factor: float = 2.0
    max: float = 5.0
    jitter: float = 1.0

    def sleeps(self) -> list[float]:
        """Sleeps min(max, wait · factorⁱ + jitter/2)."""
        return [min(self.max, s + self.jitter / 2) for s in _growing(self.attempts, self.wait, self.factor, self.max)]


@register
@dataclass(frozen=True)
class Urllib3(Preset):
    """`Retry(total, backoff_factor)`: no sleep before the first retry, then factor · 2ⁱ, at most 120 s."""

    name: ClassVar[str] = "urllib3"
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("total", "count"),
        TIMEOUT,
        Parameter("factor", "non-negative"),
        MAX,
    )
    example: ClassVar[str] = "urllib3(total=3,timeout=10,factor=0.5)"
    says: ClassVar[str] = "Retry(total, backoff_factor, backoff_max)"
    timeout: float
    total: int = 10
    factor: float = 0.0
    max: float = 120.0

    def sleeps(self) -> list[float]:
        """0, then factor · 2ⁱ."""
        return [0.0, *(min(self.factor * 2.0**i, self.max) for i in range(1, self.total))]


@register
@dataclass(frozen=True)
class Botocore(Preset):
    """The standard mode of botocore: 3 attempts, sleeps drawn from [0, wait · 2ⁱ], at most 20 s.

    After what is no throttling, `wait` is 0.05 s since botocore 1.44 (0.025 s with DynamoDB) and was 1 s before.
    """

    name: ClassVar[str] = "botocore"
    parameters: ClassVar[tuple[Parameter, ...]] = (ATTEMPTS, TIMEOUT, WAIT, MAX)
    example: ClassVar[str] = "botocore(attempts=3,timeout=60)"
    says: ClassVar[str] = "the standard retry mode"
    drawn: ClassVar[float] = 1.0
    timeout: float = 60.0
    attempts: int = 3
    wait: float = 0.05
    max: float = 20.0

    def sleeps(self) -> list[float]:
        """Sleeps up to wait · 2ⁱ."""
        return _growing(self.attempts, self.wait, 2.0, self.max)


@register
@dataclass(frozen=True)
class Grpc(Preset):
    """gRPC's retryPolicy (gRFC A6): sleeps b · [0.8, 1.2] with b = min(wait · factorⁱ, max), at most 5 attempts.

    That jitter is of A6 since 2024 and of the releases of grpc-go and grpc-java that follow it (grpc-go pull request
    7869, grpc-java 11858); until then sleeps were drawn from [0, b].
    """

    name: ClassVar[str] = "grpc"
    parameters: ClassVar[tuple[Parameter, ...]] = (ATTEMPTS, TIMEOUT, WAIT, FACTOR, MAX)
    example: ClassVar[str] = "grpc(attempts=4,timeout=1,wait=0.1,factor=2,max=1)"
    says: ClassVar[str] = "retryPolicy: maxAttempts, initialBackoff, backoffMultiplier, maxBackoff"
    drawn: ClassVar[float] = 1 / 3
    timeout: float
    attempts: int = 5
    wait: float = 0.1
    factor: float = 2.0
    max: float = 10.0

    def sleeps(self) -> list[float]:
        """Sleeps up to 1.2 · min(wait · factorⁱ, max), a third of it drawn; more than 5 attempts count as 5."""
        return [1.2 * b for b in _growing(min(self.attempts, 5), self.wait, self.factor, self.max)]


@register
@dataclass(frozen=True)
class Resilience4j(Preset):
    """Resilience4j's RetryConfig: 3 attempts and a wait of 500 ms, constant unless a factor is given."""

    name: ClassVar[str] = "resilience4j"
    parameters: ClassVar[tuple[Parameter, ...]] = (ATTEMPTS, TIMEOUT, WAIT, FACTOR)
    example: ClassVar[str] = "resilience4j(attempts=3,timeout=1,wait=0.5)"
    says: ClassVar[str] = "RetryConfig: maxAttempts, waitDuration"
    timeout: float
    attempts: int = 3
    wait: float = 0.5
    factor: float = 1.0

    def sleeps(self) -> list[float]:
        """Sleeps wait · factorⁱ."""
        return _growing(self.attempts, self.wait, self.factor, np.inf)


@register
@dataclass(frozen=True)
class Kubernetes(Preset):
    """A Job of Kubernetes: backoffLimit retries, sleeps 10 s · 2ⁱ, at most 6 min; `timeout` is the pod's deadline."""

    name: ClassVar[str] = "kubernetes"
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("limit", "count"), TIMEOUT)
    example: ClassVar[str] = "kubernetes(limit=6,timeout=600)"
    says: ClassVar[str] = "a Job with backoffLimit and a deadline for each pod"
    timeout: float
    limit: int = 6

    def sleeps(self) -> list[float]:
        """Sleeps 10 s · 2ⁱ, at most 360 s."""
        return _growing(self.limit + 1, 10.0, 2.0, 360.0)
