"""The base of formats that know what their cells are, and two on it: records of one line, and events of several."""

from __future__ import annotations

import copy
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Self
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions
from latfit.logs.records import A_CENTURY, Records
from latfit.logs.schema import NO_OUTCOMES, Roles
from latfit.logs.source import Source, numbered_lines
from latfit.logs.tabular import Row as Row
from latfit.logs.tabular import Rows, TableReader, records_of, row_tables
from latfit.logs.times import UNKNOWN_TIMES
from latfit.numbers import Bools
from latfit.table import COMPLETED

MAX_CHARACTERS = 1 << 17
EPOCH_FROM = 5e8  # numbers of this size are seconds since 1970
ANSWER_SIZES = {"bytes", "sc-bytes", "sc-content-len"}  # columns that only answers have
APACHE_TIME = "%d/%b/%Y:%H:%M:%S %z"


class CellFormat(Format):
    """A format whose cells have known roles: latency, submitted, ended, status, id; other cells are extra columns.

    Times are ISO 8601 or seconds since 1970, unless `time_style` says otherwise. Each log is read by a copy of the
    format with the `options` and the `columns` of roles; `begin` keeps what holds for the whole log.
    """

    cells: ClassVar[str] = "latency submitted status"  # roles, with the name of the column if that is another: `id=job`
    paths: ClassVar[str] = ""  # the cells of an object of JSON: `method status=response.code|code`
    unit: str = "s"  # of the latency, unless the cells have units
    uses: ClassVar[tuple[str, ...]] = ("statuses", "timezone")
    outcomes: ClassVar[Mapping[str, str]] = {}  # what the log's own words mean
    counted_by: str = ""  # the column whose words the note on outcomes counts, unless that is the status
    answers: ClassVar[bool] = False  # whether these words are what was answered: asked again, it is the same
    time_style: str | None = None
    at_end: bool = False  # whether `submitted` is when the probe ended, and was logged
    groups: Sequence[str] | None = None  # the extra columns, unless they are all that have no role
    latency_is: str = ""  # for the note, unless the description says it
    not_probes: str = ""  # what `left_out` leaves out
    nothing: str = "no line of this log is a record of this format"
    options: ReadOptions
    columns: dict[str, str]
    table: TableReader

    def begin(self, source: Source) -> None:
        """Learn from the beginning of a log."""

    def finish(self, source: Source) -> Records | None:
        """Called at the end of a log: raise an error, or return records that are known only now."""

    def left_out(self, frame: pd.DataFrame) -> Bools | None:
        """Which rows are not probes."""
        return None

    def cells_of(self, entry: Row) -> Row | str | None:
        """The cells of an object; None where the latency, or the submission without one, is missing."""
        cells = {name: inside(entry, path) for name, path in named(self.paths).items()}
        if "latency" in cells:
            return self.probe(cells) if isinstance(cells["latency"], int | float) else None
        return None if cells.get("submitted") is None else self.probe(cells)

    def probe(self, cells: Row) -> Row | str | None:
        """The cells of a probe, from those of a record; a text says why it is refused; None: it is not a probe."""
        return cells

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with the columns that `cells` names, where the log has others."""
        return frame

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        """Change records by what only this format knows, beyond their cells."""

    def reader(self, source: Source, options: ReadOptions) -> Self:
        reader = copy.copy(self)
        reader.options, reader.columns = options, named(self.cells)
        reader.unit, reader.time_style = options.unit or self.unit, options.time_format or self.time_style
        reader.begin(source)
        columns = reader.columns
        latency, times = columns.get("latency"), {columns.get("submitted"), columns.get("ended")} - {None}
        roles = Roles(
            latency=(latency,) if latency else (),
            submitted=columns.get("submitted"),
            ended=columns.get("ended"),
            status=columns.get("status"),
            id=columns.get("id"),
            unit=reader.unit if latency else None,
            unit_evidence=("option" if options.unit else "format") if latency else "",
            has_outcomes="status" in columns,
            time_formats=dict.fromkeys(map(str, times), reader.time_style) if reader.time_style else {},
        )
        statuses = {**self.outcomes, **options.statuses}
        reader.table = TableReader(roles, replace(reader.options, statuses=statuses), counted_by=reader.counted_by)
        reader.table.settled = reader.time_style is not None
        if self.answers and reader.table.words:
            reader.table.words.answers = True
        return reader

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        """The records of a block of rows, with the notes of the format: nothing was guessed."""
        out = self.left_out(frame)
        if out is not None:
            frame, line = frame[~out].reset_index(drop=True), line[~out]
        frame = self.adjust(frame)
        for name in set(self.columns.values()) - set(frame.columns):
            frame[name] = None
        records = self.table.records(frame, line)
        records.columns, records.id_column = {}, None
        if self.groups is not None:
            records.extras = {name: frame[name] for name in self.groups if name in frame}
        for name in {"path", "url"} & records.extras.keys():  # a query would make every request a group of its own
            records.extras[name] = (
                records.extras[name].astype("str").str.replace(r"(?s)\?.*", "", regex=True).str.slice(0, 200)
            )
        if self.at_end and records.submitted is not None:
            spent = np.where(np.isfinite(records.latency), np.clip(records.latency, 0, A_CENTURY), 0)
            records.submitted = records.submitted - np.round(spent * 1e6).astype("timedelta64[us]")
        if out is not None and out.any():
            records.skipped[self.not_probes] = int(np.count_nonzero(out))
        usual = self.description.rpartition("latency = ")[2]
        unit = f" in {self.unit}" if "latency" in self.columns else ""
        records.notes = [f"latency is {self.latency_is or self.options.columns.get('latency', usual) + unit}"]
        records.notes += [] if records.has_outcomes else [NO_OUTCOMES]
        self.amend(records, frame)
        for name in ANSWER_SIZES & records.extras.keys():  # of the rest it is the size of an error message, if any
            records.extras[name] = records.extras[name].replace("-", "0").where(records.status == COMPLETED)
        return records

    @abstractmethod
    def tables(self, source: Source, last: Records) -> Iterator[Rows]:
        """The cells of a log, as tables; `last` is the chunk for notes and counts that concern the whole log."""

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        reader, last, is_empty = self.reader(source, options), Records.unusable(), True
        for records in records_of(reader.tables(source, last), reader.records):
            is_empty = False
            yield records
        belated = reader.finish(source)
        if is_empty and belated is None:
            raise LogError(f"{source.name}: {reader.nothing}")
        counts = reader.table.last()
        if "statuses" not in self.uses:  # unknown words cannot be given a meaning
            counts.advice.clear()
        yield from filter(None, (belated, counts, last))


class LineFormat(CellFormat):
    """One probe a line: its cells are the groups of the pattern `line`, or at `paths` in an object of JSON."""

    line: ClassVar[re.Pattern[str]] = re.compile("(?!)")
    broken: ClassVar[str] = "(?!)"  # what other lines begin with that are refused
    names: Sequence[str] = ()  # of the cells, where a row is a sequence
    others: ClassVar[str] = "lines without a probe"  # empty: not counted

    def row(self, line: str) -> Row | Sequence[str | None] | str | None:
        """The cells of a line; a text (`kind: detail`) says why it is refused; None: it is not a probe."""
        if self.paths and line.startswith("{") and isinstance(entry := json_object(line), dict):
            return self.cells_of(entry)
        if match := self.line.match(line):
            return self.probe(match.groupdict())
        return f"unparseable line: {line[:40]!r}" if re.match(self.broken, line) else None

    def tables(self, source: Source, last: Records) -> Iterator[Rows]:
        return line_tables(source, self.row, last, self.others, columns=list(self.names) or None, dtype="str")


class EventFormat(CellFormat):
    """Events of one or several lines, which together make probes."""

    nothing = "there is no event of a job in this log"

    @abstractmethod
    def probes(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str | None]]:
        """The probes with their lines, as for `row_tables`."""

    def tables(self, source: Source, last: Records) -> Iterator[Rows]:
        return row_tables(self.probes(source, last))


def line_tables(source: Source, parse: Callable[[str], Any], last: Records, others: str, **how: Any) -> Iterator[Rows]:
    """Tables of the rows that `parse` finds in lines, made as by `row_tables`; `last` counts the `others`."""

    def rows() -> Iterator[tuple[int, Any]]:
        for number, line in numbered_lines(source, pauses=True):
            row: Any = parse(line) if 0 < len(line) <= MAX_CHARACTERS else None
            if len(line) > MAX_CHARACTERS:
                row = f"line too long: {len(line)} characters"
            if row is not None or not number:
                yield number, row
            elif others:
                last.skipped[others] += 1

    return row_tables(rows(), **how)


def waited(submitted: Any, started: Any, ended: Any, **cells: Any) -> Row:
    """A job that waited in a queue until it started; one that ended without is censored then, or when the log ends."""
    status = "completed" if started else "censored"
    return {"submitted": submitted, "ended": started or ended, "status": status, **cells}


def either(condition: Bools, word: str, other: str) -> Any:
    """A column of two words, by a condition."""
    return pd.Categorical.from_codes(np.asarray(condition, dtype=np.int8), categories=pd.Index([other, word]))


def chosen(role: str, options: ReadOptions, usual: str, names: Collection[str], log: str) -> str:
    """The column that the user named for a role, or the usual one; it must be there."""
    name = options.columns.get(role, usual)
    if name not in names:
        raise MissingColumn(f"{log}: there is no {name!r} to be the {role}; there are: {listed(names)}")
    return name


def named(text: str) -> dict[str, str]:
    """Names with what they stand for, if that is another.

    >>> named("latency=elapsed status")
    {'latency': 'elapsed', 'status': 'status'}
    """
    pairs = (pair.partition("=") for pair in text.split())
    return {name: other or name for name, _, other in pairs}


def json_object(line: str) -> dict[str, Any] | str:
    """The object of a line of JSON, or why there is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"unparseable line: {str(error)[:60]}"
    return value if isinstance(value, dict) else f"not an object: {line[:40]!r}"


def inside(value: Any, paths: str) -> Any:
    """The value at a path such as `request.uri` inside objects, None where there is none.

    Of several paths (`started_at|createdAt`) the first counts whose value is not empty or 0.
    """
    for path in paths.split("|"):
        inner = value
        for key in path.split("."):
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if inner:
            break
    return inner


def epoch(moment: Any, timezone: str | None = None) -> float | None:
    """Seconds since 1970 of a number of them (or ms, us, ns, by its size), or of an ISO 8601 time (UTC by default)."""
    if isinstance(moment, str) and re.fullmatch(r"\d{9,19}(\.\d+)?", moment):
        moment = float(moment)
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        size = next((size for size in (1e9, 1e6, 1e3) if moment > 1e8 * size), 1)
        return None if moment in UNKNOWN_TIMES else moment / size
    try:
        when = datetime.fromisoformat(str(moment).strip().replace("/", "-").replace(",", "."))
    except ValueError:
        return None
    return when.replace(tzinfo=when.tzinfo or ZoneInfo(timezone or "UTC")).timestamp()
