"""Compressed logs, recognised by their content: gzip, bzip2, xz, zstandard, and zip with one member."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from typing import IO, Any

from latfit.errors import LogError

MAGIC_BYTES = 8
MAX_IN_MEMORY = 1 << 26
READ_BYTES = 1 << 16
OLD_SPREADSHEET = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
EXPORT = "this is a spreadsheet: save its sheet as CSV (File, Save as, CSV UTF-8) and read that file"
DAMAGED: tuple[type[Exception], ...] = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zipfile.BadZipFile, EOFError)
"""What the readers of packed data raise where these are damaged; bz2 raises a plain OSError or ValueError."""


def unpacked(stream: IO[bytes], magic: bytes, name: str) -> IO[bytes] | None:
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


def _zstandard(stream: IO[bytes], name: str) -> IO[bytes]:
    """Python's own module since 3.14, before that the package `zstandard`."""
    if sys.version_info >= (3, 14):
        standard = importlib.import_module("compression.zstd")
        return standard.ZstdFile(stream)  # type: ignore[no-any-return]
    try:
        package = importlib.import_module("zstandard")
    except ModuleNotFoundError as error:
        raise LogError(
            f"{name}: this is compressed with zstandard, and the package that reads it is not installed: "
            "pip install zstandard, or unpack it first (zstd -d)"
        ) from error
    return io.BufferedReader(_Zstandard(stream, package))  # type: ignore[type-var]


class _Zstandard(io.RawIOBase):
    """The frames of a stream; one that is cut short is an EOFError, which the package's own reader passes over."""

    def __init__(self, stream: IO[bytes], package: Any) -> None:
        self.stream, self.package, self.frame = stream, package, package.ZstdDecompressor().decompressobj()
        self.rest, self.data, self.inside = b"", b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        while not self.data and (packed := self.rest or self.stream.read(READ_BYTES)):
            if self.frame.eof:
                self.frame = self.package.ZstdDecompressor().decompressobj()
            try:
                self.data = self.frame.decompress(packed)
            except self.package.ZstdError as error:
                raise EOFError(str(error)) from error
            self.rest, self.inside = self.frame.unused_data, not self.frame.eof
        if not self.data and self.inside:
            raise EOFError("the last frame has no end")
        size = min(len(buffer), len(self.data))
        buffer[:size], self.data = self.data[:size], self.data[size:]
        return size


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
