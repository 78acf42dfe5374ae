"""What a format of histograms is: counts in buckets, in series with labels, and counters beside them."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from latfit.buckets import Histogram
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import Condition, Format, ReadOptions
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.vocabulary import OutcomeWords, split_name, weigh, word_of
from latfit.numbers import Ints
from latfit.units import in_seconds

LABEL = re.compile(r'([^\s=,{"]+)\s*=\s*"?([^",}]*)"?')
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Series:
    """One histogram of a file, or one counter: the metric's name, its labels, and what it holds."""

    name: str
    labels: Mapping[str, str]
    value: Histogram | float

    @property
    def key(self) -> Key:
        return self.name, tuple(sorted(self.labels.items()))

    @property
    def braces(self) -> str:
        """The labels as Prometheus writes them; nothing where there are none."""
        return "{" + ",".join(f'{key}="{value}"' for key, value in self.labels.items()) + "}" if self.labels else ""

    def meets(self, condition: Condition) -> bool:
        """Whether its label, or its name (as `name`), is as a condition says."""
        return condition.is_met(self.name if condition.column == "name" else self.labels.get(condition.column))


@dataclass(frozen=True)
class HistogramLog:
    """All histograms and counters of one or several files, in file order, and what was guessed of them."""

    path: str
    format: str
    histograms: tuple[Series, ...]
    counters: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def joined(cls, logs: Sequence[HistogramLog]) -> HistogramLog:
        """The series of several files."""
        first, *others = logs
        if not others:
            return first
        return cls(
            path=f"{first.path} and {len(others)} more",
            format=first.format,
            histograms=tuple(series for log in logs for series in log.histograms),
            counters=tuple(series for log in logs for series in log.counters),
            notes=tuple(dict.fromkeys(note for log in logs for note in log.notes)),
        )

    def not_probes(self) -> str:
        """Why a command that needs probes cannot use it."""
        return (
            f"{self.path}: this is a histogram ({self.format}), not a log of probes; latfit timeout and latfit analyze "
            "take histograms, other commands need the log itself"
        )

    def since(self, earlier: HistogramLog) -> HistogramLog:
        """What happened since an earlier scrape; a series that was not there then began at 0."""
        before = {series.key: series.value for series in (*earlier.histograms, *earlier.counters)}
        try:
            histograms, counters = (
                tuple(replace(series, value=_gained(series.value, before.get(series.key))) for series in several)
                for several in (self.histograms, self.counters)
            )
        except SampleError as problem:
            raise LogError(f"{self.path} and {earlier.path}: {problem}") from problem
        return replace(self, histograms=histograms, counters=counters)

    def select(self, where: Sequence[str]) -> HistogramLog:
        """The series that meet all conditions `LABEL=VALUE`, `LABEL!=VALUE` and `LABEL~REGEX`.

        `name` is the metric's name. Counters are chosen by the labels that they have.
        """
        conditions = [Condition.parse(text) for text in where]
        chosen = tuple(series for series in self.histograms if all(map(series.meets, conditions)))
        if not chosen:
            known = listed(sorted({f"{series.name}{series.braces}" for series in self.histograms}))
            raise LogError(f"{self.path}: no histogram meets {listed(where)}; there are: {known}")
        counters = tuple(
            series
            for series in self.counters
            if all(series.meets(condition) for condition in conditions if condition.column in series.labels)
        )
        return replace(self, histograms=chosen, counters=counters)

    def histogram(self) -> tuple[Histogram, list[str]]:
        """All series of the one metric added up, and notes on what was taken."""
        name, *others = sorted({series.name for series in self.histograms})
        if others:
            raise LogError(
                f"{self.path}: there are {len(others) + 1} histograms here: {listed((name, *others))}; choose one, for "
                f"example with --where name={name}"
            )
        (completed, ended), notes = _by_outcome(self.histograms), [*self.notes]
        parts = [(series.braces or self.path, _buckets(series)) for series in completed]
        filled = [histogram for _, histogram in parts if histogram.returned]  # empty ones may have any buckets
        try:
            total = sum(filled[1:], start=filled[0]) if filled else parts[0][1]
        except SampleError as problem:
            raise LogError(f"{self.path}: {name}: {problem}. Choose some of them with --where") from problem
        if not total.returned:
            raise LogError(f"{self.path}: the histogram {name or 'in it'} is empty: nothing was counted")
        if name:
            notes.append(f"the latencies are those of {name}")
        for status, several in ended.items():
            count = sum(_buckets(series).n for series in several)
            total = total.with_outcomes(**{status: count})
            labels = listed(sorted({series.braces for series in several}))
            notes.append(f"{count} of {labels} count as {status}: their labels say that they have no result")
        if len(completed) > 1:
            pairs = Counter(pair for series in completed for pair in series.labels.items())
            differ = sorted({label for (label, _), count in pairs.items() if count < len(completed)})
            which = f" ({listed(differ)} differ)" if differ else ""
            notes.append(f"{len(completed)} series are added up{which}; choose some with --where LABEL=VALUE")
        return replace(total, parts=tuple(parts)), notes

    def counter(self, name: str) -> int:
        """The sum of a counter, written as NAME or NAME{label="value",…}."""
        wanted, _, braces = name.partition("{")
        labels = set(LABEL.findall(braces))
        values = [
            series.value
            for series in self.counters
            if series.name in (wanted, f"{wanted}_total") and labels <= set(series.labels.items())
        ]
        if not values:
            known = listed(sorted({series.name for series in self.counters})) or "none"
            raise LogError(f"{self.path}: there is no counter {name!r}; there are: {known}")
        total = sum(value for value in values if not isinstance(value, Histogram))
        if not 0 <= total < 2**53 or total != int(total):
            raise LogError(f"{self.path}: the counter {name} is {total:g}; a count must be a whole number")
        return int(total)


class HistogramFormat(Format):
    """A format whose files hold histograms, and perhaps counters, in series."""

    by_line = False
    uses = ("unit",)

    @abstractmethod
    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        """The series of a file; `unit` is that of its bounds where the user says it, `notes` are what was guessed."""

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        notes: dict[str, None] = {}
        try:
            series = list(self.series(source, unit, notes))
        except SampleError as problem:
            raise LogError(str(problem)) from problem
        counters = tuple(each for each in series if not isinstance(each.value, Histogram))
        histograms = tuple(each for each in series if isinstance(each.value, Histogram))
        return HistogramLog(source.name, self.name, histograms, counters, tuple(notes))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        raise LogError(HistogramLog(source.name, self.name, ()).not_probes())


def from_buckets(buckets: Iterable[tuple[float, float, int]]) -> Histogram:
    """A histogram of buckets (low, high, count) that rise; what lies between two of them is empty."""
    edges, counts = [0.0], list[int]()
    for low, high, count in buckets:
        if low > edges[-1]:
            edges.append(low)
            counts.append(0)
        edges.append(high)
        counts.append(count)
    return Histogram(np.array(edges if counts else [0.0, 1.0]), np.array(counts or [0]))


def exponential_buckets(
    indices: Sequence[int], counts: Ints, scale: int, *, zero: tuple[int, float] = (0, 0.0)
) -> Histogram:
    """An exponential histogram of OpenTelemetry, or a native one of Prometheus.

    The bucket of index i is (b^(i−1), b^i], b = 2^(2^−scale); empty ones may be left out. `zero` are the count and the
    upper end of the bucket from 0 on; where that end is 0, its latencies join the first bucket.
    """
    if not -10 <= scale <= 20:
        raise SampleError(f"the scale of an exponential histogram is {scale}; it must lie between -10 and 20")
    if (np.asarray(counts) < 0).any() or len(set(indices)) != len(indices) or list(indices) != sorted(indices):
        raise SampleError("the buckets of an exponential histogram must rise, with counts that are not negative")
    near, end = zero
    with np.errstate(over="ignore"):
        buckets = [
            (float(np.exp2((i - 1) * 2.0**-scale)), float(np.exp2(i * 2.0**-scale)), int(n))
            for i, n in zip(indices, counts, strict=True)
            if n
        ]
    if near:
        end = end if end > 0 else buckets[0][0] if buckets else 0.0
        if not end > 0:
            raise SampleError("all latencies of this histogram are 0: the clock is too coarse to tell anything")
        # the bucket around 0 may overlap the first one
        buckets = [(0.0, end, near), *((max(low, end), high, n) for low, high, n in buckets)]
    for low, high, _ in buckets:
        if not (np.isfinite(high) and high > low):
            raise SampleError(f"an exponential bucket reaches from {low:g} to {high:g} s: this is no latency")
    return from_buckets(buckets)


def with_sum(histogram: Histogram, total: float | None, unit: str) -> tuple[Histogram, str]:
    """A histogram with the sum of its latencies in `unit`, and a note where that sum is of no use."""
    if total is None or not np.isfinite(total) or not histogram.returned:
        return histogram, ""
    try:
        return histogram.with_outcomes(latency_sum=in_seconds(total, unit)), ""
    except SampleError as problem:
        return histogram, f"the sum is not used: {problem}"


def _buckets(series: Series) -> Histogram:
    assert isinstance(series.value, Histogram)
    return series.value


def _by_outcome(chosen: Sequence[Series]) -> tuple[list[Series], dict[str, list[Series]]]:
    """The series of what completed, and the others as `failed` and `lost`, where labels tell; all if none completed."""
    completed, ended = list(chosen), dict[str, list[Series]]()
    for label in dict.fromkeys(label for series in chosen for label in series.labels):
        if weigh("status", split_name(label)[0])[0] < 5:
            continue
        words = OutcomeWords(label, {}, {word_of(series.labels[label]) for series in chosen if label in series.labels})
        rest, completed = completed, []
        for series in rest:
            status = words.outcome(word_of(series.labels[label])) if label in series.labels else None
            if status in ("failed", "censored", "lost"):
                ended.setdefault("failed" if status == "failed" else "lost", []).append(series)
            else:
                completed.append(series)
    return (completed, ended) if completed else (list(chosen), {})


def _gained(later: Histogram | float, earlier: Histogram | float | None) -> Histogram | float:
    if earlier is None:
        return later
    if isinstance(later, Histogram) and isinstance(earlier, Histogram):
        return later - earlier
    if isinstance(later, Histogram) or isinstance(earlier, Histogram):
        raise SampleError("a series is a histogram in one scrape and a counter in the other")
    if later < earlier:
        raise SampleError("a counter fell between the scrapes: the process was restarted, or their order is wrong")
    return later - earlier
