"""Writing files: whole, or not at all."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from latfit.errors import LatfitError

FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""How a cell begins that a spreadsheet runs as a formula, and what is only a number."""

_unfinished: set[Path] = set()


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, beside `path`; it takes the place of `path` only if all went well.

    Its bytes are on the disk before it does, and its name afterwards: a power cut leaves the old file or the new.
    It is a new file of its own: where `path` is a link, the link is replaced and not followed.
    """
    with whole_files([path]) as (beside,):
        yield beside


@contextmanager
def whole_files(paths: Sequence[str | Path]) -> Iterator[list[Path]]:
    """The same for files of one folder that belong together: all are on the disk before the first takes its name.

    No signal but SIGKILL comes between their names.
    """
    parts = {_beside(Path(path)): Path(path) for path in paths}
    folder = next(iter(parts)).parent
    try:
        with _told(parts):
            for beside, path in parts.items():
                _begin(path, beside)
            yield list(parts)
            for beside in parts:
                _on_disk(beside)
            with _undisturbed():
                for beside, path in parts.items():
                    beside.replace(path)
        with suppress(OSError):  # some file systems cannot: the files themselves are safe
            _on_disk(folder)
    finally:
        for beside in parts:
            _remove(beside)


def _beside(path: Path) -> Path:
    if path.is_dir():
        raise LatfitError(f"{path}: this is a directory; name a file to write")
    if not path.parent.is_dir():
        raise LatfitError(f"{path}: there is no folder {path.parent}")
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _begin(path: Path, beside: Path) -> None:
    """An empty file of our own; who may read the old one may read the new one, and nobody else."""
    _unfinished.add(beside)
    beside.unlink(missing_ok=True)
    beside.touch(exist_ok=False)
    if path.is_file() and not path.is_symlink():
        beside.chmod(path.stat().st_mode & 0o777)


@contextmanager
def _told(parts: Mapping[Path, Path]) -> Iterator[None]:
    """An error of a file beside is one of the file that was asked for; one without a name is of the first of them."""
    names: dict[str | None, Path] = {str(beside): path for beside, path in parts.items()}
    names[None] = next(iter(parts.values()))
    try:
        yield
    except OSError as error:
        path = names.get(None if error.filename is None else str(error.filename))
        if path is None:
            raise
        raise LatfitError(f"{path}: cannot be written ({error.strerror or error})") from error


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait, where the system lets them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _on_disk(path: Path) -> None:
    """Wait until what was written to a file, or to the list of a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def inert(text: str) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula; plain numbers stay as they are.

    >>> inert("=1+2"), inert("-5.5"), inert("rb1")
    ("'=1+2", '-5.5', 'rb1')
    """
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text


def remove_unfinished() -> None:
    """Remove what is being written at this moment, for a process that is about to end."""
    for beside in list(_unfinished):
        _remove(beside)


def _remove(beside: Path) -> None:
    with suppress(OSError):
        beside.unlink(missing_ok=True)
    _unfinished.discard(beside)
