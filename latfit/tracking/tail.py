"""The lines that are appended to a file, through rotation, truncation and half-written lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from latfit.errors import LogError
from latfit.tracking import checked

BLOCK = 1 << 20  # bytes read at a time
HEAD_LINES, HEAD_BYTES = 20, 1 << 16  # what is kept of a file's beginning


@dataclass(frozen=True)
class Lines:
    """Whole lines of a file, and the first lines of that file, which say what they mean."""

    head: bytes
    data: bytes
    is_head: bool  # whether the data begin where the file does


class Tail:
    """Reads what is appended to a file, and never more than once; it only reads, so no writer waits for it.

    A file that takes the place of this one is read once the old one is at its end; a file that became shorter, or
    that begins with other lines, is read from its beginning. A line counts when its end is written, or when its file
    has been replaced.
    """

    def __init__(self, path: str | Path, state: dict[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.file: IO[bytes] | None = None
        self.offset, self.head = 0, b""
        if state is not None:
            self._resume(state)

    def _resume(self, state: dict[str, Any]) -> None:
        """Open the file that the state speaks of, under its name or, rotated, beside it."""
        head, inode, offset = bytes.fromhex(state["head"]), state["inode"], checked.whole("offset", state["offset"])
        beside = sorted(self.path.parent.glob(f"{self.path.name}*")) if self.path.parent.is_dir() else []
        for path in (self.path, *beside):
            if path.is_file() and path.stat().st_ino == inode:
                file = path.open("rb")
                if self._is_what_was_read(file, head, offset):
                    self.file, self.offset, self.head = file, offset, head
                    return
                file.close()

    @staticmethod
    def _is_what_was_read(file: IO[bytes], head: bytes, offset: int) -> bool:
        """Whether a file still begins with `head` and is as long as what was read of it: it was not truncated since."""
        file.seek(0)
        return os.fstat(file.fileno()).st_size >= offset and file.read(len(head)) == head

    def state(self) -> dict[str, Any]:
        """Where reading stands, as plain values."""
        inode = os.fstat(self.file.fileno()).st_ino if self.file else None
        return {"inode": inode, "offset": self.offset, "head": self.head.hex()}

    def close(self) -> None:
        """Let go of the file."""
        if self.file is not None:
            self.file.close()
            self.file = None

    def lines(self) -> Iterator[Lines]:
        """Everything that was appended until now, in blocks of whole lines; the offset follows what was taken."""
        while True:
            if self.file is None and not self._open():
                return
            assert self.file is not None
            if not self._is_what_was_read(self.file, self.head, self.offset):
                self.close()
                continue
            replaced = self._replaced()
            found = self._block(last=replaced)
            if found is not None:
                yield found
            elif replaced:
                self.close()
            else:
                return

    def _open(self) -> bool:
        try:
            self.file = self.path.open("rb")
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LogError(f"{self.path}: cannot be read ({error.strerror})") from error
        self.offset, self.head = 0, b""
        if self.file.read(2) == b"\x1f\x8b":
            self.close()
            raise LogError(f"{self.path}: this file is compressed; what grows is plain text")
        return True

    def _replaced(self) -> bool:
        """Whether another file has the name."""
        assert self.file is not None
        mine = os.fstat(self.file.fileno())
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False  # renamed, and the new one is not there yet
        return (now.st_ino, now.st_dev) != (mine.st_ino, mine.st_dev)

    def _block(self, *, last: bool) -> Lines | None:
        """The next whole lines; in a file that was replaced, its last one without an end too."""
        assert self.file is not None
        self.file.seek(self.offset)
        data = self.file.read(BLOCK)
        end = data.rfind(b"\n") + 1
        while not end and len(data) and len(data) % BLOCK == 0:  # a line longer than a block
            more = self.file.read(BLOCK)
            data, end = data + more, (data + more).rfind(b"\n") + 1
            if not more:
                break
        if last and not end:
            end = len(data)
        if not end:
            return None
        data, first = data[:end], self.offset == 0
        if first:
            self.head = b"".join(data.splitlines(keepends=True)[:HEAD_LINES])[:HEAD_BYTES]
        self.offset += end
        return Lines(self.head, data if data.endswith(b"\n") else data + b"\n", first)
