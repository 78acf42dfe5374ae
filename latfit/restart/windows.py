"""How far the timeout may move before the objective's figure grows by a share: connected windows around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.objectives.base import Figure, Objective
from latfit.restart.objectives.mean import Mean
from latfit.restart.result import Window
from latfit.restart.times import scan_times


def flat_windows(
    law: Law, t: float, limits: Sequence[float], *, cost: float = 0.0, objective: Objective | None = None
) -> list[Window]:
    """For each limit the connected set of timeouts around t at which the objective's figure (E_J) is at most it.

    Its end is ∞ where all later timeouts qualify, and never later than a deadline.
    """
    of = Mean() if objective is None else objective

    def value(u: Floats) -> Floats:
        figure = of.value(law, u, cost)
        return np.where(np.isnan(figure), np.inf, figure)

    if law.jumps is not None:
        found = _step_windows(law.jumps, value, t, limits)
    else:
        grid = scan_times(law)
        grid = np.union1d(grid, special) if (special := of.special_times(law, cost)).size else grid
        found = [_smooth_window(value, grid, t, limit) for limit in limits]
    return [(low, max(min(high, of.latest), low)) for low, high in found]


def _smooth_window(value: Figure, grid: Floats, t: float, limit: float) -> Window:
    def excess(u: Floats) -> Floats:
        return value(u) - limit

    return _left(excess, grid, t), _right(excess, grid, t)


def _left(excess: Callable[[Floats], Floats], grid: Floats, t: float) -> float:
    earlier = grid[grid < t]
    above = np.flatnonzero(~(excess(earlier) <= 0))
    if not above.size:
        return 0.0
    last = above[-1]
    inner = earlier[last + 1] if last + 1 < earlier.size else t
    if np.isinf(inner):  # t = ∞ and no time on the grid is late enough
        return float(grid[-1])
    return _root(excess, earlier[last], inner)


def _right(excess: Callable[[Floats], Floats], grid: Floats, t: float) -> float:
    if np.isinf(t):
        return np.inf
    later = np.concatenate([grid[grid > t], max(t, grid[-1]) * np.geomspace(2, 1e12, 80)])
    later = later[np.isfinite(later)]
    above = np.flatnonzero(~(excess(later) <= 0))
    if not above.size:
        return np.inf
    first = above[0]
    return _root(excess, later[first - 1] if first else t, later[first])


def _root(excess: Callable[[Floats], Floats], a: float, b: float) -> float:
    """Where `excess` changes sign between a and b; ∞ counts as a large excess."""

    def capped(u: float) -> float:
        return float(np.nan_to_num(excess(np.array(u)), nan=1e300, posinf=1e300))

    if capped(a) * capped(b) >= 0:  # t itself is on the limit, within rounding
        return a if abs(capped(a)) <= abs(capped(b)) else b
    return float(scipy.optimize.brentq(capped, a, b, xtol=1e-300, rtol=1e-13, maxiter=2000))


def _step_windows(jumps: Floats, value: Figure, t: float, limits: Sequence[float]) -> list[Window]:
    """On a step law the figure is a sawtooth: from each jump it rises, and only a jump brings it down.

    So a window ends between two jumps on the right, and at a jump on the left.
    """
    crest = value(np.append(np.nextafter(jumps[1:], 0), np.inf))  # just before the next jump
    at = int(np.searchsorted(jumps, t, side="right")) - 1
    found = []
    for limit in limits:
        too_high = np.flatnonzero(crest > limit * (1 + 1e-13))
        before, after = too_high[too_high < at], too_high[too_high >= at]
        left = float(jumps[before[-1] + 1]) if before.size else float(jumps[0])
        found.append((left, _end(jumps, value, t, limit, int(after[0])) if after.size else np.inf))
    return found


def _end(jumps: Floats, value: Figure, t: float, limit: float, i: int) -> float:
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
