"""Histograms as text: a scrape of Prometheus or OpenMetrics with its counters, and CSV of le and counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.delimited import head_fields, split_record
from latfit.logs.formats import register
from latfit.logs.histogram_format import (
    HistogramFormat,
    HistogramLog,
    Key,
    Series,
    native_buckets,
    with_sum,
)
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import split_name
from latfit.units import UNIT_WORDS

QUOTED = r'"(?:[^"\\]|\\.)*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:.]*)?\s*(?:\{{((?:[^\"{{}}]|{QUOTED})*)\}})?\s*(\{{[^{{}}]*\}}|\S+)")
SAMPLE_LABEL = re.compile(rf"\s*(?:([\w.:]+|{QUOTED})\s*=\s*)?({QUOTED})\s*(?:,|$)")
METADATA = re.compile(r"# (TYPE|UNIT|HELP) (\S+) ?(\S*)")
MAX_SERIES = 200_000

COUNTS = ("count", "cumulative", "per_bucket")
MAX_COUNT = 2**53  # beyond, floats do not count


class _Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: str


@dataclass
class _Read:
    """What was read so far of one series: counts by the upper end as it is written, their sum and their number."""

    labels: dict[str, str]
    cumulative: dict[float, float] = field(default_factory=dict)
    total: float | None = None
    count: float | None = None
    native: Histogram | None = None

    def histogram(self, unit: str) -> tuple[Histogram, str]:
        if self.native is not None and not self.cumulative:
            return self.native.in_unit(unit), ""
        if not self.cumulative:
            raise SampleError("it has no buckets: a sum and a count say only the mean")
        ends = sorted(self.cumulative)
        histogram = from_cumulative(ends, [self.cumulative[end] for end in ends]).in_unit(unit)
        if self.count is not None and self.count != histogram.returned:
            raise SampleError(f"the count is {self.count:g}, but the bucket le=+Inf has {histogram.returned}")
        return with_sum(histogram, self.total, unit)


@register
class Prometheus(HistogramFormat):
    """A scrape: NAME_bucket{le="…"} are counts at or below le; +Inf is there, NAME_sum and NAME_count may be."""

    name = "prometheus"
    description = "Prometheus text or OpenMetrics: the histograms of a scrape, and its counters"
    rank = 15

    def sniff(self, head: str) -> bool:
        lines = [line for line in head.lstrip().split("\n")[:20] if line.strip()]
        return any(METADATA.match(line) for line in lines) or bool(
            lines and re.match(r'[a-zA-Z_:][\w:]*_bucket\{[^#]*le="[^"]*"[^#]*\} ', lines[0])
        )

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        scrape = _Scrape()
        for number, line in numbered_lines(source):
            try:
                scrape.add(line)
            except (ValueError, SampleError) as problem:
                raise LogError(f"{source.name}: line {number}: {problem}") from problem
        if not scrape.histograms:
            summaries = sorted(name for name, kind in scrape.types.items() if kind == "summary")
            why = f"; its summaries ({listed(summaries)}) are quantiles, which say too little" if summaries else ""
            raise LogError(f"{source.name}: there is no histogram in this scrape{why}")
        notes: dict[str, None] = {}
        histograms = []
        for (base, _), read in scrape.histograms.items():
            used, guess = (unit, "") if unit else _unit(base, scrape.units)
            try:
                histogram, problem_with_sum = read.histogram(used)
            except SampleError as problem:
                labels = "{" + listed(f"{key}={value}" for key, value in read.labels.items()) + "}"
                raise LogError(f"{source.name}: {base}{labels if read.labels else ''}: {problem}") from problem
            notes |= dict.fromkeys(filter(None, [guess, problem_with_sum and f"{base}: {problem_with_sum}"]))
            histograms.append(Series(base, read.labels, histogram))
        return HistogramLog(source.name, self.name, tuple(histograms), tuple(scrape.counters), tuple(notes))


class _Scrape:
    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.histograms: dict[Key, _Read] = {}
        self.counters: list[Series] = []

    def add(self, text: str) -> None:
        if text.startswith("#"):
            if match := METADATA.match(text):
                {"TYPE": self.types, "UNIT": self.units}.get(match[1], {})[match[2]] = match[3]
            return
        name, labels, value = parse_sample(text)
        le = labels.pop("le", None)
        base, ending = name, ""
        if match := re.fullmatch(r"(.*)(_bucket|_sum|_count)", name, re.DOTALL):
            base, ending = match.groups()
        key = base, tuple(sorted(labels.items()))
        if value.startswith("{"):
            self.histograms.setdefault((name, key[1]), _Read(labels)).native = native_histogram(value)
        elif ending == "_bucket" and le is not None:
            cumulative = self.histograms.setdefault(key, _Read(labels)).cumulative
            if float(le) in cumulative:
                raise ValueError(f"the bucket le={le!r} of {base} is there twice")
            cumulative[float(le)] = float(value)
        elif ending in ("_sum", "_count") and (self.types.get(base) == "histogram" or key in self.histograms):
            setattr(
                self.histograms.setdefault(key, _Read(labels)), {"_sum": "total"}.get(ending, "count"), float(value)
            )
        elif self.types.get(name) == "counter" or name.endswith("_total"):
            self.counters.append(Series(name, labels, float(value)))
        if len(self.histograms) + len(self.counters) > MAX_SERIES:
            raise ValueError(f"there are more than {MAX_SERIES} series here: leave out those that do not matter")


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


def native_histogram(text: str) -> Histogram:
    """A native histogram as OpenMetrics writes it: {count:24,sum:100,schema:0,positive_spans:[0:2],…}.

    The span offset:length places its buckets by index; deltas are the differences between their counts.
    """
    fields = dict(re.findall(r"(\w+):(\[[^\]]*\]|[^,{}\[\]]+)", text))
    for name in ("count", "schema"):
        if name not in fields:
            raise ValueError(f"a native histogram without {name}: {text[:60]!r}")
    if fields.get("negative_deltas", "[]") != "[]":
        raise ValueError("a native histogram with buckets below 0 is not one of latencies")
    spans, deltas = (
        [item for item in fields.get(f"positive_{name}", "").strip("[]").split(",") if item]
        for name in ("spans", "deltas")
    )
    indices: list[int] = []
    at = 0
    for span in spans:
        offset, length = map(int, span.split(":"))
        indices.extend(range(at + offset, at + offset + length))
        at += offset + length
    if len(indices) != len(deltas):
        raise ValueError("a native histogram whose spans and deltas do not match")
    zero = int(fields.get("zero_count", 0)), float(fields.get("zero_threshold", 0))
    counts = np.cumsum([int(delta) for delta in deltas], dtype=np.int64)
    histogram = native_buckets(indices, counts, int(fields["schema"]), zero=zero)
    if histogram.returned != int(fields["count"]):
        raise ValueError(f"a native histogram of {fields['count']} latencies has {histogram.returned} in its buckets")
    total = float(fields.get("sum", np.nan))
    return histogram.with_outcomes(latency_sum=total) if np.isfinite(total) else histogram


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
