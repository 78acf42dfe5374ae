"""The table of a batch, and as a file: Parquet, CSV or JSON lines by the name's ending."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from latfit._system import inert, whole_file
from latfit.batch.rows import Row
from latfit.errors import LatfitError

ENDINGS = (".csv", ".parquet", ".jsonl")


@dataclass(frozen=True)
class BatchResult:
    """One row for each group, then one for each log that could not be read; `columns` are the names and types.

    `bad_files` and `bad_groups` pair names with the reason of the error. `refused` counts the refused rows of all logs,
    `notes` are for the user.

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
    """Raise an error if the name does not say how to write the table."""
    if path.suffix not in ENDINGS:
        raise LatfitError(f"{path}: the ending says how to write; use one of {', '.join(ENDINGS)}")


def check_output(path: Path) -> None:
    """Raise an error before the work begins if the table could not be written to `path`."""
    check_ending(path)
    if path.is_dir() or not path.absolute().parent.is_dir():
        why = "it is a folder" if path.is_dir() else "there is no such folder"
        raise LatfitError(f"{path}: cannot be written: {why}")


def write_table(result: BatchResult, path: Path, *, spreadsheet: bool = False) -> None:
    """Write the rows, whole or not at all; `spreadsheet` keeps cells from being run as formulas."""
    check_output(path)
    columns, rows = result.columns, result.rows
    if spreadsheet:
        rows = [{inert(k): inert(v) if isinstance(v, str) else v for k, v in row.items()} for row in rows]
        columns = {inert(name): kind for name, kind in columns.items()}
    with whole_file(path) as part:
        if path.suffix == ".csv":
            replace(result, columns=columns, rows=rows).to_frame().to_csv(part, index=False, lineterminator="\n")
        elif path.suffix == ".jsonl":
            lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
            with part.open("w", encoding="utf-8") as file:
                file.writelines(lines)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
            schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
            with part.open("wb") as whole:  # pyarrow would take a name such as s3:/x as an address
                pq.write_table(pa.Table.from_pylist(rows, schema=schema), whole)
