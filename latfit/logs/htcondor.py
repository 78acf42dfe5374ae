"""HTCondor user event logs, with and without years."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, counted
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Source
from latfit.table import CENSORED, COMPLETED, FAILED

EVENT = re.compile(
    r"^(?P<code>\d{3}) \((?P<job>\d+\.\d+)\.\d+\) "
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)|(?P<m>\d\d)/(?P<d>\d\d))[ T]"
    r"(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?P<fraction>\.\d+)?(?P<offset>Z|[+-]\d\d:?\d\d)?\b"
)
RETURNED = re.compile(r"\((?:1\) Normal termination \(return value (?P<value>-?\d+)\)|0\) Abnormal termination)")
SUBMIT, EXECUTE, EVICTED, TERMINATED, SHADOW, ABORTED, HELD, RELEASED, UNREACHED = (
    "000", "001", "004", "005", "007", "009", "012", "013", "024",
)  # fmt: skip
MEASURES = ("first", "every", "turnaround")
Wait = tuple[float, float, int]  # since, until (NaN: when the log ended), and what became of it


@dataclass
class Job:
    """What the log has told of a job so far; times as seconds from some common origin."""

    line: int
    submitted: float = np.nan
    executed: float = np.nan
    ended: float = np.nan
    outcome: int = CENSORED
    waiting: float | None = None
    waits: list[Wait] = field(default_factory=list)
    executions: int = 0
    evictions: int = 0

    def take(self, code: str, at: float) -> None:
        """Take an event into account."""
        if code == SUBMIT:
            self.submitted = self.waiting = at
        elif code == EXECUTE:
            self.executions += 1
            self.executed = at if self.executions == 1 else self.executed
            self._waited(at, COMPLETED)
        elif code in (EVICTED, SHADOW, UNREACHED, RELEASED):  # it waits again
            self.evictions += code == EVICTED
            self.waiting = at if self.waiting is None else self.waiting
        elif code == HELD:
            self._waited(at, CENSORED)
        elif code in (TERMINATED, ABORTED) and np.isnan(self.ended):
            self.ended, self.outcome = at, COMPLETED if code == TERMINATED else CENSORED
            self._waited(at, CENSORED)

    def _waited(self, until: float, outcome: int) -> None:
        if self.waiting is not None:
            self.waits.append((self.waiting, until, outcome))
        self.waiting = None

    def told(self, measure: str) -> list[Wait]:
        """The latencies of the job: of its first execution, of every one, or of its whole time in the system."""
        if measure == "turnaround":
            return [(self.submitted, self.ended, self.outcome)]
        if measure == "every":
            return [*self.waits, *([] if self.waiting is None else [(self.waiting, np.nan, CENSORED)])]
        return [(self.submitted, self.executed if self.executions else self.ended,
                 COMPLETED if self.executions else CENSORED)]  # fmt: skip


@register
class HtCondor(Format):
    """Latency is the first execution − submission (`--column latency=every`: every wait; `=turnaround`: to the end).

    Removed before it ran, or never run by the log's end: censored. A job that ended with an error has failed,
    where its turnaround is asked for.
    """

    name = "htcondor"
    by_line = False
    description = "HTCondor user event log; latency = first execute - submit"
    rank = 15
    kind = "jobs"
    queue = True
    roles = ("latency",)
    uses = ("year",)

    def sniff(self, head: str) -> bool:
        """By the first event's line."""
        return bool(EVENT.match(head.lstrip().split("\n", 1)[0]))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the jobs, once the whole log is read."""
        measure = options.columns.get("latency", "first")
        if measure not in MEASURES:
            raise MissingColumn(f"{source.name}: the latency is one of {', '.join(MEASURES)}, not {measure!r}")
        events = _Events()
        for block in source.blocks():
            for number, line in enumerate(block.lines(), start=block.first_line):
                events.read(number, line)
        if not events.jobs:
            raise LogError(f"{source.name}: there is no event of a job in this log")
        if events.broken:
            yield Records.unusable(events.broken)
        yield _records([*events.earlier, *events.jobs.items()], measure, events.clock, options)


class _Events:
    """The jobs of a log, from its lines."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.earlier: list[tuple[str, Job]] = []
        self.broken: dict[int, str] = {}
        self.clock = _Clock()
        self.between = True
        self.terminated: Job | None = None

    def read(self, number: int, line: str) -> None:
        """Take a line: the head of an event, or one of the lines that follow it up to three dots."""
        if line.startswith("..."):
            self.between, self.terminated = True, None
        elif self.between and line.strip():
            self.between = False
            match = EVENT.match(line)
            at = self.clock.read(match) if match else None
            if match is None or at is None:
                self.broken[number] = shown(len(self.broken), "unparseable event", f"{line[:40]!r}")
            else:
                self._event(match["job"], match["code"], at, number)
        elif self.terminated is not None and (returned := RETURNED.search(line)):
            self.terminated.outcome = COMPLETED if returned["value"] in ("0", "-0") else FAILED
            self.terminated = None

    def _event(self, name: str, code: str, at: float, line: int) -> None:
        """An event of a job; an id submitted again, as in logs put together, is another job."""
        if code == SUBMIT and name in self.jobs:
            self.earlier.append((name, self.jobs.pop(name)))
        job = self.jobs.setdefault(name, Job(line))
        self.terminated = job if code == TERMINATED and np.isnan(job.ended) else None
        job.take(code, at)


class _Clock:
    """Seconds of the events; years are counted where the log writes none."""

    def __init__(self) -> None:
        self.rolled = 0
        self.month = 0
        self.last = -np.inf
        self.yearless = False
        self.leap: set[int] = set()  # in which of the log's years there was a 29 February

    def read(self, match: re.Match[str]) -> float | None:
        """The event's time; without a year, as if the log began in the leap year 2000."""
        try:
            if match["year"]:
                when = datetime.fromisoformat(match[0][match.start("year") :])
            else:
                self.yearless = True
                month = int(match["m"])
                if self.month and abs(month - self.month) > 6:  # over New Year, or back: events may be a little late
                    self.rolled += 1 if month < self.month else -1
                self.month = month
                if (month, int(match["d"])) == (2, 29):
                    self.leap.add(self.rolled)
                when = datetime(
                    2000 + self.rolled, month, int(match["d"]), int(match["h"]), int(match["min"]), int(match["s"])
                )
        except ValueError:
            return None
        at = when.replace(tzinfo=when.tzinfo or UTC).timestamp()
        self.last = max(self.last, at)
        return at

    def first_year(self) -> int:
        """The latest first year with which the log does not end in the future, and has every 29 February in it."""
        now = datetime.now(UTC)
        end = datetime.fromtimestamp(self.last, UTC)
        this_year = (now.month, now.day) >= (end.month, end.day)
        year = now.year - self.rolled - (0 if this_year else 1)
        fits = (y for y in range(year, year - 12, -1) if all(isleap(y + later) for later in self.leap))
        return next(fits, year)


def _in_years_from(year: int, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Times read as if the log began in 2000, moved to begin in `year`; 29 February becomes 1 March if need be."""

    def moved(at: float) -> float:
        when = datetime.fromtimestamp(at, UTC)
        moved_to = when.year - 2000 + year
        if not MINYEAR <= moved_to <= MAXYEAR:
            raise LogError(f"the log writes no years, and its months run on from {year} to {moved_to}")
        try:
            return when.replace(year=moved_to).timestamp()
        except ValueError:
            return when.replace(year=moved_to, month=3, day=1).timestamp()

    return np.array([at if np.isnan(at) else moved(at) for at in times])


def _records(jobs: list[tuple[str, Job]], measure: str, clock: _Clock, options: ReadOptions) -> Records:
    each = [(name, job, attempt, *told) for name, job in jobs for attempt, told in enumerate(job.told(measure), 1)]
    n = len(each)
    since, until, last = (
        np.array(times, dtype=np.float64)
        for times in ([row[3] for row in each], [row[4] for row in each], [clock.last])
    )
    notes = _executions(jobs, measure)
    if clock.yearless:
        year = options.year or clock.first_year()
        since, until, last = (_in_years_from(year, times) for times in (since, until, last))
        told = "" if options.year else "; say which with --year"
        notes.append(f"the log writes no years: its first event is taken to be of {year}{told}")
    records = Records(
        np.array([job.line for _, job, *_ in each], dtype=np.int64), until - since,
        np.array([row[5] for row in each], dtype=np.int8),
    )  # fmt: skip
    records.refuse(np.isnan(since), "no submit event")
    records.notes += notes
    known = ~np.isnan(since)
    records.submitted = np.full(n, "NaT", "datetime64[us]")
    records.submitted[known] = (since[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    records.last_seen = np.datetime64(int(last[0] * 1e6), "us")
    records.extras = {
        "id": pd.Series([name for name, *_ in each]),
        "executions": pd.Series([job.executions for _, job, *_ in each]),
        "evictions": pd.Series([job.evictions for _, job, *_ in each]),
    }
    if measure == "every":
        records.extras["attempt"] = pd.Series([attempt for _, _, attempt, *_ in each])
    return records


def _executions(jobs: list[tuple[str, Job]], measure: str) -> list[str]:
    """What is to be said of evictions and re-executions."""
    evictions = sum(job.evictions for _, job in jobs)
    again = sum(max(0, job.executions - 1) for _, job in jobs)
    if not evictions and not again:
        return []
    which = {
        "first": "the latency is the wait for the first execution; --column latency=every counts every wait, "
        "latency=turnaround the time until the job ended",
        "every": "every wait is a row of its own",
        "turnaround": "the latency is the time until the job ended",
    }[measure]
    return [
        f"{counted(evictions, 'eviction')} and {counted(again, 're-execution')} of {counted(len(jobs), 'job')}: {which}"
    ]
