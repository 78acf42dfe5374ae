"""Stage 2: the probes of a log as plain arrays, from the reader to the decision.

A `ProbeTable` has one row a probe: latency in seconds, status as a code, time of submission in seconds, the log's own
columns as codes with labels, and the numbers of job and attempt where the log tells them. Groups are offsets into flat
arrays, so that 10⁵ of them need no object each. `ProbeLog` is its public view, with a DataFrame on request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LatfitError, LogError, MissingColumn, counted, listed, printable
from latfit.numbers import Bools, Floats, Ints
from latfit.sample import CENSORED as CENSORED
from latfit.sample import COMPLETED as COMPLETED
from latfit.sample import FAILED as FAILED
from latfit.sample import LOST as LOST
from latfit.sample import STATUSES as STATUSES
from latfit.sample import LatencySample, Tally, clock_resolution
from latfit.units import parse_duration

CANONICAL = ("submitted", "latency", "status")
# columns by which a table that `convert` wrote says that its latencies are waits in a queue, or run times of work
MEASURES = {"queue": "is_queue_wait", "work": "is_run_time"}
OWN_STATUS = "log_status"  # the log's own word for what completed: 200, 404
ONLY_COMPLETED = (
    "the column log_status is known only of what completed: groups by it would be without what was lost; where it "
    "matters, analyze shows the decision of each"
)
SHOWN_REFUSALS = 1000
A_MONDAY = 4 * 86400.0  # 1970-01-05: windows of a week begin on Mondays
UNKNOWN_GROUP = "unknown"  # the group of empty cells and unknown times

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
        return [{"line": refusal.line, "reason": refusal.reason} for refusal in self.first]

    def __add__(self, other: Refusals) -> Refusals:
        reasons = Counter(self.reasons) + Counter(other.reasons)
        return Refusals(self.count + other.count, dict(reasons), (self.first + other.first)[:SHOWN_REFUSALS])


def skipped_notes(skipped: Mapping[str, int]) -> list[str]:
    """What was left out, with its count.

    >>> skipped_notes({"lines without a request": 1, "directives": 4})
    ['skipped 1 line without a request', 'skipped 4 directives']
    """
    words = ((count, *what.partition(" ")) for what, count in skipped.items())
    return [f"skipped {counted(count, noun.removesuffix('s'))}{space}{rest}" for count, noun, space, rest in words]


@dataclass(frozen=True)
class LogFacts:
    """What the reader knows of a log beside its probes.

    Attributes
    ----------
    path, format : where the log is, and the format that read it.
    refused : rows that were not taken, with reasons.
    skipped : counts of records that are not probes, such as steps of a job.
    notes, advice : the guesses made, and what to do about refused rows, as sentences.
    kind : what a row is: one of the `jobs` of a batch system, or one of the `probes` (requests count as such).
    queue : whether the latency is a wait in a queue, where resubmitting loses the place.
    work : whether the latency is the run time of work that a retry does again.
    unchosen : how many rows `where`, `since` and `until` leave out.
    has_outcomes : whether the log tells how a probe ended.
    as_lost : how many rows without a usable latency are read as lost.
    unit, unit_evidence : the unit of the latencies as logged, and the evidence for it: the `option` of the user, the
        column's `name`, its `cells`, the `times` beside it, the `format`, or a sentence.
    columns : the role of each column that has one, and why: the name to (role, reason).
    outcome_columns : further columns that may tell how a probe ended, by their names and cells.
    reading_options : the options that it was read with, as they are written on a command line.
    """

    path: str
    format: str
    refused: Refusals = Refusals()
    skipped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: str = "probes"
    queue: bool = False
    work: bool = False
    advice: tuple[str, ...] = ()
    unchosen: int = 0
    has_outcomes: bool = True
    as_lost: int = 0
    unit: str | None = None
    unit_evidence: str = ""
    columns: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    outcome_columns: tuple[str, ...] = ()
    reading_options: str = ""

    def __add__(self, other: LogFacts) -> LogFacts:
        def joined(some: str, more: str) -> str:
            return some if more in some.split(", ") else f"{some}, {more}"

        return LogFacts(
            path=joined(self.path, other.path),
            format=joined(self.format, other.format),
            refused=self.refused + other.refused,
            skipped=dict(Counter(self.skipped) + Counter(other.skipped)),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
            kind="jobs" if "jobs" in (self.kind, other.kind) else self.kind,
            advice=tuple(dict.fromkeys(self.advice + other.advice)),
            unchosen=self.unchosen + other.unchosen,
            has_outcomes=self.has_outcomes and other.has_outcomes,
            as_lost=self.as_lost + other.as_lost,
            columns={**other.columns, **self.columns},
            outcome_columns=tuple(dict.fromkeys(self.outcome_columns + other.outcome_columns)),
            unit_evidence=self.unit_evidence or other.unit_evidence,
            **{
                name: getattr(self, name) or getattr(other, name)
                for name in ("queue", "work", "unit", "reading_options")
            },
        )


@dataclass(frozen=True, eq=False)
class Column:
    """One of the log's own columns: the cell of row i is `labels[codes[i]]`, and empty where the code is −1.

    Labels may repeat, as those of several chunks do, until `distinct` makes them one a value.
    """

    name: str
    codes: NDArray[Any]  # of any signed integer type
    labels: pd.Index[Any]

    @classmethod
    def of(cls, name: str, cells: Any) -> Column:
        """From the cells of a column: categories as they are, anything else with a label a row."""
        plain = pd.Series(cells)
        if isinstance(plain.dtype, pd.CategoricalDtype):
            return cls(name, plain.cat.codes.to_numpy(), plain.cat.categories)
        return cls(name, np.arange(len(plain), dtype=np.int32), pd.Index(plain, dtype=plain.dtype))

    @classmethod
    def concat(cls, name: str, parts: Sequence[Column | int]) -> Column:
        """The cells of several parts; a number stands for that many empty cells."""
        codes, labels, start = [], [], 0
        for part in parts:
            if isinstance(part, int):
                codes.append(np.full(part, -1, dtype=np.int32))
                continue
            codes.append(np.where(part.codes < 0, -1, part.codes.astype(np.int32) + np.int32(start)))
            labels.append(pd.Series(part.labels))
            start += len(part.labels)
        together = pd.concat(labels, ignore_index=True)
        return cls(name, np.concatenate(codes), pd.Index(together, dtype=together.dtype))

    def take(self, rows: Ints | Bools | slice) -> Column:
        return Column(self.name, self.codes[rows], self.labels)

    def cells(self) -> pd.Series[Any]:
        """The cells: words as categories, numbers and anything else as they are."""
        if isinstance(self.labels.dtype, pd.StringDtype) and len(self.labels) < self.codes.size:
            column = self.distinct()
            return pd.Series(pd.Categorical.from_codes(column.codes, categories=column.labels))
        if (self.codes >= 0).all():
            return pd.Series(self.labels.take(self.codes))
        return pd.Series(self.labels).reset_index(drop=True).reindex(self.codes).reset_index(drop=True)

    def distinct(self) -> Column:
        """The same with one label a value; missing values among the labels become empty cells."""
        new, labels = pd.factorize(self.labels)
        if len(labels) == len(self.labels):
            return self
        return Column(self.name, np.append(new, -1)[self.codes], pd.Index(labels, dtype=self.labels.dtype))

    def as_text(self, *, merge_ids: bool = False) -> Column:
        """The values that occur as text, sorted, with the group `unknown` for empty cells.

        With `merge_ids`, paths of which most occur once are merged without their ids; names that repeat stay apart.
        """
        column = self.distinct()
        text = pd.Series(column.labels).astype("string")
        if merge_ids and 2 * np.unique(column.codes).size > column.codes.size:
            text = text.map(without_ids, na_action="ignore")
        words = [*text, UNKNOWN_GROUP]
        codes = np.where(column.codes < 0, len(words) - 1, column.codes)
        used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
        place = np.zeros(len(words), dtype=np.int64)
        place[used], labels = pd.factorize(pd.Index([words[at] for at in used], dtype="string"), sort=True)
        return Column(self.name, place[codes], labels.astype("str"))


def without_ids(text: str) -> str:
    """A path or an address without its query, and with `*` for ids in it; any other text as it is.

    >>> without_ids("https://a.b/users/17/files/3f2a9c00-aaaa-4bbb-8ccc-123456789abc?page=2"), without_ids("ce1?")
    ('https://a.b/users/*/files/*', 'ce1?')
    """
    if not re.match(r"/|\w+://", text):
        return text
    return re.sub(r"(?<=/)(\d+|(?=\D*\d)[0-9a-fA-F-]{8,})(?=/|$)", "*", re.split("[?#]", text, maxsplit=1)[0])


@dataclass(frozen=True, eq=False)
class Groups:
    """Which rows of a table each group has: `order[offsets[g]:offsets[g + 1]]`, in the order of the table."""

    keys: Sequence[Key]
    order: Ints
    offsets: Ints

    @classmethod
    def of_codes(cls, codes: NDArray[Any], keys: Sequence[Key]) -> Groups:
        """The groups of rows that have the codes 0…len(keys) − 1; some may be empty."""
        order = np.argsort(codes, kind="stable")
        return cls(keys, order, np.searchsorted(codes[order], np.arange(len(keys) + 1)))

    def __iter__(self) -> Iterator[Ints]:
        return (self.order[start:end] for start, end in pairwise(self.offsets.tolist()))


@dataclass(frozen=True, eq=False)
class ProbeTable:
    """One row a probe, in the order of the log, or of submission after `ordered`.

    Attributes
    ----------
    latency : seconds; NaN where a lost probe has none.
    status : codes of `STATUSES`.
    submitted : seconds since 1970, NaN where unknown; None where the log has no times.
    columns : the log's own columns, or what evidence makes of them.
    job, attempt : numbers of the jobs, and of their attempts from 1; None where a job has only one attempt.
    facts : what the reader knows of the log.
    clock : the step of the clock, where a larger table tells it.
    """

    latency: Floats
    status: Codes
    submitted: Floats | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    job: Ints | None = None
    attempt: Ints | None = None
    facts: LogFacts = LogFacts("", "")
    clock: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", np.asarray(self.status, dtype=np.int8))

    @classmethod
    def of_sample(cls, sample: LatencySample) -> ProbeTable:
        """A row for each probe of a sample, of which nothing but the latencies is known."""
        parts = [tally.expand() for tally in (sample.completed, sample.failed, sample.censored)]
        parts.append(np.full(sample.lost, np.nan))
        status = np.repeat(np.arange(4, dtype=np.int8), [part.size for part in parts])
        table = cls(np.concatenate(parts), status, clock=sample.resolution)
        table.__dict__["sample"] = sample
        return table

    @property
    def n(self) -> int:
        return int(self.latency.size)

    @cached_property
    def sample(self) -> LatencySample:
        """The same probes without their order."""
        sample = tallied(self.latency, self.status)
        step = clock_resolution([sample.completed, sample.failed]) if self.clock is None else self.clock
        return replace(sample, resolution=step)

    @property
    def resolution(self) -> float:
        return self.sample.resolution if self.clock is None else self.clock

    def take(self, rows: Ints | Bools | slice) -> ProbeTable:
        """Some of the probes; a slice is a view."""
        taken: dict[str, Any] = {"columns": {name: column.take(rows) for name, column in self.columns.items()}}
        for name in ("latency", "status", "submitted", "job", "attempt"):
            array = getattr(self, name)
            taken[name] = None if array is None else array[rows]
        return replace(self, **taken)

    def ordered(self) -> ProbeTable:
        """The same in the order of submission, unknown times last."""
        if self.submitted is None or np.isnan(self.submitted).all():
            return replace(self, submitted=None)
        if (self.submitted[1:] >= self.submitted[:-1]).all():
            return self
        return self.take(np.argsort(self.submitted, kind="stable")).sharing(self)

    def sharing(self, other: ProbeTable) -> ProbeTable:
        """Take over the sample, if it is known, of a table with the same probes in another order."""
        if "sample" in other.__dict__:
            self.__dict__["sample"] = other.sample
        return self

    def with_failed(self, treat_as: str) -> ProbeTable:
        """Failures read as `retry` (as they are), `completed` or `lost`."""
        codes = {"completed": COMPLETED, "lost": LOST}
        return self.with_status(self.status == FAILED, codes[treat_as]) if treat_as in codes else self

    def with_status(self, rows: Bools, code: int) -> ProbeTable:
        return replace(self, status=np.where(rows, np.int8(code), self.status)) if rows.any() else self

    @cached_property
    def ranks(self) -> Floats:
        """The ranks of the times to completion (∞ for what did not complete), ties at their mean."""
        return mean_ranks(np.where(self.status == COMPLETED, self.latency, np.inf))

    @property
    def lost(self) -> Bools:
        """Which probes did not return within what was seen."""
        return np.asarray((self.status == CENSORED) | (self.status == LOST))

    @classmethod
    def concat(cls, parts: Sequence[ProbeTable]) -> ProbeTable:
        """The probes of several tables; a column that one of them lacks is empty there. Jobs stay apart."""
        first, *others = parts
        if not others:
            return first
        facts = reduce(lambda facts, part: facts if part.facts is facts else facts + part.facts, others, first.facts)
        kept = [part for part in parts if part.n] or [first]
        names = dict.fromkeys(name for part in kept for name in part.columns)
        columns = {name: Column.concat(name, [part.columns.get(name, part.n) for part in kept]) for name in names}
        jobs = [part.job for part in kept if part.job is not None]
        attempts = [part.attempt for part in kept if part.attempt is not None]
        numbered = len(jobs) == len(attempts) == len(kept)
        before = np.cumsum([0, *(int(each.max(initial=-1)) + 1 for each in jobs)]).tolist()
        times = [np.full(part.n, np.nan) if part.submitted is None else part.submitted for part in kept]
        clocks = [part.clock for part in kept if part.clock is not None]
        return cls(
            latency=np.concatenate([part.latency for part in kept]),
            status=np.concatenate([part.status for part in kept]),
            submitted=np.concatenate(times) if any(part.submitted is not None for part in kept) else None,
            columns=columns,
            job=np.concatenate([job + start for job, start in zip(jobs, before, strict=False)]) if numbered else None,
            attempt=np.concatenate(attempts) if numbered else None,
            facts=facts,
            clock=min(clocks) if len(clocks) == len(kept) else None,
        )

    def group_by(self, by: Sequence[str], window: str | None = None) -> Groups:
        """The groups by the values of the columns `by` and by the beginnings of time windows, sorted by name."""
        if OWN_STATUS in by:
            raise LogError(ONLY_COMPLETED)
        for name in by:
            if name not in self.columns:
                have = listed(name for name in self.columns if name != OWN_STATUS) or "none"
                raise MissingColumn(f"{self.facts.path}: there is no column {name!r} to group by; there are: {have}")
        columns = [self.columns[name].as_text(merge_ids=True) for name in by]
        if window is not None:
            columns.append(_windows(self.submitted, window).as_text())
        if not columns:
            return Groups([()], np.arange(self.n), np.array([0, self.n]))
        codes = np.zeros(self.n, dtype=np.int64)
        for column in columns:
            codes = np.unique(codes * len(column.labels) + column.codes, return_inverse=True)[1]
        first = np.unique(codes, return_index=True)[1]
        labels = [column.labels.to_numpy()[column.codes[first]].tolist() for column in columns]
        return Groups.of_codes(codes, list(zip(*labels, strict=True)))

    def parts(self, groups: Groups) -> Iterator[ProbeTable]:
        """The table of each group: views of one table that is sorted by group."""
        whole = self.take(groups.order)
        return (whole.take(slice(start, end)) for start, end in pairwise(groups.offsets.tolist()))


def mean_ranks(values: Floats) -> Floats:
    """Ranks from 1, ties at their mean."""
    order = np.argsort(values)
    ordered = values[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    ends = np.append(starts[1:], values.size)
    ranks = np.empty(values.size)
    ranks[order] = np.repeat((starts + ends + 1) / 2, ends - starts)
    return ranks


def tallied(latency: Floats, status: Codes) -> LatencySample:
    """The sample of some rows, without a resolution."""
    completed, failed, censored = (Tally.of(latency[status == code]) for code in (COMPLETED, FAILED, CENSORED))
    return LatencySample(completed, failed, censored, lost=int(np.count_nonzero(status == LOST)))


def _windows(submitted: Floats | None, window: str) -> Column:
    """The beginning of the time window that each submission falls into, as ISO text; weeks begin on Mondays."""
    try:
        seconds = parse_duration(window)
    except LatfitError as error:
        raise LogError(f"{window!r} is not a time window: {error}") from error
    if seconds < 1 or seconds % 1 or seconds > 1e9:
        raise LogError(f"{window!r} is not a time window: it must be of whole seconds, for example 90s, 1h, 1d or 7d")
    if submitted is None or np.isnan(submitted).all():
        raise LogError("the log does not say when its probes were submitted, so it has no time windows")
    starts = A_MONDAY + np.floor((submitted - A_MONDAY) / seconds) * seconds
    codes, values = pd.factorize(starts)
    text = np.datetime_as_string(values.astype(np.int64).astype("datetime64[s]"), timezone="UTC")
    return Column("window", codes, pd.Index(text, dtype="str"))


@dataclass(frozen=True, eq=False, repr=False)
class ProbeLog:
    """One row a probe: `submitted` (UTC or NaT), `latency` (s), `status`, and the log's own columns.

    completed: it came back after `latency`. failed: it came back, or was known to be dead, after `latency`, without a
    usable result. censored: still out after `latency`. lost: known never to return. `table` has the rows as arrays.

    Examples
    --------
    >>> import latfit
    >>> log = latfit.example_log()
    >>> log.counts, log.resolution, list(log.frame.columns)[:3]
    ({'completed': 2084, 'failed': 0, 'censored': 53, 'lost': 0}, 1.0, ['submitted', 'latency', 'status'])
    """

    table: ProbeTable

    @property
    def facts(self) -> LogFacts:
        """What is to be said of the log beside its probes."""
        return self.table.facts

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as a DataFrame, made when it is first asked for."""
        table = self.table
        when = np.full(table.n, np.nan) if table.submitted is None else table.submitted
        micro = np.full(table.n, "NaT", dtype="datetime64[us]")
        timed = np.isfinite(when)
        micro[timed] = np.rint(when[timed] * 1e6).astype(np.int64).astype("datetime64[us]")
        data: dict[str, object] = {
            "submitted": pd.Series(micro).dt.tz_localize("UTC"),
            "latency": table.latency,
            "status": pd.Categorical.from_codes(table.status, categories=pd.Index(STATUSES)),
        }
        return pd.DataFrame(data | {name: column.cells() for name, column in table.columns.items()})

    def __repr__(self) -> str:
        outcomes = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count) or "none"
        refused = f", {counted(self.facts.refused.count, 'row')} refused" if self.facts.refused.count else ""
        probes = counted(self.table.n, "probe")
        return f"<ProbeLog {self.facts.path!r} ({self.facts.format}): {probes}, {outcomes}{refused}>"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(printable(note))}</li>" for note in self.facts.notes)
        rows = ProbeLog(self.table.take(slice(5))).frame.to_html(index=False, border=0)
        return f"<p>{escape(printable(repr(self)[1:-1]))}</p>{f'<ul>{notes}</ul>' if notes else ''}{rows}"

    def to_frame(self) -> pd.DataFrame:
        """The table as a data frame of its own, which may be changed."""
        return self.frame.copy()

    @property
    def counts(self) -> dict[str, int]:
        """How many probes have each status."""
        return dict(zip(STATUSES, np.bincount(self.table.status, minlength=4).tolist(), strict=True))

    @property
    def resolution(self) -> float:
        """The smallest step of the clock that measured, in seconds."""
        return self.table.resolution

    def sample(self, *, cutoff: float | None = None, failed: str = "retry") -> LatencySample:
        """The latencies with their counts; what is out at `cutoff` becomes censored at it."""
        sample = self.table.sample.with_failed(failed)
        return sample if cutoff is None else sample.cut(cutoff)

    def groups(self, by: str | Sequence[str] = (), *, window: str | None = None) -> dict[Key, ProbeLog]:
        """One log for each value of the columns `by` and each time window, in sorted order."""
        if not self.table.n:
            return {}
        groups = self.table.group_by([by] if isinstance(by, str) else by, window)
        return {key: ProbeLog(part) for key, part in zip(groups.keys, self.table.parts(groups), strict=True)}

    def samples(self, by: str | Sequence[str] = (), *, window: str | None = None) -> dict[Key, LatencySample]:
        """One sample for each group, all with the clock of the whole log."""
        step = self.resolution
        return {key: replace(log.table, clock=step).sample for key, log in self.groups(by, window=window).items()}
