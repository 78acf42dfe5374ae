"""Which rows of a log are attempts of one job: by the columns that say so, or by ids that come back after a miss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from latfit.logs.retried import attempt_column, job_columns
from latfit.logs.table import CANONICAL
from latfit.numbers import Floats, Ints

if TYPE_CHECKING:
    from latfit.logs import ProbeLog

MANY = 10  # rows of a job, in the median, that are no attempts of it: of a monitor that is down, say
CLEARLY = 0.95  # the share of rows that must bear a reading out
MOST_ATTEMPTS = 10_000  # a larger number is none of an attempt
LOOKED_AT = 200_000  # rows in which an id has to come back


@dataclass(frozen=True, eq=False)
class Numbered:
    """The job of each row, and the number of its attempt, from 1; `columns` are those that told."""

    columns: tuple[str, ...]
    job: Ints
    number: Ints


def attempts_of(log: ProbeLog) -> Numbered | None:
    """The jobs and attempts of a log, None where no job of it was tried twice.

    A column that numbers the attempts, with one that names the job, tells them, if hardly any pair comes twice. Without
    numbers a name that comes back is a new attempt if it does so later than the one before, which had not completed:
    several requests of a user, or spans of a trace, are not taken for attempts.

    Examples
    --------
    >>> import latfit
    >>> attempts_of(latfit.example_log()) is None
    True

    """
    frame = log.frame
    names = [str(name) for name in frame.columns if name not in CANONICAL]
    named, numbers = job_columns(names), attempt_column(names)
    told = None if numbers is None or not named else _numbers(frame[numbers])
    if told is not None and told.max(initial=1) < 2:
        return None
    for name in named:
        column = frame[name]
        ids = column.astype("string") if column.dtype == object else column  # cells may be lists
        if name == numbers or not ids.head(LOOKED_AT).dropna().duplicated().any():
            continue
        job = _codes(ids)
        if told is not None and numbers is not None and _pairs_differ(job, told):
            return Numbered((name, numbers), job, told)
        found = _by_time(frame, job)
        if found is not None:
            return Numbered((name,) if numbers is None else (name, numbers), job, found)
    return None


def _codes(column: pd.Series[Any]) -> Ints:
    """A number for each name; a row without one is a job of its own."""
    codes = pd.factorize(column)[0].astype(np.int64)
    absent = codes < 0
    codes[absent] = codes.max(initial=0) + 1 + np.arange(np.count_nonzero(absent))
    return codes


def _numbers(column: pd.Series[Any]) -> Ints | None:
    """The numbers of attempts from 1 on, where the log may count from 0; None where they are none."""
    values: Floats = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    if not values.size or not np.isfinite(values).all() or (values % 1 != 0).any():
        return None
    if values.min() < 0 or values.max() > MOST_ATTEMPTS:
        return None
    return values.astype(np.int64) + int(values.min() == 0)


def _pairs_differ(job: Ints, number: Ints) -> bool:
    pairs = np.unique(job * (MOST_ATTEMPTS + 2) + number)
    return bool(pairs.size >= CLEARLY * job.size)


def _by_time(frame: pd.DataFrame, job: Ints) -> Ints | None:
    """The numbers of attempts by the order of submission, None where what comes back is no new attempt."""
    when = frame["submitted"]
    if when.isna().any():
        return None
    micro = when.astype("datetime64[us, UTC]").astype("int64").to_numpy()
    order = np.lexsort((micro, job))
    again = np.concatenate([[False], np.diff(job[order]) == 0])
    at = np.flatnonzero(again)
    missed = (frame["status"].to_numpy() != "completed")[order]
    new = missed[at - 1] & (micro[order][at] > micro[order][at - 1])
    if not at.size or new.mean() < CLEARLY or np.median(np.bincount(job)) > MANY:
        return None
    places = np.arange(job.size)
    number = np.empty(job.size, dtype=np.int64)
    number[order] = places - np.maximum.accumulate(np.where(again, 0, places)) + 1
    return number
