"""Writing files: whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from latfit.errors import LatfitError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, beside `path`; it takes the place of `path` only if all went well."""
    path = Path(path)
    if path.is_dir():
        raise LatfitError(f"{path}: this is a directory; name a file to write")
    if not path.parent.is_dir():
        raise LatfitError(f"{path}: there is no folder {path.parent}")
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        if error.filename is not None and str(error.filename) != str(beside):
            raise
        raise LatfitError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
