"""Squid's native access log."""

from __future__ import annotations

import re

from latfit.logs.formats import register
from latfit.logs.rows import Row, RowFormat, plain_path, sent_at

LINE = re.compile(
    r"(?P<ended>\d{9,11}\.\d{3}) +(?P<latency>-?\d+) (?P<client>\S+) (?P<result>[A-Z_]+)/(?P<code>\d{3}) "
    r"(?P<bytes>\d+) (?P<method>[A-Z_]+) (?P<url>\S+) \S+ (?P<peer>[A-Z_]+)/\S+ (?P<type>\S+)"
)


@register
class Squid(RowFormat):
    """Latency is the elapsed time in ms; requests are logged when they end. ABORTED: the client gave up."""

    name = "squid"
    description = "Squid access log (native); latency = elapsed"
    rank = 27
    unit = "ms"

    def row(self, line: str) -> Row | None:
        """`1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://a.org/ - DIRECT/10.0.0.1 text/plain`."""
        match = LINE.match(line)
        if match is None:
            return None
        fields = match.groupdict()
        ended, latency, code, url = (fields.pop(name) for name in ("ended", "latency", "code", "url"))
        status = "cancelled" if "ABORTED" in fields["result"] else code
        submitted = sent_at(float(ended), max(0, int(latency)) / 1e3)
        return {"latency": latency, "submitted": submitted, "status": status, "url": plain_path(url), **fields}
