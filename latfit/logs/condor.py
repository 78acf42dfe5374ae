"""HTCondor: user event logs, with and without years, and the history of jobs (`condor_history -json`)."""

from __future__ import annotations

import re
from calendar import isleap
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime

import numpy as np
import pandas as pd

from latfit.errors import LogError, counted
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, moments
from latfit.logs.records import Records
from latfit.logs.rows import JsonRows, Row, epoch
from latfit.logs.source import Source
from latfit.table import CENSORED, COMPLETED, FAILED

EVENT = (
    r"(?P<code>\d{3}) \((?P<job>\d+\.\d+)\.\d+\) "
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)|(?P<m>\d\d)/(?P<d>\d\d))[ T]"
    r"(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?P<fraction>\.\d+)?(?P<offset>Z|[+-]\d\d:?\d\d)?\b"
)
RETURNED = re.compile(r"\((?:1\) Normal termination \(return value (?P<value>-?\d+)\)|0\) Abnormal termination)")
SUBMIT, EXECUTE, EVICTED, TERMINATED, ABORTED, HELD = "000", "001", "004", "005", "009", "012"
WAITS_AGAIN = (EVICTED, "007", "013", "024")  # also: the shadow failed, released, not reached again
MEASURES = {
    "first": "the latency is the wait for the first execution; --column latency=every counts every wait, "
    "latency=turnaround the time until the job ended",
    "every": "every wait is a row of its own",
    "turnaround": "the latency is the time until the job ended",
}
LEAP_YEAR = 2000  # in which a log without years is read at first


@dataclass
class _Job:
    """What the log says of a job so far; times in seconds, a wait is (since, until, status)."""

    name: str
    line: int
    submitted: float = np.nan
    executed: float = np.nan
    ended: float = np.nan
    outcome: int = CENSORED
    waiting: float | None = None
    waits: list[tuple[float, float, int]] = field(default_factory=list)
    executions: int = 0
    evictions: int = 0

    def add(self, code: str, at: float) -> None:
        if code == SUBMIT:
            self.submitted = self.waiting = at
        elif code == EXECUTE:
            self.executions += 1
            self.executed = at if self.executions == 1 else self.executed
            self._waited(at, COMPLETED)
        elif code in WAITS_AGAIN:
            self.evictions += code == EVICTED
            self.waiting = at if self.waiting is None else self.waiting
        elif code == HELD:
            self._waited(at, CENSORED)
        elif code in (TERMINATED, ABORTED) and np.isnan(self.ended):
            self.ended, self.outcome = at, COMPLETED if code == TERMINATED else CENSORED
            self._waited(at, CENSORED)

    def _waited(self, until: float, outcome: int) -> None:
        self.waits += [] if self.waiting is None else [(self.waiting, until, outcome)]
        self.waiting = None

    def latencies(self, measure: str) -> list[tuple[float, float, int]]:
        """The waits for its first execution, for every one, or its whole time in the system; no end is NaN."""
        if measure == "turnaround":
            return [(self.submitted, self.ended, self.outcome)]
        if measure == "every":
            return [*self.waits, *([] if self.waiting is None else [(self.waiting, np.nan, CENSORED)])]
        return [
            (self.submitted, self.executed, COMPLETED) if self.executions else (self.submitted, self.ended, CENSORED)
        ]


@register
class HtCondor(LineFormat):
    """Latency is the first execution − submission (`--column latency=every`: every wait; `=turnaround`: to the end).

    Removed before it ran, or never run by the log's end: censored. A job that ended with an error has failed,
    where its turnaround is asked for.
    """

    name = "htcondor"
    by_line = False
    description = "HTCondor user event log; latency = first execute - submit"
    rank = 15
    kind, queue = "jobs", True
    roles = ("latency",)
    uses = ("year",)
    others = ""
    begins = EVENT

    def begin(self, source: Source) -> None:
        self.measure = chosen("latency", self.options, "first", MEASURES, source.name)
        self.jobs: dict[str, _Job] = {}
        self.earlier: list[_Job] = []  # an id submitted again, as in logs put together, is another job
        self.is_between = True
        self.terminated: _Job | None = None
        self.rolled, self.month, self.last, self.is_yearless = 0, 0, -np.inf, False
        self.leap: set[int] = set()  # in which of the log's years there was a 29 February

    def parse(self, line: str) -> Parsed:
        if line.startswith("..."):
            self.is_between, self.terminated = True, None
        elif self.is_between:
            self.is_between = False
            match = re.match(EVENT, line)
            at = self._time(match) if match else None
            if match is None or at is None:
                return f"unparseable event: {line[:40]!r}"
            name, code = match["job"], match["code"]
            if code == SUBMIT and name in self.jobs:
                self.earlier.append(self.jobs.pop(name))
            job = self.jobs.setdefault(name, _Job(name, self.number))
            self.terminated = job if code == TERMINATED and np.isnan(job.ended) else None
            job.add(code, at)
        elif self.terminated is not None and (returned := RETURNED.search(line)):
            self.terminated.outcome = COMPLETED if returned["value"] in ("0", "-0") else FAILED
            self.terminated = None
        return None

    def _time(self, match: re.Match[str]) -> float | None:
        """The event's time in seconds; without a year, as if the log began in the year 2000."""
        try:
            if match["year"]:
                when = datetime.fromisoformat(match[0][match.start("year") :])
            else:
                self.is_yearless = True
                month, day, hour, minute, second = map(int, match.group("m", "d", "h", "min", "s"))
                if self.month and abs(month - self.month) > 6:  # over New Year, or back: events may be a little late
                    self.rolled += 1 if month < self.month else -1
                self.month = month
                if (month, day) == (2, 29):
                    self.leap.add(self.rolled)
                when = datetime(LEAP_YEAR + self.rolled, month, day, hour, minute, second)
        except ValueError:
            return None
        at = when.replace(tzinfo=when.tzinfo or UTC).timestamp()
        self.last = max(self.last, at)
        return at

    def _first_year(self) -> int:
        """The latest first year with which the log does not end in the future, and has every 29 February in it."""
        now, end = datetime.now(UTC), datetime.fromtimestamp(self.last, UTC)
        year = now.year - self.rolled - ((now.month, now.day) < (end.month, end.day))
        return next((y for y in range(year, year - 12, -1) if all(isleap(y + later) for later in self.leap)), year)

    def finish(self, source: Source) -> Records:
        jobs = [*self.earlier, *self.jobs.values()]
        if not jobs:
            raise LogError(f"{source.name}: there is no event of a job in this log")
        rows = [(job, attempt, *wait) for job in jobs for attempt, wait in enumerate(job.latencies(self.measure), 1)]
        since, until, last, notes = [row[2] for row in rows], [row[3] for row in rows], [self.last], []
        evictions, again = sum(job.evictions for job in jobs), sum(max(0, job.executions - 1) for job in jobs)
        if evictions or again:
            counts = f"{counted(evictions, 'eviction')} and {counted(again, 're-execution')}"
            notes.append(f"{counts} of {counted(len(jobs), 'job')}: {MEASURES[self.measure]}")
        if self.is_yearless:
            year = self.options.year or self._first_year()
            since, until, last = ([_in_year(at, year) for at in times] for times in (since, until, last))
            hint = "" if self.options.year else "; say which with --year"
            notes.append(f"the log writes no years: its first event is taken to be of {year}{hint}")
        submitted, lines = np.array(since, dtype=np.float64), np.array([row[0].line for row in rows], dtype=np.int64)
        status = np.array([row[4] for row in rows], dtype=np.int8)
        records = Records(lines, np.array(until) - submitted, status, notes=notes)
        records.refuse(np.isnan(submitted), "no submit event")
        records.submitted = moments(pd.Series(submitted), "submission", "epoch", None, records)
        records.last_seen = np.datetime64(int(last[0] * 1e6), "us")
        cells = [(job.name, job.executions, job.evictions, attempt) for job, attempt, *_ in rows]
        frame = pd.DataFrame(cells, columns=["id", "executions", "evictions", "attempt"])
        records.extras = {str(name): frame[name] for name in frame if name != "attempt" or self.measure == "every"}
        return records


def _in_year(at: float, year: int) -> float:
    """A time of a log read as if it began in 2000, moved to begin in `year`; 29 February becomes 1 March if need be."""
    if np.isnan(at):
        return at
    when = datetime.fromtimestamp(at, UTC)
    moved_to = when.year - LEAP_YEAR + year
    if not MINYEAR <= moved_to <= MAXYEAR:
        raise LogError(f"the log writes no years, and its months run on from {year} to {moved_to}")
    try:
        return when.replace(year=moved_to).timestamp()
    except ValueError:
        return when.replace(year=moved_to, month=3, day=1).timestamp()


@register
class CondorHistory(JsonRows):
    """Latency is the first start − QDate. A job that was removed before it started is censored then."""

    name = "condor-history"
    description = "condor_history -json or condor_q -json; latency = start - QDate"
    rank = 21
    kind, queue = "jobs", True
    begins, signs = r"[\[{]", (r'"QDate"\s*:',)
    paths = "submitted=QDate state=JobStatus owner=Owner site=MATCH_GLIDEIN_Site host=LastRemoteHost command=Cmd"

    def row(self, value: Row) -> Row | None:
        """In the states 3 and 5 the job was removed, or is held."""

        def moment(*names: str) -> float | None:
            return next(filter(None, (epoch(value.get(name)) for name in names)), None)

        row, start = super().row(value), moment("JobStartDate", "JobCurrentStartDate", "JobLastStartDate")
        if row is None:
            return None
        gone = moment("CompletionDate", "EnteredCurrentStatus") if row["state"] in (3, 5) else None
        job = {"jobid": f"{value.get('ClusterId')}.{value.get('ProcId')}", "ended": start or gone}
        return {**row, **job, "status": "completed" if start else "censored"}
