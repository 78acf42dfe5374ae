"""A whole measurement: open the target and the log, clear up after a killed run, loop, and say what was measured."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from latfit.errors import ProbeError, counted, listed
from latfit.measure.journal import Earlier, Journal, new_run, open_journal
from latfit.measure.loop import Breaker, Counts, Limits, Loop, Pace
from latfit.measure.plans import Plan, single
from latfit.measure.precision import Precision, precision
from latfit.measure.targets.base import Target
from latfit.units import seconds

Progress = Callable[[Counts, Precision | None], None]
LAG_TO_WARN = 0.1  # of the median latency
PROGRESS_INTERVAL = 0.2  # seconds
FIRST_PRECISION, PRECISION_GROWTH = (
    30,
    1.25,
)  # ended probes at the first look at the precision, and from one to the next
LAG_INTERVAL, BEAT_INTERVAL = 0.05, 5.0  # seconds between two looks at the clock, and between two beats in the log
LAGS_KEPT = 20_000  # about 17 minutes


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
    with open_journal(Path(log), new_run(), resume=resume) as (journal, earlier):
        _check_same(journal.path, earlier, target, plan, pace.cutoff)
        first = (earlier.probes, earlier.jobs)

        async def run() -> Measured:
            loop = Loop(journal, plan, pace, limits, first=first, breaker=breaker, rng=Random(seed))
            return await _run(loop, target, earlier, progress, until_precise)

        return asyncio.run(run())


def _check_same(path: Path, earlier: Earlier, target: Target, plan: Plan, cutoff: float) -> None:
    """A log has one kind of probes, on one target, up to one cutoff."""
    public = target.public()
    mine = {"kind": plan.kind, "target": target.name, **{name: public[name] for name in target.same}, "cutoff": cutoff}
    for header in earlier.headers:
        for name, value in mine.items():
            if header.get(name, value) != value:
                both = [
                    seconds(each) if name == "cutoff" and type(each) in (int, float) else listed([str(each)])
                    for each in (header[name], value)
                ]
                raise ProbeError(
                    f"{path}: the {name} of this log is {both[0]}, that of this run is {both[1]}: "
                    "use another file, or go on as the log began"
                )


class _Lag:
    """How late the measuring process itself is: how long after it was due a timer of 50 ms fires."""

    def __init__(self) -> None:
        self.looks: deque[float] = deque(maxlen=LAGS_KEPT)
        self.worst = 0.0

    @property
    def p99(self) -> float:
        """99 % of the looks were at most this late."""
        ordered = sorted(self.looks)
        return ordered[math.ceil(0.99 * len(ordered)) - 1] if ordered else 0.0

    async def watch(self, journal: Journal) -> None:
        """Look until cancelled; a beat in the log also says how long those on their way are known to be out."""
        since, worst = time.monotonic(), 0.0
        while True:
            due = time.monotonic() + LAG_INTERVAL
            await asyncio.sleep(LAG_INTERVAL)
            late = max(0.0, time.monotonic() - due)
            self.looks.append(late)
            self.worst, worst = max(self.worst, late), max(worst, late)
            if due - since >= BEAT_INTERVAL:
                journal.write({"beat": journal.t, "lag": round(worst, 6)})
                since, worst = due, 0.0


async def _run(
    loop: Loop, target: Target, earlier: Earlier, progress: Progress | None, until_precise: float | None
) -> Measured:
    """Clear up, probe, and sum up. A signal ends the probing, never the clearing up."""
    from importlib.metadata import version

    journal, lag, cleared = loop.journal, _Lag(), 0
    looks: list[Precision] = []
    with _signals(loop.stop):
        async with target.open(journal.run) as session:
            if earlier.unfinished:
                cleared = await target.clear(earlier.left, list(earlier.unfinished))
                for run in earlier.unfinished:
                    journal.write({"cleared": run})
            journal.start = time.monotonic()
            journal.write(
                {
                    "latfit": "probe",
                    "run": journal.run,
                    "version": version("latfit"),
                    "target": target.name,
                    **target.public(),
                    "kind": loop.plan.kind,
                    "plan": loop.plan.text,
                    **asdict(loop.pace),
                    "started": time.time(),
                }
            )
            with _background(
                lag.watch(journal), _report(loop, looks, progress), _refine(loop, looks, progress, until_precise)
            ):
                reason = await loop.run(session)
        journal.write({"finished": reason, "t": journal.t, "lag": round(lag.worst, 6)})
    counts = loop.counts
    return Measured(
        run=journal.run,
        log=str(journal.path),
        reason=reason,
        jobs=counts.jobs,
        jobs_done=counts.jobs_done,
        submissions=counts.submitted,
        outcomes={status: counts.ended[status] for status in ("completed", "failed", "censored", "lost")},
        skipped=counts.skipped,
        seconds=journal.t,
        lag_p99=lag.p99,
        lag_worst=lag.worst,
        cleared=cleared,
        precision=looks[-1] if looks else None,
        warnings=tuple(_warnings(loop, lag)),
        notes=tuple(target.remarks(counts.completed)),
    )


async def _report(loop: Loop, looks: list[Precision], progress: Progress | None) -> None:
    while progress is not None:
        await asyncio.sleep(PROGRESS_INTERVAL)
        progress(loop.counts, looks[-1] if looks else None)


async def _refine(loop: Loop, looks: list[Precision], progress: Progress | None, until_precise: float | None) -> None:
    """Look at how precise the answer is at more and more probes, and stop when it is precise enough."""
    due = FIRST_PRECISION
    while until_precise is not None or progress is not None:
        await asyncio.sleep(PROGRESS_INTERVAL)
        ended = loop.counts.ended.total()
        if ended < due:
            continue
        looks.append(await asyncio.to_thread(precision, loop.journal.path, cutoff=loop.pace.cutoff))
        due = max(int(ended * PRECISION_GROWTH), loop.counts.ended.total() + 1)
        if until_precise is not None and looks[-1].regret <= until_precise:
            loop.stop(f"precise: the uncertainty of the timeout costs {looks[-1].regret:.1%} at most")
            return


def _warnings(loop: Loop, lag: _Lag) -> Iterator[str]:
    counts = loop.counts
    if loop.latencies and lag.p99 > LAG_TO_WARN * (typical := median(loop.latencies)):
        yield (
            f"the probe's own scheduling delay (p99) was {seconds(lag.p99)}, and the median latency is "
            f"{seconds(typical)}: part of what was measured is this delay; lower --in-flight or --rate"
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
        errors = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    for error in filter(None, errors):
        raise error


@contextlib.contextmanager
def _signals(stop: Callable[[str], None]) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP call `stop` in the event loop; what the parent ignores stays ignored.

    The handlers are changed at once and not by the loop, which would leave a moment in which a signal kills.
    """
    loop = asyncio.get_running_loop()
    before = {}

    def handle(number: int, _: object) -> None:
        loop.call_soon_threadsafe(stop, f"stopped by {signal.Signals(number).name}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not in the main thread: no signals arrive here
                before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
