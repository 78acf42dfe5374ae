"""Results of the load generator vegeta: `vegeta encode --to csv` or `--to json`."""

from __future__ import annotations

import csv
import re

import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, floats, json_object, moments, plain_text
from latfit.logs.records import Records
from latfit.table import CENSORED
from latfit.units import in_seconds

ROW = re.compile(r"\d{19},\d{1,3},\d+,\d+,\d+,", re.ASCII)
CSV_AT = (0, 1, 2, 5, 7, 9, 10)
KEYS = ("attack", "seq", "code", "timestamp", "latency")
TIMED_OUT = r"(?i)time[d-]? ?-?out|deadline exceeded"


@register
class Vegeta(LineFormat):
    """Latency in ns; the outcome goes by the code. Code 0 with a timeout as its error is censored, else failed."""

    name = "vegeta"
    description = "vegeta encode --to csv or --to json; latency in ns"
    rank = 19
    uses = ("statuses",)
    names = ("timestamp", "code", "latency", "error", "attack", "method", "url")
    groups = ("attack", "method", "url")
    latency_is, submitted_is = "latency in ns", "timestamp"
    http = True
    sniffed = 1

    def parse(self, line: str) -> Parsed:
        """A row of the CSV, or an object."""
        if line.startswith("{"):
            value = json_object(line)
            if isinstance(value, str):
                return value
            if all(key in value for key in KEYS):
                return [plain_text(value.get(name)) for name in self.names]
        if not ROW.match(line):
            return f"not a result as vegeta writes it: {line[:40]!r}"
        try:
            fields = next(csv.reader([line]))
        except csv.Error as error:
            return f"unparseable line: {error}"
        return [fields[at] if at < len(fields) else None for at in CSV_AT]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By code; a timeout is among the errors of code 0."""
        records.latency = in_seconds(floats(frame["latency"], "latency", records), "ns")
        records.status = self.tally.statuses(frame["code"], records)
        gave_up = frame["error"].astype("string").str.contains(TIMED_OUT, na=False).to_numpy(dtype=bool)
        unanswered = (frame["code"] == "0").to_numpy(dtype=bool)
        records.status[gave_up & unanswered & (records.status >= 0)] = CENSORED
        records.submitted = moments(frame["timestamp"], "timestamp", None, None, records)
        self.tally.add(frame["code"].mask(gave_up & unanswered, "0 (timeout)"), records)
