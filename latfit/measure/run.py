"""A whole measurement: open the target and the log, clear up after a killed run, loop, and say what was measured."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from latfit.errors import ProbeError, counted, listed
from latfit.measure.breaker import Breaker
from latfit.measure.journal import Earlier, Journal, new_run, open_journal
from latfit.measure.lag import Lag
from latfit.measure.loop import Counts, Limits, Loop, Pace
from latfit.measure.plans import Plan, single
from latfit.measure.precision import FIRST, GROWTH, Precision, precision
from latfit.measure.targets.base import Target
from latfit.units import seconds

Progress = Callable[[Counts, Precision | None], None]
LATE = 0.1  # a lag of this share of the median latency is warned of
LOOK = 0.2  # seconds between two looks at how far it has come


@dataclass(frozen=True)
class Measured:
    """What a run did: why it ended, what came of its probes, how fast it was and how late it was itself.

    `outcomes` counts the probes of this run by status; `lag` is the lateness of the measuring process (99 % and worst);
    `cleared` what a killed run had left behind; `warnings` and `notes` are lines for the user.
    """

    run: str
    log: str
    reason: str
    jobs: int
    jobs_done: int
    submissions: int
    outcomes: dict[str, int]
    skipped: int
    seconds: float
    lag_p99: float
    lag_worst: float
    cleared: int
    precision: Precision | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "warnings": list(self.warnings), "notes": list(self.notes)}


def measure(
    target: Target,
    log: str | Path,
    *,
    pace: Pace | None = None,
    limits: Limits,
    plan: Plan | None = None,
    until_precise: float | None = None,
    breaker: Breaker | None = None,
    resume: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Measured:
    """Probe a target until a limit is reached, and write every probe into `log` as it is submitted and as it ends.

    Parameters
    ----------
    target : Target
        What to probe, for example `Command(("hostname",))`.
    log : str or Path
        The file of JSON lines to append to; every command of latfit reads it.
    pace : Pace
        How many at a time or how often, and the cutoff.
    limits : Limits
        When to end.
    plan : Plan
        How the attempts of a job follow each other (default: single probes).
    until_precise : float
        End when the uncertainty of the best timeout can cost no more than this share.
    breaker : Breaker
        Ends a run of jobs whose later attempts are worse than the first.
    resume : bool
        Go on with a log, after clearing up what a killed run left behind.
    seed : int
        Of pauses and arrivals; a new one each time by default.
    progress : callable
        Called five times a second with the counts and, now and then, what the log says so far.

    Returns
    -------
    Measured
        Ctrl-C, SIGTERM and SIGHUP end a run in good order.

    Examples
    --------
    >>> import tempfile, latfit
    >>> from latfit.measure import Limits, Pace, measure
    >>> from latfit.measure.targets.command import Command
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = measure(Command(("true",)), f"{folder}/log", pace=Pace(2, pause=0), limits=Limits(5, 5, 1))
    ...     len(latfit.read_log(f"{folder}/log").frame), done.reason
    (5, 'all probes are done')

    """
    pace = pace or Pace(pause=target.pause)
    plan = plan or single()
    run = new_run()
    with open_journal(Path(log), run, resume=resume) as (journal, earlier):
        _check_same(journal.path, earlier, target, plan, pace.cutoff)
        run_ = _Run(target, journal, earlier, plan, pace, limits, breaker, Random(seed), progress, until_precise)
        return asyncio.run(run_.all())


def _check_same(path: Path, earlier: Earlier, target: Target, plan: Plan, cutoff: float) -> None:
    """A log has one kind of probes, on one target, up to one cutoff."""
    public = target.public()
    mine = {"kind": plan.kind, "target": target.name, **{name: public[name] for name in target.same}, "cutoff": cutoff}
    for header in earlier.headers:
        for name, here in mine.items():
            there = header.get(name, here)
            if there != here:
                raise ProbeError(
                    f"{path}: the {name} of this log is {_told(name, there)}, that of this run is "
                    f"{_told(name, here)}: use another file, or go on as the log began"
                )


def _told(name: str, value: Any) -> str:
    return seconds(value) if name == "cutoff" and type(value) in (int, float) else listed([str(value)])


@dataclass
class _Run:
    target: Target
    journal: Journal
    earlier: Earlier
    plan: Plan
    pace: Pace
    limits: Limits
    breaker: Breaker | None
    rng: Random
    progress: Progress | None
    until_precise: float | None
    precision: Precision | None = None
    loop: Loop | None = None
    stopped: str = ""

    async def all(self) -> Measured:
        """Clear up, probe, and sum up. A signal ends the probing, never the clearing up."""
        with _signals(self._stop):
            return await self._all()

    def _stop(self, name: str) -> None:
        self.stopped = f"stopped by {name}"
        if self.loop is not None:
            self.loop.stop(self.stopped)

    async def _all(self) -> Measured:
        lag, cleared = Lag(), 0
        async with self.target.open(self.journal.run) as session:
            runs = list(self.earlier.unfinished)
            if runs:
                cleared = await self.target.clear(self.earlier.left, runs)
                for run in runs:
                    self.journal.write({"cleared": run})
            self._header()
            self.loop = loop = Loop(
                session,
                self.journal,
                self.plan,
                self.pace,
                self.limits,
                first=(self.earlier.probes, self.earlier.jobs),
                breaker=self.breaker,
                rng=self.rng,
            )
            if self.stopped:
                loop.stop(self.stopped)
            with _background(lag.watch(self.journal), self._tell(loop), self._look(loop)):
                reason = await loop.run()
        self.journal.write({"finished": reason, "t": self.journal.t, "lag": round(lag.worst, 6)})
        return self._measured(loop, reason, lag, cleared)

    def _header(self) -> None:
        from importlib.metadata import version

        self.journal.start = time.monotonic()
        self.journal.write(
            {
                "latfit": "probe",
                "run": self.journal.run,
                "version": version("latfit"),
                "target": self.target.name,
                **self.target.public(),
                "kind": self.plan.kind,
                "plan": self.plan.text,
                **asdict(self.pace),
                "started": time.time(),
            }
        )

    async def _tell(self, loop: Loop) -> None:
        """Tell how far it has come."""
        while self.progress is not None:
            await asyncio.sleep(LOOK)
            self.progress(loop.counts, self.precision)

    async def _look(self, loop: Loop) -> None:
        """See how precise the answer is at more and more probes, and stop when it is precise enough."""
        due = FIRST
        while self.until_precise is not None or self.progress is not None:
            await asyncio.sleep(LOOK)
            ended = loop.counts.ended.total()
            if ended < due:
                continue
            self.precision = await asyncio.to_thread(precision, self.journal.path, cutoff=self.pace.cutoff)
            due = max(int(ended * GROWTH), loop.counts.ended.total() + 1)
            if self.until_precise is not None and self.precision.regret <= self.until_precise:
                loop.stop(f"precise: the uncertainty of the timeout costs {self.precision.regret:.1%} at most")
                return

    def _measured(self, loop: Loop, reason: str, lag: Lag, cleared: int) -> Measured:
        counts = loop.counts
        return Measured(
            run=self.journal.run,
            log=str(self.journal.path),
            reason=reason,
            jobs=counts.jobs,
            jobs_done=counts.jobs_done,
            submissions=counts.submitted,
            outcomes={status: counts.ended[status] for status in ("completed", "failed", "censored", "lost")},
            skipped=counts.skipped,
            seconds=self.journal.t,
            lag_p99=lag.p99,
            lag_worst=lag.worst,
            cleared=cleared,
            precision=self.precision,
            warnings=tuple(_warnings(loop, lag)),
            notes=tuple(self.target.remarks(counts.completed)),
        )


def _warnings(loop: Loop, lag: Lag) -> Iterator[str]:
    counts = loop.counts
    if loop.latencies and lag.p99 > LATE * (typical := median(loop.latencies)):
        yield (
            f"this machine was {lag.p99:.3g} s late in 1 of 100 looks, and the median latency is {typical:.3g} s: "
            "part of what was measured is its own lag; lower --in-flight or --rate"
        )
    if counts.skipped:
        yield (
            f"{counted(counts.skipped, 'arrival', 'was', 'were')} skipped because "
            f"{counted(loop.pace.in_flight, 'probe', 'was', 'were')} on the way: "
            "the slow times are underrepresented; raise --in-flight"
        )
    if counts.ended["failed"] and not counts.ended["completed"]:
        failed = counts.ended["failed"]
        every = "the one probe" if failed == 1 else f"all {failed} probes"
        yield f"{every} that came back failed: {loop.last_failure}"


@contextlib.contextmanager
def _background(*work: Any) -> Iterator[None]:
    tasks = [asyncio.ensure_future(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        wrong = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    for error in filter(None, wrong):
        raise error


@contextlib.contextmanager
def _signals(stop: Callable[[str], None]) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP call `stop` in the event loop; what the parent ignores stays ignored.

    The handlers are changed at once and not by the loop, which would leave a moment in which a signal kills.
    """
    loop = asyncio.get_running_loop()
    before = {}

    def told(number: int, _: object) -> None:
        loop.call_soon_threadsafe(stop, signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not in the main thread: no signals arrive here
                before[number] = signal.signal(number, told)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
