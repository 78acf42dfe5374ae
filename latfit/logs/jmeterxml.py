"""JMeter result files (JTL) written as XML."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, FAILED, Row, RowFormat

OPENED = re.compile(r"<(?:httpSample|sample) ([^<>]*?)(/?)>")
CLOSED = re.compile(r"</(?:httpSample|sample)>")
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
GAVE_UP = re.compile(r"time[d-]? ?-?out", re.IGNORECASE)


@register
class JMeterXml(RowFormat):
    """Latency is `t`, in ms, of the samples; those inside another one are parts of it. Outcomes as in `jmeter`."""

    name = "jmeter-xml"
    description = "JMeter results (JTL) as XML; latency = t"
    rank = 24
    unit = "ms"
    others = "lines that are not samples, or parts of one"

    def sniff(self, head: str) -> bool:
        """By the root element."""
        return "<testResults" in head[:2000]

    def row(self, line: str) -> Row | None:
        """`<httpSample t="268" ts="1506112408625" s="true" lb="Landing Page" rc="200" rm="OK" tn="Users 1-7"/>`."""
        return self.rows()(line)

    def rows(self) -> Callable[[str], Row | None]:
        """How many samples are open is kept from line to line."""
        depth = 0

        def read(line: str) -> Row | None:
            nonlocal depth
            match = OPENED.search(line)
            outer = depth == 0
            depth = max(0, depth + (match is not None and not match[2]) - len(CLOSED.findall(line)))
            if match is None or not outer:
                return None
            fields = {key: unescape(value) for key, value in ATTRIBUTE.findall(match[1])}
            if not fields.get("t", "").isdigit():
                return None
            late = GAVE_UP.search(f"{fields.get('rc', '')} {fields.get('rm', '')}")
            status = COMPLETED if fields.get("s") == "true" else "timeout" if late else FAILED
            sent = int(fields["ts"]) / 1e3 if fields.get("ts", "").isdigit() else None
            names = {"label": "lb", "responseCode": "rc", "threadName": "tn", "bytes": "by"}
            groups = {column: fields.get(name) for column, name in names.items()}
            return {"latency": fields["t"], "submitted": sent, "status": status, **groups}

        return read
