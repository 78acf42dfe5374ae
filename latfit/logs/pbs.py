"""PBS and Torque accounting logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import chosen, first_lines, moments, told
from latfit.logs.records import Records, shown
from latfit.logs.source import Block, Source
from latfit.table import CENSORED, COMPLETED

LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.ASCII | re.DOTALL)
DATE = "%m/%d/%Y %H:%M:%S"
TIMES = ("qtime", "etime", "ctime")
KEYS = {
    "user": "user", "group": "group", "account": "account", "queue": "queue", "jobname": "jobname",
    "Exit_status": "exit_status", "Resource_List.walltime": "walltime", "Resource_List.nodect": "nodes",
    "Resource_List.ncpus": "ncpus", "Resource_List.nodes": "node_list",
}  # fmt: skip
QUEUED, STARTED, ENDED, GONE = "Q", "S", "E", ("D", "A")
NAMES = ("id", "what", "at", "since", "start", "end", *KEYS.values())


@dataclass
class _Job:
    """What was told so far of a job that has not ended: its lines, and the fields that it will have."""

    line: int
    row: list[str | None]
    records: Counter[str] = field(default_factory=Counter)  # earlier lines, by type
    started: bool = False


@register
class Pbs(Format):
    """Latency is start − qtime (`--column submitted=etime`: from when the job could start).

    A job that ended (E) or started (S) is completed. One deleted or aborted (D, A) that was queued (Q) in
    this log and never started is censored then; one queued and not started by the log's end, at that time.
    """

    name = "pbs"
    description = "PBS or Torque accounting; latency = start - qtime"
    rank = 12
    roles = ("submitted",)
    uses = ("timezone",)
    kind = "jobs"
    queue = True

    def sniff(self, head: str) -> bool:
        """A first line with a date, a type of record and a job."""
        return any(LINE.match(line) for line in first_lines(head, 3))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the jobs that ended or were deleted, then those that are left when the log ends."""
        since = chosen("submitted", options, "qtime", TIMES, source.name)
        reading = _Reading(since)
        last: np.datetime64 | None = None
        for block in source.blocks():
            rows, broken = reading.block(block)
            if broken:
                yield Records.unusable(broken)
            records = _records(rows, since, options)
            records.skipped = reading.taken_skipped()
            last = records.last_seen or last
            yield records
        if not reading.found:
            raise LogError(f"{source.name}: no line is a record such as 12/21/2009 15:27:00;E;6.server;user=…")
        rows = [(job.line, job.row) for job in reading.left()]
        records = _records(rows, since, options)
        records.skipped = reading.taken_skipped()
        records.last_seen = last if records.last_seen is None else records.last_seen
        yield records


class _Reading:
    """Follows the jobs of a log from record to record."""

    def __init__(self, since: str) -> None:
        self.since = since
        self.jobs: dict[str, _Job] = {}
        self.skipped: Counter[str] = Counter()
        self.found = False

    def block(self, block: Block) -> tuple[list[tuple[int, list[str | None]]], dict[int, str]]:
        """The rows that a block settles, and the lines that are no records."""
        rows: list[tuple[int, list[str | None]]] = []
        broken: dict[int, str] = {}
        for number, line in enumerate(block.lines(), start=block.first_line):
            if not line.strip():
                continue
            match = LINE.match(line)
            if match is None:
                broken[number] = shown(len(broken), "not a record of PBS", f"{line[:40]!r}")
                continue
            self.found = True
            row = self._record(number, *match.groups())
            rows += [row] if row else []
        return rows, broken

    def _record(self, number: int, at: str, kind: str, name: str, rest: str) -> tuple[int, list[str | None]] | None:
        """Take a record into account; the row that it settles, if any."""
        known = self.jobs.get(name)
        if kind == ENDED:
            self._forget(name)
            return number, self._row(name, kind, at, rest)
        if kind in GONE and known is not None:
            if known.started:  # it ran, and its end will come
                known.records[kind] += 1
                return None
            row = [*known.row[:1], kind, at, *known.row[3:]]
            self._forget(name)
            return number, row
        if kind not in (QUEUED, STARTED):
            self.skipped[_called(kind)] += 1
            return None
        row = self._row(name, kind, at, rest)
        if kind == QUEUED:
            row[3] = at
        if known is None:
            self.jobs[name] = _Job(number, row, started=kind == STARTED)
        elif kind == STARTED and not known.started:
            known.records[_type(known)] += 1
            known.line, known.row, known.started = number, row, True
        else:
            known.records[kind] += 1
        return None

    def _row(self, name: str, kind: str, at: str, rest: str) -> list[str | None]:
        fields = dict(part.split("=", 1) for part in rest.split() if "=" in part)
        since = next((fields[key] for key in (self.since, *TIMES) if fields.get(key)), None)
        return [name, kind, at, since, fields.get("start"), fields.get("end"), *(fields.get(key) for key in KEYS)]

    def _forget(self, name: str) -> None:
        """A job is settled: the records that led to it are told as skipped."""
        job = self.jobs.pop(name, None)
        if job is not None:
            self.skipped[_called(_type(job))] += 1
            self.skipped.update({_called(kind): n for kind, n in job.records.items()})

    def left(self) -> Iterator[_Job]:
        """The jobs that are not settled when the log ends."""
        for job in self.jobs.values():
            self.skipped.update({_called(kind): n for kind, n in job.records.items()})
            yield job

    def taken_skipped(self) -> Counter[str]:
        """What was skipped since this was asked last."""
        taken, self.skipped = self.skipped, Counter()
        return taken


def _type(job: _Job) -> str:
    return str(job.row[1])


def _called(kind: str) -> str:
    return f"records of type {kind}"


def _records(rows: list[tuple[int, list[str | None]]], since: str, options: ReadOptions) -> Records:
    frame = pd.DataFrame([row for _, row in rows], columns=list(NAMES), dtype="str")
    line = np.array([number for number, _ in rows], dtype=np.int64)
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    written = moments(frame["at"], "date", DATE, options.timezone, records)
    from_record = frame["since"].str.contains("/", na=False)  # a Q record has its own date only
    submitted = np.where(
        from_record.to_numpy(dtype=bool),
        moments(frame["since"].where(from_record), "date", DATE, options.timezone, records),
        moments(frame["since"].mask(from_record), since, "epoch", None, records),
    )
    start, end = (
        moments(frame[name].mask(frame[name] == "0"), name, "epoch", None, records) for name in ("start", "end")
    )
    queued = np.isnat(start) | frame["what"].isin((QUEUED, *GONE)).to_numpy()
    gone = np.where(frame["what"].isin(GONE).to_numpy(), written, end)  # NaT: queued when the log ended
    records.status[queued] = CENSORED
    records.latency = (np.where(queued, gone, start) - submitted) / np.timedelta64(1, "s")
    records.refuse(np.isnat(submitted), f"missing {since}: nor is there {' or '.join(TIMES)}")
    records.refuse(records.latency < 0, lambda row: f"end before start: by {-records.latency[row]:g} s")
    seen = np.concatenate([times[~np.isnat(times)] for times in (written, end)])
    records.last_seen = seen.max() if seen.size else None
    records.submitted = submitted
    records.ids = frame["id"].to_numpy(dtype=object)
    records.raw = frame
    records.extras = {name: frame[name] for name in ("id", *KEYS.values()) if name != "exit_status"}
    groups = ("user", "group", "account", "queue", "walltime", "nodes")
    records.notes.append(told(f"start - {since}", f"{since} (where it is missing, {TIMES[-1]})", groups))
    return records
