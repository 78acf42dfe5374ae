"""When the attempts of a job are submitted, and when they are cancelled: what a policy means to a running client.

A plan is a sequence of steps, one an attempt. An attempt is cancelled at the age `timeout`; the next one is submitted
when the attempt is `then` old, or `sleep` after the last attempt on its way has failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latfit.tracking.tracker import Tracker

NEVER = math.inf


@dataclass(frozen=True)
class Step:
    """One attempt: cancelled at the age `timeout`, the next at `then`; one `beside` others only where one is out."""

    timeout: float
    then: float
    sleep: float = 0.0
    beside: bool = False


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
    tracker: Tracker | None = None


def single() -> Plan:
    """One attempt a job, cut at the cutoff: a probe."""
    return Plan("probes", "", lambda _: iter([Step(NEVER, NEVER)]))


def paired(again_after: float) -> Plan:
    """The same job submitted again when the first attempt is `again_after` old; both are awaited."""
    steps = [Step(NEVER, again_after), Step(NEVER, NEVER)]
    return Plan("pairs", f"again-after({again_after:g})", lambda _: iter(steps), race=False)


def careful(timeout: float) -> Plan:
    """Each attempt waits twice as long: harmless where a second attempt is as slow as the first, else cheap."""

    def steps(_: Random) -> Iterator[Step]:
        return (Step(timeout * 2**k, timeout * 2**k) for k in count())

    return Plan("jobs", f"careful(t={timeout:g})", steps)


def tracked(tracker: Tracker) -> Plan:
    """Each attempt has the tracker's timeout of the moment."""

    def steps(_: Random) -> Iterator[Step]:
        return (Step(t, t) for t in iter(tracker.next, None))

    return Plan("jobs", "tracker", steps, tracker=tracker)


def policy_plan(text: str) -> Plan:
    """The plan of a policy as `latfit compare` writes it, such as `hedge(d=1,t_inf=4)`, `luby(unit=60)` or a preset.

    >>> next(policy_plan("delayed(t0=2,t_inf=3)").steps(Random(0)))
    Step(timeout=3.0, then=2.0, sleep=0.0, beside=False)
    """
    from latfit.restart.policies import parse_policy

    policy = parse_policy(text)

    def steps(rng: Random) -> Iterator[Step]:
        import numpy as np

        then = NEVER
        while then == NEVER:  # a policy that never cancels is begun again when all its attempts have failed
            then = 0.0
            copies = policy.submissions(0.0, 1, np.random.default_rng(rng.getrandbits(64)))
            submitted = (copy for copy in copies if copy.probability >= 1 or rng.random() < copy.probability)
            before = next(submitted)
            for copy in submitted:
                then = float(np.squeeze(copy.start)) - float(np.squeeze(before.start))
                if then == NEVER:
                    break
                yield Step(before.age, then, max(0.0, then - before.age), before.beside)
                before = copy
            yield Step(before.age, NEVER, beside=before.beside)

    return Plan("jobs", policy.spec(), steps)
