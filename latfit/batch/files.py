"""From paths to files, and from each file to the probes, or the histograms, of its groups."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import numpy as np

from latfit.buckets import Histogram
from latfit.errors import LatfitError, LogError
from latfit.evidence import as_logged
from latfit.logs import HistogramLog, LogFacts, open_log
from latfit.logs.histogram_format import Series
from latfit.sample import Tally, clock_resolution
from latfit.table import COMPLETED, FAILED, Key, ProbeTable, Refusals

Part = TypeVar("Part")


@dataclass(frozen=True)
class LogFile:
    """One log; `shared` has its name as `file`, and columns from folders such as `site=cern` (partitioned Parquet)."""

    name: str
    path: str
    shared: dict[str, str]

    @classmethod
    def of(cls, name: str) -> LogFile:
        if name == "-":
            return cls(name, name, {"file": name})
        folders = [part.partition("=") for part in Path(name).parts[:-1]]
        parts = {column: _text(unquote(value)) for column, equals, value in folders if equals and column}
        return cls(_text(name), os.path.abspath(name), {**parts, "file": _text(name)})  # noqa: PTH100


def _text(name: str) -> str:
    """A name that can be written to a table; bytes that are not text become hexadecimal."""
    return os.fsencode(name).decode(errors="backslashreplace")


@dataclass(frozen=True)
class ReadFile:
    """The probes or the histograms of each group of one log, or the reason why it could not be read."""

    groups: dict[Key, ProbeTable] = field(default_factory=dict)
    facts: LogFacts | None = None
    error: str | None = None
    histograms: dict[Key, Histogram] = field(default_factory=dict)


def find_files(paths: Iterable[str | Path], *, leave_out: Collection[str] = ()) -> list[LogFile]:
    """Every log once, by absolute path; in folders all files except those whose names begin with . or _."""
    named = [str(path) for path in paths]
    logs: dict[str, LogFile] = {}
    for log in map(LogFile.of, (name for path in named for name in _names(path))):
        if log.path not in leave_out:
            logs.setdefault(log.path, log)
    if not logs:
        raise LogError(f"{', '.join(named)}: there is no log in it" if named else "there is no log to read")
    return [logs[path] for path in sorted(logs)]


def _names(pattern: str) -> Iterator[str]:
    matches = [pattern]
    if glob.has_magic(pattern) and not Path(pattern).exists():
        matches = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207
    if not matches:
        raise LogError(f"{pattern}: no file matches")
    for name in matches:
        if not Path(name).is_dir():
            yield name
        for path in sorted(Path(name).rglob("*")) if Path(name).is_dir() else ():
            if path.is_file() and not any(part[0] in "._" for part in path.relative_to(name).parts):
                yield str(path)


def read_file(file: LogFile, by: Sequence[str], window: str | None, options: dict[str, Any]) -> ReadFile:
    """The probes of the groups of one log. An error is returned, not raised: other logs may be fine."""
    inside = [column for column in by if column not in file.shared]
    try:
        log = open_log(file.path, **options)
        if isinstance(log, HistogramLog):
            return ReadFile(histograms=_histogram_groups(log, by, window, file.shared))
        division = log.table.group_by(inside, window)
    except (LatfitError, OSError, MemoryError) as problem:
        reason = str(problem).replace(file.path, file.name) or type(problem).__name__
        return ReadFile(error=reason if file.name in reason else f"{file.name}: {reason}")
    facts = replace(log.facts, refused=Refusals(), skipped={}, notes=(), advice=())  # groups do not need these
    whole = replace(as_logged(log), facts=facts)
    groups = {}
    for key, part in zip(division.keys, whole.parts(division), strict=True):
        values = iter(key)
        named = tuple(file.shared[column] if column in file.shared else next(values) for column in by)
        groups[(*named, *values)] = part
    return ReadFile(groups, log.facts)


def _histogram_groups(
    log: HistogramLog, by: Sequence[str], window: str | None, shared: Mapping[str, str]
) -> dict[Key, Histogram]:
    """The histograms of one file by labels, or by the metric's `name`; their time is unknown."""
    chosen: dict[Key, list[Series]] = {}
    known = {"name", *shared, *(label for series in log.histograms for label in series.labels)}
    if unknown := [column for column in by if column not in known]:
        raise LogError(f"{log.path}: no histogram has the label {unknown[0]!r}")
    for series in log.histograms:
        labels = {"name": series.name, **series.labels, **shared}
        key = tuple(labels.get(column, "") for column in by)
        chosen.setdefault(key if window is None else (*key, "unknown"), []).append(series)
    return {key: replace(log, histograms=tuple(several)).histogram()[0] for key, several in chosen.items()}


def collected(parts: Iterable[tuple[Key, Part]]) -> dict[Key, list[Part]]:
    """The parts of each group, in the order of names."""
    groups: dict[Key, list[Part]] = {}
    for key, part in parts:
        groups.setdefault(key, []).append(part)
    return {key: groups[key] for key in sorted(groups)}


def merged(parts: Iterable[tuple[Key, ProbeTable]]) -> dict[Key, ProbeTable]:
    """One group for each name, in the order of names, all with the same clock: the finest among them."""
    groups = {key: _joined(several) for key, several in collected(parts).items()}
    some = list(groups.values())[:: 1 + sum(group.n for group in groups.values()) // 10**6]  # enough to infer the clock
    values = [group.latency[(group.status == COMPLETED) | (group.status == FAILED)] for group in some]
    step = clock_resolution([Tally.of(np.concatenate(values))] if values else [])
    return {key: replace(group, clock=step).ordered() for key, group in groups.items()}


def _joined(parts: Sequence[ProbeTable]) -> ProbeTable:
    if len(parts) == 1:
        return parts[0]
    whole = ProbeTable.concat(parts)
    shared = [name for name in whole.columns if all(name in part.columns for part in parts)]
    return replace(whole, columns={name: whole.columns[name].distinct() for name in shared})
