"""Prometheus' text format and OpenMetrics: the classic histograms of a scrape, native ones, and its counters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from latfit.buckets import Histogram, from_cumulative
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Key, Series
from latfit.logs.native import native_buckets
from latfit.logs.source import Source
from latfit.units import UNIT_WORDS, in_seconds

QUOTED = r'"(?:[^"\\]|\\.)*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:.]*)?\s*(?:\{{((?:[^\"{{}}]|{QUOTED})*)\}})?\s*(\{{[^{{}}]*\}}|\S+)")
LABEL = re.compile(rf"\s*(?:([\w.:]+|{QUOTED})\s*=\s*)?({QUOTED})\s*(?:,|$)")
TOLD = re.compile(r"# (TYPE|UNIT|HELP) (\S+) ?(\S*)")
ENDINGS = ("_bucket", "_sum", "_count")
MAX_SERIES = 200_000


class _Sample(NamedTuple):
    """One line: a name, labels and the text of its value."""

    name: str
    labels: dict[str, str]
    value: str


@dataclass
class _Found:
    """What was read so far of one series: counts by the upper end as it is written, their sum and their number."""

    labels: dict[str, str]
    cumulative: dict[float, float] = field(default_factory=dict)
    total: float | None = None
    count: float | None = None
    native: Histogram | None = None


@register
class Prometheus(HistogramFormat):
    """A scrape: NAME_bucket{le="…"} are counts at or below le; +Inf is there, NAME_sum and NAME_count may be."""

    name = "prometheus"
    by_line = False
    description = "Prometheus text or OpenMetrics: the histograms of a scrape, and its counters"
    rank = 15

    def sniff(self, head: str) -> bool:
        """By a TYPE or HELP line, or a bucket."""
        lines = [line for line in head.lstrip().split("\n")[:20] if line.strip()]
        return any(TOLD.match(line) for line in lines) or bool(
            lines and re.match(r'[a-zA-Z_:][\w:]*_bucket\{[^#]*le="[^"]*"[^#]*\} ', lines[0])
        )

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        """All histograms and counters; other metrics are passed over."""
        scrape = _Scrape(source.name)
        for block in source.blocks():
            for line, text in enumerate(block.lines(), start=block.first_line):
                try:
                    scrape.take(text)
                except (ValueError, SampleError) as problem:
                    raise LogError(f"{source.name}: line {line}: {problem}") from problem
        if not scrape.histograms:
            summaries = sorted(name for name, kind in scrape.types.items() if kind == "summary")
            told = f"; its summaries ({listed(summaries)}) are quantiles, which say too little" if summaries else ""
            raise LogError(f"{source.name}: there is no histogram in this scrape{told}")
        return scrape.log(self.name, unit)


class _Scrape:
    """The lines of one scrape, taken one after the other."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.types: dict[str, str] = {}
        self.units: dict[str, str] = {}
        self.histograms: dict[Key, _Found] = {}
        self.counters: list[Series] = []

    def take(self, text: str) -> None:
        """One line: a comment, a sample of a histogram, or another sample."""
        if not text.strip():
            return
        if text.startswith("#"):
            if told := TOLD.match(text):
                {"TYPE": self.types, "UNIT": self.units}.get(told[1], {})[told[2]] = told[3]
            return
        name, labels, value = parse_sample(text)
        le = labels.pop("le", None)
        base, ending = _split(name)
        if value.startswith("{"):
            self._series(name, labels).native = native_histogram(value)
        elif ending == "_bucket" and le is not None:
            found = self._series(base, labels)
            end = float(le)
            if end in found.cumulative:
                raise ValueError(f"the bucket le={le!r} of {base} is there twice")
            found.cumulative[end] = float(value)
        elif ending in ("_sum", "_count") and self._series_known(base, labels):
            found = self._series(base, labels)
            setattr(found, "total" if ending == "_sum" else "count", float(value))
        elif self.types.get(name) == "counter" or name.endswith("_total"):
            self.counters.append(Series(name, labels, float(value)))
        if len(self.histograms) + len(self.counters) > MAX_SERIES:
            raise ValueError(f"there are more than {MAX_SERIES} series here: leave out those that do not matter")

    def _series_known(self, base: str, labels: dict[str, str]) -> bool:
        return self.types.get(base) == "histogram" or (base, tuple(sorted(labels.items()))) in self.histograms

    def _series(self, base: str, labels: dict[str, str]) -> _Found:
        return self.histograms.setdefault((base, tuple(sorted(labels.items()))), _Found(labels))

    def log(self, format: str, unit: str | None) -> HistogramLog:  # noqa: A002
        """What was taken, in seconds."""
        notes: dict[str, None] = {}
        series = []
        for (base, _), found in self.histograms.items():
            used, note = (unit, "") if unit else _unit(base, self.units)
            if note:
                notes[note] = None
            try:
                histogram, note = _histogram(found, used)
            except SampleError as problem:
                raise LogError(f"{self.path}: {base}{_shown(found.labels)}: {problem}") from problem
            if note:
                notes[f"{base}: {note}"] = None
            series.append(Series(base, found.labels, histogram))
        return HistogramLog(self.path, format, tuple(series), tuple(self.counters), tuple(notes))


def parse_sample(text: str) -> _Sample:
    """The name, labels and value of a line; time stamps and exemplars are left out."""
    match = SAMPLE.match(text)
    if match is None or not (match[1] or match[2]):
        raise ValueError(f"{text[:60]!r} is not a sample of the form NAME{{LABELS}} VALUE")
    name, labels, at = match[1] or "", {}, 0
    inside = match[2] or ""
    while at < len(inside.rstrip(" ,")):
        one = LABEL.match(inside, at)
        if one is None:
            raise ValueError(f'{inside[at : at + 60]!r} is not a label of the form NAME="VALUE"')
        if one[1] is None:
            name = name or _text(one[2])  # OpenMetrics writes names with unusual characters inside the braces
        else:
            labels[_text(one[1])] = _text(one[2])
        at = one.end()
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
    spans = [
        tuple(map(int, span.split(":"))) for span in fields.get("positive_spans", "[]").strip("[]").split(",") if span
    ]
    deltas = [int(delta) for delta in fields.get("positive_deltas", "[]").strip("[]").split(",") if delta]
    if any(len(span) != 2 or span[1] < 0 for span in spans) or sum(span[1] for span in spans) != len(deltas):
        raise ValueError("a native histogram whose spans and deltas do not match")
    indices: list[int] = []
    at = 0
    for offset, length in spans:
        at += offset
        indices.extend(range(at, at + length))
        at += length
    zero = int(fields.get("zero_count", 0)), float(fields.get("zero_threshold", 0))
    found = native_buckets(indices, np.cumsum(deltas, dtype=np.int64), int(fields["schema"]), zero=zero)
    if found.returned != int(fields["count"]):
        raise ValueError(f"a native histogram of {fields['count']} latencies has {found.returned} in its buckets")
    total = float(fields["sum"]) if "sum" in fields else np.nan
    return found.with_outcomes(latency_sum=total) if np.isfinite(total) else found


def _histogram(found: _Found, unit: str) -> tuple[Histogram, str]:
    """The histogram of a series in seconds, and a note where its sum is of no use."""
    if found.native is not None and not found.cumulative:
        return found.native.in_unit(unit), ""
    if not found.cumulative:
        raise SampleError("it has no buckets: a sum and a count say only the mean")
    ends = sorted(found.cumulative)
    histogram = from_cumulative(ends, [found.cumulative[end] for end in ends]).in_unit(unit)
    if found.count is not None and found.count != histogram.returned:
        raise SampleError(f"the count is {found.count:g}, but the bucket le=+Inf has {histogram.returned}")
    if found.total is None or not np.isfinite(found.total):
        return histogram, ""
    try:
        return histogram.with_outcomes(latency_sum=in_seconds(found.total, unit)), ""
    except SampleError as problem:
        return histogram, f"the sum is not used: {problem}"


def _split(name: str) -> tuple[str, str]:
    """A sample's metric and its ending, where it has that of a histogram."""
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    return name.removesuffix(ending), ending


def _unit(base: str, units: dict[str, str]) -> tuple[str, str]:
    """Seconds, unless the metric says otherwise, and a note where that was guessed."""
    told = units.get(base, "") or base.removesuffix("_total").rsplit("_", 1)[-1]
    if told in UNIT_WORDS and len(told) > 1:  # a single letter at the end of a name says nothing
        unit = UNIT_WORDS[told]
        return unit, "" if unit == "s" else f"the buckets of {base} are in {unit}"
    return "s", f"the buckets of {base} are taken to be in seconds; --unit says otherwise"


def _text(quoted: str) -> str:
    """What a quoted text means; one without quotes is itself."""
    if not quoted.startswith('"'):
        return quoted
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], quoted[1:-1])


def _shown(labels: dict[str, str]) -> str:
    return "{" + listed(f"{key}={value}" for key, value in labels.items()) + "}" if labels else ""
