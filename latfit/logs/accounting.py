"""Accounting of batch systems: SLURM (sacct, squeue), PBS and Torque, LSF (lsb.acct), and Grid Engine (SGE, UGE)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import chosen
from latfit.logs.records import Records
from latfit.logs.rows import EventFormat, JsonRows, Row, RowFormat, epoch, inside
from latfit.logs.source import Source, numbered_lines
from latfit.logs.tabular import moments
from latfit.logs.times import UNKNOWN_TIMES
from latfit.numbers import Bools
from latfit.table import CENSORED

# what XDMoD asks sacct for, the usual choice where the output has no header
WITHOUT_HEADER = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state "
    "nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
).split()
EXPORT = "JobID,Submit,Eligible,Start,End,Elapsed,State,NodeList,Partition"
JOB = re.compile(r"\d+(_\d+|_\[.*\])?(\.\w+)?")
STATE = re.compile("COMPLETED|FAILED|TIMEOUT|NODE_FAIL|PENDING|RUNNING|PREEMPTED|OUT_OF_MEMORY|CANCELLED.*")

PBS_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.ASCII | re.DOTALL)
PBS_TIMES = ("qtime", "etime", "ctime")
PBS_KEYS = {
    **{name: name for name in ("user", "group", "account", "queue", "jobname")},
    "Resource_List.walltime": "walltime",
    "Resource_List.nodect": "nodes",
    "Resource_List.ncpus": "ncpus",
    "Resource_List.nodes": "node_list",
}

# positions from 0, by the manual of lsb.acct
LSF_FIELDS = {"job_number": 3, "processors": 6, "user": 11, "queue": 12, "from_host": 16}
LSF_FINISHED, LSF_SUBMIT, LSF_START = 2, 7, 10
LSF_HOSTS = 22  # how many names of hosts follow, then how many hosts ran it, then these
LSF_AFTER_HOSTS = {"job_name": 2, "project": 24, "index": 29}

SGE_NAMES = "queue host group owner job_name job_number".split()  # the first fields
SGE_LATER = {"project": 31, "department": 32, "pe": 33, "slots": 34, "task": 35}
SGE_SUBMISSION, SGE_PE_TASK, MIN_SGE_FIELDS = 8, 41, 36  # the oldest versions end there; newer ones have 45 and more


@register
class Sacct(TableFormat):
    """Latency is start − submit (`--column submitted=eligible` counts from when the job could start).

    A job that started is completed. One cancelled while queued (start = end, no node) is censored
    when it was cancelled; one still pending, when the log ends. Steps of a job are left out.
    """

    name = "sacct"
    description = "sacct --parsable2, with or without header; latency = start - submit"
    rank = 20
    kind, queue = "jobs", True
    roles = ("submitted",)
    uses = ("time_format", "timezone")
    not_probes = "steps of jobs"

    def sniff(self, head: str) -> bool:
        fields = head_fields(head, "|")
        if len(fields) < 4:
            return False
        is_row = JOB.fullmatch(fields[0]) is not None and any(map(STATE.fullmatch, fields[1:]))
        return is_row or {"submit", "state"} <= set(self.layout(head)[1])

    def layout(self, head: str) -> tuple[str, list[str], bool]:
        fields = [field.lower() or f"column{at}" for at, field in enumerate(head_fields(head, "|"))]
        is_usual = len(fields) == len(WITHOUT_HEADER) and "submit" not in fields
        return "|", WITHOUT_HEADER if is_usual else fields, not is_usual

    def begin(self, source: Source) -> None:
        if "submit" not in self.names:
            raise MissingColumn(
                f"{source.name}: this looks like sacct's output without a header, and its {len(self.names)} fields are "
                f"not known. Export it with: sacct --parsable2 --format={EXPORT}"
            )
        self.time = self.options.columns.get("submitted", "submit").lower()
        for name in ("jobid", "start", "end", "state", self.time):
            if name not in self.names:
                raise MissingColumn(f"{source.name}: sacct's field {name!r} is missing; it has: {listed(self.names)}")
        self.groups = [name for name in self.names if name not in ("submit", "start", "end")]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["jobid"].str.contains(".", regex=False, na=False).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        style, zone = self.options.time_format or "iso", self.options.timezone
        submitted, start, end = (
            moments(frame[name].mask(frame[name].isin(("Unknown", "None"))), name, style, zone, records)
            for name in (self.time, "start", "end")
        )
        records.refuse(np.isnat(submitted) & records.kept, f"missing {self.time}")
        queued = np.isnat(start)
        if "nodelist" in frame:
            queued |= (frame["nodelist"] == "None assigned").to_numpy() & (start == end)
        else:
            cancelled = frame["state"].str.startswith("CANCELLED", na=False).to_numpy() & (start == end)
            queued |= cancelled & (frame["elapsed"] == "00:00:00").to_numpy() if "elapsed" in frame else cancelled
        records.status[queued] = CENSORED
        waited_until = np.where(queued, end, start)  # no end: still pending when the log ends
        records.latency = (waited_until - submitted) / np.timedelta64(1, "s")
        records.refuse(
            records.latency < 0,
            lambda row: f"end before start: {waited_until[row]} comes before {self.time} {submitted[row]}",
        )
        known = ~np.isnat(end)
        records.last_seen = end[known].max() if known.any() else None
        records.submitted = submitted
        records.ids = frame["jobid"].to_numpy(dtype=object)


@register
class SlurmJson(JsonRows):
    """Latency is start − submission. A job that never started is censored when it ended, or when the log does.

    SLURM writes 0 or 4294967294 for a time that is not known; squeue writes when a pending job is expected to start.
    """

    name = "slurm-json"
    description = "sacct --json or squeue --json; latency = start - submission"
    rank = 21
    kind, queue = "jobs", True
    signs = (r'"jobs"\s*:\s*\[', r'"(submission|submit_time)"\s*:')

    def row(self, value: Row) -> Row | None:
        submitted, start, end = (
            _number(inside(value, f"time.{name}") or value.get(other))
            for name, other in (("submission", "submit_time"), ("start", "start_time"), ("end", "end_time"))
        )
        if submitted is None:
            return None
        state = inside(value, "state.current") or value.get("job_state") or value.get("state")
        state = state[0] if isinstance(state, list) and state else state
        queued = start is None or state == "PENDING" or (state == "CANCELLED" and not value.get("nodes"))
        ended = start if not queued else None if state == "PENDING" else end
        groups = {name: value.get(name) for name in ("partition", "qos", "account", "cluster", "name")}
        owner = {"jobid": value.get("job_id"), "user": value.get("user") or value.get("user_name")}
        status = "censored" if queued else "completed"
        return {"submitted": submitted, "ended": ended, "status": status, "state": state, **owner, **groups}


def _number(value: Any) -> int | None:
    """A number of SLURM's JSON, which newer versions wrap: `{"set": true, "infinite": false, "number": 7}`."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else None
    return value if isinstance(value, int) and value not in UNKNOWN_TIMES else None


@register
class Pbs(EventFormat):
    """Latency is start − qtime (`--column submitted=etime`: from when the job could start).

    A job that ended (E) or started (S) is completed. One deleted or aborted (D, A) that was queued (Q) in
    this log and never started is censored then; one queued and not started by the log's end, at that time.
    """

    name = "pbs"
    description = "PBS or Torque accounting; latency = start - qtime"
    rank = 12
    roles = ("submitted",)
    uses = ("timezone",)
    kind, queue = "jobs", True
    cells = ("submitted", "ended", "status", "id")
    nothing = "no line is a record such as 12/21/2009 15:27:00;E;6.server;user=…"
    begins = rf"(?:.*\n){{0,2}}?{PBS_LINE.pattern}"

    def probes(self, source: Source, options: ReadOptions, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        since = chosen("submitted", options, "qtime", PBS_TIMES, source.name)
        zone = ZoneInfo(options.timezone or "UTC")
        jobs: dict[str, Row] = {}  # what their records say
        end = 0.0
        for number, line in numbered_lines(source, pauses=True):
            if not line:
                yield 0, None
                continue
            match = PBS_LINE.match(line)
            try:
                written = match and datetime.strptime(match[1], "%m/%d/%Y %H:%M:%S").replace(tzinfo=zone).timestamp()
            except (ValueError, OverflowError):
                written = None
            if match is None or written is None:
                yield number, f"not a record of PBS: {line[:40]!r}"
                continue
            _, kind, name, rest = match.groups()
            end = max(end, written)
            if kind not in "QSE" and name not in jobs:
                last.skipped[f"records of type {kind}"] += 1
                continue
            last.skipped["further records of the same jobs"] += name in jobs
            fields = dict(part.split("=", 1) for part in rest.split() if "=" in part) if kind in "QSE" else {}
            job = jobs.setdefault(name, {})
            if "done" not in job:  # one that ran again waited for its first start
                job.update({kind: written, "line": number, **fields})
            if kind == "E" and "done" not in job:
                yield number, self._probe(name, job, since)
                job["done"] = True
        last.last_seen = np.datetime64(int(end * 1e6), "us")
        yield from ((job["line"], self._probe(name, job, since)) for name, job in jobs.items() if "done" not in job)

    def _probe(self, name: str, job: Row, since: str) -> Row | str:
        known = (epoch(job.get(key)) for key in (since, *PBS_TIMES))
        sent = next(filter(None, (*known, job.get("Q"))), None)
        if sent is None:
            return f"missing {since}: nor is there {' or '.join(PBS_TIMES)}"
        start, gone = epoch(job.get("start")), job.get("D") or job.get("A") or epoch(job.get("end"))
        times = {"submitted": sent, "ended": start or gone, "status": "completed" if start else "censored"}
        return {**times, "id": name, **{column: job.get(key) for key, column in PBS_KEYS.items()}}


def _waited(times: Iterable[str], cells: Row) -> Row | str:
    """The wait of a job from submission to start, or to its end if it never started: censored then."""
    sent, began, ended = map(epoch, times)
    if sent is None:
        return "no submission time: the job's times are 0"
    if began is None and ended is None:
        return "no latency: the job never started, and the log does not say until when"
    status = "completed" if began else "censored"
    return {"submitted": sent, "ended": began or ended, "status": status, **cells}


@register
class Lsf(RowFormat):
    """Latency is start − submission, in s. One that finished without a start (start 0) is censored then."""

    name = "lsf"
    description = "LSF lsb.acct, events JOB_FINISH; latency = start - submission"
    rank = 11
    kind, queue = "jobs", True
    cells = ("submitted", "ended", "status", "id")
    others = "events that are not JOB_FINISH"
    begins, signs = r'(?:.*\n){0,2}?"[A-Z_]+" "[^"]*" \d+ ', ('^"JOB_FINISH" ',)

    def row(self, line: str) -> Row | str | None:
        event = re.match(r'"([A-Z_]+)" "[^"]*" \d+ ', line, re.ASCII)
        if event is None or event[1] != "JOB_FINISH":
            return None if event or line.startswith("#") else f"not an event of LSF: {line[:40]!r}"
        try:
            fields = next(csv.reader([line], delimiter=" "))  # a quote within quotes is doubled
        except csv.Error as error:
            return f"unparseable line: {error}"
        if len(fields) <= max(LSF_FIELDS.values()):
            return f"wrong number of fields: {len(fields)}"
        at = LSF_HOSTS
        for _ in range(2):  # two lists of hosts, as far as these can be counted
            count = fields[at] if at < len(fields) else ""
            at += 1 + int(count) if re.fullmatch(r"\d{1,6}", count, re.ASCII) else len(fields)
        cells = {name: fields[place] for name, place in LSF_FIELDS.items()}
        later = {name: _field(fields, at + place) for name, place in LSF_AFTER_HOSTS.items()}
        # a job that was requeued finishes more than once: the first start is the wait
        job = f"{cells['job_number']}[{later['index'] or 0}] {fields[LSF_SUBMIT]}"
        times = (fields[place] for place in (LSF_SUBMIT, LSF_START, LSF_FINISHED))
        return _waited(times, {"id": job, **cells, **later})


@register
class Sge(RowFormat):
    """Latency is start − submission; seconds, or milliseconds where the times have that size (UGE).

    A job that started is completed. One that never did (start 0) is censored at its end; where the log has
    no end either, it is refused. Slave tasks of parallel jobs are left out; array tasks are jobs.
    """

    name = "sge"
    description = "SGE or UGE accounting; latency = start - submission"
    rank = 13
    kind, queue = "jobs", True
    cells = ("submitted", "ended", "status", "id")
    others = "comments, and slave tasks of parallel jobs"
    begins = r"(?:#.*\n|\s)*+[^:#\n]*+:[^:\n]+:(?:[^:\n]*:){3}\d+:[^:\n]*:-?\d+:\d+:\d+:\d+:(?:[^:\n]*:){24}"

    def row(self, line: str) -> Row | str | None:
        fields = line.split(":")
        if line.startswith("#") or (_field(fields, SGE_PE_TASK) or "NONE") != "NONE":
            return None
        if len(fields) < MIN_SGE_FIELDS:
            return f"wrong number of fields: {len(fields)} instead of {MIN_SGE_FIELDS} or more"
        cells = dict(zip(SGE_NAMES, fields, strict=False)) | {name: fields[at] for name, at in SGE_LATER.items()}
        times = fields[SGE_SUBMISSION : SGE_SUBMISSION + 3]
        # a job that was put back into the queue has several lines: the first start is the wait
        return _waited(times, {"id": f"{cells['job_number']}.{cells['task']} {times[0]}", **cells})


def _field(fields: list[str], at: int) -> str | None:
    return fields[at] if at < len(fields) else None
