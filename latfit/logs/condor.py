"""HTCondor: user event logs, with and without years, and the history of jobs (`condor_history -json`)."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import MAXYEAR, MINYEAR, UTC, datetime

import numpy as np

from latfit.errors import LogError, counted
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import chosen
from latfit.logs.records import Records
from latfit.logs.rows import EventFormat, JsonRows, Row, epoch
from latfit.logs.source import Source, numbered_lines

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
Wait = tuple[float | None, float | None, str]
CONDOR_TEXT = r"^ *ID +OWNER +SUBMITTED +RUN_TIME +ST +|^QDate = \d+$"  # tables, and the option -long
LEAP_YEAR = 2000  # in which a log without years is read at first


@dataclass
class _Job:
    """What the log says of a job so far; times in seconds, a wait is (since, until, status)."""

    name: str
    line: int
    submitted: float | None = None
    executed: float | None = None
    ended: float | None = None
    outcome: str = "censored"
    waiting: float | None = None
    waits: list[Wait] = field(default_factory=list)
    executions: int = 0
    evictions: int = 0

    def add(self, code: str, at: float) -> None:
        if code == SUBMIT:
            self.submitted = self.waiting = at
        elif code == EXECUTE:
            self.executions += 1
            self.executed = at if self.executions == 1 else self.executed
            self._waited(at, "completed")
        elif code in WAITS_AGAIN:
            self.evictions += code == EVICTED
            self.waiting = at if self.waiting is None else self.waiting
        elif code == HELD:
            self._waited(at, "censored")
        elif code in (TERMINATED, ABORTED) and self.ended is None:
            self.ended, self.outcome = at, "completed" if code == TERMINATED else "censored"
            self._waited(at, "censored")

    def _waited(self, until: float, outcome: str) -> None:
        self.waits += [] if self.waiting is None else [(self.waiting, until, outcome)]
        self.waiting = None

    def latencies(self, measure: str) -> list[Wait]:
        """The wait for its first execution, for every one, or its whole time in the system."""
        if measure == "turnaround":
            return [(self.submitted, self.ended, self.outcome)]
        if measure == "every":
            return [*self.waits, *([] if self.waiting is None else [(self.waiting, None, "censored")])]
        executed = self.executions > 0
        return [(self.submitted, self.executed if executed else self.ended, "completed" if executed else "censored")]


@register
class HtCondor(EventFormat):
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
    cells = ("submitted", "ended", "status")
    begins = EVENT

    def probes(self, source: Source, options: ReadOptions, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        measure = chosen("latency", options, "first", MEASURES, source.name)
        jobs: list[_Job] = []
        latest: dict[str, _Job] = {}  # an id submitted again, as in logs put together, is another job
        is_between, terminated, clock = True, None, _Clock()
        for number, line in numbered_lines(source, pauses=True):
            if line.startswith("..."):
                is_between, terminated = True, None
            elif not line:
                continue
            elif is_between:
                is_between, match = False, re.match(EVENT, line)
                at = clock.time(match) if match else None
                if match is None or at is None:
                    yield number, f"unparseable event: {line[:40]!r}"
                    continue
                name, code = match["job"], match["code"]
                if name not in latest or code == SUBMIT:
                    latest[name] = _Job(name, number)
                    jobs.append(latest[name])
                terminated = latest[name] if code == TERMINATED and latest[name].ended is None else None
                latest[name].add(code, at)
            elif terminated is not None and (returned := RETURNED.search(line)):
                terminated.outcome = "completed" if returned["value"] in ("0", "-0") else "failed"
                terminated = None
        if not jobs:
            return
        evictions, again = sum(job.evictions for job in jobs), sum(max(0, job.executions - 1) for job in jobs)
        if evictions or again:
            counts = f"{counted(evictions, 'eviction')} and {counted(again, 're-execution')}"
            last.notes.append(f"{counts} of {counted(len(jobs), 'job')}: {MEASURES[measure]}")
        year = (options.year or clock.first_year()) if clock.is_yearless else None
        if year:
            hint = "" if options.year else "; say which with --year"
            last.notes.append(f"the log writes no years: its first event is taken to be of {year}{hint}")
        last.last_seen = np.datetime64(int((_in_year(clock.last, year) or 0) * 1e6), "us")
        for job in jobs:
            for attempt, (since, until, status) in enumerate(job.latencies(measure), start=1):
                times = {"submitted": _in_year(since, year), "ended": _in_year(until, year), "status": status}
                cells = {"id": job.name, "executions": job.executions, "evictions": job.evictions}
                cells |= {"attempt": attempt} if measure == "every" else {}
                yield job.line, "no submit event" if since is None else {**times, **cells}


class _Clock:
    """Times of events in seconds; without years, as if the log began in the year 2000."""

    def __init__(self) -> None:
        self.rolled, self.month, self.last, self.is_yearless = 0, 0, -np.inf, False
        self.leap: set[int] = set()  # in which of the log's years there was a 29 February

    def time(self, match: re.Match[str]) -> float | None:
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

    def first_year(self) -> int:
        """The latest first year with which the log does not end in the future, and has every 29 February in it."""
        now, end = datetime.now(UTC), datetime.fromtimestamp(self.last, UTC)
        year = now.year - self.rolled - ((now.month, now.day) < (end.month, end.day))
        return next((y for y in range(year, year - 12, -1) if all(isleap(y + later) for later in self.leap)), year)


def _in_year(at: float | None, year: int | None) -> float | None:
    """A time of a log read as if it began in 2000, moved to begin in `year`; 29 February becomes 1 March if need be."""
    if at is None or year is None:
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

    def sniff(self, head: str) -> bool:
        return super().sniff(head) or re.search(CONDOR_TEXT, head, re.MULTILINE) is not None

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        if source.text.lstrip()[:1] not in ("[", "{"):
            advice = "condor_history -json > jobs.json (or condor_q -json)"
            raise LogError(f"{source.name}: this output of HTCondor is not read; export it with: {advice}")
        yield from super().read(source, options)

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
