"""Logs as tables in memory and in files: from data frames, arrays and series, and as CSV, Parquet or JSON lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from latfit._system import inert, whole_file
from latfit.errors import LogError, SampleError
from latfit.logs.formats import ReadOptions, RowFilter
from latfit.logs.reading import MAX_REFUSED, joined_log, probe_tables, read_log
from latfit.logs.tabular import ROWS_AT_A_TIME, read_tables
from latfit.sample import LatencySample
from latfit.table import CANONICAL, MEASURES, LogFacts, ProbeLog
from latfit.units import LONGEST, SHORTEST, out_of_range

FRAME = "<DataFrame>"


def from_frame(
    frame: pd.DataFrame,
    *,
    latency: str | None = None,
    submitted: str | None = None,
    ended: str | None = None,
    status: str | None = None,
    id: str | None = None,  # noqa: A002
    max_refused: float = MAX_REFUSED,
    **options: Any,
) -> ProbeLog:
    """A log of the rows of a data frame, by the same rules as a file with these columns.

    `latency`, `submitted`, `ended`, `status` and `id` name columns; what is not named is guessed from the names,
    an empty name switches it off. A status may be words, HTTP codes or true and false. The other options (`unit`,
    `statuses`, `time_format`, `timezone`, `where`, `since`, `until`, `max_refused`) are those of `read_log`. Returns
    a ProbeLog whose `facts.notes` say what was guessed; its lines are rows of the `frame` counted from 1.

    >>> frame = pd.DataFrame({"rtt": [120, 250, 900], "ok": [True, True, False], "site": ["a", "b", "a"]})
    >>> from_frame(frame, latency="rtt", unit="ms", status="ok").counts
    {'completed': 2, 'failed': 1, 'censored': 0, 'lost': 0}
    """
    if not isinstance(frame, pd.DataFrame):
        raise LogError(f"from_frame needs a pandas DataFrame, not {type(frame).__name__}: for numbers use as_log")
    if not len(frame):
        raise LogError(f"{FRAME}: there is no row in it")
    roles = {"latency": latency, "submitted": submitted, "ended": ended, "status": status, "id": id}
    how = ReadOptions({role: name for role, name in roles.items() if name is not None}, **options)
    rows = frame.reset_index(drop=True)
    if isinstance(rows.columns, pd.MultiIndex):
        rows.columns = pd.Index(["_".join(map(str, names)) for names in rows.columns])
    rows = rows.rename(columns=str)
    if rows.columns.has_duplicates:
        raise LogError(f"{FRAME}: two columns have the same name ({', '.join(rows.columns)})")
    chunks = list(read_tables(iter([(rows, np.arange(1, len(rows) + 1), [])]), FRAME, how))
    times = chunks[0].submitted
    last = None if times is None or np.isnat(times).all() else np.nanmax(times)
    tables = probe_tables(iter(chunks), LogFacts(FRAME, "frame"), RowFilter(how, lambda: last))
    return joined_log(tables, max_refused)


def as_log(data: Any) -> ProbeLog:
    """A ProbeLog of whatever holds probes: a log, a data frame, a series or an array of latencies in seconds.

    Numbers are completions, in the order in which they came; NaN and infinity are not latencies.

    >>> as_log([120.0, 250.0]).counts["completed"]
    2

    Parameters
    ----------
    data
        What holds the probes.

    Returns
    -------
    ProbeLog
        Without submission times, unless a log or a data frame has them.
    """
    if isinstance(data, ProbeLog):
        return data
    if isinstance(data, pd.DataFrame):
        return from_frame(data)
    if isinstance(data, LatencySample):
        raise SampleError("a sample has counts and no rows; this needs a log: read_log, from_frame or an array")
    return from_frame(pd.DataFrame({"latency": _latencies(data)}), latency="latency", unit="s")


def as_sample(data: Any) -> LatencySample:
    """A LatencySample of whatever holds latencies: a sample, a log, a data frame, a series or an array in seconds.

    >>> as_sample([1.0, 2.0, 2.0]).n
    3

    Parameters
    ----------
    data
        What holds the latencies.

    Returns
    -------
    LatencySample
        Uncut: `cut` or `log.sample(cutoff=…)` cuts.
    """
    if isinstance(data, LatencySample):
        return data
    if isinstance(data, (ProbeLog, pd.DataFrame)):
        return as_log(data).sample()
    return LatencySample.of(_latencies(data))


def _latencies(data: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(data, (str, bytes)) or hasattr(data, "__fspath__"):
        raise SampleError(f"{str(data)[:60]!r} is text, not latencies: read a file with latfit.read_log")
    if isinstance(data, np.ma.MaskedArray):  # what is masked is not a number
        data = np.ma.filled(data.astype(np.float64), np.nan)
    plain = data.to_numpy() if hasattr(data, "to_numpy") else np.asarray(data)
    if plain.dtype.kind == "m":
        plain = plain / np.timedelta64(1, "s")
    kind = pd.api.types.infer_dtype(plain.ravel())
    try:
        if kind in ("boolean", "complex", "datetime64"):  # which numpy would make numbers of
            raise TypeError(kind)
        values = np.asarray(plain, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SampleError(
            f"latencies must be numbers in seconds, not {type(data).__name__} of {plain.dtype}"
        ) from error
    if values.ndim != 1:
        what = f"{str(data)[:60]!r}" if values.ndim == 0 else f"an array of the shape {values.shape}"
        raise SampleError(f"latencies must be numbers in one row, not {what}")
    bad = np.flatnonzero(out_of_range(values))
    if bad.size:
        which = f"{bad.size} of {values.size} latencies {'is' if bad.size == 1 else 'are'}"
        raise SampleError(
            f"{which} negative, infinite, not a number or out of range ({SHORTEST:g} s to {LONGEST:g} s; the first, at "
            f"{bad[0]}: {values[bad[0]]}); say what became of those probes: LatencySample.of(completed, censored=…, "
            "lost=…) or from_frame with a status column"
        )
    return values


def convert_log(
    path: str | Path | Sequence[str | Path],
    output: str | Path,
    *,
    max_refused: float = MAX_REFUSED,
    spreadsheet: bool = False,
    **how: Any,
) -> tuple[LogFacts, dict[str, int]]:
    r"""Write a log's canonical table to `output`, whole or not at all; return its facts and counts.

    Parameters
    ----------
    path
        A path, a glob, `-` for standard input, or several of these.
    output
        The file to write; its ending (.csv, .parquet, .jsonl) says in which format.
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
    table = _arrow(log, spreadsheet)
    with whole_file(output) as part:
        WRITERS[output.suffix](part, table)
    return log.facts, log.counts


def _arrow(log: ProbeLog, spreadsheet: bool) -> pa.Table:
    frame = log.frame.copy(deep=False)
    for name in frame.columns:
        # the columns of Parquet have types of their own; elsewhere they are text
        text = name == "status" or (name not in CANONICAL and log.facts.format != "parquet")
        if text or isinstance(frame[name].dtype, pd.CategoricalDtype):
            frame[name] = frame[name].astype("string")
        if spreadsheet and isinstance(frame[name].dtype, pd.StringDtype):
            frame[name] = frame[name].map(inert, na_action="ignore")
    for kind, name in MEASURES.items():
        if getattr(log.facts, kind) and name not in frame:
            frame[name] = "yes"
    if spreadsheet:
        frame.columns = frame.columns.map(inert)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    except (pa.ArrowException, OverflowError) as error:
        raise LogError(f"{log.facts.path}: a column changes its type within the log ({error})") from error


def _write_csv(path: Path, table: pa.Table) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        for start in range(0, max(1, table.num_rows), ROWS_AT_A_TIME):
            frame = table.slice(start, ROWS_AT_A_TIME).to_pandas(use_threads=False)
            whole = (frame["submitted"].dt.microsecond.fillna(0) == 0).all()
            pattern = "%Y-%m-%dT%H:%M:%SZ" if whole else "%Y-%m-%dT%H:%M:%S.%fZ"
            frame["submitted"] = frame["submitted"].dt.strftime(pattern)
            text = frame.to_csv(index=False, header=not start, lineterminator="\n")
            file.write(text.replace("\0", "\ufffd"))  # JSON can hold a null character, a text file cannot


def _write_parquet(path: Path, table: pa.Table) -> None:
    from pyarrow.parquet import write_table  # slow to import

    with path.open("wb") as file:
        write_table(table, file, row_group_size=ROWS_AT_A_TIME)


def _write_jsonl(path: Path, table: pa.Table) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in table.to_batches(ROWS_AT_A_TIME):
            for row in batch.to_pylist():
                row["submitted"] = row["submitted"] and row["submitted"].isoformat().replace("+00:00", "Z")
                row["latency"] = None if row["latency"] != row["latency"] else row["latency"]
                file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


WRITERS = {".csv": _write_csv, ".parquet": _write_parquet, ".jsonl": _write_jsonl}
