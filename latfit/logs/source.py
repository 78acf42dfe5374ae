"""The bytes of one log: a path or standard input, as blocks of whole lines, unpacked where they are compressed."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa

from latfit.errors import LogError

HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 23
MAX_LINE_BYTES = 1 << 24
MAX_QUOTED_BYTES = 1 << 20  # a quote that stays open for longer is a stray one
MAX_IN_MEMORY = 1 << 26
OLD_SPREADSHEET = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
EXPORT = "this is a spreadsheet: save its sheet as CSV (File, Save as, CSV UTF-8) and read that file"
DAMAGED = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, EOFError)
# what bz2 and pyarrow say in a plain OSError
DAMAGED_WORDS = ("Invalid data stream", "Truncated compressed stream", "ZSTD")

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Block:
    """Whole lines in UTF-8, each ended by a line feed, and the number of the first."""

    data: bytes
    first_line: int
    n_lines: int

    def lines(self) -> list[str]:
        return self.data.decode().split("\n")[:-1]

    def numbered_lines(self) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers."""
        return ((number, line) for number, line in enumerate(self.lines(), start=self.first_line) if line.strip())


@dataclass
class Source(AbstractContextManager["Source"]):
    """One log, opened once. `head` is its beginning, for sniffing; `blocks()` yields all of it."""

    name: str
    stream: IO[bytes]
    path: Path | None = None
    packed: bool = False
    opened: ExitStack = field(default_factory=ExitStack)
    report: Callable[[], None] = lambda: None  # called after each read
    bytes_read: int = 0
    head: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        with _reading(self.name):
            stream = self.stream = io.BufferedReader(cast(Any, self.stream))
            if stream.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                self.stream = codecs.EncodedFile(stream, "utf-8", "utf-16", errors="replace")
            self.head = self.stream.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        if not self.head.strip():
            raise LogError(f"{self.name}: the file is empty")
        if b"\0" in self.head and not self.is_parquet:
            vegeta = b"Timestamp" in self.head and b"Attack" in self.head
            hint = "; convert vegeta's results with: vegeta encode --to csv" if vegeta else ""
            raise LogError(f"{self.name}: this is a binary file, not a log in a format that latfit reads{hint}")

    def __exit__(self, *_: object) -> None:
        self.opened.close()

    @property
    def text(self) -> str:
        """The beginning as text, with every line end as a line feed."""
        decoder = codecs.getincrementaldecoder("latin-1" if self.is_parquet else "utf-8")(errors="replace")
        decoded = decoder.decode(self.head)  # without the character that the end may cut in two
        return decoded.replace("\r\n", "\n").replace("\r", "\n")

    @property
    def is_parquet(self) -> bool:
        return self.head.startswith(b"PAR1")

    def seekable(self) -> IO[bytes]:
        """Everything, for formats that need to seek: in memory while it is small, else in a file."""
        whole = self.opened.enter_context(tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY))  # noqa: SIM115
        with _reading(self.name):
            whole.write(self.head)
            shutil.copyfileobj(self.stream, whole, BLOCK_BYTES)
        whole.seek(0)
        return whole

    def blocks(self, *, quoted: bool = False, size: int = BLOCK_BYTES) -> Iterator[Block]:
        """The lines in blocks; with `quoted`, no block ends inside a field in double quotes."""
        line, rest = 1, b""
        chunks = self._chunks(size)
        chunk: bytes | None = b"".join(islice(chunks, 2))  # the head is small
        while chunk is not None:
            data, chunk = rest + chunk, next(chunks, None)
            if chunk is None and not data.endswith(b"\n"):
                data += b"\n"
            end = _whole_lines(data, quoted) if chunk is not None else len(data)  # what comes last stays together
            if len(data) - end > MAX_LINE_BYTES:
                raise LogError(
                    f"{self.name}: line {line + data.count(10, 0, end)} is longer than {MAX_LINE_BYTES >> 20} MiB: "
                    "this is not a log of one record a line"
                )
            if end:
                lines = data[:end]
                if not lines.isascii():
                    lines = lines.decode(errors="replace").encode()
                # numpy counts frequent bytes several times faster than bytes.count
                n_lines = int(np.count_nonzero(np.frombuffer(lines, np.uint8) == ord("\n")))
                yield Block(lines, line, n_lines)
                line += n_lines
            rest = data[end:]

    def texts(self) -> Iterator[str]:
        """The text in pieces that may end anywhere, for formats that are not made of lines."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for chunk in self._chunks(BLOCK_BYTES):
            yield decoder.decode(chunk)

    def _chunks(self, size: int) -> Iterator[bytes]:
        data, held = self.head, b""
        while data:
            with _reading(self.name):
                following = self.stream.read(size)
                self.bytes_read += len(following)
                self.report()
            data = held + data
            held = b"\r" if following and data.endswith(b"\r") else b""  # half a line end, perhaps
            if b"\r" in data:
                data = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield data
            data = following


def numbered_lines(source: Source, *, pauses: bool = False) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers; with `pauses`, an empty one after each block."""
    for block in source.blocks():
        yield from block.numbered_lines()
        if pauses:
            yield 0, ""


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except (*DAMAGED, OSError) as error:
        if isinstance(error, DAMAGED) or any(words in str(error) for words in DAMAGED_WORDS):
            raise LogError(f"{name}: the compressed data are damaged or cut short ({error})") from error
        raise LogError(f"{name}: cannot be read ({error.strerror or error})") from error


def _whole_lines(data: bytes, quoted: bool) -> int:
    """Where the last whole record ends: after a line feed that no open quote contains."""
    end = data.rfind(b"\n") + 1
    if quoted and b'"' in data and data.count(b'"', 0, end) % 2:
        before = data.rfind(b"\n", 0, data.rfind(b'"', 0, end)) + 1
        if end - before < MAX_QUOTED_BYTES:
            return before
    return end


def open_source(path: str | Path, progress: Progress | None = None) -> Source:
    """Open a log by its path, or standard input for `-`; compression is recognised by its content."""
    name, known = str(path), None if str(path) == "-" else Path(path)
    if known is None and sys.stdin is None:
        raise LogError("<stdin>: standard input is closed")
    if known is not None and known.is_dir():
        raise LogError(f"{path}: this is a directory; name its files, or a glob such as '{path}/*.csv'")
    if known is not None and not known.exists():
        raise LogError(f"{path}: there is no such file")
    with ExitStack() as opened:
        with _reading(name):
            file: Any = sys.stdin.buffer if known is None else opened.enter_context(known.open("rb"))
            inside = _unpacked(file, file.peek(8)[:8], name)
        stream = file if inside is None else opened.enter_context(inside)
        source = Source("<stdin>" if known is None else name, stream, known, packed=inside is not None)
        if progress is not None:
            total = None if known is None else known.stat().st_size
            source.report = lambda: progress(source.bytes_read if known is None else file.tell(), total)
        source.opened = opened.pop_all()  # all is well: it is closed with the source
        return source


def _unpacked(stream: IO[bytes], magic: bytes, name: str) -> Any:
    if magic.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if magic.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(stream)
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        return pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    if magic.startswith(OLD_SPREADSHEET):
        raise LogError(f"{name}: {EXPORT}")
    return _unzipped(stream, name) if magic.startswith(b"PK\x03\x04") else None


def _unzipped(stream: IO[bytes], name: str) -> IO[bytes]:
    """The one member of a zip file; spreadsheets are zip files too."""
    if not stream.seekable():  # the list of members stands at the end
        whole = tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY)  # noqa: SIM115
        shutil.copyfileobj(stream, whole)
        whole.seek(0)
        stream = whole
    try:
        archive = zipfile.ZipFile(stream)
        names = archive.namelist()
        if {"[Content_Types].xml", "mimetype"} & set(names):
            raise LogError(f"{name}: {EXPORT}")
        members = [member for member in names if not member.endswith("/") and not member.startswith("__MACOSX/")]
        if len(members) != 1:
            members_found = f"this zip file has {len(members)} members, not one log"
            raise LogError(f"{name}: {members_found}: unpack it, and name the logs")
        return archive.open(members[0])
    except (RuntimeError, NotImplementedError) as error:  # a password, or a version or method that is not known
        raise LogError(f"{name}: this zip file cannot be unpacked ({error})") from error
