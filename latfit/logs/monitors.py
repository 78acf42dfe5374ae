"""Monitors: the output of ping and fping, and the history of Upptime."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from latfit.errors import LogError, counted
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import SAY_STATUS, LineFormat, Parsed, first_lines, seconds_before, set_statuses
from latfit.logs.records import AS_LOST, Records
from latfit.logs.source import Source
from latfit.logs.tabular import moments, seconds_of
from latfit.table import LOST, STATUSES

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
SENT = re.compile(r"(\d{1,7}) packets transmitted,")
SEQUENCE_NUMBERS = 1 << 16  # they have 16 bits
MAX_DISORDER = 1000  # packets that answers may be out of order by
MAX_MISSING = 1 << 20


@dataclass
class _Packets:
    """The sequence numbers that one ping sent to a host: the first, the last, and those that were answered."""

    host: str | None
    first: int | None = None
    last: int = -1
    answered: set[int] = field(default_factory=set)
    sent: int | None = None  # as it says itself when it ends

    def number(self, seq: int, *, answered: bool) -> int | None:
        """The number of which the log has 16 bits; None where it is that of another ping, which began again."""
        behind = self.last % SEQUENCE_NUMBERS - seq
        if self.last < 0 or behind < 0:
            return seq if self.last < 0 else self.last - behind
        if behind > SEQUENCE_NUMBERS - MAX_DISORDER:
            return self.last + SEQUENCE_NUMBERS - behind
        number = self.last - behind
        return number if behind < MAX_DISORDER and not (answered and number in self.answered) else None

    @property
    def missing(self) -> int:
        span = 0 if self.first is None else self.last + 1 - self.first
        return max(span if self.sent is None else self.sent, len(self.answered)) - len(self.answered)


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
    groups = ("host",)
    others = "lines that are no answers"

    def sniff(self, head: str) -> bool:
        patterns = (ANSWER, *UNNUMBERED, UNANSWERED)
        return any(pattern.match(line[:1000]) for line in first_lines(head, 8) for pattern in patterns)

    def begin(self, source: Source) -> None:
        self.pings: list[_Packets] = []
        self.current: dict[str | None, _Packets] = {}  # by host
        self.host: str | None = None  # of the last line
        self.has_begun = False  # a ping has said that it begins, and the first answer is still to come

    def parse(self, line: str) -> Parsed:
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
        packets = self.current.get(self.host)
        number = None if packets is None else packets.number(seq, answered=answered)
        if packets is None or number is None:
            packets, number = _Packets(self.host, first=min(1, seq) if self.has_begun else None), seq
            self.current[self.host] = packets
            self.pings.append(packets)
            self.has_begun = False
        packets.last = max(packets.last, number)
        packets.first = number if packets.first is None else min(packets.first, number)
        if answered:
            packets.answered.add(number)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        records.status[frame["ms"].isna().to_numpy()] = LOST
        records.latency = seconds_of(frame["ms"], "time", "ms", records)
        arrived = moments(frame["time"], "time", "epoch", None, records)
        if not np.isnat(arrived).all():
            records.submitted = seconds_before(arrived, records.latency)

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
    description = "Upptime history; latency = response_ms, down = lost"
    rank = 29
    uses = ("statuses", "timezone")
    needed = ("checked_at", "site", "status", "response_ms")
    outcomes = "outcomes by status"
    measured, unit, time = "response_ms", "ms", "checked_at"

    def begin(self, source: Source) -> None:
        apart = ("checked_at", "response_ms", "status", "http_code")
        self.groups = [name for name in self.names if name not in apart]
        self.tally.change = "; change it with --status, for example --status failed=down"

    def types(self) -> dict[str, pa.DataType]:
        return {"checked_at": pa.string(), "response_ms": pa.float64()}

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        words = frame["status"].astype("string").str.strip().str.lower()
        outcomes = {"up": "completed", "degraded": "completed", "down": "lost", **{word: word for word in STATUSES}}
        set_statuses(records, words, outcomes | self.options.lowered_statuses, "status", SAY_STATUS)
        super().fill(records, frame)
        self.tally.add(words, records)
