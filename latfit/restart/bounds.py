"""Bounds of E_J by geometric laws, and the timeouts that follow from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart.completion import lost_moment
from latfit.restart.minimise import candidates, minima, turn
from latfit.restart.times import check_time, check_timeouts, density, kinks, scan_times

RISE = 0.1  # on a sample every jump is a dip: a minimum is one from which the bound rises by this share


def geometric_bounds(law: Law, t_inf: ArrayLike, *, cost: float = 0.0) -> tuple[Floats, Floats]:
    """E[A] ≤ E_J ≤ E[B] = E[A] + t, A counting only the attempts that did not complete.

    E[A] = (1−F̃)/F̃ (t+c) without failures. van Moorsel & Wolter 2004, eq. 8.

    Parameters
    ----------
    law
        The law of one attempt: `Defective(law, rho)`, `Empirical.of(sample)` or any other `Law`.
    t_inf
        Timeouts in seconds, a number or an array; ∞ is no timeout.
    cost
        Seconds between a cancellation and the next attempt.

    Returns
    -------
    (Floats, Floats)
        The lower and the upper bound, in the shape of `t_inf`.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> low, high = latfit.geometric_bounds(law, 358.0)
    >>> bool(low <= latfit.expected_duration(law, 358.0) <= high), float(high - low)
    (True, 358.0)
    """
    law = as_law(law)
    t, c = check_timeouts(t_inf), check_time("cost", cost)
    F = law.cdf(t)
    with np.errstate(all="ignore"):
        lower = np.where(F > 0, lost_moment(law, 1, t, c) / F, np.inf)
    return lower, lower + t


def upper_bound_timeout(law: Law, *, cost: float = 0.0) -> float:
    """The timeout that minimises the upper geometric bound."""

    def value(t: Floats) -> Floats:
        return geometric_bounds(law, t, cost=cost)[1]

    def slope(t: Floats) -> Floats:
        return law.cdf(t) - density(law, t) * (t + cost)

    t = candidates(law, value, slope)
    return float(t[np.argmin(value(t))])


def lower_bound_timeout(law: Law, *, cost: float = 0.0, optimum: float = 0.0) -> float | None:
    """The first local minimum of the lower geometric bound at or after the optimum, None where there is none.

    At the optimum the lower bound still falls, so this timeout is later (van Moorsel & Wolter 2004, §3, who take it as
    a conservative choice). It is a local minimum: with ρ = 0 the bound tends to 0. How much later a timeout may be is
    told by `Optimum.conservative_timeout` instead, the end of the 5 % window.
    """
    if law.jumps is not None:
        return _on_steps(law, law.jumps[law.jumps >= optimum], cost)

    def slope(t: Floats) -> Floats:
        return law.still_out(t) * law.cdf(t) - density(law, t) * (t + cost)

    def clear_slope(t: Floats) -> Floats:  # for t → 0 the two terms may cancel to rounding
        s = slope(t)
        return np.where(np.abs(s) > 1e-10 * law.cdf(t), s, 0.0)

    t = scan_times(law)
    t = np.append(t[t >= optimum], t[-1] * np.geomspace(2, 1e6, 40))
    found = minima(clear_slope, t)
    if not found:
        return None
    at = turn(slope, *found[0])
    corners = kinks(law)
    close = corners[np.abs(corners - at) <= 1e-12 * at]
    return float(close[0]) if close.size else at


def _on_steps(law: Law, t: Floats, cost: float) -> float | None:
    """The lowest point before the bound has first risen by `RISE` over what it was."""
    lower = geometric_bounds(law, t, cost=cost)[0]
    risen = np.flatnonzero(lower > (1 + RISE) * np.minimum.accumulate(lower))
    return float(t[np.argmin(lower[: risen[0]])]) if risen.size else None
