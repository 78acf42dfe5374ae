"""Gatling's simulation.log as text (versions 2 and 3, before it became binary)."""

from __future__ import annotations

import re

import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, first_lines, floats, moments
from latfit.logs.records import Records
from latfit.table import CENSORED, FAILED

KINDS = ("RUN", "USER", "REQUEST", "GROUP", "ACTION", "ASSERTION", "ERROR")
TIMED_OUT = r"(?i)time[d-]? ?-?out|actually found (?:408|504)\b"
NUMBER = re.compile(r"\d{9,16}", re.ASCII)


@register
class Gatling(LineFormat):
    """Latency is end − start of each REQUEST, in ms. OK is completed; KO by a timeout censored, any other KO failed."""

    name = "gatling"
    description = "Gatling simulation.log (text); latency = end - start of requests"
    rank = 21
    names = ("name", "groups", "start", "end", "status", "message")
    groups = ("name", "groups")
    outcomes = "outcomes by Gatling's status"
    latency_is, submitted_is = "end - start in ms", "start"

    def sniff(self, head: str) -> bool:
        """A first line of one of Gatling's kinds, and times in milliseconds."""
        lines = first_lines(head)
        return bool(lines) and lines[0].split("\t", 1)[0] in KINDS and super().sniff(head)

    def parse(self, line: str) -> Parsed:
        """A request's fields: their number differs by version, but start, end and OK or KO follow each other."""
        fields = line.split("\t")
        if fields[0] != "REQUEST":
            return None
        for at in range(3, len(fields)):
            start, end, status = fields[at - 2], fields[at - 1], fields[at].strip()
            if status in ("OK", "KO") and NUMBER.fullmatch(end) and NUMBER.fullmatch(start):
                message = "\t".join(fields[at + 1 :]).strip()
                return [fields[at - 3], fields[at - 4] if at > 4 else "", start, end, status, message]
        return f"not a request as Gatling writes it: {line[:40]!r}"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By OK and KO, and the message of a KO."""
        start, end = (floats(frame[name], name, records) for name in ("start", "end"))
        records.latency = (end - start) / 1000
        ko = (frame["status"] == "KO").to_numpy(dtype=bool)
        timed_out = frame["message"].str.contains(TIMED_OUT, na=False).to_numpy(dtype=bool)
        records.status[ko] = FAILED
        records.status[ko & timed_out] = CENSORED
        records.submitted = moments(frame["start"], "start", "epoch-ms", None, records)
        self.tally.add(frame["status"].where(~(ko & timed_out), "KO (timeout)"), records)
