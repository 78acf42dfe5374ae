"""The lines that are appended to a file, through rotation and truncation, and a reader that stays open for them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, find_format
from latfit.logs.records import Records
from latfit.logs.source import BLOCK_BYTES, Block, Source

TAIL_BLOCK = 1 << 20  # bytes read at a time
TAIL_HEAD_LINES = 20  # kept of a file's beginning, at most 64 kB of them


class Tail:
    """Reads what is appended to a file, each byte once; it only reads, so it never blocks the writer.

    A file that replaces this one is read when the old one is at its end. A file that became shorter, or begins with
    other lines than before, is read from its beginning. A line counts when its end is written, or when its file has
    been replaced.
    """

    def __init__(self, path: str | Path, state: dict[str, Any] | None = None) -> None:
        """Open the file that the state describes, under its name or, if it was rotated, beside it."""
        self.path = Path(path)
        self.file: IO[bytes] | None = None
        self.offset, self.head = 0, b""
        if state is None:
            return
        head, offset = bytes.fromhex(state["head"]), state["offset"]
        for path in (self.path, *sorted(self.path.parent.glob(f"{self.path.name}*"))):
            if self.file is None and path.is_file() and path.stat().st_ino == state["inode"]:
                self.file, self.offset, self.head = path.open("rb", buffering=0), offset, head
                if not self._is_what_was_read(self.file):
                    self.close()

    def _is_what_was_read(self, file: IO[bytes]) -> bool:
        """Whether a file still begins with the head and is at least as long as what was read: it was not truncated."""
        file.seek(0)
        return os.fstat(file.fileno()).st_size >= self.offset and file.read(len(self.head)) == self.head

    def state(self) -> dict[str, Any]:
        inode = os.fstat(self.file.fileno()).st_ino if self.file else None
        return {"inode": inode, "offset": self.offset, "head": self.head.hex()}

    def close(self) -> None:
        """Close the file; the next one is read from its beginning."""
        if self.file is not None:
            self.file.close()
        self.file, self.offset, self.head = None, 0, b""

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        """The lines appended so far, in blocks, and whether a block begins a file."""
        while (file := self.file or self._opened()) is not None:
            if not self._is_what_was_read(file):
                self.close()
                continue
            mine = os.fstat(file.fileno())
            try:
                replaced = not os.path.samestat(self.path.stat(), mine)
            except FileNotFoundError:
                replaced = False  # renamed, and the new one is not there yet
            begins = self.offset == 0
            data = self._block(file, last=replaced) if mine.st_size > self.offset else b""
            if data:
                yield data, begins
            elif replaced:
                self.close()
            else:
                return

    def _opened(self) -> IO[bytes] | None:
        try:
            self.file = self.path.open("rb", buffering=0)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LogError(f"{self.path}: cannot be read ({error.strerror})") from error
        if self.file.read(2) == b"\x1f\x8b":
            self.close()
            raise LogError(f"{self.path}: this file is compressed; watch the plain text instead")
        return self.file

    def _block(self, file: IO[bytes], *, last: bool) -> bytes:
        file.seek(self.offset)
        data, more = b"", file.read(TAIL_BLOCK)
        while more and b"\n" not in more:  # a line longer than a block
            data, more = data + more, file.read(TAIL_BLOCK)
        data += more
        end = data.rfind(b"\n") + 1 or (len(data) if last else 0)
        if not self.offset:
            self.head = b"".join(data[:end].splitlines(keepends=True)[:TAIL_HEAD_LINES])[: 1 << 16]
        self.offset += end
        return data[:end] if not end or data[end - 1 : end] == b"\n" else data + b"\n"


class OpenReader:
    """A format's reader, kept open in a thread that waits for lines, so that it determines the columns only once."""

    def __init__(self, name: str, lines: bytes, format: str | None, options: ReadOptions) -> None:  # noqa: A002
        self._appended: SimpleQueue[bytes | None] = SimpleQueue()
        self._results: SimpleQueue[Records | Exception | None] = SimpleQueue()  # None: the reader needs more lines
        source = _GrowingSource(name, io.BytesIO(lines), more=self._more)
        kind = find_format(source, format, pattern=options.pattern)
        if not kind.by_line:
            raise LogError(f"{name}: a record of a {kind.name} log is not one line, so its end cannot be followed")
        kind.check(options)
        Thread(target=self._run, args=(kind, source, options), daemon=True).start()

    def records(self, lines: bytes = b"") -> Iterator[Records]:
        """The records that were not returned yet, of all lines so far and of these."""
        if lines:
            self._appended.put(lines)
        while (result := self._results.get()) is not None:
            if isinstance(result, Exception):
                raise result
            yield result

    def close(self) -> None:
        """Let the thread end, without waiting for it."""
        self._appended.put(None)

    def _more(self) -> bytes | None:
        self._results.put(None)
        return self._appended.get()

    def _run(self, kind: Format, source: Source, options: ReadOptions) -> None:
        try:
            for records in kind.read_appended(source, options):
                self._results.put(records)
            while self._more() is not None:  # a format may stop reading early
                pass
        except Exception as error:  # raised again by `records`
            self._results.put(error)


@dataclass
class _GrowingSource(Source):
    """A log that continues with the lines that `more` returns; None is its end."""

    more: Callable[[], bytes | None] = lambda: None

    def blocks(self, *, quoted: bool = False, size: int = BLOCK_BYTES) -> Iterator[Block]:
        blocks, line = super().blocks(quoted=quoted, size=size), 1
        while True:
            for block in blocks:
                yield replace(block, first_line=line)
                line += block.n_lines
            lines = self.more()
            if lines is None:
                return
            if lines.isascii() and b"\r" not in lines and b"\0" not in lines:
                blocks = iter([Block(lines, line, lines.count(b"\n"))])
            else:
                blocks = Source(self.name, io.BytesIO(lines)).blocks(quoted=quoted, size=size)
