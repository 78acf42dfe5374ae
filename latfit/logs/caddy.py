"""Access logs of Caddy, as JSON or as its console encoder writes them."""

from __future__ import annotations

from latfit.logs.formats import register
from latfit.logs.rows import Row, RowFormat, epoch, json_line, plain_path, sent_at


@register
class Caddy(RowFormat):
    """Latency is `duration`, in seconds; requests are logged when they end."""

    name = "caddy"
    description = "Caddy access log (JSON or console); latency = duration"
    rank = 26

    def row(self, line: str) -> Row | None:
        """An object, or a time, a level, a logger, a message and an object with tabs between them."""
        entry = json_line(line)
        moment = entry and entry.get("ts")
        if entry is None and line.endswith("}") and "\t" in line:
            moment, *rest = line.split("\t")
            entry = json_line(rest[-1])
        if entry is None or not isinstance(entry.get("request"), dict) or "status" not in entry:
            return None
        latency, request = entry.get("duration"), entry["request"]
        if not isinstance(latency, (int, float)):
            return None
        groups = {"method": request.get("method"), "host": request.get("host"), "path": plain_path(request.get("uri"))}
        answer = {"bytes": entry.get("size"), "protocol": request.get("proto"), "server": entry.get("logger")}
        submitted = sent_at(epoch(moment), latency)
        return {"latency": latency, "submitted": submitted, "status": entry["status"], **groups, **answer}
