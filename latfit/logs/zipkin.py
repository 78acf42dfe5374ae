"""Spans of Zipkin (JSON, v2)."""

from __future__ import annotations

import re
from typing import Any

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, FAILED, JsonRows, Row, inside


@register
class Zipkin(JsonRows):
    """Latency is `duration`, in microseconds; a span with the tag `error` failed."""

    name = "zipkin"
    description = "Zipkin spans (JSON); latency = duration"
    rank = 21
    unit = "us"
    cells = ("latency", "submitted", "status")

    def sniff(self, head: str) -> bool:
        """An array of objects with Zipkin's keys."""
        start = head.lstrip()[:3000]
        return (
            start.startswith("[") and '"traceId"' in start and re.search(r'"(local|remote)Endpoint"', start) is not None
        )

    def row(self, value: dict[str, Any]) -> Row | None:
        """One span."""
        latency, began = value.get("duration"), value.get("timestamp")
        if not isinstance(latency, (int, float)):
            return None
        tags = value.get("tags") or {}
        code = tags.get("http.status_code")
        status = code or (FAILED if "error" in tags else COMPLETED)
        submitted = began / 1e6 if isinstance(began, (int, float)) else None
        groups = {"name": value.get("name"), "service": inside(value, "localEndpoint.serviceName")}
        span = {"kind": value.get("kind"), "trace": value.get("traceId")}
        return {"latency": latency, "submitted": submitted, "status": status, **groups, **span}
