"""logfmt: pairs of a name and a value in every line (`level=info dur=12.3ms status=200`), also behind other words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from latfit.logs.delimited import DELIMITERS, split_record
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.jsonlines import read_found
from latfit.logs.lines import MAX_CHARACTERS, first_lines
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import MOMENT

PAIR = re.compile(r'(?:^|(?<=[\s,;\[({]))([A-Za-z_@][\w.@-]*)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
BEGINS = re.compile(rf"\W?({MOMENT}(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
FEW = 2  # pairs that make a line of this format
HALF = 0.5  # of the first lines have them
MOSTLY = 0.8  # of those lines have a name


@register
class Logfmt(Format):
    """One line a request, `name=value` or `name="some words"`; a date in front of it is the column `timestamp`."""

    name = "logfmt"
    description = "logfmt: name=value pairs, one line a request"
    rank = 85
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Pairs in most of the first lines, and of the same names; but not in the cells of a table."""
        lines = first_lines(head)
        names = [{name for name, _ in PAIR.findall(line[:MAX_CHARACTERS])} for line in lines]
        having = [each for each in names if len(each) >= FEW]
        if not having or len(having) < HALF * len(names) or not _shared(having):
            return False
        return not _is_delimited(lines)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by name; lines without pairs are left out, and counted."""
        yield from read_found(source, options, _pairs, "lines with no pairs of a name and a value", every_line=False)


def _is_delimited(lines: list[str]) -> bool:
    """Whether a delimiter sets apart as many fields in all of the first lines, one of them numbers below the first."""
    for mark in DELIMITERS:
        rows = [split_record(line, mark)[1] for line in lines[:8]]
        alike = len(rows) > 1 and len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
        if alike and any(
            all(re.fullmatch(r" *-?\d+(\.\d+)? *", cell) for cell in column) for column in zip(*rows[1:], strict=True)
        ):
            return True
    return False


def _shared(names: list[set[str]]) -> set[str]:
    """The names that most of the lines have."""
    every = set().union(*names)
    return {name for name in every if sum(name in each for each in names) >= MOSTLY * len(names)}


def _pairs(line: str) -> dict[str, str] | None:
    """The pairs of a line, and the date in front of them; None where they are too few."""
    row = {name: _value(value) for name, value in PAIR.findall(line)}
    if len(row) < FEW:
        return None
    begins = BEGINS.match(line)
    if begins:
        row.setdefault("timestamp", begins[1].replace(",", "."))
    return row


def _value(text: str) -> str:
    """A value without its quotes, or the comma and the space behind it."""
    if text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text.rstrip(",;])}")
