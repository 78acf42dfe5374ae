"""HTCondor user event logs, with and without years."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED

EVENT = re.compile(
    r"^(?P<code>\d{3}) \((?P<job>\d+\.\d+)\.\d+\) "
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)|(?P<m>\d\d)/(?P<d>\d\d))[ T]"
    r"(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?P<fraction>\.\d+)?(?P<offset>Z|[+-]\d\d:?\d\d)?\b"
)
SUBMIT, EXECUTE, TERMINATED, ABORTED = "000", "001", "005", "009"


@dataclass
class Job:
    """What the log has told of a job so far; times as seconds from some common origin."""

    line: int
    submitted: float | None = None
    executed: float | None = None
    ended: float | None = None


@register
class HtCondor(Format):
    """Latency is the first execution − submission. Removed before it ran, or never run by the log's end: censored."""

    name = "htcondor"
    description = "HTCondor user event log; latency = first execute - submit"
    rank = 15
    kind = "jobs"
    queue = True
    uses = ("year",)

    def sniff(self, head: str) -> bool:
        """By the first event's line."""
        return bool(EVENT.match(head.lstrip().split("\n", 1)[0]))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the jobs, once the whole log is read."""
        jobs: dict[str, Job] = {}
        earlier: list[tuple[str, Job]] = []
        broken: dict[int, str] = {}
        clock = _Clock()
        between = True
        for block in source.blocks():
            for number, line in enumerate(block.lines(), start=block.first_line):
                if not between:
                    between = line.startswith("...")
                    continue
                if not line.strip() or line.startswith("..."):
                    continue
                between = False
                match = EVENT.match(line)
                at = clock.read(match) if match else None
                if match is None or at is None:
                    broken[number] = shown(len(broken), "unparseable event", f"{line[:40]!r}")
                    continue
                _note_event(jobs, earlier, match["job"], match["code"], at, number)
        if not jobs:
            raise LogError(f"{source.name}: there is no event of a job in this log")
        if broken:
            yield Records.unusable(broken)
        yield _records([*earlier, *jobs.items()], clock, options)


def _note_event(
    jobs: dict[str, Job], earlier: list[tuple[str, Job]], name: str, code: str, at: float, line: int
) -> None:
    """Take an event into account; an id submitted again, as in logs put together, is another job."""
    if code == SUBMIT and name in jobs:
        earlier.append((name, jobs.pop(name)))
    job = jobs.setdefault(name, Job(line))
    if code == SUBMIT:
        job.submitted = at
    elif code == EXECUTE and job.executed is None:
        job.executed = at
    elif code in (TERMINATED, ABORTED) and job.ended is None:
        job.ended = at


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


def _records(jobs: list[tuple[str, Job]], clock: _Clock, options: ReadOptions) -> Records:
    n = len(jobs)

    def column(name: str) -> NDArray[np.float64]:
        values = (getattr(job, name) for _, job in jobs)
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

    submitted, executed, ended = column("submitted"), column("executed"), column("ended")
    note = None
    last = np.array([clock.last])
    if clock.yearless:
        year = options.year or clock.first_year()
        submitted, executed, ended, last = (_in_years_from(year, times) for times in (submitted, executed, ended, last))
        told = "" if options.year else "; say which with --year"
        note = f"the log writes no years: its first event is taken to be of {year}{told}"
    ran = ~np.isnan(executed)
    records = Records(
        column("line").astype(np.int64), np.where(ran, executed, ended) - submitted, np.full(n, COMPLETED, np.int8)
    )
    records.status[~ran] = CENSORED
    records.refuse(np.isnan(submitted), "no submit event")
    records.notes += [note] if note else []
    known = ~np.isnan(submitted)
    records.submitted = np.full(n, "NaT", "datetime64[us]")
    records.submitted[known] = (submitted[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    records.last_seen = np.datetime64(int(last[0] * 1e6), "us")
    records.extras = {"id": pd.Series([name for name, _ in jobs])}
    return records
