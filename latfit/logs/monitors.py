"""Monitors: the output of ping and fping, and the history of Upptime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from latfit.errors import LogError, counted
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, either
from latfit.logs.records import AS_LOST, Records
from latfit.logs.source import Source
from latfit.table import LOST

_WHEN = r"(?:\[(?P<time>\d{9,10}(?:\.\d{1,9})?)\] )?"
_MS = r"(?P<ms>\d{1,9}(?:\.\d{1,9})?)"
# of Linux and BSD, numbered; of Windows and of fping, which write a line for every loss too
ANSWER = re.compile(
    rf"{_WHEN}\d+ bytes from (?P<host>\S+?)[:,]? [^=]*seq=(?P<seq>\d{{1,5}}) .*?time[=<]{_MS} ?ms(?P<dup>.*DUP!)?"
)
UNNUMBERED = (
    re.compile(rf"Reply from (?P<host>\S+): .*?time[=<]{_MS} ?ms"),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], (?:\d+ bytes, )?{_MS} ms\b"),
    re.compile(
        r"(?:Request timed out|General failure)\.?$|"
        r"Reply from (?P<host>\S+): (?:Destination .* unreachable|TTL expired)"
    ),
    re.compile(rf"{_WHEN}(?P<host>\S+)\s*: \[\d+\], timed out"),
)
UNANSWERED = re.compile(
    rf"{_WHEN}(?:no answer yet for|Request timeout for|From \S+(?: \(\S+\))?) icmp_seq[= ](?P<seq>\d{{1,5}})\b"
)
PATTERNS = (ANSWER, *UNNUMBERED, UNANSWERED)
SENT = re.compile(r"(\d{1,7}) packets transmitted,")
SEQUENCE_NUMBERS = 1 << 16  # they have 16 bits
MAX_DISORDER = 1000  # packets that answers may be out of order by
MAX_MISSING = 1 << 20


@dataclass
class _Packets:
    """The sequence numbers that one ping sent to a host: the first, the last, and those that were answered."""

    host: str | None
    first: int
    last: int
    answered: set[int] = field(default_factory=set)
    sent: int | None = None  # as it says itself when it ends

    @property
    def missing(self) -> int:
        sent = self.last + 1 - self.first if self.sent is None else self.sent
        return max(sent - len(self.answered), 0)


@register
class Ping(LineFormat):
    """Latency is the time of an answer; `Request timed out` and sequence numbers that are missing are lost.

    `ping -D` and `fping -D` write when an answer came; without that the log has no times.
    """

    name = "ping"
    by_line = False  # which numbers are missing is known from all of them
    description = "output of ping or fping; missing sequence numbers are lost"
    rank = 20
    names = ("time", "host", "ms")
    cells = "latency=ms submitted=time status=outcome"
    unit, time_style, at_end, uses = "ms", "epoch", True, ()
    latency_is = "the time of an answer in ms"
    others = "lines without an answer"
    nothing = "no line of this log is an answer to a ping"
    begins = rf"(?m)(?:.*\n){{0,7}}?(?:{re.sub(r'[?]P<[a-z]+>', '?:', '|'.join(each.pattern for each in PATTERNS))})"

    def begin(self, source: Source) -> None:
        self.pings: list[_Packets] = []
        self.current: dict[str | None, _Packets] = {}  # by host
        self.host: str | None = None  # of the last line
        self.has_begun = False  # a ping has said that it begins, and the first answer is still to come

    def row(self, line: str) -> Sequence[str | None] | None:
        if re.match(r"PING \S", line):
            if len(self.current) == 1:
                self.current.clear()
            self.has_begun = True
        sent = SENT.match(line)
        if sent and self.host in self.current:
            self.current.pop(self.host).sent = int(sent[1])
        if match := ANSWER.match(line):
            self.host = match["host"]
            if match["dup"]:
                return None
            self._note(int(match["seq"]), answered=True)
            return match.group(*self.names)
        if match := UNANSWERED.match(line):  # an answer may still come
            self._note(int(match["seq"]), answered=False)
            return None
        match = next(filter(None, (pattern.match(line) for pattern in UNNUMBERED)), None)
        return [match.groupdict().get(name) for name in self.names] if match else None

    def _note(self, seq: int, *, answered: bool) -> None:
        """The log has 16 bits of each number; one that came before, or long before, is that of another ping."""
        packets, number = self.current.get(self.host), seq
        if packets is not None:
            behind = packets.last % SEQUENCE_NUMBERS - seq
            has_wrapped = behind > SEQUENCE_NUMBERS - MAX_DISORDER
            number = packets.last - behind + SEQUENCE_NUMBERS * has_wrapped
            if (behind >= MAX_DISORDER and not has_wrapped) or (answered and number in packets.answered):
                packets, number = None, seq
        if packets is None:
            first = min(1, seq) if self.has_begun else seq
            packets = self.current[self.host] = _Packets(self.host, first, seq)
            self.pings.append(packets)
            self.has_begun = False
        packets.first, packets.last = min(packets.first, number), max(packets.last, number)
        if answered:
            packets.answered.add(number)

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(outcome=either(frame["ms"].isna().to_numpy(), "lost", "completed"))

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        if frame["time"].isna().all():
            records.submitted = None

    def finish(self, source: Source) -> Records | None:
        """Lost packets of which the log has only the numbers of others; they have no line of their own."""
        hosts = [packets.host for packets in self.pings for _ in range(min(packets.missing, MAX_MISSING + 1))]
        missing = len(hosts)
        if not missing:
            return None
        if missing > MAX_MISSING:
            raise LogError(
                f"{source.name}: more than {MAX_MISSING} sequence numbers are missing: "
                "this is not the output of one ping after another"
            )
        lost = Records(np.ones(missing, dtype=np.int64), np.full(missing, np.nan), np.full(missing, LOST, np.int8))
        lost.extras = {"host": pd.Series(hosts, dtype="str")}
        lost.as_lost = missing
        lost.notes.append(f"{counted(missing, 'sequence number', 'has', 'have')} no answer: {AS_LOST[missing > 1]}")
        return lost


@register
class Upptime(TableFormat):
    """Latency is response_ms. A site that is up is completed (degraded: slow, but up), one that is down lost."""

    name = "upptime"
    description = "Upptime history, down = lost; latency = response_ms"
    rank = 29
    uses = ("statuses", "timezone")
    header = ("checked_at", "site", "status", "response_ms")
    cells = "latency=response_ms submitted=checked_at status"
    unit = "ms"
    outcomes: ClassVar[dict[str, str]] = {"up": "completed", "degraded": "completed", "down": "lost"}

    def begin(self, source: Source) -> None:
        super().begin(source)
        apart = (*self.columns.values(), "http_code")
        self.groups = [name for name in self.names if name not in apart]
