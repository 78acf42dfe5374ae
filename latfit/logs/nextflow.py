"""Nextflow's trace of a pipeline's tasks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import Chunk, head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import absent, moments, told
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED
from latfit.logs.times import numeric

NEEDED = ("task_id", "status", "submit")
STATES = {"COMPLETED": COMPLETED, "FAILED": COMPLETED, "RUNNING": COMPLETED, "ABORTED": CENSORED,
          "SUBMITTED": CENSORED, "NEW": CENSORED}  # fmt: skip
# what is known of a task when it is submitted: what it used, and how it ended, is not
KNOWN = (
    "task_id",
    "name",
    "process",
    "tag",
    "module",
    "queue",
    "container",
    "attempt",
    "cpus",
    "memory",
    "disk",
    "time",
)
CACHED = "cached tasks"


@register
class Nextflow(Format):
    """Latency is the wait of a task: start − submit where the trace has both, else duration − realtime.

    A task that started is completed, FAILED ones too: they waited. One that was aborted or still
    queued is censored; cached tasks never ran, and are left out.
    """

    name = "nextflow"
    description = "Nextflow trace; latency = start - submit, or duration - realtime"
    rank = 27
    uses = ("timezone",)
    kind = "jobs"
    queue = True

    def sniff(self, head: str) -> bool:
        """By the trace's column names."""
        return {*NEEDED, "hash"} <= set(head_fields(head, "\t"))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the tasks."""
        names = head_fields(source.text, "\t")
        missing = [name for name in NEEDED if name not in names]
        pair = {"start"} <= set(names)
        if missing or not (pair or {"duration", "realtime"} <= set(names)):
            raise MissingColumn(
                f"{source.name}: a trace must have {', '.join(NEEDED)}, and start or both duration and realtime; "
                f"it has: {listed(names)}"
            )
        outcomes = OutcomeTally("outcomes by the task's status (the latency is the wait, so a task that ran completed)")

        def convert(chunk: Chunk) -> Records:
            cached = chunk.frame["status"].eq("CACHED").to_numpy(dtype=bool)
            frame = chunk.frame[~cached].reset_index(drop=True)
            records = _records(frame, chunk.line[~cached], options, outcomes, pair=pair)
            if cached.any():
                records.skipped[CACHED] = int(cached.sum())
            return records

        types = dict.fromkeys(names, pa.string())
        yield from read_delimited(source, "\t", names, types, convert, header=True)
        yield outcomes.last()


def _records(
    frame: pd.DataFrame, line: NDArray[np.int64], options: ReadOptions, outcomes: OutcomeTally, *, pair: bool
) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, UNKNOWN, dtype=np.int8))
    for word, status in STATES.items():
        records.status[frame["status"].eq(word).to_numpy(dtype=bool)] = status
    unknown = records.status == UNKNOWN
    records.refuse(unknown, lambda row: f"unknown status: {str(frame['status'].iloc[row])[:40]!r}")
    submit = moments(frame["submit"], "submit", None, options.timezone, records)
    if pair:
        start = moments(frame["start"], "start", None, options.timezone, records)
        records.latency = (start - submit) / np.timedelta64(1, "s")
    else:
        duration, realtime = (_seconds(frame[name], name, records) for name in ("duration", "realtime"))
        records.latency = _difference(duration, realtime)
    started = np.isfinite(records.latency)
    records.status[started & ~unknown] = COMPLETED
    outcomes.add(frame["status"], records)
    records.submitted = submit
    records.ids = frame["task_id"].to_numpy(dtype=object)
    records.raw = frame
    records.extras = {name: frame[name] for name in KNOWN if name in frame}
    if "name" in frame and "process" not in frame:
        records.extras["process"] = frame["name"].str.replace(r" \(.*\)$", "", regex=True)
    what = "start - submit" if pair else "duration - realtime"
    records.notes.append(told(what, "submit", records.extras))
    return records


def _seconds(column: pd.Series[str], name: str, records: Records) -> NDArray[np.float64]:
    """Spans such as `1m 20s` or `241ms`; bare numbers (a raw trace) are milliseconds."""
    text = column.mask(absent(column))
    raw = numeric(text)
    words = text.where(np.isnan(raw) & text.str.match(r"[\d.]+ ?[a-z]", na=False))
    words = words.str.replace(r"d(?![A-Za-z])", "D", regex=True)  # a day; pandas warns of a small one
    spans = pd.to_timedelta(words, errors="coerce").dt.total_seconds().to_numpy(dtype=np.float64)
    seconds = np.where(np.isnan(raw), spans, raw / 1000)
    seconds = np.where(np.isfinite(seconds), seconds, np.nan)
    bad = np.isnan(seconds) & text.notna().to_numpy()
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return seconds


def _difference(duration: NDArray[np.float64], realtime: NDArray[np.float64]) -> NDArray[np.float64]:
    """The wait: duration − realtime, at least 0.

    From a second on both are rounded to 0.1 s, and from a minute on to 1 s, so the difference may be below 0 by that.
    """
    step = np.where(duration >= 60, 1.0, np.where(duration >= 1, 0.1, 0.001))
    wait = duration - realtime
    rounding = (wait < 0) & (wait >= -step)
    return np.asarray(np.round(np.where(rounding, 0.0, wait), 3), dtype=np.float64)
