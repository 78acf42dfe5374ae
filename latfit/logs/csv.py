"""CSV and TSV: one row a probe, columns by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from latfit.logs.columns import Roles, resolve_roles
from latfit.logs.delimited import Chunk, head_fields, read_delimited
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import Settling
from latfit.logs.times import OFFSET

DELIMITERS = (",", "\t", ";", "|")


@register
class Csv(Format):
    """Comma-, tab-, semicolon- or bar-separated values, with a header or a single column of numbers."""

    name = "csv"
    description = "CSV or TSV with a header line, or one number a line"
    rank = 90
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """Any text that has a delimiter in its first line, or is a column of numbers."""
        first, _, rest = head.lstrip().partition("\n")
        if len(first) > 10_000 or first.startswith(("<", "{", "[", "%PDF")):
            return False
        second = rest.lstrip().split("\n", 1)[0]
        numbers = _is_number(first) or (len(first) < 64 and _is_number(second))
        return numbers or any(d in first for d in DELIMITERS) or (first.strip().isidentifier() and len(first) < 64)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name; numbers alone are latencies."""
        head = source.text.lstrip()
        first = head.split("\n", 1)[0]
        delimiter = max(DELIMITERS, key=first.count)
        names = head_fields(head, delimiter)
        header = not all(_is_number(name) for name in names)
        if not header:
            names = ["latency"] if len(names) == 1 else [f"column{i}" for i in range(1, len(names) + 1)]
        roles, notes = resolve_roles(names, options, source.name)
        types = _types(head, delimiter, names, roles, options)
        settling = Settling(roles, options)

        def convert(chunk: Chunk) -> Records:
            records = settling.records(chunk.frame, chunk.line)
            records.notes += notes
            return records

        yield from read_delimited(
            source, delimiter, names, types, convert, header=header, settled=lambda: settling.settled
        )


def _types(head: str, delimiter: str, names: list[str], roles: Roles, options: ReadOptions) -> dict[str, pa.DataType]:
    """The types to try first; a block that does not fit is read as text and looked at row by row."""
    types: dict[str, pa.DataType] = dict.fromkeys(roles.latency, pa.float64())
    second = head.split("\n", 2)[1] if "\n" in head else ""
    sample = dict(zip(names, head_fields(second, delimiter), strict=False))
    for name in (roles.submitted, roles.ended):
        value = sample.get(name or "", "")
        if name and roles.time_formats.get(name) in (None, "iso") and "-" in value[1:8]:
            types[name] = pa.timestamp("us", tz="UTC" if OFFSET.search(value) else None)
        elif name and _is_number(value):
            types[name] = pa.float64()
    if roles.id:
        types[roles.id] = pa.string()  # 1 and 01 are two ids
    return types


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
