"""HTCondor's history of jobs: `condor_history -json`."""

from __future__ import annotations

import re
from typing import Any

from latfit.logs.formats import register
from latfit.logs.rows import NOT_YET, JsonRows, Row

REMOVED, HELD = 3, 5


@register
class CondorHistory(JsonRows):
    """Latency is the first start − QDate. A job that was removed before it started is censored then."""

    name = "condor-history"
    description = "condor_history -json or condor_q -json; latency = start - QDate"
    rank = 21
    kind = "jobs"
    queue = True

    def sniff(self, head: str) -> bool:
        """By attributes of a job's ad."""
        return head.lstrip()[:1] in ("[", "{") and re.search(r'"QDate"\s*:', head) is not None

    def row(self, value: dict[str, Any]) -> Row | None:
        """The ad of one job."""

        def moment(*names: str) -> int | None:
            times = (value.get(name) for name in names)
            return next((time for time in times if isinstance(time, int) and time not in NOT_YET), None)

        submitted, state = moment("QDate"), value.get("JobStatus")
        if submitted is None:
            return None
        start = moment("JobStartDate", "JobCurrentStartDate", "JobLastStartDate")
        gone = moment("CompletionDate", "EnteredCurrentStatus") if state in (REMOVED, HELD) else None
        status = "censored" if start is None else "completed"
        site = value.get("MATCH_GLIDEIN_Site") or value.get("LastRemoteHost")
        groups = {"owner": value.get("Owner"), "site": site, "command": value.get("Cmd"), "jobstatus": state}
        job = f"{value.get('ClusterId')}.{value.get('ProcId')}"
        return {
            "submitted": submitted,
            "ended": gone if start is None else start,
            "status": status,
            "jobid": job,
            **groups,
        }
