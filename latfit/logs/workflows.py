"""Tasks of scientific workflows: Nextflow's trace, and instances in the JSON schema of WfCommons."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import absent, moments, set_statuses
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.rows import JsonRows, Row, inside
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import COMPLETED

STATES = dict.fromkeys(("COMPLETED", "FAILED", "RUNNING"), "completed")
STATES |= dict.fromkeys(("ABORTED", "SUBMITTED", "NEW"), "censored")
# what is known of a task when it is submitted: what it used, and how it ended, is not
KNOWN = "task_id name process tag module queue container attempt cpus memory disk time".split()


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
    outcomes = "outcomes by the task's status (the latency is the wait, so a task that ran completed)"
    submitted_is = "submit"
    not_probes = "cached tasks"

    def begin(self, source: Source) -> None:
        if "start" not in self.names and not {"duration", "realtime"} <= set(self.names):
            raise MissingColumn(
                f"{source.name}: a trace must have {', '.join(self.needed)}, and start or both duration and realtime; "
                f"it has: {listed(self.names)}"
            )
        self.latency_is = "start - submit" if "start" in self.names else "duration - realtime"
        named = {*self.names, *(["process"] if "name" in self.names else [])}
        self.groups = [name for name in KNOWN if name in named]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["status"].eq("CACHED").to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        set_statuses(records, frame["status"], STATES, "status")
        submit = moments(frame["submit"], "submit", None, self.options.timezone, records)
        if "start" in frame:
            start = moments(frame["start"], "start", None, self.options.timezone, records)
            records.latency = (start - submit) / np.timedelta64(1, "s")
        else:
            duration, realtime = (_seconds(frame[name], name, records) for name in ("duration", "realtime"))
            # both are rounded to 0.1 s from a second on, to 1 s from a minute on: the wait may be below 0 by that
            step = np.where(duration >= 60, 1.0, np.where(duration >= 1, 0.1, 0.001))
            wait = duration - realtime
            records.latency = np.asarray(np.round(np.where((wait < 0) & (wait >= -step), 0.0, wait), 3), np.float64)
        records.status[np.isfinite(records.latency) & (records.status != UNKNOWN)] = COMPLETED
        self.tally.add(frame["status"], records)
        records.submitted = submit
        records.ids = frame["task_id"].to_numpy(dtype=object)
        if "name" in frame and "process" not in frame:
            records.extras["process"] = frame["name"].str.replace(r" \(.*\)$", "", regex=True)


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


@register
class WfInstances(JsonRows):
    """Latency is the run time of a task: work that a retry would repeat."""

    name = "wfinstances"
    description = "workflow instances of WfCommons (JSON); latency = runtimeInSeconds"
    rank = 21
    kind = "jobs"
    cells = ("latency", "status")
    array = "workflow.execution.tasks"

    def sniff(self, head: str) -> bool:
        return re.search(r'"schemaVersion"\s*:', head) is not None and '"workflow"' in head

    def row(self, value: dict[str, Any]) -> Row | None:
        """An object of the array `workflow.execution.tasks`."""
        latency = value.get("runtimeInSeconds")
        if not isinstance(latency, (int, float)):
            return None
        machines = value.get("machines") or [None]
        groups = {"program": inside(value, "command.program"), "task": value.get("id"), "machine": machines[0]}
        sizes = {"cores": value.get("coreCount"), "read_bytes": value.get("readBytes")}
        return {"latency": latency, "status": "completed", **groups, **sizes}
