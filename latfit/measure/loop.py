"""The loop: keep n probes in flight, or let them arrive at random, and record how each ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from latfit.errors import ProbeError, counted
from latfit.measure.journal import Journal
from latfit.measure.targets import Attempt, Outcome, Probe

if TYPE_CHECKING:
    from latfit.measure.run import Precision
    from latfit.tracking.tracker import Tracker


NEVER = math.inf


@dataclass(frozen=True)
class Step:
    """One attempt, cancelled at the age `timeout`; a step `beside` others is skipped if no attempt is in flight.

    The next attempt is submitted at the age `then`, or `sleep` seconds after the last one in flight has failed.
    """

    timeout: float
    then: float
    sleep: float = 0.0
    beside: bool = False


@dataclass(frozen=True)
class Plan:
    """How the attempts of every job follow each other.

    `steps` creates the steps of one job. With `race`, a job is done when one attempt completes, and the others are
    cancelled; without it, every attempt is awaited. `kind` is probes, pairs or jobs.
    """

    kind: str
    text: str
    steps: Callable[[Random], Iterator[Step]]
    race: bool = True
    tracker: Tracker | None = None


def single() -> Plan:
    """One attempt per job, cut at the cutoff: a probe."""
    return Plan("probes", "", lambda _: iter([Step(NEVER, NEVER)]))


def paired(again_after: float) -> Plan:
    """The same job submitted again when the first attempt is `again_after` old; both are awaited."""
    steps = [Step(NEVER, again_after), Step(NEVER, NEVER)]
    return Plan("pairs", f"again-after({again_after:g})", lambda _: iter(steps), race=False)


def careful(timeout: float) -> Plan:
    """Each attempt waits twice as long: harmless if a second attempt is as slow as the first, otherwise cheap."""

    def steps(_: Random) -> Iterator[Step]:
        return (Step(timeout * 2**k, timeout * 2**k) for k in count())

    return Plan("jobs", f"careful(t={timeout:g})", steps)


def tracked(tracker: Tracker) -> Plan:
    """Each attempt gets the tracker's current timeout."""

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
        while then == NEVER:  # a policy that never cancels starts again when all its attempts have failed
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


MIN_LATER_ATTEMPTS = 10  # before the breaker can trip
BREAKER_LEVEL = 1e-4  # the probability of the counts if attempts were independent, at which it trips


@dataclass(frozen=True)
class Pace:
    """How probes follow each other.

    `arrivals` closed: `in_flight` jobs at a time; when one is done, the next begins after a random pause of at most
    `pause` seconds, at most `rate` per second. `arrivals` poisson: at random, `rate` per second on average; an arrival
    that would exceed `in_flight` is counted as skipped, not delayed.
    """

    in_flight: int = 10
    arrivals: str = "closed"
    rate: float | None = None
    pause: float = 1.0
    cutoff: float = 600.0

    def __post_init__(self) -> None:
        if self.arrivals not in ("closed", "poisson"):
            raise ProbeError(f"arrivals are closed or poisson, not {self.arrivals!r}")
        if self.arrivals == "poisson" and self.rate is None:
            raise ProbeError("poisson arrivals need a rate, for example --rate 2/s")


@dataclass(frozen=True)
class Limits:
    """When a run ends: at a number of jobs or submissions in the log, or after seconds; the most attempts of a job."""

    jobs: int
    submissions: int
    attempts: int
    duration: float | None = None


@dataclass
class Counts:
    """The counts of a run so far."""

    ended: Counter[str] = field(default_factory=Counter)
    out: int = 0
    submitted: int = 0
    jobs: int = 0
    jobs_done: int = 0
    skipped: int = 0
    completed: Counter[str] = field(default_factory=Counter)  # by their detail


class Breaker:
    """Counts how many first and later attempts complete within the first attempt's timeout.

    If attempts of a job are independent and alike, later ones complete within it as often as first ones. The
    probability of at most k among n is at most exp(−n KL(k/n ‖ p)) (Chernoff); p is the predicted share, or that of the
    first attempts minus two standard errors. If fewer complete, there are more submissions than predicted.
    """

    def __init__(self, predicted: float | None = None) -> None:
        self.predicted = predicted
        self.first = [0, 0]  # completed within the timeout, and all
        self.later = [0, 0]
        self.tripped: str | None = None  # why the run has to stop

    def note(self, *, attempt: int, within: bool) -> None:
        counts = self.first if attempt == 1 else self.later
        counts[0] += within
        counts[1] += 1
        k, n = self.later
        if self.tripped or n < MIN_LATER_ATTEMPTS:
            return
        first = self.first[0] / max(1, self.first[1])
        lowest = first - 2 * math.sqrt(first * (1 - first) / max(1, self.first[1]))
        p, q = min(max(0.0, lowest) if self.predicted is None else self.predicted, 1 - 1e-9), k / n
        divergence = sum(a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0 and b > 0)
        if q < p and n * divergence >= -math.log(BREAKER_LEVEL):
            self.tripped = (
                f"of {n} later attempts {k} completed within the first timeout ({q:.0%}), where independent attempts "
                f"would in {p:.0%} or more: a second attempt of the same job is not a new draw, "
                "and resubmitting only adds load"
            )


@dataclass(eq=False)
class Loop:
    """One run of jobs; `run` probes an open target and returns the reason why it ended."""

    journal: Journal
    plan: Plan
    pace: Pace
    limits: Limits
    rng: Random
    probes: int = 0  # the last numbers in the log
    jobs: int = 0
    breaker: Breaker | None = None
    counts: Counts = field(default_factory=Counts)
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=1000))  # those of the latest completions
    last_failure: str = ""
    reason: str = ""
    failure: BaseException | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    due: float = 0.0  # when the next job may begin
    precision: Precision | None = None
    lags: deque[float] = field(default_factory=lambda: deque([0.0], maxlen=20_000))  # of about 17 minutes
    worst_lag: float = 0.0

    def stop(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.over.set()

    async def run(self, probe: Probe) -> str:
        self.probe, self.due = probe, time.monotonic()
        feeding = asyncio.create_task(self._closed() if self.pace.arrivals == "closed" else self._poisson())
        stopping = asyncio.create_task(self.over.wait())
        first, seconds = asyncio.FIRST_COMPLETED, self.limits.duration
        done, _ = await asyncio.wait({feeding, stopping}, timeout=seconds, return_when=first)
        if not done:
            self.stop("the duration is over")
        for task in {feeding, stopping, *self.tasks}:
            task.cancel()
        while self.tasks:
            await asyncio.wait(self.tasks)
        if self.failure is not None:
            raise self.failure
        return self.reason or "all probes are done"

    async def _closed(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self.pace.in_flight, max(1, self.limits.jobs - self.jobs))):
                workers.create_task(self._worker())

    async def _worker(self) -> None:
        while self._may_begin():
            if self.pace.pause:
                await asyncio.sleep(self.rng.uniform(0, self.pace.pause))
            if self.pace.rate is not None:
                self.due = max(time.monotonic(), self.due + 1 / self.pace.rate)
                await asyncio.sleep(self.due - time.monotonic())
            if self._may_begin():
                await asyncio.wait({self._start_job()})

    async def _poisson(self) -> None:
        """Jobs begin at the points of a Poisson process, which does not wait for them."""
        assert self.pace.rate is not None
        while self._may_begin():
            self.due += self.rng.expovariate(self.pace.rate)
            await asyncio.sleep(self.due - time.monotonic())
            if len(self.tasks) >= self.pace.in_flight:
                self.counts.skipped += 1
            else:
                self._start_job()
        while self.tasks:
            await asyncio.wait(self.tasks)

    def _may_begin(self) -> bool:
        return self.jobs < self.limits.jobs and self._may_submit()

    def _may_submit(self) -> bool:
        if self.probes >= self.limits.submissions:
            self.reason = self.reason or f"the limit of {counted(self.limits.submissions, 'submission')} is reached"
            return False
        return not self.over.is_set()

    def _start_job(self) -> asyncio.Task[None]:
        self.jobs += 1
        self.counts.jobs += 1
        task = asyncio.create_task(self._job(self.jobs))
        self.tasks.add(task)
        task.add_done_callback(self._job_over)
        return task

    def _job_over(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failure = self.failure or task.exception()
            self.stop("an error")

    async def _job(self, job: int) -> None:
        running: set[asyncio.Task[Outcome]] = set()
        done, number, first_timeout = False, 0, NEVER
        try:
            for step in self.plan.steps(self.rng):
                if step.beside and not running:
                    continue
                number += 1
                if number > self.limits.attempts or not self._may_submit():
                    break
                first_timeout = step.timeout if number == 1 else first_timeout
                start = time.monotonic()
                running.add(asyncio.create_task(self._attempt(job, number, step.timeout, first_timeout)))
                done = await _until_next(running, step, start) or done
                if done or (not running and not self.plan.race):  # no second of a pair after the first has ended
                    break
            while running and not (done and self.plan.race):
                done = await _until_next(running, Step(NEVER, NEVER), 0.0) or done
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)  # the first error has been reported
            self.counts.jobs_done += done

    async def _attempt(self, job: int, number: int, timeout: float, first_timeout: float) -> Outcome:
        self.probes += 1
        attempt = Attempt(self.journal.run, self.probes, job, number)
        self.counts.submitted += 1
        self.counts.out += 1
        self.journal.submitted(attempt)
        outcome, stopped = await _within(self.probe(attempt), min(timeout, self.pace.cutoff))
        self.journal.ended(attempt, outcome)
        self.counts.out -= 1
        self.counts.ended[outcome.status] += 1
        if outcome.status == "completed":
            self.latencies.append(outcome.latency)
            self.counts.completed[outcome.detail] += 1
        elif outcome.status == "failed":
            self.last_failure = outcome.detail
        if self.plan.tracker is not None and not stopped:
            self.plan.tracker.observe(outcome.latency, outcome.status)
        if self.breaker is not None and not stopped:
            within = outcome.status == "completed" and outcome.latency <= first_timeout
            self.breaker.note(attempt=number, within=within)
            if self.breaker.tripped:
                self.stop(f"stopped by the breaker: {self.breaker.tripped}")
        if stopped:
            raise asyncio.CancelledError
        return outcome


async def _until_next(running: set[asyncio.Task[Outcome]], step: Step, start: float) -> bool:
    """Wait until the next attempt is due; return whether an attempt completed. Ended attempts leave `running`."""
    while running:
        left = start + step.then - time.monotonic()
        if left <= 0:
            return False
        timeout = None if left == NEVER else left
        ended, _ = await asyncio.wait(running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        running -= ended
        if any(task.result().status == "completed" for task in ended):
            return True
    if step.sleep:
        await asyncio.sleep(step.sleep)
    return False


async def _within(probe: Awaitable[Outcome], limit: float) -> tuple[Outcome, bool]:
    """A probe's outcome once nothing of it is left, censored at `limit` or if cancelled; whether it was cancelled."""
    task = asyncio.ensure_future(probe)
    start, stopped = time.monotonic(), False
    try:
        await asyncio.wait({task}, timeout=limit)
    except asyncio.CancelledError:
        stopped = True
    age = time.monotonic() - start
    if not task.done():
        task.cancel()
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        return Outcome("censored", min(age, limit), "stopped" if stopped else "timeout"), stopped
    outcome = task.result()
    return (Outcome("censored", limit, "timeout") if outcome.latency > limit else outcome), stopped
