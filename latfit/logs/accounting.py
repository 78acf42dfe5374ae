"""Accounting of batch systems: PBS and Torque, LSF (lsb.acct), and Grid Engine (SGE, and UGE in milliseconds)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import chosen
from latfit.logs.records import Records
from latfit.logs.rows import EventFormat, Row, RowFormat, epoch
from latfit.logs.source import Source

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
        for number, line in self.lines(source):
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
    begins = r"(?:#.*\n|\s)*[^:#\n]*:[^:\n]+:(?:[^:\n]*:){3}\d+:[^:\n]*:-?\d+:\d+:\d+:\d+:(?:[^:\n]*:){24}"

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
