"""W3C extended logs with a time taken: IIS and CloudFront."""

from __future__ import annotations

import re

import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed
from latfit.logs.records import Records
from latfit.logs.source import Source

FIELDS = re.compile(r"^#Fields:[ \t]*(.*)$", re.MULTILINE)
NEEDED = {"date", "time", "sc-status"}
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
    measured, code, time, time_style, at_end = "time-taken", "sc-status", "date and time", "iso", True
    http = True
    submitted_is = "date and time, less the latency (they are of the answer)"
    separator: str

    def sniff(self, head: str) -> bool:
        fields = FIELDS.search(head) if head.lstrip().startswith("#") else None
        return fields is not None and set(fields[1].split()) >= NEEDED

    def begin(self, source: Source) -> None:
        """The fields, by the line that names them; the first row shows how they are separated, and the unit."""
        fields = FIELDS.search(source.text)
        self.names = names = fields[1].split() if fields else []
        if len(set(names)) < len(names) or not set(names) >= NEEDED:
            raise LogError(f"{source.name}: #Fields must name date, time and sc-status once; it has: {listed(names)}")
        if "time-taken" not in names and "latency" not in self.options.columns:
            raise MissingColumn(f"{source.name}: the log has no time-taken: choose that field in the server's logging")
        super().begin(source)
        first = next((line for line in source.text.split("\n") if line.strip() and not line.startswith("#")), "")
        self.separator = "\t" if "\t" in first else " "
        example = dict(zip(names, first.split(self.separator), strict=False)).get(self.measured, "")
        self.unit = self.options.unit or ("s" if "." in example else "ms")
        apart = ("date", "time", self.measured)
        self.groups = [name for name in names if name not in apart and not AFTERWARDS.match(name)]

    def parse(self, line: str) -> Parsed:
        if line.startswith("#"):
            if line.startswith("#Fields:") and line[8:].split() != self.names:
                return "other fields: from here on, #Fields is another; split the log there"
            return None
        row, width = line.split(self.separator), len(self.names)
        return row if len(row) == width else f"wrong number of fields: {len(row)} instead of {width}"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame.assign(**{self.time: frame["date"] + "T" + frame["time"]}))
