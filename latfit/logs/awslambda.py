"""AWS Lambda: REPORT lines of CloudWatch, as text or in an export of Logs Insights."""

from __future__ import annotations

import re

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, Row, RowFormat, epoch, sent_at

REPORT = re.compile(r"REPORT RequestId: (?P<id>[\w-]+)\s+Duration: (?P<latency>[\d.]+) ms")
FIELD = re.compile(r"(Memory Size|Init Duration|Status): ([\w.]+)")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b\d{13}\b")


@register
class Lambda(RowFormat):
    """Latency is Duration, in ms; `Status: timeout` is censored, `Status: error` failed. Other lines are left out."""

    name = "lambda"
    description = "AWS Lambda REPORT lines, also as CloudWatch exports; latency = Duration"
    rank = 22
    unit = "ms"
    cells = ("latency", "submitted", "status", "id")
    others = "lines that are not REPORT lines"

    def sniff(self, head: str) -> bool:
        """By a REPORT line."""
        return REPORT.search(head) is not None

    def row(self, line: str) -> Row | None:
        """A time where there is one, then `REPORT RequestId: … Duration: 19.14 ms Billed Duration: 20 ms …`."""
        match = REPORT.search(line)
        if match is None:
            return None
        fields = dict(FIELD.findall(line, match.end()))
        moment = TIME.search(line, 0, match.start())
        ended = moment and (int(moment[0]) / 1e3 if moment[0].isdigit() else epoch(moment[0]))
        submitted = sent_at(ended, float(match["latency"]) / 1e3)
        groups = {"memory_mb": fields.get("Memory Size"), "cold_start": "yes" if "Init Duration" in fields else "no"}
        status = fields.get("Status", COMPLETED)
        return {"latency": match["latency"], "submitted": submitted, "status": status, "id": match["id"], **groups}
