"""Summaries of load tests that hold percentiles only: recognised, and refused with the way to single requests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from latfit.errors import LogError
from latfit.logs.delimited import head_fields
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source

LOCUST = ({"Name", "Request Count", "Failure Count"}, {"Timestamp", "User Count", "Requests/s"})
WRK = re.compile(r"Running \S+ test @ .*|\s*Thread Stats\s+Avg\s+Stdev", re.ASCII)


@register
class Locust(Format):
    """Locust's statistics and their history are percentiles of many requests, not the requests: always refused."""

    name = "locust"
    by_line = False
    description = "Locust statistics: percentiles only, refused with the way to single requests"
    rank = 23

    def sniff(self, head: str) -> bool:
        """By Locust's column names."""
        names = set(head_fields(head, ","))
        return any(names >= needed for needed in LOCUST)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Nothing: the error says how to log every request."""
        raise LogError(
            f"{source.name}: these are Locust's statistics (percentiles of many requests, also with "
            "--csv-full-history), not single requests; log each one from the locustfile: "
            "@events.request.add_listener, def log(request_type, name, response_time, exception, start_time, **_): "
            'print one CSV row of start_time, name, response_time (ms), "failed" if exception else "completed"'
        )


@register
class Wrk(Format):
    """What wrk prints is a summary, too: always refused."""

    name = "wrk"
    by_line = False
    description = "wrk summary: percentiles only, refused with the way to single requests"
    rank = 23

    def sniff(self, head: str) -> bool:
        """By wrk's first line."""
        return bool(WRK.match(head.lstrip("\n")))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Nothing: the error says which tools write every request."""
        raise LogError(
            f"{source.name}: wrk prints a summary and keeps no single requests; measure with a tool that writes them: "
            "hey -o csv, vegeta attack | vegeta encode --to csv, or k6 run --out csv=FILE"
        )
