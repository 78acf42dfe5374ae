"""Workflow instances in the JSON schema of WfCommons."""

from __future__ import annotations

import re
from typing import Any

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, JsonRows, Row, inside


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
        """By the schema's version, and a workflow."""
        return re.search(r'"schemaVersion"\s*:', head) is not None and '"workflow"' in head

    def row(self, value: dict[str, Any]) -> Row | None:
        """An object of the array `workflow.execution.tasks`."""
        latency = value.get("runtimeInSeconds")
        if not isinstance(latency, (int, float)):
            return None
        machines = value.get("machines") or [None]
        groups = {"program": inside(value, "command.program"), "task": value.get("id"), "machine": machines[0]}
        sizes = {"cores": value.get("coreCount"), "read_bytes": value.get("readBytes")}
        return {"latency": latency, "status": COMPLETED, **groups, **sizes}
