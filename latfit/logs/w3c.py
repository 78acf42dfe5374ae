"""W3C extended logs with a time taken: IIS and CloudFront."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import Parsed, chosen, floats, moments, read_lines, seconds_before, told
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.units import in_seconds

FIELDS = re.compile(r"^#Fields:[ \t]*(.*)$", re.MULTILINE)
NEEDED = ("date", "time", "time-taken", "sc-status")
AFTERWARDS = re.compile(r"sc-|time|x-edge-.*(?:result|request)")  # what the server tells with the answer
COMMENTS = "directives"


@register
class W3c(Format):
    """Latency is `time-taken`: in ms where whole (IIS), in s with decimals (CloudFront)."""

    name = "w3c"
    description = "IIS or CloudFront (W3C extended) log; latency = time-taken"
    rank = 16
    roles = ("latency",)
    uses = ("statuses", "unit", "timezone")

    def sniff(self, head: str) -> bool:
        """By the line that names the fields."""
        fields = FIELDS.search(head) if head.lstrip().startswith("#") else None
        return fields is not None and {"date", "time", "sc-status"} <= set(fields[1].split())

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        fields = FIELDS.search(source.text)
        names = fields[1].split() if fields else []
        missing = [name for name in NEEDED if name not in names and name not in options.columns.values()]
        if missing == ["time-taken"] and "latency" not in options.columns:
            raise MissingColumn(f"{source.name}: the log has no time-taken: choose that field in the server's logging")
        if not names or len(set(names)) < len(names) or not {"date", "time", "sc-status"} <= set(names):
            raise LogError(f"{source.name}: #Fields must name date, time and sc-status once; it has: {listed(names)}")
        measured = chosen("latency", options, "time-taken", names, source.name)
        separator = "\t" if "\t" in _first_row(source.text) else " "
        decimals = "." in dict(zip(names, _first_row(source.text).split(separator), strict=False)).get(measured, "")
        unit = options.unit or ("s" if decimals else "ms")
        outcomes = HttpOutcomes(options)
        groups = [name for name in names if name not in ("date", "time", measured) and not AFTERWARDS.match(name)]
        note = told(f"{measured} in {unit}", "date and time, less the latency (they are of the answer)", groups)

        def parse(line: str) -> Parsed:
            if line.startswith("#"):
                if line.startswith("#Fields:") and line[8:].split() != names:
                    return "other fields: from here on, #Fields is another; split the log there"
                return None
            row = line.split(separator)
            return row if len(row) == len(names) else f"wrong number of fields: {len(row)} instead of {len(names)}"

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            records = _records(frame, line, measured, unit, options, outcomes)
            records.raw = frame
            records.extras = {name: frame[name] for name in groups}
            records.notes.append(note)
            return records

        yield from read_lines(source, names, parse, convert, others=COMMENTS)
        yield outcomes.last()


def _first_row(head: str) -> str:
    return next((line for line in head.split("\n") if line.strip() and not line.startswith("#")), "")


def _records(
    frame: pd.DataFrame,
    line: NDArray[np.int64],
    measured: str,
    unit: str,
    options: ReadOptions,
    outcomes: HttpOutcomes,
) -> Records:
    records = Records(line, np.empty(0), np.empty(0, dtype=np.int8))
    records.latency = in_seconds(floats(frame[measured], measured, records), unit)
    records.status = outcomes.statuses(frame["sc-status"], records)
    when = frame["date"] + "T" + frame["time"]
    written = moments(when, "date and time", "iso", options.timezone, records)
    records.submitted = seconds_before(written, records.latency)
    outcomes.add(frame["sc-status"], records)
    return records
