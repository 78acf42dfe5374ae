"""All candidates for the minimum of a figure over the timeout: global, not local."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.times import kinks, scan_times

Figure = Callable[[Floats], Floats]

FEW = 200  # candidates of a figure that is slow to compute
POLISHED = 20  # at most this many of the lowest local minima of a scan are polished


def candidates(
    law: Law,
    value: Figure,
    slope: Figure | None,
    *,
    special: Floats | None = None,
    at_least: float = 0.0,
    at_most: float = np.inf,
) -> Floats:
    """Timeouts among which the minimum of `value` over [at_least, at_most] lies, apart from the limits at 0 and ∞.

    On a step law these are the times at which it can complete: between two of them J only gets
    longer with the timeout. On a law with a density: the local minima of a scan of its whole
    range, polished by the root of `slope` or by Brent's minimiser, and the kinks.
    """
    if law.jumps is not None:
        later = law.jumps[(law.jumps >= at_least) & (law.jumps <= at_most)]
        return np.union1d(later, [at_least]) if law.jumps[0] < at_least <= at_most else later
    corners = np.concatenate([kinks(law), [at_least, at_most], np.empty(0) if special is None else special])
    t = np.union1d(scan_times(law), corners)
    t, corners = (_between(some, at_least, at_most) for some in (t, corners))
    if not t.size:
        return t
    if slope is None:
        return np.concatenate([corners, t[:1], _lowest(value, t)])
    brackets = minima(slope, t)
    height = np.array([float(value(np.array(b))) for _, b in brackets])
    lowest = np.argsort(height, kind="stable")[:POLISHED]
    return np.concatenate([corners, t[:1], [turn(slope, *brackets[i]) for i in lowest]])


def _between(t: Floats, low: float, high: float) -> Floats:
    return t[(t >= low) & (t <= high) & (t > 0) & np.isfinite(t)]


def thinned(value: Figure, t: Floats) -> Floats:
    """A few hundred of the times t, closer together the better they are: for figures that are slow to compute."""
    kept = t
    while kept.size > FEW:
        few = kept[np.unique(np.linspace(0, kept.size - 1, FEW // 2).astype(np.intp))]
        best = np.argsort(value(few), kind="stable")[:3]
        spans = [(few[max(i - 1, 0)], few[min(i + 1, few.size - 1)]) for i in best]
        inside = np.any([(kept >= a) & (kept <= b) for a, b in spans], axis=0)
        if inside.all():
            return few
        kept = kept[inside]
    return kept


def minima(slope: Figure, t: Floats) -> list[tuple[float, float]]:
    """Pairs of times between which a slope turns from falling to rising; times where it is 0 are passed over."""
    s = slope(t)
    known = np.flatnonzero((s < 0) | (s > 0))
    low = np.flatnonzero((s[known[:-1]] < 0) & (s[known[1:]] > 0))
    return [(float(t[known[i]]), float(t[known[i + 1]])) for i in low]


def turn(slope: Figure, a: float, b: float) -> float:
    """The time between a and b at which a slope turns from falling to rising."""

    def at(y: float) -> float:
        return float(np.nan_to_num(slope(np.exp(np.array(y))), neginf=-1e300))

    low, high = np.log(a), np.log(b)
    if not at(low) < 0 < at(high):  # the turn is a kink at an end, and exp(log(·)) has stepped over it
        return b if at(low) < 0 else a
    return float(np.exp(scipy.optimize.brentq(at, low, high, xtol=1e-15, rtol=1e-15)))


def _lowest(value: Figure, t: Floats) -> Floats:
    """The lowest local minima of a scan, as they are and polished."""
    v = value(t)
    around = np.concatenate([[np.inf], v, [np.inf]])
    found = np.flatnonzero((v <= around[:-2]) & (v <= around[2:]) & np.isfinite(v))
    times = []
    for i in found[np.argsort(v[found], kind="stable")[:POLISHED]]:
        a, b = np.log(t[max(i - 1, 0)]), np.log(t[min(i + 1, t.size - 1)])
        best = scipy.optimize.minimize_scalar(
            lambda y: float(value(np.exp(np.array(y)))), bounds=(a, b), method="bounded", options={"xatol": 1e-11}
        )
        times += [t[i], np.exp(best.x)]
    return np.array(times)
