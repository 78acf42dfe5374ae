"""Delimited text: CSV, TSV and the tables of tools. Fast where every row is sound, row by row where one is not."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.cells import most, number_of, shape
from latfit.logs.formats import DELIMITERS, Head, InferredFormat, ReadOptions, head_fields, register, split_record
from latfit.logs.lines import CellFormat, chosen
from latfit.logs.records import Records, shown
from latfit.logs.schema import SAMPLED_ROWS, Roles, resolve_roles
from latfit.logs.source import MAX_LINE_BYTES, Block, Source
from latfit.logs.tabular import Rows, TableReader, records_of
from latfit.logs.times import MOMENT, OFFSET
from latfit.logs.vocabulary import NOTHING, split_name, weigh

MAX_UNNAMED_COLUMNS = 100
FIRST_EPOCH = 1e8  # numbers from here on are times since 1970
MIN_BELOW_THOUSAND = 3  # whole numbers beside those with a mark that show it to be a mark of thousands
THOUSANDS = re.compile("[1-9]\\d{0,2}(?:[.,'\u2019\u00a0\u202f ]\\d{3})+")
DECIMAL_COMMA = re.compile(r"-?\d+,\d+(?:[eE][+-]?\d+)?")
MAX_SPAN = 200  # lines that one quoted record may take
csv.field_size_limit(MAX_SPAN * MAX_LINE_BYTES)  # the length of lines is limited where they are read


@register
class Csv(InferredFormat):
    """Comma-, tab-, semicolon- or bar-separated values, with a header or a single column of numbers.

    Lines that begin with # may stand above them; the last may be the header of rows that have none.
    """

    name = "csv"
    description = "CSV or TSV with a header line, or one number a line"
    rank = 90

    def sniff(self, head: Head) -> bool:
        first, _, rest = _below_comments(head)[1].partition("\n")
        if len(first) > 10_000 or first.startswith(("<", "{", "[", "%PDF")):
            return False
        second = rest.lstrip().split("\n", 1)[0]
        numbers = "number" in (shape(first[:64]), shape(second[:64]))
        return numbers or any(d in first for d in DELIMITERS) or (first.strip().isidentifier() and len(first) < 64)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        comments, head = _below_comments(source.text)
        delimiter, names = Head(head).table
        above = _header_above(comments, names, delimiter)
        lines = head.split("\n")[1:50]
        header = above is None and is_header(names, [head_fields(line, delimiter) for line in lines])
        names = above or (names if header else named_fields(names))
        if names.count("") <= MAX_UNNAMED_COLUMNS:  # of an export by pandas or a spreadsheet
            names = [name or f"column{at}" for at, name in enumerate(names, start=1)]
        _check_names(names, source.name)
        blocks, skipped = source.blocks(quoted=True), len(comments) + header
        first = next(blocks)
        rows = _sampled(_below(first, skipped)[0].lines(), delimiter, names)
        roles, notes = resolve_roles(names, options, source.name, rows, named=header or above is not None)
        notes += [] if header or above or len(names) == 1 else [f"there is no header: columns are {listed(names)}"]
        commas = _has_decimal_commas(rows, roles, source.name) and delimiter != ","
        notes += ["numbers are read with a decimal comma"] if commas else []
        types = {name: kind for name, kind in _types(rows, roles).items() if not commas or name not in roles.latency}
        reader = TableReader(roles, options, notes=notes, blank_is_lost=True)

        def convert(frame: pd.DataFrame, line: np.ndarray) -> Records:
            for name in roles.latency if commas else ():
                frame[name] = frame[name].astype("string").str.replace(r"(?<=\d),(?=\d)", ".", regex=True)
            return reader.records(frame, line)

        kept = [name for name in names if name in {*roles.columns, *options.kept(names)}]
        tables = delimited_tables(chain([first], blocks), delimiter, names, types, above=skipped, kept=kept)
        is_empty = True
        for records in records_of(tables, convert):
            is_empty = False
            yield records
        if is_empty:
            raise LogError(f"{source.name}: {_no_rows(names)}")
        yield reader.last()


def _below_comments(text: str) -> tuple[list[str], str]:
    """The lines at the top that begin with #, without it, or tell Excel the separator, and what comes below."""
    comments, rest = [], text.lstrip()
    while rest.startswith("#") or re.match(r"sep=.\s*\n", rest):
        first, _, rest = rest.partition("\n")
        comments.append(first.lstrip("#"))
        rest = rest.lstrip()
    return comments, rest


def _header_above(comments: list[str], fields: list[str], delimiter: str) -> list[str] | None:
    """The last comment, if it names the columns of rows of numbers."""
    names = head_fields(comments[-1], delimiter) if comments and "number" in map(shape, fields) else []
    if not names or len(names) != len(fields) or "number" in map(shape, names):
        return None
    return names if len(names) > 1 or weigh("latency", split_name(names[0])[0])[0] > 0 else None


def is_header(fields: list[str], rows: Iterable[list[str]]) -> bool:
    """Whether the first line names columns: where the rows below hold numbers, durations or times, it has words."""
    columns = zip(*(row for row in rows if len(row) == len(fields)), strict=True)
    cells = ([cell for cell in column if cell.lower() not in NOTHING] for column in columns)
    measured = [field for field, known in zip(fields, cells, strict=False) if known and most(map(is_measure, known))]
    answers = [is_measure(field) for field in measured or fields if field]
    return not any(re.match(MOMENT, field) for field in fields) and (not answers or not all(answers))


def is_measure(cell: str) -> bool:
    """Whether a cell is a number, a duration or a time."""
    return shape(cell) in ("number", "clock", "duration", "time")


def named_fields(fields: list[str]) -> list[str]:
    """Names for the fields of rows without a header: one column alone is the latency, a single moment is the time."""
    if len(fields) == 1:
        return ["latency"]
    epochs = [FIRST_EPOCH <= number_of(field) < np.inf for field in fields]
    times = [at for at, field in enumerate(fields) if shape(field) == "time" or epochs[at]]
    return ["time" if times == [at] else f"column{at + 1}" for at in range(len(fields))]


def _sampled(lines: list[str], delimiter: str, names: list[str]) -> pd.DataFrame:
    """Evenly spread rows."""
    places = np.linspace(0, len(lines) - 1, min(len(lines), SAMPLED_ROWS)).astype(np.int64)
    fields = [head_fields(lines[at], delimiter) for at in places if lines[at].strip()]
    sample = pd.DataFrame([row for row in fields if len(row) == len(names)], columns=names, dtype="str")
    sample.attrs["sampled from"] = len(lines)
    return sample


def _has_decimal_commas(rows: pd.DataFrame, roles: Roles, log: str) -> bool:
    """Whether latencies are written as 12,5; marks of thousands, which look alike, are an error."""
    cells = {str(cell).strip() for name in roles.latency for cell in rows[name]} - {""}
    marked = {cell for cell in cells if THOUSANDS.fullmatch(cell)}
    if (
        marked
        and len(cells - marked) >= MIN_BELOW_THOUSAND
        and all(re.fullmatch(r"\d{1,3}", x) for x in cells - marked)
    ):
        wrong = f"{min(marked)!r} may have a mark of thousands, and numbers below 1000 have none"
        raise LogError(f"{log}: column {roles.latency[0]!r}: {wrong}; write 1779 or 1779.5")
    return any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)


def _types(rows: pd.DataFrame, roles: Roles) -> dict[str, pa.DataType]:
    """The types to try first; a block that does not fit is read as text and looked at row by row."""
    first = {name: next((str(cell) for cell in rows[name] if cell and str(cell).strip()), "") for name in roles.columns}
    types: dict[str, pa.DataType] = {}
    for name in filter(None, (*roles.latency, roles.submitted, roles.ended)):
        if shape(first[name] or "0") == "number":  # 1m 20s is text
            types[name] = pa.float64()
        elif roles.time_formats.get(name) in (None, "iso") and re.match(r"\d{4}-\d\d?-", first[name]):
            types[name] = pa.timestamp("us", tz="UTC" if OFFSET.search(first[name]) else None)
    if roles.id:  # 1 and 01 are two ids
        plain = all(re.fullmatch(r"0|[1-9]\d{0,17}", str(cell)) for cell in rows[roles.id].dropna())
        types[roles.id] = pa.int64() if plain else pa.string()
    return types


class TableFormat(CellFormat):
    """Delimited text whose first line names the columns, those of `header` among them, or of `needed`."""

    needed: ClassVar[tuple[str, ...]] = ()  # unless all that it is recognised by are
    names: list[str]
    delimiter: str
    named: bool = True  # whether there is a header

    def layout(self, head: Head) -> tuple[str, list[str], bool]:
        """The delimiter, the names of the columns, and whether there is a header."""
        return *head.table, True

    def begin(self, source: Source) -> None:
        self.delimiter, self.names, self.named = self.layout(Head(source.text))
        needed = [names.split("|") for names in self.needed or self.header]
        if not all(set(names) & set(self.names) for names in needed):
            wanted = ", ".join(" or ".join(names) for names in needed)
            raise MissingColumn(f"{source.name}: line 1 must name {wanted}; it has: {listed(self.names)}")
        self.nothing = _no_rows(self.names)
        for role in self.options.columns:
            self.columns[role] = chosen(role, self.options, "", self.names, source.name)

    def tables(self, source: Source, last: Records) -> Iterator[Rows]:
        text = [*"|".join(self.needed or self.header).split("|"), *self.columns.values()]
        types = dict.fromkeys(text, pa.string())
        types |= {self.columns["latency"]: pa.float64()} if "latency" in self.columns else {}
        _check_names(self.names, source.name)
        return delimited_tables(source.blocks(quoted=True), self.delimiter, self.names, types, above=int(self.named))


def _no_rows(names: Sequence[str]) -> str:
    return f"there is a header ({listed(names)}) but no row below it"


def delimited_tables(
    blocks: Iterable[Block],
    delimiter: str,
    names: Sequence[str],
    types: dict[str, pa.DataType],
    *,
    above: int,
    kept: Sequence[str] = (),
) -> Iterator[Rows]:
    """The rows of a delimited text below the lines `above`, blank ones not counted; columns not in `types` are text.

    Columns that are not `kept` may be left out, unless that is empty.
    """
    types = {name: types.get(name, pa.dictionary(pa.int32(), pa.string())) for name in names}
    for block in blocks:
        rows, above = _below(block, above)
        if not rows.data.isspace() or delimiter.encode() in rows.data:
            yield (
                _fast(rows, delimiter, types, kept)
                or _fast(rows, delimiter, dict.fromkeys(names, pa.string()))
                or _by_row(rows, delimiter, names)
            )


def _check_names(names: Sequence[str], log: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise LogError(f"{log}: two columns are called {twice[:40]!r}: rename one of them")


def _below(block: Block, above: int) -> tuple[Block, int]:
    """The lines of a block below the first `above` that are not blank, and how many of these are still to come."""
    text = block.data.decode() if above else ""
    end = 0
    while above and text[end:].strip():
        end = text.index("\n", len(text) - len(text[end:].lstrip())) + 1
        above -= 1
    skipped = text.count("\n", 0, end)
    return Block(block.data[len(text[:end].encode()) :], block.first_line + skipped, block.n_lines - skipped), above


def _fast(block: Block, delimiter: str, types: dict[str, pa.DataType], kept: Sequence[str] = ()) -> Rows | None:
    if not block.n_lines:
        return None
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block.data),
            read_options=pa.csv.ReadOptions(column_names=list(types), block_size=len(block.data), use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block.data),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                include_columns=list(kept),
                null_values=[""],
                strings_can_be_null=True,
                auto_dict_max_cardinality=1 << 20,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != block.n_lines:
        return None  # blank lines, or records over several lines
    frame = table.to_pandas(use_threads=False, split_blocks=True, self_destruct=True)
    return frame, block.first_line + np.arange(len(frame), dtype=np.int64), []


def _by_row(block: Block, delimiter: str, names: Sequence[str]) -> Rows:
    """One record after the other, as text; a stray quote costs its own line only."""
    lines, at = block.lines(), 0
    rows: dict[int, list[str | None]] = {}
    misshapen: list[tuple[int, str]] = []
    while at < len(lines):
        number, line = block.first_line + at, lines[at]
        if not line.strip() and delimiter not in line:  # tabs alone are empty fields
            at += 1
            continue
        span, fields = _record(lines, at, delimiter, len(names))
        at += span
        if len(fields) == len(names):
            rows[number] = [field or None for field in fields]
        else:
            wrong = f"wrong number of fields: {len(fields)} instead of {len(names)}"
            misshapen.append((number, shown(len(misshapen), wrong)))
    frame = pd.DataFrame([*rows.values()], columns=list(names), dtype="str")
    return frame, np.fromiter(rows, np.int64, len(rows)), misshapen


def _record(lines: list[str], at: int, delimiter: str, width: int) -> tuple[int, list[str]]:
    """How many lines the record at `at` takes, and its fields; a stray quote is taken as it stands."""
    if lines[at].count('"') % 2 == 0 and (record := split_record(lines[at], delimiter))[0] == 1:
        return record
    several = (line + "\n" for line in lines[at : at + MAX_SPAN])
    reader = csv.reader(several, delimiter=delimiter, strict=True)  # a quote that closes nothing is an error
    try:
        if len(fields := next(reader)) == width:
            return reader.line_num, fields
    except csv.Error:
        pass
    return 1, split_record(lines[at], delimiter, quoting=csv.QUOTE_NONE)[1]
