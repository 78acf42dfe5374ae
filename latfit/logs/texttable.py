"""Tables as terminals show them: columns set apart by spaces, or by bars with rules of dashes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pandas as pd

from latfit.errors import LogError, listed
from latfit.logs.cells import has_unit
from latfit.logs.delimited import DELIMITERS, field_kind, is_header, named_fields
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.lines import Parsed, first_lines, read_lines
from latfit.logs.records import Records
from latfit.logs.schema import SAMPLED_ROWS, resolve_roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader

BARS = str.maketrans("│┃║─━═╌┼╪╋╬├┤┌┐└┘┬┴╞╡╒╕╘╛╤╧╔╗╚╝╠╣╦╩╭╮╰╯", "|||----" + "+" * 32)
COUNTED = re.compile(r"\(?\d+ rows?\b.*", re.IGNORECASE)  # of psql and of MySQL, below their tables
WIDE_FIELD = re.compile(r"\S+(?: \S+)*")
MOSTLY = 0.8  # of the first rows have as many fields as the header

Split = Callable[[str], list[str]]


@register
class TextTable(Format):
    """The output of `column -t`, kubectl, squeue, psql, mysql, DuckDB, or a table of Markdown.

    Fields are set apart by bars, by two spaces or more, or by white space; then a date and its time of day are one.
    Where two spaces set them apart, a cell may be empty: the others begin below their names.
    """

    name = "table"
    description = "a table as terminals show it: columns apart by spaces or bars (column -t, kubectl, psql, Markdown)"
    rank = 89
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """A rule of dashes below or above a header with bars; or columns by spaces in the first lines."""
        lines = first_lines(head)
        return bool(lines) and _split_of(lines) is not None

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name."""
        lines = [line for line in first_lines(source.text, SAMPLED_ROWS) if not _is_around(line)]
        split = _split_of(first_lines(source.text)) or _wide
        if not lines:
            raise LogError(f"{source.name}: there is no line of a table in the beginning of this log")
        first = split(lines[0])
        header = is_header(first)
        names = _unlike(first if header else named_fields(first))
        rows = [row for row in map(split, lines[int(header) :]) if len(row) == len(names)]
        roles, notes = resolve_roles(names, options, source.name, pd.DataFrame(rows, columns=names, dtype="str"))
        notes += [] if header else [f"there is no header: columns are {listed(names)}"]
        reader = TableReader(roles, options, notes=notes, blank_is_lost=True)
        starts = _starts(lines[0])

        def parse(line: str) -> Parsed:
            if _is_around(line):
                return None
            fields = split(line)
            if header and fields == first:
                return None
            if len(fields) < len(names) and split is _wide:
                fields = _placed(line, starts) or fields
            elif len(fields) > len(names) and split is _narrow:  # the last may have several words
                fields = [*fields[: len(names) - 1], " ".join(fields[len(names) - 1 :])]
            if len(fields) != len(names):
                return f"wrong number of fields: {len(fields)} instead of {len(names)}"
            return [field or None for field in fields]

        yield from read_lines(source, names, parse, reader.records, others=None)
        yield reader.last()


def _split_of(lines: list[str]) -> Split | None:
    """How the first lines of a log are taken apart, None where they are no table."""
    rules = [at for at, line in enumerate(lines[:3]) if _is_rule(line)]
    inside = [line for line in lines if not _is_around(line)]
    if rules and len(inside) > 1 and "|" in inside[0].translate(BARS):
        return _barred if _agree(inside, _barred) else None
    if len(inside) < 3 or any(mark in inside[0] for mark in (*DELIMITERS, '"', "=", "{", "<")):
        return None
    return next((split for split in (_wide, _narrow) if _agree(inside, split) and _may_begin(split(inside[0]))), None)


def _may_begin(fields: list[str]) -> bool:
    """Whether a first line can be that of a table: names without values among them, or a row with its time."""
    return not is_header(fields) or not any(field_kind(field) or has_unit(field) for field in fields)


def _agree(lines: list[str], split: Split) -> bool:
    """Whether most lines have as many fields as the first, or empty ones among them, and there are more than one."""
    many, starts = len(split(lines[0])), _starts(lines[0])
    like = [len(split(line)) == many for line in lines[1:]]
    placed = [split is _wide and _placed(line, starts) is not None for line in lines[1:]]
    fit = sum(map(any, zip(like, placed, strict=True)))
    return many > 1 and 2 * sum(like) >= len(like) and fit >= MOSTLY * len(like)


def _barred(line: str) -> list[str]:
    line = line.translate(BARS).strip()
    return [field.strip() for field in line.removeprefix("|").removesuffix("|").split("|")]


def _wide(line: str) -> list[str]:
    return re.split(" {2,}", line.strip())


def _starts(line: str) -> list[int]:
    """Where the fields of a line begin that two spaces set apart."""
    return [found.start() for found in WIDE_FIELD.finditer(line)]


def _placed(line: str, starts: list[int]) -> list[str] | None:
    """The fields of a line in which some are empty, by where they begin below the header; None where they do not."""
    found = {field.start(): field[0] for field in WIDE_FIELD.finditer(line)}
    return [found.get(start, "") for start in starts] if set(found) <= set(starts) else None


def _narrow(line: str) -> list[str]:
    return re.sub(r"(\d{4}-\d\d-\d\d) (?=\d\d:\d\d)", r"\1T", line).split()


def _is_rule(line: str) -> bool:
    """Whether a line only sets parts of a table apart."""
    text = line.translate(BARS)
    return "--" in text and set(text) <= set("-+|: =")


def _is_around(line: str) -> bool:
    """Whether a line is no row of a table: a rule, or how many rows there were."""
    return _is_rule(line) or COUNTED.fullmatch(line.strip()) is not None


def _unlike(names: list[str]) -> list[str]:
    """The names of columns, each of them once: a second one is numbered, one that is empty is called by its place."""
    found: list[str] = []
    for at, name in enumerate(names, start=1):
        own = name or f"column{at}"
        found.append(own if own not in found else f"{own}.{at}")
    return found
