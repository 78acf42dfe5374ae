"""A log in the order of its submissions, as arrays: what every check of the evidence looks at."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from latfit.evidence.jobs import attempts_of
from latfit.logs import ProbeLog
from latfit.logs.columns import NO_OUTCOMES
from latfit.logs.table import CANONICAL, CENSORED, COMPLETED, FAILED, LOST, STATUSES, Key, outcomes, tallied
from latfit.logs.words import NOTHING, is_blank, words_apart
from latfit.numbers import Bools, Floats, Ints
from latfit.sample import LatencySample

BINS = 8  # quantile bins of a column of numbers
FEW_NUMBERS = 12  # a column of at most this many distinct numbers is one of categories
MAX_COLUMNS = 40
MOSTLY_BAD = 0.8  # of the empty cells of a column are those of probes that did not complete: they follow it
MOST = 200_000  # probes of a longer log that are looked at, where more would tell nothing new
KEYS = re.compile(r"(?i)^(job|job_?name|url|uri|path|endpoint|instance|instance_id|request|key|name|host|site|target)$")
# known only when the probe is over, so that they follow the latency instead of explaining it
AFTERWARDS = re.compile(
    r"(?i)(^|_|\b)(latency|elapsed|duration|run_?time|wall_?time|end|ended|finish\w*|complete\w*|start|started|eligible|"
    r"\w*status|\w*state|code|conclusion|result|outcome|error\w*|exception|reason|message|failure\w*|success|exit\w*|"
    r"signal|run|wait|think|connect|idle_?time|response\w*|sent\w*|received|grp_?threads|all_?threads|"
    r"t[qwcrt]|timers?|nodelist|node|exec_host|alloc\w*|cpu_?time|avg_?cpu|used\w*|mem|max_?rss|updated\w*|"
    r"attempt|retries|termination\w*|beconn|feconn|srvconn|actconn|term\w*|level|severity|msg|try_?number|up|alive|"
    r"ttft|\w*tokens?|usage|completions|finish_?reason|ret|rc|\w+_(ms|msec|us|usec|ns|secs?|seconds)|"
    r"billed\w*|queue_?time|dtime|ctime|ttime|time_\w+|start_?transfer|name_?lookup|pre_?transfer)($|_|\b)"
)
# known only afterwards too, but the same when the same is asked for again: counted for what completed
FIXED = re.compile(r"(?i)(^|_|\b)(log_status|bytes|rows)($|_|\b)")
# parts of a name that differ from request to request: queries, ids, numbers
OWN_PARTS = re.compile(r"\?.*|(?<![a-z])(?=[a-z-]{0,40}\d)[0-9a-f-]{6,}(?![a-z])|\d+", re.IGNORECASE)
SOME, LONGEST_NAME = 20_000, 200  # cells of such a column that are looked at first, and characters of a cell
WORDS_LEFT = 0.8  # of the cells of a column, at least
UNTOLD = (*NOTHING, "unknown", "<nosrv>")
# words of outcomes among the groups of a column: it follows the probe too
OUTCOMES = re.compile(r"(?i)(^|[\W_])(ok|success|succeeded|time_?out|timed_?out|failed|failure|error|lost)($|[\W_])")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the log as groups: a code for each probe, and the groups' names."""

    name: str
    codes: Ints
    labels: tuple[str, ...]

    def take(self, rows: Ints) -> Column:
        """The column for some of the probes."""
        return replace(self, codes=self.codes[rows])


@dataclass(frozen=True, eq=False)
class Observations:
    """Probes in the order of submission (of the log, where that is not known).

    `submitted` are seconds, None where the log does not say; `status` holds the codes of `STATUSES`. `columns` are
    those of the log that may explain a latency; `queue` says that latencies are waits in a queue, `has_outcomes`
    that the log has a word on how a probe ended, `unit_guessed` that nothing said that latencies are
    in seconds. `job` and `attempt` number the jobs and their attempts, where the log has several attempts a job.
    """

    latency: Floats
    status: Ints
    submitted: Floats | None = None
    columns: Mapping[str, Column] = field(default_factory=dict)
    queue: bool = False
    has_outcomes: bool = True
    unit_guessed: bool = False
    resolution: float = 0.0
    job: Ints | None = None
    attempt: Ints | None = None

    @property
    def n(self) -> int:
        """How many probes there are."""
        return int(self.latency.size)

    @cached_property
    def sample(self) -> LatencySample:
        """The same probes without their order."""
        return replace(tallied(self.latency, self.status.astype(np.int8)), resolution=self.resolution)

    def take(self, rows: Ints) -> Observations:
        """Some of the probes, in their order."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        when = None if self.submitted is None else self.submitted[rows]
        job, attempt = (None if each is None else each[rows] for each in (self.job, self.attempt))
        return replace(self, latency=self.latency[rows], status=self.status[rows], submitted=when, columns=columns,
                       job=job, attempt=attempt)  # fmt: skip

    def failing_at(self, low: float, high: float) -> Observations:
        """The same with those censored between `low` and `high` read as failed there."""
        given_up = (self.status == CENSORED) & (self.latency >= low) & (self.latency <= high)
        return replace(self, status=np.where(given_up, FAILED, self.status))

    def losing(self) -> Observations:
        """The same with everything censored read as lost."""
        return replace(self, status=np.where(self.status == CENSORED, LOST, self.status))

    def cut_at(self, value: float) -> Observations:
        """The same with completions at exactly `value` read as censored."""
        return replace(
            self, status=np.where((self.latency == value) & (self.status == COMPLETED), CENSORED, self.status)
        )

    def with_failed(self, treat_as: str) -> Observations:
        """Failures read as `retry` (as they are), `completed` or `lost`."""
        code = {"completed": COMPLETED, "lost": LOST}.get(treat_as, FAILED)
        return replace(self, status=np.where(self.status == FAILED, code, self.status))

    def times_to_completion(self) -> Floats:
        """The latency of what completed, ∞ for all else: what is ranked."""
        return np.where(self.status == COMPLETED, self.latency, np.inf)

    @cached_property
    def ranks(self) -> Floats:
        """The ranks of the times to completion, ties at their mean."""
        return np.asarray(pd.Series(self.times_to_completion()).rank(), dtype=np.float64)

    def thinned(self) -> Observations:
        """At most 200 000 of the probes, evenly spread."""
        return self if self.n <= MOST else self.take(evenly(self.n))

    @classmethod
    def concat(cls, parts: Sequence[Observations]) -> Observations:
        """The probes of several logs; a column counts where all of them have it."""
        first = parts[0]
        if len(parts) == 1:
            return first
        times = [np.full(p.n, np.nan) if p.submitted is None else p.submitted for p in parts]
        together = np.concatenate(times)
        columns = {name: _joined([p.columns[name] for p in parts])
                   for name in first.columns if all(name in p.columns for p in parts)}  # fmt: skip
        return cls(
            latency=np.concatenate([p.latency for p in parts]),
            status=np.concatenate([p.status for p in parts]),
            submitted=None if np.isnan(together).all() else together,
            columns=columns,
            queue=any(p.queue for p in parts),
            has_outcomes=all(p.has_outcomes for p in parts),
            unit_guessed=any(p.unit_guessed for p in parts),
            resolution=min(p.resolution for p in parts),
            **_jobs_of_all(parts),
        )

    @property
    def lost(self) -> Bools:
        """Which probes did not return within what was seen."""
        return np.asarray((self.status == CENSORED) | (self.status == LOST))

    def ordered(self) -> Observations:
        """The same in the order of submission, unknown times last."""
        if self.submitted is None or np.isnan(self.submitted).all():
            return replace(self, submitted=None)
        order = np.argsort(self.submitted, kind="stable")
        return self if (np.diff(order) == 1).all() else self.take(order)

    @classmethod
    def of(cls, log: ProbeLog) -> Observations:
        """The probes of a log in the order of submission."""
        return cls.as_logged(log).ordered()

    @classmethod
    def as_logged(cls, log: ProbeLog, *, columns: bool = True) -> Observations:
        """The probes of a log in its own order."""
        latency, codes = outcomes(log.frame)
        when = log.frame["submitted"]
        submitted = None
        if when.notna().any():
            micro = when.astype("datetime64[us, UTC]").astype("int64").to_numpy()
            submitted = np.where(when.isna().to_numpy(), np.nan, micro / 1e6)
            submitted = None if np.ptp(submitted[np.isfinite(submitted)]) == 0 else submitted
        tried = attempts_of(log) if columns else None
        apart = () if tried is None else tried.columns
        return cls(
            latency=latency,
            status=codes.astype(np.int64),
            submitted=submitted,
            columns=explaining(log.frame, apart) if columns else {},
            queue=log.facts.queue,
            has_outcomes=NO_OUTCOMES not in log.facts.notes,
            unit_guessed=log.facts.unit_guessed,
            resolution=log.resolution,
            job=None if tried is None else tried.job,
            attempt=None if tried is None else tried.number,
        )


def evenly(n: int, most: int = MOST) -> Ints:
    """Rows evenly spread over n, at most so many: a random one of each stretch, since logs may have a period."""
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most + 1).astype(np.int64)
    return np.asarray(edges[:-1] + (np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64))


def group_column(log: ProbeLog, by: str) -> Ints:
    """A code for each probe of a log, in the order of submission, by the values of a column."""
    text = log.keys([by], None)[0]
    whole = Observations.as_logged(log, columns=False)
    named = replace(whole, columns={by: _categories(by, text)}).ordered()
    return named.columns[by].codes


def _joined(parts: Sequence[Column]) -> Column:
    """One column of several logs, equal labels being equal groups."""
    labels = {label: at for at, label in enumerate(dict.fromkeys(label for part in parts for label in part.labels))}
    codes = [np.array([labels[label] for label in part.labels], dtype=np.int64)[part.codes] for part in parts]
    return Column(parts[0].name, np.concatenate(codes), tuple(labels))


def _jobs_of_all(parts: Sequence[Observations]) -> dict[str, Ints]:
    """The jobs and attempts of several logs, where all tell them; those of one log are no jobs of another."""
    jobs, attempts = [p.job for p in parts if p.job is not None], [p.attempt for p in parts if p.attempt is not None]
    if len(jobs) < len(parts) or len(attempts) < len(parts):
        return {}
    before = np.cumsum([0, *(int(job.max(initial=-1)) + 1 for job in jobs)])
    apart = [job + first for job, first in zip(jobs, before.tolist(), strict=False)]
    return {"job": np.concatenate(apart), "attempt": np.concatenate(attempts)}


def explaining(frame: pd.DataFrame, apart: Sequence[str] = ()) -> dict[str, Column]:
    """The columns of a log that may explain a latency: those that are known before it, and have groups.

    Those `apart` name the job and number its attempts.
    """
    extras = [str(name) for name in frame.columns if name not in CANONICAL and name not in apart]
    found: dict[str, Column] = {}
    for name in extras[: 4 * MAX_COLUMNS]:
        fixed = is_fixed(name)
        if len(found) < MAX_COLUMNS and (KEYS.match(name) or fixed or not AFTERWARDS.search(words_apart(name))):
            column = as_groups(name, _as_asked(frame[name], frame.get("status"), fixed=fixed))
            if column is not None and (
                KEYS.match(name) or fixed or not any(map(OUTCOMES.search, column.labels[:MAX_COLUMNS]))
            ):
                found[name] = column
    return found


def is_fixed(name: str) -> bool:
    """Whether a column shows only in the answer, and is the same when the same is asked for again."""
    return FIXED.search(words_apart(name)) is not None


def _as_asked(values: pd.Series[Any], status: pd.Series[Any] | None, *, fixed: bool = False) -> pd.Series[Any]:
    """A column in which nothing, or a mark for it, stands mostly for probes that did not complete: filled in.

    It is the outcome that left the cell empty. What these probes asked for is not known: they are dealt out to the
    groups in proportion, at random. So are all that did not complete where the column is `fixed` by what was asked
    for, and yet known only from the answer.
    """
    bad = np.zeros(0, dtype=bool) if status is None else (status != STATUSES[COMPLETED]).to_numpy(dtype=bool)
    if fixed and bad.any():
        values = values.astype("object").where(~bad, None)
    if not bad.any() or not is_blank(values[bad], UNTOLD).any():
        return values
    blank = is_blank(values, UNTOLD)
    if blank.all() or bad[blank].mean() < MOSTLY_BAD:
        return values
    known = np.flatnonzero(~blank)
    rows = np.arange(len(values))
    rows[blank] = np.random.default_rng(0).choice(known, np.count_nonzero(blank))
    return values.iloc[rows].reset_index(drop=True)


def rows_by(codes: Ints, size: int) -> list[Ints]:
    """Which rows have each of the codes 0…size−1, in their order."""
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(size + 1))
    return [order[a:b] for a, b in pairwise(edges.tolist())]


def group_rows(log: ProbeLog, by: Sequence[str], window: str | None = None) -> tuple[list[Key], list[Ints]]:
    """The names of the groups of a log, sorted, and which of its rows each has, in their order."""
    columns = [_categories(str(at), text) for at, text in enumerate(log.keys(by, window))]
    if not columns:
        return [()], [np.arange(len(log.frame))]
    codes = np.zeros(len(log.frame), dtype=np.int64)
    for column in columns:
        codes = np.unique(codes * len(column.labels) + column.codes, return_inverse=True)[1]
    rows = rows_by(codes, int(codes.max(initial=-1)) + 1)
    return [tuple(column.labels[column.codes[mine[0]]] for column in columns) for mine in rows], rows


def as_groups(name: str, values: pd.Series[Any]) -> Column | None:
    """A column as groups: its categories, or quantile bins of its numbers; None where it has nothing to tell.

    It has nothing to tell where it is constant, a time, or different in every row.
    """
    if values.dtype.kind in "Mm":
        return None
    if values.dtype.kind in "fiu" or (values.dtype.kind not in "b" and _numeric(values)):
        some = _numbers(values.iloc[evenly(len(values))])
        known = some[np.isfinite(some)]
        if np.unique(known).size > FEW_NUMBERS:
            if KEYS.match(name) and _repeats(values):
                return _categories(name, values)
            return _binned(name, values, known)
    if _repeats(values):
        return _categories(name, values)
    alike = _without_own_parts(values)
    return _categories(name, alike) if alike is not None and _repeats(alike) else None


def _without_own_parts(values: pd.Series[Any]) -> pd.Series[Any] | None:
    """Paths, queries and names without what is the request's own, where words are left in most of them."""
    if values.dtype.kind in "fiub":
        return None
    some = _alike(values.iloc[evenly(len(values), SOME)])
    words = some.str.contains("[A-Za-z]", na=False).mean() > WORDS_LEFT
    if not words or not _repeats(some):
        return None
    return some if len(some) == len(values) else _alike(values)


def _alike(values: pd.Series[Any]) -> pd.Series[Any]:
    """Names without queries, ids and numbers; those of times of day are none."""
    text = values.astype("string").str.slice(0, LONGEST_NAME)
    return text.mask(text.str.contains(r"\d:\d\d", na=False)).str.replace(OWN_PARTS, "*", regex=True)


def _numbers(values: pd.Series[Any]) -> Floats:
    """The numbers of a column, NaN for what is none."""
    if isinstance(values.dtype, pd.StringDtype):
        try:
            return np.asarray(pa.array(values).cast(pa.float64()), dtype=np.float64)
        except pa.ArrowInvalid:  # one cell is no number
            pass
    return pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)


def _numeric(values: pd.Series[Any]) -> bool:
    some = values.dropna().head(200)
    try:
        return len(some) > 0 and bool(pd.to_numeric(some, errors="coerce").notna().all())
    except OverflowError:  # whole numbers beyond all floats, in JSON
        return False


def _repeats(values: pd.Series[Any]) -> bool:
    """Whether there are groups at all: more than one value, and most of the rows share theirs with another."""
    try:
        distinct = values.nunique(dropna=False)
    except TypeError:  # cells of a frame that are lists
        return False
    return 1 < distinct <= 0.6 * len(values)


def _categories(name: str, values: pd.Series[Any]) -> Column:
    if not isinstance(values.dtype, pd.CategoricalDtype):
        codes, labels = pd.factorize(values.astype("string").fillna("unknown"), sort=True)
        return Column(name, codes.astype(np.int64), tuple(map(str, labels)))
    words = [*values.cat.categories.astype("string"), "unknown"]  # each is made text once, and none is the last
    at = np.where(values.cat.codes < 0, len(words) - 1, values.cat.codes)
    used = np.flatnonzero(np.bincount(at, minlength=len(words)))
    codes, labels = pd.factorize(pd.Index([words[k] for k in used], dtype="string"), sort=True)
    place = np.zeros(len(words), dtype=np.int64)
    place[used] = codes
    return Column(name, place[at], tuple(map(str, labels)))


def _binned(name: str, values: pd.Series[Any], known: Floats) -> Column | None:
    """Quantile bins of `known`, some of the numbers of the column."""
    rising = np.abs(np.corrcoef(np.arange(known.size), pd.Series(known).rank())[0, 1]) if known.size > 2 else 1.0
    if rising > 0.9:  # a counter or a clock: it tells the time, which is looked at elsewhere
        return None
    edges = np.unique(np.quantile(known, np.linspace(0, 1, BINS + 1)[1:-1]))
    numbers = _numbers(values)
    codes = np.where(np.isfinite(numbers), np.searchsorted(edges, numbers), edges.size + 1)
    ends = ["", *(f"{edge:g}" for edge in edges), ""]
    names = [f"{a or '…'} to {b or '…'}" for a, b in pairwise(ends)]
    return Column(name, codes.astype(np.int64), (*names, "unknown"))
