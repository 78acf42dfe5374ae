"""Damage: to fields, to lines, to bytes, and the ways in which a log may be packed."""

import bz2
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable

from fuzzing.logs import TextLog

NUMBERS = (
    "1e308", "-1e308", "1e-320", "4.9e-324", "1e400", "99999999999999999999999", "-0", "0", "0x10", "-1", "+5", "1_000",
    "1,5", "1.5.2", "1e5", "1e-5", "00012", "9007199254740993", "1" * 400, "-" * 30, " 7 ", "１２", "٣", "½", "∞",
    "NaN", "nan", "inf", "-inf", "Infinity", "-Infinity", "null", "None", "N/A", "true", "False", "", ".", "1e", "1d5",
)  # fmt: skip
TEXTS = (
    "\u202egnirts", "e\u0301\u0323" * 9, "\ufeff", "\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\0",
    "\x1b[31m", "💥", "\ud800", "\udcff", "x" * 5000, "=cmd|' /C calc'!A0", "%s%n%d", "../../etc/passwd", "$(id)",
    "`id`", "<b>", "{", "}", "[", "]", "\\", "\\u0000", "'", ",", ";", "|", "\t", "#", ":", "==", " ", "completed",
    "lost", "latency", "\x7f", "ſ", "İ", "A\u030a",
)  # fmt: skip
TIMES = (
    "0000-00-00T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-02-30T00:00:00",
    "2026-03-01T25:61:61Z", "2026-03-01", "2026-03-01T00:00:00+99:99", "2026-03-01T00:00:00.123456789123Z", "Unknown",
    "1677-09-21T00:12:43Z", "1600-01-01T00:00:00", "2262-04-12T00:00:00", "2026-W10-1", "now", "1700000000",
    "1700000000000", "-62135596800", "253402300800", "1e18", "9223372036854775807", "9223372036854775808", "12/31",
    "02/29", "2026-03-01T00:00:00", "2026-03-01T00:00:00Z", "2026-03-01T00:00:00+01:00", "23:59:60", "24:00:00",
)  # fmt: skip
QUOTES = ('"', '"open', 'shut"', 'a "b" c', '""', '"two\nlines"', '"a,b"', '"a"b', '"\n', "'")
GARBAGE = (
    "garbage", "...", ";;;;", ",,,,", "||||", "\t\t", "# a comment", "; a comment", "{", "[1, 2]", "null", "{}", '"',
    "0", "\u2028", "\xa0", " ", "000 (1.000.000) 13/99 00:00:00 x", "<xml/>", "latency", "1", "\\N",
)  # fmt: skip


def nasty(rng: random.Random) -> str:
    """Something that a field should not hold."""
    return rng.choice(rng.choice((NUMBERS, NUMBERS, TEXTS, TIMES)))


def _field(value: Callable[[random.Random, str], str]) -> Callable[[TextLog, random.Random], None]:
    def damage(log: TextLog, rng: random.Random) -> None:
        row = rng.choice(log.rows)
        if row:
            at = rng.randrange(len(row))
            key, colon, old = (
                row[at].partition(": ") if log.format == "jsonl" and rng.random() < 0.8 else ("", "", row[at])
            )
            row[at] = key + colon + value(rng, old)

    return damage


def _column(log: TextLog, rng: random.Random) -> None:
    """The same nasty value in one column of many rows."""
    at, word = rng.randrange(1 + max(map(len, log.rows))), nasty(rng)
    for row in log.rows:
        if at < len(row) and rng.random() < 0.8:
            row[at] = row[at].partition(": ")[0] + ": " + word if log.format == "jsonl" else word


def _remove_field(log: TextLog, rng: random.Random) -> None:
    row = rng.choice(log.rows)
    if row:
        del row[rng.randrange(len(row))]


def _add_field(log: TextLog, rng: random.Random) -> None:
    row = rng.choice(log.rows)
    row.insert(rng.randint(0, len(row)), nasty(rng))


def _shuffle_fields(log: TextLog, rng: random.Random) -> None:
    rng.shuffle(rng.choice(log.rows))


FIELDS: dict[str, Callable[[TextLog, random.Random], None]] = {
    "nasty field": _field(lambda rng, _: nasty(rng)),
    "nasty suffix": _field(lambda rng, old: old + nasty(rng)),
    "nasty JSON string": _field(lambda rng, _: f'"{rng.choice((*TEXTS, *NUMBERS, *TIMES))}"'),
    "escaped surrogate": _field(lambda rng, _: rng.choice(('"\\ud800"', '"\\u0000"', "1" * 5000, "[" * 5000))),
    "quote": _field(lambda rng, _: rng.choice(QUOTES)),
    "quoted": _field(lambda _, old: '"' + old.replace('"', '""') + '"'),
    "nasty column": _column,
    "field removed": _remove_field,
    "field added": _add_field,
    "fields shuffled": _shuffle_fields,
}


def _insert(value: Callable[[random.Random], str]) -> Callable[[list[str], random.Random], None]:
    return lambda lines, rng: lines.insert(rng.randint(0, len(lines)), value(rng))


def _swap(lines: list[str], rng: random.Random) -> None:
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]


def _duplicate(lines: list[str], rng: random.Random) -> None:
    at = rng.randrange(len(lines))
    lines[at:at] = [lines[at]] * rng.choice((1, 1, 5, 300 if len(lines[at]) < 1000 else 2))


def _delete(lines: list[str], rng: random.Random) -> None:
    del lines[rng.randrange(len(lines))]


LINES: dict[str, Callable[[list[str], random.Random], None]] = {
    "lines swapped": _swap,
    "line duplicated": _duplicate,
    "line deleted": _delete,
    "blank lines": _insert(lambda rng: "\n" * (rng.randint(1, 3) if rng.random() < 0.97 else 100_000)),
    "garbage line": _insert(lambda rng: rng.choice(GARBAGE)),
    "long line": _insert(lambda rng: rng.choice(("x", "1", ",", '"', " ", "{", "1,", "[", "\0", "e\u0301")) * 10**6),
    "long field": _insert(lambda rng: "1," + rng.choice(("x", "9", '"', "\u2028")) * 10**6),
}


def _flip(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 3, 30))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _flipped(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    _flip(damaged, rng)
    return bytes(damaged)


def _truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _cut(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 5, 100))]


def _insert_bytes(data: bytearray, rng: random.Random) -> None:
    some = rng.choice(
        (b"\0", b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n\r", b"\x1a", b"\xc3", b"\x1f\x8b")
    )
    at = rng.randint(0, len(data))
    data[at:at] = rng.choice((some, rng.randbytes(8)))


def _repeat(data: bytearray, rng: random.Random) -> None:
    data += data[rng.randrange(len(data)) :] * rng.choice((1, 3))


BYTES: dict[str, Callable[[bytearray, random.Random], None]] = {
    "bytes flipped": _flip,
    "truncated": _truncate,
    "bytes cut out": _cut,
    "bytes inserted": _insert_bytes,
    "repeated": _repeat,
}


def _gzip(data: bytes) -> bytes:
    """Without the time of day, so that a seed is always the same case."""
    return gzip.compress(data, 1, mtime=0)


def _parts(data: bytes, rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    return _gzip(data[:at]) + _gzip(data[at:])


def _zip(data: bytes) -> bytes:
    """One member, with a fixed date."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("log.csv", (2026, 3, 1, 0, 0, 0)), data)
    return out.getvalue()


def _recoded(encoding: str) -> Callable[[bytes, random.Random], bytes]:
    return lambda data, _: data.decode("utf-8").encode(encoding)


# the same log in other bytes: nothing may change but what is said of it
PACKINGS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "gzip": lambda data, _: _gzip(data),
    "gzip in parts": _parts,
    "bzip2": lambda data, _: bz2.compress(data, 1),
    "xz": lambda data, _: lzma.compress(data, preset=0),
    "zip": lambda data, _: _zip(data),
    "BOM": lambda data, _: b"\xef\xbb\xbf" + data,
    "UTF-16": _recoded("utf-16"),
    "UTF-16 big-endian": lambda data, _: b"\xfe\xff" + data.decode("utf-8").encode("utf-16-be"),
    "gzip of UTF-16": lambda data, _: _gzip(data.decode("utf-8").encode("utf-16")),
}

# other bytes that no reader need understand
WRECKS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "UTF-16 without BOM": _recoded("utf-16-le"),
    "UTF-32": _recoded("utf-32"),
    "latin-1": lambda data, _: data.decode("utf-8").encode("latin-1", errors="replace"),
    "UTF-16 cut": lambda data, rng: data.decode("utf-8").encode("utf-16")[: -rng.randint(1, 9)],
    "gzip cut short": lambda data, rng: (packed := _gzip(data))[: rng.randrange(2, len(packed))],
    "gzip and garbage": lambda data, rng: _gzip(data) + rng.randbytes(rng.randrange(1, 40)),
    "gzip twice": lambda data, _: _gzip(_gzip(data)),
    "bzip2 cut short": lambda data, rng: (packed := bz2.compress(data, 1))[: rng.randrange(4, len(packed))],
    "xz damaged": lambda data, rng: _flipped(lzma.compress(data, preset=0), rng),
    "zip damaged": lambda data, rng: _flipped(_zip(data), rng),
    "zip of a zip": lambda data, _: _zip(_zip(data)),
    "gzip bomb": lambda data, rng: _gzip(data) + _BOMBS[rng.choice(list(_BOMBS))],
}
_BOMBS = {fill: _gzip(fill * (1 << 23)) for fill in (b"\0", b" ", b"9", b'"')}
_BOMBS |= {fill: _gzip(fill * (1 << 18)) for fill in (b"\n", b"1\n")}
