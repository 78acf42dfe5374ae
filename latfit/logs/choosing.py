"""Which rows of a log are wanted: by the values of its columns, and by when they were submitted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LatfitError, LogError, MissingColumn, listed
from latfit.logs.formats import ReadOptions, regular_expression
from latfit.logs.records import Records
from latfit.logs.vocabulary import ABSENT, word_of
from latfit.numbers import Bools
from latfit.table import ONLY_COMPLETED, OWN_STATUS, STATUSES
from latfit.units import parse_duration

CONDITION = re.compile(r"(.+?)(!=|=|~)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """What a cell of a column must be: `=` a value, `!=` another one, or `~` hold a match of a regular expression."""

    column: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """From text such as `site=ce1`, `method!=GET` or `url~^/api/`; an empty value means an empty cell.

        >>> Condition.parse("method!=GET")
        Condition(column='method', operator='!=', value='GET')
        """
        match = CONDITION.fullmatch(text)
        if match is None:
            raise LogError(f"{text!r} is no condition; write COLUMN=VALUE, COLUMN!=VALUE or COLUMN~REGEX")
        condition = cls(match[1].strip(), match[2], match[3].strip())
        if condition.operator == "~":
            regular_expression(condition.value)
        return condition

    def holds(self, column: pd.Series[Any]) -> Bools:
        """For which cells it is true; each distinct value is looked at once."""
        words = column.astype("category")
        table = np.array([self.is_met(word) for word in words.cat.categories] + [self.is_met(None)], dtype=bool)
        return np.asarray(table[words.cat.codes.to_numpy()])

    def is_met(self, value: Any) -> bool:
        """Whether one value is as it must be."""
        empty = value is None or word_of(value) in ABSENT
        if self.operator == "~":
            return not empty and re.search(self.value, str(value)) is not None
        same = empty if not self.value else not empty and self.value in (str(value).strip(), word_of(value))
        return same == (self.operator == "=")

    def __str__(self) -> str:
        return f"{self.column}{self.operator}{self.value}"


class Choice:
    """Chooses rows of one chunk after another, and counts nothing that was not looked at."""

    def __init__(self, options: ReadOptions, log_end: Callable[[], np.datetime64 | None]) -> None:
        self.conditions = [Condition.parse(text) for text in options.where]
        zone = options.timezone or "UTC"
        self.since, self.until = (_moment(text, zone, log_end) for text in (options.since, options.until))
        self.missing = {condition.column for condition in self.conditions}
        if OWN_STATUS in self.missing:
            raise LogError(ONLY_COMPLETED)
        self.columns: dict[str, None] = {}

    def __call__(self, records: Records) -> tuple[Records, int]:
        """The wanted rows, and how many others there were; lines that could not be split stay, to be refused."""
        if not records.line.size or (records.raw is None and not records.extras and records.submitted is None):
            return records, 0
        wanted = np.ones(records.line.size, dtype=bool)
        for condition in self.conditions:
            wanted &= condition.holds(self._column(condition.column, records))
        if self.since is not None or self.until is not None:
            wanted &= self._in_time(records)
        return records.only(wanted), int(wanted.size - np.count_nonzero(wanted))

    def finish(self, log: str) -> None:
        """Complain of columns that no row of the log had."""
        if self.missing and self.columns:
            name = sorted(self.missing)[0]
            raise MissingColumn(f"{log}: there is no column {name!r} for --where; there are: {listed(self.columns)}")

    def _column(self, name: str, records: Records) -> pd.Series[Any]:
        own = {} if records.raw is None else {str(column): records.raw[column] for column in records.raw}
        found: dict[str, pd.Series[Any]] = {**records.extras, **own}
        self.columns.update(dict.fromkeys(found))
        if name not in found and name == "status":
            codes = pd.Categorical.from_codes(records.status, categories=pd.Index(STATUSES))
            found[name] = pd.Series(codes)
        if name in found:
            self.missing.discard(name)
            return found[name]
        return pd.Series([None] * records.line.size, dtype=object)  # a key that other objects may have

    def _in_time(self, records: Records) -> Bools:
        if records.submitted is None:
            raise LogError("the log does not say when its probes were submitted: --since and --until cannot choose")
        inside = ~np.isnat(records.submitted)
        if self.since is not None:
            inside &= records.submitted >= self.since
        if self.until is not None:
            inside &= records.submitted < self.until
        return inside


def choice_of(options: ReadOptions, log_end: Callable[[], np.datetime64 | None]) -> Choice | None:
    """The choice that the options make; None where every row is wanted."""
    chooses: Iterable[object] = (options.where, options.since, options.until)
    return Choice(options, log_end) if any(chooses) else None


def _moment(text: str | None, zone: str, log_end: Callable[[], np.datetime64 | None]) -> np.datetime64 | None:
    """A point in time, in naive UTC: an ISO time, or as long before the end of the log as a duration says."""
    if not text:
        return None
    if re.match(r"\s*\d{4}-\d\d", text):
        try:
            when = pd.Timestamp(text)
            utc = when.tz_localize(zone) if when.tzinfo is None else when
            return np.datetime64(utc.tz_convert("UTC").tz_localize(None).to_pydatetime(), "us")
        except (ValueError, OverflowError) as error:
            raise LogError(f"{text!r} is not a time ({error})") from error
    try:
        seconds = parse_duration(text)
    except LatfitError:
        seconds = None
    if seconds is None or re.fullmatch(r"[\s\d.]+", text):
        raise LogError(
            f"{text!r} is neither a time (2026-03-01, 2026-03-01T12:00:00Z) nor a duration before the log's end "
            "with its unit (6h, 7d)"
        )
    end = log_end()
    if end is None:
        raise LogError("the log does not say when its probes were submitted: --since and --until cannot choose")
    return end - np.timedelta64(round(min(seconds, 1e11) * 1e6), "us")
