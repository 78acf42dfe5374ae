"""Statements of databases: MongoDB's server log, the slow query log of MySQL and MariaDB, pgbench's transactions."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import first_lines
from latfit.logs.rows import Row, RowFormat, inside, json_line

MYSQL_ABOVE = re.compile(r"# (?:Time: (?P<time>\S+(?: +\d\d?:\d\d:\d\d)?)|User@Host: (?P<user>\S+?)\[)")
MYSQL_ERROR = re.compile(r"(?:Errno|Killed): [1-9]")


@register
class Mongod(RowFormat):
    """Latency is `attr.durationMillis`; operations are logged when they end."""

    name = "mongod"
    description = "MongoDB server log (JSON); latency = attr.durationMillis"
    rank = 26
    unit = "ms"
    at_end = True
    others = "lines that are not slow operations"
    nothing = "it logs no operation with durationMillis; log all of them with db.setProfilingLevel(0, {slowms: 0})"
    begins = r'\{"t":\{"\$date":'
    paths = (
        "latency=attr.durationMillis submitted=t.$date operation=attr.type namespace=attr.ns plan=attr.planSummary "
        "application=attr.appName"
    )

    def row(self, line: str) -> Row | str | None:
        entry = json_line(line)
        row = super().row(line)
        failed = inside(entry, "attr.errName") or inside(entry, "attr.errCode")
        return {**row, "status": "failed" if failed else "completed"} if isinstance(row, dict) else row


@register
class MySqlSlow(RowFormat):
    """Latency is Query_time, in seconds; a query is logged when it ends, under the last time above it."""

    name = "mysql-slow"
    description = "slow query log of MySQL or MariaDB; latency = Query_time"
    rank = 26
    at_end = True
    others = "lines of statements and headers"
    signs = (r"^# .*Query_time: [\d.]+ +Lock_time: ",)
    # # Query_time: 0.000123  Lock_time: 0.000045 Rows_sent: 1  Rows_examined: 10
    line = re.compile(r"# (?:Thread_id: .*)?Query_time: (?P<latency>[\d.]+) +Lock_time: [\d.]+(?P<rest>.*)")

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        """Times and users stand in lines of their own, above the query time."""
        above: dict[str, str | None] = {"time": None, "user": None}

        def read(line: str) -> Row | str | None:
            if match := MYSQL_ABOVE.match(line):
                above.update({name: value for name, value in match.groupdict().items() if value})
            row = self.row(line)
            if not isinstance(row, dict):
                return row
            rest = row.pop("rest")
            status = "failed" if MYSQL_ERROR.search(rest) else "completed"
            counts = dict(re.findall(r"(Rows_sent|Rows_examined): (\d+)", rest))
            return {**row, "submitted": _moment(above["time"]), "status": status, "user": above["user"], **counts}

        return read


def _moment(text: str | None) -> str | None:
    """A time of MySQL since 5.7 (ISO 8601), or `140507  8:14:18` as earlier versions and MariaDB write it."""
    try:
        return text and datetime.strptime(text, "%y%m%d %H:%M:%S").isoformat()
    except ValueError:
        return text


@register
class PgBench(RowFormat):
    """Latency is the transaction's time, in microseconds; it is logged when it ends. Skipped ones were never sent."""

    name = "pgbench"
    description = "pgbench -l: one line a transaction; latency = time"
    rank = 27
    unit = "us"
    at_end = True
    others = "transactions that were skipped, and other lines"
    # 0 199 2241 0 1175850568 995598: client, transaction, µs, script, and when it ended
    line = re.compile(
        r"(?P<client>\d+) \d+ (?P<latency>\d+|skipped|failed|serialization|deadlock) (?P<script>\d+) "
        r"(?P<seconds>\d{9,10}) (?P<microseconds>\d{1,6})(?: \d+){0,2}\s*$"
    )

    def sniff(self, head: str) -> bool:
        return all(map(self.line.match, first_lines(head))) and super().sniff(head)

    def row(self, line: str) -> Row | str | None:
        row = super().row(line)
        if not isinstance(row, dict) or row["latency"] == "skipped":
            return None
        known = row["latency"].isdigit()
        ended = int(row.pop("seconds")) + int(row.pop("microseconds")) / 1e6
        status = {"submitted": ended, "status": "completed" if known else "failed"}
        return {**row, **status, "latency": row["latency"] if known else None}
