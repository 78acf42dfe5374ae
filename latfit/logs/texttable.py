"""Tables as terminals show them: columns set apart by spaces, or by bars with rules of dashes."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from latfit.logs.delimited import Csv, is_header, is_measure
from latfit.logs.formats import DELIMITERS, SNIFFED_LINES, Head, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source

BARS = str.maketrans("│┃║─━═╌┼╪╋╬├┤┌┐└┘┬┴╞╡╒╕╘╛╤╧╔╗╚╝╠╣╦╩╭╮╰╯", "|||----" + "+" * 32)
AROUND = re.compile(r"(?=.*--)[-+|: =]*|\(?\d+ [Rr]ows?\b.*")  # rules, and what psql and MySQL count below their tables
WIDE, NARROW, BARRED = " {2,}", " +", r" *\| *"  # what sets columns apart
DATE_AND_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (?=\d\d:\d\d)")


@register
class TextTable(Csv):
    """The output of `column -t`, kubectl, squeue, psql, mysql, DuckDB, or a table of Markdown, read as if by tabs.

    Fields are set apart by bars, by two spaces or more, or by white space; then a date and its time of day are one.
    """

    name = "table"
    description = "a table as terminals show it: columns apart by spaces or bars (column -t, kubectl, psql, Markdown)"
    rank = 89
    # spaces set columns apart, or there is a rule
    begins = r'[^,\t;|"={<\n]*(?:\n|\Z)|(?:.*\n){0,2}?[^\w\n]*(?:--|─|━|═|╌)'

    def sniff(self, head: Head) -> bool:
        return _gap(head.lines[:SNIFFED_LINES]) is not None

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        gap = _gap(Head(source.text).lines[:SNIFFED_LINES]) or WIDE
        lines = [line.replace("\t", " ") for block in source.blocks() for line in block.lines()]
        width = len(_fields(next((line for line in lines if line.strip() and not _is_around(line)), ""), gap))
        rows = ("" if _is_around(line) else "\t".join(_fields(line, gap, width)) for line in lines)
        yield from super().read(Source(source.name, io.BytesIO("".join(f"{row}\n" for row in rows).encode())), options)


def _gap(lines: list[str]) -> str | None:
    """What sets the columns of a table apart; None if these lines are no table."""
    inside = [line for line in lines if not _is_around(line)]
    if len(inside) < len(lines) and len(inside) > 1 and "|" in inside[0].translate(BARS):
        return BARRED if _agree(inside, BARRED) else None
    if len(inside) < 3 or any(mark in inside[0] for mark in (*DELIMITERS, '"', "=", "{", "<")):
        return None
    for gap in (WIDE, NARROW):
        first, *rows = (_fields(line, gap) for line in inside)  # names without values, or a row that is mostly values
        values = sum(map(is_measure, first))
        may_begin = not values if is_header(first, rows) else 2 * values > len(first)
        if may_begin and _agree(inside, gap):
            return gap
    return None


def _agree(lines: list[str], gap: str) -> bool:
    widths = [len(_fields(line, gap)) for line in lines]
    return widths[0] > 1 and widths[1:].count(widths[0]) >= 0.8 * len(widths[1:])


def _fields(line: str, gap: str, width: int = 0) -> list[str]:
    """The fields of a line; where each space ends one, a date and a time are one, and the last may be several words."""
    if gap == NARROW:
        line = DATE_AND_TIME.sub(r"\1T", line.replace("date time", "date_time", 1))
        return line.strip().split(None, max(width, 1) - 1 if width else -1)
    line = line.translate(BARS).strip() if gap == BARRED else line.strip()
    return re.split(gap, line.removeprefix("|").removesuffix("|").strip()) if gap == BARRED else re.split(gap, line)


def _is_around(line: str) -> bool:
    return AROUND.fullmatch(line.translate(BARS).strip()) is not None
