"""The CSV of the load generator hey (`hey -o csv`)."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import chosen, floats
from latfit.logs.records import Records
from latfit.logs.source import Source

UNSEEN = "hey leaves requests without an answer out of its CSV: failures to connect and timeouts are not counted here"


@register
class Hey(TableFormat):
    """Latency is response-time, in s; the outcome goes by status-code. Requests without an answer are not there."""

    name = "hey"
    description = "hey -o csv; latency = response-time"
    rank = 26
    roles = ("latency",)
    uses = ("statuses",)
    needed = ("response-time", "status-code")
    marks = ("DNS+dialup",)
    http = True
    submitted_is = "unknown (offset counts from the start of the run)"
    measured: str

    def begin(self, source: Source) -> None:
        """Which column is the latency."""
        self.measured = chosen("latency", self.options, "response-time", self.names, source.name)
        self.latency_is = f"{self.measured} in s"

    def types(self) -> dict[str, pa.DataType]:
        """Numbers and codes."""
        return {self.measured: pa.float64(), "status-code": pa.string()}

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the code."""
        records.latency = floats(frame[self.measured], self.measured, records)
        records.status = self.tally.statuses(frame["status-code"], records)
        self.tally.add(frame["status-code"], records)
        records.notes.append(UNSEEN)
