"""The structured log of MongoDB's server: slow operations."""

from __future__ import annotations

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, FAILED, Row, RowFormat, epoch, inside, json_line, sent_at


@register
class Mongod(RowFormat):
    """Latency is `attr.durationMillis`; operations are logged when they end."""

    name = "mongod"
    description = "MongoDB server log (JSON); latency = attr.durationMillis"
    rank = 26
    unit = "ms"
    others = "lines that are not slow operations"
    nothing = "it logs no operation with durationMillis; log all of them with db.setProfilingLevel(0, {slowms: 0})"

    def sniff(self, head: str) -> bool:
        """By the first keys of every line."""
        return head.lstrip().startswith('{"t":{"$date":')

    def row(self, line: str) -> Row | None:
        """An object with t, s, c, id, ctx, msg and attr."""
        entry = json_line(line)
        latency = inside(entry, "attr.durationMillis")
        if entry is None or not isinstance(latency, (int, float)):
            return None
        failed = inside(entry, "attr.errName") or inside(entry, "attr.errCode")
        submitted = sent_at(epoch(inside(entry, "t.$date")), latency / 1e3)
        names = {"operation": "type", "namespace": "ns", "plan": "planSummary", "application": "appName"}
        groups = {column: inside(entry, f"attr.{name}") for column, name in names.items()}
        return {"latency": latency, "submitted": submitted, "status": FAILED if failed else COMPLETED, **groups}
