"""AWS: access logs of load balancers (application, ALB, and classic, ELB), and REPORT lines of Lambda."""

from __future__ import annotations

import re
from collections.abc import Callable

from latfit.errors import MissingColumn
from latfit.logs.formats import ReadOptions, register
from latfit.logs.rows import Row, RowFormat, epoch, sent_at

PARTS = ("request_processing_time", "target_processing_time", "response_processing_time")
CREATED = re.compile(r' \d+ (\d{4}-\d\d-\d\dT\S+) "', re.ASCII)  # the rule's priority, then when the request came
REPORT = r"REPORT RequestId: (?P<id>[\w-]+)\s+Duration: (?P<latency>[\d.]+) ms"
REPORT_FIELD = re.compile(r"(Memory Size|Init Duration|Status): ([\w.]+)")
REPORT_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b\d{13}\b")


@register
class AwsLoadBalancer(RowFormat):
    """Latency is the sum of the three processing times, in s (one alone: `--column latency=target_processing_time`).

    −1 says that no answer came: the latency is then the time from the request's creation to the entry
    in the log, and the balancer's code the outcome (460, 504: given up, so censored; 502, 503: failed).
    """

    name = "alb"
    description = "AWS load balancer access log; latency = sum of the three times"
    rank = 17
    roles = ("latency",)
    others = "lines that are not requests"
    begins = r"(?:[a-z0-9]{2,5} )?\d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ "
    line = re.compile(
        r"(?:(?P<type>http|https|h2|grpcs|ws|wss|tcp|ssl) )?(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<elb>\S+) \S+ "
        r"(?P<target>\S+) (?P<times>(?:-?\d+(?:\.\d+)? ){3})(?P<status>\d{3}|-|0) "
        r'\S+ -?\d+ -?\d+ "(?P<method>\S+) (?P<path>\S+)[^"]*"(?P<rest>.*)',
        re.ASCII,
    )

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        parts = options.columns.get("latency", "+".join(PARTS)).split("+")
        for name in set(parts) - set(PARTS):
            raise MissingColumn(f"there is no time {name!r}; there are: {', '.join(PARTS)}")

        def read(line: str) -> Row | str | None:
            row = self.row(line)
            if not isinstance(row, dict):
                return f"not a request as AWS writes it: {line[:40]!r}" if re.match(self.begins, line) else None
            ended, created = epoch(row.pop("time")), CREATED.search(row.pop("rest"))
            sent = epoch(created[1]) if created else None
            times = dict(zip(PARTS, map(float, row.pop("times").split()), strict=True))
            latency: float | None = round(sum(times[name] for name in parts), 6)
            if any(times[name] < 0 for name in parts):
                latency = None if sent is None or ended is None else round(ended - sent, 6)
            if latency is None:
                return "no latency: a time is -1, and nothing says when the request came"
            if sent is None:  # a classic balancer, without types, writes when the request came
                sent = ended if row["type"] is None else sent_at(ended, latency)
            status = "failed" if row["status"] in ("-", "0") else row["status"]
            return {**row, "latency": latency, "submitted": sent, "status": status}

        return read


@register
class Lambda(RowFormat):
    """Latency is Duration, in ms; `Status: timeout` is censored, `Status: error` failed. Other lines are left out."""

    name = "lambda"
    description = "AWS Lambda REPORT lines, also as CloudWatch exports; latency = Duration"
    rank = 22
    unit = "ms"
    at_end = True
    cells = ("latency", "submitted", "status", "id")
    others = "lines that are not REPORT lines"
    # a time where there is one, then REPORT RequestId: … Duration: 19.14 ms Billed Duration: 20 ms …
    signs = (REPORT,)

    def row(self, line: str) -> Row | None:
        report = re.search(REPORT, line)
        if report is None:
            return None
        moment = REPORT_TIME.search(line, 0, report.start())
        fields = dict(REPORT_FIELD.findall(line, report.end()))
        groups = {"memory_mb": fields.get("Memory Size"), "cold_start": "yes" if "Init Duration" in fields else "no"}
        status = {"submitted": moment and moment[0], "status": fields.get("Status", "completed")}
        return {**report.groupdict(), **status, **groups}
