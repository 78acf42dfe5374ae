"""Accounting of batch systems: PBS and Torque, LSF (lsb.acct), and Grid Engine (SGE, and UGE in milliseconds)."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, first_lines, floats, moments
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED

PBS_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.ASCII | re.DOTALL)
PBS_DATE = "%m/%d/%Y %H:%M:%S"
PBS_TIMES = ("qtime", "etime", "ctime")
PBS_KEYS = {
    **{name: name for name in ("user", "group", "account", "queue", "jobname")},
    "Exit_status": "exit_status",
    "Resource_List.walltime": "walltime",
    "Resource_List.nodect": "nodes",
    "Resource_List.ncpus": "ncpus",
    "Resource_List.nodes": "node_list",
}
QUEUED, STARTED, ENDED, GONE = "Q", "S", "E", ("D", "A")

LSF_EVENT = re.compile(r'"([A-Z_]+)" "[^"]*" \d+ ', re.ASCII)
# positions from 0, by the manual of lsb.acct
LSF_NAMES = "finished job_number processors submit start user queue from_host".split()
LSF_FIELDS = dict(zip(LSF_NAMES, (2, 3, 6, 7, 10, 11, 12, 16), strict=True))
LSF_HOSTS = 22  # how many names of hosts follow, then how many hosts ran it, then these
LSF_AFTER_HOSTS = {"state": 0, "job_name": 2, "project": 24, "exit_status": 25, "index": 29}

SGE_NAMES = (
    "queue host group owner job_name job_number account submission start end failed exit_status project department pe "
    "slots task pe_task"
).split()
SGE_FIELDS = dict(zip(SGE_NAMES, (*range(7), *range(8, 13), *range(31, 36), 41), strict=True))
MIN_SGE_FIELDS = 36  # of the oldest versions; newer ones have 45 and more
SGE_LINE = re.compile(r"[^:]*:[^:]+:[^:]*:[^:]*:[^:]*:\d+:[^:]*:-?\d+:\d+:\d+:\d+:", re.ASCII)
MILLISECONDS_FROM = 1e11  # times since 1970 of this size are in ms
MAX_MILLISECONDS = 1e15


@register
class Pbs(LineFormat):
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
    names = ("id", "what", "at", "since", "start", "end", *PBS_KEYS.values())
    groups = ("user", "group", "account", "queue", "walltime", "nodes")
    others = ""
    nothing = "no line is a record such as 12/21/2009 15:27:00;E;6.server;user=…"

    def sniff(self, head: str) -> bool:
        return any(PBS_LINE.match(line) for line in first_lines(head, 3))

    def begin(self, source: Source) -> None:
        self.since = chosen("submitted", self.options, "qtime", PBS_TIMES, source.name)
        self.jobs: dict[str, tuple[int, list[str | None]]] = {}  # the line and the row of those that have not ended
        self.latency_is = f"start - {self.since}"
        self.submitted_is = f"{self.since} (where it is missing, {PBS_TIMES[-1]})"

    def parse(self, line: str) -> Parsed:
        """The row of a job that is settled; what led to it is kept until then, and counted as skipped."""
        match = PBS_LINE.match(line)
        if match is None:
            return f"not a record of PBS: {line[:40]!r}"
        at, kind, name, rest = match.groups()
        _, row = self.jobs.get(name, (0, None))
        was_queued = row is not None and row[1] == QUEUED
        if kind == ENDED or (kind in GONE and was_queued):
            if self.jobs.pop(name, None) and row is not None:
                self.skipped[f"records of type {row[1]}"] += 1
            return self._row(name, kind, at, rest) if kind == ENDED or row is None else [name, kind, at, *row[3:]]
        if (kind in (QUEUED, STARTED) and row is None) or (kind == STARTED and was_queued):
            if was_queued:
                self.skipped[f"records of type {QUEUED}"] += 1
            row = self._row(name, kind, at, rest)
            if kind == QUEUED:  # a Q record has its own date only
                row[3] = at
            self.jobs[name] = self.number, row
        else:
            self.skipped[f"records of type {kind}"] += 1
        return None

    def _row(self, name: str, kind: str, at: str, rest: str) -> list[str | None]:
        fields = dict(part.split("=", 1) for part in rest.split() if "=" in part)
        since = next((fields[key] for key in (self.since, *PBS_TIMES) if fields.get(key)), None)
        return [name, kind, at, since, *(fields.get(key) for key in ("start", "end", *PBS_KEYS))]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        zone = self.options.timezone
        written = moments(frame["at"], "date", PBS_DATE, zone, records)
        dated = frame["since"].str.contains("/", na=False)
        submitted = np.where(
            dated.to_numpy(dtype=bool),
            moments(frame["since"].where(dated), "date", PBS_DATE, zone, records),
            moments(frame["since"].mask(dated), self.since, "epoch", None, records),
        )
        start, end = (
            moments(frame[name].mask(frame[name] == "0"), name, "epoch", None, records) for name in ("start", "end")
        )
        queued = np.isnat(start) | frame["what"].isin((QUEUED, *GONE)).to_numpy()
        gone = np.where(frame["what"].isin(GONE).to_numpy(), written, end)  # NaT: queued when the log ended
        records.status[queued] = CENSORED
        records.latency = (np.where(queued, gone, start) - submitted) / np.timedelta64(1, "s")
        records.refuse(np.isnat(submitted), f"missing {self.since}: nor is there {' or '.join(PBS_TIMES)}")
        records.refuse(records.latency < 0, lambda row: f"end before start: by {-records.latency[row]:g} s")
        times = np.concatenate([written, end])
        times = times[~np.isnat(times)]
        records.last_seen = times.max() if times.size else None
        records.submitted = submitted
        records.ids = frame["id"].to_numpy(dtype=object)
        records.extras = {name: frame[name] for name in ("id", *PBS_KEYS.values()) if name != "exit_status"}

    def finish(self, source: Source) -> Records | None:
        if not self.jobs:
            return None
        lines, rows = zip(*self.jobs.values(), strict=True)
        return self.records(pd.DataFrame(rows, columns=list(self.names), dtype="str"), np.array(lines, dtype=np.int64))


@register
class Lsf(LineFormat):
    """Latency is start − submission, in s. One that finished without a start (start 0) is censored then."""

    name = "lsf"
    description = "LSF lsb.acct; latency = start - submission of JOB_FINISH events"
    rank = 11
    kind, queue = "jobs", True
    names = (*LSF_FIELDS, *LSF_AFTER_HOSTS)
    groups = ("user", "queue", "project", "from_host", "processors")
    others = "events that are not JOB_FINISH"
    latency_is, submitted_is = "start - submission in s (fields 11 and 8)", "field 8"
    begins, signs = r'(?:.*\n){0,2}?"[A-Z_]+" "[^"]*" \d+ ', ('^"JOB_FINISH" ',)

    def parse(self, line: str) -> Parsed:
        event = LSF_EVENT.match(line)
        if event is None or event[1] != "JOB_FINISH":
            return None if event or line.startswith("#") else f"not an event of LSF: {line[:40]!r}"
        try:
            fields = next(csv.reader([line], delimiter=" "))  # a quote within quotes is doubled
        except csv.Error as error:
            return f"unparseable line: {error}"
        if len(fields) <= max(LSF_FIELDS.values()):
            return f"wrong number of fields: {len(fields)}"
        return [*(fields[at] for at in LSF_FIELDS.values()), *_after_hosts(fields)]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """From three times since 1970, 0 where there is none."""
        times = {name: floats(frame[name], name, records) for name in ("submit", "start", "finished")}
        for name, values in times.items():
            records.refuse(~(values < MILLISECONDS_FROM), f"{name} is no time since 1970")
        submit, start, finished = times.values()
        never = ~(start > 0)
        records.status[never] = CENSORED
        records.refuse(~(submit > 0), "no submission time")
        records.latency = np.where(never, finished, start) - submit
        records.submitted = moments(frame["submit"], "submit", "epoch", None, records)
        index = frame["index"].fillna("0")
        # a job that was requeued finishes more than once: the first start is the wait
        records.ids = (frame["job_number"] + "[" + index + "] " + frame["submit"]).to_numpy(dtype=object)
        records.extras |= {name: frame[name] for name in ("job_number", "index", "job_name")}


def _after_hosts(fields: list[str]) -> list[str | None]:
    """The fields that stand behind two lists of hosts, as far as these can be counted."""
    at = LSF_HOSTS
    for _ in range(2):
        count = fields[at] if at < len(fields) else ""
        if not count.isascii() or not count.isdigit() or len(count) > 6:
            return [None] * len(LSF_AFTER_HOSTS)
        at += 1 + int(count)
    return [fields[at + later] if at + later < len(fields) else None for later in LSF_AFTER_HOSTS.values()]


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
    names = tuple(SGE_FIELDS)
    groups = ("queue", "host", "owner", "group", "project", "department", "pe", "slots")
    others = "comments"
    not_probes = "slave tasks of parallel jobs"
    submitted_is = "submission"

    def sniff(self, head: str) -> bool:
        rows = [line for line in first_lines(head) if not line.startswith("#")]
        return bool(rows) and rows[0].count(":") >= MIN_SGE_FIELDS - 1 and bool(SGE_LINE.match(rows[0]))

    def parse(self, line: str) -> Parsed:
        if line.startswith("#"):
            return None
        fields = line.split(":")
        if len(fields) < MIN_SGE_FIELDS:
            return f"wrong number of fields: {len(fields)} instead of {MIN_SGE_FIELDS} or more"
        return [fields[at] if at < len(fields) else None for at in SGE_FIELDS.values()]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return (frame["pe_task"].notna() & ~frame["pe_task"].isin(("NONE", ""))).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """From three times in seconds or milliseconds, 0 where there is none."""
        times = {name: floats(frame[name], name, records) for name in ("submission", "start", "end")}
        milliseconds = np.max(list(times.values()), axis=0, initial=0) >= MILLISECONDS_FROM
        for name, values in times.items():
            records.refuse(~(values < MAX_MILLISECONDS) & ~np.isnan(values), f"{name} is no time since 1970")
            times[name] = np.where(values > 0, np.where(milliseconds, values / 1000, values), np.nan)
        submission, start, end = times.values()
        never = np.isnan(start)
        records.status[never] = CENSORED
        records.refuse(np.isnan(submission), "no submission time: the job's times are 0")
        records.refuse(never & np.isnan(end), "no latency: the job never started, and the log does not say until when")
        records.latency = np.round(np.where(never, end, start) - submission, 3)
        records.submitted = moments(pd.Series(submission), "submission", "epoch", None, records)
        # a job that was put back into the queue has several lines: the first start is the wait
        task = frame["task"].fillna("")
        records.ids = (frame["job_number"] + "." + task + " " + frame["submission"]).to_numpy(dtype=object)
        records.extras |= {name: frame[name] for name in ("job_number", "task", "job_name")}
        self.latency_is = f"start - submission in {'ms' if milliseconds.any() else 's'}"
