"""How far the timeout may move before E_J grows by a share: connected windows around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import brentq

from latfit.laws.base import Law
from latfit.restart.completion import expected_duration
from latfit.restart.times import Floats, failure_times, scan_times, still_out

Window = tuple[float, float]


def flat_windows(law: Law, t: float, limits: Sequence[float], *, cost: float = 0.0) -> list[Window]:
    """For each limit the connected set of timeouts around t with E_J ≤ limit.

    Its end is ∞ where all later timeouts qualify.
    """
    if law.jumps is not None:
        return _step_windows(law, np.union1d(law.jumps, failure_times(law)), t, limits, cost)
    grid = scan_times(law)

    def window(limit: float) -> Window:
        def excess(u: Floats) -> Floats:
            return expected_duration(law, u, cost=cost) - limit

        return _left(excess, grid, t), _right(excess, grid, t)

    return [window(limit) for limit in limits]


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

    def finite(u: float) -> float:
        return float(np.nan_to_num(excess(np.array(u)), nan=1e300, posinf=1e300))

    if finite(a) * finite(b) >= 0:  # t itself is on the limit, within rounding
        return a if abs(finite(a)) <= abs(finite(b)) else b
    return float(brentq(finite, a, b, xtol=1e-300, rtol=1e-13))


def _step_windows(law: Law, jumps: Floats, t: float, limits: Sequence[float], cost: float) -> list[Window]:
    """On a step law E_J is a sawtooth: from each jump it rises with slope S/F̃, and only a jump brings it down.

    So a window ends between two jumps on the right, and at a jump on the left.
    """
    F, S = law.cdf(jumps), still_out(law, jumps)
    E_J = expected_duration(law, jumps, cost=cost)
    with np.errstate(all="ignore"):
        slope = np.where(S > 0, S / F, 0.0)
        rise = np.where(slope > 0, np.diff(jumps, append=np.inf) * slope, 0.0)
    crest = np.where(F > 0, E_J + rise, np.inf)
    at = int(np.searchsorted(jumps, t, side="right")) - 1
    found = []
    for limit in limits:
        too_high = np.flatnonzero(crest > limit)
        before, after = too_high[too_high < at], too_high[too_high >= at]
        left = float(jumps[before[-1] + 1]) if before.size else float(jumps[0])
        right = max(t, float(jumps[after[0]] + (limit - E_J[after[0]]) / slope[after[0]])) if after.size else np.inf
        found.append((left, right))
    return found
