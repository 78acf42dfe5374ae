"""What a format of histograms is: counts in buckets, in series with labels, and counters beside them.

A histogram is not a log of probes: commands that need probes refuse it and say which ones take it.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from latfit.buckets import Histogram
from latfit.errors import LogError, SampleError, listed
from latfit.logs.formats import Condition, Format, ReadOptions
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.vocabulary import OutcomeWords, split_name, weigh, word_of

NAME = "name"  # the label under which --where finds a metric's own name
Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Series:
    """One histogram of a file, or one counter: the metric's name, its labels, and what it holds."""

    name: str
    labels: Mapping[str, str]
    value: Histogram | float

    @property
    def key(self) -> Key:
        """What identifies it in another scrape."""
        return self.name, tuple(sorted(self.labels.items()))

    def meets(self, condition: Condition) -> bool:
        """Whether its label, or its name, is as a condition says."""
        return condition.is_met(self.name if condition.column == NAME else self.labels.get(condition.column))


@dataclass(frozen=True)
class HistogramLog:
    """All histograms and counters of one or several files, in file order, and what was guessed of them."""

    path: str
    format: str
    histograms: tuple[Series, ...]
    counters: tuple[Series, ...] = ()
    notes: tuple[str, ...] = field(default=())

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
        before = {one.key: one.value for one in (*earlier.histograms, *earlier.counters)}
        try:
            later = [
                tuple(Series(one.name, one.labels, _less(one.value, before.get(one.key))) for one in several)
                for several in (self.histograms, self.counters)
            ]
        except SampleError as problem:
            raise LogError(f"{self.path} and {earlier.path}: {problem}") from problem
        return HistogramLog(self.path, self.format, later[0], later[1], self.notes)

    def select(self, where: Sequence[str]) -> HistogramLog:
        """The series that meet all conditions `LABEL=VALUE`, `LABEL!=VALUE` and `LABEL~REGEX`.

        `name` is the metric's name. Counters are chosen by the labels that they have.
        """
        conditions = [Condition.parse(text) for text in where]
        chosen = tuple(one for one in self.histograms if all(one.meets(condition) for condition in conditions))
        if not chosen:
            known = listed(sorted({f"{one.name}{_braces(one.labels)}" for one in self.histograms}))
            raise LogError(f"{self.path}: no histogram meets {listed(where)}; there are: {known}")
        counters = tuple(
            one for one in self.counters if all(one.meets(test) for test in conditions if test.column in one.labels)
        )
        return replace(self, histograms=chosen, counters=counters)

    def histogram(self) -> tuple[Histogram, list[str]]:
        """All series of the one metric added up, and notes on what was taken."""
        chosen = self.histograms
        names = sorted({one.name for one in chosen})
        if len(names) > 1:
            raise LogError(
                f"{self.path}: there are {len(names)} histograms here: {listed(names)}; choose one, for example with "
                f"--where {NAME}={names[0]}"
            )
        done, told, notes = *_by_outcome(chosen), [*self.notes]
        parts = [(_braces(one.labels) or self.path, one.value) for one in done if isinstance(one.value, Histogram)]
        try:
            total = _total([value for _, value in parts])
        except SampleError as problem:
            raise LogError(f"{self.path}: {names[0]}: {problem}. Choose some of them with --where") from problem
        if not total.returned:
            raise LogError(f"{self.path}: the histogram {names[0] or 'in it'} is empty: nothing was counted")
        if names[0]:
            notes.append(f"the latencies are those of {names[0]}")
        for status, several in told.items():
            counted = sum(one.value.n for one in several if isinstance(one.value, Histogram))
            total = total.with_outcomes(**{status: counted})
            shown = listed(sorted({_braces(one.labels) for one in several}))
            notes.append(f"{counted} of {shown} count as {status}: their labels say that they have no result")
        if len(done) > 1:
            varied = sorted({label for one in done for label, value in one.labels.items()
                             if any(other.labels.get(label) != value for other in done)})  # fmt: skip
            of = f" ({listed(varied)} differ)" if varied else ""
            notes.append(f"{len(done)} series are added up{of}; choose some with --where LABEL=VALUE")
        return replace(total, parts=tuple(parts)), notes

    def counter(self, name: str) -> int:
        """The sum of a counter, written as NAME or NAME{label="value",…}."""
        wanted, _, braces = name.partition("{")
        labels = dict(LABEL.findall(braces))
        found = [
            one.value
            for one in self.counters
            if one.name in (wanted, f"{wanted}_total")
            and all(one.labels.get(key) == value for key, value in labels.items())
        ]
        if not found:
            known = listed(sorted({one.name for one in self.counters})) or "none"
            raise LogError(f"{self.path}: there is no counter {name!r}; there are: {known}")
        total = sum(float(value) for value in found if not isinstance(value, Histogram))
        if not 0 <= total < 2**53 or total != int(total):
            raise LogError(f"{self.path}: the counter {name} is {total:g}; a count must be a whole number")
        return int(total)


LABEL = re.compile(r'([^\s=,{"]+)\s*=\s*"?([^",}]*)"?')


class HistogramFormat(Format):
    """A format whose files hold histograms; `parse` reads them."""

    uses = ("unit",)

    @abstractmethod
    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        """The histograms of a file; `unit` is that of its bounds where the user says it."""

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """There are no probes here."""
        raise LogError(HistogramLog(source.name, self.name, ()).not_probes())


def _braces(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else ""


def _by_outcome(chosen: Sequence[Series]) -> tuple[list[Series], dict[str, list[Series]]]:
    """The series of what completed, and the others as `failed` and `lost`, where labels tell; all if none completed."""
    rest, found = list(chosen), dict[str, list[Series]]()
    for label in dict.fromkeys(label for one in chosen for label in one.labels):
        if weigh("status", split_name(label)[0])[0] < 5:
            continue
        words = OutcomeWords(label, {}, {word_of(one.labels[label]) for one in chosen if label in one.labels})
        kept = []
        for one in rest:
            status = words.outcome(word_of(one.labels[label])) if label in one.labels else None
            if status in ("failed", "censored", "lost"):
                found.setdefault("failed" if status == "failed" else "lost", []).append(one)
            else:
                kept.append(one)
        rest = kept
    return (rest, found) if rest else (list(chosen), {})


def _total(several: Sequence[Histogram]) -> Histogram:
    """The sum of some histograms; the empty ones may have any buckets."""
    counted = [one for one in several if one.returned] or several[:1]
    total = counted[0]
    for other in counted[1:]:
        total = total + other
    return total


def _less(later: Histogram | float, earlier: Histogram | float | None) -> Histogram | float:
    """What a series or a counter has gained."""
    if earlier is None:
        return later
    if isinstance(later, Histogram) and isinstance(earlier, Histogram):
        return later - earlier
    if isinstance(later, Histogram) or isinstance(earlier, Histogram):
        raise SampleError("a series is a histogram in one scrape and a counter in the other")
    if later < earlier:
        raise SampleError("a counter fell between the scrapes: the process was restarted, or their order is wrong")
    return later - earlier
