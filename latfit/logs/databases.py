"""Statements of databases: MongoDB's server log, the slow query log of MySQL and MariaDB, pgbench's transactions."""

from __future__ import annotations

import re
from datetime import datetime

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Row
from latfit.logs.source import Source

MYSQL_ABOVE = re.compile(r"# (?:Time: (?P<time>\S+(?: +\d\d?:\d\d:\d\d)?)|User@Host: (?P<user>\S+?)\[)")
MYSQL_ERROR = re.compile(r"(?:Errno|Killed): [1-9]")


@register
class Mongod(LineFormat):
    """Latency is `attr.durationMillis`; operations are logged when they end."""

    name = "mongod"
    description = "MongoDB server log (JSON); latency = attr.durationMillis"
    rank = 26
    unit = "ms"
    at_end = True
    others = "lines without a slow operation"
    nothing = "it logs no operation with durationMillis; log all of them with db.setProfilingLevel(0, {slowms: 0})"
    begins = r'\{"t":\{"\$date":'
    paths = (
        "latency=attr.durationMillis submitted=t.$date operation=attr.type namespace=attr.ns plan=attr.planSummary "
        "application=attr.appName error=attr.errName|attr.errCode"
    )

    def probe(self, cells: Row) -> Row:
        failed = cells.pop("error")
        return {**cells, "status": "failed" if failed else "completed"}


@register
class MySqlSlow(LineFormat):
    """Latency is Query_time, in seconds; a query is logged when it ends, under the last time above it."""

    name = "mysql-slow"
    description = "slow query log of MySQL or MariaDB; latency = Query_time"
    rank = 26
    at_end = True
    others = "lines of statements and headers"
    signs = (r"^# .*Query_time: [\d.]+ +Lock_time: ",)
    # # Query_time: 0.000123  Lock_time: 0.000045 Rows_sent: 1  Rows_examined: 10
    line = re.compile(r"# (?:Thread_id: .*)?Query_time: (?P<latency>[\d.]+) +Lock_time: [\d.]+(?P<rest>.*)")

    def begin(self, source: Source) -> None:
        self.above: dict[str, str | None] = {"time": None, "user": None}

    def row(self, line: str) -> Row | None:
        """Times and users stand in lines of their own, above the query time."""
        if match := MYSQL_ABOVE.match(line):
            self.above.update({name: value for name, value in match.groupdict().items() if value})
        query = self.line.match(line)
        if query is None:
            return None
        status = "failed" if MYSQL_ERROR.search(query["rest"]) else "completed"
        times = {"latency": query["latency"], "submitted": _moment(self.above["time"])}
        counts = dict(re.findall(r"(Rows_sent|Rows_examined): (\d+)", query["rest"]))
        return {**times, "status": status, "user": self.above["user"], **counts}


def _moment(text: str | None) -> str | None:
    """A time of MySQL since 5.7 (ISO 8601), or `140507  8:14:18` as earlier versions and MariaDB write it."""
    try:
        return text and datetime.strptime(text, "%y%m%d %H:%M:%S").isoformat()
    except ValueError:
        return text


@register
class PgBench(LineFormat):
    """Latency is the transaction's time, in microseconds; it is logged when it ends. Skipped ones were never sent."""

    name = "pgbench"
    description = "pgbench -l: one line a transaction; latency = time"
    rank = 27
    unit = "us"
    at_end = True
    others = "lines without a transaction that was run"
    # 0 199 2241 0 1175850568 995598: client, transaction, µs, script, and when it ended
    line = re.compile(
        r"(?P<client>\d+) \d+ (?P<latency>\d+|skipped|failed|serialization|deadlock) (?P<script>\d+) "
        r"(?P<seconds>\d{9,10}) (?P<microseconds>\d{1,6})(?: \d+){0,2}\s*$"
    )

    most_lines = line.pattern

    def probe(self, cells: Row) -> Row | None:
        if cells["latency"] == "skipped":
            return None
        ended = int(cells.pop("seconds")) + int(cells.pop("microseconds")) / 1e6
        known = cells["latency"].isdigit()
        latency = {"latency": cells["latency"] if known else None, "status": "completed" if known else "failed"}
        return {**cells, "submitted": ended, **latency}
