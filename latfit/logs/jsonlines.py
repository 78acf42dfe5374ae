"""JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.lines import MAX_CHARACTERS
from latfit.logs.records import Records, shown
from latfit.logs.schema import resolve_roles, sample_rows
from latfit.logs.source import Block, Source
from latfit.logs.tabular import Settling

MAX_OPENED = 200  # brackets in a line that pyarrow may see: thousands, one in the other, end its process
Parsed = tuple[pd.DataFrame, NDArray[np.int64], dict[int, str]]


@register
class JsonLines(Format):
    """Objects with the same keys, one a line; values inside objects are columns such as `data.value`."""

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
        yield from read_objects(map(_parse, source.blocks()), source.name, options)


def read_objects(
    tables: Iterator[Parsed],
    log: str,
    options: ReadOptions,
    *,
    every_line: bool = True,
    nothing: str = "no line holds a JSON object",
) -> Iterator[Records]:
    """The records of tables of objects: their rows, the line numbers, and the lines that hold none.

    Unless `every_line` is a probe, those without the latency's key are left out, and counted. `nothing` is the error
    of a log without a row.
    """
    settling: Settling | None = None
    names: dict[str, None] = {}  # every key so far, in order
    for frame, numbers, broken in tables:
        if broken:
            yield Records.unusable(broken)
        if not len(frame):
            continue
        new = [name for name in map(str, frame.columns) if name not in names]
        names.update(dict.fromkeys(new))
        if settling is None:
            first_rows = sample_rows(frame)
            roles, notes = resolve_roles(list(names), options, log, first_rows)
            settling = Settling(roles, options, blank_is_lost=True)
        elif new and _others(list(names), options, log, pd.concat([first_rows, sample_rows(frame[new])])) - roles.used:
            raise LogError(
                f"{log}: line {numbers[0]}: the keys {listed(new)} come only from here on, and change "
                "what is what; say it with --column"
            )
        for name in roles.used - set(frame.columns):
            frame[name] = None
        told = frame[list(roles.latency)].notna().all(axis=1).to_numpy(dtype=bool) | every_line
        records = settling.records(frame[told].reset_index(drop=True), numbers[told])
        records.notes += notes
        if not told.all():
            records.skipped[f"lines without {listed(roles.latency)}"] = int(np.count_nonzero(~told))
        yield records
    if settling is None:
        raise LogError(f"{log}: {nothing}")
    yield settling.last()


def read_found(
    source: Source, options: ReadOptions, find: Callable[[str], dict[str, Any] | None], others: str, **how: Any
) -> Iterator[Records]:
    """The records of lines of text in which `find` finds an object; those in which it finds none are `others`.

    `how` is as for `read_objects`.
    """
    skipped = 0

    def parse(block: Block) -> Parsed:
        nonlocal skipped
        rows, numbers = [], []
        broken: dict[int, str] = {}
        for number, line in enumerate(block.lines(), start=block.first_line):
            if not line.strip():
                continue
            if len(line) > MAX_CHARACTERS:
                broken[number] = "line too long"
            elif (row := find(line)) is not None:
                rows.append(row)
                numbers.append(number)
            else:
                skipped += 1
        return pd.DataFrame(rows, dtype="str"), np.array(numbers, dtype=np.int64), broken

    yield from read_objects(map(parse, source.blocks()), source.name, options, **how)
    left = Records.unusable({})
    if skipped:
        left.skipped[others] = skipped
    yield left


def _others(names: list[str], options: ReadOptions, log: str, rows: pd.DataFrame) -> set[str]:
    """The columns that have a role, now that there are more of them."""
    return resolve_roles(names, options, log, rows)[0].used


def _parse(block: Block) -> Parsed:
    """The objects of a block as a table, their line numbers, and the lines that hold none."""
    # pyarrow crashes on a line that is null (apache/arrow#47409), so it sees lines of objects only
    if block.data.startswith(b"{") and block.data.count(b"\n{") == block.n_lines - 1 and _is_shallow(block):
        try:
            table = pa.json.read_json(
                pa.BufferReader(block.data), read_options=pa.json.ReadOptions(block_size=len(block.data) + 1)
            )
            if table.num_rows == block.n_lines:
                return _flat_table(table).to_pandas(), block.first_line + np.arange(block.n_lines), {}
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
            row = flat_object(value)
            rows.append(
                {whole_text(key): whole_text(item) for key, item in row.items()} if r"\ud" in line.lower() else row
            )
            numbers.append(number)
        else:
            broken[number] = shown(len(broken), "not an object", f"{line[:40]!r}")
    return pd.DataFrame(rows), np.array(numbers, dtype=np.int64), broken


def _is_shallow(block: Block) -> bool:
    """Whether no line opens more brackets than pyarrow can take one inside the other."""
    opened = block.data.count(b"[") + block.data.count(b"{")
    if opened <= MAX_OPENED:
        return True
    data = np.frombuffer(block.data, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    brackets = np.flatnonzero((data == ord("[")) | (data == ord("{")))
    return int(np.bincount(np.searchsorted(ends, brackets)).max()) <= MAX_OPENED


def _flat_table(table: pa.Table) -> pa.Table:
    """The table with the fields of objects as columns of their own (`data.value`), and without lists."""
    inside = table.select([at for at, kind in enumerate(table.schema.types) if pa.types.is_struct(kind)])
    flat = table.select([at for at, kind in enumerate(table.schema.types) if not pa.types.is_nested(kind)])
    while any(pa.types.is_struct(kind) for kind in inside.schema.types):
        inside = inside.flatten()
    for field, column in zip(inside.schema, inside.columns, strict=True):
        if not pa.types.is_nested(field.type) and field.name not in flat.column_names:  # a key with a dot goes first
            flat = flat.append_column(field.name, column)
    return flat


def flat_object(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object's plain values, those of objects inside it by path: `{"a": {"b": 1}}` gives `a.b`; no lists.

    >>> flat_object({"id": 7, "data": {"value": 1.5, "tags": []}})
    {'id': 7, 'data.value': 1.5}
    """
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            for path, inner in flat_object(item, f"{prefix}{key}.").items():
                flat.setdefault(path, inner)
        elif not isinstance(item, list):
            flat[f"{prefix}{key}"] = item
    return flat


def whole_text(value: Any) -> Any:
    r"""A value as it is, but for halves of surrogate pairs (`"\\ud800"`), which no text can hold: U+FFFD."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value
