"""Tasks and runs: Nextflow's trace, workflows in the schema of WfCommons, logs of Celery workers, GitHub Actions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.jsonlines import JsonRows
from latfit.logs.lines import LineFormat, Row, epoch, named
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import seconds_of
from latfit.logs.vocabulary import NOTHING, is_blank
from latfit.numbers import Bools

STATES = dict.fromkeys(("COMPLETED", "FAILED", "RUNNING"), "completed")
STATES |= dict.fromkeys(("ABORTED", "SUBMITTED", "NEW"), "censored")
# what is known of a task when it is submitted: what it used, and how it ended, is not
KNOWN = "task_id name process tag module queue container attempt cpus memory disk time".split()
CELERY_LINE = (
    r"\[(?P<submitted>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+): \w+/[^\]]+\] +(?:[\w.]+: )?"
    r"(?P<event>Received task:|Task) (?P<task>[\w.]+)\[(?P<id>[\w-]+)\](?P<rest>.*)"
)
CELERY_ENDED = re.compile(r"Task (?:succeeded in ([\d.e-]+)s|raised|failed|INTERNAL ERROR)")
MAX_TASKS = 1 << 17  # whose times of receipt are kept

CONCLUSIONS = {"success": "completed", "cancelled": "censored", "timed_out": "censored"}
CONCLUSIONS |= dict.fromkeys(("failure", "startup_failure", "stale"), "failed")
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
    header = ("task_id", "status", "submit", "hash")
    needed = ("task_id", "status", "submit")
    cells = "submitted=submit ended=start status=outcome id=task_id"
    counted_by = "status"  # the latency is the wait, so a task that ran completed
    not_probes = "tasks from the cache"

    def begin(self, source: Source) -> None:
        super().begin(source)
        if "start" not in self.names:
            if not {"duration", "realtime"} <= set(self.names):
                needed = f"{', '.join(self.needed)}, and start or both duration and realtime"
                raise MissingColumn(f"{source.name}: a trace must have {needed}; it has: {listed(self.names)}")
            self.columns = named("latency submitted=submit status=outcome id=task_id")
            self.latency_is = "duration - realtime"
        self.groups = [name for name in KNOWN if name in {*self.names, *(["process"] * ("name" in self.names))}]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["status"].eq("CACHED").to_numpy(dtype=bool)

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        if "latency" in self.columns:
            none = Records.unusable()
            duration, realtime = (seconds_of(frame[name], name, "ms", none) for name in ("duration", "realtime"))
            # both are rounded to 0.1 s from a second on, to 1 s from a minute on: the wait may be below 0 by that
            step = np.select([duration >= 60, duration >= 1], [1.0, 0.1], 0.001)
            with np.errstate(invalid="ignore"):  # both are written as `inf`
                wait = np.round(duration - realtime, 3)
            frame = frame.assign(latency=np.where((wait < 0) & (wait >= -step), 0.0, wait))
        began = ~is_blank(frame["start" if "start" in frame else "latency"], NOTHING)
        outcome = frame["status"].astype("str").replace(STATES)
        if "name" in frame and "process" not in frame:
            frame = frame.assign(process=frame["name"].str.replace(r" \(.*\)$", "", regex=True))
        return frame.assign(outcome=outcome.mask(began & outcome.eq("censored"), "completed"))

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        for name in ("duration", "realtime") if "latency" in self.columns else ():
            seconds_of(frame[name], name, "ms", records)  # refuses what is no duration


@register
class WfInstances(JsonRows):
    """Latency is the run time of a task: work that a retry would repeat."""

    name = "wfinstances"
    description = "workflow instances of WfCommons (JSON); latency = runtimeInSeconds"
    rank = 21
    kind, work = "jobs", True
    cells = "latency"
    array = "workflow.execution.tasks"
    signs = (r'"schemaVersion"\s*:', '"workflow"')
    paths = (
        "latency=runtimeInSeconds program=command.program task=id machine=machines cores=coreCount read_bytes=readBytes"
    )

    def probe(self, cells: Row) -> Row:
        return {**cells, "machine": next(iter(cells["machine"] or ()), None)}


@register
class Celery(LineFormat):
    """Latency is the run time of a task; one that raised has taken the time since it was received."""

    name = "celery"
    description = "Celery worker log; latency = the run time of tasks"
    rank = 27
    work = True
    at_end = True
    cells = "latency submitted status id"
    others = "lines without the end of a task"
    # [2017-12-28 05:51:33,675: INFO/ForkPoolWorker-2] Task app.tasks.add[3e92…] succeeded in 0.165s: None
    signs = (rf"^{CELERY_LINE}",)
    line = re.compile(CELERY_LINE)

    def begin(self, source: Source) -> None:
        self.received: dict[str, Any] = {}

    def probe(self, cells: Row) -> Row | None:
        """Times of receipt are kept for tasks that raise, whose lines have no run time."""
        event = f"{cells.pop('event')}{cells.pop('rest')}"
        if re.match("Received task|Task received", event) and len(self.received) < MAX_TASKS:
            self.received[cells["id"]] = cells["submitted"]
        ended = CELERY_ENDED.match(event)
        if ended is None:
            return None
        now, begun = epoch(cells["submitted"]), epoch(self.received.pop(cells["id"], None))
        since = None if now is None or begun is None else now - begun
        return {**cells, "latency": ended[1] or since, "status": "completed" if ended[1] else "failed"}


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
    cells = "status=conclusion"
    outcomes = CONCLUSIONS
    not_probes = "runs without a result"
    header = (
        "conclusion",
        "|".join(STARTS),
        "run_id|databaseId|workflow|workflowName|run_number|event|head_branch",
        "|".join((*DURATIONS, *ENDS)),
    )
    needed = ("conclusion", "|".join(STARTS), "|".join((*DURATIONS, *ENDS)))

    def begin(self, source: Source) -> None:
        super().begin(source)
        self.options = replace(self.options, timezone="UTC")
        start, end, usual, key = (
            next((name for name in candidates if name in self.names), "")
            for candidates in (STARTS, ENDS, DURATIONS, IDS)
        )
        measured = self.options.columns.get("latency") or usual
        self.columns |= {"submitted": start, **({"latency": measured} if measured else {"ended": end})}
        self.columns |= {"id": key} if key and "attempt" not in self.names else {}
        self.unit = self.options.unit or DURATIONS.get(measured, "s")
        self.latency_is = f"{measured} in {self.unit}" if measured else f"{end} - {start}"
        self.groups = [name for name in self.names if name not in (measured, start, end, "status", "conclusion")]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["conclusion"].isin(NOT_RUN).to_numpy(dtype=bool)

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A run without a conclusion goes on."""
        running, over = is_blank(frame["conclusion"], NOTHING), self.columns.get("latency") or self.columns["ended"]
        conclusion = frame["conclusion"].astype("str").mask(running, "in_progress")
        return frame.assign(**{"conclusion": conclusion, over: frame[over].mask(running)})


@register
class WorkflowRuns(JsonRows):
    """Latency is the last update − the start of a run; its conclusion says what became of it."""

    name = "github-runs"
    description = "GitHub's workflow_runs, or gh run list --json; latency = updated_at - run_started_at"
    work = True
    rank = 21
    begins, signs = r"[\[{]", ('"conclusion"', '"(?:workflow_runs|updatedAt|updated_at)"')
    paths = (
        f"submitted={'|'.join(STARTS)} ended={'|'.join(ENDS)} status=conclusion "
        "name event head_branch run_attempt run_number workflowName headBranch"
    )

    def probe(self, cells: Row) -> Row | None:
        if cells["status"] in NOT_RUN:
            return None
        return cells if cells["status"] else {**cells, "ended": None, "status": "in_progress"}
