"""A figure as a function of the timeout: all candidates for its minimum, and how flat it is around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

from latfit.laws.base import Law
from latfit.numbers import Floats, Ints
from latfit.restart.derived import HUGE, kinks, scan_times
from latfit.restart.objectives import Figure, Mean, Objective
from latfit.restart.result import Window


def candidates(
    law: Law,
    value: Figure,
    slope: Callable[[Floats], Any] = lambda t: None,
    *,
    special: Floats | None = None,
    at_least: float = 0.0,
    at_most: float = np.inf,
) -> Floats:
    """Timeouts among which the minimum of `value` over [at_least, at_most] lies, apart from the limits at 0 and ∞.

    On a step law these are the times at which it can complete: between two of them J only gets
    longer with the timeout. On a law with a density: the 20 lowest local minima of a scan of its whole
    range, polished by the root of `slope` or, where that is None, by Brent's minimiser; and the kinks.
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
    slopes, minima = slope(t), []
    if slopes is None:
        v = value(t)
        around = np.concatenate([[np.inf], v, [np.inf]])
        lows = np.flatnonzero((v <= around[:-2]) & (v <= around[2:]) & np.isfinite(v))
        for i in lows[np.argsort(v[lows], kind="stable")[:20]]:
            bounds = np.log(t[max(i - 1, 0)]), np.log(t[min(i + 1, t.size - 1)])
            best = scipy.optimize.minimize_scalar(
                lambda y: float(value(np.exp(np.array(y)))), bounds=bounds, method="bounded", options={"xatol": 1e-11}
            )
            minima += [float(t[i]), float(np.exp(best.x))]
        return np.concatenate([corners, t[:1], minima])

    def at(y: float) -> float:
        return float(np.nan_to_num(slope(np.exp(np.array(y))), neginf=-HUGE))

    sloping = np.flatnonzero((slopes < 0) | (slopes > 0))  # times where the slope is 0 are passed over
    turns = np.flatnonzero((slopes[sloping[:-1]] < 0) & (slopes[sloping[1:]] > 0))
    ends = t[sloping[turns + 1]]
    for i in np.argsort([float(value(end)) for end in ends], kind="stable")[:20]:
        a, b = float(t[sloping[turns[i]]]), float(ends[i])
        low, high = np.log(a), np.log(b)
        if at(low) < 0 < at(high):
            minima.append(float(np.exp(scipy.optimize.brentq(at, low, high, xtol=1e-15, rtol=1e-15))))
        else:  # the turn is a kink at an end, and exp(log(·)) has stepped over it
            minima.append(b if at(low) < 0 else a)
    return np.concatenate([corners, t[:1], minima])


def thinned(value: Figure, t: Floats) -> Floats:
    """At most 200 of the times t, closer together the better they are: for figures that are slow to compute."""
    while t.size > 200:
        few = t[np.unique(np.linspace(0, t.size - 1, 100).astype(np.intp))]
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
    """For each limit the connected timeouts around t whose figure (E_J) is at most it, up to ∞ or a deadline."""
    goal = Mean() if objective is None else objective

    def value(u: Floats) -> Floats:
        figure = goal.value(law, u, cost)
        return np.where(np.isnan(figure), np.inf, figure)

    if law.jumps is None:
        grid, start = np.union1d(scan_times(law), goal.special_times(law, cost)), 0.0
    else:  # a sawtooth: from each jump the figure rises, and only a jump brings it down
        grid, start = np.union1d(law.jumps, np.nextafter(law.jumps[1:], 0)), float(law.jumps[0])
    windows = [_window(value, grid, start, t, limit) for limit in limits]
    return [(low, max(min(high, goal.latest), low)) for low, high in windows]


def _window(value: Figure, grid: Floats, start: float, t: float, limit: float) -> Window:
    def above(u: Floats) -> Ints:
        return np.flatnonzero(value(u) > limit * (1 + 1e-13))

    def last_within(inside: float, outside: float) -> float:
        while np.nextafter(inside, outside) != outside:
            between = np.linspace(inside, outside, 100)
            first = int(above(between[1:-1]).min(initial=98)) + 1
            if (between[first - 1], between[first]) == (inside, outside):
                break
            inside, outside = between[first - 1], between[first]
        return float(inside)

    low, high = start, np.inf
    earlier = np.append(grid[grid < t], t)
    if (places := above(earlier[:-1])).size:
        outside, inside = earlier[places[-1]], earlier[places[-1] + 1]
        low = last_within(inside, outside) if np.isfinite(inside) else float(grid[-1])  # t = ∞: no time is late enough
    if np.isfinite(t):
        later = np.concatenate([[t], grid[grid > t], max(t, grid[-1]) * np.geomspace(2, 1e12, 80)])
        later = later[np.isfinite(later)]
        if (places := above(later[1:])).size:
            high = last_within(later[places[0]], later[places[0] + 1])
    return low, high
