"""Access logs of AWS load balancers: application (ALB) and classic (ELB)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import Parsed, first_lines, floats, moments, read_lines, request_parts, seconds_before, told
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import COMPLETED

PARTS = ("request_processing_time", "target_processing_time", "response_processing_time")
LINE = re.compile(
    r"(?:(?P<type>http|https|h2|grpcs|ws|wss|tcp|ssl) )?(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<elb>\S+) (?P<client>\S+) "
    r"(?P<target>\S+) (?P<request_processing_time>-?[\d.]+) (?P<target_processing_time>-?[\d.]+) "
    r'(?P<response_processing_time>-?[\d.]+) (?P<code>\d{3}|-|0) (?P<target_code>\S+) -?\d+ -?\d+ "(?P<request>[^"]*)"'
    r"(?P<rest>.*)",
    re.ASCII,
)
BEGINS = re.compile(r"(?:[a-z0-9]{2,5} )?\d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ ", re.ASCII)
CREATED = re.compile(r' \d+ (\d{4}-\d\d-\d\dT\S+) "', re.ASCII)  # the rule's priority, then when the request came
NAMES = ("type", "time", "elb", "client", "target", *PARTS, "code", "target_code", "request", "created")
GROUPS = ("elb", "target", "type", "method", "path")


@register
class AwsLoadBalancer(Format):
    """Latency is the sum of the three processing times, in s (one alone: `--column latency=target_processing_time`).

    −1 says that no answer came: the latency is then the time from the request's creation to the entry
    in the log, and the balancer's code the outcome (460, 504: given up, so censored; 502, 503: failed).
    """

    name = "alb"
    description = "AWS load balancer access log; latency = sum of the three times"
    rank = 17
    roles = ("latency",)
    uses = ("statuses",)

    def sniff(self, head: str) -> bool:
        """A line as the balancer writes it."""
        return any(LINE.match(line) for line in first_lines(head, 20))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        measured = _measured(options, source.name)
        outcomes = HttpOutcomes(options)
        what = f"{' + '.join(measured)} in s (where one is -1, the time from creation to the log's entry)"
        note = told(what, "the request's creation", GROUPS)

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            records = _records(frame, line, measured, outcomes)
            records.notes.append(note)
            return records

        yield from read_lines(source, NAMES, _parse, convert)
        yield outcomes.last()


def _measured(options: ReadOptions, log: str) -> list[str]:
    measured = options.columns.get("latency", "+".join(PARTS)).split("+")
    for name in measured:
        if name not in PARTS:
            raise MissingColumn(f"{log}: there is no time {name!r}; there are: {', '.join(PARTS)}")
    return measured


def _parse(line: str) -> Parsed:
    match = LINE.match(line)
    if match is None:
        return f"not a request as AWS writes it: {line[:40]!r}" if BEGINS.match(line) else None
    created = CREATED.search(match["rest"])
    return [*(match[name] for name in NAMES[:-1]), created[1] if created else None]


def _records(frame: pd.DataFrame, line: NDArray[np.int64], measured: list[str], outcomes: HttpOutcomes) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    parts = np.column_stack([floats(frame[name], name, records) for name in measured])
    written, created = (moments(frame[name], name, "iso", "UTC", records) for name in ("time", "created"))
    answered = (parts >= 0).all(axis=1)
    waited = (written - created) / np.timedelta64(1, "s")
    records.refuse(~answered & np.isnan(waited), "no latency: a time is -1, and nothing says when the request came")
    records.latency = np.where(answered, np.round(parts.sum(axis=1), 6), waited)
    records.status = outcomes.statuses(frame["code"], records)
    outcomes.add(frame["code"], records)
    before = seconds_before(written, np.where(answered, records.latency, np.nan))
    records.submitted = np.where(np.isnat(created), before, created)
    records.raw = frame
    records.extras = {name: frame[name] for name in GROUPS[:3]} | request_parts(frame["request"])
    return records
