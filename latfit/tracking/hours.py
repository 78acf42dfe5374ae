"""The time of day: 24 hourly offsets of the log latency, learnt from completions, shrunk towards none."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.numbers import Floats
from latfit.tracking import checked

HALF_LIFE = 14 * 86_400.0  # seconds
NEEDED_DAYS = 3.0
CLEAR = 3.0  # the variance between hours over that within, from which a cycle is believed
FARTHEST = 300.0  # the most that an hour's log latency can differ from the average
LARGE = 1e12  # the weight at which all weights are scaled down


def seconds_of(at: float | datetime) -> float:
    """A time as seconds since 1970, UTC."""
    try:
        found = at.timestamp() if isinstance(at, datetime) else float(0.0 + at)  # a text is no time
    except (TypeError, ValueError, OverflowError, OSError):
        found = math.nan
    if not math.isfinite(found):
        raise RestartError(f"the time is {at!r}: it must be seconds since 1970, or a datetime")
    return found


class Hours:
    """Decayed sums of log latencies less their level, by hour of the day (UTC).

    The offset of an hour is its mean, less the mean of the hours, times b/(b + s²/n): b the variance between hours
    beyond what chance explains, s²/n that of the hour's own mean (empirical Bayes). 0 unless three days were seen and
    the hours differ clearly.
    """

    def __init__(self) -> None:
        self.sums = np.zeros((3, 24))  # Σw, Σwr, Σwr²
        self.offsets = [0.0] * 24
        self.start: float | None = None
        self.last = 0.0
        self.weight = 1.0

    @staticmethod
    def hour(at: float) -> int:
        """The hour of the day of a time."""
        return int(at % 86_400 // 3600)

    def offset(self, at: float | None) -> float:
        """The offset at a time; at the last one observed where none is given."""
        return self.offsets[self.hour(self.last if at is None else at)] if self.start is not None else 0.0

    def add(self, at: float, rest: float) -> None:
        """Take in one completion: its log latency less the current level."""
        if self.start is None:
            self.start = self.last = at
        if at > self.last:
            self.weight *= 2 ** ((at - self.last) / HALF_LIFE) if at - self.last < 30 * HALF_LIFE else LARGE
            self.last = at
        slot, g = self.hour(at), self.weight
        self.sums[0, slot] += g
        self.sums[1, slot] += g * rest
        self.sums[2, slot] += g * rest * rest
        if g > LARGE:
            self.sums /= g
            self.weight = 1.0

    def refresh(self) -> None:
        """Work out the offsets anew."""
        if self.start is None or self.last - self.start < NEEDED_DAYS * 86_400:
            return
        n = self.sums[0] / self.weight
        seen = n > 1
        if np.count_nonzero(seen) < 2:
            return
        means = np.where(seen, self.sums[1] / np.maximum(self.sums[0], 1e-300), 0.0)
        squares = float((self.sums[2] - self.sums[0] * means**2)[seen].sum()) / self.weight
        within = max(squares, 0.0) / max(float(n[seen].sum()) - np.count_nonzero(seen), 1.0)
        means = np.where(seen, means - means[seen].mean(), 0.0)
        noise = within / np.maximum(n, 1e-300)
        between = float(np.var(means[seen], ddof=1)) - float(noise[seen].mean())
        clear = float((n * means**2)[seen].sum()) > CLEAR * within * (np.count_nonzero(seen) - 1)
        kept: Floats = means * between / (between + noise) if clear and between > 0 else np.zeros(24)
        self.offsets = [min(max(x, -FARTHEST), FARTHEST) if math.isfinite(x) else 0.0 for x in kept.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that restore every number exactly."""
        return {"sums": self.sums.tolist(), "offsets": self.offsets, "start": self.start, "last": self.last,
                "weight": self.weight}  # fmt: skip

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Hours:
        """The hours that `to_dict` wrote."""
        made = cls()
        made.sums = checked.array("sums", state["sums"], (3, 24), -checked.LARGEST)
        made.offsets = checked.array("offsets", state["offsets"], (24,), -FARTHEST, FARTHEST).tolist()
        made.start = None if state["start"] is None else checked.number("start", state["start"])
        made.last, made.weight = checked.number("last", state["last"]), checked.positive("weight", state["weight"])
        return made

    def plus(self, other: Hours) -> Hours:
        """The sums of two trackers, as of the later one."""
        if self.start is None or other.start is None:
            return Hours.from_dict((other if self.start is None else self).to_dict())
        made, late = Hours(), max(self.last, other.last)
        for part in (self, other):
            made.sums += part.sums / part.weight * 2 ** ((part.last - late) / HALF_LIFE)
        made.start, made.last = min(self.start, other.start), late
        made.refresh()
        return made
