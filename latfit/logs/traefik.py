"""Access logs of Traefik as JSON."""

from __future__ import annotations

from latfit.logs.formats import register
from latfit.logs.rows import Row, RowFormat, json_line, plain_path


@register
class Traefik(RowFormat):
    """Latency is `Duration`, in nanoseconds. Code 499: the client gave up."""

    name = "traefik"
    description = "Traefik access log (JSON); latency = Duration"
    rank = 26
    unit = "ns"

    def row(self, line: str) -> Row | None:
        """An object with Duration, DownstreamStatus and StartUTC."""
        entry = json_line(line)
        if entry is None or not {"Duration", "DownstreamStatus"} <= entry.keys():
            return None
        known = {"latency": entry["Duration"], "submitted": entry.get("StartUTC"), "status": entry["DownstreamStatus"]}
        groups = {"router": entry.get("RouterName"), "service": entry.get("ServiceName")}
        path = plain_path(entry.get("RequestPath"))
        return {**known, "method": entry.get("RequestMethod"), "path": path, **groups}
