"""Runs of GitHub Actions: a table, or what its API answers (`gh api repos/OWNER/REPO/actions/runs`)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import register
from latfit.logs.lines import SAY_STATUS, absent, floats, moments, set_statuses
from latfit.logs.records import Records
from latfit.logs.rows import JsonRows, Row
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import STATUSES
from latfit.units import in_seconds

CONCLUSIONS = {"success": "completed", "cancelled": "censored", "timed_out": "censored"}
CONCLUSIONS |= dict.fromkeys(("failure", "startup_failure", "stale"), "failed") | {word: word for word in STATUSES}
NOT_RUN = ("skipped", "neutral", "action_required")
DURATIONS = {"duration_seconds": "s", "duration_ms": "ms", "run_duration_ms": "ms", "duration_s": "s", "duration": "s"}
STARTS = ("run_started_at", "started_at", "startedAt", "created_at", "createdAt")
ENDS = ("completed_at", "completedAt", "updated_at", "updatedAt")
IDS = ("run_id", "databaseId", "id")


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
        running = absent(words)
        outcomes = CONCLUSIONS | self.options.lowered_statuses | {"": "censored"}
        set_statuses(records, words.mask(running, ""), outcomes, "conclusion", SAY_STATUS)
        records.submitted = moments(frame[self.time], self.time, None, "UTC", records)
        if self.measured:
            records.latency = in_seconds(floats(frame[self.measured], self.measured, records), self.unit)
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
    description = "GitHub's workflow_runs (JSON); latency = updated_at - run_started_at"
    work = True
    rank = 21
    begins, signs = r"\{", ('"workflow_runs"',)
    paths = "submitted=run_started_at ended=updated_at status=conclusion name event head_branch run_attempt run_number"

    def row(self, value: Row) -> Row | None:
        row = super().row({**value, "run_started_at": value.get("run_started_at") or value.get("created_at")})
        if row is None or row["status"] in NOT_RUN:
            return None
        return row if row["status"] else {**row, "ended": None, "status": "in_progress"}
