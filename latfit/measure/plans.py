"""When the attempts of a job are submitted, and when they are cancelled: what a policy means to a running client.

A plan is a sequence of steps, one an attempt. An attempt is cancelled at the age `timeout`; the next one is submitted
when the attempt is `then` old, or `sleep` after the last attempt on its way has failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from latfit.errors import ProbeError

NEVER = math.inf


@dataclass(frozen=True)
class Step:
    """One attempt: cancelled at the age `timeout`; the next is submitted at the age `then`."""

    timeout: float
    then: float
    sleep: float = 0.0


class Adaptive(Protocol):
    """What a `latfit.Tracker` does for a job: it gives the next timeout and learns from what came of it."""

    def next(self) -> float:
        """The timeout of the next attempt."""

    def observe(self, latency: float, status: str) -> object:
        """Learn how an attempt ended."""


@dataclass(frozen=True)
class Plan:
    """How the attempts of every job follow each other.

    `steps` makes the steps of one job; with `race` a job is done when one attempt completes and the others are
    cancelled then, without it every attempt is awaited. `kind` is probes, pairs or jobs.
    """

    kind: str
    text: str
    steps: Callable[[Random], Iterator[Step]]
    race: bool = True
    tracker: Adaptive | None = None


def single() -> Plan:
    """One attempt a job, cut at the cutoff: a probe."""
    return Plan("probes", "", lambda _: iter([Step(NEVER, NEVER)]))


def paired(again_after: float) -> Plan:
    """The same job submitted again when the first attempt is `again_after` old; both are awaited."""
    steps = [Step(NEVER, again_after), Step(NEVER, NEVER)]
    return Plan("pairs", f"again-after({again_after:g})", lambda _: iter(steps), race=False)


def careful(timeout: float) -> Plan:
    """Each attempt waits twice as long as the one before.

    It costs little where attempts are independent, and is harmless where a second attempt of the same job is as slow
    as the first: sooner or later an attempt is awaited.
    """

    def steps(_: Random) -> Iterator[Step]:
        t = timeout
        while True:
            yield Step(t, t)
            t *= 2

    return Plan("jobs", f"careful(t={timeout:g})", steps)


def tracked(tracker: Adaptive) -> Plan:
    """Each attempt has the tracker's timeout of the moment."""

    def steps(_: Random) -> Iterator[Step]:
        while True:
            t = tracker.next()
            yield Step(t, t)

    return Plan("jobs", "tracker", steps, tracker=tracker)


def _always(step: Step) -> Callable[[Random], Iterator[Step]]:
    def steps(_: Random) -> Iterator[Step]:
        while True:
            yield step

    return steps


def _schedule(timeouts: list[float], sleeps: list[float] | None = None) -> Callable[[Random], Iterator[Step]]:
    pauses = [*(sleeps or []), *[0.0] * len(timeouts)]
    return lambda _: iter([Step(t, t + s, s) for t, s in zip(timeouts, pauses, strict=False)])


def _hedge(d: float, t_inf: float, q: float = 1.0) -> Callable[[Random], Iterator[Step]]:
    """A second attempt after d with probability q; both are cancelled when the first is t_inf old."""

    def steps(rng: Random) -> Iterator[Step]:
        while True:
            if rng.random() < q:
                yield Step(t_inf, d)
                yield Step(t_inf - d, t_inf - d)
            else:
                yield Step(t_inf, t_inf)

    return steps


def _copies(b: float, t_inf: float) -> Callable[[Random], Iterator[Step]]:
    def steps(_: Random) -> Iterator[Step]:
        while True:
            for at in range(int(b)):
                yield Step(t_inf, t_inf if at == int(b) - 1 else 0.0)

    return steps


def _luby(unit: float) -> Callable[[Random], Iterator[Step]]:
    """Timeouts unit × 1, 1, 2, 1, 1, 2, 4, … (Luby, Sinclair and Zuckerman 1993)."""

    def steps(_: Random) -> Iterator[Step]:
        u, v = 1, 1  # Knuth's reluctant doubling
        while True:
            yield Step(unit * v, unit * v)
            u, v = (u + 1, 1) if u & -u == v else (u, 2 * v)

    return steps


POLICIES: dict[str, Callable[..., Callable[[Random], Iterator[Step]]]] = {
    "timeout": lambda t: _always(Step(t, t)),
    "schedule": _schedule,
    "delayed": lambda t0, t_inf: _always(Step(t_inf, t0)),
    "hedge": _hedge,
    "resubmit": lambda d: _always(Step(NEVER, d)),
    "copies": _copies,
    "luby": _luby,
}


def policy_plan(name: str, arguments: dict[str, Any]) -> Plan:
    """The plan of a policy by its name and parameters, such as `hedge` with d, t_inf and q.

    >>> plan = policy_plan("delayed", {"t0": 2.0, "t_inf": 3.0})
    >>> next(plan.steps(Random(0)))
    Step(timeout=3.0, then=2.0, sleep=0.0)
    """
    text = f"{name}({','.join(f'{key}={value}' for key, value in arguments.items())})"
    if name not in POLICIES:
        raise ProbeError(f"there is no policy {name!r} to run jobs by; there are: {', '.join(POLICIES)}")
    values = [x for value in arguments.values() for x in (value if isinstance(value, list) else [value])]
    if not values or not all(math.isfinite(x) and x >= 0 for x in values):
        raise ProbeError(f"{text}: every parameter must be a number of seconds or a share, and not negative")
    try:
        steps = POLICIES[name](**arguments)
    except TypeError as error:
        raise ProbeError(f"{text}: {str(error).replace('<lambda>()', name).lstrip('_')}") from error
    first = next(steps(Random(0)), None)
    if first is None or first.timeout <= 0:
        raise ProbeError(f"{text}: the first attempt must have a timeout greater than 0")
    return Plan("jobs", text, steps)


def parse_policy(text: str) -> Plan:
    """The plan of a policy written as text, such as `hedge(d=1,t_inf=4)`."""
    from latfit.laws.parse import _CALL, _arguments

    call = _CALL.fullmatch(text.rstrip())
    if call is None or call[2] is None:
        raise ProbeError(f"{text!r} is not a policy: write it as timeout(t=2) or hedge(d=1,t_inf=4)")
    return policy_plan(call[1], _arguments(text, call[2], call.start(2), f"{call[1]}(name=value,…)"))
