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
from latfit.table import COMPLETED, LOST

_WHEN = r"(?:\[(?P<time>\d{9,10}(?:\.\d{1,9})?)\] )?"
_MS = r"(?P<ms>\d{1,9}(?:\.\d{1,9})?)"
# of Linux and BSD, numbered; of Windows and of fping, which write a line for every loss too
ANSWER = re.compile(
    rf"{_WHEN}\d+ bytes from (?P<host>\S+?)[:,]? [^=]*seq=(?P<seq>\d{{1,5}}) .*?time[=<]{_MS} ?ms(?P<dup>.*DUP!)?"
)
OTHER_ANSWERS = (
    re.compile(rf"Reply from (?P<host>\S+): .*?time[=<]{_MS} ?ms"),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], (?:\d+ bytes, )?{_MS} ms\b"),
)
LOSSES = (
    re.compile(
        r"(?:Request timed out|General failure)\.?$|"
        r"Reply from (?P<host>\S+): (?:Destination .* unreachable|TTL expired)"
    ),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], timed out"),
)
UNANSWERED = re.compile(
    rf"{_WHEN}(?:no answer yet for|Request timeout for|From \S+(?: \(\S+\))?) icmp_seq[= ](?P<seq>\d{{1,5}})\b"
)
BEGINS = re.compile(r"PING \S")
SENT = re.compile(r"(\d{1,7}) packets transmitted,")
NAMES = ("time", "host", "ms")
WRAP = 1 << 16  # sequence numbers have 16 bits
NEAR = 1000  # packets that answers may be out of order by
MOST_MISSING = 1 << 20
OTHERS = "lines that are no answers"


@register
class Ping(Format):
    """Latency is the time of an answer; `Request timed out` and sequence numbers that are missing are lost.

    `ping -D` and `fping -D` write when an answer came; without that the log has no times.
    """

    name = "ping"
    by_line = False  # which numbers are missing is known from all of them
    description = "output of ping or fping; missing sequence numbers are lost"
    rank = 20

    def sniff(self, head: str) -> bool:
        """An answer or a loss in the first lines."""
        patterns = (ANSWER, *OTHER_ANSWERS, *LOSSES, UNANSWERED)
        return any(pattern.match(line[:1000]) for line in first_lines(head, 8) for pattern in patterns)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the packets; those that are missing come last, and have no line of their own."""
        account = _Account()
        try:
            yield from read_lines(source, NAMES, account.fields, _records, others=OTHERS)
        except LogError:
            if not any(numbers.missing for _, numbers in account.all):
                raise
        yield _missing([(host, numbers.missing) for host, numbers in account.all], source.name)


@dataclass
class _Numbers:
    """The sequence numbers that one ping sent to a host: the first, the last, and those that were answered."""

    first: int | None = None
    last: int = -1
    answered: set[int] = field(default_factory=set)
    sent: int | None = None  # as it says itself when it ends

    def of(self, seq: int, *, answered: bool) -> int | None:
        """The number of which the log has 16 bits; None where it is that of another ping, which began again."""
        behind = self.last % WRAP - seq
        if self.last < 0 or behind < 0:
            return seq if self.last < 0 else self.last - behind
        if behind > WRAP - NEAR:
            return self.last + WRAP - behind
        number = self.last - behind
        return number if behind < NEAR and not (answered and number in self.answered) else None

    def add(self, number: int, *, answered: bool) -> None:
        """Note a packet that was sent."""
        self.last = max(self.last, number)
        self.first = number if self.first is None else min(self.first, number)
        if answered:
            self.answered.add(number)

    @property
    def missing(self) -> int:
        """How many were sent and not answered."""
        span = 0 if self.first is None else self.last + 1 - self.first
        return max(span if self.sent is None else self.sent, len(self.answered)) - len(self.answered)


class _Account:
    """Takes lines apart, and keeps the sequence numbers of every host."""

    def __init__(self) -> None:
        self.all: list[tuple[str | None, _Numbers]] = []
        self.now: dict[str | None, _Numbers] = {}
        self.host: str | None = None  # of the last line
        self.begun = False  # a ping has said that it begins, and the first answer is still to come

    def fields(self, line: str) -> Parsed:
        """Time, host and milliseconds of an answer, no milliseconds for a loss; None for any other line."""
        if BEGINS.match(line):
            if len(self.now) == 1:
                self.now.clear()
            self.begun = True
        sent = SENT.match(line)
        if sent and self.host in self.now:
            self.now.pop(self.host).sent = int(sent[1])
        found = ANSWER.match(line)
        if found:
            self.host = found["host"]
            if not found["dup"]:
                self._note(int(found["seq"]), answered=True)
            return None if found["dup"] else found.group("time", "host", "ms")
        found = UNANSWERED.match(line)
        if found:  # an answer may still come
            self._note(int(found["seq"]), answered=False)
            return None
        found = next(filter(None, (pattern.match(line) for pattern in (*OTHER_ANSWERS, *LOSSES))), None)
        told = found.groupdict() if found else {}
        return (told.get("time"), told["host"], told.get("ms")) if found else None

    def _note(self, seq: int, *, answered: bool) -> None:
        numbers = self.now.get(self.host)
        number = None if numbers is None else numbers.of(seq, answered=answered)
        if numbers is None or number is None:
            numbers, number = _Numbers(first=min(1, seq) if self.begun else None), seq
            self.now[self.host] = numbers
            self.all.append((self.host, numbers))
            self.begun = False
        numbers.add(number, answered=answered)


def _records(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
    lost = frame["ms"].isna().to_numpy()
    records = Records(line, np.empty(0), np.where(lost, LOST, COMPLETED).astype(np.int8))
    records.latency = floats(frame["ms"], "time", records) / 1000
    arrived = moments(frame["time"], "time", "epoch", None, records)
    if not np.isnat(arrived).all():
        records.submitted = seconds_before(arrived, records.latency)
    records.extras = {"host": frame["host"]}
    return records


def _missing(hosts: list[tuple[str | None, int]], log: str) -> Records:
    """Lost packets of which the log has only the numbers of others."""
    many = sum(count for _, count in hosts)
    if many > MOST_MISSING:
        raise LogError(f"{log}: {many} sequence numbers are missing: this is not the output of one ping after another")
    lost = Records(np.ones(many, dtype=np.int64), np.full(many, np.nan), np.full(many, LOST, dtype=np.int8))
    lost.extras = {"host": pd.Series([host for host, count in hosts for _ in range(count)], dtype="str")}
    if many:
        told = counted(many, "sequence number", "has", "have")
        lost.as_lost = many
        lost.notes.append(f"{told} no answer: {AS_LOST[many > 1]}")
    return lost
