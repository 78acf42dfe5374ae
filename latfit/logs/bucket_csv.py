"""Histograms as CSV: `le,count` (or `le,per_bucket`) or `le,cumulative` (at or below), and a row for +Inf."""

from __future__ import annotations

import numpy as np

from latfit.buckets import from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.delimited import head_fields, split_record
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import split_name

COUNTS = ("count", "cumulative", "per_bucket")
MAX_COUNT = 2**53  # beyond, floats do not count


@register
class BucketCsv(HistogramFormat):
    """A row a bucket; other columns are labels, and each combination of them is a histogram of its own."""

    name = "histogram-csv"
    description = "CSV of a histogram: le,count or le,cumulative, with a row le=+Inf"
    rank = 30

    def sniff(self, head: str) -> bool:
        return _delimiter(head) is not None

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        delimiter = _delimiter(source.text)
        names, written = _names(source.text, delimiter or ",")
        kind = next((name for name in COUNTS if name in names), None)
        if delimiter is None or kind is None:
            raise LogError(f"{source.name}: line 1 must name le and count or cumulative; it has: {listed(names)}")
        read: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}  # counts by bound, by labels
        rows = numbered_lines(source)
        next(rows)
        for number, line in rows:
            where = f"{source.name}: line {number}"
            fields = [value.strip() for value in split_record(line, delimiter)[1]]
            if len(fields) != len(names):
                raise LogError(f"{where} has {len(fields)} fields instead of {len(names)}")
            row = dict(zip(names, fields, strict=True))
            buckets = read.setdefault(tuple((key, row[key]) for key in names if key not in ("le", kind)), {})
            end, count = (_number(where, key, row[key]) for key in ("le", kind))
            if abs(count) > MAX_COUNT:
                raise LogError(f"{where}: {count:g} is more than anything can have counted")
            if end in buckets:
                raise LogError(f"{where}: the bucket le={row['le']} is there twice")
            buckets[end] = count
        if not read:
            raise LogError(f"{source.name}: there is a header ({listed(names)}) but no row below it")
        if kind == "count" and all(map(_is_rising, read.values())):
            raise LogError(
                f"{source.name}: no bucket has a smaller count than the one before: call the column count cumulative "
                "if it counts what is at or below le, per_bucket if it counts what is in each bucket"
            )
        series = []
        for labels, buckets in read.items():
            ends = sorted(buckets)
            counts = np.array([buckets[end] for end in ends])
            total = np.cumsum(counts) if kind != "cumulative" and (counts >= 0).all() else counts
            try:
                histogram = from_cumulative(ends, total).in_unit(unit or written or "s")
            except SampleError as problem:
                raise LogError(f"{source.name}: {problem}") from problem
            series.append(Series("", dict(labels), histogram))
        return HistogramLog(source.name, self.name, tuple(series))


def _is_rising(buckets: dict[float, float]) -> bool:
    """Whether these counts, which never fall, might well be cumulative, and would then say something else."""
    counts = [buckets[end] for end in sorted(buckets)]
    return len(counts) > 4 and counts == sorted(counts) and sum(count > 0 for count in counts) > 1


def _names(head: str, delimiter: str) -> tuple[list[str], str | None]:
    """The columns, and the unit that is part of the name of the bounds: le_ms is le, in ms."""
    names, written = [], None
    for name in head_fields(head, delimiter):
        words, unit = split_name(name)
        is_bound = "".join(words) == "le"
        names.append("le" if is_bound else name.lower())
        written = unit if is_bound and written is None else written
    return names, written


def _delimiter(head: str) -> str | None:
    for delimiter in (",", "\t", ";", "|"):
        names, _ = _names(head, delimiter)
        if "le" in names and set(names) & set(COUNTS):
            return delimiter
    return None


def _number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if np.isnan(value):
        raise LogError(f"{where}: {name} is {text[:40]!r}, not a number")
    return value
