"""What a run has finished, kept as it goes, so that a killed run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from zlib import crc32

from latfit.errors import LatfitError

ROWS = ', "rows": '


class Journal:
    """A file of JSON lines: first the fingerprint of the run, then one line for each finished chunk.

    Each line carries a checksum of its rows. From the first line that is torn or damaged on, nothing counts.
    """

    def __init__(self, file: FileIO, done: dict[int, str]) -> None:
        self.file, self.done = file, done

    def add(self, chunk: int, rows: str) -> None:
        """Write down that a chunk is finished."""
        rest = _line(chunk, rows)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            raise LatfitError(f"{self.file.name}: cannot be written ({error.strerror})") from error


@contextmanager
def open_journal(path: Path, fingerprint: str, *, resume: bool) -> Iterator[Journal]:
    """The journal of a run, with what an earlier run finished if it is to be resumed; the caller removes it."""
    header = json.dumps({"fingerprint": fingerprint}).encode() + b"\n"
    done: dict[int, str] = {}
    if path.is_symlink():
        raise LatfitError(f"{path}: this is a link; a journal is not written through one: remove it")
    if resume and path.exists():
        done, length = _read(path, header)
    else:
        path.write_bytes(header)
        length = len(header)
    with path.open("r+b", buffering=0) as file:  # nothing is left to write when it is closed
        file.truncate(length)
        file.seek(length)
        yield Journal(file, done)


def _line(chunk: int, rows: str) -> bytes:
    return f'{{"chunk": {chunk}, "crc": {crc32(rows.encode())}{ROWS}{rows}}}\n'.encode()


def _read(path: Path, header: bytes) -> tuple[dict[int, str], int]:
    """The finished chunks, and how many bytes of the journal hold."""
    lines = path.read_bytes().splitlines(keepends=True)
    if not lines or not lines[0].endswith(b"\n"):  # killed before the first line was out
        path.write_bytes(header)
        return {}, len(header)
    if lines[0] != header:
        raise LatfitError(
            f"{path}: this journal is of a run with other logs or other options, or of another version of latfit; "
            "give the same, or start again without --resume"
        )
    done, length = {}, len(header)
    for line in lines[1:]:
        text = line.decode(errors="replace")
        about, _, rest = text.partition(ROWS)
        try:
            chunk = int(json.loads(about + "}")["chunk"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            break
        rows = rest.removesuffix("}\n")
        if _line(chunk, rows) != line:
            break
        done[chunk] = rows
        length += len(line)
    return done, length
