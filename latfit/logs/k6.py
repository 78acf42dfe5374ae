"""k6 results, as CSV (`--out csv=`) or JSON lines (`--out json=`): of many metrics one is the latency."""

from __future__ import annotations

import csv
from collections.abc import Callable

from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import json_object
from latfit.logs.rows import Row, RowFormat, inside
from latfit.logs.vocabulary import http_outcome

TAGS = ("status", "error_code", "expected_response", "method", "name", "url", "scenario", "group")
K6_TIMEOUTS = ("1050", "1211")  # error codes: the request, or dialling, took longer than its timeout


@register
class K6(RowFormat):
    """Latency is the metric http_req_duration, in ms (`--column latency=http_req_waiting` for another).

    The outcome goes by the HTTP status. k6's error codes 1050 and 1211 are timeouts: censored. A status
    that the test expects is completed, a 2xx or 3xx that it does not expect failed. k6 writes the time of the end.
    """

    name = "k6"
    description = "k6 results as CSV; latency = the metric http_req_duration"
    rank = 24
    roles = ("latency",)
    unit = "ms"
    at_end = True
    begins = r"(?=.*\bmetric_value\b)(?=.*\btimestamp\b).*\bmetric_name\b"
    others = "points of other metrics, and what describes them"
    nothing = "it has no point of the metric http_req_duration, or of METRIC in --column latency=METRIC"

    def points(self) -> Callable[[str], Row | str | None]:
        """What takes a line apart: a metric, a time, a value, and tags."""
        names: list[str] = []

        def read(line: str) -> Row | str | None:
            fields = next(csv.reader([line]))
            if not names:
                names.extend(fields)
                return None
            if len(fields) != len(names):
                return f"wrong number of fields: {len(fields)} instead of {len(names)}"
            row = dict(zip(names, fields, strict=True))
            known = {"metric": "metric_name", "submitted": "timestamp", "latency": "metric_value"}
            return {cell: row.pop(name, None) for cell, name in known.items()} | row

        return read

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        metric, said, points = (
            options.columns.get("latency", "http_req_duration"),
            options.lowered_statuses,
            self.points(),
        )

        def read(line: str) -> Row | str | None:
            row = points(line)
            if not isinstance(row, dict) or row.pop("metric") != metric:
                return row if isinstance(row, str) else None
            code, expected = str(row.get("status") or "0"), row.pop("expected_response", None)
            outcome = http_outcome(code, said)
            if row.pop("error_code", None) in K6_TIMEOUTS:
                code = "censored"
            elif code not in said and f"{code[:1]}xx" not in said:
                if expected == "true" and outcome != "completed":
                    code = "completed"
                elif code == "0" or (expected == "false" and code[:1] in "23"):
                    code = "failed"
            tags = {name: cell for name, cell in row.items() if name not in ("error", "check") and cell != ""}
            return {**tags, "status": code, "latency": row["latency"], "submitted": row["submitted"]}

        return read


@register
class K6Json(K6):
    """k6's JSON lines: points with their tags, and what metrics there are."""

    name = "k6-json"
    description = "k6 results as JSON lines; latency = the metric http_req_duration"
    begins = r'(?=\{.*"type"\s*:\s*"(?:Metric|Point)")\{.*"metric"'

    def points(self) -> Callable[[str], Row | str | None]:
        def read(line: str) -> Row | str | None:
            value = json_object(line)
            if isinstance(value, str) or value.get("type") != "Point":
                return value if isinstance(value, str) else None
            moment = {"metric": value.get("metric"), "submitted": inside(value, "data.time")}
            tags = {tag: inside(value, f"data.tags.{tag}") for tag in TAGS}
            return {**tags, **moment, "latency": inside(value, "data.value")}

        return read
