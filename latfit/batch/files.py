"""Which files are meant, and each of them as the probes of its groups."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from latfit.batch.histograms import histogram_groups
from latfit.buckets import Histogram
from latfit.errors import LatfitError, LogError
from latfit.evidence import as_logged
from latfit.logs import HistogramLog, LogFacts, open_log
from latfit.sample import Tally, clock_resolution
from latfit.table import COMPLETED, FAILED, Key, ProbeTable, Refusals

CLOCK_VALUES = 1_000_000  # latencies that are enough to see the clock


@dataclass(frozen=True)
class LogFile:
    """One log: its name as given, its absolute path, and the columns that all of its probes share.

    These are `file`, its name, and what folders such as `site=cern` say, as in partitioned Parquet.
    """

    name: str
    path: str
    shared: dict[str, str]

    @classmethod
    def of(cls, name: str) -> LogFile:
        """The log of that name, `-` for standard input."""
        if name == "-":
            return cls(name, name, {"file": name})
        folders = [part.partition("=") for part in Path(name).parts[:-1]]
        parts = {column: _text(unquote(value)) for column, equals, value in folders if equals and column}
        return cls(_text(name), os.path.abspath(name), {**parts, "file": _text(name)})  # noqa: PTH100


def _text(name: str) -> str:
    """A name that can be written to a table; bytes that are no text are written in hexadecimal."""
    return os.fsencode(name).decode(errors="backslashreplace")


@dataclass(frozen=True)
class Grouping:
    """How the logs are read: the columns and windows to group by, and the options of `read_log`."""

    by: tuple[str, ...]
    window: str | None
    options: dict[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name a group; the last is the beginning of its window, where there are windows."""
        return self.by if self.window is None else (*self.by, "window")


@dataclass(frozen=True)
class ReadFile:
    """The probes of each group of one log, or its histograms, or the reason why it could not be read."""

    groups: dict[Key, ProbeTable]
    facts: LogFacts | None = None
    error: str | None = None
    histograms: dict[Key, Histogram] = field(default_factory=dict)


def find_files(paths: Iterable[str | Path], *, leave_out: Collection[str] = ()) -> list[LogFile]:
    """Every log meant by files, globs and folders, once and in the order of their paths.

    A folder means all files in it and below, but those whose names begin with a dot or an underscore.
    `leave_out` are absolute paths.
    """
    found: dict[str, LogFile] = {}
    for given in map(str, paths):
        for name in _matches(given):
            for file in _below(Path(name)) if Path(name).is_dir() else [name]:
                log = LogFile.of(file)
                if log.path not in leave_out:
                    found.setdefault(log.path, log)
    if not found:
        raise LogError("there is no log to read")
    return [found[path] for path in sorted(found)]


def _matches(given: str) -> list[str]:
    if not glob.has_magic(given) or Path(given).exists():
        return [given]
    names = sorted(glob.glob(given, recursive=True))  # noqa: PTH207
    if not names:
        raise LogError(f"{given}: no file matches")
    return names


def _below(folder: Path) -> list[str]:
    return [
        str(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(folder).parts)
    ]


def read_file(file: LogFile, how: Grouping) -> ReadFile:
    """The probes of the groups of one log. What is wrong with it is told, not raised: others may be fine."""
    inside = [column for column in how.by if column not in file.shared]
    try:
        log = open_log(file.path, **how.options)
        if isinstance(log, HistogramLog):
            windows = how.window is not None
            return ReadFile({}, histograms=histogram_groups(log, how.by, file.shared, windows=windows))
        division = log.table.group_by(inside, how.window)
    except (LatfitError, OSError, MemoryError) as problem:
        reason = str(problem).replace(file.path, file.name) or type(problem).__name__
        return ReadFile({}, error=reason if file.name in reason else f"{file.name}: {reason}")
    facts = replace(log.facts, refused=Refusals(), skipped={}, notes=(), advice=())  # which no group needs
    whole = replace(as_logged(log), facts=facts)
    groups = {}
    for key, part in zip(division.keys, whole.parts(division), strict=True):
        values = iter(key)
        named = tuple(file.shared[column] if column in file.shared else next(values) for column in how.by)
        groups[(*named, *values)] = part
    return ReadFile(groups, log.facts)


def merged(parts: Iterable[tuple[Key, ProbeTable]]) -> dict[Key, ProbeTable]:
    """One group for each name, in the order of names, all with one clock: the finest that can be seen in them."""
    gathered: dict[Key, list[ProbeTable]] = {}
    for key, seen in parts:
        gathered.setdefault(key, []).append(seen)
    summed = {key: _joined(gathered[key]) for key in sorted(gathered)}
    step = _clock(list(summed.values()))
    return {key: replace(seen, clock=step).ordered() for key, seen in summed.items()}


def _joined(parts: Sequence[ProbeTable]) -> ProbeTable:
    """The probes of one group from several logs; a column counts where all of them have it."""
    if len(parts) == 1:
        return parts[0]
    whole = ProbeTable.concat(parts)
    columns = {
        name: column.distinct() for name, column in whole.columns.items() if all(name in p.columns for p in parts)
    }
    return replace(whole, columns=columns)


def _clock(groups: Sequence[ProbeTable]) -> float:
    """The step of the clock; where there are very many latencies, that of every so many groups."""
    some = groups[:: 1 + sum(seen.n for seen in groups) // CLOCK_VALUES]
    values = [seen.latency[(seen.status == COMPLETED) | (seen.status == FAILED)] for seen in some]
    return clock_resolution([Tally.of(np.concatenate(values))] if values else [])
