"""SLURM accounting: the output of `sacct --parsable2`, and jobs as JSON (`sacct --json`, `squeue --json`)."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import register
from latfit.logs.lines import moments
from latfit.logs.records import Records
from latfit.logs.rows import UNKNOWN_TIMES, JsonRows, Row, inside
from latfit.logs.source import Source
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
