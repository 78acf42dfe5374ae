"""Tables as terminals show them: columns set apart by spaces, or by bars with rules of dashes."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.delimited import DELIMITERS, is_header, is_measure, named_fields
from latfit.logs.formats import ROLES, register
from latfit.logs.lines import LineFormat, Parsed, first_lines
from latfit.logs.records import Records
from latfit.logs.schema import SAMPLED_ROWS, resolve_roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader

BARS = str.maketrans("│┃║─━═╌┼╪╋╬├┤┌┐└┘┬┴╞╡╒╕╘╛╤╧╔╗╚╝╠╣╦╩╭╮╰╯", "|||----" + "+" * 32)
COUNTED = re.compile(r"\(?\d+ rows?\b.*", re.IGNORECASE)  # of psql and of MySQL, below their tables
WIDE_FIELD = re.compile(r"\S+(?: \S+)*")

Split = Callable[[str], list[str]]


@register
class TextTable(LineFormat):
    """The output of `column -t`, kubectl, squeue, psql, mysql, DuckDB, or a table of Markdown.

    Fields are set apart by bars, by two spaces or more, or by white space; then a date and its time of day are one.
    Where two spaces set them apart, a cell may be empty: the others begin below their names.
    """

    name = "table"
    description = "a table as terminals show it: columns apart by spaces or bars (column -t, kubectl, psql, Markdown)"
    rank = 89
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")
    others = ""

    def sniff(self, head: str) -> bool:
        lines = first_lines(head)
        return bool(lines) and _split_of(lines) is not None

    def begin(self, source: Source) -> None:
        lines = [line for line in first_lines(source.text, SAMPLED_ROWS) if not _is_around(line)]
        if not lines:
            raise LogError(f"{source.name}: there is no line of a table in the beginning of this log")
        self.split = _split_of(first_lines(source.text)) or _wide
        first = self.split(lines[0])
        self.header, self.starts = first if is_header(first, map(self.split, lines[1:])) else None, _starts(lines[0])
        self.names = names = []
        for at, name in enumerate(self.header or named_fields(first), start=1):
            called = name or f"column{at}"
            names.append(called if called not in names else f"{called}.{at}")
        rows = [row for row in map(self.split, lines[self.header is not None :]) if len(row) == len(names)]
        frame = pd.DataFrame(rows, columns=names, dtype="str")
        roles, notes = resolve_roles(names, self.options, source.name, frame, named=self.header is not None)
        notes += [] if self.header else [f"there is no header: columns are {listed(names)}"]
        self.table = TableReader(roles, self.options, notes=notes, blank_is_lost=True)

    def parse(self, line: str) -> Parsed:
        fields, width = self.split(line), len(self.names)
        if _is_around(line) or fields == self.header:
            return None
        if len(fields) < width and self.split is _wide:
            fields = _placed(line, self.starts) or fields
        elif len(fields) > width and self.split is _narrow:  # the last may have several words
            fields = [*fields[: width - 1], " ".join(fields[width - 1 :])]
        if len(fields) != width:
            return f"wrong number of fields: {len(fields)} instead of {width}"
        return [field or None for field in fields]

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        return self.table.records(frame, line)

    def finish(self, source: Source) -> Records:
        return self.table.last()


def _split_of(lines: list[str]) -> Split | None:
    inside = [line for line in lines if not _is_around(line)]
    if any(map(_is_rule, lines[:3])) and len(inside) > 1 and "|" in inside[0].translate(BARS):
        return _barred if _agree(inside, _barred) else None
    if len(inside) < 3 or any(mark in inside[0] for mark in (*DELIMITERS, '"', "=", "{", "<")):
        return None
    for split in (_wide, _narrow):
        first = split(inside[0])  # names without values among them, or a row that is mostly values
        values = sum(map(is_measure, first))
        may_begin = not values if is_header(first, map(split, inside[1:])) else 2 * values > len(first)
        if may_begin and _agree(inside, split):
            return split
    return None


def _agree(lines: list[str], split: Split) -> bool:
    width, starts = len(split(lines[0])), _starts(lines[0])
    alike = [len(split(line)) == width for line in lines[1:]]
    placed = [split is _wide and _placed(line, starts) is not None for line in lines[1:]]
    fit = sum(map(any, zip(alike, placed, strict=True)))
    return width > 1 and 2 * sum(alike) >= len(alike) and fit >= 0.8 * len(alike)


def _barred(line: str) -> list[str]:
    line = line.translate(BARS).strip()
    return [field.strip() for field in line.removeprefix("|").removesuffix("|").split("|")]


def _wide(line: str) -> list[str]:
    return re.split(" {2,}", line.strip())


def _narrow(line: str) -> list[str]:
    return re.sub(r"(\d{4}-\d\d-\d\d) (?=\d\d:\d\d)", r"\1T", line.replace("date time", "date_time", 1)).split()


def _starts(line: str) -> list[int]:
    """Where the fields of a line begin that two spaces set apart."""
    return [field.start() for field in WIDE_FIELD.finditer(line)]


def _placed(line: str, starts: list[int]) -> list[str] | None:
    """The fields of a line in which some are empty, by where they begin below the header; None where they do not."""
    fields = {field.start(): field[0] for field in WIDE_FIELD.finditer(line)}
    return [fields.get(start, "") for start in starts] if set(fields) <= set(starts) else None


def _is_rule(line: str) -> bool:
    text = line.translate(BARS)
    return "--" in text and set(text) <= set("-+|: =")


def _is_around(line: str) -> bool:
    return _is_rule(line) or COUNTED.fullmatch(line.strip()) is not None
