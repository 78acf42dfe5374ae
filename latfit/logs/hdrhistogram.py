"""HdrHistogram interval logs (.hlog): compressed histograms, one an interval, perhaps with tags."""

from __future__ import annotations

import base64
import re
import zlib
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.buckets import Histogram
from latfit.errors import LogError, SampleError
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series, from_buckets, numbered_lines
from latfit.logs.source import Source
from latfit.numbers import Floats
from latfit.units import in_seconds

INTERVAL = r"(?:Tag=([^,]*),)?([\d.]+),([\d.]+),([\d.]+),(HIST\S+)\s*(?:\n|$)"
MAX_PAYLOAD = 1 << 26  # bytes of one histogram, once inflated
MIN_INTERVALS = 10  # of which it can be told whether slow values come together
SLOW_QUANTILE = 0.95


@register
class HdrLog(HistogramFormat):
    """Lines `[Tag=…,]start,length,max,payload` in any order; each tag is a series, its intervals are added up."""

    name = "hdrhistogram"
    description = "HdrHistogram interval log (.hlog, V2), values in ns; needs latfit[histograms]"
    rank = 12
    begins = rf"(?:.*\n){{0,19}}?(?:#\[Histogram log format|{INTERVAL})"

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        total: dict[tuple[str, int, int, int], Any] = {}  # by tag and layout, whose counts add up as they are
        intervals: dict[str, list[tuple[Floats, Floats]]] = defaultdict(list)
        for number, line in numbered_lines(source):
            if line.startswith(("#", '"StartTimestamp"')):
                continue
            match = re.match(INTERVAL, line)
            if match is None:
                raise LogError(f"{source.name}: line {number} is not an interval [Tag=…,]start,length,max,payload")
            try:
                interval = _decoded(match[5])
            except ValueError as problem:
                raise LogError(f"{source.name}: line {number}: {problem}") from problem
            tag = match[1] or ""
            used, counts = _used(interval)
            intervals[tag].append((np.array(used, dtype=np.float64), counts.astype(np.float64)))
            layout = (tag, interval.bucket_count, interval.sub_bucket_count, interval.unit_magnitude)
            if layout in total:
                total[layout].add(interval)
            else:
                total[layout] = interval
        if not total:
            raise LogError(f"{source.name}: there is no interval in this log")
        try:
            series = [
                Series("", {"tag": tag} if tag else {}, _histogram(hdr, unit or "ns", _together(intervals[tag])))
                for (tag, *_), hdr in total.items()
            ]
        except SampleError as problem:
            raise LogError(f"{source.name}: {problem}") from problem
        notes = () if unit else ("the values are taken to be nanoseconds, as is usual; --unit says otherwise",)
        return HistogramLog(source.name, self.name, tuple(series), notes=notes)


def _decoded(payload: str) -> Any:
    """The histogram of one interval; refused if it inflates to more than any histogram needs."""
    try:
        from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
        from hdrh.histogram import HdrHistogram
    except ImportError as missing:
        raise LogError("HdrHistogram logs need the package hdrhistogram: pip install latfit[histograms]") from missing
    damage = (HdrCookieException, HdrLengthException, HdrHistogramSettingsException, zlib.error, ArithmeticError)
    try:
        data = base64.b64decode(payload, validate=True)
    except ValueError as problem:
        raise ValueError(f"not base64: {problem}") from problem
    try:
        inflating = zlib.decompressobj()
        inflating.decompress(data[8:], MAX_PAYLOAD)
        if inflating.unconsumed_tail:
            raise ValueError(f"it inflates to more than {MAX_PAYLOAD >> 20} MiB")
        hdr = HdrHistogram.decode(payload)
    except (*damage, IndexError, RuntimeError, TypeError) as problem:
        raise ValueError(f"the histogram is damaged ({problem or type(problem).__name__})") from problem
    header = hdr.encoder.payload.payload
    one = (1, 1.0, 0x3FF0000000000000)  # how a ratio of 1 between recorded and real values is written
    if header.normalizing_index_offset or header.conversion_ratio_bits not in one:
        raise ValueError("this is a histogram of floating-point values (DoubleHistogram), which cannot be read")
    return hdr


def _used(hdr: Any) -> tuple[list[int], np.ndarray[Any, Any]]:
    counts = np.ctypeslib.as_array(hdr.counts)
    used = np.flatnonzero(counts)
    return [hdr.get_value_from_index(int(i)) for i in used], counts[used]


def _together(intervals: list[tuple[Floats, Floats]]) -> float | None:
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


def _histogram(hdr: Any, unit: str, together: float | None) -> Histogram:
    """The recorded values in seconds; a whole value v stands for a latency in [v, v + 1).

    HdrHistogram's buckets hold their lower end and not their upper one, so each edge is moved down by the smallest
    step that a float has: (e⁻, …] then holds e.
    """

    def edge(value: int) -> float:
        return float(np.nextafter(in_seconds(value, unit), 0.0))

    buckets = (
        (edge(low), edge(hdr.get_highest_equivalent_value(low) + 1), int(count))
        for low, count in zip(*_used(hdr), strict=True)
    )
    return replace(from_buckets(buckets), together=together)
