"""Opening a log: a file is a log of probes or holds histograms, which is decided once, by its format."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from latfit.errors import LogError, MissingColumn, TooManyRefused, counted, none_of
from latfit.logs.formats import ReadOptions, RowFilter, find_format, suggested_pattern
from latfit.logs.histogram_format import HistogramFormat, HistogramLog
from latfit.logs.records import Records, checked, latest
from latfit.logs.schema import outcome_columns
from latfit.logs.source import Progress, open_source
from latfit.table import LogFacts, ProbeLog, ProbeTable

MAX_REFUSED = 0.1

Paths = str | Path | Sequence[str | Path]


def example_log() -> ProbeLog:
    """The bundled log of 2137 probes: synthetic, calibrated to the aggregates of Glatard et al. 2006, §4.

    Returns
    -------
    ProbeLog
        With columns `id`, `submitted`, `latency`, `status` and `broker`.

    Examples
    --------
    >>> import latfit
    >>> len(latfit.example_log().frame)
    2137
    """
    installed = Path(__file__).parents[1] / "egee-2006.csv"
    return read_log(installed if installed.exists() else Path(__file__).parents[2] / "data" / "egee-2006.csv")


def open_log(
    path: Paths,
    *,
    format: str | None = None,  # noqa: A002
    max_refused: float = MAX_REFUSED,
    progress: Progress | None = None,
    **options: Any,
) -> ProbeLog | HistogramLog:
    """What a path holds, by the options of `read_log`, of which histograms take `unit` and `where`."""
    how = ReadOptions(**options)
    again = f"--format {format} {how.as_flags()}".strip() if format else how.as_flags()
    row_filter = None
    tables: list[ProbeTable] = []
    histograms: list[HistogramLog] = []
    for file in _paths(path):
        with open_source(file, progress) as source:
            kind = find_format(source, format, pattern=how.pattern)
            kind.check(how)
            try:
                if isinstance(kind, HistogramFormat):
                    histograms.append(kind.parse(source, how.unit))
                else:
                    row_filter = row_filter or RowFilter(how, lambda: _log_end(path, format, options))
                    queue = kind.waits_in_queue(source.text)
                    facts = LogFacts(
                        source.name, kind.name, kind=kind.kind, queue=queue, work=kind.work, reading_options=again
                    )
                    tables += probe_tables(kind.read(source, how), facts, row_filter)
            except LogError as error:
                message = str(error) if source.name in str(error) else f"{source.name}: {error}"
                may_be_text = isinstance(error, MissingColumn) and kind.name in ("csv", "table") and not how.columns
                if may_be_text and (option := suggested_pattern(source.text)):
                    message += f". Some of its first lines hold a duration; read those with: {option}"
                raise type(error)(message) from error
    if tables and histograms:
        raise LogError(f"{histograms[0].path} holds histograms, {tables[0].facts.path} probes: read them separately")
    if histograms:
        return HistogramLog.joined(histograms).select(how.where)
    return joined_log(tables, max_refused)


def probe_tables(chunks: Iterator[Records], facts: LogFacts, row_filter: RowFilter) -> list[ProbeTable]:
    """The checked probes of a log that its options ask for, chunk by chunk."""
    tables = [records.table(of_chunk) for records, of_chunk in checked(chunks, facts, row_filter)]
    row_filter.finish(facts.path)
    return tables


def joined_log(tables: Sequence[ProbeTable], max_refused: float) -> ProbeLog:
    """The log of all tables; an error if nothing could be taken, or more was refused than allowed, one row apart."""
    table = ProbeTable.concat(tables)
    facts, refused = table.facts, table.facts.refused
    advice = " ".join(f"{sentence}." for sentence in facts.advice)
    if refused.count and not table.n:
        first = refused.earliest
        raise TooManyRefused(
            f"{facts.path}: {none_of(refused.count, 'row')} can be used; line {first.line}: {first.reason}"
            + (f". {advice}" if advice else "")
        )
    if not table.n and facts.unchosen:
        read = counted(facts.unchosen, "row")
        raise LogError(f"{facts.path}: no row matches --where/--since/--until ({read} read)")
    if not table.n:
        raise LogError(f"{facts.path}: the log contains no probes")
    if refused.count > max(1.0, max_refused * (table.n + refused.count)):
        first = refused.earliest
        advice = advice or "Fix the log or the options, choose rows with --where, or accept this with --max-refused 1."
        raise TooManyRefused(
            f"{facts.path}: {refused.count} of {table.n + refused.count} rows were refused, more than "
            f"{max_refused:.0%}. {advice} The first, line {first.line}: {first.reason}"
        )
    return ProbeLog(replace(table, facts=replace(facts, outcome_columns=outcome_columns(table))))


def read_log(
    path: Paths,
    *,
    format: str | None = None,  # noqa: A002
    max_refused: float = MAX_REFUSED,
    progress: Progress | None = None,
    **options: Any,
) -> ProbeLog:
    r"""The whole table of a log: a path, a glob, `-` for standard input, or several of these.

    Parameters
    ----------
    path
        A path, a glob, `-` for standard input, or several of these.
    format
        The name of one of `latfit formats` (default: recognised by content).
    max_refused
        The largest share of rows, one row apart, that may be refused, with their reasons, before it is an error.
    progress
        Called with the bytes read so far and those of the whole, None where they are not known.
    options
        The fields of `ReadOptions`: `columns` (a role to a column's name), `statuses` (a word of the log to an
        outcome), `unit`, `time_format`, `timezone`, `year`, `where`, `since`, `until`, `pattern`.

    Returns
    -------
    ProbeLog
        One row a probe; `.facts` has what was guessed and what was refused.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "probes.csv"
    ...     _ = path.write_text("rtt,outcome\n120,ok\n250,ok\n900,down\n")
    ...     log = latfit.read_log(path, columns={"latency": "rtt"}, statuses={"down": "lost"}, unit="ms")
    >>> log.counts, log.frame["latency"].tolist()[:2]
    ({'completed': 2, 'failed': 0, 'censored': 0, 'lost': 1}, [0.12, 0.25])
    """
    log = open_log(path, format=format, max_refused=max_refused, progress=progress, **options)
    if isinstance(log, HistogramLog):
        raise LogError(log.not_probes())
    return log


def read_histograms(
    path: Paths,
    *,
    format: str | None = None,  # noqa: A002
    unit: str | None = None,
    where: Sequence[str] = (),
) -> HistogramLog:
    r"""The histograms of a file, a glob, `-` for standard input, or several of these.

    Parameters
    ----------
    path
        Where they are.
    format
        The name of one of `latfit formats` (default: recognised by content).
    unit
        That of the bounds of the buckets.
    where
        Conditions on labels and on the metric's `name`, as in `select`.

    Returns
    -------
    HistogramLog
        `.histograms` has each series with its labels; `.histogram()` adds them up.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "buckets.csv"
    ...     _ = path.write_text("le,count\n0.1,10\n0.5,70\n1,10\n+Inf,6\n")
    ...     histogram, notes = latfit.read_histograms(path).histogram()
    >>> histogram.n, histogram.n_inf, histogram.edges.tolist()
    (96, 6, [0.0, 0.1, 0.5, 1.0])
    """
    log = open_log(path, format=format, unit=unit, where=where, max_refused=1.0)
    if isinstance(log, ProbeLog):
        raise LogError(f"{log.facts.path}: this is not a histogram but a log ({log.facts.format})")
    return log


def _log_end(path: Paths, format: str | None, options: dict[str, Any]) -> np.datetime64 | None:  # noqa: A002
    plain = ReadOptions(**{key: value for key, value in options.items() if key not in ("since", "until", "where")})
    end = None
    for file in _paths(path):
        if not Path(file).is_file():
            raise LogError(f"{file}: this can be read only once: give --since and --until as times, such as 2026-03-01")
        with open_source(file) as source:
            kind = find_format(source, format, pattern=plain.pattern)
            for records, _ in checked(kind.read(source, plain), LogFacts(source.name, kind.name)):
                end = latest(end, records)
    return end


def _paths(path: Paths) -> list[str | Path]:
    """Every file meant; a name with wildcards that exists as it is, is itself."""
    if hasattr(path, "columns") or hasattr(path, "dtype"):
        raise LogError(f"this is a {type(path).__name__} and not the path of a log: use latfit.from_frame for it")
    if not isinstance(path, (str, Path)):
        files = [file for each in path for file in _paths(each)]
        if not files:
            raise LogError("there is no log to read")
        return files
    text = str(path)
    if not glob.has_magic(text) or Path(text).exists():
        return [path]
    matches = sorted(name for name in glob.glob(text, recursive=True) if Path(name).is_file())  # noqa: PTH207
    if not matches:
        raise LogError(f"{text}: no file matches")
    return [*matches]
