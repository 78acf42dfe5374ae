"""A given schedule of timeouts and sleeps, and those that common tools run: a row of a table each.

A tool's schedule has equal timeouts with sleeps between them, as its documentation gives them; `timeout` is what the
client itself sets for each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, make_dataclass, replace
from itertools import accumulate, repeat
from operator import mul
from typing import Any, ClassVar, NamedTuple

import numpy as np

from latfit.errors import RestartError, counted
from latfit.laws.base import Law, Parameter
from latfit.numbers import Floats
from latfit.restart.plan import Plan, Round, attempt
from latfit.restart.policies import Policy, Shorthand, Submission, Written, in_seconds, register

MAX_TOOL_ATTEMPTS = 1000


@register
@dataclass(frozen=True)
class SchedulePolicy(Policy):
    """Attempts with timeouts τ₁…τ_K and sleeps between them; then one gives up. `jitter` is the share of a sleep drawn.

    A_i = Π_{j<i} S(τ_j): E = Σ A_i ∫₀^{τ_i} S + Σ A_{i+1} E[s_i], N = Σ A_i, P(success) = 1 − Π S(τ_i). With
    jitter = 1 (full jitter) a sleep is uniform on [0, s_i], with 0 it is s_i.
    """

    name = "schedule"
    parameters = (
        Parameter("timeouts", "positive", many=True),
        Parameter("sleeps", "non-negative", many=True),
        Parameter("jitter", "non-negative"),
    )
    example = "schedule(timeouts=[300,600,1200],sleeps=[10,20])"
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
        attempts, rounds = list(zip(self.timeouts, self.pauses, strict=True)), list[Round]()
        for tau, s in attempts:
            this = attempt(law, tau, pause=cost + s * (1 - self.jitter / 2))
            rounds.append(replace(this, pause_variance=(s * self.jitter) ** 2 / 12))
        if not (self.jitter and any(self.pauses)):
            return Plan(tuple(rounds), repeats=False)
        # 256 draws of sleeps, even over their range (a Latin square)
        rng, even = np.random.default_rng(len(attempts)), (np.arange(256) + 0.5) / 256
        steps = [tau + cost + s * (1 - self.jitter * rng.permutation(even)) for tau, s in attempts[:-1]]
        return Plan(tuple(rounds), repeats=False, starts=np.cumsum([np.zeros(even.size), *steps], axis=0).T)

    def submissions(self, cost: float, size: int, rng: np.random.Generator) -> Iterator[Submission]:
        start: Floats = np.zeros(size)
        for tau, s in zip(self.timeouts, self.pauses, strict=True):
            yield Submission(start, tau)
            start = start + tau + cost + s * (1 - self.jitter * rng.random(size))

    def sentence(self, time: Written = in_seconds) -> str:
        waits = ", then ".join(time(tau) for tau in self.timeouts[:4])
        more = " …" if len(self.timeouts) > 4 else ""
        return f"Wait {waits}{more} ({counted(len(self.timeouts), 'attempt')}), then give up"


def _growing(attempts: int, first: float, factor: float, most: float = np.inf) -> list[float]:
    """Sleeps first · factorⁱ, at most `most`, after each attempt but the last."""
    return [min(s, most) for s in accumulate(repeat(factor, attempts - 2), mul, initial=first)][: attempts - 1]


class Tool(NamedTuple):
    """A row of the table: `defaults` by parameter (MISSING: to be given), the (longest) sleeps that follow from them.

    `drawn` is the share of the longest sleep that is drawn: 0 is no jitter, 1 full jitter.
    """

    example: str
    defaults: dict[str, Any]
    sleeps: Callable[[Any], list[float]]
    drawn: float = 0.0


TOOLS = {
    # stop_after_attempt with wait_exponential
    "tenacity": Tool(
        "tenacity(attempts=5,timeout=10,wait=1,factor=2,max=60)",
        {"attempts": 5, "timeout": MISSING, "wait": 1.0, "factor": 2.0, "max": 60.0},
        lambda p: _growing(p.attempts, p.wait, p.factor, p.max),
    ),
    # stamina.retry without its total timeout; a jitter of up to 1 s is added, of which half is counted
    "stamina": Tool(
        "stamina(attempts=10,timeout=10)",
        {"attempts": 10, "timeout": MISSING, "wait": 0.1, "factor": 2.0, "max": 5.0, "jitter": 1.0},
        lambda p: [min(p.max, s + p.jitter / 2) for s in _growing(p.attempts, p.wait, p.factor, p.max)],
    ),
    # Retry(total, backoff_factor, backoff_max): no sleep before the first retry, then factor · 2ⁱ
    "urllib3": Tool(
        "urllib3(total=3,timeout=10,factor=0.5)",
        {"total": 10, "timeout": MISSING, "factor": 0.0, "max": 120.0},
        lambda p: [0.0, *_growing(p.total, 2.0 * p.factor, 2.0, p.max)],
    ),
    # the standard retry mode; `wait` is 0.05 s since botocore 1.44 (0.025 s with DynamoDB; 1 s after throttling), and
    # was 1 s before
    "botocore": Tool(
        "botocore(attempts=3,timeout=60)",
        {"attempts": 3, "timeout": 60.0, "wait": 0.05, "max": 20.0},
        lambda p: _growing(p.attempts, p.wait, 2.0, p.max),
        drawn=1.0,
    ),
    # retryPolicy, gRFC A6: sleeps b · [0.8, 1.2] since 2024 (grpc-go pull 7869, grpc-java 11858), [0, b] before;
    # more than 5 attempts count as 5
    "grpc": Tool(
        "grpc(attempts=4,timeout=1,wait=0.1,factor=2,max=1)",
        {"attempts": 5, "timeout": MISSING, "wait": 0.1, "factor": 2.0, "max": 10.0},
        lambda p: [1.2 * b for b in _growing(min(p.attempts, 5), p.wait, p.factor, p.max)],
        drawn=1 / 3,
    ),
    # RetryConfig: maxAttempts, waitDuration
    "resilience4j": Tool(
        "resilience4j(attempts=3,timeout=1,wait=0.5)",
        {"attempts": 3, "timeout": MISSING, "wait": 0.5, "factor": 1.0},
        lambda p: _growing(p.attempts, p.wait, p.factor),
    ),
    # a Job with backoffLimit; `timeout` is the deadline of a pod
    "kubernetes": Tool(
        "kubernetes(limit=6,timeout=600)",
        {"limit": 6, "timeout": MISSING},
        lambda p: _growing(p.limit + 1, 10.0, 2.0, 360.0),
    ),
}


@dataclass(frozen=True)
class Preset(Shorthand):
    """A schedule with the parameters of a tool."""

    tool: ClassVar[Tool]

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.params.items():
            if isinstance(value, int) and value > MAX_TOOL_ATTEMPTS:
                raise RestartError(
                    f"{self.name}: {name} is {value}; schedules of at most {MAX_TOOL_ATTEMPTS} attempts are followed"
                )

    @property
    def written_out(self) -> SchedulePolicy:
        sleeps = tuple(self.tool.sleeps(self))
        return SchedulePolicy((float(self.params["timeout"]),) * (len(sleeps) + 1), sleeps, self.tool.drawn)


def _parameter(name: str, default: Any) -> Parameter:
    if isinstance(default, int):
        return Parameter(name, "count")
    return Parameter(name, "positive" if name == "timeout" or (name == "factor" and default) else "non-negative")


for _name, _tool in TOOLS.items():
    _constants = {
        "name": _name,
        "tool": _tool,
        "example": _tool.example,
        "parameters": tuple(_parameter(name, default) for name, default in _tool.defaults.items()),
    }
    _fields = [(name, Any, field(default=default)) for name, default in _tool.defaults.items()]
    register(make_dataclass(_name.title(), _fields, bases=(Preset,), namespace=_constants, frozen=True, kw_only=True))
