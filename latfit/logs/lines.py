"""Formats of one record a line: the base classes, and what their readers share."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions
from latfit.logs.records import A_CENTURY, UNKNOWN, Records, shown
from latfit.logs.source import Block, Source
from latfit.logs.tabular import moments, seconds_of
from latfit.logs.vocabulary import OutcomeTally
from latfit.numbers import Bools
from latfit.table import CANONICAL, COMPLETED, STATUSES

MAX_CHARACTERS = 1 << 17
EPOCH_FROM = 5e8  # numbers of this size are seconds since 1970
APACHE_TIME = "%d/%b/%Y:%H:%M:%S %z"
SAY_STATUS = "; say what it means: --status completed|failed|censored|lost=WORD"

Convert = Callable[[pd.DataFrame, NDArray[np.int64]], Records]
Parsed = Sequence[str | None] | None  # the fields of a record, a text why it is refused, or nothing: no record


class RecordFormat(Format):
    """A format whose `fill` understands a block of rows: sets latency, status and time of submission of its records.

    Without a `fill` of its own it reads the columns `measured`, `code` and `time`. For each log there is a reader, a
    copy of the format; `begin` keeps what holds for the whole log. A reader has the `options`, and the `tally` of
    outcomes, by HTTP code or by the words of `outcomes`.
    """

    names: Sequence[str] = ()  # of the fields
    groups: Sequence[str] = ()  # the columns to group by
    measured: str = ""  # the column of the latency, and its unit
    unit: str = "s"
    code: str = ""  # the column of HTTP codes
    time: str = ""  # the column of times, how they are written, and whether they are those of the answer
    time_style: str | None = None
    at_end: bool = False
    outcomes: ClassVar[str] = ""  # what the outcomes go by, for the note that counts them
    http: ClassVar[bool] = False
    latency_is: str = ""  # for the note, unless it is `measured`
    submitted_is: str = ""
    not_probes: str = ""  # what `left_out` leaves out
    options: ReadOptions
    tally: OutcomeTally

    def begin(self, source: Source) -> None:
        """Look at the beginning of a log."""
        if self.measured:
            self.measured = chosen("latency", self.options, self.measured, self.names, source.name)

    def finish(self, source: Source) -> Records | None:
        """Look back when a log is through: an error, or records that are known only now."""

    def left_out(self, frame: pd.DataFrame) -> Bools | None:
        """Which rows are not probes."""
        return None

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """Understand the rows of a block."""
        records.latency = seconds_of(frame[self.measured], self.measured, self.unit, records)
        if self.code:
            records.status = self.tally.statuses(frame[self.code].fillna("-"), records)
        if self.time:
            when = moments(frame[self.time], self.time, self.time_style, self.options.timezone, records)
            records.submitted = seconds_before(when, records.latency) if self.at_end else when
        if self.code:
            self.tally.add(frame[self.code], records)

    def reader(self, source: Source, options: ReadOptions) -> Self:
        reader = copy.copy(self)
        reader.options = options
        reader.tally = OutcomeTally(options, what=self.outcomes or "outcomes by HTTP code", http=self.http)
        reader.begin(source)
        return reader

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        """The records of a block of rows; completed, unless `fill` says otherwise."""
        out = self.left_out(frame)
        if out is not None:
            frame, line = frame[~out].reset_index(drop=True), line[~out]
        records = Records(line, np.full(line.size, np.nan), np.full(line.size, COMPLETED, dtype=np.int8), raw=frame)
        records.extras = {name: frame[name] for name in self.groups if name in frame}
        self.fill(records, frame)
        if out is not None and out.any():
            records.skipped[self.not_probes] = int(np.count_nonzero(out))
        if self.measured:
            records.unit, records.unit_evidence = self.unit, "option" if self.options.unit else "format"
        latency = self.latency_is or (self.measured and f"{self.measured} in {self.unit}")
        if latency:
            names = listed(f"log_{name}" if name in CANONICAL else name for name in self.groups)  # as in the table
            submitted = self.submitted_is or self.time or "unknown"
            records.notes.append(
                f"latency is {latency}; submitted is {submitted}; columns to group by: {names or 'none'}"
            )
        return records


class LineFormat(RecordFormat):
    """One record a line: `parse` takes a line apart into the fields `names`."""

    others: ClassVar[str] = "lines that are not requests"  # that are no records; empty: not counted
    nothing: ClassVar[str] = "no line of this log is a record of this format"

    @abstractmethod
    def parse(self, line: str) -> Parsed:
        """The fields of a record, the reason (`kind: detail`) why it is refused, or None: the line is no record."""

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        reader = self.reader(source, options)
        is_empty = True
        for block in source.blocks():
            rows, numbers, refused, skipped = parsed_lines(block, reader.parse)
            if refused:
                yield Records.unusable(refused)
            frame = pd.DataFrame(rows, columns=list(reader.names), dtype="str")
            records = reader.records(frame, np.array(numbers, dtype=np.int64)) if rows else Records.unusable({})
            if self.others and skipped:
                records.skipped[self.others] = skipped
            is_empty = is_empty and not rows and not refused
            yield records
        last = reader.finish(source)
        if is_empty and last is None:
            raise LogError(f"{source.name}: {self.nothing}")
        yield from filter(None, (last, reader.tally.last()))


def parsed_lines(
    block: Block, parse: Callable[[str], Any], longest: int = MAX_CHARACTERS
) -> tuple[list[Any], list[int], dict[int, str], int]:
    """The rows of a block, their line numbers, the refused lines, and how many lines were no records."""
    rows, numbers, skipped = [], [], 0
    refused: dict[int, str] = {}
    for number, line in enumerate(block.lines(), start=block.first_line):
        if not line.strip():
            continue
        fields = parse(line) if len(line) <= longest else f"line too long: {len(line)} characters"
        if fields is None:
            skipped += 1
        elif isinstance(fields, str):
            refused[number] = shown(len(refused), fields)
        else:
            rows.append(fields)
            numbers.append(number)
    return rows, numbers, refused, skipped


def first_lines(head: str, most: int = 50) -> list[str]:
    """The first lines of a log that are not blank; what may be cut in the middle is left out."""
    return [line for line in head.split("\n")[:-1] or [head] if line.strip()][:most]


def set_statuses(records: Records, words: pd.Series[str], known: Mapping[str, str], what: str, hint: str = "") -> None:
    """Set the status of each row by its word; rows with a word that is not known are refused."""
    codes = {word: STATUSES.index(status) for word, status in known.items()}
    records.status = np.array(words.map(codes).fillna(UNKNOWN), dtype=np.int8)
    records.refuse(records.status == UNKNOWN, lambda row: f"unknown {what}: {str(words.iloc[row])[:40]!r}{hint}")


def seconds_before(times: NDArray[np.datetime64], latency: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """When a request was sent that was answered at `times` after `latency`."""
    spent = np.where(np.isfinite(latency), np.clip(latency, 0, A_CENTURY), 0)
    return np.asarray(times - (spent * 1e6).astype("timedelta64[us]"))


def chosen(role: str, options: ReadOptions, usual: str, names: Collection[str], log: str) -> str:
    """The column that the user named for a role, or the usual one; it must be there."""
    name = options.columns.get(role, usual)
    if name not in names:
        raise MissingColumn(f"{log}: there is no {name!r} to be the {role}; there are: {listed(names)}")
    return name


def json_object(line: str) -> dict[str, Any] | str:
    """The object of a line of JSON, or the reason for which there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"unparseable line: {str(error)[:60]}"
    return value if isinstance(value, dict) else f"not an object: {line[:40]!r}"
