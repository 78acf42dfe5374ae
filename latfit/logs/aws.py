"""AWS: access logs of load balancers (application, ALB, and classic, ELB), and REPORT lines of Lambda."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, floats, moments, request_parts, seconds_before
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat
from latfit.logs.source import Source

PARTS = ("request_processing_time", "target_processing_time", "response_processing_time")
ALB_LINE = re.compile(
    r"(?:(?P<type>http|https|h2|grpcs|ws|wss|tcp|ssl) )?(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<elb>\S+) (?P<client>\S+) "
    r"(?P<target>\S+) (?P<request_processing_time>-?[\d.]+) (?P<target_processing_time>-?[\d.]+) "
    r'(?P<response_processing_time>-?[\d.]+) (?P<code>\d{3}|-|0) (?P<target_code>\S+) -?\d+ -?\d+ "(?P<request>[^"]*)"'
    r"(?P<rest>.*)",
    re.ASCII,
)
ALB_BEGINS = re.compile(r"(?:[a-z0-9]{2,5} )?\d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ ", re.ASCII)
CREATED = re.compile(r' \d+ (\d{4}-\d\d-\d\dT\S+) "', re.ASCII)  # the rule's priority, then when the request came
REPORT = r"REPORT RequestId: (?P<id>[\w-]+)\s+Duration: (?P<latency>[\d.]+) ms"
REPORT_FIELD = re.compile(r"(Memory Size|Init Duration|Status): ([\w.]+)")
REPORT_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b\d{13}\b")


@register
class AwsLoadBalancer(LineFormat):
    """Latency is the sum of the three processing times, in s (one alone: `--column latency=target_processing_time`).

    −1 says that no answer came: the latency is then the time from the request's creation to the entry
    in the log, and the balancer's code the outcome (460, 504: given up, so censored; 502, 503: failed).
    """

    name = "alb"
    description = "AWS load balancer access log; latency = sum of the three times"
    rank = 17
    roles = ("latency",)
    uses = ("statuses",)
    names = ("type", "time", "elb", "client", "target", *PARTS, "code", "target_code", "request", "created")
    groups = ("elb", "target", "type", "method", "path")
    submitted_is = "the request's creation"
    http = True
    sniffed = 20

    def begin(self, source: Source) -> None:
        self.parts = self.options.columns.get("latency", "+".join(PARTS)).split("+")
        for name in self.parts:
            if name not in PARTS:
                raise MissingColumn(f"{source.name}: there is no time {name!r}; there are: {', '.join(PARTS)}")
        self.latency_is = f"{' + '.join(self.parts)} in s (where one is -1, the time from creation to the log's entry)"

    def parse(self, line: str) -> Parsed:
        match = ALB_LINE.match(line)
        if match is None:
            return f"not a request as AWS writes it: {line[:40]!r}" if ALB_BEGINS.match(line) else None
        created = CREATED.search(match["rest"])
        return [*(match[name] for name in self.names[:-1]), created[1] if created else None]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        parts = np.column_stack([floats(frame[name], name, records) for name in self.parts])
        written, created = (moments(frame[name], name, "iso", "UTC", records) for name in ("time", "created"))
        answered = (parts >= 0).all(axis=1)
        waited = (written - created) / np.timedelta64(1, "s")
        records.refuse(~answered & np.isnan(waited), "no latency: a time is -1, and nothing says when the request came")
        records.latency = np.where(answered, np.round(parts.sum(axis=1), 6), waited)
        records.status = self.tally.statuses(frame["code"], records)
        self.tally.add(frame["code"], records)
        # a classic balancer has no types, and writes when the request came, not when it was answered
        sent = np.where(frame["type"].isna(), written, seconds_before(written, records.latency))
        records.submitted = np.where(np.isnat(created), sent, created)
        records.extras |= request_parts(frame["request"])


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
