"""The loop: keep n probes on their way, or let them arrive at random, and write down what comes of each."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random

from latfit.errors import ProbeError, counted
from latfit.measure.breaker import Breaker
from latfit.measure.journal import Journal
from latfit.measure.plans import Plan, Step
from latfit.measure.targets.base import Attempt, Outcome, Session

CENSORED = "censored"


@dataclass(frozen=True)
class Pace:
    """How probes follow each other.

    `arrivals` closed: `in_flight` jobs at a time, a new one after a random pause of at most `pause` seconds when one
    is done, at most `rate` a second. `arrivals` poisson: at random, `rate` a second on average, whatever is still out;
    one that would exceed `in_flight` is counted as skipped, not delayed.
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
    """When a run ends: at `jobs` jobs or `submissions` attempts in the whole log, or after `duration` seconds.

    `attempts` is the most that one job may have.
    """

    jobs: int
    submissions: int
    attempts: int
    duration: float | None = None


@dataclass
class Counts:
    """What has come of the probes so far."""

    ended: Counter[str] = field(default_factory=Counter)
    out: int = 0
    submitted: int = 0
    jobs: int = 0
    jobs_done: int = 0
    skipped: int = 0
    completed: Counter[str] = field(default_factory=Counter)  # by their detail


class Loop:
    """One run of jobs on an open target; `run` returns why it ended."""

    def __init__(
        self,
        session: Session,
        journal: Journal,
        plan: Plan,
        pace: Pace,
        limits: Limits,
        *,
        first: tuple[int, int] = (0, 0),
        breaker: Breaker | None = None,
        rng: Random,
    ) -> None:
        self.session, self.journal, self.plan, self.pace, self.limits = session, journal, plan, pace, limits
        self.breaker, self.rng = breaker, rng
        self.probes, self.jobs = first  # the last numbers in the log
        self.counts = Counts()
        self.latencies: deque[float] = deque(maxlen=1000)  # of the last completions
        self.last_failure = ""
        self.reason = ""
        self.failure: BaseException | None = None
        self.over = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self.due = time.monotonic()

    def stop(self, reason: str) -> None:
        """End the run: nothing more is submitted, and what is on its way is cancelled."""
        self.reason = self.reason or reason
        self.over.set()

    async def run(self) -> str:
        """Run until a limit, a signal or the breaker ends it."""
        feeding = asyncio.create_task(self._closed() if self.pace.arrivals == "closed" else self._poisson())
        stopping = asyncio.create_task(self.over.wait())
        wait = self.limits.duration
        done, _ = await asyncio.wait({feeding, stopping}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            self.stop("the duration is over")
        for task in (feeding, stopping):
            task.cancel()
        await asyncio.wait({feeding, stopping})
        for task in self.tasks:
            task.cancel()
        while self.tasks:
            await asyncio.wait(self.tasks)
        if self.failure is not None:
            raise self.failure
        return self.reason or "all probes are done"

    async def _closed(self) -> None:
        """`in_flight` workers, each with one job at a time."""
        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self.pace.in_flight, max(1, self.limits.jobs - self.jobs))):
                workers.create_task(self._worker())

    async def _worker(self) -> None:
        while self._more():
            if self.pace.pause:
                await asyncio.sleep(self.rng.uniform(0, self.pace.pause))
            if self.pace.rate is not None:
                self.due = max(time.monotonic(), self.due + 1 / self.pace.rate)
                await asyncio.sleep(self.due - time.monotonic())
            if self._more():
                await asyncio.wait({self._start_job()})

    async def _poisson(self) -> None:
        """Jobs begin at the points of a Poisson process, and the process does not wait for them."""
        assert self.pace.rate is not None
        while self._more():
            self.due += self.rng.expovariate(self.pace.rate)
            await asyncio.sleep(self.due - time.monotonic())
            if len(self.tasks) >= self.pace.in_flight:
                self.counts.skipped += 1
            else:
                self._start_job()
        while self.tasks:
            await asyncio.wait(self.tasks)

    def _more(self) -> bool:
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
        """The attempts of one job, as the plan has them follow each other."""
        running: dict[asyncio.Task[Outcome], float] = {}
        done = False
        try:
            steps = self.plan.steps(self.rng)
            first: float | None = None
            number = 0
            for step in steps:
                if step.beside and not running:
                    continue
                number += 1
                if number > self.limits.attempts or not self._may_submit():
                    break
                first = step.timeout if first is None else first
                task = asyncio.create_task(self._attempt(job, number, step, first))
                running[task] = time.monotonic()
                done = await self._until_next(running, step, running[task]) or done
                if done or (not running and not self.plan.race):  # a pair is one only if the first is still out
                    break
            while running and not (done and self.plan.race):
                done = await self._until_next(running, None, 0.0) or done
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
                _ = [task.exception() for task in running if not task.cancelled()]  # one error is enough to tell
            self.counts.jobs_done += done

    async def _until_next(self, running: dict[asyncio.Task[Outcome], float], step: Step | None, start: float) -> bool:
        """Wait until the next attempt is due, or one completed; ended attempts leave `running`."""
        while running:
            left = None if step is None or step.then == float("inf") else start + step.then - time.monotonic()
            if left is not None and left <= 0:
                return False
            ended, _ = await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                del running[task]
            if any(task.result().status == "completed" for task in ended):
                return True
            if step is None:
                return False
        if step is not None and step.sleep:
            await asyncio.sleep(step.sleep)
        return False

    async def _attempt(self, job: int, number: int, step: Step, first_timeout: float) -> Outcome:
        """Submit, wait until the end, the attempt's timeout or the cutoff, and write both down."""
        self.probes += 1
        attempt = Attempt(self.journal.run, self.probes, job, number)
        limit = min(step.timeout, self.pace.cutoff)
        self.counts.submitted += 1
        self.counts.out += 1
        self.journal.submitted(attempt)
        outcome, stopped = await _within(self.session.probe(attempt), limit)
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


async def _within(probe: Awaitable[Outcome], limit: float) -> tuple[Outcome, bool]:
    """The outcome of a probe, censored if it is out at `limit` or when this task is cancelled; and whether it was.

    The probe is awaited until it has left nothing behind.
    """
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
        return Outcome(CENSORED, min(age, limit), "stopped" if stopped else "timeout"), stopped
    outcome = task.result()
    return (Outcome(CENSORED, limit, "timeout") if outcome.latency > limit else outcome), stopped
