"""Histograms as CSV: `le,count` (or `le,per_bucket`) or `le,cumulative` (at or below), and a row for +Inf."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from latfit.buckets import from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.delimited import head_fields, split_record
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.source import Source
from latfit.logs.vocabulary import split_name

COUNTS = ("count", "cumulative", "per_bucket")
Labels = tuple[str, ...]
MOST_COUNTED = 2**53  # beyond, floats do not count


@register
class BucketCsv(HistogramFormat):
    """A row a bucket; other columns are labels, and each combination of them is a histogram of its own."""

    name = "histogram-csv"
    by_line = False
    description = "CSV of a histogram: le,count or le,cumulative, with a row le=+Inf"
    rank = 30

    def sniff(self, head: str) -> bool:
        """By the columns le and count or cumulative."""
        return _delimiter(head) is not None

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        """The rows in any order."""
        delimiter = _delimiter(source.text)
        names, written = _names(source.text, delimiter or ",")
        kind = next((name for name in COUNTS if name in names), None)
        if delimiter is None or kind is None:
            raise LogError(f"{source.name}: line 1 must name le and count or cumulative; it has: {listed(names)}")
        le, at = names.index("le"), names.index(kind)
        labelled = [i for i in range(len(names)) if i not in (le, at)]
        found: dict[Labels, dict[float, float]] = {}
        for line, row in _rows(source, delimiter, len(names)):
            group = found.setdefault(tuple(row[i] for i in labelled), {})
            end, count = _number(source, line, "le", row[le]), _number(source, line, kind, row[at])
            if abs(count) > MOST_COUNTED:
                raise LogError(f"{source.name}: line {line}: {count:g} is more than anything can have counted")
            if end in group:
                raise LogError(f"{source.name}: line {line}: the bucket le={row[le]} is there twice")
            group[end] = count
        if not found:
            raise LogError(f"{source.name}: there is a header ({listed(names)}) but no row below it")
        if kind == "count" and all(_rising(buckets) for buckets in found.values()):
            raise LogError(
                f"{source.name}: no bucket has a smaller count than the one before: call the column count cumulative "
                "if it counts what is at or below le, per_bucket if it counts what is in each bucket"
            )
        series = []
        for labels, buckets in found.items():
            ends = sorted(buckets)
            counts = np.array([buckets[end] for end in ends])
            total = np.cumsum(counts) if kind != "cumulative" and (counts >= 0).all() else counts
            try:
                histogram = from_cumulative(ends, total).in_unit(unit or written or "s")
            except SampleError as problem:
                raise LogError(f"{source.name}: {problem}") from problem
            series.append(Series("", dict(zip([names[i] for i in labelled], labels, strict=True)), histogram))
        return HistogramLog(source.name, self.name, tuple(series))


def _rising(buckets: dict[float, float]) -> bool:
    """Whether these counts, which never fall, might well be cumulative, and would then say something else."""
    counts = [buckets[end] for end in sorted(buckets)]
    return len(counts) > 4 and counts == sorted(counts) and sum(count > 0 for count in counts) > 1


def _names(head: str, delimiter: str) -> tuple[list[str], str | None]:
    """The columns, and the unit that is part of the name of the bounds: le_ms is le, in ms."""
    names = head_fields(head, delimiter)
    plain = [("".join(words), unit) for words, unit in map(split_name, names)]
    written = next((unit for name, unit in plain if name == "le"), None)
    return ["le" if bare == "le" else name.lower() for name, (bare, _) in zip(names, plain, strict=True)], written


def _delimiter(head: str) -> str | None:
    """What separates the columns, if the first line names those of a histogram."""
    for delimiter in (",", "\t", ";", "|"):
        names, _ = _names(head, delimiter)
        if "le" in names and set(names) & set(COUNTS):
            return delimiter
    return None


def _rows(source: Source, delimiter: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """The rows below the header and their lines."""
    header = True
    for block in source.blocks():
        for line, text in enumerate(block.lines(), start=block.first_line):
            if not text.strip():
                continue
            if header:
                header = False
                continue
            row = [value.strip() for value in split_record(text, delimiter)[1]]
            if len(row) != width:
                raise LogError(f"{source.name}: line {line} has {len(row)} fields instead of {width}")
            yield line, row


def _number(source: Source, line: int, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if np.isnan(value):
        raise LogError(f"{source.name}: line {line}: {name} is {text[:40]!r}, not a number")
    return value
