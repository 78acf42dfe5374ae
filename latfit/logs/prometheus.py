"""Histograms as text: a scrape of Prometheus or OpenMetrics with its counters, and CSV of le and counts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import Head, register, split_record
from latfit.logs.histogram_format import HistogramFormat, Key, Series, with_sum
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import split_name
from latfit.units import UNIT_WORDS

QUOTED = r'"(?:[^"\\]|\\.)*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:.]*)?\s*(?:\{{((?:[^\"{{}}]|{QUOTED})*)\}})?\s*(\{{[^{{}}]*\}}|\S+)")
SAMPLE_LABEL = re.compile(rf"\s*(?:([\w.:]+|{QUOTED})\s*=\s*)?({QUOTED})\s*(?:,|$)")
METADATA = re.compile(r"# (TYPE|UNIT|HELP) (\S+) ?(\S*)")
MAX_SERIES = 200_000
UNREAD = {
    "summary": "is a summary: quantiles, which say too little",
    "native": "is a native histogram: let it be scraped with classic buckets, too",
}

COUNTS = ("count", "cumulative", "per_bucket")
MAX_COUNT = 2**53  # beyond, floats do not count


class _Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: str


@register
class Prometheus(HistogramFormat):
    """A scrape: NAME_bucket{le="…"} are counts at or below le; +Inf is there, NAME_sum and NAME_count may be."""

    name = "prometheus"
    description = "Prometheus text or OpenMetrics: the histograms of a scrape, and its counters"
    rank = 15
    begins = r'(?:.*\n){0,19}?# (?:TYPE|UNIT|HELP) \S+ ?|[a-zA-Z_:][\w:]*_bucket\{[^#\n]*le="[^"\n]*"[^#\n]*\} '

    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        scrape = _Scrape()
        for number, line in numbered_lines(source):
            try:
                scrape.add(line)
            except ValueError as problem:
                raise LogError(f"line {number}: {problem}") from problem
        if not scrape.histograms:
            others = {kind: sorted(name for name in scrape.types if scrape.types[name] == kind) for kind in UNREAD}
            why = "".join(f"; {listed(names)} {UNREAD[kind]}" for kind, names in others.items() if names)
            raise LogError(f"there is no histogram in this scrape{why}")
        yield from scrape.counters
        for (base, labels), counts in scrape.histograms.items():
            used, guess = (unit, "") if unit else _unit(base, scrape.units)
            try:
                histogram, problem_with_sum = _histogram(counts, used)
            except SampleError as problem:
                braces = "{" + listed(f"{key}={value}" for key, value in labels) + "}"
                raise LogError(f"{base}{braces if labels else ''}: {problem}") from problem
            notes |= dict.fromkeys(filter(None, [guess, problem_with_sum and f"{base}: {problem_with_sum}"]))
            yield Series(base, dict(labels), histogram)


class _Scrape:
    """What was read so far: of each histogram the counts by upper end, and `_sum` and `_count`."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.histograms: dict[Key, dict[float | str, float]] = defaultdict(dict)
        self.counters: list[Series] = []

    def add(self, text: str) -> None:
        if text.startswith("#"):
            if match := METADATA.match(text):
                {"TYPE": self.types, "UNIT": self.units}.get(match[1], {})[match[2]] = match[3]
            return
        name, labels, value = parse_sample(text)
        le = labels.pop("le", None)
        match = re.fullmatch(r"(.*)(_bucket|_sum|_count)", name, re.DOTALL)
        base, ending = match.groups() if match else (name, "")
        key = base, tuple(sorted(labels.items()))
        if value.startswith("{"):
            self.types[name] = "native"
        elif ending == "_bucket" and le is not None:
            if float(le) in self.histograms[key]:
                raise ValueError(f"the bucket le={le!r} of {base} is there twice")
            self.histograms[key][float(le)] = float(value)
        elif ending in ("_sum", "_count") and (self.types.get(base) == "histogram" or key in self.histograms):
            self.histograms[key][ending] = float(value)
        elif self.types.get(name) == "counter" or name.endswith("_total"):
            self.counters.append(Series(name, labels, float(value)))
        if len(self.histograms) + len(self.counters) > MAX_SERIES:
            raise ValueError(f"there are more than {MAX_SERIES} series here: leave out those that do not matter")


def _histogram(counts: dict[float | str, float], unit: str) -> tuple[Histogram, str]:
    total, number = counts.get("_sum"), counts.get("_count")
    ends = sorted(end for end in counts if not isinstance(end, str))
    if not ends:
        raise SampleError("it has no buckets: a sum and a count say only the mean")
    histogram = from_cumulative(ends, [counts[end] for end in ends]).in_unit(unit)
    if number is not None and number != histogram.returned:
        raise SampleError(f"the count is {number:g}, but the bucket le=+Inf has {histogram.returned}")
    return with_sum(histogram, total, unit)


def parse_sample(text: str) -> _Sample:
    """The name, labels and value of a line; time stamps and exemplars are left out."""
    match = SAMPLE.match(text)
    if match is None or not (match[1] or match[2]):
        raise ValueError(f"{text[:60]!r} is not a sample of the form NAME{{LABELS}} VALUE")
    name, labels, at = match[1] or "", {}, 0
    inside = match[2] or ""
    while at < len(inside.rstrip(" ,")):
        label = SAMPLE_LABEL.match(inside, at)
        if label is None:
            raise ValueError(f'{inside[at : at + 60]!r} is not a label of the form NAME="VALUE"')
        if label[1] is None:
            name = name or _text(label[2])  # OpenMetrics writes names with unusual characters inside the braces
        else:
            labels[_text(label[1])] = _text(label[2])
        at = label.end()
    if not name:
        raise ValueError(f"{text[:60]!r} has no name")
    return _Sample(name, labels, match[3])


def _unit(base: str, units: dict[str, str]) -> tuple[str, str]:
    word = units.get(base, "") or base.removesuffix("_total").rsplit("_", 1)[-1]
    if word in UNIT_WORDS and len(word) > 1:  # a single letter at the end of a name says nothing
        unit = UNIT_WORDS[word]
        return unit, "" if unit == "s" else f"the buckets of {base} are in {unit}"
    return "s", f"the buckets of {base} are taken to be in seconds; --unit says otherwise"


def _text(quoted: str) -> str:
    if not quoted.startswith('"'):
        return quoted
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], quoted[1:-1])


@register
class BucketCsv(HistogramFormat):
    """A row a bucket; other columns are labels, and each combination of them is a histogram of its own."""

    name = "histogram-csv"
    description = "CSV of a histogram: le,count or le,cumulative, with a row le=+Inf"
    rank = 30
    begins = r'(?i)(?=(?:.*[,\t;|])?[" ]*(?:count|cumulative|per_bucket)[" ]*(?:[,\t;|\n]|\Z)).*'

    def sniff(self, head: Head) -> bool:
        return "le" in _names(head)[0]

    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        head = Head(source.text)
        delimiter, (names, written) = head.table[0], _names(head)
        kind = next((name for name in COUNTS if name in names), None)
        if "le" not in names or kind is None:
            raise LogError(f"line 1 must name le and count or cumulative; it has: {listed(names)}")
        read: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}  # counts by bound, by labels
        for number, line in islice(numbered_lines(source), 1, None):
            fields = [value.strip() for value in split_record(line, delimiter)[1]]
            if len(fields) != len(names):
                raise LogError(f"line {number} has {len(fields)} fields instead of {len(names)}")
            row = dict(zip(names, fields, strict=True))
            buckets = read.setdefault(tuple((key, row[key]) for key in names if key not in ("le", kind)), {})
            end, count = (_number(number, key, row[key]) for key in ("le", kind))
            if abs(count) > MAX_COUNT:
                raise LogError(f"line {number}: {count:g} is more than anything can have counted")
            if end in buckets:
                raise LogError(f"line {number}: the bucket le={row['le']} is there twice")
            buckets[end] = count
        if not read:
            raise LogError(f"there is a header ({listed(names)}) but no row below it")
        if kind == "count" and all(map(_is_rising, read.values())):
            raise LogError(
                "no bucket has a smaller count than the one before: call the column count cumulative if it counts what "
                "is at or below le, per_bucket if it counts what is in each bucket"
            )
        for labels, buckets in read.items():
            ends = sorted(buckets)
            counts = np.array([buckets[end] for end in ends])
            total = np.cumsum(counts) if kind != "cumulative" and (counts >= 0).all() else counts
            yield Series("", dict(labels), from_cumulative(ends, total).in_unit(unit or written or "s"))


def _is_rising(buckets: dict[float, float]) -> bool:
    """Whether these counts, which never fall, might well be cumulative, and would then say something else."""
    counts = [buckets[end] for end in sorted(buckets)]
    return len(counts) > 4 and counts == sorted(counts) and sum(count > 0 for count in counts) > 1


def _names(head: Head) -> tuple[list[str], str | None]:
    """The columns, and the unit that is part of the name of the bounds: le_ms is le, in ms."""
    names, written = [], None
    for name in head.table[1]:
        words, unit = split_name(name)
        is_bound = "".join(words) == "le"
        names.append("le" if is_bound else name.lower())
        written = unit if is_bound and written is None else written
    return names, written


def _number(line: int, name: str, text: str) -> float:
    with suppress(ValueError):
        if not np.isnan(value := float(text)):
            return value
    raise LogError(f"line {line}: {name} is {text[:40]!r}, not a number")
