"""Formats of one record a line: the base classes, and what their readers share."""

from __future__ import annotations

import copy
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions
from latfit.logs.outcomes import HttpOutcomes
from latfit.logs.records import A_CENTURY, Records, shown
from latfit.logs.source import Block, Source
from latfit.logs.times import numeric, parse_times
from latfit.numbers import Bools
from latfit.table import CANONICAL, COMPLETED

MAX_CHARACTERS = 1 << 17
NOT_REQUESTS = "lines that are not requests"
ABSENT = ("", "-")
APACHE_TIME = "%d/%b/%Y:%H:%M:%S %z"

Fields = Sequence[str | None]
Parsed = Fields | str | None  # the fields of a record, why it is refused, or nothing: no record
Convert = Callable[[pd.DataFrame, NDArray[np.int64]], Records]


class RecordFormat(Format):
    """A format whose `fill` understands a block of rows: sets latency, status and time of submission of its records.

    For each log there is a reader of its own, a copy of the format; `begin` keeps what holds for the whole log, such
    as the column to measure. A reader has the `options`, and the `tally` of outcomes, by HTTP code or by the words
    of `outcomes`.
    """

    names: Sequence[str] = ()  # of the fields
    groups: Sequence[str] = ()  # the columns to group by
    outcomes: ClassVar[str] = ""  # what the outcomes go by, for the note that counts them
    outcomes_change: ClassVar[str] = ""  # how to change them
    http: ClassVar[bool] = False
    latency_is: str = ""  # for the note
    submitted_is: str = ""
    not_probes: str = ""  # what `left_out` leaves out
    options: ReadOptions
    tally: HttpOutcomes

    def begin(self, source: Source) -> None:
        """Look at the beginning of a log."""

    def finish(self, source: Source) -> None:
        """Look back when a log is through."""

    def left_out(self, frame: pd.DataFrame) -> Bools | None:
        """Which rows are not probes."""
        return None

    @abstractmethod
    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """Understand the rows of a block."""

    def reader(self, source: Source, options: ReadOptions) -> Self:
        """The reader of one log."""
        reader = copy.copy(self)
        reader.options = options
        reader.tally = HttpOutcomes(options, self.outcomes or "outcomes by HTTP code")
        if not self.http:
            reader.tally.change, reader.tally.answers = self.outcomes_change, False
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
        if self.latency_is:
            records.notes.append(told(self.latency_is, self.submitted_is, self.groups))
        return records


class LineFormat(RecordFormat):
    """One record a line: `parse` takes a line apart into the fields `names`."""

    others: ClassVar[str] = NOT_REQUESTS  # lines that are no records
    sniffed: ClassVar[int] = 50  # lines at the beginning, of which one must be a record

    @abstractmethod
    def parse(self, line: str) -> Parsed:
        """The fields of a record, the reason (`kind: detail`) why it is refused, or None: the line is no record."""

    def sniff(self, head: str) -> bool:
        """Whether one of the first lines is a record."""
        return any(isinstance(self.parse(line), list) for line in first_lines(head, self.sniffed))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the lines."""
        reader = self.reader(source, options)
        yield from read_lines(source, reader.names, reader.parse, reader.records, others=self.others)
        reader.finish(source)
        yield reader.tally.last()


def read_lines(
    source: Source,
    names: Sequence[str],
    parse: Callable[[str], Parsed],
    convert: Convert,
    *,
    others: str | None = NOT_REQUESTS,
) -> Iterator[Records]:
    """The records of a log's lines.

    `parse` takes a line apart into the fields `names`; a text from it is the reason (`kind: detail`) for
    which the line is refused, None says that the line is no record: it is skipped, and counted as `others`, if
    these are to be told.
    `convert` makes records of the rows of a block and their line numbers.
    """
    found = False
    for block in source.blocks():
        rows, numbers, refused, skipped = parsed_lines(block, parse)
        found = found or bool(rows or refused)
        if refused:
            yield Records.unusable(refused)
        frame = pd.DataFrame(rows, columns=list(names), dtype="str")
        records = convert(frame, np.array(numbers, dtype=np.int64)) if rows else Records.unusable({})
        if skipped and others:
            records.skipped[others] += skipped
        yield records
    if not found:
        raise LogError(f"{source.name}: no line of this log is a record of this format")


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
            kind, _, detail = fields.partition(": ")
            refused[number] = shown(len(refused), kind, detail) if detail else kind
        else:
            rows.append(fields)
            numbers.append(number)
    return rows, numbers, refused, skipped


def first_lines(head: str, most: int = 50) -> list[str]:
    """The first lines of a log that are not blank; what may be cut in the middle is left out."""
    lines = head.split("\n")
    whole = lines[:-1] if len(lines) > 1 else lines
    return [line for line in whole if line.strip()][:most]


def absent(column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Which cells hold nothing, or the `-` that stands for it."""
    return (column.isna() | column.astype("string").str.strip().isin(ABSENT)).to_numpy(dtype=bool)


def floats(column: pd.Series[Any], name: str, records: Records) -> NDArray[np.float64]:
    """The numbers of a column, NaN where it holds nothing; rows with anything else are refused."""
    values = numeric(column)
    bad = np.isnan(values) & ~absent(column)
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return values


def moments(
    column: pd.Series[Any], name: str, style: str | None, timezone: str | None, records: Records
) -> NDArray[np.datetime64]:
    """The times of a column in naive UTC, NaT where it holds nothing; rows with anything else are refused."""
    text = column.mask(absent(column))
    times, bad = parse_times(text, name, style, timezone)
    records.refuse(bad, lambda row: f"unparseable {name}: {str(text.iloc[row])[:40]!r}")
    return times


def seconds_before(times: NDArray[np.datetime64], latency: NDArray[np.float64]) -> NDArray[np.datetime64]:
    """When a request was sent that was answered at `times` after `latency`."""
    spent = np.where(np.isfinite(latency), np.clip(latency, 0, A_CENTURY), 0)
    return np.asarray(times - (spent * 1e6).astype("timedelta64[us]"))


def chosen(role: str, options: ReadOptions, usual: str, names: Iterable[str], log: str) -> str:
    """The column that the user named for a role, or the usual one; it must be there."""
    names = list(names)
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


def plain_text(value: object) -> str | None:
    """A plain value of JSON as text that a table can hold; None for objects and lists."""
    if value is None or isinstance(value, (dict, list)):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.encode("utf-8", "replace").decode()


def told(latency: str, submitted: str, groups: Iterable[str]) -> str:
    """The note that says which fields became what, and by which columns the log can be grouped."""
    names = (f"log_{name}" if name in CANONICAL else name for name in groups)  # as in the table
    return f"latency is {latency}; submitted is {submitted}; columns to group by: {listed(names) or 'none'}"


def request_parts(request: pd.Series[str]) -> dict[str, pd.Series[str]]:
    """Method and path (without its query) of `GET /a?b HTTP/1.1`, as columns."""
    parts = request.str.extract(r"^(?P<method>\S+) (?P<path>[^\s?]+)")
    return {"method": parts["method"], "path": parts["path"]}
