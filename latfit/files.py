"""Writing files: whole, or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
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
    path = Path(path)
    if path.is_dir():
        raise LatfitError(f"{path}: this is a directory; name a file to write")
    if not path.parent.is_dir():
        raise LatfitError(f"{path}: there is no folder {path.parent}")
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        _unfinished.add(beside)
        beside.unlink(missing_ok=True)
        beside.touch(exist_ok=False)
        if path.is_file() and not path.is_symlink():
            beside.chmod(path.stat().st_mode & 0o777)  # who may read the old file may read the new one, and nobody else
        yield beside
        _on_disk(beside)
        beside.replace(path)
        with suppress(OSError):  # some file systems cannot: the file itself is safe
            _on_disk(path.parent)
    except OSError as error:
        if error.filename is not None and str(error.filename) != str(beside):
            raise
        raise LatfitError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        _remove(beside)


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
