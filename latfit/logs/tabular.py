"""Logs that are tables with named columns: from their rows to records."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LatfitError
from latfit.logs.columns import Roles
from latfit.logs.formats import ReadOptions
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.table import CENSORED, COMPLETED, LOST
from latfit.logs.times import Times, numeric, parse_times, time_format_of, without_zero_epochs
from latfit.logs.words import NEVER, StatusWords, is_blank, word_of
from latfit.numbers import Floats
from latfit.units import parse_duration


class Settling:
    """Makes records of one table after another.

    What holds for the whole log (the unit of epoch times, the order of day and month) is settled by the first
    rows that tell. `last()` is the chunk that a reader yields when it is through: what was counted over the log.
    With `blank_is_lost`, a probe that has a time of submission and no latency is lost, where nothing else in
    the log says what became of it.
    """

    def __init__(self, roles: Roles, options: ReadOptions, *, blank_is_lost: bool = False) -> None:
        self.roles, self.options, self.settled = roles, options, False
        self.words = None if roles.status is None else StatusWords(roles.status, options)
        self.blank_is_lost = blank_is_lost and not roles.status and not roles.ended and roles.submitted is not None
        self.lost, self.never, self.lock = 0, 0, threading.Lock()

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        """The records of a table."""
        if not self.settled:
            self._settle(frame)
        records = self._records(frame, line)
        if self.words is not None and self.roles.status is not None:
            self.words.add(frame[self.roles.status].astype("category"), records)
        return records

    def last(self) -> Records:
        """A chunk without rows: what the words of the status column became, and what to do about unknown ones."""
        records = Records.unusable({})
        if self.words is not None:
            records = self.words.last()
            records.advice += self.words.advice()
        if self.lost:
            told = "rows have a time of submission and no latency: they are read as lost probes"
            records.notes.append(f"{self.lost} {told} (--column submitted= refuses them instead)")
        if self.never:
            records.notes.append(f"{self.never} rows say infinity, timeout or lost for a latency: they are lost probes")
        return records

    def _settle(self, frame: pd.DataFrame) -> None:
        """Decide how times are written, by these rows; it stands once every column of times had some."""
        formats = dict(self.roles.time_formats)
        times = [name for name in (self.roles.submitted, self.roles.ended) if name is not None]
        for name in times:
            if name not in formats and (found := time_format_of(frame[name], name)):
                formats[name] = found
        self.roles = replace(self.roles, time_formats=formats)
        self.settled = all(frame[name].notna().any() for name in times)

    def _records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        roles = self.roles
        records = Records(line, np.empty(0), np.empty(0, dtype=np.int8), unit_is_sure=roles.sure)
        ended = self._read_times(frame, records)
        records.latency = self._latency(frame, ended, records)
        if self.words is not None and roles.status is not None:
            records.status = self.words.statuses(frame[roles.status], records)
        else:
            records.status = np.full(line.size, COMPLETED, dtype=np.int8)
            never = np.isposinf(records.latency)
            records.status[never] = LOST
            with self.lock:
                self.never += int(np.count_nonzero(never))
        if ended is not None:  # submitted, and never seen again
            may_be_out = (CENSORED, UNKNOWN) if roles.status is not None else (COMPLETED,)
            records.status[np.isnat(ended) & np.isin(records.status, may_be_out) & records.kept] = CENSORED
        elif self.blank_is_lost and records.submitted is not None:
            blank = np.isnan(records.latency) & ~np.isnat(records.submitted) & records.kept
            records.status[blank] = LOST
            with self.lock:
                self.lost += int(np.count_nonzero(blank))
        never = np.isposinf(records.latency)
        records.latency = np.where(never, np.nan, records.latency) if never.any() else records.latency
        if roles.id is not None:
            records.ids, records.id_column = _ids(frame[roles.id]), roles.id
        keep = roles.used - ({roles.id} if roles.id else set())
        records.extras = {str(name): frame[name] for name in frame.columns if name not in keep}
        records.raw = frame
        return records

    def _read_times(self, frame: pd.DataFrame, records: Records) -> Times | None:
        """Set the times of submission; return those of the end, where the latency is their difference."""
        roles = self.roles
        names = [name for name in (roles.submitted, roles.ended) if name is not None]
        times = without_zero_epochs([self._times(frame, name, records) for name in names])
        if roles.submitted is not None:
            records.submitted = times[0]
        return times[-1] if roles.ended is not None else None

    def _times(self, frame: pd.DataFrame, name: str, records: Records) -> Times:
        column = frame[name]
        if column.dtype.kind not in "Mfiu":
            column = column.astype("string").mask(is_blank(column))
        times, bad = parse_times(column, name, self.roles.time_formats.get(name), self.options.timezone)
        records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
        return times

    def _latency(self, frame: pd.DataFrame, ended: Times | None, records: Records) -> Floats:
        if ended is not None:
            assert records.submitted is not None
            seconds = np.asarray((ended - records.submitted) / np.timedelta64(1, "s"))
            records.refuse(seconds < 0, lambda row: f"end before start: by {-seconds[row]:g} s")
            return seconds
        parts = [_seconds(frame[name], name, self.roles.seconds, records) for name in self.roles.latency]
        return np.sum(parts, axis=0) if len(parts) > 1 else parts[0]


def _ids(column: pd.Series[Any]) -> NDArray[np.generic] | pd.api.extensions.ExtensionArray:
    """The ids of a column, absent where there is none."""
    if column.dtype.kind in "iu":
        return column.to_numpy()
    blank = is_blank(column)
    if isinstance(column.dtype, pd.StringDtype):
        kept: pd.api.extensions.ExtensionArray = (column.mask(blank) if blank.any() else column).array
        return kept
    return np.asarray(column.astype(object).where(~blank, None).to_numpy())


def _seconds(column: pd.Series[Any], name: str, unit: float, records: Records) -> Floats:
    """A column of latencies in seconds: numbers in its unit, or durations that say their own (`1m 20s`)."""
    if column.dtype.kind == "m":
        return np.asarray(column.to_numpy() / np.timedelta64(1, "s"))
    numbers = column.to_numpy(dtype=np.float64) if column.dtype.kind == "f" else numeric(column)
    if unit != 1:
        with np.errstate(over="ignore"):
            scaled = numbers / round(1 / unit) if unit < 1 else numbers * unit
        records.refuse(np.isinf(scaled) & np.isfinite(numbers), f"too large {name}")
        numbers = scaled
    if column.dtype.kind == "f":  # a cell that is no number would have made it text
        return numbers
    text = np.isnan(numbers) & ~is_blank(column)
    if text.any():
        numbers = numbers.copy()
        numbers[text] = _durations(column[text])
    bad = np.isnan(numbers) & text
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return numbers


def _durations(column: pd.Series[Any]) -> Floats:
    """Durations with units of their own in seconds, ∞ for `timeout` and the like, NaN for what is none."""
    codes, words = pd.factorize(column.astype(str))
    table = np.full(len(words), np.nan)
    for at, word in enumerate(words):
        try:
            table[at] = np.inf if word_of(word) in NEVER else parse_duration(word)
        except LatfitError:
            continue
    return np.asarray(table[codes])
