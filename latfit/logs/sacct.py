"""SLURM accounting: the output of `sacct --parsable2`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import parse_times
from latfit.table import CENSORED, COMPLETED

# what XDMoD asks sacct for, the usual choice where the output has no header
WITHOUT_HEADER = (
    "jobid", "jobidraw", "cluster", "partition", "qos", "account", "group", "gid", "user", "uid", "submit", "eligible",
    "start", "end", "elapsed", "exitcode", "state", "nnodes", "ncpus", "reqcpus", "reqmem", "reqtres", "alloctres",
    "timelimit", "nodelist", "jobname",
)  # fmt: skip
EXPORT = ("JobID", "Submit", "Eligible", "Start", "End", "Elapsed", "State", "NodeList", "Partition")
NEEDED = ("jobid", "submit", "start", "end", "state")
JOB = re.compile(r"\d+(_\d+|_\[.*\])?(\.\w+)?")
STATE = re.compile("COMPLETED|FAILED|TIMEOUT|NODE_FAIL|PENDING|RUNNING|PREEMPTED|OUT_OF_MEMORY|CANCELLED.*")
NO_TIME = ("Unknown", "None", "")


@register
class Sacct(Format):
    """Latency is start − submit (`--column submitted=eligible` counts from when the job could start).

    A job that started is completed. One cancelled while queued (start = end, no node) is censored
    when it was cancelled; one still pending, when the log ends. Steps of a job are left out.
    """

    name = "sacct"
    description = "sacct --parsable2, with or without header; latency = start - submit"
    rank = 20
    kind = "jobs"
    queue = True
    roles = ("submitted",)
    uses = ("time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """A header with sacct's names, or 26 fields with times where they should be."""
        fields = head_fields(head, "|")
        lowered = [field.lower() for field in fields]
        if "submit" in lowered and "state" in lowered and len(fields) > 3:
            return True
        if len(fields) == len(WITHOUT_HEADER) and all(_is_time(fields[at]) for at in (10, 11)):
            return True
        return len(fields) > 3 and JOB.fullmatch(fields[0]) is not None and any(map(STATE.fullmatch, fields[1:]))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the jobs."""
        first = [field.lower() for field in head_fields(source.text, "|")]
        header = "submit" in first
        if not header and len(first) != len(WITHOUT_HEADER):
            raise MissingColumn(
                f"{source.name}: this looks like sacct's output without a header, and its {len(first)} fields are not "
                f"known. Export it with: sacct --parsable2 --format={','.join(EXPORT)}"
            )
        names = first if header else list(WITHOUT_HEADER)
        names = [name or f"column{at}" for at, name in enumerate(names)]
        since = options.columns.get("submitted", "submit").lower()
        for name in (*NEEDED, since):
            if name not in names:
                raise MissingColumn(f"{source.name}: sacct's field {name!r} is missing; there are: {listed(names)}")

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            step = frame["jobid"].str.contains(".", regex=False, na=False).to_numpy(dtype=bool)
            records = _records(frame[~step], line[~step], since, options)
            if step.any():
                records.skipped["steps of jobs"] = int(step.sum())
            return records

        types = dict.fromkeys(names, pa.string())
        yield from read_delimited(source, "|", names, types, convert, header=header)


def _records(frame: pd.DataFrame, line: NDArray[np.int64], since: str, options: ReadOptions) -> Records:
    frame = frame.reset_index(drop=True)
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    times = {}
    for name in (since, "start", "end"):
        column = frame[name].where(~frame[name].isin(NO_TIME))
        times[name], bad = parse_times(column, name, options.time_format or "iso", options.timezone)
        records.refuse(bad, lambda row, c=column, n=name: f"unparseable {n}: {c.iloc[row][:40]!r}")  # type: ignore[misc]
    submitted, start, end = times[since], times["start"], times["end"]
    records.refuse(np.isnat(submitted) & records.kept, f"missing {since}")
    queued = np.isnat(start)
    if "nodelist" in frame:
        queued |= (frame["nodelist"] == "None assigned").to_numpy() & (start == end)
    else:
        cancelled = frame["state"].str.startswith("CANCELLED", na=False).to_numpy() & (start == end)
        queued |= cancelled & (frame["elapsed"] == "00:00:00").to_numpy() if "elapsed" in frame else cancelled
    records.status[queued] = CENSORED
    seen_until = np.where(queued, end, start)  # no end: still pending when the log ends
    records.latency = (seen_until - submitted) / np.timedelta64(1, "s")
    records.refuse(
        records.latency < 0, lambda row: f"end before start: {seen_until[row]} comes before {since} {submitted[row]}"
    )
    known = ~np.isnat(end)
    records.last_seen = end[known].max() if known.any() else None
    records.submitted = submitted
    records.raw = frame
    records.ids = frame["jobid"].to_numpy(dtype=object)
    records.extras = {str(name): frame[name] for name in frame.columns if name not in ("submit", "start", "end")}
    return records


def _is_time(text: str) -> bool:
    return len(text) == 19 and text[4] == text[7] == "-" and text[10] == "T"
