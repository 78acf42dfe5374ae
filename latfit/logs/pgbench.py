"""Transactions that pgbench logs with -l."""

from __future__ import annotations

import re

from latfit.logs.formats import register
from latfit.logs.lines import first_lines
from latfit.logs.rows import COMPLETED, FAILED, Row, RowFormat, sent_at

LINE = re.compile(
    r"(?P<client>\d+) (?P<transaction>\d+) (?P<time>\d+|skipped|failed|serialization|deadlock) (?P<script>\d+) "
    r"(?P<seconds>\d{9,10}) (?P<microseconds>\d{1,6})(?: (?P<lag>\d+))?(?: (?P<retries>\d+))?"
)


@register
class PgBench(RowFormat):
    """Latency is the transaction's time, in microseconds; it is logged when it ends. Skipped ones were never sent."""

    name = "pgbench"
    description = "pgbench -l: one line a transaction; latency = time"
    rank = 27
    unit = "us"
    others = "transactions that were skipped, and other lines"

    def sniff(self, head: str) -> bool:
        """All of the first lines have pgbench's fields."""
        lines = first_lines(head)
        return bool(lines) and all(LINE.fullmatch(line.strip()) for line in lines)

    def row(self, line: str) -> Row | None:
        """`0 199 2241 0 1175850568 995598`: client, transaction, µs, script, and when it ended."""
        match = LINE.fullmatch(line.strip())
        if match is None or match["time"] == "skipped":
            return None
        done = match["time"].isdigit()
        ended = int(match["seconds"]) + int(match["microseconds"]) / 1e6
        latency = int(match["time"]) if done else None
        submitted = sent_at(ended, (latency or 0) / 1e6)
        return {
            "latency": latency,
            "submitted": submitted,
            "status": COMPLETED if done else FAILED,
            "client": match["client"],
            "script": match["script"],
        }
