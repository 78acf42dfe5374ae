"""The loop: keep n probes on their way, or let them arrive at random, and write down what comes of each."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from random import Random

from latfit.errors import ProbeError, counted
from latfit.measure.journal import Journal
from latfit.measure.plans import Plan, Step
from latfit.measure.targets.base import Attempt, Outcome, Session

MIN_LATER_ATTEMPTS = 10  # before the breaker says anything
BREAKER_LEVEL = 1e-4  # how improbable the counts must be if attempts were independent


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


class Breaker:
    """Counts which attempts complete within the first attempt's timeout, first ones and later ones apart.

    If attempts of a job are independent and alike, a later one completes within it as often as a first one. The chance
    of k or fewer among n is at most exp(−n KL(k/n ‖ p)) (Chernoff); p is the share given, or that of the first
    attempts minus two standard errors. With fewer completions than that, submissions exceed the prediction.
    """

    def __init__(self, predicted: float | None = None) -> None:
        self.predicted = predicted
        self.first = [0, 0]  # completed within the timeout, of how many
        self.later = [0, 0]
        self.tripped: str | None = None
        """Why the run has to stop, from the moment it is known, whatever ends after that; None while it need not."""

    def note(self, *, attempt: int, within: bool) -> None:
        """Take the end of an attempt into account."""
        counts = self.first if attempt == 1 else self.later
        counts[0] += within
        counts[1] += 1
        self.tripped = self.tripped or self._reason()

    @property
    def expected(self) -> float:
        """The least share of later attempts that should complete within the first timeout."""
        if self.predicted is not None:
            return self.predicted
        k, n = self.first
        p = k / n if n else 0.0
        return max(0.0, p - 2 * math.sqrt(p * (1 - p) / n)) if n else 0.0

    def _reason(self) -> str | None:
        """What is wrong with the attempts noted so far."""
        k, n = self.later
        if n < MIN_LATER_ATTEMPTS:
            return None
        p, q = min(self.expected, 1 - 1e-9), k / n
        # n KL(q ‖ p), the exponent of Chernoff's bound
        exponent = k * math.log(q / p) if 0 < q < p else 0.0
        exponent += (n - k) * math.log((1 - q) / (1 - p)) if q < 1 else 0.0
        if q >= p or exponent < -math.log(BREAKER_LEVEL):
            return None
        return (
            f"of {n} later attempts {k} completed within the first timeout ({q:.0%}), where independent attempts "
            f"would in {p:.0%} or more: a second attempt of the same job is not a new draw, "
            "and resubmitting only adds load"
        )


class Loop:
    """One run of jobs; `run` probes an open target and returns why it ended."""

    def __init__(
        self,
        journal: Journal,
        plan: Plan,
        pace: Pace,
        limits: Limits,
        *,
        first: tuple[int, int] = (0, 0),
        breaker: Breaker | None = None,
        rng: Random,
    ) -> None:
        self.journal, self.plan, self.pace, self.limits = journal, plan, pace, limits
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

    async def run(self, session: Session) -> str:
        """Run until a limit, a signal or the breaker ends it."""
        self.session = session
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
                _ = [task.exception() for task in running if not task.cancelled()]  # one error is reported already
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
        return Outcome("censored", min(age, limit), "stopped" if stopped else "timeout"), stopped
    outcome = task.result()
    return (Outcome("censored", limit, "timeout") if outcome.latency > limit else outcome), stopped
