"""What the sampled cells of a column hold: numbers, durations, times, or words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LatfitError
from latfit.logs.times import MOMENT, MONTHS, UNKNOWN_TIMES, parse_times, time_format_of, without_placeholders
from latfit.logs.vocabulary import NEVER, NO_TIME, NOTHING, OUTCOME_PATTERNS, split_name, weigh, word_of
from latfit.numbers import Bools, Floats
from latfit.units import LONGEST, UNITS, parse_duration

NOT_A_TIME = "is not a time that can be read without --time-format"
MAX_CELL_CHARACTERS = 80
WRITTEN_DATE = r"(\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|.*\b(" + "|".join(MONTHS) + r")[a-z]*\b.*)\D+\d{1,2}:\d\d.*"
COMPACT_DATE = r"(19|20)\d\d(0\d|1[0-2])[0-3]\d[0-2]\d([0-5]\d){1,2}"  # 20260302060624
EPOCH_RANGES = {"s": (6e8, 4.2e9), "ms": (6e11, 4.2e12), "us": (6e14, 4.2e15), "ns": (6e17, 4.2e18)}


class Cells:
    """What the sampled cells of one column hold: `kind` is number, duration, clock, time, text or empty.

    `stage` says by its name whether a time is that of a submission, a start, an end or just a moment, and
    `stage_weight` how sure that is. `epoch` is the unit of times since 1970. `seconds` has times and durations in
    seconds, `cell_values` numbers as they are and the rest in seconds. `trouble` says why times cannot be read.
    """

    def __init__(self, name: str, column: pd.Series[Any], time_format: str | None = None) -> None:
        self.name, self.column, self.time_format = name, column, time_format
        self.words, self.unit = split_name(name)
        stages = {stage: weigh(stage, self.words)[0] for stage in ("submitted", "started", "ended")}
        self.stage, self.stage_weight = max(stages.items(), key=lambda stage: stage[1])
        if self.stage_weight < 4:
            self.stage, self.stage_weight = "moment", weigh("moment", self.words)[0]
        self.trouble, self.order_is_open = "", False  # day and month may be either way round
        self.is_typed = column.dtype.kind in "mM"
        texts = [str(cell)[:MAX_CELL_CHARACTERS].strip() for cell in column]
        self.known: Bools = column.notna().to_numpy() & np.array([text.lower() not in NOTHING for text in texts], bool)
        self.text = [text for text, known in zip(texts, self.known, strict=True) if known and not self.is_typed]
        self.kind = self._kind()
        numbers: Floats = np.full(len(column), np.nan)
        if self.kind == "number":
            numbers[self.known] = [number_of(text) for text in self.text]
        numbers[np.abs(numbers) > LONGEST * 1e9] = np.nan  # not a time in any unit, and too large to add up
        stamps = np.where((numbers > 0) & ~np.isin(numbers, UNKNOWN_TIMES), numbers, np.nan)
        least, middle = (np.nanmin(stamps), np.nanmedian(stamps)) if np.isfinite(stamps).any() else (0.0, 0.0)
        ranges = EPOCH_RANGES.items()
        self.epoch = next((unit for unit, (low, high) in ranges if low <= middle <= high and least >= low / 100), None)
        self.seconds: Floats = np.full(len(column), np.nan)
        if self.kind in ("duration", "clock"):
            spent = [duration(text.replace(",", ".")) for text in self.text]
            self.seconds[self.known] = column[self.known].dt.total_seconds() if self.is_typed else spent
        elif self.epoch:
            self.seconds = stamps * UNITS[self.epoch]
        elif self.kind == "time":
            self.seconds = self._times()
        elif self.is_relative:
            self.seconds = numbers * UNITS[self.unit or "s"]
        self.cell_values = numbers if self.kind == "number" else self.seconds
        self.measures: Floats = self.cell_values[np.isfinite(self.cell_values)]

    def _kind(self) -> str:
        if not self.known.any():
            return "empty"
        if self.is_typed:
            return "duration" if self.column.dtype.kind == "m" else "time"
        shapes = [shape(text) for text in self.text[:50]]
        common = max(set(shapes) - {"word"} or {"text"}, key=shapes.count)
        if self.column.dtype.kind == "b" or not most(shapes):
            kind = "text"
        elif most(each == "time" for each in shapes):
            kind = "time"
        else:
            kind = "duration" if "duration" in shapes else common
        return "time" if self.time_format and self.stage_weight and kind in ("text", "number") else kind

    def _times(self) -> Floats:
        """The times in seconds since 1970; sets `trouble` if they cannot be read."""
        text = self.column.where(self.known & ~self.column.astype(str).str.lower().isin(NO_TIME))
        try:
            parsed, bad = parse_times(text, self.name, self.time_format or time_format_of(text, self.name), None)
        except LatfitError as error:
            self.trouble, self.order_is_open = str(error), True
            return self.seconds
        parsed = without_placeholders([parsed])[0]
        if bad[self.known].all():
            first = str(self.column[self.known].iloc[0])[:40]
            self.trouble = f"column {self.name!r} is not used: {first!r} {NOT_A_TIME}"
        return np.where(np.isnat(parsed), np.nan, parsed.astype("datetime64[us]").astype(np.int64) / 1e6)

    @property
    def is_time(self) -> bool:
        return self.kind == "time" or self.epoch is not None

    @property
    def is_relative(self) -> bool:
        """Whether, by their name, these are times that count from the beginning of the log."""
        named = self.stage != "moment" and self.stage_weight >= 7 and weigh("latency", self.words)[0] < 7
        return self.kind == "number" and self.epoch is None and named

    @property
    def is_day(self) -> bool:
        if self.kind != "time" or self.time_format:
            return False
        if self.text:
            return not any(":" in text or text.isdigit() for text in self.text)
        days = np.unique(self.measures / 86400)  # jobs that were submitted together may be so at midnight
        return bool((days % 1 == 0).all()) and (days.size > 1 or not self.stage_weight)

    @property
    def rises(self) -> bool:
        steps = np.diff(self.measures)
        return steps.size > 3 and bool((steps >= 0).all()) and bool(steps.any())


def most(answers: Iterable[Any]) -> bool:
    """Whether at least seven tenths are true: there may be words for lost probes among numbers."""
    known = [bool(answer) for answer in answers]
    return sum(known) >= 0.7 * len(known) - 0.5


def shape(text: str) -> str:
    """What a cell is: number, clock, duration, time, word (for what never came back); empty for any other text."""
    if re.match(MOMENT, text) or re.fullmatch(WRITTEN_DATE, text.lower()) or re.fullmatch(COMPACT_DATE, text):
        return "time"
    if math.isfinite(number_of(text)):
        return "number"
    if re.fullmatch(r"(\d+-)?\d?\d:\d\d:\d\d([.,]\d+)?", text):
        return "clock"
    if re.search(r"[a-zµμ]\s*$", text, re.IGNORECASE) and math.isfinite(duration(text.replace(",", "."))):
        return "duration"
    return "word" if text.lower() in (*NEVER, "inf", "infinity") else ""


def number_of(text: str) -> float:
    """The number that a text means, also with a decimal comma; NaN for any other text."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return math.nan


def duration(word: Any) -> float:
    """The seconds of a duration with a unit of its own, ∞ for `timeout` and the like, NaN for any other text."""
    plain = word_of(word)
    if plain in NEVER or OUTCOME_PATTERNS["censored"].search(plain):
        return math.inf
    try:
        return parse_duration(plain)
    except LatfitError:
        return math.nan
