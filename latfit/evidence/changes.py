"""When did a log change, and in what? Change points in scale, shape, outliers and failures; cycles; dependence.

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
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri, ndtri, xlogy

from latfit.curve import weights_of_ended
from latfit.evidence.probes import MAX_ROWS_LOOKED_AT, MIN_PROBES_TO_DESCRIBE, evenly
from latfit.numbers import Bools, Floats, Ints
from latfit.table import A_MONDAY, CENSORED, COMPLETED, FAILED, LOST, Codes, ProbeTable

RARE = 0.01  # the chance that a log without changes, or without a cycle, shows one
CYCLES = ((86_400, 24), (7 * 86_400, 7))  # a day by hours, a week by days


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
    """The change points of a log and its cycles; `probes` had a place in time, in `blocks` blocks.

    The cycles are how many times slower the slowest hour of the day, or day of the week, is than the fastest; None if
    not significant.
    """

    changes: tuple[Change, ...]
    daily_cycle: float | None
    weekly_cycle: float | None
    probes: int
    blocks: int

    def to_dict(self) -> dict[str, Any]:
        shown = []
        for change in self.changes:
            at = change.at and f"{np.datetime_as_string(change.at, unit='s')}Z"
            shown.append({"kind": change.kind, "p_value": change.p_value, "index": change.index, "at": at})
        return {"changes": shown, "daily_cycle": self.daily_cycle, "weekly_cycle": self.weekly_cycle}


def find_changes(submitted: Floats | None, latency: Floats, status: Codes, cutoff: float | None = None) -> Changes:
    """The change points and cycles of a log, in order of submission (of the rows where there are no times).

    Rows whose time is NaN are left out. What is still out at the `cutoff` (default: the largest latency) is an outlier;
    censored before it, a probe counts with its expected scores given that. Nothing is found in fewer than 40 probes, or
    10 completions.
    """
    order, when = np.arange(latency.size), None
    if submitted is not None and np.isfinite(submitted).any():
        order = np.argsort(submitted, kind="stable")[: np.count_nonzero(np.isfinite(submitted))]
        when = submitted
    T = cutoff if cutoff is not None else float(np.nanmax(latency[order], initial=0.0))
    rows = evenly(order.size)
    x, codes, when = latency[order[rows]], status[order[rows]], None if when is None else when[order[rows]]
    out = (codes == LOST) | (x > T) | ((codes == CENSORED) & (x >= T))
    done = (codes == COMPLETED) & ~out
    if x.size < MIN_PROBES_TO_DESCRIBE or np.count_nonzero(done) < 10 or not T > 0:
        return Changes((), None, None, order.size, 0)
    scores = _scores(x, codes, out)
    daily = weekly = None
    if when is not None:
        logs = np.log(np.maximum(x[done], np.min(x[done & (x > 0)], initial=np.inf) if x[done].any() else 1.0))
        daily, weekly = (_take_out(scores, done, when[done], logs, *cycle) for cycle in CYCLES)
    blocks = _Blocks.of(scores, min(400, x.size // max(5, math.isqrt(x.size))))  # of 5 and of √n probes or more
    edges = [0, *blocks.cuts(), blocks.n]
    changes = []
    for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False):
        gain = blocks.costs(left, right) - blocks.costs(left, cut) - blocks.costs(cut, right)
        chance = (right - left) * float(chdtrc(blocks.dimensions, max(gain.sum(), 0.0)))
        start, index, end = blocks.edges[[left, cut, right]].tolist()
        sides = [slice(start, index), slice(index, end)]
        completed = [x[side][done[side]] for side in sides]
        before, after = (float(np.median(each)) if each.size else None for each in completed)
        ratio, later = (1 - float(np.mean(done[side])) for side in sides)
        at = None if when is None else np.datetime64(int(when[index] * 1e6), "us")
        kind = ("scale", "shape", "outliers", "failures")[int(np.argmax(gain))]
        changes.append(Change(at, int(rows[index]), kind, min(1.0, chance), (before, after), (ratio, later)))
    return Changes(tuple(changes), daily, weekly, order.size, blocks.n)


def _scores(x: Floats, codes: Codes, out: Bools) -> Floats:
    """The four scores of each probe; censored before the cutoff, their expectation given that."""
    done, failed, early = ((codes == code) & ~out for code in (COMPLETED, FAILED, CENSORED))
    weight = np.where(done | failed, weights_of_ended(np.where(out, np.inf, x), early), 0.0) / x.size
    z = ndtri(np.clip(_mid_distribution(x[done], weight[done]), 1e-9, 1 - 1e-9))
    spread = np.average(z**2, weights=weight[done])
    z /= np.sqrt(spread) if spread > 0 else 1.0
    scores = np.zeros((4, x.size))
    scores[0, done], scores[1, done] = z, np.abs(z) - np.average(np.abs(z), weights=weight[done])
    scores[2, out], scores[3, failed] = 1.0, 1.0
    if early.any():
        order = np.argsort(x)  # what was out has no weight
        beyond = np.cumsum((weight * scores)[:, order[::-1]], axis=1)[:, ::-1]
        at = np.searchsorted(x[order], x[early], side="right")
        beyond = np.append(beyond, np.zeros((4, 1)), axis=1)[:, at]
        never = 1 - weight.sum()
        left = never + np.append(np.cumsum(weight[order[::-1]])[::-1], 0.0)[at]
        beyond[2] = never
        scores[:, early] = np.divide(beyond, left, out=np.zeros_like(beyond), where=left > 0)
    return scores


def _mid_distribution(x: Floats, weight: Floats) -> Floats:
    """The share below each value and half of the share at it."""
    order = np.argsort(x)
    starts = np.flatnonzero(np.diff(x[order], prepend=-np.inf))
    ends = np.append(starts[1:], x.size)
    upto = np.append(0.0, np.cumsum(weight[order]))
    shares = np.empty(x.size)
    shares[order] = np.repeat((upto[starts] + upto[ends]) / (2 * upto[-1]), ends - starts)
    return shares


class _Blocks(NamedTuple):
    """Cumulative sums over the probes of `n` blocks."""

    edges: Ints  # (n + 1,) where blocks begin, and the end
    white: Floats  # (n + 1, 2) their whitened scores for scale and shape
    counts: Floats  # (n + 1, 2) their outliers and failures
    dispersion: Floats  # (2,)

    @classmethod
    def of(cls, scores: Floats, n: int) -> _Blocks:
        """From the scores of each probe, in `n` blocks of equal size."""
        probes = scores.shape[1]
        edges = np.linspace(0, probes, n + 1).round().astype(np.int64)
        sums = np.add.reduceat(scores, edges[:-1], axis=1)
        means = sums / np.diff(edges)
        # from differences, which a change hardly touches; dependence makes those of blocks larger
        variances = [np.mean(np.diff(scores, axis=1) ** 2, axis=1) / 2]
        for lag in (lag for lag in (1, 2, 4) if n > 4 * lag):
            variances.append(probes / n * np.mean((means[:, lag:] - means[:, :-lag]) ** 2, axis=1) / 2)
        noise = np.max(variances, axis=0)
        p = sums[2:].sum(axis=1) / probes
        dispersion = np.maximum(noise[2:] / np.maximum(p * (1 - p), 1e-300), 1.0)
        sums[:2] /= np.sqrt(np.maximum(noise[:2], 1e-300))[:, None]
        whole = np.append(np.zeros((4, 1)), np.cumsum(sums, axis=1), axis=1).T
        return cls(edges, whole[:, :2], whole[:, 2:], dispersion)

    @property
    def n(self) -> int:
        return self.edges.size - 1

    @property
    def dimensions(self) -> int:
        return 2 + int(np.count_nonzero(self.counts[-1]))

    @property
    def penalty(self) -> float:
        least = float(chdtri(self.dimensions, RARE / self.n))  # what makes a change significant
        return max(2 * self.dimensions + 3.5 * math.log(self.n), least)

    def costs(self, start: Ints | int, end: Ints | int) -> Floats:
        """The cost of segments by score, up to a constant: −‖Σw‖²/n of the two, the deviances of the others."""
        size = np.asarray(self.edges[end] - self.edges[start])[..., None]
        gauss = -((self.white[end] - self.white[start]) ** 2) / size
        hits = self.counts[end] - self.counts[start]
        entropy = -2 * (xlogy(hits, hits / size) + xlogy(size - hits, 1 - hits / size))
        return np.append(gauss, entropy / self.dispersion, axis=-1)

    def cuts(self) -> list[int]:
        """The blocks at which the log changes."""
        n, penalty = self.n, self.penalty
        costs, (end_of, start_of) = np.empty((n + 1, n + 1)), np.tril_indices(n + 1, -1)
        costs[end_of, start_of] = self.costs(start_of, end_of).sum(axis=-1)
        best, came = np.zeros(n + 1), [0]
        best[0] = -penalty
        for end in range(1, n + 1):
            total = best[:end] + costs[end, :end] + penalty
            came.append(int(total.argmin()))
            best[end] = total[came[-1]]
        cuts, at = list[int](), n
        while (at := came[at]) > 0:
            cuts.append(at)
        return cuts[::-1]


def _take_out(scores: Floats, done: Bools, when: Floats, logs: Floats, period: int, parts: int) -> float | None:
    """The ratio of a cycle of the completions, taken out of the scores for scale in place; None where there is none."""
    ratio = find_cycle(when, scores[0, done], logs, period=period, parts=parts)
    if ratio is not None:
        part = ((when - A_MONDAY) % period * parts // period).astype(np.int64)
        means = np.bincount(part, scores[0, done], minlength=parts) / np.maximum(np.bincount(part, minlength=parts), 1)
        scores[0, done] -= means[part]
        scores[1, done] = np.abs(scores[0, done]) - np.mean(np.abs(scores[0, done]))
    return ratio


def find_cycle(submitted: Floats, scores: Floats, logs: Floats, *, period: int, parts: int) -> float | None:
    """How many times slower the slowest part of a cycle is than the fastest, or None where no cycle is significant.

    A cycle has the length `period` seconds in `parts` equal parts. The statistic is the spread of the parts' mean
    scores. Its distribution without a cycle is that of periods each turned by a random number of parts, which keeps how
    the parts of one period depend on each other; p ≤ 0.01 counts. Four periods or more are needed, with a probe a part
    on average and in a quarter of all parts. The offsets of parts in log latency are shrunk towards 0 by the share of
    their spread that noise explains.
    """
    since = submitted - A_MONDAY
    if submitted.size < 4 * parts or np.ptp(since // period) < 3:
        return None
    part = (since % period * parts // period).astype(np.int64)
    number = np.unique((since // period).astype(np.int64), return_inverse=True)[1].ravel()  # empty periods do not count
    periods = int(number.max()) + 1
    if periods < 4:
        return None
    counts, sums = (
        np.bincount(number * parts + part, values, minlength=periods * parts).reshape(periods, parts)
        for values in (np.ones_like(scores), scores)
    )
    rest = sums - counts * (sums.sum(axis=1) / counts.sum(axis=1))[:, None]  # a slow day is not a cycle
    if np.count_nonzero(counts) < counts.size / 4 or not rest.any():
        return None
    turned = [np.lib.stride_tricks.sliding_window_view(np.tile(table, 2), parts, axis=1) for table in (rest, counts)]

    def spread(turns: Ints) -> Floats:
        """(turns, periods) → the spread of the parts with each period turned by so many."""
        total, count = (table[np.arange(periods), turns].sum(axis=1) for table in turned)
        return np.asarray(np.divide(total**2, count, out=np.zeros_like(total), where=count > 0).sum(axis=1))

    observed, turns = spread(np.zeros((1, periods), dtype=np.int64)), _turns(parts, periods)
    exceeded = 1
    for some in (turns[:10], turns[10:50], turns[50:]):  # mostly there is no cycle, as the first ones show
        exceeded += int(np.count_nonzero(spread(some) >= observed))
        if exceeded / (1 + len(turns)) > RARE:
            return None
    logs = logs - (np.bincount(number, logs) / np.bincount(number))[number]
    count = np.bincount(part, minlength=parts).astype(np.float64)
    means = np.bincount(part, logs, minlength=parts) / np.maximum(count, 1)
    known = count > 0
    means -= np.average(means[known], weights=count[known])
    noise = float(np.var(logs - means[part])) / np.maximum(count, 1)
    between = max(0.0, float(np.var(means[known])) - float(np.mean(noise[known])))
    effects = np.where(known, means * between / np.maximum(between + noise, 1e-300), 0.0)
    return float(np.exp(np.ptp(effects)))


@lru_cache(maxsize=64)
def _turns(parts: int, periods: int) -> Ints:
    return np.random.default_rng(0).integers(0, parts, (499, periods))


@dataclass(frozen=True)
class Dependence:
    """Rank correlation of successive probes, its significance, and how losses cluster.

    `lag1` is that of neighbours, `strongest` the largest over ten lags; `p_value` is Ljung and Box's over these lags.
    By the integrated `autocorrelation_time` n probes are worth about n/time independent ones.
    `lost_after_lost` is the share lost among those that follow a lost one, None where none was.
    """

    lag1: float
    strongest: float
    p_value: float
    autocorrelation_time: float
    lost_after_lost: float | None

    @property
    def found(self) -> bool:
        """Whether it is strong enough to matter and too strong for chance."""
        return self.strongest > 0.1 and self.p_value < 1e-3

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def dependence(probes: ProbeTable) -> Dependence | None:
    """Of ranks of the last 200 000 probes; its time is 1 + 2 Σ r_k until r_k is noise. None without times or if few."""
    probes = probes.take(slice(-MAX_ROWS_LOOKED_AT, None))
    n, ranks, lost = probes.n, probes.ranks, probes.lost
    if probes.submitted is None or n < MIN_PROBES_TO_DESCRIBE or not np.ptp(ranks):
        return None
    centred = ranks - ranks.mean()
    lags = np.arange(1, 1 + min(10, n // 5))
    r = np.array([centred[lag:] @ centred[: n - lag] for lag in (0, *lags)])
    if (r >= 2 / np.sqrt(n) * r[0]).all():  # noise begins later: every lag
        spectrum = np.fft.rfft(centred, 2 * n)
        r = np.fft.irfft(spectrum * spectrum.conj())[:n]
    r = r / r[0]
    Q = n * (n + 2) * float((r[lags] ** 2 / (n - lags)).sum())  # Ljung and Box 1978
    noise = np.flatnonzero(r < 2 / np.sqrt(n))
    time = max(1.0, 1 + 2 * float(r[1 : noise[0] if noise.size else n].sum()))
    follows = lost[1:][lost[:-1]]
    after = float(follows.mean()) if follows.size else None
    return Dependence(float(r[1]), float(r[lags].max()), float(chdtrc(lags.size, Q)), time, after)
