"""Tasks: Nextflow's trace, workflow instances in the JSON schema of WfCommons, and logs of Celery workers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import absent, moments, set_statuses
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.rows import JsonRows, Row, RowFormat, epoch, inside, sent_at
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import COMPLETED

STATES = dict.fromkeys(("COMPLETED", "FAILED", "RUNNING"), "completed")
STATES |= dict.fromkeys(("ABORTED", "SUBMITTED", "NEW"), "censored")
# what is known of a task when it is submitted: what it used, and how it ended, is not
KNOWN = "task_id name process tag module queue container attempt cpus memory disk time".split()
CELERY_LINE = (
    r"\[(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+): \w+/[^\]]+\] +(?:[\w.]+: )?(?P<event>Received task:|Task) "
    r"(?P<task>[\w.]+)\[(?P<id>[\w-]+)\](?P<rest>.*)"
)
CELERY_ENDED = re.compile(r" (?:succeeded in ([\d.e-]+)s|raised|failed|INTERNAL ERROR)")
MAX_TASKS = 1 << 17  # whose times of receipt are kept


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
    kind, queue = "jobs", True
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
    kind, work = "jobs", True
    cells = ("latency", "status")
    array = "workflow.execution.tasks"
    signs = (r'"schemaVersion"\s*:', '"workflow"')

    def row(self, value: dict[str, Any]) -> Row | None:
        latency = value.get("runtimeInSeconds")
        if not isinstance(latency, (int, float)):
            return None
        machines = value.get("machines") or [None]
        groups = {"program": inside(value, "command.program"), "task": value.get("id"), "machine": machines[0]}
        sizes = {"cores": value.get("coreCount"), "read_bytes": value.get("readBytes")}
        return {"latency": latency, "status": "completed", **groups, **sizes}


@register
class Celery(RowFormat):
    """Latency is the run time of a task; one that raised has taken the time since it was received."""

    name = "celery"
    description = "Celery worker log; latency = the run time of tasks"
    rank = 27
    work = True
    cells = ("latency", "submitted", "status", "id")
    others = "lines that do not end a task"
    signs = (rf"^{CELERY_LINE}",)

    def row(self, line: str) -> Row | None:
        """`[2017-12-28 05:51:33,675: INFO/ForkPoolWorker-2] Task app.tasks.add[3e92…] succeeded in 0.165s: None`."""
        return self.rows()(line)

    def rows(self) -> Callable[[str], Row | None]:
        """Times of receipt are kept for tasks that raise, whose lines have no run time."""
        received: dict[str, float | None] = {}

        def read(line: str) -> Row | None:
            match = re.match(CELERY_LINE, line)
            if match is None:
                return None
            now, task = epoch(match["moment"]), match["id"]
            if match["event"] == "Received task:":
                if len(received) < MAX_TASKS:
                    received[task] = now
                return None
            ended = CELERY_ENDED.match(match["rest"])
            if ended is None:
                return None
            begun = received.pop(task, None)
            latency = float(ended[1]) if ended[1] else now - begun if now is not None and begun is not None else None
            submitted = None if latency is None else sent_at(now, latency)
            status = "completed" if ended[1] else "failed"
            return {"latency": latency, "submitted": submitted, "status": status, "id": task, "task": match["task"]}

        return read
