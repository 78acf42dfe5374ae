"""HdrHistogram interval logs (.hlog): compressed histograms, one an interval, perhaps with tags."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latfit.errors import LogError
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, Series, from_buckets
from latfit.logs.source import Source, numbered_lines
from latfit.numbers import Ints
from latfit.units import in_seconds

INTERVAL = r"(?:Tag=([^,]*),)?([\d.]+),([\d.]+),([\d.]+),(HIST\S+|[A-Za-z0-9+/=]{40,})\s*(?:\n|$)"
V0, V1, V2 = 0x1C849309, 0x1C849302, 0x1C849304  # marks of compressed histograms; the byte 0xf0 is the size of words
HEADERS = {V0: ">4xiqq8x", V1: ">4x4xiiqqd", V2: ">4x4xiiqqd"}
MAX_PAYLOAD = 1 << 26  # bytes of one histogram, once inflated
MIN_INTERVALS = 10  # of which it can be told whether slow values come together
SLOW_QUANTILE = 0.95


@register
class HdrLog(HistogramFormat):
    """Lines `[Tag=…,]start,length,max,payload` in any order; each tag is a series, its intervals are added up."""

    name = "hdrhistogram"
    description = "HdrHistogram interval log (.hlog), values in ns"
    rank = 12
    begins = rf"(?:.*\n){{0,19}}?(?:#\[Histogram log format|{INTERVAL})"

    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        total: dict[tuple[str, int, int], Counter[tuple[int, int]]] = defaultdict(Counter)  # by tag and layout
        intervals: dict[str, list[tuple[Ints, Ints]]] = defaultdict(list)
        for number, line in numbered_lines(source):
            if line.startswith(("#", '"StartTimestamp"')):
                continue
            match = re.match(INTERVAL, line)
            if match is None:
                raise LogError(f"line {number} is not an interval [Tag=…,]start,length,max,payload")
            try:
                layout, low, high, counts = _decoded(match[5])
            except (ValueError, struct.error, zlib.error) as problem:
                raise LogError(f"line {number}: the histogram is damaged ({problem})") from problem
            tag = match[1] or ""
            intervals[tag].append((low, counts))
            total[tag, *layout].update(
                dict(zip(zip(low.tolist(), high.tolist(), strict=True), counts.tolist(), strict=True))
            )
        if not total:
            raise LogError("there is no interval in this log")
        if unit is None:
            notes["the values are taken to be nanoseconds, as is usual; --unit says otherwise"] = None

        def edge(value: int) -> float:
            """A whole value v stands for [v, v + 1), and buckets hold their lower end: (e⁻, …] then holds e."""
            return float(np.nextafter(in_seconds(value, unit or "ns"), 0.0))

        for (tag, *_), buckets in total.items():
            rising = ((edge(low), edge(high), count) for (low, high), count in sorted(buckets.items()))
            histogram = replace(from_buckets(rising), together=_together(intervals[tag]))
            yield Series("", {"tag": tag} if tag else {}, histogram)


def _decoded(payload: str) -> tuple[tuple[int, int], Ints, Ints, Ints]:
    """The layout of one interval's histogram, and the buckets [low, high) that hold something, with their counts.

    Values up to 2^s are their own buckets, s = ⌈log2(2·10^digits)⌉; from there on each doubling of the value has
    2^(s−1) buckets, twice as wide as those before. All are in units of 2^m, m = ⌊log2(lowest value)⌋.
    """
    data = base64.b64decode(payload, validate=True)
    version = struct.unpack_from(">I", data)[0] & ~0xF0
    if version not in HEADERS:
        raise ValueError("not a histogram of whole numbers as HdrHistogram compresses it")
    inflating = zlib.decompressobj()
    raw = inflating.decompress(data[8:], MAX_PAYLOAD)
    if inflating.unconsumed_tail:
        raise ValueError(f"it inflates to more than {MAX_PAYLOAD >> 20} MiB")
    header = struct.unpack_from(HEADERS[version], raw)
    offset, digits, lowest, _, ratio = header if version != V0 else (0, *header, 1.0)
    if offset or ratio not in (1.0, 5e-324) or not 0 <= digits <= 5 or not 1 <= lowest < 1 << 62:
        raise ValueError("a histogram of floating-point values (DoubleHistogram), or with an impossible header")
    words = raw[struct.calcsize(HEADERS[version]) :]
    size = struct.unpack_from(">I", raw)[0] >> 4 & 0xF
    if version != V2 and size not in (2, 4, 8):
        raise ValueError(f"words of {size} bytes")
    counts = _zigzag(words) if version == V2 else np.frombuffer(words[: len(words) // size * size], f">i{size}")
    at = np.flatnonzero(counts)
    counts = counts[at].astype(np.int64)
    bits, unit = (2 * 10**digits - 1).bit_length(), lowest.bit_length() - 1
    doubled = np.maximum((at >> bits - 1) - 1, 0)
    within = at - (doubled << bits - 1)
    if (counts < 0).any() or (doubled.max(initial=0) + bits + unit > 62):
        raise ValueError("counts below 0, or values beyond all whole numbers")
    low = within << doubled + unit
    return (bits, unit), low, low + (1 << doubled + unit), counts


def _zigzag(data: bytes) -> NDArray[np.int64]:
    """Numbers of 7 bits a byte, the lowest first (LEB128), at most nine bytes; −n stands for n zeros."""
    counts, number, shift = list[int](), 0, 0
    for byte in data:
        last = shift == 56
        number |= (byte if last else byte & 0x7F) << shift
        shift += 7
        if byte < 0x80 or last:
            count = number >> 1 ^ -(number & 1)
            if count < -(1 << 24):
                raise ValueError("a run of zeros longer than any histogram")
            counts.extend([count] if count >= 0 else [0] * -count)
            number = shift = 0
    return np.array(counts, dtype=np.int64)


def _together(intervals: list[tuple[Ints, Ints]]) -> float | None:
    """The correlation of being among the slowest 5 % within an interval: that of a one-way analysis of variance.

    (MSB − MSW)/(MSB + (n₀ − 1) MSW) with n₀ = (N − Σn²/N)/(m − 1): 0 on average where slow values come singly.
    """
    full = [(values, counts) for values, counts in intervals if counts.size]
    if len(full) < MIN_INTERVALS:
        return None
    values, counts = (np.concatenate(each) for each in zip(*full, strict=True))
    limit = np.quantile(values, SLOW_QUANTILE, weights=counts, method="inverted_cdf")
    n = np.array([counts.sum() for _, counts in full])
    slow = np.array([counts[values >= limit].sum() for values, counts in full])
    m, N = n.size, n.sum()
    if m >= N or not 0 < slow.sum() < N:
        return None
    between = float((n * (slow / n - slow.sum() / N) ** 2).sum() / (m - 1))
    within = float((slow * (1 - slow / n)).sum() / (N - m))
    size = (N - (n**2).sum() / N) / (m - 1)
    return float((between - within) / (between + (size - 1) * within))
