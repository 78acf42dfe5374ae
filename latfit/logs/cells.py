"""What the cells of columns tell, where their names do not: durations, times, units, and what is none of these."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LatfitError
from latfit.logs.formats import ReadOptions
from latfit.logs.names import GUESSES, NUMBERED, SUMMARY, TIMELIKE, plain_name
from latfit.logs.times import MOMENT, MONTHS, numeric, parse_times, time_format_of
from latfit.logs.words import NOTHING, is_blank, name_words
from latfit.numbers import Floats
from latfit.units import UNITS, parse_duration

LONG = 80  # characters of a cell that are looked at
FEW = 20  # cells that tell how times are written
WRITTEN_DATE = r"(?i)(\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|.*\b(" + "|".join(MONTHS) + r")[a-z]*\b.*)\D+\d{1,2}:\d\d.*"
DAY = r"\d{4}-\d\d-\d\d[T ]00:00(:00(\.0+)?)?(Z|[+]00:?00)?"  # a date alone, as some readers give it
REPEATED = 0.5  # the share of different values below which a column is no id
KNOWN_UNITS = {"@duration": "ms", "event.duration": "ns"}  # of CloudWatch, and of the Elastic Common Schema
DATADOG = ("@http.", "@network.", "@span")  # beside which @duration is in nanoseconds
AGREE = 0.1  # within which a latency is an end minus a submission
EPOCHS = 1e8  # numbers from here on are times since 1970


def measured_column(cells: Mapping[str, pd.Series[Any]]) -> str | None:
    """The only column that holds durations with units, or that is called by one and holds numbers that do not rise."""
    found = []
    for name, column in cells.items():
        words = name_words(name)
        single = not any(map(SUMMARY.fullmatch, words))
        if _is_value(name):
            continue
        if "/" in name or (says_units(column) and not _are_times(name, column)):  # a rate, or 12m of something else
            continue
        if single and says_units(column):
            found += [name] if len(column) < 3 or len(column.unique()) > 1 else []
            continue
        values = _numbers(column)
        known = values[np.isfinite(values)]
        rises = known.size > 2 and bool((np.diff(known) >= 0).all())
        if single and len(words) > 1 and plain_name(name)[1] and known.size and known.max() < EPOCHS and not rises:
            found.append(name)
    whole = [name for name in found if "total" in name_words(name)]  # of parts of which each has its own
    found = whole if len(whole) == 1 else found
    return found[0] if len(found) == 1 else None


def _numbers(column: pd.Series[Any]) -> Floats:
    """The numbers of a column, with a decimal comma too, NaN for what is none."""
    values = numeric(column)
    if np.isnan(values).all() and column.dtype.kind not in "Mmfiub":
        values = numeric(column.astype("string").str.replace(",", ".", regex=False))
    return values


def says_units(column: pd.Series[Any]) -> bool:
    """Whether the first cells that hold something are durations with units of their own, such as `12.3ms`."""
    if column.dtype.kind in "Mmfiub":
        return False
    some = column.mask(is_blank(column, NOTHING)).dropna().head(FEW).astype(str)
    return len(some) > 0 and all(map(has_unit, some))


def _are_times(name: str, column: pd.Series[Any]) -> bool:
    """Whether cells with units can be times: all of them with a bare m may be thousandths, or mebibytes."""
    return any(map(TIMELIKE.search, name_words(name))) or not all_match(column.head(FEW), r"\d+m")


def _is_value(name: str) -> bool:
    """Whether what stands in the place of a name is none: the first row was taken as the header."""
    return re.match(rf"{MOMENT}|[\d.]+$", name.strip()) is not None or has_unit(name)


def has_unit(text: str) -> bool:
    """Whether a text is a duration with a unit."""
    try:
        parse_duration(text)
    except LatfitError:
        return False
    return re.search("[a-zµμ] *$", text, re.IGNORECASE) is not None


def unit_by_ends(
    latency: str, chosen: Mapping[str, str | None], rows: pd.DataFrame, options: ReadOptions
) -> str | None:
    """The unit of a latency without one, where it has to agree with an end minus a submission, or a name is known."""
    if latency in KNOWN_UNITS:
        return "ns" if any(name.startswith(DATADOG) for name in rows.columns) else KNOWN_UNITS[latency]
    begun, ended = chosen.get("submitted"), chosen.get("ended")
    if not begun or not ended or not {begun, ended, latency} <= set(rows.columns):
        return None
    try:
        times = [parse_times(rows[name], name, time_format_of(rows[name], name), options.timezone)[0]
                 for name in (begun, ended)]  # fmt: skip
    except LatfitError:
        return None
    spent, numbers = (times[1] - times[0]) / np.timedelta64(1, "s"), numeric(rows[latency])
    known = (spent > 0) & (numbers > 0) & np.isfinite(numbers)
    if np.count_nonzero(known) < 3:
        return None
    ratio = float(np.median(numbers[known] / spent[known]))
    return next((unit for unit in ("s", "ms", "us", "ns", "min") if abs(ratio * UNITS[unit] - 1) < AGREE), None)


def repeats(column: pd.Series[Any]) -> bool:
    """Whether most cells hold what another one holds."""
    some = column.dropna().astype(str)
    return bool(some.nunique() < REPEATED * len(some))


def all_match(column: pd.Series[Any], pattern: str) -> bool:
    """Whether every cell that holds something matches."""
    some = [text for cell in column.dropna() if (text := str(cell)[:LONG].strip())]
    return bool(some) and all(re.fullmatch(pattern, text) for text in some)


def time_column(plain: Mapping[str, str], cells: Mapping[str, pd.Series[Any]]) -> tuple[str | None, list[str]]:
    """The only column that holds dates with a time of day, and is not called like an end; why another is not used."""
    others = {name: column for name, column in cells.items() if plain[name] not in GUESSES["ended"]}
    found = [name for name, column in others.items() if all_match(column, MOMENT + ".*") and not all_match(column, DAY)]
    if not found:
        found = [name for name, column in others.items() if all_match(column.head(FEW), WRITTEN_DATE)]
    if len(found) != 1:
        return None, []
    try:
        time_format_of(cells[found[0]], found[0])
    except LatfitError as error:
        return None, [f"{error} (it is not used)"]
    return found[0], []


def first_line(names: list[str]) -> str:
    """What to say where the names of columns are no names."""
    data = any(_is_value(name) or re.match(r"column\d+$", name) for name in names)
    return " (the first line seems to hold data: there is no header that names the columns)" if data else ""


def name_it(names: list[str], rows: pd.DataFrame) -> str:
    """How to name the latency's column: by the one that most looks like a measurement, where one holds numbers at all.

    Numbers, with decimals, many, and not merely counting up.
    """

    def score(name: str) -> tuple[float, ...]:
        cells = rows.get(name)
        values = pd.Series(_numbers(cells)) if isinstance(cells, pd.Series) else pd.Series(dtype=float)
        known = values[np.isfinite(values)]
        named = name_words(name)[-1:]
        if _is_value(name):
            return (0.0,)
        if isinstance(cells, pd.Series) and says_units(cells):
            return (1.0, True, True, cells.nunique())
        if (
            not len(known) or (known >= EPOCHS).mean() > 0.5 or NUMBERED.fullmatch("".join(named))
        ):  # or times since 1970
            return (0.0,)
        counts_up = len(known) > 2 and bool((known.diff().dropna() > 0).all())
        decimals = bool((known % 1 != 0).any())
        words = name_words(name)
        if any(map(SUMMARY.fullmatch, words)) or not (
            decimals or plain_name(name)[1] or any(map(TIMELIKE.search, words))
        ):
            return (0.0,)
        return (round(len(known) / len(values), 1), not counts_up, decimals, known.nunique())

    best = max(reversed(names), key=score)
    if score(best) == (0.0,):
        return "Name it: --column latency=NAME, or --column submitted=NAME --column ended=NAME"
    return f"Name it, for example: --column latency={best[:40]}"
