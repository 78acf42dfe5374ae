"""What a run has finished, kept as it goes, so that a killed run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from zlib import crc32

from latfit.batch.rows import Row
from latfit.errors import LatfitError


class Journal:
    """JSON lines: the run's fingerprint, then each finished chunk with a checksum; a damaged line ends them."""

    def __init__(self, file: FileIO, done: dict[int, list[Row]]) -> None:
        self.file, self.done = file, done

    def add(self, chunk: int, rows: list[Row]) -> None:
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
    if path.is_symlink():
        raise LatfitError(f"{path}: this is a link; a journal is not written through one: remove it")
    lines = path.read_bytes().splitlines(keepends=True) if resume and path.exists() else []
    if not lines or not lines[0].endswith(b"\n"):  # a new one, or killed before the first line was out
        path.write_bytes(header)
        lines = [header]
    if lines[0] != header:
        raise LatfitError(
            f"{path}: this journal is of a run with other logs or other options, or of another version of latfit; "
            "give the same, or start again without --resume"
        )
    done, length = {}, len(header)
    for line in lines[1:]:
        try:
            record = json.loads(line)
            chunk, rows = int(record["chunk"]), record["rows"]
            if _line(chunk, rows) != line:
                break
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            break
        done[chunk] = rows
        length += len(line)
    with path.open("r+b", buffering=0) as file:  # nothing is left to write when it is closed
        file.truncate(length)
        file.seek(length)
        yield Journal(file, done)


def _line(chunk: int, rows: list[Row]) -> bytes:
    text = json.dumps(rows, ensure_ascii=False, allow_nan=False)
    return f'{{"chunk": {chunk}, "crc": {crc32(text.encode())}, "rows": {text}}}\n'.encode()
