"""What a tracker remembers: the same attempts with five half-lives, as counts in narrow buckets of log time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latfit.numbers import Floats

WIDTH = 0.02  # of a bucket, in the logarithm of time
SPAN = 1e8  # the cutoff over the smallest latency that is told from 0
HALF_LIVES = tuple(32.0 * 4**k for k in range(5))  # in observations
LEVELS = len(HALF_LIVES)
COMPLETED, FAILED, CENSORED, LOST = range(4)
STATUS = {"completed": COMPLETED, "failed": FAILED, "censored": CENSORED, "lost": LOST}
BUCKETS = math.ceil(math.log(SPAN) / WIDTH) + 2
NEAR = 1e-9  # a time this near to an edge, in buckets, lies on it
LARGE = 1e100  # the weight at which all weights are scaled down
CHUNK = 2048  # observations whose weights fit between 1 and LARGE, whatever the half-life
FORGOTTEN = 1e-14  # a share of the whole weight that is not kept

_GROWTH = np.exp2(1 / np.array(HALF_LIVES))  # 1/γ


class Memories:
    """Decayed counts of completions, failures and censored attempts in buckets, for every half-life.

    A new observation has the weight g, and g grows by 1/γ with each: old ones fade without being touched. Bucket j
    holds the times (e_j, e_{j+1}], e_j = exp(WIDTH · (first + j)); a censored attempt goes to the first bucket that
    begins when it was given up, or later: it was at risk in those before.
    `cross` holds Σ g_k g_l over all observations, of which the diagonal is W₂; `whole` is W = Σ g_k.
    """

    def __init__(self, cutoff: float) -> None:
        self.first = math.floor(math.log(cutoff) / WIDTH) + 2 - BUCKETS
        self.counts = np.zeros((3, LEVELS, BUCKETS))
        self.lost = np.zeros(LEVELS)
        self.weight = np.ones(LEVELS)
        self.whole = np.zeros(LEVELS)
        self.cross = np.zeros((LEVELS, LEVELS))
        self.low, self.high = BUCKETS, 0  # the buckets in use

    def bucket(self, latency: float, status: int) -> int:
        """Which bucket a latency belongs to."""
        if latency <= 0:
            return 0
        at = math.ceil(math.log(latency) / WIDTH - NEAR) - self.first - (status < CENSORED)
        return min(max(at, 0), BUCKETS - 1)

    def buckets(self, latency: Floats, statuses: NDArray[np.int8]) -> NDArray[np.int64]:
        """`bucket` for many at once."""
        with np.errstate(divide="ignore"):
            at = np.ceil(np.log(latency) / WIDTH - NEAR) - self.first - (statuses < CENSORED)
        return np.asarray(np.clip(at, 0, BUCKETS - 1), dtype=np.int64)

    def edges(self, low: int, high: int) -> Floats:
        """The times at which the buckets from `low` to before `high` begin, and the last one ends."""
        return np.asarray(np.exp(WIDTH * np.arange(self.first + low, self.first + high + 1)))

    def add(self, buckets: Sequence[int] | NDArray[np.int64], statuses: Sequence[int] | NDArray[np.int8]) -> None:
        """Take in observations, the oldest first."""
        for start in range(0, len(buckets), CHUNK):
            part = slice(start, start + CHUNK)
            self._add(np.asarray(buckets[part], dtype=np.int64), np.asarray(statuses[part], dtype=np.int64))

    def _add(self, buckets: NDArray[np.int64], statuses: NDArray[np.int64]) -> None:
        n = buckets.size
        weights = self.weight[:, None] * _GROWTH[:, None] ** np.arange(1, n + 1)
        self.weight = weights[:, -1].copy()
        self.whole += weights.sum(axis=1)
        self.cross += weights @ weights.T
        gone = statuses == LOST
        if gone.any():
            self.lost += weights[:, gone].sum(axis=1)
            buckets, statuses, weights = buckets[~gone], statuses[~gone], weights[:, ~gone]
        if buckets.size:
            self.low, self.high = min(self.low, int(buckets.min())), max(self.high, int(buckets.max()) + 1)
            if n <= 16:
                for i, (status, bucket) in enumerate(zip(statuses.tolist(), buckets.tolist(), strict=True)):
                    self.counts[status, :, bucket] += weights[:, i]
            else:
                cells = statuses * BUCKETS + buckets
                for level in range(LEVELS):
                    self.counts[:, level] += np.bincount(cells, weights[level], 3 * BUCKETS).reshape(3, BUCKETS)
        if self.weight[0] > LARGE:
            self._rescale()

    def _rescale(self) -> None:
        """Give a new observation the weight 1 again, and drop what has faded."""
        by = 1 / self.weight
        self.counts *= by[:, None]
        self.lost *= by
        self.whole *= by
        self.cross *= by[:, None] * by
        self.weight = np.ones(LEVELS)
        self.counts[self.counts < FORGOTTEN * self.whole[:, None]] = 0.0
        used = np.flatnonzero(self.counts.any(axis=(0, 1)))
        self.low, self.high = (int(used[0]), int(used[-1]) + 1) if used.size else (BUCKETS, 0)

    def level(self) -> float | None:
        """The mean log latency of completions in the memory of middle length; None where there are none."""
        done = self.counts[COMPLETED, LEVELS // 2]
        total = float(done.sum())
        if not total:
            return None
        return (float(done @ np.arange(BUCKETS)) / total + self.first + 0.5) * WIDTH

    def restart_shortest(self, run: Sequence[tuple[int, int]]) -> None:
        """Let the shortest memory hold these observations only, bucket and status, all with the same weight."""
        g = self.weight[0]
        self.counts[:, 0], self.lost[0] = 0.0, 0.0
        for bucket, status in run:
            if status == LOST:
                self.lost[0] += g
            else:
                self.counts[status, 0, bucket] += g
        n = len(run)
        self.whole[0] = n * g
        self.cross[0], self.cross[:, 0] = 0.0, 0.0
        self.cross[0, 0] = n * g * g
        # the newest n of the other memories are these same observations
        self.cross[0, 1:] = self.cross[1:, 0] = g * self.weight[1:] * (1 - _GROWTH[1:] ** -n) / (1 - 1 / _GROWTH[1:])

    def plus(self, other: Memories) -> Memories:
        """The memories of two trackers with the same cutoff, each as of now."""
        both = Memories.__new__(Memories)
        both.first = self.first
        mine, theirs = 1 / self.weight, 1 / other.weight
        both.counts = self.counts * mine[:, None] + other.counts * theirs[:, None]
        both.lost = self.lost * mine + other.lost * theirs
        both.whole = self.whole * mine + other.whole * theirs
        both.cross = self.cross * mine[:, None] * mine + other.cross * theirs[:, None] * theirs
        both.weight = np.ones(LEVELS)
        both.low, both.high = min(self.low, other.low), max(self.high, other.high)
        return both

    def to_dict(self) -> dict[str, Any]:
        """Plain values that restore every number exactly; only the buckets in use are written."""
        low, high = (self.low, self.high) if self.high > self.low else (0, 0)
        kept = {}
        for name, code in list(STATUS.items())[:3]:
            part = self.counts[code, :, low:high]
            at = np.flatnonzero(part.any(axis=0))
            kept[name] = {"buckets": (at + low).tolist(), "weights": part[:, at].tolist()}
        arrays = {"lost": self.lost, "weight": self.weight, "whole": self.whole, "cross": self.cross}
        return {"first": self.first, "low": self.low, "high": self.high, **kept,
                **{name: array.tolist() for name, array in arrays.items()}}  # fmt: skip
