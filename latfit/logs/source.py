"""The bytes of one log: a path or standard input, as blocks of whole lines.

Compression is recognised by content: gzip, bzip2, xz, zstandard, and zip with one member.
"""

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
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from latfit.errors import LogError

HEAD_BYTES = 1 << 16
BLOCK_BYTES = 1 << 21
MAX_LINE_BYTES = 1 << 24
MAGIC_BYTES = 8
MAX_IN_MEMORY = 1 << 26
PARQUET_MAGIC = b"PAR1"
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
        """The lines without their ends."""
        return self.data.decode().split("\n")[:-1]


@dataclass
class Source:
    """One log, opened once. `head` is its beginning, for sniffing; `blocks()` yields all of it."""

    name: str
    stream: IO[bytes]
    path: Path | None = None
    packed: bool = False
    opened: ExitStack = field(default_factory=ExitStack)
    head: bytes = field(init=False, default=b"")

    def __post_init__(self) -> None:
        with self.reading():
            self.head = _read_up_to(self.stream, HEAD_BYTES)
        if self.head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            whole = io.BufferedReader(_Chained(self.head, self.stream))  # type: ignore[type-var]
            self.stream = codecs.EncodedFile(whole, "utf-8", "utf-16", errors="replace")
            with self.reading():
                self.head = _read_up_to(self.stream, HEAD_BYTES)
        self.head = self.head.removeprefix(codecs.BOM_UTF8)
        if not self.head:
            raise LogError(f"{self.name}: the file is empty")
        if b"\0" in self.head and not self.is_parquet:
            raise LogError(f"{self.name}: this is a binary file, not a log in a format that latfit reads")

    def __enter__(self) -> Source:
        return self

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
        """Whether the content begins as a Parquet file does."""
        return self.head.startswith(PARQUET_MAGIC)

    def reading(self) -> _Reading:
        """A context in which trouble with the bytes becomes a LogError that names the log."""
        return _Reading(self.name)

    def seekable(self) -> IO[bytes]:
        """Everything, for formats that need to seek: in memory while it is small, else in a file."""
        whole = self.opened.enter_context(tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY))  # noqa: SIM115
        with self.reading():
            whole.write(self.head)
            shutil.copyfileobj(self.stream, whole, BLOCK_BYTES)
        whole.seek(0)
        return whole

    def blocks(self, *, quoted: bool = False, size: int = BLOCK_BYTES) -> Iterator[Block]:
        """The lines in blocks; with `quoted`, no block ends inside a field in double quotes."""
        line, rest = 1, b""
        chunks = self._chunks(size)
        chunk = next(chunks, None)
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
                block = _block(data[:end], line)
                yield block
                line += block.n_lines
            rest = data[end:]

    def texts(self, *, size: int = BLOCK_BYTES) -> Iterator[str]:
        """The text in pieces that may end anywhere, for formats that are not made of lines."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        for chunk in self._chunks(size):
            yield decoder.decode(chunk)

    def _chunks(self, size: int) -> Iterator[bytes]:
        """The bytes with every line end as a line feed."""
        data, held = self.head, b""
        while data:
            with self.reading():
                following = self.stream.read(size)
            data = held + data
            held = b"\r" if following and data.endswith(b"\r") else b""  # half a line end, perhaps
            if b"\r" in data:
                data = data[: len(data) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            yield data
            data = following


class _Reading:
    """Turns trouble with the bytes of a log into a LogError that names it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DAMAGED) or any(words in str(error) for words in DAMAGED_WORDS):
            raise LogError(f"{self.name}: the compressed data are damaged or cut short ({error})") from error
        if isinstance(error, OSError):
            raise LogError(f"{self.name}: cannot be read ({error.strerror or error})") from error


class _Chained(io.RawIOBase):
    """The bytes already read, then the rest of the stream."""

    def __init__(self, first: bytes, then: IO[bytes]) -> None:
        self.first, self.then = io.BytesIO(first), then

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.first.read(len(buffer)) or self.then.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class _Counted(io.RawIOBase):
    """A file that tells how much of it has been read."""

    def __init__(self, file: IO[bytes], total: int | None, progress: Progress) -> None:
        self.file, self.total, self.progress, self.done = file, total, progress, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        self.done += len(data)
        self.progress(self.done, self.total)
        return len(data)


def open_source(path: str | Path, progress: Progress | None = None) -> Source:
    """Open a log by its path, or standard input for `-`; compression is recognised by its content."""
    name, known = str(path), None if str(path) == "-" else Path(path)
    if known is None and sys.stdin is None:
        raise LogError("<stdin>: standard input is closed")
    with ExitStack() as opened:
        with _Reading(name):
            stream: IO[bytes] = sys.stdin.buffer if known is None else opened.enter_context(_open_file(known))
            if progress is not None:
                total = known.stat().st_size if known else None
                stream = io.BufferedReader(_Counted(stream, total, progress), 1 << 20)  # type: ignore[type-var]
            inside = _unpacked(stream, stream.peek(MAGIC_BYTES)[:MAGIC_BYTES], name)  # type: ignore[attr-defined]
        if inside is not None:
            stream = opened.enter_context(inside)
        source = Source("<stdin>" if known is None else name, stream, known, packed=inside is not None)
        source.opened = opened.pop_all()  # all is well: it is closed with the source
        return source


def _open_file(path: Path) -> IO[bytes]:
    if path.is_dir():
        raise LogError(f"{path}: this is a directory; name its files, or a glob such as '{path}/*.csv'")
    if not path.exists():
        raise LogError(f"{path}: there is no such file")
    return path.open("rb")


def _read_up_to(stream: IO[bytes], size: int) -> bytes:
    """`size` bytes, or fewer at the end: a pipe may give less at a time."""
    parts = []
    while size > 0 and (data := stream.read(size)):
        parts.append(data)
        size -= len(data)
    return b"".join(parts)


def _whole_lines(data: bytes, quoted: bool) -> int:
    """Where the last whole record ends: after a line feed that no open quote contains."""
    end = data.rfind(b"\n") + 1
    if quoted and b'"' in data and data.count(b'"', 0, end) % 2:
        opening = data.rfind(b'"', 0, end)
        before = data.rfind(b"\n", 0, opening) + 1
        # a quote that stays open for a megabyte is a stray one: leave it to the row parser
        if end - before < 1 << 20:
            return before
    return end


def _block(data: bytes, line: int) -> Block:
    """A block in which bytes that are not UTF-8 are replaced."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data = data.decode(errors="replace").encode()
    # numpy counts frequent bytes several times faster than bytes.count
    return Block(data, line, int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n"))))


def _unpacked(stream: IO[bytes], magic: bytes, name: str) -> IO[bytes] | None:
    """A stream of what is packed in `stream`, which begins with `magic`; None if nothing is."""
    for start, open_packed in PACKINGS.items():
        if magic.startswith(start):
            return open_packed(stream, name)
    if magic.startswith(OLD_SPREADSHEET):
        raise LogError(f"{name}: {EXPORT}")
    return None


def _gzip(stream: IO[bytes], _: str) -> IO[bytes]:
    return gzip.GzipFile(fileobj=stream)  # type: ignore[return-value]


def _bzip2(stream: IO[bytes], _: str) -> IO[bytes]:
    return bz2.BZ2File(stream)


def _xz(stream: IO[bytes], _: str) -> IO[bytes]:
    return lzma.LZMAFile(stream)


def _zstandard(stream: IO[bytes], _: str) -> IO[bytes]:
    unpacking: IO[bytes] = pa.CompressedInputStream(pa.PythonFile(stream, mode="r"), "zstd")
    return unpacking


def _zip(stream: IO[bytes], name: str) -> IO[bytes]:
    """The one member of a zip file; spreadsheets are zip files too."""
    if not stream.seekable():  # the list of members stands at the end
        whole = tempfile.SpooledTemporaryFile(max_size=MAX_IN_MEMORY)  # noqa: SIM115
        shutil.copyfileobj(stream, whole)
        whole.seek(0)
        stream = whole
    try:
        archive = zipfile.ZipFile(stream)
    except NotImplementedError as error:  # a version that is not known
        raise LogError(f"{name}: this zip file cannot be unpacked ({error})") from error
    names = archive.namelist()
    if {"[Content_Types].xml", "mimetype"} & set(names):
        raise LogError(f"{name}: {EXPORT}")
    members = [member for member in names if not member.endswith("/") and not member.startswith("__MACOSX/")]
    if len(members) != 1:
        raise LogError(f"{name}: this zip file has {len(members)} members, not one log: unpack it, and name the logs")
    try:
        return archive.open(members[0])
    except (RuntimeError, NotImplementedError) as error:  # a password, or a method that is not known
        raise LogError(f"{name}: this zip file cannot be unpacked ({error})") from error


PACKINGS: dict[bytes, Callable[[IO[bytes], str], IO[bytes]]] = {
    b"\x1f\x8b": _gzip,
    b"BZh": _bzip2,
    b"\xfd7zXZ\x00": _xz,
    b"\x28\xb5\x2f\xfd": _zstandard,
    b"PK\x03\x04": _zip,
}
