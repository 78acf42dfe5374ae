"""LTSV access logs: tab-separated fields, each with its label."""

from __future__ import annotations

import re

import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import APACHE_TIME, LineFormat, Parsed, absent, first_lines
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.numbers import Bools

FIELD = re.compile(r"[A-Za-z0-9_.-]+:", re.ASCII)
# labels of a latency, best first: those of ltsv.org, and what people add; in s but for the one that says otherwise
LATENCIES = (
    "reqtime request_time reqtime_microsec taken_sec response_time duration runtime apptime upstream_response_time "
    "vhost_time"
).split()
CODES = ("status", "code", "status_code")
TIMES = ("time", "time_local", "timestamp", "date")
AFTERWARDS = ("size", "body_bytes_sent", "bytes", "cache", "upstream_status")  # known with the answer: no groups


@register
class Ltsv(LineFormat):
    """Latency is the label that most of the first lines have of reqtime, request_time, apptime, …; seconds.

    A request without it (`apptime:-`: no backend was asked) is left out, and counted.
    """

    name = "ltsv"
    description = "LTSV access log; latency = reqtime, request_time, apptime, …"
    rank = 28
    roles = ("latency",)
    uses = ("statuses", "unit", "time_format", "timezone")
    http = True
    others = "lines that are not labelled fields"
    nothing = "no line of this log has labelled fields"
    log: str

    def sniff(self, head: str) -> bool:
        lines = first_lines(head, 1)
        fields = lines[0].split("\t") if lines else []
        return len(fields) > 2 and all(FIELD.match(field) for field in fields)

    def begin(self, source: Source) -> None:
        self.log = source.name

    def parse(self, line: str) -> Parsed:
        fields = line.rstrip("\t ").split("\t")
        bad = [field for field in fields if not FIELD.match(field)]
        if not bad and len(fields) > 1:
            return dict(field.split(":", 1) for field in fields)
        return f"a field without a label: {(bad or [line])[0][:40]!r}" if len(bad) < len(fields) else None

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Requests without a latency; its label is found in the first rows."""
        self.measured = self.measured or self._measured(frame)
        if self.measured not in frame:
            frame[self.measured] = None
        self.not_probes = f"requests without {self.measured}"
        self.unit = self.options.unit or ("us" if self.measured == "reqtime_microsec" else "s")
        self.code, self.time = (next((name for name in labels if name in frame), "") for labels in (CODES, TIMES))
        apart = (self.measured, self.time, *LATENCIES, *CODES, *AFTERWARDS)
        self.groups = [str(name) for name in frame.columns if name not in apart]
        return absent(frame[self.measured])

    def _measured(self, frame: pd.DataFrame) -> str:
        """The label of the latency: the user's, else the known one that most lines have."""
        names = list(map(str, frame.columns))
        if wanted := self.options.columns.get("latency"):
            if wanted not in names:
                raise MissingColumn(f"{self.log}: there is no label {wanted!r}; there are: {listed(names)}")
            return wanted
        counts = {name: int((~absent(frame[name])).sum()) for name in LATENCIES if name in names}
        if not any(counts.values()):
            raise MissingColumn(
                f"{self.log}: no label is known as a latency ({listed(LATENCIES)}); there are: {listed(names)}. "
                "Name it: --column latency=NAME"
            )
        return max(counts, key=lambda name: counts[name])

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        if self.time:
            written = frame[self.time].str.strip("[] ")
            apache = written.str.match(r"\d\d/[A-Z][a-z]{2}/", na=False).any()
            self.time_style = self.options.time_format or (APACHE_TIME if apache else None)
            frame = frame.assign(**{self.time: written})
        super().fill(records, frame)
