"""CSV and TSV: one row a probe, columns by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
import pyarrow as pa

from latfit.errors import MissingColumn, listed
from latfit.logs.cells import has_unit
from latfit.logs.delimited import Chunk, check_names, head_fields, read_delimited
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.schema import SAMPLED_ROWS, Roles, resolve_roles
from latfit.logs.source import HEAD_BYTES, Source, open_source
from latfit.logs.tabular import Settling
from latfit.logs.times import MOMENT, OFFSET
from latfit.logs.vocabulary import split_name, weigh

DELIMITERS = (",", "\t", ";", "|")
MOST_UNNAMED = 100  # columns
FIRST_EPOCH = 1e8  # numbers from here on are times since 1970
FEW_SMALL = 3  # numbers below a thousand, at least, beside those that have a mark of thousands
DECIMAL_COMMA = re.compile(r"-?\d+,\d+(?:e[+-]?\d+)?", re.IGNORECASE)


@register
class Csv(Format):
    """Comma-, tab-, semicolon- or bar-separated values, with a header or a single column of numbers.

    Lines that begin with # may stand above them; the last may be the header of rows that have none.
    """

    name = "csv"
    description = "CSV or TSV with a header line, or one number a line"
    rank = 90
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Any text that has a delimiter in its first line, or is a column of numbers."""
        first, _, rest = _below_comments(head)[1].partition("\n")
        if len(first) > 10_000 or first.startswith(("<", "{", "[", "%PDF")):
            return False
        second = rest.lstrip().split("\n", 1)[0]
        numbers = _is_number(first) or (len(first) < 64 and _is_number(second))
        return numbers or any(d in first for d in DELIMITERS) or (first.strip().isidentifier() and len(first) < 64)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name; numbers alone are latencies."""
        comments, head = _below_comments(source.text)
        first = head.split("\n", 1)[0]
        delimiter = max(DELIMITERS, key=first.count)
        names = head_fields(head, delimiter)
        above = _header_above(comments, names, delimiter)
        header = above is None and is_header(names)
        names = above or (names if header else named_fields(names))
        if names.count("") <= MOST_UNNAMED:  # of an export by pandas or a spreadsheet
            names = [name or f"column{at}" for at, name in enumerate(names, start=1)]
        check_names(names, source.name)
        rows = _first_rows(head, delimiter, names, skip=int(header))
        try:
            roles, notes = resolve_roles(names, options, source.name, rows)
        except MissingColumn:  # the first rows may be blank where later ones are not
            if source.path is None or len(source.text) < HEAD_BYTES / 2:
                raise
            rows = _later_rows(source.path, delimiter, names)
            roles, notes = resolve_roles(names, options, source.name, rows)
        notes += [] if header or above or len(names) == 1 else [f"there is no header: columns are {listed(names)}"]
        decimal, thousands = _decimal(rows, roles, delimiter), _thousands(rows, roles)
        decimal = "." if decimal == thousands else decimal
        notes += ["numbers are read with a decimal comma"] if decimal == "," else []
        notes += [f"{thousands!r} in latencies is read as a mark of thousands"] if thousands else []
        settling = Settling(roles, options, blank_is_lost=True)

        def convert(chunk: Chunk) -> Records:
            frame = _with_points(chunk.frame, roles, decimal, thousands) if decimal == "," or thousands else chunk.frame
            records = settling.records(frame, chunk.line)
            records.notes += notes
            return records

        yield from read_delimited(
            source, delimiter, names, _types(rows, roles, thousands), convert,
            header=header, comments=len(comments), decimal=decimal, settled=lambda: settling.settled,
        )  # fmt: skip
        yield settling.last()


def _below_comments(text: str) -> tuple[list[str], str]:
    """The lines at the top that begin with #, without it, or tell Excel the separator, and what comes below."""
    comments, rest = [], text.lstrip()
    while rest.startswith("#") or re.match(r"sep=.\s*\n", rest):
        first, _, rest = rest.partition("\n")
        comments.append(first.lstrip("#"))
        rest = rest.lstrip()
    return comments, rest


def _header_above(comments: list[str], fields: list[str], delimiter: str) -> list[str] | None:
    """The last comment as a header, where the first line below it is a row, and there is a name for each field."""
    told = head_fields(comments[-1], delimiter) if comments and any(map(_is_number, fields)) else []
    if not told or len(told) != len(fields) or any(map(_is_number, told)):
        return None
    return told if len(told) > 1 or weigh("latency", split_name(told[0])[0])[0] > 0 else None


def field_kind(field: str) -> str:
    """What a field without a name seems to be: a latency, a time of submission, or neither."""
    if _is_number(field):
        return "time" if float(field) >= FIRST_EPOCH else "latency"
    return "time" if re.match(MOMENT, field) else ""


def is_header(fields: list[str]) -> bool:
    """Whether the first line names columns: it is not made of numbers and times, and no moment is a name."""
    return not all(map(field_kind, fields)) and not any(re.match(MOMENT, field) for field in fields)


def _is_plain(fields: list[str], kinds: list[str]) -> bool:
    """Whether the only number of a row can be its latency: beside a time alone, or with decimals and no duration."""
    number = next((field for field, kind in zip(fields, kinds, strict=True) if kind == "latency"), "")
    return sorted(kinds) == ["latency", "time"] or ("." in number and not any(map(has_unit, fields)))


def named_fields(fields: list[str]) -> list[str]:
    """Names for the fields of rows without a header: one number alone is the latency, one moment the submission."""
    kinds = ["latency"] if len(fields) == 1 else [field_kind(field) for field in fields]
    if len(fields) > 1 and not _is_plain(fields, kinds):
        kinds = [kind if kind == "time" else "" for kind in kinds]
    return [kind if kind and kinds.count(kind) == 1 else f"column{at}" for at, kind in enumerate(kinds, start=1)]


def _first_rows(head: str, delimiter: str, names: list[str], *, skip: int) -> pd.DataFrame:
    """Some whole rows of the log's beginning, as text."""
    lines = [line for line in head.split("\n")[skip : skip + SAMPLED_ROWS] if line.strip()]
    fields = [head_fields(line, delimiter) for line in lines]
    return pd.DataFrame([row for row in fields if len(row) == len(names)], columns=names, dtype="str")


def _later_rows(path: Path, delimiter: str, names: list[str]) -> pd.DataFrame:
    """Rows from all over the first blocks of a log."""
    with open_source(path) as source:
        lines = [line for block in islice(source.blocks(quoted=True), 3) for line in block.lines()]
    spread = lines[1 :: max(1, len(lines) // SAMPLED_ROWS)]
    return _first_rows("\n".join(spread), delimiter, names, skip=0)


def _decimal(rows: pd.DataFrame, roles: Roles, delimiter: str) -> str:
    """A comma where the fields are not separated by commas and a latency is written with one."""
    cells = [str(cell) for name in roles.latency for cell in rows[name]]
    return "," if delimiter != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells) else "."


def _thousands(rows: pd.DataFrame, roles: Roles) -> str:
    """A mark that always has three digits after it, beside numbers below a thousand that have none."""
    cells = [str(cell).strip() for name in roles.latency for cell in rows[name]]
    numbers = [cell for cell in cells if cell[:1].isdigit()]
    for mark in ",.'\u2019\u00a0\u202f ":
        marked = [cell for cell in numbers if mark in cell]
        point = rf"(?:[{'.' if mark == ',' else ','}]\d+)?" if mark in ",." else r"(?:[.,]\d+)?"
        number = re.compile(rf"[1-9]\d{{0,2}}(?:{re.escape(mark)}\d{{3}})+{point}|\d{{1,3}}{point}")
        if marked and len(numbers) - len(marked) >= FEW_SMALL and all(map(number.fullmatch, numbers)):
            return mark
    return ""


def _with_points(frame: pd.DataFrame, roles: Roles, decimal: str, thousands: str) -> pd.DataFrame:
    """The same table with points, and no marks of thousands, in numbers that were read as text."""
    frame = frame.copy(deep=False)
    for name in roles.latency:
        if frame[name].dtype.kind != "f":
            text = frame[name].astype("string")
            if thousands:
                text = text.str.replace(rf"(?<=\d){re.escape(thousands)}(?=\d{{3}})", "", regex=True)
            frame[name] = text.str.replace(r"(?<=\d),(?=\d)", ".", regex=True) if decimal == "," else text
    return frame


def _types(rows: pd.DataFrame, roles: Roles, thousands: str) -> dict[str, pa.DataType]:
    """The types to try first; a block that does not fit is read as text and looked at row by row."""
    types: dict[str, pa.DataType] = {}
    for name in roles.latency:
        value = _first_value(rows, name).replace(",", ".")
        if (not value or _is_number(value)) and not thousands:  # durations such as 1m 20s are text
            types[name] = pa.float64()
    for name in filter(None, (roles.submitted, roles.ended)):
        value = _first_value(rows, name)
        if roles.time_formats.get(name) in (None, "iso") and re.match(r"\d{4}-\d\d?-", value):
            types[name] = pa.timestamp("us", tz="UTC" if OFFSET.search(value) else None)
        elif _is_number(value):
            types[name] = pa.float64()
    if roles.id:
        types[roles.id] = pa.string()  # 1 and 01 are two ids
    return types


def _first_value(rows: pd.DataFrame, name: str) -> str:
    """The first cell of a column that holds something."""
    return next((str(cell) for cell in rows[name] if cell and str(cell).strip()), "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
