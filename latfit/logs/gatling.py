"""Gatling's simulation.log as text (versions 2 and 3, before it became binary)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import Parsed, first_lines, floats, moments, read_lines, told
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED, FAILED

NAMES = ("name", "groups", "start", "end", "status", "message")
KINDS = ("RUN", "USER", "REQUEST", "GROUP", "ACTION", "ASSERTION", "ERROR")
TIMED_OUT = r"(?i)time[d-]? ?-?out|actually found (?:408|504)\b"
NUMBER = re.compile(r"\d{9,16}", re.ASCII)


@register
class Gatling(Format):
    """Latency is end − start of each REQUEST, in ms. OK is completed; KO by a timeout censored, any other KO failed."""

    name = "gatling"
    description = "Gatling simulation.log (text); latency = end - start of requests"
    rank = 21

    def sniff(self, head: str) -> bool:
        """A first line of one of Gatling's kinds, and times in milliseconds."""
        lines = first_lines(head)
        kinds = [line.split("\t", 1)[0] for line in lines]
        return bool(lines) and kinds[0] in KINDS and any(isinstance(_parse(line), list) for line in lines)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        outcomes = OutcomeTally("outcomes by Gatling's status")

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            return _records(frame, line, outcomes)

        yield from read_lines(source, NAMES, _parse, convert)
        yield outcomes.last()


def _parse(line: str) -> Parsed:
    """A request's fields: their number differs by version, but start, end and OK or KO follow each other."""
    fields = line.split("\t")
    if fields[0] != "REQUEST":
        return None
    for at in range(3, len(fields)):
        if fields[at].strip() in ("OK", "KO") and NUMBER.fullmatch(fields[at - 1]) and NUMBER.fullmatch(fields[at - 2]):
            message = "\t".join(fields[at + 1 :]).strip()
            return [fields[at - 3], fields[at - 4] if at > 4 else "", *fields[at - 2 : at], fields[at].strip(), message]
    return f"not a request as Gatling writes it: {line[:40]!r}"


def _records(frame: pd.DataFrame, line: NDArray[np.int64], outcomes: OutcomeTally) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    start, end = (floats(frame[name], name, records) for name in ("start", "end"))
    records.latency = (end - start) / 1000
    ko = (frame["status"] == "KO").to_numpy(dtype=bool)
    timed_out = frame["message"].str.contains(TIMED_OUT, na=False).to_numpy(dtype=bool)
    records.status[ko] = FAILED
    records.status[ko & timed_out] = CENSORED
    records.submitted = moments(frame["start"], "start", "epoch-ms", None, records)
    outcomes.add(frame["status"].where(~(ko & timed_out), "KO (timeout)"), records)
    records.raw = frame
    records.extras = {name: frame[name] for name in ("name", "groups")}
    records.notes.append(told("end - start in ms", "start", ("name", "groups")))
    return records
