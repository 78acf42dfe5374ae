"""Parquet: one row a probe, columns by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from latfit.errors import LogError, listed
from latfit.logs.formats import ROLES, Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.schema import resolve_roles, sample_rows
from latfit.logs.source import PARQUET_MAGIC, Source
from latfit.logs.tabular import Settling

BATCH_ROWS = 1 << 19


@register
class Parquet(Format):
    """Parquet files; lines are rows, counted from 1."""

    name = "parquet"
    by_line = False
    description = "Parquet with named columns"
    rank = 10
    roles = ROLES
    uses = ("statuses", "unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        """By the magic number."""
        return head.startswith(PARQUET_MAGIC.decode())

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records by column name; nested columns are left out."""
        plain = source.path is not None and not source.packed  # neither compressed nor a pipe
        try:
            # a name such as s3:/x would be taken as an address, were it not opened here
            opened = pa.OSFile(str(source.path)) if plain else source.seekable()
            file = pa.parquet.ParquetFile(opened)
            names = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
            if len(set(names)) < len(names):
                raise LogError(f"{source.name}: two columns have the same name ({listed(names)})")
            binary = [name for name in names if _is_binary(file.schema_arrow.field(name).type)]
            if not file.metadata.num_rows:
                raise LogError(f"{source.name}: there are columns ({listed(names)}) but no row")
            row, settling = 1, None
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                batch.validate(full=True)  # text that is no UTF-8 would fail only later
                frame = batch.to_pandas(ignore_metadata=True)  # an index that pandas saved is a column too
                halves = [name for name in names if frame[name].dtype == np.float16]  # which pandas cannot group by
                frame[halves] = frame[halves].astype(np.float32)
                for name in binary:
                    frame[name] = frame[name].map(_text, na_action="ignore")
                if settling is None:
                    some = sample_rows(frame)
                    roles, notes = resolve_roles(names, options, source.name, some)
                    settling = Settling(roles, options, blank_is_lost=True)
                records = settling.records(frame, row + np.arange(len(frame), dtype=np.int64))
                records.notes += notes
                row += len(frame)
                yield records
            if settling is not None:
                yield settling.last()
            if row - 1 != file.metadata.num_rows:
                told = f"it has {row - 1} rows and says {file.metadata.num_rows}"
                raise LogError(f"{source.name}: this Parquet file is damaged ({told})")
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise LogError(f"{source.name}: this Parquet file is damaged or cut short ({error})") from error


def _is_binary(kind: pa.DataType) -> bool:
    """Whether a column holds bytes: text that its writer did not mark as such."""
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))


def _text(data: bytes) -> str:
    """Bytes as text; those that are none are written in hexadecimal."""
    return data.decode(errors="backslashreplace")
