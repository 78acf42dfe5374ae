"""Sharp bounds on E_J when only the counts in buckets are known.

Buckets (e_{j−1}, e_j] with counts n_j; N attempts; C_k = Σ_{j≤k} n_j; a restart costs c.
E(e_k) = (X_k + Y_k)/C_k, where X_k ∈ [lo_k, hi_k] is the sum of the latencies at or below e_k and
Y_k the time of the attempts that did not complete: (N − C_k)(e_k + c), less if some failed sooner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.buckets import Histogram
from latfit.numbers import Floats, Ints


@dataclass(frozen=True, eq=False)
class Bounds:
    """What the counts alone say of the expected duration E.

    `low[k]` ≤ E(e) ≤ `high[k]` for the upper end e = `edges[k]` of each bucket, ∞ where none completed by then.
    Between two edges the upper bound rises with t, so no timeout has a better guarantee than the best edge.
    `least` is below E(t) of every timeout t. `waiting` is E without a timeout where it is known exactly, else ∞.
    """

    edges: Floats
    counts: Ints
    low: Floats
    high: Floats
    least: float
    waiting: float


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def bounds(histogram: Histogram, *, cost: float = 0.0) -> Bounds:
    """The bounds of a histogram when a restart costs `cost` seconds.

    Where a sum of the latencies is known, the upper bounds use it; `least` does not.

    >>> h = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)
    >>> b = bounds(h)
    >>> float(b.edges[b.high.argmin()]), round(float(b.high.min()), 9), round(b.least, 9)
    (0.5, 0.45, 0.19)
    """
    e, n, lost, failed = histogram.edges, histogram.counts, histogram.lost, histogram.failed
    C, lo, hi = np.cumsum(n), np.cumsum(n * e[:-1]), np.cumsum(n * e[1:])
    # every bucket at its lower end, and all of the last one by then: no timeout can do better
    out = (histogram.n - C - failed) * (e[:-1] + cost) + failed * cost
    within = np.where(C > 0, (lo + out) / C, np.inf)
    beyond = lo[-1] + histogram.n_inf * e[-1] + lost * (e[-1] + cost) + failed * cost
    least = float(min(within.min(), beyond / histogram.returned if histogram.returned else np.inf))
    S, waiting = histogram.latency_sum, np.inf
    if S is not None:
        rest_lo, rest_hi = lo[-1] - lo + histogram.n_inf * e[-1], hi[-1] - hi
        lo, hi = lo if histogram.n_inf else np.clip(S - rest_hi, lo, hi), np.clip(S - rest_lo, lo, hi)
        waiting = np.inf if lost or failed else S / histogram.n
    out = (histogram.n - C) * (e[1:] + cost)
    low, high = (np.where(C > 0, time / C, np.inf) for time in (lo + out - failed * e[1:], hi + out))
    return Bounds(e[1:], n, low, high, least, waiting)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def worst_regret(histogram: Histogram, edge: int, *, cost: float = 0.0) -> float:
    """The most by which E at an edge, by its place in `Bounds.edges`, can exceed E of the best timeout, as a share.

    The largest E(e_k)/E(t) over all latencies that the buckets allow and over all timeouts t. Both are linear in the
    latencies for a fixed t and a fixed number q of those in t's bucket that are at or below t, so the largest ratio is
    at a corner: t at the lower end of its bucket l with q of the bucket there, or t = e_l. The latencies below, which
    both share, are all low or all high; those that only E(e_k) counts are high, those that only E(t) counts are low.
    Where both count bucket l (l ≤ k), the worst q lies inside: the n_l − q others are at e_l. With a known sum, or
    with failures, this is an upper bound, and so is high/least; the smaller one is given.
    """
    known = bounds(histogram, cost=cost)
    if not np.isfinite(known.high[edge]):
        return np.inf
    simple = float(_ratio(known.high[edge], known.least))
    if histogram.failed:  # their times are shared by both sides of the ratio
        return max(simple - 1, 0.0)
    return max(min(simple, _largest_ratio(histogram, edge + 1, cost)) - 1, 0.0)


def _largest_ratio(histogram: Histogram, k: int, cost: float) -> float:
    """The largest E(e_k)/E(t), without regard to the sum."""
    e, n, N = histogram.edges, histogram.counts, histogram.n
    m, C = n.size, np.concatenate([[0], np.cumsum(n)])
    lo, hi = (np.concatenate([[0.0], np.cumsum(n * end)]) for end in (e[:-1], e[1:]))
    out = (N - C[k]) * (e[k] + cost)
    earlier, later = np.arange(1, k + 1), np.arange(k + 1, m + 1)
    ratios = [np.ones(1)]
    for s in (lo, hi):
        # t in bucket l ≤ k, with q of its n_l completions; then t = e_l
        A = s[earlier - 1] + hi[k] - hi[earlier - 1] + out
        ratios.append(_best_share(A, s[earlier - 1], earlier, histogram, cost) / C[k])
        A = s[earlier] + hi[k] - hi[earlier] + out
        ratios.append(A / C[k] * _ratio(C[earlier], s[earlier] + (N - C[earlier]) * (e[earlier] + cost)))
        # t just above the lower end of a bucket l > k, all of which is there; then beyond the last edge
        B = s[k] + lo[later] - lo[k] + (N - C[later]) * (e[later - 1] + cost)
        ratios.append((s[k] + out) / C[k] * _ratio(C[later], B))
        beyond = s[k] + lo[m] - lo[k] + histogram.n_inf * e[m] + histogram.lost * (e[m] + cost)
        ratios.append((s[k] + out) / C[k] * _ratio(histogram.returned, beyond).reshape(1))
    return float(np.nanmax(np.concatenate(ratios)))


def _best_share(A: Floats, s: Floats, at: Ints, histogram: Histogram, cost: float) -> Floats:
    """The largest (A − δ q)(C + q)/(K − c q) over whole q from 0 to n_l, for each bucket l in `at`.

    A is C_k E(e_k) with all of bucket l at its upper end; δ is its width; K − c q is (C + q) E(t) with q of it at its
    lower end. The derivative is 0 where c δ q² − 2 δ K q + M = 0, M = (A − δ C) K + c A C.
    """
    e, n = histogram.edges, histogram.counts[at - 1]
    C, delta = np.cumsum(histogram.counts)[at - 1] - n, e[at] - e[at - 1]
    K = s + (histogram.n - C) * (e[at - 1] + cost)
    m = A - delta * C + A * C * _ratio(cost, K)  # M/K, which does not overflow
    root = np.sqrt(np.maximum(1 - _ratio(cost, K) * m / delta, 0.0))
    centre = np.nan_to_num(m / (delta * (1 + root)))
    best = np.zeros(at.size)
    for share in (np.floor(centre), np.ceil(centre), n, np.minimum(n, 1)):
        q = np.clip(share, 0, n)
        best = np.maximum(best, (A - delta * q) * _ratio(C + q, K - cost * q))
    return best


def _ratio(above: Floats | Ints | float, below: Floats | float) -> Floats:
    """a/b, 0 where both are 0: nothing completes."""
    ratio = np.divide(above, below)
    return np.where(np.isnan(ratio), 0.0, ratio)
