"""The slow query log of MySQL and MariaDB."""

from __future__ import annotations

import re
from collections.abc import Callable

from latfit.logs.formats import register
from latfit.logs.rows import COMPLETED, FAILED, Row, RowFormat, epoch, sent_at

TIME = re.compile(r"# Time: (\S+(?: +\d\d?:\d\d:\d\d)?)")
USER = re.compile(r"# User@Host: (\S+?)\[")
QUERY = re.compile(r"# (?:Thread_id: .*)?Query_time: (?P<latency>[\d.]+)(?P<rest>.*)")
NUMBER = re.compile(r"(\w+): (-?\d+(?:\.\d+)?)")


@register
class MySqlSlow(RowFormat):
    """Latency is Query_time, in seconds; a query is logged when it ends, under the last time above it."""

    name = "mysql-slow"
    description = "slow query log of MySQL or MariaDB; latency = Query_time"
    rank = 26
    others = "lines of statements and headers"

    def sniff(self, head: str) -> bool:
        """By a line with a query time."""
        return re.search(r"^# .*Query_time: [\d.]+ +Lock_time: ", head, re.MULTILINE) is not None

    def row(self, line: str) -> Row | None:
        """`# Query_time: 0.000123  Lock_time: 0.000045 Rows_sent: 1  Rows_examined: 10`."""
        match = QUERY.match(line)
        if match is None:
            return None
        numbers = dict(NUMBER.findall(match["rest"]))
        status = FAILED if numbers.get("Errno", "0") not in ("0", "") else COMPLETED
        return {"latency": match["latency"], "submitted": None, "status": status, "user": None, **numbers}

    def rows(self) -> Callable[[str], Row | None]:
        """Times and users stand in lines of their own, above the query time."""
        ended: float | None = None
        user: str | None = None

        def read(line: str) -> Row | None:
            nonlocal ended, user
            if moment := TIME.match(line):
                ended = epoch(moment[1])
            elif host := USER.match(line):
                user = host[1]
            row = self.row(line)
            return row and {**row, "submitted": sent_at(ended, float(row["latency"])), "user": user}

        return read
