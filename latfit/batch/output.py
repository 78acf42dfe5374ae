"""The table of a batch, and as a file: Parquet, CSV or JSON lines by the name's ending."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from latfit._system import inert, whole_file
from latfit.batch.rows import Row
from latfit.errors import LatfitError


@dataclass(frozen=True)
class BatchResult:
    """One row a group, then one for each log that could not be read; `columns` are the names and types.

    `bad_files` and `bad_groups` pair the names of what has an error with the reason. `refused` counts the
    rows of logs that were not taken, `notes` are what else is to be said.

    Examples
    --------
    >>> import latfit
    >>> table = latfit.BatchResult({"site": str, "timeout": float}, [{"site": "a", "timeout": 4.0}], [], [], 0, ())
    >>> table.to_frame()["timeout"].tolist()
    [4.0]
    """

    columns: dict[str, type]
    rows: list[Row]
    bad_files: list[tuple[str, str]]
    bad_groups: list[tuple[str, str]]
    refused: int
    notes: tuple[str, ...]

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame."""
        import pandas as pd

        kinds = {int: "Int64", float: "float64", str: "string"}  # "str" makes "None" of None before pandas 3
        types = {name: kinds[kind] for name, kind in self.columns.items()}
        return pd.DataFrame(self.rows, columns=list(types)).astype(types)


def check_ending(path: Path) -> None:
    """Raise if the name does not say how to write the table."""
    if path.suffix not in WRITERS:
        raise LatfitError(f"{path}: the ending says how to write; use one of {', '.join(WRITERS)}")


def check_output(path: Path) -> None:
    """Raise before the work begins if the table could not be written to `path`."""
    check_ending(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        why = "it is a folder" if path.is_dir() else "there is no such folder"
        raise LatfitError(f"{path}: cannot be written: {why}")


def write_table(result: BatchResult, path: Path, *, spreadsheet: bool = False) -> None:
    """Write the rows, whole or not at all; `spreadsheet` keeps cells from being run as formulas."""
    check_output(path)
    if spreadsheet:
        rows = [{inert(k): inert(v) if isinstance(v, str) else v for k, v in row.items()} for row in result.rows]
        result = replace(result, rows=rows, columns={inert(name): kind for name, kind in result.columns.items()})
    with whole_file(path) as part:
        WRITERS[path.suffix](result, part)


def _csv(result: BatchResult, path: Path) -> None:
    result.to_frame().to_csv(path, index=False, lineterminator="\n")


def _jsonl(result: BatchResult, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in result.rows)


def _parquet(result: BatchResult, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in result.columns.items()])
    with path.open("wb") as file:  # by its name, s3:/x would be taken as an address
        pq.write_table(pa.Table.from_pylist(result.rows, schema=schema), file)


WRITERS = {".csv": _csv, ".parquet": _parquet, ".jsonl": _jsonl}
