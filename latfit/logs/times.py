"""Points in time, as logs write them, to naive UTC."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError
from latfit.numbers import Bools, Floats

MICROSECONDS = {"epoch": 1e6, "epoch-ms": 1e3, "epoch-us": 1.0, "epoch-ns": 1e-3}
ORDERS = {"day-first": "{2}-{1:0>2}-{0:0>2}", "month-first": "{2}-{0:0>2}-{1:0>2}"}
NAMED = "named-months"  # Mon Mar 2 06:00:04 UTC 2026, 02/Mar/2026:06:00:04 +0000, Mar 2, 2026 6:00 AM
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"\b(?:{'|'.join(MONTHS)})[a-z]{{0,6}}\b"
NAMED_DATE = re.compile(
    rf"(?i)(?=.*\b\d{{4}}\b)(?:[a-z]{{3,9}},? )?(?:\d{{1,2}}[ /-])?{_MONTH}.*\d:\d\d.*"
)  # with year and time
DATE = re.compile(r"^\s*(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:\D|$)")
SERIAL_DAYS = 25_569, 73_050  # from 1970 to 2100, counted from 1900
COMPACT = {14: "%Y%m%d%H%M%S", 12: "%Y%m%d%H%M"}  # 20260302060624 is no number of milliseconds
MOMENT = r"\d{4}-\d\d-\d\d[T ]\d?\d:\d\d"  # a date with a time of day
HALF = re.compile(r"(?<=[ T])(\d\d)(:[\d:.,]*?) ?([AaPp])[Mm]$")
OFFSET = re.compile(r":\d\d(?:\.\d+)?\s*(?:Z|[+-]\d\d(?::?\d\d)?)$")
TO_ISO = {  # what is left to rewrite in times that are nearly ISO 8601
    r"([+-]\d\d:?\d\d) [A-Z]{3,4}$": r"\1",
    r" ?(?:UTC|GMT)$": "Z",
    r"(:\d\d),(\d)": r"\1.\2",  # of Python's loggers
    r"(:\S*)\[[\w/+-]+\]$": r"\1",  # 06:00+01:00[Europe/Paris]
}
UNKNOWN_TIMES = (0, -1, 4294967294, 4294967295)  # in place of a time; the last two, 2^32 - 2 and 2^32 - 1, by Slurm
USUAL_YEARS = np.array(["1971", "1980", "2100"], dtype="datetime64[s]")  # no time lies beyond where some are within
Times = NDArray[np.datetime64]


def parse_times(
    column: pd.Series[Any], name: str, time_format: str | None, timezone: str | None
) -> tuple[Times, Bools]:
    """Naive UTC times of a column, and which of its cells hold something that is not a time.

    Numbers are seconds, milliseconds, microseconds or nanoseconds since 1970 by their size, unless
    `time_format` says which; text is ISO 8601, `day-first` (31/12/2026 10:00), `month-first`,
    `named-months` (31 Dec 2026 10:00) or in the given strptime pattern.
    """
    time_format = time_format or epoch_format(column)
    if column.dtype.kind == "M":
        times = _to_utc(column, timezone)
    elif time_format in MICROSECONDS:
        with np.errstate(over="ignore"):
            micro = numeric(column) * MICROSECONDS[time_format]
        sane = np.abs(micro) < 1e17
        times = np.rint(np.where(sane, micro, 0)).astype(np.int64).view("datetime64[us]")
        times[~sane] = "NaT"
    else:
        times = _from_text(column, name, time_format, timezone)
    beyond = (times < np.datetime64("0001-01-01")) | (times >= np.datetime64("10000-01-01"))
    times = np.where(beyond, np.datetime64("NaT", "s"), times) if beyond.any() else times  # no calendar has them
    return times, np.isnat(times) & ~column.isna().to_numpy()


def time_format_of(column: pd.Series[Any], name: str) -> str | None:
    """The format of a column of times, by its cells: epochs by their size, dates by the order of day and month.

    None for ISO 8601 and unknown formats. Dates such as 01/02/2026 of which none proves the order are an error.
    """
    if epoch := epoch_format(column):
        known = numeric(column)
        known = known[np.isfinite(known)]
        days = (known > SERIAL_DAYS[0]) & (known < SERIAL_DAYS[1]) & (known % 1 != 0)
        if epoch == "epoch" and known.size and days.all():
            raise LogError(
                f"column {name!r}: {known[0]:g} looks like a day as spreadsheets count them; write times as dates "
                "(2026-03-02 06:00:04), or say --time-format epoch"
            )
        return epoch
    if column.dtype.kind == "M":
        return None
    words = column.dropna().astype("string")
    if len(words) and NAMED_DATE.fullmatch(words.iloc[0].strip()[:60]):
        return NAMED
    if not len(words) or not DATE.match(words.iloc[0]):
        return None
    parts = words.str.extract(DATE).dropna()
    first, second = (pd.to_numeric(parts[at]) for at in (0, 2))
    if (first > 12).any() and (second > 12).any():
        shown = [words.loc[part[part > 12].index[0]] for part in (first, second)]
        raise LogError(
            f"column {name!r} has dates with the day first, such as {shown[0][:40]!r}, and with the month first, such "
            f"as {shown[1][:40]!r}; give --time-format, or do without it: --column submitted="
        )
    if (first > 12).any() or (parts[1] == ".").all():  # dots are written between day, month and year only
        return "day-first"
    if (second > 12).any():
        return "month-first"
    raise LogError(
        f"column {name!r}: {words.iloc[0][:40]!r} may have the day or the month first. Choose one: "
        "--time-format day-first, or --time-format month-first (or a strptime pattern), or --column submitted="
    )


def has_offset(column: pd.Series[Any]) -> bool | None:
    """Whether times are written with their offset from UTC; None where that cannot be told."""
    if column.dtype.kind == "M":
        return column.dt.tz is not None if column.notna().any() else None
    some = column.dropna().head(20).astype("string").str.strip()
    some = some[some.str.match(MOMENT, na=False)]
    return bool(some.str.contains(OFFSET, na=False).iloc[0]) if len(some) else None


def without_placeholders(columns: list[Times]) -> list[Times]:
    """The times, NaT for those that mean "never" where other times of the log are of an age with computers.

    Before 1971 these are 0, −1, the year 1 and their like; 2^32 − 2 lies in 2106, and databases write the year 9999.
    """
    if not any(((times >= USUAL_YEARS[1]) & (times < USUAL_YEARS[2])).any() for times in columns):
        return columns
    return [
        np.where((times < USUAL_YEARS[0]) | (times >= USUAL_YEARS[2]), np.datetime64("NaT", "s"), times)
        for times in columns
    ]


def numeric(column: pd.Series[Any]) -> Floats:
    """The numbers of a column, NaN for anything else."""
    # pandas converts integers beyond 64 bits, which are objects, from text only;
    # from True, dates and complex numbers it would make numbers
    plain = column.astype("string") if column.dtype.kind in "ObMc" else column
    return pd.to_numeric(plain, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def epoch_format(column: pd.Series[Any]) -> str | None:
    """The time format of a column of numbers, by their size; None for a column of anything else."""
    if column.dtype.kind == "M":
        return None
    if not pd.api.types.is_numeric_dtype(column.dtype):
        some = column.dropna().astype(str).head(20)
        if not len(some) or pd.to_numeric(some, errors="coerce").notna().mean() <= 0.5:
            return None
    numbers = numeric(column)
    known = numbers[np.isfinite(numbers)]
    for digits, pattern in COMPACT.items():
        if known.size and ((known >= 1970 * 10 ** (digits - 4)) & (known < 2100 * 10 ** (digits - 4))).all():
            return pattern
    size = float(np.median(np.minimum(np.abs(known), 1e18))) if known.size else 0.0  # a mean of 1e308s overflows
    # 10^11 s is the year 5138, 10^11 ms is 1973
    return "epoch" if size < 1e11 else "epoch-ms" if size < 1e14 else "epoch-us" if size < 1e17 else "epoch-ns"


def _from_text(column: pd.Series[Any], name: str, time_format: str | None, timezone: str | None) -> Times:
    plain = column.astype("Int64") if time_format in COMPACT.values() and column.dtype.kind == "f" else column
    text = plain.astype("string").str.strip()
    if time_format in ORDERS:
        order, time_format = ORDERS[time_format], None
        text = text.str.replace(
            r"^(\d\d?)[/.-](\d\d?)[/.-](\d{4}),?", lambda match: order.format(*match.groups()), regex=True
        )
        text = text.str.replace(r"(?<=[ T])(\d):", r"0\1:", regex=True)
    if time_format == NAMED:  # a part that is missing would be taken from the clock
        text = text.where(text.str.fullmatch(NAMED_DATE, na=False))
        text = text.str.replace(
            r"(?<=\d{4}):(?=\d\d:)| @(?= )|,(?=\d+$)", lambda m: "." if m[0] == "," else " ", regex=True
        )
    if time_format is None:
        text = text.str.replace(HALF, lambda m: f"{int(m[1]) % 12 + 12 * (m[3] in 'Pp'):02d}{m[2]}", regex=True)
        for pattern, iso in TO_ISO.items():
            text = text.str.replace(pattern, iso, regex=True)
    present = text.notna() & ~text.str.lower().isin(["", "now", "today"])  # pandas would ask the clock
    has_offset = text.str.contains(OFFSET, na=False)
    without = (present & ~has_offset & text.str.contains(r"^\d{4}-\d\d-\d\d", na=False)).to_numpy(dtype=bool)
    if timezone is None and has_offset.any() and without.any():
        raise LogError(
            f"column {name!r} mixes times with and without an offset from UTC, such as {text[has_offset].iloc[0]!r} "
            f"and {text[without].iloc[0]!r}; give the zone of those without one: --timezone UTC"
        )
    written = {None: "ISO8601", "iso": "ISO8601", NAMED: "mixed"}.get(time_format, time_format)
    times = np.full(len(text), "NaT", "datetime64[us]")
    try:
        for rows, utc in ((has_offset, True), (present & ~has_offset, False)):
            if rows.any():
                parsed = pd.to_datetime(text[rows], format=written, errors="coerce", utc=utc)
                times[rows.to_numpy()] = _to_utc(parsed, timezone)
    except (ValueError, re.error) as error:  # such as %d given twice
        raise LogError(f"column {name!r}: {time_format!r} is not a time format that can be read ({error})") from error
    return times


def _to_utc(parsed: pd.Series[Any], timezone: str | None) -> Times:
    if parsed.dt.tz is None and timezone is not None:
        parsed = parsed.dt.tz_localize(timezone, ambiguous="NaT", nonexistent="shift_forward")
    if parsed.dt.tz is not None:
        parsed = parsed.dt.tz_convert("UTC").dt.tz_localize(None)
    return parsed.to_numpy(dtype="datetime64[us]")
