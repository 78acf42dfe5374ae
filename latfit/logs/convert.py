"""Any log as a file of the canonical table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from latfit._system import FORMULA, NUMBER, inert, whole_file
from latfit.errors import LogError
from latfit.logs.reading import MAX_REFUSED, read_log
from latfit.table import CANONICAL, LogFacts, ProbeLog

ROWS_AT_A_TIME = 1 << 18


def convert_log(
    path: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    max_refused: float = MAX_REFUSED,
    spreadsheet: bool = False,
    **how: Any,
) -> tuple[LogFacts, dict[str, int]]:
    r"""Write a log's canonical table to `output`, whole or not at all; return its facts and counts.

    The ending of `output` (.csv, .parquet, .jsonl) says how; `how` is as for `read_log`. `spreadsheet` keeps texts from
    being run as formulas.

    Parameters
    ----------
    path
        A path, a glob, `-` for standard input, or several of these.
    output
        The file to write; its ending says in which format.
    max_refused
        The largest share of rows that may be refused, with their reasons, before it is an error.
    spreadsheet
        Neutralise cells that a spreadsheet would run.
    how
        As for `read_log`.

    Returns
    -------
    (LogFacts, dict)
        What was read, and how many probes of each status were written.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "probes.csv"
    ...     _ = path.write_text("latency_ms,ok\n120,true\n250,false\n")
    ...     facts, counts = latfit.convert_log(path, path.with_suffix(".parquet"))
    >>> counts
    {'completed': 1, 'failed': 1, 'censored': 0, 'lost': 0}
    """
    output = Path(output)
    if output.suffix not in WRITERS:
        raise LogError(f"{output}: the ending says how to write; use one of {', '.join(WRITERS)}")
    if isinstance(path, (str, Path)) and Path(path).exists() and output.exists() and output.samefile(path):
        raise LogError(f"{output}: this is the log itself; write to another file")
    log = read_log(path, max_refused=max_refused, **how)
    table = _inert(_arrow(log)) if spreadsheet else _arrow(log)
    with whole_file(output) as part:
        WRITERS[output.suffix](part, table)
    return log.facts, log.counts


def _arrow(log: ProbeLog) -> pa.Table:
    """The log with plain column types."""
    frame = log.frame.copy(deep=False)
    for name in frame.columns:
        # the columns of Parquet have types of their own; elsewhere they are text
        text = name == "status" or (name not in CANONICAL and log.facts.format != "parquet")
        if text or isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].astype("string")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except (pa.ArrowException, OverflowError) as error:
        raise LogError(f"{log.facts.path}: a column changes its type within the log ({error})") from error


def _inert(table: pa.Table) -> pa.Table:
    """The same table with texts, the names of its columns among them, that no spreadsheet runs as a formula."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(at)
            plain = pc.or_(
                pc.invert(pc.match_substring_regex(column, FORMULA)), pc.match_substring_regex(column, NUMBER)
            )
            quoted = pc.binary_join_element_wise(pa.scalar("'", field.type), column, pa.scalar("", field.type))
            table = table.set_column(at, field, pc.if_else(plain, column, quoted))
    return table.rename_columns([inert(name) for name in table.schema.names])


def _write_csv(path: Path, table: pa.Table) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for start in range(0, max(1, table.num_rows), ROWS_AT_A_TIME):
            frame = table.slice(start, ROWS_AT_A_TIME).to_pandas()
            whole = (frame["submitted"].dt.microsecond.fillna(0) == 0).all()
            pattern = "%Y-%m-%dT%H:%M:%SZ" if whole else "%Y-%m-%dT%H:%M:%S.%fZ"
            frame["submitted"] = frame["submitted"].dt.strftime(pattern)
            text = frame.to_csv(index=False, header=not start, lineterminator="\n")
            file.write(text.replace("\0", "\ufffd"))  # JSON can hold a null character, a text file cannot


def _write_parquet(path: Path, table: pa.Table) -> None:
    with path.open("wb") as file:
        pa.parquet.write_table(table, file, row_group_size=ROWS_AT_A_TIME)


def _write_jsonl(path: Path, table: pa.Table) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in table.to_batches(ROWS_AT_A_TIME):
            for row in batch.to_pylist():
                row["submitted"] = row["submitted"] and row["submitted"].isoformat().replace("+00:00", "Z")
                row["latency"] = None if row["latency"] != row["latency"] else row["latency"]
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".jsonl": _write_jsonl,
}
