"""Moments of the completion time J under restart with one timeout.

One attempt with timeout t completes at u ≤ t (F̃), fails visibly at u ≤ t (G̃, the attempt is over at
once) or is cut at t (S, still out). Whatever did not complete is followed, after the cost c, by the
next attempt. Without failures this is the model of van Moorsel & Wolter and, with c = 0 and
F̃ = (1−ρ)F, that of Glatard et al.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart import derived


def expected_duration(
    law: Any, t_inf: ArrayLike, *, cost: float = 0.0, wall_clock: float = 0.0, copies: int = 1, **params: Any
) -> Floats:
    """E_J(t): the expected time to completion when every attempt is cancelled at t and tried again.

    E_J = M̃₁/F̃ + (∫₀ᵗ (u+c) dG̃ + S (t+c))/F̃; ∞ where nothing completes by t, and for t = ∞ with ρ > 0.
    A wall-clock time r that each job needs beside its latency makes F̃(t − r) of F̃(t).

    van Moorsel & Wolter 2004, eq. 7; Glatard et al. 2006, eq. 6 (c = 0, F̃ = (1−ρ)F) and eq. 2 (r).

    Parameters
    ----------
    law
        The law of one attempt: a `Law` such as `Defective(law, rho)`, a fit, a frozen distribution of scipy.stats, a
        name with its parameters (`"lognormal", mu=5.5, sigma=1, rho=0.025`), or data, for their empirical law.
    t_inf
        Timeouts in seconds, a number or an array; ∞ is no timeout.
    cost
        Seconds between a cancellation and the next attempt.
    wall_clock
        Seconds r that each job itself runs, beside its latency.
    copies
        Copies that are submitted at once.
    params
        The parameters of a law that is given by its name.

    Returns
    -------
    Floats
        E_J in seconds, in the shape of `t_inf`.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.expected_duration(law, [100.0, 358.0, 10_000.0]).round(1).tolist()
    [516.3, 375.1, 659.6]
    """
    job = derived.with_copies(derived.with_wall_clock(as_law(law, **params), wall_clock), copies)
    return np.asarray(moments_of(job, t_inf, 1, cost)[1])


def regret(law: Any, timeout: float | None, least: float | None, *, cost: float = 0.0) -> float | None:
    """By what share jobs take longer with a timeout than the `least` E_J; None if one is unknown, or the least is 0."""
    if timeout is None or not least:
        return None
    return max(0.0, float(expected_duration(law, timeout, cost=cost)) / least - 1)


def moments(law: Any, t_inf: ArrayLike, order: int = 3, *, cost: float = 0.0, **params: Any) -> Floats:
    """E[Jⁿ] for n = 0…order, along the first axis, under unbounded restarts with timeout t.

    E[Jⁿ] F̃ = M̃ₙ + Σ_{l<n} C(n,l) [∫₀ᵗ (u+c)ⁿ⁻ˡ dG̃ + S (t+c)ⁿ⁻ˡ] E[Jˡ].

    van Moorsel & Wolter 2004, Theorem 1 and Algorithm 1 (there without G̃). `law`, `t_inf`, `cost` and `params` are
    as in `expected_duration`. Returns an array in the shape (order + 1, …).

    Examples
    --------
    >>> import latfit
    >>> latfit.moments(latfit.parse_law("exponential(rate=0.5)"), 3.0, 2).round(6).tolist()
    [1.0, 2.0, 8.0]
    """
    law = as_law(law, **params)
    if order < 0:
        raise RestartError(f"the order of a moment is {order}; it must be 0 or more")
    return moments_of(law, t_inf, order, cost)


def moments_of(
    law: Law,
    t_inf: ArrayLike,
    order: int,
    cost: float,
    *,
    completing: Callable[[int, Floats], Floats] | None = None,
    after: Floats | Sequence[float] | None = None,
) -> Floats:
    """E[Jⁿ] if the attempt is repeated, or followed by what has the moments `after`.

    `completing(n, t)` is E[(time spent in the attempt that completes)ⁿ; it completes], by default M̃ₙ(t).
    """
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    completing, F, E = completing or law.partial_moment, law.cdf(t), [np.ones(t.shape)]
    lost, following = lost_moments(law, t, c, order), E if after is None else after
    with np.errstate(all="ignore"):
        for n in range(1, order + 1):
            known = range(n if after is None else n + 1)
            total = completing(n, t) + sum(comb(n, k) * product(lost[n - k], following[k]) for k in known)
            E.append(np.where(F > 0, total / F, np.inf) if after is None else total)
    return np.array(E)


def moment_bounds(
    law: Any, t_inf: ArrayLike, order: int = 3, *, cost: float = 0.0, **params: Any
) -> tuple[Floats, Floats]:
    """Bounds A ≤ E[Jⁿ] ≤ B for n = 0…order from F̃(t) alone: the number of restarts is geometric.

    The attempt that completes takes no time in A, and the whole timeout in B. van Moorsel & Wolter 2004, eq. 8. `law`,
    `t_inf`, `order`, `cost` and `params` are as in `moments`. Returns both bounds, each in its shape.

    Examples
    --------
    >>> import latfit
    >>> low, high = latfit.moment_bounds("exponential", 3.0, 2, rate=0.5)
    >>> E = latfit.moments("exponential", 3.0, 2, rate=0.5)
    >>> low.round(3).tolist(), E.round(3).tolist(), high.round(3).tolist()
    ([1.0, 0.862, 4.07], [1.0, 2.0, 8.0], [1.0, 3.862, 18.24])
    """
    law = as_law(law, **params)
    refuse_failures(law, "a geometric bound")
    low = moments_of(law, t_inf, order, cost, completing=lambda n, t: np.zeros(t.shape))
    return low, moments_of(law, t_inf, order, cost, completing=lambda n, t: product(law.cdf(t), t**n))


def lost_moments(law: Law, t: Floats, cost: float, order: int) -> list[Floats]:
    """∫₀ᵗ (u+c)ᵐ dG̃(u) + S(t) (t+c)ᵐ for m = 0…order: what the attempts that did not complete took."""
    S = derived.still_out(law, t)
    cut = [product(S, (t + cost) ** m) for m in range(order + 1)]
    if not derived.has_failures(law):
        return cut
    G = [law.failed_moment(m, t) for m in range(order + 1)]
    powers = [np.float64(cost) ** m for m in range(order + 1)]
    return [cut[m] + sum(comb(m, j) * product(G[j], powers[m - j]) for j in range(m + 1)) for m in range(order + 1)]


def refuse_failures(law: Law, what: str) -> None:
    """Say that something is not computed for laws with visible failures."""
    if derived.has_failures(law):
        raise RestartError(
            f"{what} is not computed for a law with visible failures, whose attempts last differently long: "
            "read failures as completed or as lost, or ask for mean, std or a moment"
        )


def product(weight: Floats, value: ArrayLike) -> Floats:
    """The product weight × value, where a weight of 0 wins over an infinite value."""
    return np.where(weight > 0, weight * np.where(weight > 0, value, 0.0), 0.0)


def std_duration(law: Any, t_inf: ArrayLike, *, cost: float = 0.0, **params: Any) -> Floats:
    """The standard deviation of J under unbounded restarts with timeout t.

    Var J = Var(T | T ≤ t) + q Var D + q (1+q) E[D]², q = (1−F̃)/F̃, D the time an attempt that did not
    complete takes; without failures D = t + c. `law`, `t_inf`, `cost` and
    `params` are as in `expected_duration`. Returns seconds in the shape of `t_inf`.

    >>> import latfit
    >>> round(float(latfit.std_duration("exponential", 3.0, rate=0.5)), 6)
    2.0
    """
    law, t, c = as_law(law, **params), derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    F, (out, *lost) = law.cdf(t), lost_moments(law, t, c, 2)
    with np.errstate(all="ignore"):
        q = out / F
        mean, square = (law.partial_moment(n, t) / F for n in (1, 2))
        D, D2 = (np.where(out > 0, spent / out, 0.0) for spent in lost)
        spread = np.maximum(D2 - D * D, 0.0) if derived.has_failures(law) else np.zeros(t.shape)
        waited = product(q, D)
        variance = np.maximum(square - mean * mean, 0.0) + product(q, spread) + waited * (waited + D)
    finite = (F > 0) & np.isfinite(square) & np.isfinite(D)
    return np.sqrt(np.where(finite, variance, np.inf))
