"""Nextflow's trace of a pipeline's tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import absent, moments, told
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED

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


@register
class Nextflow(TableFormat):
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
    delimiter = "\t"
    needed = ("task_id", "status", "submit")
    marks = ("hash",)
    groups = KNOWN
    outcomes = "outcomes by the task's status (the latency is the wait, so a task that ran completed)"
    not_probes = "cached tasks"

    def begin(self, source: Source) -> None:
        """The wait needs a start, or two durations."""
        if "start" not in self.names and not {"duration", "realtime"} <= set(self.names):
            raise MissingColumn(
                f"{source.name}: a trace must have {', '.join(self.needed)}, and start or both duration and realtime; "
                f"it has: {listed(self.names)}"
            )

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Tasks that never ran, as their results were cached."""
        return frame["status"].eq("CACHED").to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the status; what started has waited."""
        records.status[:] = UNKNOWN
        for word, status in STATES.items():
            records.status[frame["status"].eq(word).to_numpy(dtype=bool)] = status
        unknown = records.status == UNKNOWN
        records.refuse(unknown, lambda row: f"unknown status: {str(frame['status'].iloc[row])[:40]!r}")
        submit = moments(frame["submit"], "submit", None, self.options.timezone, records)
        if "start" in frame:
            start = moments(frame["start"], "start", None, self.options.timezone, records)
            records.latency = (start - submit) / np.timedelta64(1, "s")
        else:
            duration, realtime = (_seconds(frame[name], name, records) for name in ("duration", "realtime"))
            records.latency = _difference(duration, realtime)
        started = np.isfinite(records.latency)
        records.status[started & ~unknown] = COMPLETED
        self.tally.add(frame["status"], records)
        records.submitted = submit
        records.ids = frame["task_id"].to_numpy(dtype=object)
        if "name" in frame and "process" not in frame:
            records.extras["process"] = frame["name"].str.replace(r" \(.*\)$", "", regex=True)
        what = "start - submit" if "start" in frame else "duration - realtime"
        records.notes.append(told(what, "submit", records.extras))


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
