"""Tables as terminals show them: columns set apart by spaces, or by bars with rules of dashes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

from latfit.logs.delimited import DELIMITERS, Csv, is_header, is_measure
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import first_lines
from latfit.logs.records import Records
from latfit.logs.source import Source

BARS = str.maketrans("│┃║─━═╌┼╪╋╬├┤┌┐└┘┬┴╞╡╒╕╘╛╤╧╔╗╚╝╠╣╦╩╭╮╰╯", "|||----" + "+" * 32)
COUNTED = re.compile(r"\(?\d+ rows?\b.*", re.IGNORECASE)  # of psql and of MySQL, below their tables
WIDE_FIELD = re.compile(r"\S+(?: \S+)*")

Split = Callable[[str], list[str]]


@register
class TextTable(Csv):
    """The output of `column -t`, kubectl, squeue, psql, mysql, DuckDB, or a table of Markdown, read as if by tabs.

    Fields are set apart by bars, by two spaces or more, or by white space; then a date and its time of day are one.
    Where two spaces set them apart, a cell may be empty: the others begin below their names.
    """

    name = "table"
    description = "a table as terminals show it: columns apart by spaces or bars (column -t, kubectl, psql, Markdown)"
    rank = 89

    def sniff(self, head: str) -> bool:
        return _split_of(first_lines(head)) is not None

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        split = _split_of(first_lines(source.text)) or _wide
        lines = [line for block in source.blocks() for line in block.lines()]
        header = next((line for line in lines if line.strip() and not _is_around(line)), "")
        width, starts = len(split(header)), _starts(header)

        def by_tabs(line: str) -> str:
            if not line.strip() or _is_around(line):
                return ""  # lines keep their numbers
            fields = split(line.replace("\t", " "))
            if len(fields) < width and split is _wide:
                fields = _placed(line, starts) or fields
            elif len(fields) > width and split is _narrow:  # the last may have several words
                fields = [*fields[: width - 1], " ".join(fields[width - 1 :])]
            return "\t".join(fields)

        text = "\n".join(map(by_tabs, lines)) + "\n"
        yield from super().read(Source(source.name, io.BytesIO(text.encode())), options)


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
