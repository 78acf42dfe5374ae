"""Logs that are tables with named columns: from their rows to records."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LatfitError, LogError, counted, listed
from latfit.logs.formats import ReadOptions
from latfit.logs.outcomes import StatusWords
from latfit.logs.records import AS_LOST, UNKNOWN, Records
from latfit.logs.schema import Roles
from latfit.logs.times import Times, has_offset, numeric, parse_times, time_format_of, without_zero_epochs
from latfit.logs.vocabulary import NEVER, NOTHING, OUTCOME_PATTERNS, attempt_column, is_blank, word_of
from latfit.numbers import Floats
from latfit.table import CENSORED, COMPLETED, FAILED, LOST
from latfit.units import parse_duration

FEW = 3  # negative latencies, of which each is −1, at least


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
        self.lost, self.never, self.failed, self.lock = 0, 0, 0, threading.Lock()
        self.minus_one = False  # whether −1 stands for what never came back

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
        records.as_lost = self.lost + self.failed + self.never
        if self.lost:
            rows = counted(self.lost, "row", "has", "have")
            told = f"{rows} a time of submission and no latency: {AS_LOST[self.lost > 1]}"
            records.notes.append(f"{told} (--column submitted= refuses such rows instead)")
        if self.failed:
            rows = counted(self.failed, "row")
            records.notes.append(f"{rows} failed, and nothing tells when: {AS_LOST[self.failed > 1]}")
        if self.never:
            rows = counted(self.never, "row", "says", "say")
            records.notes.append(f"{rows} infinity, timeout, lost or -1 for a latency: {AS_LOST[self.never > 1]}")
        return records

    def _settle(self, frame: pd.DataFrame) -> None:
        """Decide how times are written, by these rows; it stands once every column of times had some."""
        formats = dict(self.roles.time_formats)
        times = [name for name in (self.roles.submitted, self.roles.ended) if name is not None]
        for name in times:
            if name not in formats and (found := time_format_of(frame[name], name)):
                formats[name] = found
        zoned = {name: has_offset(frame[name]) for name in times} if self.options.timezone is None else {}
        if len({known for known in zoned.values() if known is not None}) > 1:
            with_one = next(name for name, known in zoned.items() if known)
            raise LogError(f"of the columns {listed(times)} only {with_one!r} has an offset from UTC; say which zone "
                           "the other is in: --timezone UTC")  # fmt: skip
        if self.words is None and len(self.roles.latency) == 1:
            numbers = numeric(frame[self.roles.latency[0]])
            below = numbers[numbers < 0]
            self.minus_one = bool(FEW <= below.size < numbers.size / 2 and (below == -1).all())
        self.roles = replace(self.roles, time_formats=formats)
        self.settled = all(frame[name].notna().any() for name in times)

    def _records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        roles = self.roles
        records = Records(line, np.empty(0), np.empty(0, dtype=np.int8), unit=roles.unit,
                          unit_evidence=roles.unit_evidence, has_outcomes=roles.has_outcomes)  # fmt: skip
        records.columns = roles.columns
        ended = self._read_times(frame, records)
        records.latency = self._latency(frame, ended, records)
        if self.words is not None and roles.status is not None:
            out = None if ended is None else np.isnat(ended)
            records.status = self.words.statuses(frame[roles.status], records, out)
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
        if self.words is not None:  # given up, nobody knows when
            if ended is None:
                self._without_dummies(frame, records)
            unknown = np.isnan(records.latency) | np.isposinf(records.latency)
            never_told = unknown & (records.status == FAILED) & records.kept
            unknown &= True if records.submitted is None else np.isnat(records.submitted)
            records.status[unknown & (records.status == CENSORED)] = LOST
            if ended is None and never_told.any():  # an answer that came has its time, which is not in the log
                never_told[never_told] = ~self.words.answered(frame[str(roles.status)][never_told])
            records.status[never_told] = LOST
            with self.lock:
                self.failed += int(np.count_nonzero(never_told))
        never = np.isposinf(records.latency)
        records.latency = np.where(never, np.nan, records.latency) if never.any() else records.latency
        if roles.id is not None:
            records.ids, records.id_column = self._ids(frame, roles.id), roles.id
        keep = roles.used - ({roles.id} if roles.id else set())
        records.extras = {str(name): frame[name] for name in frame.columns if name not in keep}
        records.raw = frame
        return records

    def _without_dummies(self, frame: pd.DataFrame, records: Records) -> None:
        """Take out latencies that stand for none: −1 of what did not complete, and 0 of a timeout, which is lost."""
        assert self.words is not None
        dummy = (records.latency == -self.roles.seconds) & np.isin(records.status, (FAILED, CENSORED, LOST))
        at_once = (records.latency == 0) & (records.status == CENSORED)
        at_once[at_once] = self.words.timed_out(frame[str(self.roles.status)][at_once])
        records.status[(dummy & (records.status == CENSORED)) | at_once] = LOST
        records.latency = np.where(dummy | at_once, np.nan, records.latency)

    def _ids(self, frame: pd.DataFrame, name: str) -> NDArray[np.generic] | pd.api.extensions.ExtensionArray:
        """The ids of the probes: where attempts are numbered, each attempt is one."""
        number = attempt_column(map(str, frame.columns))
        if number is None or number in self.roles.used:
            return _ids(frame[name])
        text = frame[name].astype("string").mask(is_blank(frame[name]))
        return (text + "#" + frame[number].astype("string").fillna("")).array

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
            column = column.astype("string").mask(is_blank(column, NOTHING))
        times, bad = parse_times(column, name, self.roles.time_formats.get(name), self.options.timezone)
        records.refuse(bad, lambda row: f"unparseable {name}: {_written(column.iloc[row])[:40]!r}")
        return times

    def _latency(self, frame: pd.DataFrame, ended: Times | None, records: Records) -> Floats:
        if ended is not None:
            assert records.submitted is not None
            seconds = np.asarray((ended - records.submitted) / np.timedelta64(1, "s"))
            records.refuse(seconds < 0, lambda row: f"end before start: by {-seconds[row]:g} s")
            return seconds
        parts = [_seconds(frame[name], name, self.roles.seconds, records) for name in self.roles.latency]
        if len(parts) > 1:
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)
        never = self.minus_one & (parts[0] == -self.roles.seconds)
        return np.asarray(np.where(never, np.inf, parts[0]), dtype=np.float64)


def _written(cell: Any) -> str:
    """A cell as text; a time may lie outside of what Python's calendar can write."""
    return str(cell.to_datetime64()) if isinstance(cell, pd.Timestamp) else str(cell)


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
    text = np.isnan(numbers) & ~is_blank(column, NOTHING)
    if text.any():
        numbers = numbers.copy()
        numbers[text] = _durations(column[text])
    bad = np.isnan(numbers) & text
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return numbers


def _is_never(word: str) -> bool:
    """Whether a word in place of a latency says that there was none."""
    return word in NEVER or OUTCOME_PATTERNS["censored"].search(word) is not None


def _durations(column: pd.Series[Any]) -> Floats:
    """Durations with units of their own in seconds, ∞ for `timeout` and the like, NaN for what is none."""
    codes, words = pd.factorize(column.astype(str))
    table = np.full(len(words), np.nan)
    for at, word in enumerate(words):
        try:
            table[at] = np.inf if _is_never(word_of(word)) else parse_duration(word)
        except LatfitError:
            continue
    return np.asarray(table[codes])
