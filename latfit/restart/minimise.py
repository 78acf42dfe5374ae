"""A figure as a function of the timeout: all candidates for its minimum, and how flat it is around it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.objectives import Figure, Objective
from latfit.restart.objectives.moments import Mean
from latfit.restart.result import Window
from latfit.restart.times import kinks, scan_times

MAX_SLOW_CANDIDATES = 200  # of a figure that is slow to compute
MAX_POLISHED = 20  # at most this many of the lowest local minima of a scan are polished
HUGE = 1e300  # stands for ∞ where a root or a minimum is sought


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
    corners = corners[(corners >= at_least) & (corners <= at_most) & (corners > 0) & np.isfinite(corners)]
    scan = scan_times(law)
    t: Floats = np.union1d(scan[(scan >= at_least) & (scan <= at_most)], corners)
    if not t.size:
        return t
    minima = _lowest_by_value(value, t) if slope is None else _lowest_by_slope(value, slope, t)
    return np.concatenate([corners, t[:1], minima])


def _lowest_by_slope(value: Figure, slope: Figure, t: Floats) -> list[float]:
    """The lowest local minima: where the slope turns from falling to rising; times where it is 0 are passed over."""
    s = slope(t)
    sloping = np.flatnonzero((s < 0) | (s > 0))
    turns = np.flatnonzero((s[sloping[:-1]] < 0) & (s[sloping[1:]] > 0))
    brackets = [(float(t[sloping[i]]), float(t[sloping[i + 1]])) for i in turns]
    lowest = np.argsort([float(value(np.array(b))) for _, b in brackets], kind="stable")[:MAX_POLISHED]

    def at(y: float) -> float:
        return float(np.nan_to_num(slope(np.exp(np.array(y))), neginf=-HUGE))

    minima = []
    for a, b in (brackets[i] for i in lowest):
        low, high = np.log(a), np.log(b)
        if at(low) < 0 < at(high):
            minima.append(float(np.exp(scipy.optimize.brentq(at, low, high, xtol=1e-15, rtol=1e-15))))
        else:  # the turn is a kink at an end, and exp(log(·)) has stepped over it
            minima.append(b if at(low) < 0 else a)
    return minima


def _lowest_by_value(value: Figure, t: Floats) -> list[float]:
    """The lowest local minima of a scan, as they are and polished."""
    v = value(t)
    around = np.concatenate([[np.inf], v, [np.inf]])
    lows = np.flatnonzero((v <= around[:-2]) & (v <= around[2:]) & np.isfinite(v))
    minima = []
    for i in lows[np.argsort(v[lows], kind="stable")[:MAX_POLISHED]]:
        bounds = np.log(t[max(i - 1, 0)]), np.log(t[min(i + 1, t.size - 1)])
        best = scipy.optimize.minimize_scalar(
            lambda y: float(value(np.exp(np.array(y)))), bounds=bounds, method="bounded", options={"xatol": 1e-11}
        )
        minima += [float(t[i]), float(np.exp(best.x))]
    return minima


def thinned(value: Figure, t: Floats) -> Floats:
    """A few hundred of the times t, closer together the better they are: for figures that are slow to compute."""
    while t.size > MAX_SLOW_CANDIDATES:
        few = t[np.unique(np.linspace(0, t.size - 1, MAX_SLOW_CANDIDATES // 2).astype(np.intp))]
        best = np.argsort(value(few), kind="stable")[:3]
        spans = [(few[max(i - 1, 0)], few[min(i + 1, few.size - 1)]) for i in best]
        inside = np.any([(t >= a) & (t <= b) for a, b in spans], axis=0)
        if inside.all():
            return few
        t = t[inside]
    return t


def flat_windows(
    law: Law, t: float, limits: Sequence[float], *, cost: float = 0.0, objective: Objective | None = None
) -> list[Window]:
    """For each limit the connected set of timeouts around t at which the objective's figure (E_J) is at most it.

    Its end is ∞ where all later timeouts qualify, and never later than a deadline.
    """
    goal = Mean() if objective is None else objective

    def value(u: Floats) -> Floats:
        figure = goal.value(law, u, cost)
        return np.where(np.isnan(figure), np.inf, figure)

    if law.jumps is not None:
        windows = _step_windows(law.jumps, value, t, limits)
    else:
        grid = np.union1d(scan_times(law), goal.special_times(law, cost))
        windows = [_smooth_window(value, grid, t, limit) for limit in limits]
    return [(low, max(min(high, goal.latest), low)) for low, high in windows]


def _smooth_window(value: Figure, grid: Floats, t: float, limit: float) -> Window:
    def excess(u: Floats) -> Floats:
        return np.nan_to_num(value(u) - limit, nan=HUGE, posinf=HUGE)

    def at(u: float) -> float:
        return float(excess(np.array(u)))

    def root(a: float, b: float) -> float:
        if at(a) * at(b) >= 0:  # t itself is on the limit, within rounding
            return a if abs(at(a)) <= abs(at(b)) else b
        return float(scipy.optimize.brentq(at, a, b, xtol=1e-300, rtol=1e-13, maxiter=2000))

    low, high = 0.0, np.inf
    earlier = np.append(grid[grid < t], t)
    above = np.flatnonzero(excess(earlier[:-1]) > 0)
    if above.size:
        outer, inner = earlier[above[-1]], earlier[above[-1] + 1]
        low = root(outer, inner) if np.isfinite(inner) else float(grid[-1])  # t = ∞: no time is late enough
    if np.isfinite(t):
        later = np.concatenate([[t], grid[grid > t], max(t, grid[-1]) * np.geomspace(2, 1e12, 80)])
        later = later[np.isfinite(later)]
        above = np.flatnonzero(excess(later[1:]) > 0)
        if above.size:
            high = root(later[above[0]], later[above[0] + 1])
    return low, high


def _step_windows(jumps: Floats, value: Figure, t: float, limits: Sequence[float]) -> list[Window]:
    """On a step law the figure is a sawtooth: from each jump it rises, and only a jump brings it down.

    So a window ends between two jumps on the right, and at a jump on the left.
    """
    crest = value(np.append(np.nextafter(jumps[1:], 0), np.inf))  # just before the next jump
    at = int(np.searchsorted(jumps, t, side="right")) - 1
    windows = []
    for limit in limits:
        too_high = np.flatnonzero(crest > limit * (1 + 1e-13))
        before, after = too_high[too_high < at], too_high[too_high >= at]
        left = float(jumps[before[-1] + 1]) if before.size else float(jumps[0])
        windows.append((left, _end_of_rise(jumps, value, t, limit, int(after[0])) if after.size else np.inf))
    return windows


def _end_of_rise(jumps: Floats, value: Figure, t: float, limit: float, i: int) -> float:
    """Where the figure, rising from jump i, passes the limit."""
    low = max(t, float(jumps[i])) if i >= 0 else t
    last = i + 1 >= jumps.size
    high = float(np.nextafter(jumps[i + 1], 0)) if not last else 2 * max(low, np.finfo(float).tiny)
    while last and np.isfinite(high) and float(value(np.array(high))) <= limit:
        low, high = high, 2 * high
    if not np.isfinite(high):
        return np.inf
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if float(value(np.array(middle))) <= limit else (low, middle)
    return low
