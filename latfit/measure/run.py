"""A measurement: open the target and the log, clean up after a killed run, run the loop, and report the result."""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any

from latfit.errors import ProbeError, counted, listed
from latfit.measure.journal import Earlier, new_run, open_journal
from latfit.measure.loop import Breaker, Counts, Limits, Loop, Pace, Plan, single
from latfit.measure.targets import Target
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.decision import Decision
    from latfit.logs import ProbeLog
    from latfit.sample import LatencySample


@dataclass(frozen=True)
class Precision:
    """The best timeout of a log, and the largest E_J(t)/E_J(timeout) − 1 in its interval; ∞ if unknown (`why`)."""

    probes: int
    timeout: float | None
    low: float | None
    high: float | None
    regret: float
    why: str = ""


def precision(path: str | Path, *, cutoff: float) -> Precision:
    """How precisely the first attempts determine the best timeout; those in flight are censored at their age."""
    log, decision = _decision(path, cutoff=cutoff)
    n, best = log.table.n, decision.timeout
    if best is None or best.verdict == "withheld" or best.intervals is None:
        withheld = f"withheld: {', '.join(best.withheld)}" if best and best.withheld else "too few completions"
        return Precision(n, None, None, None, math.inf, decision.error or withheld)
    low, high = map(float, best.intervals.timeout)
    return Precision(n, best.timeout, low, high, regret_within(log.sample(cutoff=cutoff), best.timeout, (low, high)))


def regret_within(sample: LatencySample, timeout: float | None, interval: tuple[float, float]) -> float:
    """The largest E_J(t)/E_J(timeout) − 1 for t in the interval, on a sample; without a timeout: at its cutoff."""
    import numpy as np

    from latfit.laws import Empirical
    from latfit.restart import expected_duration

    cutoff = math.inf if sample.cutoff is None else sample.cutoff
    law = Empirical.of(sample)
    low, high = (min(cutoff, end) for end in interval)
    inside = law.jumps[(law.jumps > low) & (law.jumps < high)]
    # between two jumps E_J only rises, so its largest values are just before a jump and at the end
    at = np.concatenate([[low, high], inside, np.nextafter(inside, 0)])
    least = float(expected_duration(law, cutoff if timeout is None else timeout))
    worst = float(np.max(expected_duration(law, at)))
    return max(0.0, worst / least - 1) if least > 0 and math.isfinite(worst) else math.inf


def timeouts_for_jobs(path: str, timeout: float | None = None) -> tuple[tuple[float, ...], float]:
    """When to cancel jobs (default: the schedule of a log), and the share of attempts done by the first timeout."""
    from latfit.laws import Empirical

    decision = _decision(path, resamples=0)[1].require()
    assert decision.timeout is not None
    assert decision.sample is not None
    timeouts = (timeout,) if timeout else decision.timeout.retry.timeouts if decision.timeout.retry else ()
    if not timeouts:
        raise ProbeError(f"{path}: the advice of this log is to wait (`latfit analyze`); give a timeout with --timeout")
    share = float(Empirical.of(decision.sample).cdf(timeouts[0]))
    if share <= 0:
        within = f"nothing completed within {seconds(timeouts[0])}"
        raise ProbeError(f"{path}: {within}: jobs with this timeout would never end")
    return timeouts, share


def _decision(path: str | Path, **options: Any) -> tuple[ProbeLog, Decision]:
    """A log without the later attempts of its jobs, which exist only because a first one was slow; its decision."""
    from latfit.decision import Options, decide
    from latfit.evidence import probes_of
    from latfit.logs import ProbeLog, read_log

    log = read_log(path)
    attempt = log.table.columns.get("attempt")
    if attempt is not None:
        log = ProbeLog(log.table.take(attempt.cells().to_numpy() == 1))
    return log, decide([probes_of(log)], Options(laws=(), test=False, **options))[0]


Progress = Callable[[Counts, Precision | None], None]
LAG_TO_WARN = 0.1  # of the median latency


@dataclass(frozen=True)
class Measured:
    """The result of a run: why it ended, its counts, and how late the measuring process was.

    `outcomes` counts the probes of this run by status; `lag_p99` and `lag_worst` are delays of the measuring process;
    `cleared` counts the leftovers of a killed run that were removed; `warnings` and `notes` are for the user.
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
        return asdict(self)


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
    """Probe a target until a limit is reached, and write every probe to `log` when it is submitted and when it ends.

    Parameters
    ----------
    target : what to probe.
    log : the file to which JSON lines are appended; every command of latfit reads it.
    pace, limits : how many probes at a time, or how often; and when to end.
    plan : how the attempts of a job follow each other (default: single probes).
    until_precise : end when the uncertainty of the best timeout costs at most this share.
    breaker : stops a run of jobs whose later attempts are worse than the first.
    resume : continue a log, after removing what a killed run left behind.
    seed : that of pauses and arrivals; by default a new one each time.
    progress : called five times a second with the counts and the latest estimate of the timeout.

    Ctrl-C, SIGTERM and SIGHUP end a run properly.

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
        loop = Loop(journal, plan, pace, limits, Random(seed), earlier.probes, earlier.jobs, breaker)
        return asyncio.run(_run(loop, target, earlier, progress, until_precise))


def _check_same(path: Path, earlier: Earlier, target: Target, plan: Plan, cutoff: float) -> None:
    public = target.public()
    mine = {"kind": plan.kind, "target": target.name, **{name: public[name] for name in target.same}, "cutoff": cutoff}
    for header in earlier.headers:
        for name, value in mine.items():
            if (before := header.get(name, value)) != value:
                numbers = name == "cutoff" and type(before) in (int, float)
                was, is_now = (seconds(each) if numbers else listed([str(each)]) for each in (before, value))
                raise ProbeError(
                    f"{path}: the {name} of this log is {was}, that of this run is {is_now}: "
                    "use another file, or continue as the log began"
                )


async def _run(
    loop: Loop, target: Target, earlier: Earlier, progress: Progress | None, until_precise: float | None
) -> Measured:
    """Clean up, probe, and summarise. A signal ends the probing, never the cleaning up."""
    from importlib.metadata import version

    journal, counts, cleared = loop.journal, loop.counts, 0
    with _signals(loop.stop):
        async with target.open(journal.run) as probe:
            if earlier.unfinished:
                cleared = await target.clear(earlier.left, list(earlier.unfinished))
                for run in earlier.unfinished:
                    journal.write({"cleared": run})
            journal.start = time.monotonic()
            header = {"latfit": "probe", "run": journal.run, "version": version("latfit"), "target": target.name}
            plan = {"kind": loop.plan.kind, "plan": loop.plan.text}
            journal.write({**header, **target.public(), **plan, **asdict(loop.pace), "started": time.time()})
            tasks = [asyncio.create_task(_tick(loop, progress))]
            if until_precise is not None or progress is not None:
                tasks.append(asyncio.create_task(_refine(loop, until_precise)))
            try:
                reason = await loop.run(probe)
            finally:
                for task in tasks:
                    task.cancel()
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.result()
        journal.write({"finished": reason, "t": journal.t, "lag": round(loop.worst_lag, 6)})
    lag_p99 = sorted(loop.lags)[math.ceil(0.99 * len(loop.lags)) - 1]
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
        lag_p99=lag_p99,
        lag_worst=loop.worst_lag,
        cleared=cleared,
        precision=loop.precision,
        warnings=tuple(_warnings(loop, lag_p99)),
        notes=tuple(target.remarks(counts.completed)),
    )


async def _tick(loop: Loop, progress: Progress | None) -> None:
    """Measure every 50 ms how late this process is; write a beat every 5 s: probes in flight had not ended by then."""
    worst = 0.0
    for tick in count(1):
        due = time.monotonic() + 0.05
        if progress is not None and tick % 4 == 0:
            progress(loop.counts, loop.precision)
        await asyncio.sleep(due - time.monotonic())
        late = max(0.0, time.monotonic() - due)
        loop.lags.append(late)
        worst, loop.worst_lag = max(worst, late), max(loop.worst_lag, late)
        if tick % 100 == 0:
            loop.journal.write({"beat": loop.journal.t, "lag": round(worst, 6)})
            worst = 0.0


async def _refine(loop: Loop, until_precise: float | None) -> None:
    """Check how precise the answer is whenever there are 1.25 times as many probes; stop when it is precise enough."""
    due = 30
    while True:
        await asyncio.sleep(0.2)
        ended = loop.counts.ended.total()
        if ended < due:
            continue
        loop.precision = await asyncio.to_thread(precision, loop.journal.path, cutoff=loop.pace.cutoff)
        due = max(int(ended * 1.25), loop.counts.ended.total() + 1)
        if until_precise is not None and loop.precision.regret <= until_precise:
            return loop.stop(f"precise: the uncertainty of the timeout costs {loop.precision.regret:.1%} at most")


def _warnings(loop: Loop, lag_p99: float) -> Iterator[str]:
    counts = loop.counts
    if loop.latencies and lag_p99 > LAG_TO_WARN * (typical := median(loop.latencies)):
        yield (
            f"the probe's own scheduling delay (p99) was {seconds(lag_p99)}, and the median latency is "
            f"{seconds(typical)}: part of what was measured is this delay; lower --in-flight or --rate"
        )
    if counts.skipped:
        yield (
            f"{counted(counts.skipped, 'arrival', 'was', 'were')} skipped because "
            f"{counted(loop.pace.in_flight, 'probe', 'was', 'were')} in flight: "
            "the slow times are underrepresented; raise --in-flight"
        )
    if counts.ended["failed"] and not counts.ended["completed"]:
        failed = counts.ended["failed"]
        every = "the one probe" if failed == 1 else f"all {failed} probes"
        yield f"{every} that came back failed: {loop.last_failure}"


@contextlib.contextmanager
def _signals(stop: Callable[[str], None]) -> Iterator[None]:
    """Signals call `stop`; the handlers are set at once, not by the loop, and ignored signals stay ignored."""
    loop = asyncio.get_running_loop()
    before = {}

    def handle(number: int, _: object) -> None:
        loop.call_soon_threadsafe(stop, f"stopped by {signal.Signals(number).name}")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not the main thread: it gets no signals
                before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
