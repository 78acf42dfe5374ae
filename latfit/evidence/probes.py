"""The probes of a log as every check of the evidence looks at them.

In the order of submission, with the columns that may explain a latency as groups, and with the numbers of jobs and
attempts where the log tells them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from latfit.logs import ProbeLog
from latfit.logs.vocabulary import NOTHING, attempt_column, is_blank, job_columns
from latfit.numbers import Floats, Ints
from latfit.table import COMPLETED, UNKNOWN_GROUP, Column, ProbeTable

EDGES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # quantiles at which a column of numbers is cut
ROWS_OF_AN_ID = 2  # rows for each of the whole numbers of a column, on average: they are names
FEW_NUMBERS = 12  # a column of at most this many distinct numbers is one of categories
MAX_COLUMNS = 40
MOSTLY_DISTINCT = 0.9  # of the rows: a column with more values than that names the rows
MOSTLY_BAD = 0.8  # of the empty cells of a column are those of probes that did not complete: they follow it
MOST = 200_000  # probes of a longer log that are looked at, where more would tell nothing new
# parts of a name that differ from request to request: queries, ids, numbers
OWN_PARTS = re.compile(r"\?.*|(?<![a-z])(?=[a-z-]{0,40}\d)[0-9a-f-]{6,}(?![a-z])|\d+", re.IGNORECASE)
SOME, LONGEST_NAME = 20_000, 200  # cells of such a column that are looked at first, and characters of a cell
WORDS_LEFT = 0.8  # of the cells of a column, at least
UNTOLD = (*NOTHING, "unknown", "<nosrv>")
MANY = 10  # if the median id has more rows, repeats are not retries (a monitor polling a dead host)
CLEARLY = 0.95  # the share of rows that must bear a reading out
MOST_ATTEMPTS = 10_000  # a larger number is none of an attempt
LOOKED_AT = 200_000  # rows in which an id has to come back


def probes_of(log: ProbeLog) -> ProbeTable:
    """The probes of a log in the order of submission, ready for a decision.

    >>> import latfit
    >>> probes = probes_of(latfit.example_log())
    >>> probes.n, list(probes.columns)
    (2137, ['broker'])
    """
    return as_logged(log).ordered()


def as_logged(log: ProbeLog) -> ProbeTable:
    """The same in the log's own order. A log in which all times are the same has none."""
    table, when = log.table, log.table.submitted
    if when is not None and np.ptp(when[np.isfinite(when)]) == 0:
        when = None
    numbered = attempts_of(table)
    return replace(
        table,
        submitted=when,
        columns=explaining(table, () if numbered is None else numbered.columns),
        job=None if numbered is None else numbered.job,
        attempt=None if numbered is None else numbered.number,
        clock=log.resolution,
    )


def thinned(probes: ProbeTable) -> ProbeTable:
    """At most 200 000 of the probes, evenly spread."""
    return probes if probes.n <= MOST else probes.take(evenly(probes.n))


def evenly(n: int, most: int = MOST) -> Ints:
    """At most `most` row indices, one at random from each of `most` equal strata, since logs may have a period."""
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most + 1).astype(np.int64)
    return np.asarray(edges[:-1] + (np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64))


def group_column(log: ProbeLog, by: str) -> Ints:
    """A code for each probe of a log, in the order of submission, by the values of a column."""
    log.table.group_by([by])  # which refuses what is no column to group by
    named = replace(log.table, columns={by: log.table.columns[by].as_text()}).ordered()
    return named.columns[by].codes.astype(np.int64)


def explaining(table: ProbeTable, apart: Sequence[str] = ()) -> dict[str, Column]:
    """The columns of a log that have groups; those `apart` name the job and number its attempts."""
    columns: dict[str, Column] = {}
    for name in [name for name in table.columns if name not in apart][: 4 * MAX_COLUMNS]:
        column = as_groups(_as_asked(table, table.columns[name])) if len(columns) < MAX_COLUMNS else None
        if column is not None:
            columns[name] = column
    return columns


def _as_asked(table: ProbeTable, column: Column) -> Column:
    """A column in which nothing, or a mark for it, stands mostly for probes that did not complete: filled in.

    It is the outcome that left the cell empty. What these probes asked for is not known: they are dealt out to the
    groups in proportion, at random.
    """
    bad = table.status != COMPLETED
    if not bad.any():
        return column
    codes = column.codes
    blank = np.append(is_blank(pd.Series(column.labels), UNTOLD), True)[codes]
    if not blank[bad].any() or blank.all() or bad[blank].mean() < MOSTLY_BAD:
        return replace(column, codes=codes)
    rows = np.arange(table.n)
    rows[blank] = np.random.default_rng(0).choice(np.flatnonzero(~blank), np.count_nonzero(blank))
    return replace(column, codes=codes[rows])


def as_groups(column: Column) -> Column | None:
    """A column as groups: its categories, or quantile bins of its numbers; None where it has nothing to tell.

    It has nothing to tell where it is constant, a time, or different in every row.
    """
    kind = column.labels.dtype.kind
    if kind in "Mm":
        return None
    try:
        column = column.distinct()
    except TypeError:  # cells that are lists
        return None
    if kind in "fiu" or (kind != "b" and _is_numeric(column)):
        known = _numbers(column.take(evenly(column.codes.size)))
        known = known[np.isfinite(known)]
        distinct = np.unique(known).size
        if distinct > FEW_NUMBERS:
            ids = bool((known % 1 == 0).all()) and distinct * ROWS_OF_AN_ID <= known.size
            return column.as_text() if ids else _binned(column, known)
    if _repeats(column):
        return column.as_text()
    if kind in "fiub":
        return None
    some = _alike(column.take(evenly(column.codes.size, SOME)))
    words = np.append(some.labels.str.contains("[A-Za-z]", na=False), False)
    if words[some.codes].mean() > WORDS_LEFT and _repeats(some):
        alike = _alike(column)
        if _repeats(alike):
            return alike.as_text()
    return column.as_text() if np.unique(column.codes).size < MOSTLY_DISTINCT * column.codes.size else None


def _alike(column: Column) -> Column:
    """Names without queries, ids and numbers; those of times of day are none."""
    used, codes = np.unique(column.codes, return_inverse=True)
    text = pd.Series(column.labels.take(used[used >= 0])).astype("string").str.slice(0, LONGEST_NAME)
    text = text.mask(text.str.contains(r"\d:\d\d", na=False)).str.replace(OWN_PARTS, "*", regex=True)
    return Column(column.name, codes - int((used < 0).any()), pd.Index(text, dtype="string")).distinct()


def _numbers(column: Column) -> Floats:
    """The numbers of a column, NaN for what is none."""
    labels = pd.Series(column.labels)
    try:
        numbers = np.asarray(pa.array(labels).cast(pa.float64()), dtype=np.float64)
    except (pa.ArrowException, OverflowError):  # one cell is no number
        numbers = pd.to_numeric(labels, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(np.append(numbers, np.nan)[column.codes])


def _is_numeric(column: Column) -> bool:
    some = column.codes[column.codes >= 0][:200]
    try:
        return some.size > 0 and bool(pd.to_numeric(pd.Series(column.labels.take(some)), errors="coerce").notna().all())
    except OverflowError:  # whole numbers beyond all floats, in JSON
        return False


def _repeats(column: Column) -> bool:
    """Whether there are groups at all: more than one value, and most of the rows share theirs with another."""
    distinct = np.count_nonzero(np.bincount(column.codes + 1))
    return bool(1 < distinct <= 0.6 * column.codes.size)


def _binned(column: Column, known: Floats) -> Column | None:
    """Quantile bins of `known`, some of the numbers of the column."""
    rising = np.abs(np.corrcoef(np.arange(known.size), pd.Series(known).rank())[0, 1]) if known.size > 2 else 1.0
    if rising > 0.9:  # a counter or a clock: it tells the time, which is looked at elsewhere
        return None
    edges = np.unique(np.quantile(known, EDGES))
    numbers = _numbers(column)
    codes = np.where(np.isfinite(numbers), np.searchsorted(edges, numbers), edges.size + 1)
    ends = ["", *(f"{edge:g}" for edge in edges), ""]
    names = [f"{a or '…'} to {b or '…'}" for a, b in pairwise(ends)]
    return Column(column.name, codes, pd.Index([*names, UNKNOWN_GROUP], dtype="str"))


@dataclass(frozen=True, eq=False)
class Numbered:
    """The job of each row, and the number of its attempt, from 1; `columns` are those that told."""

    columns: tuple[str, ...]
    job: Ints
    number: Ints


def attempts_of(table: ProbeTable) -> Numbered | None:
    """The jobs and attempts of a log, None where no job of it was tried twice.

    A column that numbers the attempts, with one that names the job, tells them, if hardly any pair comes twice. Without
    numbers a name that comes back is a new attempt if it does so later than the one before, which had not completed:
    several requests of a user, or spans of a trace, are not taken for attempts.
    """
    numbers = attempt_column(table.columns)
    jobs = [name for name in job_columns(table.columns) if name != numbers]
    told = None if numbers is None or not jobs else _attempt_numbers(table.columns[numbers])
    if told is not None and told.max(initial=1) < 2:
        return None
    for name in jobs:
        some = table.columns[name].take(slice(LOOKED_AT)).cells()
        some = some.astype("string") if some.dtype == object else some  # cells may be lists
        if not some.dropna().duplicated().any():
            continue
        job = _job_numbers(table.columns[name])
        if told is not None and numbers is not None and _pairs_differ(job, told):
            return Numbered((name, numbers), job, told)
        by_time = _by_time(table, job)
        if by_time is not None:
            return Numbered((name,) if numbers is None else (name, numbers), job, by_time)
    return None


def _job_numbers(column: Column) -> Ints:
    """A number for each name, in the order in which they come; a row without one is a job of its own."""
    try:
        codes = column.distinct().codes
    except TypeError:  # lists
        codes = replace(column, labels=pd.Index(pd.Series(column.labels).astype("string"))).distinct().codes
    job = np.empty(codes.size, dtype=np.int64)
    named = codes >= 0
    job[named] = pd.factorize(codes[named])[0]
    job[~named] = job[named].max(initial=0) + 1 + np.arange(np.count_nonzero(~named))
    return job


def _attempt_numbers(column: Column) -> Ints | None:
    """The numbers of attempts from 1 on, where the log may count from 0; None where they are none."""
    values = _numbers(column)
    if not values.size or not np.isfinite(values).all() or (values % 1 != 0).any():
        return None
    if values.min() < 0 or values.max() > MOST_ATTEMPTS:
        return None
    return values.astype(np.int64) + int(values.min() == 0)


def _pairs_differ(job: Ints, number: Ints) -> bool:
    pairs = np.unique(job * (MOST_ATTEMPTS + 2) + number)
    return bool(pairs.size >= CLEARLY * job.size)


def _by_time(table: ProbeTable, job: Ints) -> Ints | None:
    """The numbers of attempts by the order of submission, None where what comes back is no new attempt."""
    when = table.submitted
    if when is None or np.isnan(when).any():
        return None
    order = np.lexsort((when, job))
    again = np.concatenate([[False], np.diff(job[order]) == 0])
    at = np.flatnonzero(again)
    missed = (table.status != COMPLETED)[order]
    new = missed[at - 1] & (when[order][at] > when[order][at - 1])
    if not at.size or new.mean() < CLEARLY or np.median(np.bincount(job)) > MANY:
        return None
    places = np.arange(job.size)
    number = np.empty(job.size, dtype=np.int64)
    number[order] = places - np.maximum.accumulate(np.where(again, 0, places)) + 1
    return number
