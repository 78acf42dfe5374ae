"""Logs that are tables with named columns: from their rows to records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.columns import KNOWN_WORDS, Roles
from latfit.logs.formats import ReadOptions
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.table import CENSORED, COMPLETED, LOST, STATUSES
from latfit.logs.times import epoch_format, numeric, parse_times

NOTHING = ("", "nan", "na", "n/a", "null", "none", "nat")  # words for an absent value


def settle_times(frame: pd.DataFrame, roles: Roles) -> Roles:
    """The roles with the unit of epoch times decided once for the whole log, by its first rows."""
    formats = dict(roles.time_formats)
    for name in (roles.submitted, roles.ended):
        if name is not None and name not in formats and (found := epoch_format(frame[name])):
            formats[name] = found
    return replace(roles, time_formats=formats)


class Settling:
    """Makes records of one table after another; the unit of epoch times is settled by the first rows that have one."""

    def __init__(self, roles: Roles, options: ReadOptions) -> None:
        self.roles, self.options, self.settled = roles, options, False

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        """The records of a table."""
        if not self.settled:
            self.roles = settle_times(frame, self.roles)
            times = [name for name in (self.roles.submitted, self.roles.ended) if name is not None]
            self.settled = all(frame[name].notna().any() for name in times)
        return to_records(frame, line, self.roles, self.options)


def to_records(frame: pd.DataFrame, line: NDArray[np.int64], roles: Roles, options: ReadOptions) -> Records:
    """The records of a table with these roles."""
    records = Records(line, np.empty(0), np.empty(0, dtype=np.int8), unit_is_sure=roles.sure)
    if roles.submitted is not None:
        records.submitted = _times(frame, roles.submitted, roles, records, options)
    records.latency = _latency(frame, roles, records, options)
    if roles.status is not None:
        records.status = _statuses(frame[roles.status], records, options)
    else:
        records.status = np.full(line.size, COMPLETED, dtype=np.int8)
        records.status[np.isposinf(records.latency)] = LOST
    if roles.ended is not None:  # submitted, and never seen again
        may_be_out = (CENSORED, UNKNOWN) if roles.status is not None else (COMPLETED,)
        open_ended = _blank(frame[roles.ended]) & np.isin(records.status, may_be_out)
        records.status[open_ended & records.kept] = CENSORED
    never = np.isposinf(records.latency)
    if never.any():
        records.latency[never] = np.nan
    if roles.id is not None:
        ids = frame[roles.id]
        records.ids = (
            ids.to_numpy() if ids.dtype.kind in "iu" else ids.astype(object).where(~_blank(ids), None).to_numpy()
        )
    keep = roles.used - ({roles.id} if roles.id else set())
    records.extras = {str(name): frame[name] for name in frame.columns if name not in keep}
    return records


def _times(
    frame: pd.DataFrame, name: str, roles: Roles, records: Records, options: ReadOptions
) -> NDArray[np.datetime64]:
    column = frame[name]
    if column.dtype.kind not in "Mfiu":
        column = column.astype("string").mask(_blank(column))
    times, bad = parse_times(column, name, roles.time_formats.get(name), options.timezone)
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return times


def _latency(frame: pd.DataFrame, roles: Roles, records: Records, options: ReadOptions) -> NDArray[np.float64]:
    if roles.ended is not None:
        assert records.submitted is not None
        span = _times(frame, roles.ended, roles, records, options) - records.submitted
        seconds = span / np.timedelta64(1, "s")
        records.refuse(seconds < 0, lambda row: f"end before start: by {-seconds[row]:g} s")
        return seconds
    total: NDArray[np.float64] | float = 0.0
    for name in roles.latency:
        total = total + _numbers(frame[name], name, roles.seconds, records)
    assert not isinstance(total, float)
    if roles.seconds == 1:
        return total
    return total / round(1 / roles.seconds) if roles.seconds < 1 else total * roles.seconds


def _numbers(column: pd.Series[Any], name: str, unit: float, records: Records) -> NDArray[np.float64]:
    """The numbers of a column, in the unit of the log."""
    if column.dtype.kind == "m":
        return np.asarray(column.to_numpy() / np.timedelta64(1, "s") / unit)
    if column.dtype.kind == "f":  # a cell that is no number would have made it text
        return column.to_numpy(dtype=np.float64)
    numbers = numeric(column)
    bad = np.isnan(numbers) & ~_blank(column)
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return numbers


def _blank(column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Which cells hold nothing, or a word for it."""
    if column.dtype.kind in "Mmfiub":
        return column.isna().to_numpy(dtype=bool)
    words = column.astype("category")
    empty = np.array([str(word).strip().lower() in NOTHING for word in words.cat.categories] + [True])
    return np.asarray(empty[words.cat.codes.to_numpy()])


def _word(value: Any) -> str:
    """A status as it is compared: lower case, whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()


def _statuses(column: pd.Series[Any], records: Records, options: ReadOptions) -> NDArray[np.int8]:
    """The codes of a column of words; each distinct word is looked up once."""
    words = column.astype("category")
    table = {**KNOWN_WORDS, **options.lowered_statuses}
    codes = np.full(len(words.cat.categories) + 1, UNKNOWN, dtype=np.int8)
    used = np.bincount(words.cat.codes.to_numpy() + 1, minlength=codes.size)[1:] > 0
    for at, word in enumerate(words.cat.categories):
        status = table.get(_word(word))
        if status is not None:
            codes[at] = STATUSES.index(status)
            if used[at] and _word(word) not in (status, *options.lowered_statuses):
                records.notes.append(f"status {str(word)!r} is read as {status}")
    found = np.asarray(codes[words.cat.codes.to_numpy()])
    unknown = found == UNKNOWN
    if unknown.any():
        hint = "say what it means: --status completed|failed|censored|lost=WORD"
        told = unknown & ~_blank(column)
        records.refuse(told, lambda row: f"unknown status: {str(column.iloc[row])[:40]!r}; {hint}")
    return found
