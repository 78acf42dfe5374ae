"""Tasks and runs: Nextflow's trace, workflows in the schema of WfCommons, logs of Celery workers, GitHub Actions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import SAY_STATUS, set_statuses
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.rows import JsonRows, Row, RowFormat, epoch
from latfit.logs.source import Source
from latfit.logs.tabular import moments, seconds_of
from latfit.logs.vocabulary import NOTHING, is_blank
from latfit.numbers import Bools
from latfit.table import COMPLETED, STATUSES

STATES = dict.fromkeys(("COMPLETED", "FAILED", "RUNNING"), "completed")
STATES |= dict.fromkeys(("ABORTED", "SUBMITTED", "NEW"), "censored")
# what is known of a task when it is submitted: what it used, and how it ended, is not
KNOWN = "task_id name process tag module queue container attempt cpus memory disk time".split()
CELERY_LINE = (
    r"\[(?P<submitted>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+): \w+/[^\]]+\] +(?:[\w.]+: )?"
    r"(?P<event>Received task:|Task) (?P<task>[\w.]+)\[(?P<id>[\w-]+)\](?P<rest>.*)"
)
CELERY_ENDED = re.compile(r" (?:succeeded in ([\d.e-]+)s|raised|failed|INTERNAL ERROR)")
MAX_TASKS = 1 << 17  # whose times of receipt are kept

CONCLUSIONS = {"success": "completed", "cancelled": "censored", "timed_out": "censored"}
CONCLUSIONS |= dict.fromkeys(("failure", "startup_failure", "stale"), "failed") | {word: word for word in STATUSES}
NOT_RUN = ("skipped", "neutral", "action_required")
DURATIONS = {"duration_seconds": "s", "duration_ms": "ms", "run_duration_ms": "ms", "duration_s": "s", "duration": "s"}
STARTS = ("run_started_at", "started_at", "startedAt", "created_at", "createdAt")
ENDS = ("completed_at", "completedAt", "updated_at", "updatedAt")
IDS = ("run_id", "databaseId", "id")


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
            needed = f"{', '.join(self.needed)}, and start or both duration and realtime"
            raise MissingColumn(f"{source.name}: a trace must have {needed}; it has: {listed(self.names)}")
        self.latency_is = "start - submit" if "start" in self.names else "duration - realtime"
        self.groups = [name for name in KNOWN if name in {*self.names, *(["process"] * ("name" in self.names))}]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["status"].eq("CACHED").to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        set_statuses(records, frame["status"], STATES, "status")
        submit = moments(frame["submit"], "submit", None, self.options.timezone, records)
        if "start" in frame:
            start = moments(frame["start"], "start", None, self.options.timezone, records)
            records.latency = (start - submit) / np.timedelta64(1, "s")
        else:
            duration, realtime = (seconds_of(frame[name], name, "ms", records) for name in ("duration", "realtime"))
            # both are rounded to 0.1 s from a second on, to 1 s from a minute on: the wait may be below 0 by that
            step = np.select([duration >= 60, duration >= 1], [1.0, 0.1], 0.001)
            with np.errstate(invalid="ignore"):  # both are written as `inf`
                wait = np.round(duration - realtime, 3)
            records.latency = np.where((wait < 0) & (wait >= -step), 0.0, wait)
        records.status[np.isfinite(records.latency) & (records.status != UNKNOWN)] = COMPLETED
        self.tally.add(frame["status"], records)
        records.submitted = submit
        records.ids = frame["task_id"].to_numpy(dtype=object)
        if "name" in frame and "process" not in frame:
            records.extras["process"] = frame["name"].str.replace(r" \(.*\)$", "", regex=True)


@register
class WfInstances(JsonRows):
    """Latency is the run time of a task: work that a retry would repeat."""

    name = "wfinstances"
    description = "workflow instances of WfCommons (JSON); latency = runtimeInSeconds"
    rank = 21
    kind, work = "jobs", True
    cells = ("latency",)
    array = "workflow.execution.tasks"
    signs = (r'"schemaVersion"\s*:', '"workflow"')
    paths = (
        "latency=runtimeInSeconds program=command.program task=id machine=machines cores=coreCount read_bytes=readBytes"
    )

    def row(self, value: Row) -> Row | None:
        row = super().row(value)
        return row and {**row, "machine": next(iter(row["machine"] or ()), None)}


@register
class Celery(RowFormat):
    """Latency is the run time of a task; one that raised has taken the time since it was received."""

    name = "celery"
    description = "Celery worker log; latency = the run time of tasks"
    rank = 27
    work = True
    at_end = True
    cells = ("latency", "submitted", "status", "id")
    others = "lines that do not end a task"
    # [2017-12-28 05:51:33,675: INFO/ForkPoolWorker-2] Task app.tasks.add[3e92…] succeeded in 0.165s: None
    signs = (rf"^{CELERY_LINE}",)
    line = re.compile(CELERY_LINE)

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        """Times of receipt are kept for tasks that raise, whose lines have no run time."""
        received: dict[str, Any] = {}

        def read(line: str) -> Row | str | None:
            row = self.row(line)
            if not isinstance(row, dict):
                return row
            event, ended = row.pop("event"), CELERY_ENDED.match(row.pop("rest"))
            if event == "Received task:" and len(received) < MAX_TASKS:
                received[row["id"]] = row["submitted"]
            if ended is None:
                return None
            now, begun = epoch(row["submitted"]), epoch(received.pop(row["id"], None))
            since = None if now is None or begun is None else now - begun
            return {**row, "latency": ended[1] or since, "status": "completed" if ended[1] else "failed"}

        return read


@register
class GitHubActions(TableFormat):
    """Latency is the run's duration, or its end − start (run_started_at or created_at to completed_at or updated_at).

    The conclusion says what became of it: success completed, failure failed, cancelled and timed_out
    censored; skipped runs are left out; one without a conclusion was still out when the log ended.
    """

    name = "github-actions"
    description = "GitHub Actions runs (CSV); latency = duration, outcome = conclusion"
    work = True
    rank = 30
    roles = ("latency",)
    uses = ("statuses", "unit")
    outcomes = "outcomes by conclusion"
    not_probes = "runs that were skipped"

    def sniff(self, head: str) -> bool:
        names = set(head_fields(head, ","))
        runs = names & {"run_id", "databaseId", "workflow", "workflowName", "run_number", "event", "head_branch"}
        return "conclusion" in names and all((names & set(STARTS), runs, names & {*DURATIONS, *ENDS}))

    def begin(self, source: Source) -> None:
        start, end, usual = (
            next((name for name in candidates if name in self.names), "") for candidates in (STARTS, ENDS, DURATIONS)
        )
        measured = self.options.columns.get("latency") or usual
        if "conclusion" not in self.names or not start or (measured or end) not in self.names:
            raise MissingColumn(
                f"{source.name}: runs need conclusion, one of {', '.join(STARTS)}, and a duration "
                f"({', '.join(DURATIONS)}) or an end ({', '.join(ENDS)}); there are: {listed(self.names)}"
            )
        self.time, self.end, self.measured = start, end, measured
        self.unit = self.options.unit or DURATIONS.get(measured, "s")
        self.latency_is = "" if measured else f"{end} - {start}"
        self.groups = [name for name in self.names if name not in (measured, start, end, "status", "conclusion")]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["conclusion"].isin(NOT_RUN).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        words = frame["conclusion"].str.strip().str.lower()
        running = is_blank(words, NOTHING)
        outcomes = CONCLUSIONS | self.options.lowered_statuses | {"": "censored"}
        set_statuses(records, words.mask(running, ""), outcomes, "conclusion", SAY_STATUS)
        records.submitted = moments(frame[self.time], self.time, None, "UTC", records)
        if self.measured:
            records.latency = seconds_of(frame[self.measured], self.measured, self.unit, records)
        else:
            ended = moments(frame[self.end], self.end, None, "UTC", records)
            records.latency = (ended - records.submitted) / np.timedelta64(1, "s")
        records.latency[running] = np.nan
        self.tally.add(frame["conclusion"], records)
        key = next((name for name in IDS if name in self.names), None)
        records.ids = frame[key].to_numpy(dtype=object) if key and "attempt" not in self.names else None


@register
class WorkflowRuns(JsonRows):
    """Latency is the last update − the start of a run; its conclusion says what became of it."""

    name = "github-runs"
    description = "GitHub's workflow_runs, or gh run list --json; latency = updated_at - run_started_at"
    work = True
    rank = 21
    begins, signs = r"[\[{]", ('"conclusion"', '"(?:workflow_runs|updatedAt|updated_at)"')
    paths = "submitted=began status=conclusion name event head_branch run_attempt run_number workflowName headBranch"

    def row(self, value: Row) -> Row | None:
        began, ended = (next(filter(None, map(value.get, names)), None) for names in (STARTS, ENDS))
        row = super().row({**value, "began": began})
        if row is None or row["status"] in NOT_RUN:
            return None
        return {**row, "ended": ended} if row["status"] else {**row, "ended": None, "status": "in_progress"}
