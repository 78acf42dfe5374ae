"""The canonical table of a log, and what was refused on the way to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LatfitError, LogError, MissingColumn, counted, listed, printable
from latfit.numbers import Floats
from latfit.sample import LatencySample, Tally, clock_resolution
from latfit.units import parse_duration

STATUSES = ("completed", "failed", "censored", "lost")
COMPLETED, FAILED, CENSORED, LOST = range(4)
CANONICAL = ("submitted", "latency", "status")
ONLY_COMPLETED = (
    "the column log_status is known only of what completed: groups by it would be without what was lost; where it "
    "matters, analyze shows the decision of each"
)
OWN_STATUS = "log_status"  # the log's own word for what completed: 200, 404
SHOWN_REFUSALS = 1000
SHOWN_ROWS = 5  # of a log, in a notebook
MAX_WINDOW = 1e9
A_MONDAY = pd.Timestamp("1970-01-05", tz="UTC")

Key = tuple[str, ...]
Codes = NDArray[np.int8]


@dataclass(frozen=True)
class Refusal:
    """A row that was not taken: where it stands, and why."""

    line: int
    reason: str
    path: str = ""


@dataclass(frozen=True)
class Refusals:
    """How many rows were refused, for which reasons, and the first of them."""

    count: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    first: tuple[Refusal, ...] = ()

    @property
    def earliest(self) -> Refusal:
        """The refused row that stands first in its log."""
        return min(self.first, key=lambda refusal: refusal.line)

    def to_list(self) -> list[dict[str, Any]]:
        """The first refusals as plain values."""
        return [{"line": refusal.line, "reason": refusal.reason} for refusal in self.first]

    def __add__(self, other: Refusals) -> Refusals:
        reasons = Counter(self.reasons) + Counter(other.reasons)
        return Refusals(self.count + other.count, dict(reasons), (self.first + other.first)[:SHOWN_REFUSALS])


@dataclass(frozen=True)
class LogFacts:
    """What is to be said of a log beside its probes.

    `skipped` counts records that are not probes (steps of a job); `notes` are the guesses made,
    `advice` what to do about refused rows; `unchosen` counts the rows that `where`, `since` and `until` leave out.
    `kind` says what the rows are: `jobs` of a batch system or `probes` (requests count as such);
    `queue` whether they wait in a queue, in which resubmitting loses the place; `unit_guessed` that nothing said that
    the latencies are in seconds.
    """

    path: str
    format: str
    refused: Refusals = Refusals()
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: str = "probes"
    queue: bool = False
    advice: tuple[str, ...] = ()
    unchosen: int = 0
    unit_guessed: bool = False

    def __add__(self, other: LogFacts) -> LogFacts:
        return LogFacts(
            path=_joined(self.path, other.path),
            format=_joined(self.format, other.format),
            refused=self.refused + other.refused,
            skipped=dict(Counter(self.skipped) + Counter(other.skipped)),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
            kind="jobs" if "jobs" in (self.kind, other.kind) else self.kind,
            queue=self.queue or other.queue,
            advice=tuple(dict.fromkeys(self.advice + other.advice)),
            unchosen=self.unchosen + other.unchosen,
            unit_guessed=self.unit_guessed or other.unit_guessed,
        )


def _joined(some: str, more: str) -> str:
    """Both names, each once."""
    return some if more in some.split(", ") else f"{some}, {more}"


@dataclass(frozen=True, eq=False)
class ProbeLog:
    """One row a probe: `submitted` (UTC or NaT), `latency` (s), `status`, and the log's own columns.

    completed: it came back after `latency`. failed: it came back, or was known to be dead, after
    `latency`, without a usable result. censored: still out after `latency`. lost: known never to return.

    Examples
    --------
    >>> import latfit
    >>> log = latfit.example_log()
    >>> log.counts, log.resolution, list(log.frame.columns)[:3]
    ({'completed': 2084, 'failed': 0, 'censored': 53, 'lost': 0}, 1.0, ['submitted', 'latency', 'status'])
    """

    frame: pd.DataFrame
    facts: LogFacts

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count) or "none"
        refused = f", {counted(self.facts.refused.count, 'row')} refused" if self.facts.refused.count else ""
        probes = counted(len(self.frame), "probe")
        return f"<ProbeLog {self.facts.path!r} ({self.facts.format}): {probes}, {told}{refused}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the counts, the notes, and the first rows."""
        notes = "".join(f"<li>{escape(printable(note))}</li>" for note in self.facts.notes)
        rows = self.frame.head(SHOWN_ROWS).to_html(index=False, border=0)
        return f"<p>{escape(printable(repr(self)[1:-1]))}</p>{f'<ul>{notes}</ul>' if notes else ''}{rows}"

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame of its own, which may be changed."""
        return self.frame.copy()

    @property
    def counts(self) -> dict[str, int]:
        """How many probes have each status."""
        codes = self.frame["status"].cat.codes.to_numpy()
        return dict(zip(STATUSES, np.bincount(codes, minlength=4).tolist(), strict=True))

    @property
    def resolution(self) -> float:
        """The smallest step of the clock that measured, in seconds."""
        sample = tallied(*outcomes(self.frame))
        return clock_resolution([sample.completed, sample.failed])

    def sample(self, *, cutoff: float | None = None, failed: str = "retry") -> LatencySample:
        """The latencies with their counts; what is out at `cutoff` becomes censored at it."""
        sample = replace(tallied(*outcomes(self.frame)), resolution=self.resolution).with_failed(failed)
        return sample if cutoff is None else sample.cut(cutoff)

    def groups(self, by: str | Sequence[str] = (), *, window: str | None = None) -> dict[Key, ProbeLog]:
        """One log for each value of the columns `by` and each time window, in sorted order."""
        return {key: ProbeLog(frame, self.facts) for key, frame in self.split(by, window)}

    def samples(self, by: str | Sequence[str] = (), *, window: str | None = None) -> dict[Key, LatencySample]:
        """One sample for each group, all with the clock of the whole log."""
        step = self.resolution
        groups = self.split(by, window)
        return {key: replace(tallied(*outcomes(frame)), resolution=step) for key, frame in groups}

    def split(self, by: str | Sequence[str], window: str | None) -> Iterator[tuple[Key, pd.DataFrame]]:
        """The rows of each group, by the values of the columns and the beginning of the window."""
        if not len(self.frame):
            return
        keys = self.keys([by] if isinstance(by, str) else by, window)
        if not keys:
            yield (), self.frame
            return
        keys = [key.astype("string").fillna("unknown") for key in keys]
        for key, frame in self.frame.groupby(keys, sort=True, observed=True):
            yield tuple(map(str, key)), frame

    def keys(self, by: Sequence[str], window: str | None) -> list[pd.Series[Any]]:
        """What names the group of each row: its columns `by`, and the beginning of its window."""
        if OWN_STATUS in by:
            raise LogError(ONLY_COMPLETED)
        for column in by:
            if column not in self.frame:
                known = listed(c for c in self.frame.columns if c not in CANONICAL) or "none"
                raise MissingColumn(f"{self.facts.path}: there is no column {column!r} to group by; there are: {known}")
        keys = [self.frame[column] for column in by]
        return keys if window is None else [*keys, window_starts(self.frame["submitted"], window)]


def outcomes(frame: pd.DataFrame) -> tuple[Floats, Codes]:
    """The latencies of some rows, and the codes of their statuses."""
    latency, codes = frame["latency"], frame["status"].cat.codes
    return np.asarray(latency, dtype=np.float64), np.asarray(codes, dtype=np.int8)


def tallied(latency: Floats, codes: Codes) -> LatencySample:
    """The sample of some rows, without a resolution."""
    done, gone, out = (Tally.of(latency[codes == code]) for code in (COMPLETED, FAILED, CENSORED))
    return LatencySample(done, gone, out, lost=int(np.count_nonzero(codes == LOST)))


@dataclass(frozen=True)
class SampledLog:
    r"""A log read in chunks and kept only as the samples of its groups; `samples[()]` without groups.

    Examples
    --------
    >>> import pathlib, tempfile, latfit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "probes.csv"
    ...     _ = path.write_text("site,latency\na,1\na,2\nb,9\n")
    ...     found = latfit.read_samples(path, by="site")
    >>> {key: sample.n for key, sample in found.samples.items()}
    {('a',): 2, ('b',): 1}
    """

    samples: Mapping[Key, LatencySample]
    by: tuple[str, ...]
    facts: LogFacts

    @property
    def sample(self) -> LatencySample:
        """The sample of the whole log."""
        return LatencySample.sum(self.samples.values())


def window_starts(submitted: pd.Series[Any], window: str) -> pd.Series[Any]:
    """The beginning of the time window that each submission falls into, as ISO text; weeks begin on Mondays."""
    try:
        seconds = parse_duration(window)
    except LatfitError as error:
        raise LogError(f"{window!r} is not a time window: {error}") from error
    if seconds < 1 or seconds % 1 or seconds > MAX_WINDOW:
        raise LogError(f"{window!r} is not a time window: it must be of whole seconds, for example 90s, 1h, 1d or 7d")
    if submitted.isna().all():
        raise LogError("the log does not say when its probes were submitted, so it has no time windows")
    width = pd.Timedelta(seconds=int(seconds))
    number = (submitted - A_MONDAY) // width
    starts = A_MONDAY + number * width
    return starts.dt.strftime("%Y-%m-%dT%H:%M:%SZ").fillna("unknown").rename("window")


def concat(logs: Iterable[ProbeLog]) -> ProbeLog:
    """All probes of several logs in one table."""
    parts = list(logs)
    facts = parts[0].facts
    for part in parts[1:]:
        facts = facts + part.facts
    frames = [part.frame for part in parts if len(part.frame)] or [parts[0].frame]
    frame = frames[0] if len(frames) == 1 else pd.concat(_alike(frames), ignore_index=True)
    return ProbeLog(frame.reset_index(drop=True), facts)


def _alike(frames: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """The same tables, each column of categories with those of all tables: it stays one of codes."""
    found = [frame.copy(deep=False) for frame in frames]
    for name in frames[0].columns:
        columns = [frame[name] for frame in frames if name in frame]
        kinds = {column.dtype for column in columns}
        if len(columns) == len(frames) and len(kinds) > 1 and all(isinstance(k, pd.CategoricalDtype) for k in kinds):
            words = pd.CategoricalDtype(pd.Index(pd.concat([c.cat.categories.to_series() for c in columns]).unique()))
            for frame, column in zip(found, columns, strict=True):
                frame[name] = column.cat.set_categories(words.categories)
    return found
