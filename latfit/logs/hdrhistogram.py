"""HdrHistogram interval logs (.hlog): compressed histograms, one an interval, perhaps with tags."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections import defaultdict
from typing import Any

import numpy as np

from latfit.buckets import Histogram
from latfit.errors import LogError, SampleError
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.source import Source
from latfit.numbers import Floats
from latfit.units import in_seconds

INTERVAL = re.compile(r"(?:Tag=([^,]*),)?([\d.]+),([\d.]+),([\d.]+),(HIST\S+)\s*$")
MAX_PAYLOAD = 1 << 26  # bytes of one histogram, once inflated
INTERVALS = 10  # of which it can be told whether slow values come together
SLOW = 0.95
WHOLE = (1, 1.0, 0x3FF0000000000000)  # how a ratio of 1 between recorded and real values is written


@register
class HdrLog(HistogramFormat):
    """Lines `[Tag=…,]start,length,max,payload` in any order; each tag is a series, its intervals are added up."""

    name = "hdrhistogram"
    by_line = False
    description = "HdrHistogram interval log (.hlog, V2), values in ns; needs latfit[histograms]"
    rank = 12

    def sniff(self, head: str) -> bool:
        """By its header, or by a payload in one of the first lines."""
        first = head.lstrip().split("\n")[:20]
        return any(line.startswith("#[Histogram log format") or INTERVAL.match(line) for line in first)

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        """The sum of the intervals of each tag, in whatever order they come."""
        total: dict[tuple[str, int, int, int], Any] = {}  # by tag and layout, whose counts add up as they are
        parts: dict[str, list[tuple[Floats, Floats]]] = defaultdict(list)
        for block in source.blocks():
            for line, text in enumerate(block.lines(), start=block.first_line):
                if text.startswith(("#", '"StartTimestamp"')) or not text.strip():
                    continue
                match = INTERVAL.match(text)
                if match is None:
                    raise LogError(f"{source.name}: line {line} is not an interval [Tag=…,]start,length,max,payload")
                try:
                    one = _decoded(match[5])
                except ValueError as problem:
                    raise LogError(f"{source.name}: line {line}: {problem}") from problem
                parts[match[1] or ""].append(_values(one))
                layout = (match[1] or "", one.bucket_count, one.sub_bucket_count, one.unit_magnitude)
                if layout in total:
                    total[layout].add(one)
                else:
                    total[layout] = one
        if not total:
            raise LogError(f"{source.name}: there is no interval in this log")
        try:
            series = [
                Series("", {"tag": tag} if tag else {}, _histogram(one, unit or "ns", _together(parts[tag])))
                for (tag, *_), one in total.items()
            ]
        except SampleError as problem:
            raise LogError(f"{source.name}: {problem}") from problem
        notes = () if unit else ("the values are taken to be nanoseconds, as is usual; --unit says otherwise",)
        return HistogramLog(source.name, self.name, tuple(series), notes=notes)


def _decoded(payload: str) -> Any:
    """The histogram of one interval."""
    try:
        from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
        from hdrh.histogram import HdrHistogram
    except ImportError as missing:
        raise LogError("HdrHistogram logs need the package hdrhistogram: pip install latfit[histograms]") from missing
    _check(payload)
    try:
        one = HdrHistogram.decode(payload)
    except (HdrCookieException, HdrLengthException, HdrHistogramSettingsException, zlib.error, ArithmeticError,
            IndexError, RuntimeError, TypeError) as problem:  # fmt: skip
        raise ValueError(f"the histogram is damaged ({problem or type(problem).__name__})") from problem
    header = one.encoder.payload.payload
    if header.normalizing_index_offset or header.conversion_ratio_bits not in WHOLE:
        raise ValueError("this is a histogram of floating-point values (DoubleHistogram), which cannot be read")
    return one


def _check(payload: str) -> None:
    """Refuse what is not base64 of a compressed histogram, or inflates to more than any histogram needs."""
    try:
        data = base64.b64decode(payload, validate=True)
    except binascii.Error as problem:
        raise ValueError(f"not base64: {problem}") from problem
    inflating = zlib.decompressobj()
    try:
        inflating.decompress(data[8:], MAX_PAYLOAD)
    except zlib.error as problem:
        raise ValueError(f"the histogram is damaged ({problem})") from problem
    if inflating.unconsumed_tail:
        raise ValueError(f"it inflates to more than {MAX_PAYLOAD >> 20} MiB")


def _values(hdr: Any) -> tuple[Floats, Floats]:
    """The recorded values of one interval, and how often each was recorded."""
    counts = np.ctypeslib.as_array(hdr.counts)
    used = np.flatnonzero(counts)
    return np.array([hdr.get_value_from_index(int(i)) for i in used], dtype=np.float64), counts[used].astype(np.float64)


def _together(intervals: list[tuple[Floats, Floats]]) -> float | None:
    """The correlation of being among the slowest 5 % within an interval: that of a one-way analysis of variance.

    (MSB − MSW)/(MSB + (n₀ − 1) MSW) with n₀ = (N − Σn²/N)/(m − 1): 0 on average where slow values come singly.
    """
    full = [(values, counts) for values, counts in intervals if counts.size]
    if len(full) < INTERVALS:
        return None
    values, counts = (np.concatenate(each) for each in zip(*full, strict=True))
    limit = np.quantile(values, SLOW, weights=counts, method="inverted_cdf")
    n = np.array([counts.sum() for _, counts in full])
    slow = np.array([counts[values >= limit].sum() for values, counts in full])
    m, N = n.size, n.sum()
    if m >= N or not 0 < slow.sum() < N:
        return None
    between = float((n * (slow / n - slow.sum() / N) ** 2).sum() / (m - 1))
    within = float((slow * (1 - slow / n)).sum() / (N - m))
    size = (N - (n**2).sum() / N) / (m - 1)
    return float((between - within) / (between + (size - 1) * within))


def _histogram(hdr: Any, unit: str, together: float | None) -> Histogram:
    """The recorded values in seconds; a whole value v stands for a latency in [v, v + 1).

    HdrHistogram's buckets hold their lower end and not their upper one, so each edge is moved down by the smallest
    step that a float has: (e⁻, …] then holds e.
    """
    counts = np.ctypeslib.as_array(hdr.counts)
    used = np.flatnonzero(counts)
    low = [hdr.get_value_from_index(int(i)) for i in used]
    high = [hdr.get_highest_equivalent_value(value) + 1 for value in low]
    edges, filled = [0.0], []
    for i, *ends in zip(used, low, high, strict=True):
        start, end = (float(np.nextafter(in_seconds(value, unit), 0.0)) for value in ends)
        if start > edges[-1]:
            edges.append(start)
            filled.append(0)
        edges.append(end)
        filled.append(int(counts[i]))
    if not filled:
        edges, filled = [0.0, 1.0], [0]
    return Histogram(np.array(edges), np.array(filled), together=together)
