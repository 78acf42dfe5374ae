"""Statements of databases: MongoDB's server log, the slow query log of MySQL and MariaDB, pgbench's transactions."""

from __future__ import annotations

import re
from collections.abc import Callable

from latfit.logs.formats import register
from latfit.logs.lines import first_lines
from latfit.logs.rows import Row, RowFormat, epoch, inside, json_line, sent_at

MYSQL_TIME = re.compile(r"# Time: (\S+(?: +\d\d?:\d\d:\d\d)?)")
MYSQL_USER = re.compile(r"# User@Host: (\S+?)\[")
MYSQL_QUERY = re.compile(r"# (?:Thread_id: .*)?Query_time: (?P<latency>[\d.]+)(?P<rest>.*)")
PGBENCH_LINE = re.compile(
    r"(?P<client>\d+) (?P<transaction>\d+) (?P<time>\d+|skipped|failed|serialization|deadlock) (?P<script>\d+) "
    r"(?P<seconds>\d{9,10}) (?P<microseconds>\d{1,6})(?: (?P<lag>\d+))?(?: (?P<retries>\d+))?"
)


@register
class Mongod(RowFormat):
    """Latency is `attr.durationMillis`; operations are logged when they end."""

    name = "mongod"
    description = "MongoDB server log (JSON); latency = attr.durationMillis"
    rank = 26
    unit = "ms"
    others = "lines that are not slow operations"
    nothing = "it logs no operation with durationMillis; log all of them with db.setProfilingLevel(0, {slowms: 0})"
    begins = r'\{"t":\{"\$date":'

    def row(self, line: str) -> Row | None:
        entry = json_line(line)
        latency = inside(entry, "attr.durationMillis")
        if not isinstance(latency, (int, float)):
            return None
        failed = inside(entry, "attr.errName") or inside(entry, "attr.errCode")
        submitted = sent_at(epoch(inside(entry, "t.$date")), latency / 1e3)
        names = {"operation": "type", "namespace": "ns", "plan": "planSummary", "application": "appName"}
        groups = {column: inside(entry, f"attr.{name}") for column, name in names.items()}
        return {"latency": latency, "submitted": submitted, "status": "failed" if failed else "completed", **groups}


@register
class MySqlSlow(RowFormat):
    """Latency is Query_time, in seconds; a query is logged when it ends, under the last time above it."""

    name = "mysql-slow"
    description = "slow query log of MySQL or MariaDB; latency = Query_time"
    rank = 26
    others = "lines of statements and headers"
    signs = (r"^# .*Query_time: [\d.]+ +Lock_time: ",)

    def row(self, line: str) -> Row | None:
        """`# Query_time: 0.000123  Lock_time: 0.000045 Rows_sent: 1  Rows_examined: 10`."""
        match = MYSQL_QUERY.match(line)
        if match is None:
            return None
        numbers = dict(re.findall(r"(\w+): (-?\d+(?:\.\d+)?)", match["rest"]))
        status = "failed" if numbers.get("Errno", "0") != "0" else "completed"
        return {"latency": match["latency"], "submitted": None, "status": status, "user": None, **numbers}

    def rows(self) -> Callable[[str], Row | None]:
        """Times and users stand in lines of their own, above the query time."""
        ended: float | None = None
        user: str | None = None

        def read(line: str) -> Row | None:
            nonlocal ended, user
            if moment := MYSQL_TIME.match(line):
                ended = epoch(moment[1])
            elif host := MYSQL_USER.match(line):
                user = host[1]
            row = self.row(line)
            return row and {**row, "submitted": sent_at(ended, float(row["latency"])), "user": user}

        return read


@register
class PgBench(RowFormat):
    """Latency is the transaction's time, in microseconds; it is logged when it ends. Skipped ones were never sent."""

    name = "pgbench"
    description = "pgbench -l: one line a transaction; latency = time"
    rank = 27
    unit = "us"
    others = "transactions that were skipped, and other lines"

    def sniff(self, head: str) -> bool:
        lines = first_lines(head)
        return bool(lines) and all(PGBENCH_LINE.fullmatch(line.strip()) for line in lines)

    def row(self, line: str) -> Row | None:
        """`0 199 2241 0 1175850568 995598`: client, transaction, µs, script, and when it ended."""
        match = PGBENCH_LINE.fullmatch(line.strip())
        if match is None or match["time"] == "skipped":
            return None
        latency = int(match["time"]) if match["time"].isdigit() else None
        ended = int(match["seconds"]) + int(match["microseconds"]) / 1e6
        cells = {"latency": latency, "submitted": sent_at(ended, (latency or 0) / 1e6)}
        status = "failed" if latency is None else "completed"
        return {**cells, "status": status, "client": match["client"], "script": match["script"]}
