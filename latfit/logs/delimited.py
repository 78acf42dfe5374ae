"""Text with delimited fields, in blocks: fast where every row is sound, row by row where one is not."""

from __future__ import annotations

import copy
import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from latfit._system import in_threads
from latfit.errors import LogError, listed
from latfit.logs.formats import ReadOptions
from latfit.logs.lines import RecordFormat
from latfit.logs.records import Records, shown
from latfit.logs.source import MAX_LINE_BYTES, Block, Source

MAX_SPAN = 200  # lines that one quoted record may take
csv.field_size_limit(MAX_SPAN * MAX_LINE_BYTES)  # the length of lines is limited where they are read


@dataclass(frozen=True)
class Chunk:
    """The rows of a block by column, their line numbers, and the lines that have the wrong number of fields."""

    frame: pd.DataFrame
    line: NDArray[np.int64]
    misshapen: dict[int, str]


def check_names(names: Sequence[str], log: str) -> None:
    """Refuse a header in which a name stands twice."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise LogError(f"{log}: the column {twice[:40]!r} is there twice: columns need names of their own")


def read_delimited(
    source: Source,
    delimiter: str,
    names: Sequence[str],
    types: dict[str, pa.DataType],
    convert: Callable[[Chunk], Records],
    *,
    header: bool,
    comments: int = 0,
    decimal: str = ".",
    settled: Callable[[], bool] = lambda: True,
) -> Iterator[Records]:
    """The records of a delimited text, in its order; columns not in `types` are text, `decimal` is their point.

    Above the header, or the first row, there are so many `comments`.

    `convert` makes records of a chunk: of one after the other until it has `settled` what holds for the
    whole log, then of several at once in threads.
    """
    check_names(names, source.name)
    types = {name: types.get(name, pa.dictionary(pa.int32(), pa.string())) for name in names}

    def parse(block: Block) -> Chunk:
        return _fast(block, delimiter, types, decimal) or _by_row(block, delimiter, names)

    def records(chunk: Chunk) -> list[Records]:
        broken = [Records.unusable(chunk.misshapen)] if chunk.misshapen else []
        return [*broken, convert(chunk)] if chunk.line.size else broken

    blocks = source.blocks(quoted=True)
    for _ in range(comments + header):
        blocks = _below_first(blocks)
    blocks = (block for block in blocks if not block.data.isspace() or delimiter.encode() in block.data)
    found = False
    for chunk in map(parse, blocks):
        found = found or bool(chunk.line.size or chunk.misshapen)
        yield from records(chunk)
        if chunk.line.size and settled():
            break
    if not found:
        raise LogError(f"{source.name}: there is a header ({listed(names)}) but no row below it")
    for several in in_threads(lambda block: records(parse(block)), blocks):
        yield from several


def _below_first(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks without the first line that is not blank, and those before it."""
    for block in blocks:
        start = len(block.data) - len(block.data.decode().lstrip().encode())  # white space as in `head_fields`
        if start < len(block.data):
            end = block.data.index(b"\n", start) + 1
            skipped = block.data.count(b"\n", 0, end)
            yield Block(block.data[end:], block.first_line + skipped, block.n_lines - skipped)
            break
    yield from blocks


def _fast(block: Block, delimiter: str, types: dict[str, pa.DataType], decimal: str) -> Chunk | None:
    """All rows at once, or None if any of them needs a closer look."""
    if not block.n_lines:
        return None
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(block.data),
            # one piece in this thread: other threads parse the blocks that follow
            read_options=pa.csv.ReadOptions(column_names=list(types), block_size=len(block.data), use_threads=False),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in block.data),
            convert_options=pa.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                decimal_point=decimal,
                auto_dict_max_cardinality=1 << 20,
            ),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != block.n_lines:
        return None  # blank lines, or records over several lines
    frame = table.to_pandas(split_blocks=True, self_destruct=True)
    return Chunk(frame, block.first_line + np.arange(len(frame), dtype=np.int64), {})


def _by_row(block: Block, delimiter: str, names: Sequence[str]) -> Chunk:
    """One record after the other, as text; a stray quote costs its own line only."""
    lines = block.lines()
    rows: list[list[str | None]] = []
    numbers: list[int] = []
    misshapen: dict[int, str] = {}
    at = 0
    while at < len(lines):
        if not lines[at].strip() and delimiter not in lines[at]:  # tabs alone are empty fields
            at += 1
            continue
        span, fields = _record(lines, at, delimiter, len(names))
        number = block.first_line + at
        if len(fields) == len(names):
            rows.append([field or None for field in fields])
            numbers.append(number)
        else:
            misshapen[number] = shown(
                len(misshapen), "wrong number of fields", f"{len(fields)} instead of {len(names)}"
            )
        at += span
    frame = pd.DataFrame(rows, columns=list(names), dtype="str")
    return Chunk(frame, np.array(numbers, dtype=np.int64), misshapen)


def _record(lines: list[str], at: int, delimiter: str, width: int) -> tuple[int, list[str]]:
    """How many lines the record at `at` takes, and its fields; a stray quote is taken as it stands."""
    if lines[at].count('"') % 2 == 0:
        used, fields = split_record(lines[at], delimiter)
        if used == 1:
            return 1, fields
    several = (line + "\n" for line in lines[at : at + MAX_SPAN])
    reader = csv.reader(several, delimiter=delimiter, strict=True)  # a quote that closes nothing is an error
    try:
        fields = next(reader)
        if len(fields) == width:
            return reader.line_num, fields
    except csv.Error:
        pass
    return 1, split_record(lines[at], delimiter, quoting=csv.QUOTE_NONE)[1]


def split_record(text: str, delimiter: str, *, quoting: int = csv.QUOTE_MINIMAL) -> tuple[int, list[str]]:
    """How many lines the first record of a text takes, and its fields."""
    if text and not any(mark in text for mark in '"\n\r'):
        return 1, text.split(delimiter)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
    try:
        fields = next(reader, [])
        return reader.line_num, fields
    except csv.Error:
        return 1, text.split(delimiter)


def head_fields(head: str, delimiter: str) -> list[str]:
    """The fields of a log's first line that is not blank."""
    return [field.strip() for field in split_record(head.lstrip().split("\n", 1)[0], delimiter)[1]]


class TableFormat(RecordFormat):
    """Delimited text with a header that names the columns; they are text unless `types` says otherwise."""

    delimiter: ClassVar[str] = ","
    needed: ClassVar[tuple[str, ...]] = ()  # columns that must be there
    marks: ClassVar[tuple[str, ...]] = ()  # more columns by which the format is recognised

    def sniff(self, head: str) -> bool:
        """By the names of columns."""
        return {*self.needed, *self.marks} <= set(head_fields(head, self.delimiter))

    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns."""
        return dict.fromkeys(self.names, pa.string())

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the rows."""
        named = copy.copy(self)
        named.names = head_fields(source.text, self.delimiter)
        if not set(self.needed) <= set(named.names):
            needed, names = ", ".join(self.needed), listed(named.names)
            raise LogError(f"{source.name}: line 1 must name {needed}; it has: {names}")
        reader = named.reader(source, options)
        yield from read_delimited(
            source,
            self.delimiter,
            reader.names,
            reader.types(),
            lambda chunk: reader.records(chunk.frame, chunk.line),
            header=True,
        )
        reader.finish(source)
        yield reader.tally.last()
