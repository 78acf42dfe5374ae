"""LTSV access logs: tab-separated fields, each with its label."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import APACHE_TIME, absent, first_lines, floats, moments, told
from latfit.logs.outcomes import HttpOutcomes
from latfit.logs.records import Records, shown
from latfit.logs.source import Block, Source
from latfit.table import COMPLETED
from latfit.units import in_seconds

FIELD = re.compile(r"[A-Za-z0-9_.-]+:", re.ASCII)
# labels of a latency and their units, best first: those of ltsv.org, and what people add
LATENCIES = {
    "reqtime": "s", "request_time": "s", "reqtime_microsec": "us", "taken_sec": "s", "response_time": "s",
    "duration": "s", "runtime": "s", "apptime": "s", "upstream_response_time": "s", "vhost_time": "s",
}  # fmt: skip
CODES = ("status", "code", "status_code")
TIMES = ("time", "time_local", "timestamp", "date")
AFTERWARDS = ("size", "body_bytes_sent", "bytes", "cache", "upstream_status")  # known with the answer: no groups
NOT_LABELLED = "lines that are not labelled fields"


@register
class Ltsv(Format):
    """Latency is the label that most of the first lines have of reqtime, request_time, apptime, …; seconds.

    A request without it (`apptime:-`: no backend was asked) is left out, and counted.
    """

    name = "ltsv"
    description = "LTSV access log; latency = reqtime, request_time, apptime, …"
    rank = 28
    roles = ("latency",)
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Three labelled fields or more in the first line, and nothing else."""
        lines = first_lines(head, 1)
        fields = lines[0].split("\t") if lines else []
        return len(fields) > 2 and all(FIELD.match(field) for field in fields)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        measured: str | None = None
        outcomes = HttpOutcomes(options)
        for block in source.blocks():
            frame, line, skipped, broken = _parse(block)
            if broken:
                yield Records.unusable(broken)
            if measured is None and len(frame):
                measured = _measured(frame, options, source.name)
            if measured is None or not len(frame):
                records = Records.unusable({})
            else:
                records = _chunk(frame, line, measured, options, outcomes)
            if skipped:
                records.skipped[NOT_LABELLED] += skipped
            yield records
        if measured is None:
            raise LogError(f"{source.name}: no line of this log has labelled fields")
        yield outcomes.last()


def _parse(block: Block) -> tuple[pd.DataFrame, NDArray[np.int64], int, dict[int, str]]:
    """The labelled fields of a block as a table, line numbers, how many lines have none, and the broken ones."""
    rows, numbers, skipped = [], [], 0
    broken: dict[int, str] = {}
    for number, line in enumerate(block.lines(), start=block.first_line):
        if not line.strip():
            continue
        fields = line.rstrip("\t ").split("\t")
        labelled = [field for field in fields if FIELD.match(field)]
        if len(labelled) == len(fields) > 1:
            rows.append(dict(field.split(":", 1) for field in labelled))
            numbers.append(number)
        elif labelled:
            bad = next((field for field in fields if not FIELD.match(field)), line)
            broken[number] = shown(len(broken), "a field without a label", f"{bad[:40]!r}")
        else:
            skipped += 1
    return pd.DataFrame(rows, dtype="str"), np.array(numbers, dtype=np.int64), skipped, broken


def _measured(frame: pd.DataFrame, options: ReadOptions, log: str) -> str:
    """The label of the latency: the user's, else the known one that most lines have."""
    wanted = options.columns.get("latency")
    names = list(map(str, frame.columns))
    if wanted is not None and wanted not in names:
        raise MissingColumn(f"{log}: there is no label {wanted!r}; there are: {listed(names)}")
    if wanted is not None:
        return wanted
    there = {name: int((~absent(frame[name])).sum()) for name in LATENCIES if name in names}
    if not any(there.values()):
        raise MissingColumn(
            f"{log}: no label is known as a latency ({listed(LATENCIES)}); there are: {listed(names)}. "
            "Name it: --column latency=NAME"
        )
    return max(there, key=lambda name: there[name])


def _chunk(
    frame: pd.DataFrame, line: NDArray[np.int64], measured: str, options: ReadOptions, outcomes: HttpOutcomes
) -> Records:
    if measured not in frame:
        frame[measured] = None
    timed = ~absent(frame[measured])
    records = _records(frame[timed].reset_index(drop=True), line[timed], measured, options, outcomes)
    if not timed.all():
        records.skipped[f"requests without {measured}"] = int((~timed).sum())
    return records


def _records(
    frame: pd.DataFrame, line: NDArray[np.int64], measured: str, options: ReadOptions, outcomes: HttpOutcomes
) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    unit = options.unit or LATENCIES.get(measured, "s")
    records.latency = in_seconds(floats(frame[measured], measured, records), unit)
    code = next((name for name in CODES if name in frame), None)
    if code is not None:
        records.status = outcomes.statuses(frame[code], records)
    time = next((name for name in TIMES if name in frame), None)
    if time is not None:
        written = frame[time].str.strip("[] ")
        apache = written.str.match(r"\d\d/[A-Z][a-z]{2}/", na=False).any()
        style = options.time_format or (APACHE_TIME if apache else None)
        records.submitted = moments(written, time, style, options.timezone, records)
    if code is not None:
        outcomes.add(frame[code], records)
    records.raw = frame
    apart = (measured, time, *LATENCIES, *CODES, *AFTERWARDS)
    rest = [str(name) for name in frame.columns if name not in apart]
    records.extras = {name: frame[name] for name in rest}
    records.notes.append(told(f"{measured} in {unit}", time or "unknown", rest))
    return records
