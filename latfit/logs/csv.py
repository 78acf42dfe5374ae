"""CSV and TSV: one row a probe, columns by name."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from latfit.errors import LogError, listed
from latfit.logs.delimited import head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import Roles, resolve_roles, settle_times, to_records
from latfit.logs.times import OFFSET

DELIMITERS = (",", "\t", ";", "|")


@register
class Csv(Format):
    """Comma-, tab-, semicolon- or bar-separated values, with a header or a single column of numbers."""

    name = "csv"
    description = "CSV or TSV with a header line, or one number a line"
    rank = 90

    def sniff(self, head: str) -> bool:
        """Any text that has a delimiter in its first line, or is a column of numbers."""
        first = head.lstrip().split("\n", 1)[0].strip()
        if first.startswith(("<", "{", "[", "%PDF")):
            return False
        return any(d in first for d in DELIMITERS) or _is_number(first) or (first.isidentifier() and len(first) < 64)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name; numbers alone are latencies."""
        head = source.text
        first = head.split("\n", 1)[0]
        delimiter = max(DELIMITERS, key=first.count)
        names = head_fields(head, delimiter)
        header = not all(_is_number(name) for name in names)
        if not header:
            names = ["latency"] if len(names) == 1 else [f"column{i}" for i in range(1, len(names) + 1)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise LogError(
                f"{source.name}: line 1 names the column {twice[:40]!r} twice: columns need names of their own"
            )
        roles, notes = resolve_roles(names, options, source.name)
        rows = 0
        for chunk in read_delimited(
            source, delimiter, names, _types(head, delimiter, names, roles, options), header=header
        ):
            rows += chunk.line.size + len(chunk.misshapen)
            if chunk.misshapen:
                yield Records.unusable(chunk.misshapen)
            options = settle_times(chunk.frame, roles, options) if len(chunk.frame) else options
            records = to_records(chunk.frame, chunk.line, roles, options)
            records.notes += notes
            yield records
        if not rows:
            raise LogError(f"{source.name}: there is a header ({listed(names)}) but no row below it")


def _types(head: str, delimiter: str, names: list[str], roles: Roles, options: ReadOptions) -> dict[str, pa.DataType]:
    """The types to try first; a block that does not fit is read as text and looked at row by row."""
    types: dict[str, pa.DataType] = dict.fromkeys(roles.latency, pa.float64())
    second = head.split("\n", 2)[1] if "\n" in head else ""
    sample = dict(zip(names, head_fields(second, delimiter), strict=False))
    for name in (roles.submitted, roles.ended):
        value = sample.get(name or "", "")
        if name and options.time_format in (None, "iso") and "-" in value[1:8]:
            types[name] = pa.timestamp("us", tz="UTC" if OFFSET.search(value) else None)
        elif name and _is_number(value):
            types[name] = pa.float64()
    if roles.id and sample.get(roles.id, "").isdecimal():
        types[roles.id] = pa.int64()
    elif roles.id:
        types[roles.id] = pa.string()
    return types


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
