"""The probes of a log as every check of the evidence looks at them.

In the order of submission, with the columns that may explain a latency as groups, and with the numbers of jobs and
attempts where the log tells them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa

from latfit.errors import counted
from latfit.logs import ProbeLog
from latfit.logs.vocabulary import NOTHING, attempt_column, is_blank, job_columns
from latfit.numbers import Floats, Ints
from latfit.table import COMPLETED, UNKNOWN_GROUP, Column, ProbeTable

MAX_ROWS_LOOKED_AT = 200_000  # of a longer log, where more would tell nothing new
MAX_COLUMNS = 40
MIN_PROBES_TO_DESCRIBE = 40  # fewer say nothing of dependence, drift or replay
BIN_EDGES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)  # quantiles at which a column of numbers is cut
# parts of a name that differ from request to request: queries, ids, numbers
VARIABLE_PARTS = re.compile(r"\?.*|(?<![a-z])(?=[a-z-]{0,40}\d)[0-9a-f-]{6,}(?![a-z])|\d+", re.IGNORECASE)


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
    apart, job, attempt = attempts_of(table) or ((), None, None)  # columns that name the job and number its attempts
    columns: dict[str, Column] = {}
    for name in [name for name in table.columns if name not in apart][: 4 * MAX_COLUMNS]:
        column = as_groups(_filled(table, table.columns[name])) if len(columns) < MAX_COLUMNS else None
        if column is not None:
            columns[name] = column
    probes = replace(table, submitted=when, columns=columns, job=job, attempt=attempt, clock=log.resolution)
    return probes.sharing(table)


def period_of(probes: ProbeTable) -> dict[str, str | None] | None:
    """When the probes were submitted: start, end, and in words such as `50 minutes on a Monday morning (UTC)`.

    A log says nothing of other hours and days. Times that count from 0 have a length only; None: there are no times.
    """
    if probes.submitted is None or not np.isfinite(probes.submitted).any():
        return None
    first, last = float(np.nanmin(probes.submitted)), float(np.nanmax(probes.submitted))
    units = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
    unit = next((unit for unit in reversed(units) if last - first >= 2 * units[unit]), "second")
    text = counted(round((last - first) / units[unit]), unit)
    start, end = (pd.Timestamp(np.datetime64(round(time * 1e6), "us")) for time in (first, last))
    if start.year in (1970, 1971):
        return {"start": None, "end": None, "text": text}
    if start.year > 1971:
        parts = ("night", "morning", "afternoon", "evening")
        if start.date() != end.date():
            text += f" from a {start.day_name()} to a {end.day_name()} (UTC)"
        elif start.hour // 6 == end.hour // 6:
            text += f" on a {start.day_name()} {parts[start.hour // 6]} (UTC)"
        else:
            text += f" on a {start.day_name()} (UTC)"
    return {
        "start": f"{start.isoformat(timespec='seconds')}Z",
        "end": f"{end.isoformat(timespec='seconds')}Z",
        "text": text,
    }


def evenly(n: int, most: int = MAX_ROWS_LOOKED_AT) -> Ints:
    """At most `most` row indices, one at random from each of `most` equal strata, since logs may have a period."""
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, most + 1).astype(np.int64)
    return np.asarray(edges[:-1] + (np.random.default_rng(0).random(most) * np.diff(edges)).astype(np.int64))


def group_column(log: ProbeLog, by: str) -> Ints:
    """A code for each probe of a log, in the order of submission, by the values of a column."""
    log.table.group_by([by])  # which refuses what is no column to group by
    named = replace(log.table, columns={by: log.table.columns[by].as_text(merge_ids=True)}).ordered()
    return named.columns[by].codes.astype(np.int64)


def _filled(table: ProbeTable, column: Column) -> Column:
    """With the cells that are empty because of the outcome dealt out to the groups in proportion, at random."""
    bad = table.status != COMPLETED
    if not bad.any():
        return column
    blank = np.append(is_blank(pd.Series(column.labels), (*NOTHING, "unknown", "<nosrv>")), True)[column.codes]
    if not blank[bad].any() or blank.all() or bad[blank].mean() < 0.8:
        return column
    rows = np.arange(table.n)
    rows[blank] = np.random.default_rng(0).choice(np.flatnonzero(~blank), np.count_nonzero(blank))
    return column.take(rows)


def as_groups(column: Column) -> Column | None:
    """Categories, or quantile bins of numbers (whole ones that repeat are names); None: constant, time, unique."""
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
        if distinct > 12:
            names = bool((known % 1 == 0).all()) and 2 * distinct <= known.size
            return column.as_text() if names else _binned(column, known)
    if _repeats(column):
        return column.as_text()
    if kind in "fiub":
        return None
    some = _without_variable_parts(column.take(evenly(column.codes.size, 20_000)))
    words = np.append(some.labels.str.contains("[A-Za-z]", na=False), False)
    if words[some.codes].mean() > 0.8 and _repeats(some):
        alike = _without_variable_parts(column)
        if _repeats(alike):
            return alike.as_text()
    return column.as_text() if np.unique(column.codes).size < column.codes.size else None


def _without_variable_parts(column: Column) -> Column:
    """Names without queries, ids and numbers, up to 200 characters; times of day are not names."""
    used, codes = np.unique(column.codes, return_inverse=True)
    text = pd.Series(column.labels.take(used[used >= 0])).astype("string").str.slice(0, 200)
    text = text.mask(text.str.contains(r"\d:\d\d", na=False)).str.replace(VARIABLE_PARTS, "*", regex=True)
    return Column(column.name, codes - int((used < 0).any()), pd.Index(text, dtype="string")).distinct()


def _numbers(column: Column) -> Floats:
    labels = pd.Series(column.labels)
    try:
        numbers = np.asarray(pa.array(labels).cast(pa.float64()), dtype=np.float64)
    except (pa.ArrowException, OverflowError):  # one cell is not a number
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
    rising = np.abs(np.corrcoef(np.arange(known.size), pd.Series(known).rank())[0, 1]) if known.size > 2 else 1.0
    if rising > 0.9:  # a counter or a clock: it tells the time, which is looked at elsewhere
        return None
    edges = np.unique(np.quantile(known, BIN_EDGES))
    numbers = _numbers(column)
    codes = np.where(np.isfinite(numbers), np.searchsorted(edges, numbers), edges.size + 1)
    ends = ["…", *(f"{edge:g}" for edge in edges), "…"]
    names = [f"{a} to {b}" for a, b in pairwise(ends)]
    return Column(column.name, codes, pd.Index([*names, UNKNOWN_GROUP], dtype="str"))


def attempts_of(table: ProbeTable) -> tuple[tuple[str, ...], Ints, Ints] | None:
    """The columns that tell attempts, the job of each row, and its attempt number from 1; None where no job has two.

    A column that numbers the attempts, with one that names the job, tells them, if hardly any pair comes twice. Without
    numbers a name that comes back is a new attempt if it does so later than the one before, which had not completed:
    several requests of a user, or spans of a trace, are not taken for attempts.
    """
    numbering = attempt_column(table.columns)
    jobs = [name for name in job_columns(table.columns) if name != numbering]
    numbers = None if numbering is None or not jobs else _attempt_numbers(table.columns[numbering])
    if numbers is not None and numbers.max(initial=1) < 2:
        return None
    for name in jobs:
        some = table.columns[name].take(slice(MAX_ROWS_LOOKED_AT)).cells()
        some = some.astype("string") if some.dtype == object else some  # cells may be lists
        if not some.dropna().duplicated().any():
            continue
        job = _job_numbers(table.columns[name])
        columns = (name,) if numbering is None else (name, numbering)
        if numbers is not None and np.unique(job * 10_002 + numbers).size >= 0.95 * job.size:
            return columns, job, numbers
        by_time = _numbers_by_time(table, job)
        if by_time is not None:
            return columns, job, by_time
    return None


def _job_numbers(column: Column) -> Ints:
    """A number for each name, in the order in which they come; a row without one is a job of its own."""
    try:
        codes = column.distinct().codes
    except TypeError:  # lists
        codes = replace(column, labels=pd.Index(pd.Series(column.labels).astype("string"))).distinct().codes
    job = pd.factorize(pd.Series(codes).where(codes >= 0))[0].astype(np.int64)
    return np.where(job < 0, job.max(initial=0) + np.cumsum(job < 0), job)


def _attempt_numbers(column: Column) -> Ints | None:
    """The numbers of attempts from 1 on, where the log may count from 0; None where they cannot be such numbers."""
    values = _numbers(column)
    if not values.size or not ((values >= 0) & (values <= 10_000) & (values % 1 == 0)).all():
        return None
    return values.astype(np.int64) + int(values.min() == 0)


def _numbers_by_time(table: ProbeTable, job: Ints) -> Ints | None:
    """None where repeats are not retries, as where the median name has over ten rows: a monitor polls a dead host."""
    when = table.submitted
    if when is None or np.isnan(when).any():
        return None
    order = np.lexsort((when, job))
    again = np.flatnonzero(np.diff(job[order]) == 0) + 1
    retried = (table.status != COMPLETED)[order][again - 1] & (when[order][again] > when[order][again - 1])
    if not again.size or retried.mean() < 0.95 or np.median(np.bincount(job)) > 10:
        return None
    number = pd.Series(job[order]).groupby(job[order]).cumcount().to_numpy() + 1
    return np.asarray(number[np.argsort(order, kind="stable")], dtype=np.int64)
