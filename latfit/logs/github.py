"""Runs of GitHub Actions as a table; what became of a run is its conclusion."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import absent, floats, moments
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED, STATUSES
from latfit.units import in_seconds

WORDS = {
    "success": "completed", "failure": "failed", "startup_failure": "failed", "stale": "failed",
    "cancelled": "censored", "timed_out": "censored", **{status: status for status in STATUSES},
}  # fmt: skip
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
    rank = 30
    roles = ("latency",)
    uses = ("statuses", "unit")
    outcomes = "outcomes by conclusion"
    not_probes = "runs that were skipped"
    start: str
    end: str | None
    measured: str | None
    unit: str

    def sniff(self, head: str) -> bool:
        """By the columns conclusion, a start, and one that only runs have."""
        names = set(head_fields(head, ","))
        runs = names & {"run_id", "databaseId", "workflow", "workflowName", "run_number", "event", "head_branch"}
        measured = names & {*DURATIONS, *ENDS}
        return "conclusion" in names and bool(names & set(STARTS)) and bool(runs) and bool(measured)

    def begin(self, source: Source) -> None:
        """Which columns are start, end and duration."""
        names = self.names
        start, end = (next((name for name in usual if name in names), None) for usual in (STARTS, ENDS))
        measured = self.options.columns.get("latency") or next((name for name in DURATIONS if name in names), None)
        missing = (measured is None and end is None) or (measured is not None and measured not in names)
        if "conclusion" not in names or start is None or missing:
            raise MissingColumn(
                f"{source.name}: runs need conclusion, one of {', '.join(STARTS)}, and a duration "
                f"({', '.join(DURATIONS)}) or an end ({', '.join(ENDS)}); there are: {listed(names)}"
            )
        self.start, self.end, self.measured = start, end, measured
        self.unit = self.options.unit or DURATIONS.get(measured or "", "s")
        self.latency_is = f"{measured} in {self.unit}" if measured else f"{end} - {start}"
        self.submitted_is = start
        self.groups = [name for name in names if name not in (measured, start, end, "status", "conclusion")]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Runs that were skipped."""
        return frame["conclusion"].isin(NOT_RUN).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the conclusion; the latency from a duration or an end."""
        records.status = _statuses(frame, records, self.options)
        records.submitted = moments(frame[self.start], self.start, None, "UTC", records)
        records.latency = _latency(frame, self.measured, self.end, self.unit, records)
        self.tally.add(frame["conclusion"], records)
        key = next((name for name in IDS if name in self.names), None)
        records.ids = frame[key].to_numpy(dtype=object) if key and "attempt" not in self.names else None


def _statuses(frame: pd.DataFrame, records: Records, options: ReadOptions) -> NDArray[np.int8]:
    words = frame["conclusion"].str.strip().str.lower()
    running = absent(words)
    table = WORDS | options.lowered_statuses
    codes = words.map({word: STATUSES.index(status) for word, status in table.items()}).fillna(UNKNOWN)
    status = np.array(codes, dtype=np.int8)
    status[running] = CENSORED
    hint = "say what it means: --status completed|failed|censored|lost=WORD"
    records.refuse(status == UNKNOWN, lambda row: f"unknown conclusion: {str(words.iloc[row])[:40]!r}; {hint}")
    return status


def _latency(
    frame: pd.DataFrame, measured: str | None, end: str | None, unit: str, records: Records
) -> NDArray[np.float64]:
    """The duration, or the time from start to end; none for a run that goes on."""
    if measured is not None:
        latency = in_seconds(floats(frame[measured], measured, records), unit)
    else:
        assert records.submitted is not None
        ended = moments(frame[end], str(end), None, "UTC", records)
        latency = (ended - records.submitted) / np.timedelta64(1, "s")
    latency[absent(frame["conclusion"])] = np.nan
    return latency
