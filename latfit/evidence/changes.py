"""When did a log change, and in what? Change points in scale, in shape, in outliers and in failures.

Every probe becomes four scores whose mean is the same throughout a log that does not change: the normal score z
of its latency's rank (scale), |z| less its mean (shape), and whether it was an outlier or a failure. The log is cut
into at most 400 blocks of √n probes or more (200 000 of a longer log, evenly spread), and exact dynamic programming
finds the segments with the least

    Σ over segments { −(Σz)²/(n v₁) − (Σ|z|)²/(n v₂) + D(outliers) + D(failures) } + penalty · changes,
    penalty = 2d + 3.5 ln(blocks) or more,  d the number of scores that vary,

where the variances v are those of differences between blocks, which absorbs short dependence, and D is the binomial
deviance over its dispersion. |z| instead of z²: lighter tails, fewer false changes. A daily and a weekly cycle are
taken out first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, ndtri, xlogy

from latfit.curve import KaplanMeier, kaplan_meier
from latfit.evidence.cycles import DAY, WEEK, Cycle, find_cycle
from latfit.evidence.probes import evenly
from latfit.numbers import Floats
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, tallied

Codes = NDArray[np.int8]
Times = NDArray[np.datetime64]

KINDS = ("scale", "shape", "outliers", "failures")
BLOCKS = 400
MIN_PROBES = 40
MIN_BLOCK = 5  # probes
SIGNIFICANT = 0.01


@dataclass(frozen=True)
class Change:
    """The law of the log is another from here on.

    `index` counts the probes before it in order of submission, `at` is the submission of the first one after it
    (None without times). `kind` is what changed most: scale, shape, outliers or failures. `p_value` bounds the
    chance of so large a change anywhere in the two segments around it. `median` and `ratio` are the median latency
    of completions and the share not completed, before and after.
    """

    at: np.datetime64 | None
    index: int
    kind: str
    p_value: float
    median: tuple[float | None, float | None]
    ratio: tuple[float, float]


@dataclass(frozen=True)
class Changes:
    """The change points of a log and its cycles; `probes` had a place in time, in `blocks` blocks."""

    changes: tuple[Change, ...]
    daily: Cycle | None
    weekly: Cycle | None
    probes: int
    blocks: int

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields."""
        shown = [{"at": None if one.at is None else f"{np.datetime_as_string(one.at, unit='s')}Z", "kind": one.kind,
                  "p_value": one.p_value, "index": one.index} for one in self.changes]  # fmt: skip
        return {"changes": shown, "daily_cycle": self.daily_cycle, "weekly_cycle": self.weekly_cycle}

    @property
    def daily_cycle(self) -> float | None:
        """How many times slower the slowest hour of the day is than the fastest; None if not significant."""
        return self.daily.ratio if self.daily else None

    @property
    def weekly_cycle(self) -> float | None:
        """How many times slower the slowest day of the week is than the fastest; None if not significant."""
        return self.weekly.ratio if self.weekly else None


def find_changes(submitted: Times | None, latency: Floats, status: Codes, cutoff: float | None = None) -> Changes:
    """The change points and cycles of a log, in order of submission (of the rows where there are no times).

    Parameters: `submitted`, UTC times, NaT where unknown (those rows are left out), or None; `latency` in seconds
    and `status`, the codes of `latfit.table.STATUSES`; what is still out at `cutoff` is an outlier (default:
    at the largest latency). Censored before the cutoff, a probe counts with its expected scores given that.
    Returns no change for fewer than 40 probes, or 10 completions.

    >>> rng = np.random.default_rng(1)
    >>> x = rng.lognormal(5.5, 1, 2000) * np.where(np.arange(2000) < 1200, 1, 3)
    >>> [(c.index, c.kind) for c in find_changes(None, x, np.zeros(2000, np.int8)).changes]
    [(1200, 'scale')]
    """
    when, x, codes = _in_order(submitted, latency, status)
    T, whole = cutoff if cutoff is not None else float(np.nanmax(x, initial=0.0)), x.size
    rows = evenly(whole)
    if rows.size < whole:
        when, x, codes = None if when is None else when[rows], x[rows], codes[rows]
    out = (codes == LOST) | (x > T) | ((codes == CENSORED) & (x >= T))
    done = (codes == COMPLETED) & ~out
    n = x.size
    if n < MIN_PROBES or np.count_nonzero(done) < 10 or not T > 0:
        return Changes((), None, None, whole, 0)
    km = kaplan_meier(tallied(np.where(out, T, x), np.where(out, CENSORED, codes).astype(np.int8)))
    scores = _scores(km, x, codes, out, T)
    daily, weekly = _without_cycles(scores, when, x, done)
    table = _Blocks.of(scores)
    cuts = table.segments()
    bounds = [0, *cuts, table.n]
    found = [_described(table, bounds[i - 1 : i + 2], x, done, when) for i in range(1, len(cuts) + 1)]
    return Changes(tuple(replace(one, index=int(rows[one.index])) for one in found), daily, weekly, whole, table.n)


def _in_order(submitted: Times | None, latency: Floats, status: Codes) -> tuple[Times | None, Floats, Codes]:
    """The rows in order of submission; those without a time are left out where others have one."""
    if submitted is None or np.isnat(submitted).all():
        return None, latency, status
    known = np.flatnonzero(~np.isnat(submitted))
    order = known[np.argsort(submitted[known], kind="stable")]
    return submitted[order].astype("datetime64[us]"), latency[order], status[order]


def _scores(km: KaplanMeier, x: Floats, codes: Codes, out: NDArray[np.bool_], T: float) -> Floats:
    """The four scores of each probe; censored before the cutoff, their expectation given that."""
    done = (codes == COMPLETED) & ~out
    gone = (codes == FAILED) & ~out
    mass = np.diff(km.completed, prepend=0.0)
    z = ndtri(np.clip((km.completed - mass / 2) / km.completed[-1], 1e-9, 1 - 1e-9))
    spread = np.average(z**2, weights=mass)
    z /= np.sqrt(spread) if spread > 0 else 1.0
    middle = np.average(np.abs(z), weights=mass)
    scores = np.zeros((4, x.size))
    at = np.searchsorted(km.times, x[done])
    scores[0, done], scores[1, done] = z[at], np.abs(z[at]) - middle
    scores[2, out], scores[3, gone] = 1.0, 1.0
    early = (codes == CENSORED) & ~out
    if early.any():
        at = np.searchsorted(km.times, x[early], side="right")
        left = np.append(1.0, km.still_out)[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            for row, values in enumerate(
                (z * mass, (np.abs(z) - middle) * mass, None, np.diff(km.failed, prepend=0.0))
            ):
                beyond = km.still_out[-1] if values is None else np.append(np.cumsum(values[::-1])[::-1], 0.0)[at]
                scores[row, early] = np.where(left > 0, beyond / left, 0.0)
    return scores


def _without_cycles(
    scores: Floats, when: Times | None, x: Floats, done: NDArray[np.bool_]
) -> tuple[Cycle | None, Cycle | None]:
    """Find the daily and the weekly cycle of the completions, and take them out of the scores for scale in place."""
    if when is None:
        return None, None
    found = []
    logs = np.log(np.maximum(x[done], np.min(x[done & (x > 0)], initial=np.inf) if (x[done] > 0).any() else 1.0))
    for period, parts in ((DAY, 24), (WEEK, 7)):
        cycle = find_cycle(when[done], scores[0, done], logs, period=period, parts=parts)
        found.append(cycle)
        if cycle is not None:
            seconds = (when[done] - np.datetime64("1970-01-05", "us")) / np.timedelta64(1, "s")
            part = (seconds % period * parts // period).astype(np.int64)
            means = np.bincount(part, scores[0, done], minlength=parts) / np.maximum(
                np.bincount(part, minlength=parts), 1
            )
            scores[0, done] -= means[part]
            scores[1, done] = np.abs(scores[0, done]) - np.mean(np.abs(scores[0, done]))
    return found[0], found[1]


class _Blocks(NamedTuple):
    """Cumulative sums over the probes of the blocks."""

    starts: NDArray[np.int64]
    size: Floats  # (blocks + 1,) how many
    white: Floats  # (blocks + 1, 2) their whitened scores for scale and shape
    counts: Floats  # (blocks + 1, 2) their outliers and failures
    dispersion: Floats
    n: int

    @classmethod
    def of(cls, scores: Floats) -> _Blocks:
        """Blocks of equal size, √n probes or more where that makes too many."""
        n = scores.shape[1]
        blocks = min(BLOCKS, n // max(MIN_BLOCK, math.isqrt(n)))
        edges = np.linspace(0, n, blocks + 1).round().astype(np.int64)
        sums = np.add.reduceat(scores, edges[:-1], axis=1)
        size = np.diff(edges).astype(np.float64)
        noise = _noise(scores, sums / size, n / blocks)
        p = sums[2:].mean(axis=1) / size.mean()
        dispersion = np.maximum(noise[2:] / np.maximum(p * (1 - p), 1e-300), 1.0)
        rows = np.concatenate([sums[:2] / np.sqrt(np.maximum(noise[:2], 1e-300))[:, None], sums[2:]])
        whole = np.concatenate([np.zeros((1, 4)), np.cumsum(rows.T, axis=0)])
        return cls(edges, np.append(0.0, np.cumsum(size)), whole[:, :2], whole[:, 2:], dispersion, blocks)

    @property
    def dimensions(self) -> int:
        """How many scores vary at all."""
        return 2 + int(np.count_nonzero(self.counts[-1]))

    @property
    def penalty(self) -> float:
        """The cost of a change: 2d + 3.5 ln(blocks), and no less than what makes a change significant."""
        least = float(chdtri(self.dimensions, SIGNIFICANT / self.n))
        return max(2 * self.dimensions + 3.5 * math.log(self.n), least)

    def costs(self, start: NDArray[np.int64] | int, end: NDArray[np.int64] | int) -> Floats:
        """The cost of segments by score, up to a constant: −‖Σw‖²/n of the two, the deviances of the others."""
        size = (self.size[end] - self.size[start])[..., None]
        gauss = -((self.white[end] - self.white[start]) ** 2) / size
        hits = self.counts[end] - self.counts[start]
        entropy = -2 * (xlogy(hits, hits / size) + xlogy(size - hits, 1 - hits / size))
        return np.concatenate([gauss, entropy / self.dispersion], axis=-1)

    def segments(self) -> list[int]:
        """The blocks at which the best segments begin, the first one apart."""
        penalty = self.penalty
        best, came = np.zeros(self.n + 1), np.zeros(self.n + 1, dtype=np.int64)
        best[0] = -penalty
        costs, pairs = np.empty((self.n + 1, self.n + 1)), np.tril_indices(self.n + 1, -1)
        costs[pairs] = self.costs(pairs[1], pairs[0]).sum(axis=-1)
        for end in range(1, self.n + 1):
            total = best[:end] + costs[end, :end] + penalty
            came[end] = int(np.argmin(total))
            best[end] = total[came[end]]
        cuts, at = [], self.n
        while came[at] > 0:
            at = int(came[at])
            cuts.append(at)
        return cuts[::-1]


def _noise(scores: Floats, means: Floats, size: float) -> Floats:
    """The variance of each score as it adds up over blocks: from differences, which a change hardly touches.

    The largest of that between neighbouring probes and those between the means of blocks 1, 2 and 4 apart:
    dependence makes the latter larger, and few blocks make them uncertain.
    """
    found = [np.mean(np.diff(scores, axis=1) ** 2, axis=1) / 2]
    for lag in (1, 2, 4):
        if means.shape[1] > 4 * lag:
            found.append(size * np.mean((means[:, lag:] - means[:, :-lag]) ** 2, axis=1) / 2)
    return np.asarray(np.max(found, axis=0))


def _described(table: _Blocks, bounds: list[int], x: Floats, done: NDArray[np.bool_], when: Times | None) -> Change:
    """A change with its kind and significance; `bounds` are the blocks where its two segments begin and end."""
    left, cut, right = bounds
    gain = table.costs(left, right) - table.costs(left, cut) - table.costs(cut, right)
    p_value = min(1.0, (right - left) * float(chdtrc(table.dimensions, max(gain.sum(), 0.0))))
    start, index, end = table.starts[bounds].tolist()
    sides = slice(start, index), slice(index, end)
    before, after = (float(np.median(x[side][done[side]])) if done[side].any() else None for side in sides)
    less, more = (1 - float(np.mean(done[side])) for side in sides)
    at = None if when is None else when[index]
    return Change(at, index, KINDS[int(np.argmax(gain))], p_value, (before, after), (less, more))
