"""Durations as people write and read them, from and to seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from latfit.errors import LatfitError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Amount = TypeVar("Amount", float, "NDArray[np.float64]")

UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
SHORTEST, LONGEST = 1e-15, 1e12  # seconds; beyond 30 000 years, or the time light needs for a micrometre, is damage
_SPELLINGS = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "ms": ("ms", "msec", "msecs", "milli", "millis", "millisecond", "milliseconds"),
    "us": ("us", "µs", "μs", "usec", "usecs", "micro", "micros", "microsecond", "microseconds"),
    "ns": ("ns", "nsec", "nsecs", "nano", "nanos", "nanosecond", "nanoseconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "wk", "week", "weeks"),
}
UNIT_WORDS = {word: unit for unit, words in _SPELLINGS.items() for word in words}
"""Every word for a unit of time and its unit; not `m`, which is a minute only beside a number."""

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
_PART = re.compile(rf"\s*({_NUMBER})\s*([a-zµμ]+)\s*,?", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+)(?:-|\s*days?,?\s*))?(\d+):([0-5]?\d):([0-5]?\d(?:\.\d*)?)", re.ASCII)
_ISO = re.compile(r"p(?:(\d+)d)?(?:t(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d*)?)s)?)?", re.ASCII)


def in_seconds(number: Amount, unit: str) -> Amount:
    """A number or an array in seconds; 272450 ms are 272.45 s, to the nearest float."""
    size = UNITS[unit]
    return number / round(1 / size) if size < 1 else number * size


def out_of_range(latencies: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers cannot be latencies in seconds: negative, absent, too short or too long; 0 is possible."""
    out: NDArray[np.bool_] = ~((latencies >= SHORTEST) & (latencies <= LONGEST)) & (latencies != 0)
    return out


def parse_duration(text: str) -> float:
    """The seconds of a text such as `358`, `350ms`, `1h30m`, `1m 20s`, `00:04:32` or `PT4M32S`.

    `text` is a number of seconds, or numbers with ns, us (µs), ms, s, m (min), h, d, w or their names, in any case.
    Two numbers with one colon are refused: they may be hours and minutes, or minutes and seconds.
    Returns seconds, from 1e-15 to 1e12, or 0; anything else raises a LatfitError.

    >>> parse_duration("1h30m"), parse_duration("272450ms"), parse_duration("1-00:04:32")
    (5400.0, 272.45, 86672.0)
    """
    text = str(text)
    plain = text.strip().lower()
    duration = _seconds(plain) if len(plain) <= 100 else None  # patterns are slow on long runs of digits
    if duration is None or not math.isfinite(duration):
        raise LatfitError(
            f"{text[:40]!r} is not a duration; write seconds (358), a number with a unit (350ms, 6m, 1h30m, 2d) "
            "or hours, minutes and seconds (00:04:32)"
        )
    if duration > LONGEST or 0 < duration < SHORTEST:
        raise LatfitError(f"{text[:40]!r} is out of range ({SHORTEST:g} s to {LONGEST:g} s)")
    return duration


def _seconds(plain: str) -> float | None:
    if re.fullmatch(_NUMBER, plain, re.ASCII):
        return float(plain)
    if clock := _CLOCK.fullmatch(plain):
        days, hours, minutes = (int(part or 0) for part in clock.groups()[:3])
        return 86400.0 * days + 3600 * hours + 60 * minutes + float(clock[4])
    if (iso := _ISO.fullmatch(plain)) and any(iso.groups()):
        parts = zip(iso.groups(), ("d", "h", "min", "s"), strict=True)
        return sum(float(part or 0) * UNITS[unit] for part, unit in parts)
    total, at, last = 0.0, 0, math.inf
    while at < len(plain):  # `1h30m`, `1 min 20.5 s`: numbers with units, from the largest to the smallest
        part = _PART.match(plain, at)
        unit = part and ("min" if part[2] == "m" else UNIT_WORDS.get(part[2]))
        if not part or not unit or UNITS[unit] >= last:
            return None
        total, at, last = total + in_seconds(float(part[1]), unit), part.end(), UNITS[unit]
    return total if at else None


def seconds(value: float | None) -> str:
    """A number of seconds in a readable unit; absent or infinite is `no limit`.

    >>> seconds(0.0056), seconds(357.6), seconds(7500), seconds(None)
    ('5.6 ms', '358 s', '2 h 5 min', 'no limit')
    """
    if value is None or not math.isfinite(value):
        return "no limit"
    size = abs(value)
    for limit, unit in ((0.9995e-6, "ns"), (0.9995e-3, "us"), (0.9995, "ms")):
        if 0 < size < limit:
            return f"{_three_digits(value / UNITS[unit])} {unit.replace('us', 'µs')}"
    if size < 3600:
        return f"{_three_digits(value)} s"
    large, small = ("h", "min") if size < 48 * 3600 else ("d", "h")
    whole, rest = divmod(round(size / UNITS[small]), round(UNITS[large] / UNITS[small]))
    return ("-" if value < 0 else "") + f"{whole} {large}" + (f" {rest} {small}" if rest and whole < 1000 else "")


def _three_digits(number: float) -> str:
    return f"{number:.0f}" if abs(number) >= 999.5 else f"{number:.3g}"


def times_in_words(times: Sequence[float]) -> str:
    """Times in the order of use: `358 s and 716 s`, `8.2 s, once`, `66 ms, 2 times`."""
    texts = [seconds(t) for t in times]
    if len(set(texts)) == 1:
        return f"{texts[0]}, {'once' if len(texts) == 1 else f'{len(texts)} times'}"
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
