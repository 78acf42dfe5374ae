"""The output of ping and fping: a line an answer; a sequence number that is missing was lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, counted
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import Parsed, first_lines, floats, moments, read_lines, seconds_before
from latfit.logs.records import AS_LOST, Records
from latfit.logs.source import Source
from latfit.logs.table import COMPLETED, LOST

_WHEN = r"(?:\[(?P<time>\d{9,10}(?:\.\d{1,9})?)\] )?"
_MS = r"(?P<ms>\d{1,9}(?:\.\d{1,9})?)"
# of Linux and BSD, numbered; of Windows and of fping, which write a line for every loss too
NUMBERED = re.compile(rf"{_WHEN}\d+ bytes from (?P<host>[^\s:]+)[^=]*seq=(?P<seq>\d{{1,5}}) .*?time[=<]{_MS} ?ms")
ANSWERS = (
    re.compile(rf"Reply from (?P<host>\S+): .*?time[=<]{_MS} ?ms"),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], (?:\d+ bytes, )?{_MS} ms\b"),
)
LOSSES = (
    re.compile(r"Request timed out\.?$|Reply from (?P<host>\S+): Destination .* unreachable"),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], timed out"),
)
UNANSWERED = re.compile(rf"{_WHEN}(?:no answer yet for|Request timeout for|From \S+) icmp_seq[= ](?P<seq>\d{{1,5}})\b")
BEGINS = re.compile(r"PING \S")
SENT = re.compile(r"(\d{1,7}) packets transmitted,")
NAMES = ("time", "host", "ms")
WRAP = 1 << 16  # sequence numbers have 16 bits
MOST_MISSING = 1 << 20
OTHERS = "lines that are no answers"


@register
class Ping(Format):
    """Latency is the time of an answer; `Request timed out` and sequence numbers that are missing are lost.

    `ping -D` and `fping -D` write when an answer came; without that the log has no times.
    """

    name = "ping"
    description = "output of ping or fping; missing sequence numbers are lost"
    rank = 20

    def sniff(self, head: str) -> bool:
        """An answer or a loss in the first lines."""
        patterns = (NUMBERED, *ANSWERS, *LOSSES, UNANSWERED)
        return any(pattern.match(line[:1000]) for line in first_lines(head, 8) for pattern in patterns)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the packets; those that are missing come last."""
        pings = [_Numbers()]

        def parse(line: str) -> Parsed:
            if BEGINS.match(line):
                pings.append(_Numbers(first=1))
            sent = SENT.match(line)
            if sent:
                pings[-1].sent = int(sent[1])
            return _fields(line, pings[-1])

        end, host = 1, None
        for records in read_lines(source, NAMES, parse, _records, others=OTHERS):
            end = int(records.line.max(initial=end))
            host = next(iter(records.extras.get("host", pd.Series(dtype="str")).dropna()), host)
            yield records
        yield _missing(sum(numbers.missing for numbers in pings), end, host, source.name)


@dataclass
class _Numbers:
    """The sequence numbers of one ping: the first and the last that it sent, and those that were answered."""

    first: int | None = None
    last: int = -1
    answered: set[int] = field(default_factory=set)
    sent: int | None = None  # as it says itself when it ends

    def add(self, seq: int, *, answered: bool) -> bool:
        """Note a number, of which the log has 16 bits; False where it was answered before."""
        number = seq if self.last < 0 else self.last + (seq - self.last + WRAP // 2) % WRAP - WRAP // 2
        new = number not in self.answered
        self.last = max(self.last, number)
        self.first = number if self.first is None else min(self.first, number)
        if answered:
            self.answered.add(number)
        return new

    @property
    def missing(self) -> int:
        """How many were sent and not answered."""
        span = 0 if self.first is None else self.last + 1 - self.first
        return max(0, span if self.sent is None else self.sent, len(self.answered)) - len(self.answered)


def _fields(line: str, numbers: _Numbers) -> Parsed:
    """Time, host and milliseconds of an answer, no milliseconds for a loss; None for any other line."""
    found = NUMBERED.match(line)
    if found:
        return found.group("time", "host", "ms") if numbers.add(int(found["seq"]), answered=True) else None
    found = UNANSWERED.match(line)
    if found:  # an answer may still come
        numbers.add(int(found["seq"]), answered=False)
        return None
    found = next(filter(None, (pattern.match(line) for pattern in (*ANSWERS, *LOSSES))), None)
    told = found.groupdict() if found else {}
    return (told.get("time"), told["host"], told.get("ms")) if found else None


def _records(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
    lost = frame["ms"].isna().to_numpy()
    records = Records(line, np.empty(0), np.where(lost, LOST, COMPLETED).astype(np.int8))
    records.latency = floats(frame["ms"], "time", records) / 1000
    arrived = moments(frame["time"], "time", "epoch", None, records)
    if not np.isnat(arrived).all():
        records.submitted = seconds_before(arrived, records.latency)
    records.extras = {"host": frame["host"]}
    return records


def _missing(many: int, line: int, host: str | None, log: str) -> Records:
    """Lost packets of which the log has only the numbers of others."""
    if many > MOST_MISSING:
        raise LogError(f"{log}: {many} sequence numbers are missing: this is not the output of one ping after another")
    lost = Records(np.full(many, line), np.full(many, np.nan), np.full(many, LOST, dtype=np.int8))
    lost.extras = {"host": pd.Series([host] * many, dtype="str")}
    if many:
        numbers = counted(many, "sequence number", "has", "have")
        lost.notes.append(f"{numbers} no answer: {AS_LOST[many > 1]}")
    return lost
