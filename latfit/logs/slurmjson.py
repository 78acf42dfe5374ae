"""SLURM's jobs as JSON: `sacct --json` and `squeue --json`."""

from __future__ import annotations

import re
from typing import Any

from latfit.logs.formats import register
from latfit.logs.rows import NOT_YET, JsonRows, Row, inside


def _number(value: Any) -> int | None:
    """A number of SLURM's JSON, which newer versions wrap: `{"set": true, "infinite": false, "number": 7}`."""
    if isinstance(value, dict):
        value = value.get("number") if value.get("set", True) else None
    return value if isinstance(value, int) and value not in NOT_YET else None


@register
class SlurmJson(JsonRows):
    """Latency is start − submission. A job that never started is censored when it ended, or when the log does.

    SLURM writes 0 or 4294967294 for a time that is not known; squeue writes when a pending job is expected to start.
    """

    name = "slurm-json"
    description = "sacct --json or squeue --json; latency = start - submission"
    rank = 21
    kind = "jobs"
    queue = True

    def sniff(self, head: str) -> bool:
        """By the array of jobs, and the times of one."""
        jobs = re.search(r'"jobs"\s*:\s*\[', head)
        return jobs is not None and re.search(r'"(submission|submit_time)"\s*:', head) is not None

    def row(self, value: dict[str, Any]) -> Row | None:
        """An object of the array `jobs`."""
        times = value.get("time") or {}
        submitted, start, end = (
            _number(times.get(name, value.get(other)))
            for name, other in (("submission", "submit_time"), ("start", "start_time"), ("end", "end_time"))
        )
        if submitted is None:
            return None
        state = inside(value, "state.current") or value.get("job_state") or value.get("state")
        state = state[0] if isinstance(state, list) and state else state
        queued = start is None or state == "PENDING" or (state == "CANCELLED" and not value.get("nodes"))
        ended = start if not queued else None if state == "PENDING" else end
        groups = {name: value.get(name) for name in ("partition", "qos", "account", "cluster", "name")}
        owner = {"jobid": value.get("job_id"), "user": value.get("user") or value.get("user_name")}
        status = "censored" if queued else "completed"
        return {"submitted": submitted, "ended": ended, "status": status, "state": state, **owner, **groups}
