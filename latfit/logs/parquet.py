"""Parquet: one row a probe, columns by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from latfit.errors import LogError, listed
from latfit.logs.formats import InferredFormat, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import ROWS_AT_A_TIME, Rows, read_tables


@register
class Parquet(InferredFormat):
    """Parquet files; lines are rows, counted from 1."""

    name = "parquet"
    by_line = False
    description = "Parquet with named columns"
    rank = 10
    begins = "PAR1"

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name; nested columns are left out."""
        try:
            yield from read_tables(_batches(source), source.name, options)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise LogError(f"{source.name}: this Parquet file is damaged or cut short ({error})") from error


def _batches(source: Source) -> Iterator[Rows]:
    """The rows in batches, with bytes as text; those that are none are written in hexadecimal."""
    from pyarrow.parquet import ParquetFile  # slow to import

    plain = source.path is not None and not source.packed  # neither compressed nor a pipe
    # a name such as s3:/x would be taken as an address, were it not opened here
    file = ParquetFile(pa.OSFile(str(source.path)) if plain else source.seekable())
    fields = [field for field in file.schema_arrow if not pa.types.is_nested(field.type)]
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise LogError(f"{source.name}: two columns have the same name ({listed(names)})")
    if not file.metadata.num_rows:
        raise LogError(f"{source.name}: there are columns ({listed(names)}) but no row")
    row = 1
    for batch in file.iter_batches(ROWS_AT_A_TIME, columns=names, use_threads=False):
        batch.validate(full=True)  # text that is no UTF-8 would fail only later
        frame = batch.to_pandas(use_threads=False, ignore_metadata=True)  # an index that pandas saved is a column too
        for field in fields:
            if pa.types.is_float16(field.type):  # which pandas cannot group by
                frame[field.name] = frame[field.name].astype(np.float32)
            elif str(field.type).startswith(("binary", "large_binary", "fixed_size_binary")):
                text = frame[field.name].map(lambda data: data.decode(errors="backslashreplace"), na_action="ignore")
                frame[field.name] = text
        yield frame, row + np.arange(len(frame), dtype=np.int64), []
        row += len(frame)
    if row - 1 != file.metadata.num_rows:
        rows = f"it has {row - 1} rows and says {file.metadata.num_rows}"
        raise LogError(f"{source.name}: this Parquet file is damaged ({rows})")
