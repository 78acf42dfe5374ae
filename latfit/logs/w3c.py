"""W3C extended logs with a time taken: IIS and CloudFront."""

from __future__ import annotations

import re

import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, floats, moments, seconds_before
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.units import in_seconds

FIELDS = re.compile(r"^#Fields:[ \t]*(.*)$", re.MULTILINE)
NEEDED = ("date", "time", "time-taken", "sc-status")
AFTERWARDS = re.compile(r"sc-|time|x-edge-.*(?:result|request)")  # what the server tells with the answer


@register
class W3c(LineFormat):
    """Latency is `time-taken`: in ms where whole (IIS), in s with decimals (CloudFront)."""

    name = "w3c"
    description = "IIS or CloudFront (W3C extended) log; latency = time-taken"
    rank = 16
    roles = ("latency",)
    uses = ("statuses", "unit", "timezone")
    others = "directives"
    http = True
    submitted_is = "date and time, less the latency (they are of the answer)"
    separator: str
    measured: str
    unit: str

    def sniff(self, head: str) -> bool:
        """By the line that names the fields."""
        fields = FIELDS.search(head) if head.lstrip().startswith("#") else None
        return fields is not None and {"date", "time", "sc-status"} <= set(fields[1].split())

    def begin(self, source: Source) -> None:
        """The fields, by the line that names them; the first row shows how they are separated, and the unit."""
        fields = FIELDS.search(source.text)
        names = fields[1].split() if fields else []
        missing = [name for name in NEEDED if name not in names and name not in self.options.columns.values()]
        if missing == ["time-taken"] and "latency" not in self.options.columns:
            raise MissingColumn(f"{source.name}: the log has no time-taken: choose that field in the server's logging")
        if not names or len(set(names)) < len(names) or not {"date", "time", "sc-status"} <= set(names):
            raise LogError(f"{source.name}: #Fields must name date, time and sc-status once; it has: {listed(names)}")
        measured = chosen("latency", self.options, "time-taken", names, source.name)
        self.separator = "\t" if "\t" in _first_row(source.text) else " "
        decimals = "." in dict(zip(names, _first_row(source.text).split(self.separator), strict=False)).get(
            measured, ""
        )
        self.unit = self.options.unit or ("s" if decimals else "ms")
        self.names, self.measured = names, measured
        apart = ("date", "time", measured)
        self.groups = [name for name in names if name not in apart and not AFTERWARDS.match(name)]
        self.latency_is = f"{measured} in {self.unit}"

    def parse(self, line: str) -> Parsed:
        """The fields of a request."""
        if line.startswith("#"):
            if line.startswith("#Fields:") and line[8:].split() != self.names:
                return "other fields: from here on, #Fields is another; split the log there"
            return None
        row = line.split(self.separator)
        wanted = len(self.names)
        return row if len(row) == wanted else f"wrong number of fields: {len(row)} instead of {wanted}"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By sc-status."""
        records.latency = in_seconds(floats(frame[self.measured], self.measured, records), self.unit)
        records.status = self.tally.statuses(frame["sc-status"], records)
        when = frame["date"] + "T" + frame["time"]
        written = moments(when, "date and time", "iso", self.options.timezone, records)
        records.submitted = seconds_before(written, records.latency)
        self.tally.add(frame["sc-status"], records)


def _first_row(head: str) -> str:
    return next((line for line in head.split("\n") if line.strip() and not line.startswith("#")), "")
