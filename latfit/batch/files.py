"""Which files are meant, and each of them as the samples of its groups."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from latfit.errors import LogError
from latfit.logs import LogFacts, read_samples
from latfit.logs.table import Key
from latfit.sample import LatencySample, clock_resolution

CLOCK_VALUES = 1_000_000  # so many latencies are enough to see the clock


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
class Reading:
    """How the logs are read: the columns and windows to group by, and the options of `read_samples`."""

    by: tuple[str, ...]
    window: str | None
    options: dict[str, Any]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that name a group."""
        return self.by if self.window is None else (*self.by, "window")


@dataclass(frozen=True)
class ReadFile:
    """The samples of one log, or the reason why it could not be read."""

    samples: dict[Key, LatencySample]
    facts: LogFacts | None = None
    error: str | None = None


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


def read_file(file: LogFile, how: Reading) -> ReadFile:
    """The samples of the groups of one log. Whatever is wrong with it is told, not raised: others may be fine."""
    inside = [column for column in how.by if column not in file.shared]
    try:
        sampled = read_samples(file.path, inside, window=how.window, **how.options)
    except Exception as problem:
        reason = str(problem).replace(file.path, file.name) or type(problem).__name__
        return ReadFile({}, error=reason if file.name in reason else f"{file.name}: {reason}")
    samples = {}
    for key, sample in sampled.samples.items():
        values = dict(zip(sampled.by, key, strict=True)) | {c: file.shared[c] for c in how.by if c in file.shared}
        samples[tuple(values[column] for column in how.columns)] = sample
    return ReadFile(samples, sampled.facts)


def merged(parts: Iterable[tuple[Key, LatencySample]]) -> dict[Key, LatencySample]:
    """One sample a group in the order of their names, all with one clock: the finest that can be seen in them."""
    gathered: dict[Key, list[LatencySample]] = {}
    for key, sample in parts:
        gathered.setdefault(key, []).append(sample)
    summed = {key: LatencySample.sum(gathered[key]) for key in sorted(gathered)}
    step = _clock(list(summed.values()))
    return {key: replace(sample, resolution=step) for key, sample in summed.items()}


def _clock(samples: Sequence[LatencySample]) -> float:
    """The step of the clock; where there are very many latencies, that of every so many groups."""
    size = sum(sample.completed.values.size + sample.failed.values.size for sample in samples)
    some = samples[:: 1 + size // CLOCK_VALUES]
    return clock_resolution(tally for sample in some for tally in (sample.completed, sample.failed))
