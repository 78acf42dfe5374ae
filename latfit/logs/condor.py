"""HTCondor: user event logs, with and without years, and the history of jobs (`condor_history -json`)."""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Iterator
from datetime import MAXYEAR, MINYEAR, UTC, datetime

import numpy as np

from latfit.errors import LogError, counted
from latfit.logs.formats import ReadOptions, register
from latfit.logs.jsonlines import JsonRows
from latfit.logs.lines import EventFormat, Row, epoch, waited
from latfit.logs.records import Records
from latfit.logs.source import Source, numbered_lines

EVENT = (
    r"(?P<code>\d{3}) \((?P<job>\d+\.\d+)\.\d+\) "
    r"(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)|(?P<m>\d\d)/(?P<d>\d\d))[ T]"
    r"(?P<h>\d\d):(?P<min>\d\d):(?P<s>\d\d)(?P<fraction>\.\d+)?(?P<offset>Z|[+-]\d\d:?\d\d)?\b"
)
EVENTS = {"000": "submitted", "001": "started", "004": "evicted", "005": "ended", "009": "ended"}
LEAP_YEAR = 2000  # in which a log without years is read at first


@register
class HtCondor(EventFormat):
    """Latency is the first execution − submission; removed before it ran, or never run by the log's end: censored."""

    name = "htcondor"
    by_line = False
    description = "HTCondor user event log; latency = first execute - submit"
    rank = 15
    kind, queue = "jobs", True
    uses = ("year",)
    cells = "submitted ended status"
    begins = EVENT

    def probes(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        jobs: list[Row] = []
        latest: dict[str, Row] = {}  # an id submitted again, as in logs put together, is another job
        is_between, clock = True, _Clock()
        for number, line in numbered_lines(source, pauses=True):
            if line.startswith("..."):
                is_between = True
            elif line and is_between:
                is_between, match = False, re.match(EVENT, line)
                when = clock.time(match) if match else None
                if match is None or when is None:
                    yield number, f"unparseable event: {line[:40]!r}"
                    continue
                event, name = EVENTS.get(match["code"], ""), match["job"]
                if name not in latest or event == "submitted":
                    latest[name] = {"id": name, "line": number, "executions": 0, "evictions": 0}
                    jobs.append(latest[name])
                job = latest[name]
                job.setdefault(event, when)  # the first start is the wait
                job["executions"] += event == "started"
                job["evictions"] += event == "evicted"
        if not jobs:
            return
        evictions, again = (sum(job["evictions"] for job in jobs), sum(max(0, job["executions"] - 1) for job in jobs))
        if evictions or again:
            counts = f"{counted(evictions, 'eviction')} and {counted(again, 're-execution')}"
            last.notes.append(
                f"{counts} of {counted(len(jobs), 'job')}: the latency is the wait for the first execution"
            )
        year = (self.options.year or clock.first_year()) if clock.is_yearless else LEAP_YEAR
        if clock.is_yearless:
            hint = "" if self.options.year else "; say which with --year"
            last.notes.append(f"the log writes no years: its first event is taken to be of {year}{hint}")
        last.last_seen = np.datetime64(int(_seconds(clock.last, year) * 1e6), "us")
        for job in jobs:
            times = (
                _seconds(job[event], year) if event in job else None for event in ("submitted", "started", "ended")
            )
            cells = {name: job[name] for name in ("id", "executions", "evictions")}
            yield job["line"], "no submit event" if "submitted" not in job else waited(*times, **cells)


class _Clock:
    """Times of events; without years, as if the log began in the year 2000."""

    def __init__(self) -> None:
        self.rolled, self.month, self.last, self.is_yearless = 0, 0, datetime.min.replace(tzinfo=UTC), False
        self.leap: set[int] = set()  # in which of the log's years there was a 29 February

    def time(self, match: re.Match[str]) -> datetime | None:
        try:
            if match["year"]:
                when = datetime.fromisoformat(match[0][match.start("year") :])
            else:
                self.is_yearless = True
                month, day, hour, minute, second = map(int, match.group("m", "d", "h", "min", "s"))
                if self.month and abs(month - self.month) > 6:  # over New Year, or back: events may be a little late
                    self.rolled += 1 if month < self.month else -1
                self.month = month
                when = datetime(LEAP_YEAR + self.rolled, month, day, hour, minute, second)
                if (month, day) == (2, 29):
                    self.leap.add(self.rolled)
        except ValueError:
            return None
        when = when.replace(tzinfo=when.tzinfo or UTC)
        self.last = max(self.last, when)
        return when

    def first_year(self) -> int:
        """The latest first year with which the log does not end in the future, and has every 29 February in it."""
        now, end = datetime.now(UTC), self.last
        year = now.year - self.rolled - ((now.month, now.day) < (end.month, end.day))
        return next((y for y in range(year, year - 12, -1) if all(isleap(y + later) for later in self.leap)), year)


def _seconds(when: datetime, year: int) -> float:
    """A time of a log read as if it began in 2000, moved to begin in `year`; 29 February becomes 1 March if need be."""
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
    # as JSON, a table, or with the option -long
    begins = r'(?s:[\[{].*"QDate"\s*:)|(?sm:.*?(?:^ *ID +OWNER +SUBMITTED +RUN_TIME +ST +|^QDate = \d+$))'
    paths = (
        "submitted=QDate started=JobStartDate|JobCurrentStartDate|JobLastStartDate gone=CompletionDate|"
        "EnteredCurrentStatus state=JobStatus cluster=ClusterId process=ProcId owner=Owner site=MATCH_GLIDEIN_Site "
        "host=LastRemoteHost command=Cmd"
    )

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        if source.text.lstrip()[:1] not in ("[", "{"):
            advice = "condor_history -json > jobs.json (or condor_q -json)"
            raise LogError(f"{source.name}: this output of HTCondor is not read; export it with: {advice}")
        yield from super().read(source, options)

    def probe(self, cells: Row) -> Row:
        times = (cells.pop(name) for name in ("submitted", "started", "gone"))
        submitted, start, gone = map(epoch, times)
        gone = gone if cells["state"] in (3, 5) else None  # removed, or held
        jobid = f"{cells.pop('cluster')}.{cells.pop('process')}"
        return waited(submitted, start, gone, **cells, jobid=jobid)
