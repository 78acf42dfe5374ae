"""Reading a log: whole as a table, or in chunks as the samples of its groups."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from latfit.errors import LogError, TooManyRefused, none_of
from latfit.logs.choosing import choice_of
from latfit.logs.formats import ReadOptions, find_format
from latfit.logs.records import Records, checked, latest
from latfit.logs.source import Progress, open_source
from latfit.logs.table import Codes, Key, LogFacts, ProbeLog, SampledLog, concat, outcomes, tallied
from latfit.numbers import Floats
from latfit.sample import LatencySample, clock_resolution

MAX_REFUSED = 0.1
WAITING_ROWS = 1 << 21


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
    here = Path(__file__).parent.parent
    installed, checkout = here / "egee-2006.csv", here.parent / "data" / "egee-2006.csv"
    return read_log(installed if installed.exists() else checkout)


def read_log(
    path: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    max_refused: float = MAX_REFUSED,
    progress: Progress | None = None,
    **options: Any,
) -> ProbeLog:
    r"""The whole table of a log: a path, a glob, `-` for standard input, or several of these.

    `options` are the fields of `ReadOptions`: columns, statuses, unit, time_format, timezone, year, where,
    since, until, pattern.
    More than the share `max_refused` of refused rows, one row apart, is an error.

    Parameters
    ----------
    path
        A path, a glob, `-` for standard input, or several of these.
    format
        The name of one of `latfit formats` (default: recognised by content).
    max_refused
        The largest share of rows that may be refused, with their reasons, before it is an error.
    progress
        Called with the bytes read so far and those of the whole, None where they are not known.
    options
        `columns` (a role to a column's name), `statuses` (a word of the log to an outcome), `unit`, `time_format`,
        `timezone`, `year`, `where`, `since`, `until`, `pattern`.

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
    log = concat(iter_log(path, format=format, progress=progress, **options))
    check_refused(len(log.frame), log.facts, max_refused)
    return log


def read_samples(
    path: str | Path | Sequence[str | Path],
    by: str | Sequence[str] = (),
    *,
    window: str | None = None,
    format: str | None = None,  # noqa: A002
    max_refused: float = MAX_REFUSED,
    progress: Progress | None = None,
    **options: Any,
) -> SampledLog:
    r"""The samples of a log's groups, read in chunks that are merged and forgotten; options as for `read_log`.

    Parameters
    ----------
    path
        A path, a glob, `-` for standard input, or several of these.
    by
        Columns to group by.
    window
        Also by windows of submission, such as `1d`.
    format
        The name of one of `latfit formats` (default: recognised by content).
    max_refused
        The largest share of rows that may be refused, with their reasons, before it is an error.
    progress
        Called with the bytes read so far and those of the whole, None where they are not known.
    options
        As for `read_log`.

    Returns
    -------
    SampledLog
        `.samples` by the values of the columns; `.sample()` of all.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "probes.csv"
    ...     _ = path.write_text("site,latency\na,1\na,2\nb,9\n")
    ...     found = latfit.read_samples(path, by="site")
    >>> sorted(found.samples), found.by
    ([('a',), ('b',)], ('site',))
    """
    columns = (by,) if isinstance(by, str) else tuple(by)
    gathering = _Gathering()
    facts: LogFacts | None = None
    for records, told in _checked(path, format, progress, options):
        facts = told if facts is None else facts + told
        if columns or window is not None:
            for key, frame in records.table(told).split(columns, window):
                gathering.add(key, *outcomes(frame))
        else:
            gathering.add((), records.latency, records.status)
    assert facts is not None
    merged = dict(sorted(gathering.settle().items()))
    check_refused(sum(sample.n for sample in merged.values()), facts, max_refused)
    step = clock_resolution(tally for sample in merged.values() for tally in (sample.completed, sample.failed))
    names = columns if window is None else (*columns, "window")
    return SampledLog({key: replace(sample, resolution=step) for key, sample in merged.items()}, names, facts)


def iter_log(
    path: str | Path | Sequence[str | Path],
    *,
    format: str | None = None,  # noqa: A002
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[ProbeLog]:
    """The table of a log in chunks; a limit on refused rows is the caller's."""
    for records, facts in _checked(path, format, progress, options):
        yield records.table(facts)


def _checked(
    path: str | Path | Sequence[str | Path],
    format: str | None,  # noqa: A002
    progress: Progress | None,
    options: dict[str, Any],
) -> Iterator[tuple[Records, LogFacts]]:
    """The probes of a log in chunks, with what is to be said of each chunk."""
    how = ReadOptions(**options)
    choice = choice_of(how, lambda: _log_end(path, format, options))
    for one in _paths(path):
        with open_source(one, progress) as source:
            kind = find_format(source, format, pattern=how.pattern)
            kind.check(how)
            try:
                facts = LogFacts(source.name, kind.name, kind=kind.kind, queue=kind.waits_in_queue(source.text))
                yield from checked(kind.read(source, how), facts, choice)
                if choice is not None:
                    choice.finish(source.name)
            except LogError as error:
                raise error if source.name in str(error) else type(error)(f"{source.name}: {error}") from error


def _log_end(
    path: str | Path | Sequence[str | Path],
    format: str | None,  # noqa: A002
    options: dict[str, Any],
) -> np.datetime64 | None:
    """The last time seen in a log, which is read once for it."""
    for one in _paths(path):
        if not Path(one).is_file():
            raise LogError(f"{one}: this can be read only once: give --since and --until as times, such as 2026-03-01")
    plain = {key: value for key, value in options.items() if key not in ("since", "until", "where")}
    end = None
    for records, _ in _checked(path, format, None, plain):
        end = latest(end, records, records.kept)
    return end


def _paths(path: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Every file meant; a name with wildcards that exists as it is, is itself."""
    if hasattr(path, "columns") or hasattr(path, "dtype"):
        raise LogError(f"this is a {type(path).__name__} and not the path of a log: use latfit.from_frame for it")
    if not isinstance(path, (str, Path)):
        found = [one for each in path for one in _paths(each)]
        if not found:
            raise LogError("there is no log to read")
        return found
    text = str(path)
    if not glob.has_magic(text) or Path(text).exists():
        return [path]
    matches: list[str | Path] = [
        *sorted(name for name in glob.glob(text, recursive=True) if Path(name).is_file())  # noqa: PTH207
    ]
    if not matches:
        raise LogError(f"{text}: no file matches")
    return matches


class _Gathering:
    """The samples of groups, from chunks; latencies wait until there are millions: sorting once is cheap."""

    def __init__(self) -> None:
        self.samples: dict[Key, LatencySample] = {}
        self.waiting: dict[Key, list[tuple[Floats, Codes]]] = {}
        self.rows = 0

    def add(self, key: Key, latency: Floats, codes: Codes) -> None:
        """Take some rows of a group in."""
        self.waiting.setdefault(key, []).append((latency, codes))
        self.rows += latency.size
        if self.rows >= WAITING_ROWS:
            self.settle()

    def settle(self) -> dict[Key, LatencySample]:
        """Tally what waits; the samples so far."""
        for key, parts in self.waiting.items():
            sample = tallied(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
            self.samples[key] = self.samples[key] + sample if key in self.samples else sample
        self.waiting, self.rows = {}, 0
        return self.samples


def check_refused(taken: int, facts: LogFacts, allowed: float) -> None:
    """Raise if nothing could be taken, or more was refused than `allowed`, one row apart."""
    refused = facts.refused
    advice = " ".join(f"{sentence}." for sentence in facts.advice)
    if refused.count and not taken:
        first = refused.earliest
        raise TooManyRefused(
            f"{facts.path}: {none_of(refused.count, 'row')} can be used; line {first.line}: {first.reason}"
            + (f". {advice}" if advice else "")
        )
    if not taken and facts.unchosen:
        raise LogError(f"{facts.path}: {none_of(facts.unchosen, 'row')} is what --where, --since and --until ask for")
    if not taken:
        raise LogError(f"{facts.path}: there is no probe in this log")
    if refused.count > max(1.0, allowed * (taken + refused.count)):
        first = refused.earliest
        advice = advice or "Mend the log or the options, or allow it: --max-refused 1."
        raise TooManyRefused(
            f"{facts.path}: {refused.count} of {taken + refused.count} rows were refused, more than {allowed:.0%}. "
            f"{advice} The first, line {first.line}: {first.reason}"
        )
