"""Accounting of batch systems: SLURM (sacct, squeue), PBS and Torque, LSF (lsb.acct), and Grid Engine (SGE, UGE)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import Head, head_fields, register
from latfit.logs.jsonlines import JsonRows
from latfit.logs.lines import EventFormat, LineFormat, Row, chosen, either, epoch, waited
from latfit.logs.records import Records
from latfit.logs.source import Source, numbered_lines
from latfit.logs.tabular import moments
from latfit.logs.times import UNKNOWN_TIMES
from latfit.numbers import Bools

# what XDMoD asks sacct for, the usual choice where the output has no header
WITHOUT_HEADER = (
    "jobid jobidraw cluster partition qos account group gid user uid submit eligible start end elapsed exitcode state "
    "nnodes ncpus reqcpus reqmem reqtres alloctres timelimit nodelist jobname"
).split()
EXPORT = "JobID,Submit,Eligible,Start,End,Elapsed,State,NodeList,Partition"
JOB = r"\d+(?:_\d+|_\[.*\])?(?:\.\w+)?"
STATE = "COMPLETED|FAILED|TIMEOUT|NODE_FAIL|PENDING|RUNNING|PREEMPTED|OUT_OF_MEMORY|CANCELLED.*"

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
    time_style = "iso"
    cells = "submitted=submit ended status=outcome id=jobid"
    not_probes = "steps of jobs"
    needed = ("jobid", "submit", "start", "end", "state")
    begins = (
        rf"(?=(?:.*\|){{3}})(?:{JOB}\|(?:.*\|)?(?:{STATE})(?:[|\n]|\Z)|"  # a row, or a header
        r"(?i:(?=(?:.*\|)?submit(?:[|\n]|\Z))(?:.*\|)?state(?:[|\n]|\Z)))"
    )

    def layout(self, head: Head) -> tuple[str, list[str], bool]:
        fields = [field.lower() or f"column{at}" for at, field in enumerate(head_fields(head, "|"))]
        is_usual = len(fields) == len(WITHOUT_HEADER) and "submit" not in fields
        return "|", WITHOUT_HEADER if is_usual else fields, not is_usual

    def begin(self, source: Source) -> None:
        names = self.layout(Head(source.text))[1]
        if "submit" not in names:
            raise MissingColumn(
                f"{source.name}: this looks like sacct's output without a header, and its {len(names)} fields are "
                f"not known. Export it with: sacct --parsable2 --format={EXPORT}"
            )
        self.options = replace(
            self.options, columns={role: name.lower() for role, name in self.options.columns.items()}
        )
        super().begin(source)
        self.groups = [name for name in names if name not in ("submit", "start", "end")]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["jobid"].str.contains(".", regex=False, na=False).to_numpy(dtype=bool)

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        start, end = (frame[name].mask(frame[name].isin(("Unknown", "None"))) for name in ("start", "end"))
        queued = start.isna()
        if "nodelist" in frame:
            queued |= frame["nodelist"].eq("None assigned") & start.eq(end)
        else:
            cancelled = frame["state"].str.startswith("CANCELLED", na=False) & start.eq(end)
            queued |= cancelled & frame["elapsed"].eq("00:00:00") if "elapsed" in frame else cancelled
        ended = start.mask(queued, end)  # no end: still pending
        return frame.assign(end=end, ended=ended, outcome=either(queued.to_numpy(), "censored", "completed"))

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        ends = moments(frame["end"], "end", self.time_style, self.options.timezone, records)
        records.last_seen = None if np.isnat(ends).all() else np.nanmax(ends)


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
    paths = (
        "submitted=time.submission|submit_time started=time.start|start_time ended=time.end|end_time "
        "state=state.current|job_state|state nodes jobid=job_id user=user|user_name partition qos account cluster name"
    )

    def probe(self, cells: Row) -> Row | None:
        submitted, start, end = (_number(cells.pop(name)) for name in ("submitted", "started", "ended"))
        if submitted is None:
            return None
        state, nodes = cells.pop("state"), cells.pop("nodes")
        state = state[0] if isinstance(state, list) and state else state
        if state == "PENDING":
            start = end = None
        elif state == "CANCELLED" and not nodes:
            start = None
        return waited(submitted, start, end, state=state, **cells)


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
    cells = "submitted ended status id"
    nothing = "no line is a record such as 12/21/2009 15:27:00;E;6.server;user=…"
    begins = rf"(?:.*\n){{0,2}}?{PBS_LINE.pattern}"

    def probes(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        since = chosen("submitted", self.options, "qtime", PBS_TIMES, source.name)
        zone = ZoneInfo(self.options.timezone or "UTC")
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
            last.skipped["records of a job that came before"] += name in jobs
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
        gone = job.get("D") or job.get("A") or epoch(job.get("end"))
        groups = {column: job.get(key) for key, column in PBS_KEYS.items()}
        return waited(sent, epoch(job.get("start")), gone, id=name, **groups)


def _finished(times: Iterable[str], cells: Row) -> Row | str:
    """The wait of a job that is over, by its times of submission, start and end."""
    sent, began, ended = map(epoch, times)
    if sent is None:
        return "no submission time: the job's times are 0"
    if began is None and ended is None:
        return "no latency: the job never started, and the log does not say until when"
    return waited(sent, began, ended, **cells)


@register
class Lsf(LineFormat):
    """Latency is start − submission, in s. One that finished without a start (start 0) is censored then."""

    name = "lsf"
    description = "LSF lsb.acct, events JOB_FINISH; latency = start - submission"
    rank = 11
    kind, queue = "jobs", True
    cells = "submitted ended status id"
    others = "events other than JOB_FINISH"
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
        return _finished(times, {"id": job, **cells, **later})


@register
class Sge(LineFormat):
    """Latency is start − submission; seconds, or milliseconds where the times have that size (UGE).

    A job that started is completed. One that never did (start 0) is censored at its end; where the log has
    no end either, it is refused. Slave tasks of parallel jobs are left out; array tasks are jobs.
    """

    name = "sge"
    description = "SGE or UGE accounting; latency = start - submission"
    rank = 13
    kind, queue = "jobs", True
    cells = "submitted ended status id"
    others = "lines of comments or slave tasks"
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
        return _finished(times, {"id": f"{cells['job_number']}.{cells['task']} {times[0]}", **cells})


def _field(fields: list[str], at: int) -> str | None:
    return fields[at] if at < len(fields) else None
