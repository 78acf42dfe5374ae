"""Whether a restart helps at all."""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart.objectives.mean import mean_slope
from latfit.restart.times import check_time, check_timeouts, completes, density, still_out

EQUAL = 1e-12  # sides this close are equal, as they are for the exponential law
CANCELS = 1e-4  # a share of E[Tⁿ] below which a difference has lost digits

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_EDGES = np.concatenate([[0.0], np.geomspace(0.25, 1e9, 80)])
PANELS = 0.5 * (_EDGES[:-1] + _EDGES[1:])[:, None] + 0.5 * np.diff(_EDGES)[:, None] * _NODES
WEIGHTS = 0.5 * np.diff(_EDGES)[:, None] * _WEIGHTS


def restart_helps(law: Law, tau: ArrayLike, *, cost: float = 0.0, order: int = 1) -> NDArray[np.bool_]:
    """Whether one restart at τ lowers the n-th moment: E[(T + τ + c)ⁿ] < E[Tⁿ | T > τ].

    For the mean this is E[T] + c < E[T − τ | T > τ], and then any number of restarts at τ helps, the
    more the better. Where E[Tⁿ] is infinite (ρ > 0, or a tail too heavy) restarts for ever make it finite
    (Corollary 1), so the answer is yes wherever something completes by τ.

    van Moorsel & Wolter 2004, eq. 1 and 13, and §5 for n ≥ 2, where they print E[(T+c)ⁿ] < E[(T−τ)ⁿ | T > τ];
    Chalasani et al. 1998, eq. 6.

    Parameters
    ----------
    law
        The law of one attempt: `Defective(law, rho)`, `Empirical.of(sample)` or any other `Law`.
    tau
        When the restart would be made, in seconds; a number or an array.
    cost
        Seconds between a cancellation and the next attempt.
    order
        n, the moment in question.

    Returns
    -------
    NDArray
        Booleans in the shape of `tau`.

    Examples
    --------
    >>> import latfit
    >>> latfit.restart_helps(latfit.parse_law("weibull(shape=0.5,scale=10)"), [0.1, 5.0], cost=1.0).tolist()
    [True, True]
    >>> latfit.restart_helps(latfit.parse_law("weibull(shape=2,scale=10)"), 5.0).tolist()
    False
    """
    law = as_law(law)
    t, c = check_timeouts(tau), check_time("cost", cost)
    if order < 1:
        raise RestartError(f"the order of the moment is {order}; it must be 1 or more")
    S = still_out(law, t)
    E = [float(law.partial_moment(n, np.inf)) if n else 1.0 for n in range(order + 1)]
    if completes(law) < 1 - 1e-12 or np.isinf(E[order]):
        return np.asarray((S > 0) & (law.cdf(t) > 0))
    restarted = sum(comb(order, k) * (t + c) ** (order - k) * E[k] for k in range(order + 1))
    return np.asarray((S > 0) & (S * restarted * (1 + EQUAL) < _late_moment(law, order, t, E[order])))


def _late_moment(law: Law, n: int, tau: Floats, total: float) -> Floats:
    """E[Tⁿ; T > τ]: E[Tⁿ] − Mₙ(τ), and where that cancels τⁿ S(τ) + n ∫ uⁿ⁻¹ S(u) du over u > τ."""
    difference = total - law.partial_moment(n, tau)
    if law.jumps is not None or (difference > CANCELS * total).all():
        return difference
    S = law.still_out(tau)
    with np.errstate(all="ignore"):
        scale = np.where(S > 0, S / density(law, tau), 1.0)[..., None, None]  # about the mean residual life
        u = tau[..., None, None] + scale * PANELS
        tail = n * np.sum(u ** (n - 1) * law.still_out(u) * scale * WEIGHTS, axis=(-2, -1))
    return np.where(difference > CANCELS * total, difference, tau**n * S + tail)


def stationarity(law: Law, t: ArrayLike, *, cost: float = 0.0) -> Floats:
    """S(t) − f̃(t) (E_J(t) + c): negative where E_J falls, positive where it rises, 0 at a smooth optimum.

    van Moorsel & Wolter 2004, Theorem 2: (1−F)/f = E_J + c. It does not hold at a kink of F̃.
    """
    if law.jumps is not None:
        raise RestartError("Theorem 2 needs a density; the optimum of a step law is at one of its jumps")
    return mean_slope(law, check_timeouts(t), check_time("cost", cost))
