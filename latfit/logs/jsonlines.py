"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.columns import Roles, resolve_roles
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Block, Source
from latfit.logs.tabular import settle_times, to_records


@register
class JsonLines(Format):
    """Objects with the same keys, one a line; nested values are left out."""

    name = "jsonl"
    description = "JSON lines, one object a probe"
    rank = 80
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """The first line is an object."""
        return head.lstrip().startswith("{")

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by key."""
        roles: Roles | None = None
        names: dict[str, None] = {}  # every key so far, in order
        for block in source.blocks():
            frame, numbers, broken = _parse(block)
            if broken:
                yield Records.unusable(broken)
            if not len(frame):
                continue
            new = [name for name in map(str, frame.columns) if name not in names]
            names.update(dict.fromkeys(new))
            if roles is None:
                roles, notes = resolve_roles(list(names), options, source.name)
                roles = settle_times(frame, roles)
            elif new and resolve_roles(list(names), options, source.name)[0].used != roles.used:
                raise LogError(
                    f"{source.name}: line {numbers[0]}: the keys {listed(new)} come only from here on, and change "
                    "what is what; say it with --column"
                )
            for name in roles.used - set(frame.columns):
                frame[name] = None
            records = to_records(frame, numbers, roles, options)
            records.notes += notes
            yield records
        if roles is None:
            raise LogError(f"{source.name}: no line holds a JSON object")


def _parse(block: Block) -> tuple[pd.DataFrame, NDArray[np.int64], dict[int, str]]:
    """The objects of a block as a table, their line numbers, and the lines that hold none."""
    # pyarrow crashes on a line that is null (apache/arrow#47409), so it sees lines of objects only
    if block.data.startswith(b"{") and block.data.count(b"\n{") == block.n_lines - 1:
        try:
            table = pa.json.read_json(
                pa.BufferReader(block.data), read_options=pa.json.ReadOptions(block_size=len(block.data) + 1)
            )
            if table.num_rows == block.n_lines:
                plain = [name for name in table.column_names if not pa.types.is_nested(table.schema.field(name).type)]
                return table.select(plain).to_pandas(), block.first_line + np.arange(block.n_lines), {}
        except pa.ArrowInvalid:
            pass
    rows, numbers = [], []
    broken: dict[int, str] = {}
    for number, line in enumerate(block.lines(), start=block.first_line):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            broken[number] = shown(len(broken), "unparseable line", str(error)[:60])
            continue
        if isinstance(value, dict):
            row = {key: item for key, item in value.items() if not isinstance(item, (dict, list))}
            rows.append({_text(key): _text(item) for key, item in row.items()} if r"\ud" in line.lower() else row)
            numbers.append(number)
        else:
            broken[number] = shown(len(broken), "not an object", f"{line[:40]!r}")
    return pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken


def _text(value: Any) -> Any:
    r"""A value as it is, but for halves of surrogate pairs (`"\\ud800"`), which no text can hold: U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
