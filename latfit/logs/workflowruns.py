"""Runs of GitHub Actions as its API answers: `gh api repos/OWNER/REPO/actions/runs`."""

from __future__ import annotations

from typing import Any

from latfit.logs.formats import register
from latfit.logs.rows import JsonRows, Row

NOT_RUN = ("skipped", "neutral", "action_required")


@register
class WorkflowRuns(JsonRows):
    """Latency is the last update − the start of a run; its conclusion says what became of it."""

    name = "github-runs"
    description = "GitHub's workflow_runs (JSON); latency = updated_at - run_started_at"
    rank = 21

    def sniff(self, head: str) -> bool:
        """By the array's name."""
        return head.lstrip().startswith("{") and '"workflow_runs"' in head

    def row(self, value: dict[str, Any]) -> Row | None:
        """An object of the array `workflow_runs`."""
        began, conclusion = value.get("run_started_at") or value.get("created_at"), value.get("conclusion")
        if began is None or conclusion in NOT_RUN:
            return None
        ended = value.get("updated_at") if conclusion else None
        groups = {name: value.get(name) for name in ("name", "event", "head_branch", "run_attempt", "run_number")}
        return {"submitted": began, "ended": ended, "status": conclusion or "in_progress", **groups}
