"""Access logs of Caddy, Traefik and Squid."""

from __future__ import annotations

import re

from latfit.logs.formats import register
from latfit.logs.rows import Row, RowFormat, epoch, json_line, plain_path, sent_at

SQUID_LINE = re.compile(
    r"(?P<ended>\d{9,11}\.\d{3}) +(?P<latency>-?\d+) (?P<client>\S+) (?P<result>[A-Z_]+)/(?P<code>\d{3}) "
    r"(?P<bytes>\d+) (?P<method>[A-Z_]+) (?P<url>\S+) \S+ (?P<peer>[A-Z_]+)/\S+ (?P<type>\S+)"
)


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
        cells = {"latency": entry["Duration"], "submitted": entry.get("StartUTC"), "status": entry["DownstreamStatus"]}
        groups = {"router": entry.get("RouterName"), "service": entry.get("ServiceName")}
        path = plain_path(entry.get("RequestPath"))
        return {**cells, "method": entry.get("RequestMethod"), "path": path, **groups}


@register
class Squid(RowFormat):
    """Latency is the elapsed time in ms; requests are logged when they end. ABORTED: the client gave up."""

    name = "squid"
    description = "Squid access log (native); latency = elapsed"
    rank = 27
    unit = "ms"

    def row(self, line: str) -> Row | None:
        """`1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://a.org/ - DIRECT/10.0.0.1 text/plain`."""
        match = SQUID_LINE.match(line)
        if match is None:
            return None
        fields = match.groupdict()
        ended, latency, code, url = (fields.pop(name) for name in ("ended", "latency", "code", "url"))
        status = "cancelled" if "ABORTED" in fields["result"] else code
        submitted = sent_at(float(ended), max(0, int(latency)) / 1e3)
        return {"latency": latency, "submitted": submitted, "status": status, "url": plain_path(url), **fields}
