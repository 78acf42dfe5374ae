"""Objects: JSON lines, JSON documents, and lines of text in which a pattern finds the values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.json

from latfit.errors import LogError
from latfit.logs.formats import Format, Head, InferredFormat, ReadOptions, register, regular_expression
from latfit.logs.lines import CellFormat, json_object, line_tables
from latfit.logs.records import Records
from latfit.logs.source import Block, Source
from latfit.logs.tabular import Row, Rows, read_tables, row_tables

MAX_OPENED = 200  # brackets in a line that pyarrow may see: thousands, one in the other, end its process
MAX_DEPTH = 8  # objects around an array, one in the other
OTHER_OBJECTS = "objects of other arrays in the document"
BETWEEN = re.compile(r"[^ \t\n,]|\Z")  # the end of what stands between values
ARRAY = re.compile(r":\s*\[\s*\{")  # of objects, inside an object


@register
class JsonLines(InferredFormat):
    """Objects with the same keys, one a line; values inside objects are columns such as `data.value`."""

    name = "jsonl"
    description = "JSON lines, one object a probe"
    rank = 80
    begins = r"\{"

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        tables = (table for block in source.blocks() for table in _tables_of(block))
        yield from read_tables(tables, source.name, options)


@register
class Pattern(InferredFormat):
    """One line a probe, wherever in it the pattern is found; its named groups are the columns.

    A group that takes no part in the match is an empty cell.
    """

    name = "pattern"
    description = "lines of free text: --pattern 'task (?P<id>\\d+) took (?P<latency>\\S+)'"
    rank = 999
    uses = ("pattern", *InferredFormat.uses)

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        if options.pattern is None:
            raise LogError(f"{source.name}: describe its lines with --pattern REGEX")
        pattern = regular_expression(options.pattern)

        def find(line: str) -> dict[str, str | None] | None:
            return match.groupdict() if (match := pattern.search(line)) else None

        none = f"no line matches --pattern {options.pattern!r}"
        yield from read_lines(source, options, find, "lines without a match of --pattern", nothing=none)


@register
class JsonArray(InferredFormat):
    """An array of objects with the same keys; values inside objects are columns such as `data.value`.

    The array may stand inside a document (`{"items": […]}`, `{"hits": {"hits": […]}}`); of several
    the first one counts, and a longer one after it is an error.
    Objects one after the other may take several lines each, as jq prints them.
    """

    name = "json"
    by_line = False
    description = "JSON: an array of objects, also inside a document, or objects over several lines"
    rank = 79
    begins: ClassVar[str] = r"\{|\[\s*(?:[{\]]|\Z)"
    array: ClassVar[str] = ""  # the path of the array that counts, where it need not be the first

    def row(self, value: Row) -> Row | str | None:
        return flat_object(value)

    def sniff(self, head: Head) -> bool:
        if head.start.startswith("["):
            return True
        first, _, rest = head.start.partition("\n")
        try:
            whole = json.loads(first)  # alone it may be the first of many lines to come
        except (ValueError, RecursionError):
            return not rest.lstrip().startswith("{") and bool(rest.strip() or ARRAY.search(head.start))
        several = any(len(objects) > 1 for _, objects in _arrays(whole))
        return several and not rest.strip()

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        last = Records.unusable()
        yield from read_tables(self.tables(source, last), source.name, options)
        yield last

    def tables(self, source: Source, last: Records) -> Iterator[Rows]:
        return row_tables(self.elements(source, last))

    def elements(self, source: Source, last: Records) -> Iterator[tuple[int, Row | str]]:
        for number, value in _elements(source, last, self.array):
            cells = self.row(value) if isinstance(value, dict) else f"not an object: {str(value)[:40]!r}"
            if cells is None:
                last.skipped[OTHER_OBJECTS] += 1
            else:
                yield number, cells if isinstance(cells, str) else _with_whole_text(cells)


class JsonRows(CellFormat, JsonArray):
    """One probe for each object of an array inside a JSON document, with its cells at `paths`."""

    cells = "submitted ended status"
    roles = ()
    nothing = "no line holds a JSON object"
    tables = JsonArray.tables
    sniff = Format.sniff

    def row(self, value: Row) -> Row | str | None:
        return self.cells_of(value)


def read_lines(
    source: Source, options: ReadOptions, parse: Callable[[str], Row | str | None], others: str, **how: Any
) -> Iterator[Records]:
    """The records of lines of text that `parse` makes an object of, else they are `others`; see `read_tables`."""
    last = Records.unusable()
    yield from read_tables(line_tables(source, parse, last, others, dtype="str"), source.name, options, **how)
    yield last


def _tables_of(block: Block) -> Iterator[Rows]:
    # pyarrow crashes on a line that is null (apache/arrow#47409), so it sees lines of objects only
    objects = block.data.startswith(b"{") and block.data.count(b"\n{") == block.n_lines - 1
    if objects and max(line.count(b"[") + line.count(b"{") for line in block.data.split(b"\n")) <= MAX_OPENED:
        try:
            table = pa.json.read_json(
                pa.BufferReader(block.data),
                read_options=pa.json.ReadOptions(block_size=len(block.data) + 1, use_threads=False),
            )
            if table.num_rows == block.n_lines:
                yield _flat_table(table).to_pandas(use_threads=False), block.first_line + np.arange(block.n_lines), []
                return
        except pa.ArrowInvalid:
            pass
    values = ((number, json_object(line)) for number, line in block.numbered_lines())
    yield from row_tables(
        (number, value if isinstance(value, str) else _with_whole_text(flat_object(value))) for number, value in values
    )


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


def flat_object(value: Row, prefix: str = "") -> Row:
    """An object's plain values, those of objects inside it by path: `{"a": {"b": 1}}` gives `a.b`; no lists.

    >>> flat_object({"id": 7, "data": {"value": 1.5, "tags": []}})
    {'id': 7, 'data.value': 1.5}
    """
    flat: Row = {}
    for key, item in value.items():
        if isinstance(item, dict):
            for path, inner in flat_object(item, f"{prefix}{key}.").items():
                flat.setdefault(path, inner)
        elif not isinstance(item, list):
            flat[f"{prefix}{key}"] = item
    return flat


def _whole_text(value: Any) -> Any:
    r"""The value, with U+FFFD in place of halves of surrogate pairs (`"\\ud800"`), which no text can hold."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def _with_whole_text(row: Row) -> Row:
    return {_whole_text(key): _whole_text(item) for key, item in row.items()}


def _arrays(value: Row, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, list[Row]]]:
    """The arrays inside an object, by path, with the objects in them."""
    for key, item in value.items():
        path = f"{prefix}{_whole_text(key)[:40]}"
        if isinstance(item, list):
            yield path, [each for each in item if isinstance(each, dict)]
        elif isinstance(item, dict) and depth < MAX_DEPTH:
            yield from _arrays(item, f"{path}.", depth + 1)


def _elements(source: Source, last: Records, array: str) -> Iterable[tuple[int, Any]]:
    """The objects of a log with their lines, or counted from 1 inside a document; `last` counts those left out."""
    documents = list(_documents(source))
    arrays = dict(_arrays(documents[0][1])) if len(documents) == 1 and isinstance(documents[0][1], dict) else {}
    arrays = {path: objects for path, objects in arrays.items() if objects}
    if not arrays:  # elements of one array, or one object after the other
        return documents
    chosen = array or next(iter(arrays))
    longest = max(arrays, key=lambda path: len(arrays[path]))
    rows = arrays.pop(chosen, [])
    if not array and longest in arrays and len(arrays[longest]) > len(rows):
        raise LogError(
            f"{source.name}: the document holds arrays of objects {chosen!r} ({len(rows)}) and {longest!r} "
            f"({len(arrays[longest])}); extract the one that you need, for example with jq '.{longest}'"
        )
    if arrays:
        last.skipped[OTHER_OBJECTS] += sum(map(len, arrays.values()))
    return enumerate(rows, start=1)


def _documents(source: Source) -> Iterator[tuple[int, Any]]:
    """The values that stand one after the other in a text, or in the array that it is, with their lines."""
    text, decoder = "".join(source.texts()), json.JSONDecoder()
    is_array = text.lstrip().startswith("[")
    at, line = text.index("[") + 1 if is_array else 0, 1
    while True:
        start, at = at, BETWEEN.search(text, at).start()  # type: ignore[union-attr]
        line += text.count("\n", start, at)
        if text[at : at + 1] == ("]" if is_array else ""):
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line += text.count("\n", at, getattr(error, "pos", at))
            damaged = f"this JSON document is damaged or cut short ({str(error)[:60]})"
            raise LogError(f"{source.name}: line {line}: {damaged}") from error
        yield line, value
        line, at = line + text.count("\n", at, end), end
