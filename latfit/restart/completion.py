"""The completion time J under restart with one timeout: its moments, cdf and density.

One attempt with timeout t completes at u ≤ t (F̃), fails visibly at u ≤ t (G̃, the attempt is over at
once) or is cut at t (S, still out). Whatever did not complete is followed, after the cost c, by the
next attempt. Without failures this is the model of van Moorsel & Wolter and, with c = 0 and
F̃ = (1−ρ)F, that of Glatard et al.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart import derived
from latfit.restart.plan import Plan, product, restarted


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
    return np.asarray(_restarted(job, t_inf, cost).mean)


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
    return _stacked(_restarted(law, t_inf, cost).moments(order), t_inf)


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
    (this,) = _restarted(law, t_inf, cost).rounds

    def bound(share: float) -> Floats:
        """E[Jⁿ] if the attempt that completes takes this share of the timeout."""

        def moments(n: int) -> tuple[Any, Any]:
            return product(this.moments(0)[0], np.power(share * this.length, n)), this.moments(n)[1]

        return _stacked(replace(this, moments=moments).followed(order), t_inf)

    return bound(0.0), bound(1.0)


def refuse_failures(law: Law, what: str) -> None:
    """Say that something is not computed for laws with visible failures."""
    if derived.has_failures(law):
        raise RestartError(
            f"{what} is not computed for a law with visible failures, whose attempts last differently long: "
            "read failures as completed or as lost, or ask for mean, std or a moment"
        )


def std_duration(law: Any, t_inf: ArrayLike, *, cost: float = 0.0, **params: Any) -> Floats:
    """The standard deviation of J under unbounded restarts with timeout t.

    Var J = Var(T | T ≤ t) + q Var D + q (1+q) E[D]², q = (1−F̃)/F̃, D the time an attempt that did not
    complete takes; without failures D = t + c. `law`, `t_inf`, `cost` and
    `params` are as in `expected_duration`. Returns seconds in the shape of `t_inf`.

    >>> import latfit
    >>> round(float(latfit.std_duration("exponential", 3.0, rate=0.5)), 6)
    2.0
    """
    return np.asarray(_restarted(as_law(law, **params), t_inf, cost).std)


def _stacked(moments: Sequence[Any], t_inf: ArrayLike) -> Floats:
    return np.array([np.broadcast_to(moment, np.shape(t_inf)) for moment in moments])


def _restarted(law: Law, t_inf: ArrayLike, cost: float) -> Plan:
    return restarted(law, derived.check_timeouts(t_inf), derived.check_time("cost", cost))


def completion_cdf(law: Any, x: ArrayLike, t_inf: float, *, cost: float = 0.0, **params: Any) -> Floats:
    """F_J(x) = 1 − (1−F̃(t))ⁿ (1−F̃(min(x − n(t+c), t))), n = ⌊x/(t+c)⌋.

    van Moorsel & Wolter 2004, eq. 2; Glatard et al. 2006, eq. 5. Not for laws with visible failures. `x` is a time in
    seconds or an array of them, `t_inf` one timeout; `law`, `cost` and `params` are as in `expected_duration`. Returns
    the share of jobs done by each time.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.completion_cdf(law, [100.0, 358.0, 1000.0], 358.0).round(3).tolist()
    [0.181, 0.632, 0.938]
    """
    law, at = as_law(law, **params), np.asarray(x, dtype=np.float64)
    refuse_failures(law, "the distribution of the completion time")
    return np.where(at < 0, 0.0, -np.expm1(_restarted(law, t_inf, cost).log_survival(np.maximum(at, 0.0))))


def completion_pdf(law: Any, x: ArrayLike, t_inf: float, *, cost: float = 0.0, **params: Any) -> Floats:
    """f_J(x) = (1−F̃(t))ⁿ f̃(x − n(t+c)), n = ⌊x/(t+c)⌋, and 0 while a restart is under way.

    van Moorsel & Wolter 2004, eq. 3. `law`, `x`, `t_inf`, `cost` and `params` are as in `completion_cdf`. Returns an
    array in the shape of `x`.

    Examples
    --------
    >>> import latfit
    >>> latfit.completion_pdf("exponential", [1.0, 3.5, 5.0], 3.0, cost=1.0, rate=0.5).round(4).tolist()
    [0.3033, 0.0, 0.0677]
    """
    law, t, c = as_law(law, **params), float(derived.check_timeouts(t_inf)), derived.check_time("cost", cost)
    refuse_failures(law, "the density of the completion time")
    at = np.asarray(x, dtype=np.float64)
    n = np.floor(np.maximum(at, 0.0) / (t + c)) if 0 < t < np.inf else np.zeros(at.shape)
    age = at - n * (t + c if np.isfinite(t) else 0.0)
    reached = np.exp(-product(n, -derived.log_not_completed(law, t, law.cdf(t))))
    return np.where((at >= 0) & (age < t), reached * law.pdf(np.clip(age, 0.0, t)), 0.0)


def completion_quantile(law: Law, q: float, t_inf: ArrayLike, *, cost: float = 0.0) -> Floats:
    """The smallest x with F_J(x) ≥ q, ∞ where it is not reached; under visible failures on the lattice of the clock."""
    if not 0 < q < 1:
        raise RestartError(f"the level of a quantile is {q}; it must lie between 0 and 1")
    return np.asarray(_restarted(law, t_inf, cost).quantile(q))
