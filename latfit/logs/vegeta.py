"""Results of the load generator vegeta: `vegeta encode --to csv` or `--to json`."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import (
    Parsed,
    first_lines,
    floats,
    json_object,
    moments,
    plain_text,
    read_lines,
    told,
)
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED
from latfit.units import in_seconds

ROW = re.compile(r"\d{19},\d{1,3},\d+,\d+,\d+,", re.ASCII)
NAMES = ("timestamp", "code", "latency", "error", "attack", "method", "url")
CSV_AT = (0, 1, 2, 5, 7, 9, 10)
KEYS = ("attack", "seq", "code", "timestamp", "latency")
GROUPS = ("attack", "method", "url")
TIMED_OUT = r"(?i)time[d-]? ?-?out|deadline exceeded"


@register
class Vegeta(Format):
    """Latency in ns; the outcome goes by the code. Code 0 with a timeout as its error is censored, else failed."""

    name = "vegeta"
    description = "vegeta encode --to csv or --to json; latency in ns"
    rank = 19
    uses = ("statuses",)

    def sniff(self, head: str) -> bool:
        """The first row as vegeta writes it."""
        return any(isinstance(_parse(line), list) for line in first_lines(head, 1))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        outcomes = HttpOutcomes(options)

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            return _records(frame, line, outcomes)

        yield from read_lines(source, NAMES, _parse, convert)
        yield outcomes.last()


def _parse(line: str) -> Parsed:
    if line.startswith("{"):
        return _parse_json(line)
    if not ROW.match(line):
        return f"not a result as vegeta writes it: {line[:40]!r}"
    try:
        fields = next(csv.reader([line]))
    except csv.Error as error:
        return f"unparseable line: {error}"
    return [fields[at] if at < len(fields) else None for at in CSV_AT]


def _parse_json(line: str) -> Parsed:
    value = json_object(line)
    if isinstance(value, str):
        return value
    if not all(key in value for key in KEYS):
        return f"not a result as vegeta writes it: {line[:40]!r}"
    return [plain_text(value.get(name)) for name in NAMES]


def _records(frame: pd.DataFrame, line: NDArray[np.int64], outcomes: HttpOutcomes) -> Records:
    records = Records(line, np.empty(0), np.empty(0, dtype=np.int8))
    records.latency = in_seconds(floats(frame["latency"], "latency", records), "ns")
    records.status = outcomes.statuses(frame["code"], records)
    gave_up = frame["error"].astype("string").str.contains(TIMED_OUT, na=False).to_numpy(dtype=bool)
    unanswered = (frame["code"] == "0").to_numpy(dtype=bool)
    records.status[gave_up & unanswered & (records.status >= 0)] = CENSORED
    records.submitted = moments(frame["timestamp"], "timestamp", None, None, records)
    outcomes.add(frame["code"].mask(gave_up & unanswered, "0 (timeout)"), records)
    records.raw = frame
    records.extras = {name: frame[name] for name in GROUPS}
    records.notes.append(told("latency in ns", "timestamp", GROUPS))
    return records
