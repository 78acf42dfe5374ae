"""JMeter result files (JTL) written as CSV."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.delimited import head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.schema import Roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader
from latfit.table import CENSORED, COMPLETED, FAILED

GAVE_UP = r"(?i)time[d-]? ?-?out"
NEEDED = {"timeStamp", "elapsed", "success"}
TOLD = ("responseCode", "responseMessage", "failureMessage")


@register
class JMeter(Format):
    """Latency is `elapsed`, in ms.

    A sample that the client's own timeout ended is censored: the client gave up. One that was refused, reset, had
    no response or any other error is known to be dead: it failed.
    """

    name = "jmeter"
    description = "JMeter results (JTL) as CSV, with any delimiter and without a header too; latency = elapsed"
    rank = 25
    roles = ("latency",)
    uses = ("unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """By JMeter's column names, or rows as JMeter writes them without a header."""
        return set(_layout(head)[1]) >= NEEDED

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the samples."""
        delimiter, names, header = _layout(source.text)
        if not set(names) >= NEEDED:
            raise LogError(f"{source.name}: line 1 must name timeStamp, elapsed and success; it has: {listed(names)}")
        measured = options.columns.get("latency", "elapsed")
        if measured not in names:
            raise MissingColumn(f"{source.name}: there is no column {measured!r}; there are: {listed(names)}")
        formats = {"timeStamp": options.time_format} if options.time_format else {}
        roles = Roles((measured,), "timeStamp", unit=options.unit or "ms", time_formats=formats)
        types = dict.fromkeys(("timeStamp", "success", *TOLD), pa.string()) | {measured: pa.float64()}
        table, tally = TableReader(roles, options), OutcomeTally("outcomes by responseCode", answers=True)

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            records = table.records(frame, line)
            records.status = _statuses(frame, records)
            if "responseCode" in frame:
                tally.add(frame["responseCode"].str.removeprefix("Non HTTP response code: "), records)
            return records

        yield from read_delimited(
            source, delimiter, names, types, convert, header=header, settled=lambda: table.settled
        )
        yield tally.last()


def _layout(head: str) -> tuple[str, list[str], bool]:
    """The delimiter, the names of the columns, and whether a header gives them; without one, by JMeter's order."""
    first = head.lstrip().split("\n", 1)[0]
    delimiter = max(",|;\t", key=first.count)
    fields = head_fields(head, delimiter)
    if set(fields) >= NEEDED or not re.fullmatch(r"\d{13}", fields[0]) or not fields[1:2] or not fields[1].isdigit():
        return delimiter, fields, True
    names = ["timeStamp", "elapsed", "label", "responseCode"]
    names += [f"column{at}" for at in range(len(names) + 1, len(fields) + 1)]
    success = next((at for at, field in enumerate(fields) if field.lower() in ("true", "false")), None)
    if success is not None and success > 3:
        names[success] = "success"
    return delimiter, names[: len(fields)], False


def _statuses(frame: pd.DataFrame, records: Records) -> NDArray[np.int8]:
    success = frame["success"].astype("string").str.strip().str.lower()
    status = np.full(len(success), UNKNOWN, dtype=np.int8)
    status[(success == "true").to_numpy(dtype=bool, na_value=False)] = COMPLETED
    failed = (success == "false").to_numpy(dtype=bool, na_value=False)
    status[failed] = FAILED
    for name in TOLD:
        if name in frame:
            told = frame[name].astype("string").str.contains(GAVE_UP, na=False).to_numpy(dtype=bool)
            status[failed & told] = CENSORED
    records.refuse(status == UNKNOWN, lambda row: f"unknown status: success is {success.iloc[row]!r}")
    return status
