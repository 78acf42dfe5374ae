"""Grid Engine accounting: SGE and its successors (seconds), UGE (milliseconds in the same layout)."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, first_lines, floats, moments, told
from latfit.logs.records import Records
from latfit.numbers import Bools
from latfit.table import CENSORED

FIELDS = {
    "queue": 0, "host": 1, "group": 2, "owner": 3, "job_name": 4, "job_number": 5, "account": 6, "submission": 8,
    "start": 9, "end": 10, "failed": 11, "exit_status": 12, "project": 31, "department": 32, "pe": 33, "slots": 34,
    "task": 35, "pe_task": 41,
}  # fmt: skip
FEWEST = 36  # fields of the oldest versions; newer ones have 45 and more
MILLISECONDS_FROM = 1e11  # times since 1970 of this size are in ms
MAX_TIME = 1e15
LIKE = re.compile(r"[^:]*:[^:]+:[^:]*:[^:]*:[^:]*:\d+:[^:]*:-?\d+:\d+:\d+:\d+:", re.ASCII)


@register
class Sge(LineFormat):
    """Latency is start − submission; seconds, or milliseconds where the times have that size (UGE).

    A job that started is completed. One that never did (start 0) is censored at its end; where the log has
    no end either, it is refused. Slave tasks of parallel jobs are left out; array tasks are jobs.
    """

    name = "sge"
    description = "SGE or UGE accounting; latency = start - submission"
    rank = 13
    kind = "jobs"
    queue = True
    names = tuple(FIELDS)
    groups = ("queue", "host", "owner", "group", "project", "department", "pe", "slots")
    others = "comments"
    not_probes = "slave tasks of parallel jobs"

    def sniff(self, head: str) -> bool:
        """Enough fields between colons, with numbers where the job and its times are."""
        rows = [line for line in first_lines(head) if not line.startswith("#")]
        return bool(rows) and rows[0].count(":") >= FEWEST - 1 and bool(LIKE.match(rows[0]))

    def parse(self, line: str) -> Parsed:
        """The fields between colons."""
        if line.startswith("#"):
            return None
        fields = line.split(":")
        if len(fields) < FEWEST:
            return f"wrong number of fields: {len(fields)} instead of {FEWEST} or more"
        return [fields[at] if at < len(fields) else None for at in FIELDS.values()]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Slave tasks."""
        return (frame["pe_task"].notna() & ~frame["pe_task"].isin(("NONE", ""))).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """From three times in seconds or milliseconds, 0 where there is none."""
        times = {name: floats(frame[name], name, records) for name in ("submission", "start", "end")}
        milliseconds = np.max(list(times.values()), axis=0, initial=0) >= MILLISECONDS_FROM
        for name, values in times.items():
            records.refuse(~(values < MAX_TIME) & ~np.isnan(values), f"{name} is no time since 1970")
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
        unit = "ms" if milliseconds.any() else "s"
        records.notes.append(told(f"start - submission in {unit}", "submission", self.groups))
