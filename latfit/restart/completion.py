"""The completion time J under restart with one timeout: moments, cdf, quantiles, submissions, sampling.

One attempt with timeout t completes at u ≤ t (F̃), fails visibly at u ≤ t (G̃, the attempt is over at
once) or is cut at t (S, still out). Whatever did not complete is followed, after the cost c, by the
next attempt. Without failures this is the model of van Moorsel & Wolter and, with c = 0 and
F̃ = (1−ρ)F, that of Glatard et al.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
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
    job = derived.with_wall_clock(as_law(law, **params), derived.check_time("wall-clock time", wall_clock))
    return np.asarray(moments(derived.with_copies(job, copies), t_inf, order=1, cost=cost)[1])


def moments(law: Any, t_inf: ArrayLike, order: int = 3, *, cost: float = 0.0, **params: Any) -> Floats:
    """E[Jⁿ] for n = 0…order, along the first axis, under unbounded restarts with timeout t.

    E[Jⁿ] F̃ = M̃ₙ + Σ_{l<n} C(n,l) [∫₀ᵗ (u+c)ⁿ⁻ˡ dG̃ + S (t+c)ⁿ⁻ˡ] E[Jˡ].

    van Moorsel & Wolter 2004, Theorem 1 and Algorithm 1 (there without G̃).

    Parameters
    ----------
    law, t_inf, cost, params
        As in `expected_duration`.
    order
        The highest moment.

    Returns
    -------
    Floats
        Seconds to the n-th, in the shape (order + 1, …).

    Examples
    --------
    >>> import latfit
    >>> latfit.moments(latfit.parse_law("exponential(rate=0.5)"), 3.0, 2).round(6).tolist()
    [1.0, 2.0, 8.0]
    """
    law = as_law(law, **params)
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    if order < 0:
        raise RestartError(f"the order of a moment is {order}; it must be 0 or more")
    return _recursion(law, t, c, [law.partial_moment(n, t) for n in range(1, order + 1)])


def _recursion(law: Law, t: Floats, cost: float, completing: Sequence[Floats]) -> Floats:
    """E[Jⁿ] where `completing` has E[(time in the attempt that completes)ⁿ; it completes] for n = 1, 2, …"""
    F, order = law.cdf(t), len(completing)
    lost = {m: lost_moment(law, m, t, cost) for m in range(1, order + 1)}
    E = [np.ones(t.shape)]
    with np.errstate(all="ignore"):
        for n in range(1, order + 1):
            total = completing[n - 1] + sum(comb(n, k) * _product(lost[n - k], E[k]) for k in range(n))
            E.append(np.where(F > 0, total / F, np.inf))
    return np.array(E)


def moment_bounds(
    law: Any, t_inf: ArrayLike, order: int = 3, *, cost: float = 0.0, **params: Any
) -> tuple[Floats, Floats]:
    """Bounds A ≤ E[Jⁿ] ≤ B for n = 0…order, for which F̃(t) alone is needed: each number of restarts is geometric.

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
    law, t, c = as_law(law, **params), derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    refuse_failures(law, "a geometric bound")
    F, orders = law.cdf(t), range(1, order + 1)
    return _recursion(law, t, c, [np.zeros(t.shape)] * order), _recursion(
        law, t, c, [_product(F, t**n) for n in orders]
    )


def lost_moment(law: Law, m: int, t: Floats, cost: float) -> Floats:
    """∫₀ᵗ (u+c)ᵐ dG̃(u) + S(t) (t+c)ᵐ: what the attempts that did not complete took."""
    cut = _product(derived.still_out(law, t), (t + cost) ** m)
    if not derived.has_failures(law):
        return cut
    powers = [np.asarray(comb(m, j) * np.float64(cost) ** (m - j)) for j in range(m + 1)]
    return cut + sum(_product(law.failed_moment(j, t), power) for j, power in enumerate(powers))


def _product(weight: Floats, value: Floats) -> Floats:
    """The product weight × value, where a weight of 0 wins over an infinite value."""
    return np.where(weight > 0, weight * np.where(weight > 0, value, 0.0), 0.0)


def std_duration(law: Any, t_inf: ArrayLike, *, cost: float = 0.0) -> Floats:
    """The standard deviation of J under unbounded restarts with timeout t.

    Var J = Var(T | T ≤ t) + q Var D + q (1+q) E[D]², q = (1−F̃)/F̃, D the time an attempt that did not
    complete takes; without failures D = t + c. `law`, `t_inf` and `cost` are
    as in `expected_duration`. Returns seconds in the shape of `t_inf`.

    >>> import latfit
    >>> round(float(latfit.std_duration(latfit.parse_law("exponential", rate=0.5), 3.0)), 6)
    2.0
    """
    law = as_law(law)
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    F = law.cdf(t)
    out = derived.still_out(law, t) + law.failed(t)
    with np.errstate(all="ignore"):
        q = out / F
        mean, square = (law.partial_moment(n, t) / F for n in (1, 2))
        D, D2 = (np.where(out > 0, lost_moment(law, m, t, c) / out, 0.0) for m in (1, 2))
        spread = np.maximum(D2 - D * D, 0.0) if derived.has_failures(law) else np.zeros(t.shape)
        waited = _product(q, D)
        variance = np.maximum(square - mean * mean, 0.0) + _product(q, spread) + waited * (waited + D)
    finite = (F > 0) & np.isfinite(square) & np.isfinite(D)
    return np.sqrt(np.where(finite, variance, np.inf))


def completion_cdf(law: Any, x: ArrayLike, t_inf: float, *, cost: float = 0.0, **params: Any) -> Floats:
    """F_J(x) = 1 − (1−F̃(t))ⁿ (1−F̃(min(x − n(t+c), t))), n = ⌊x/(t+c)⌋.

    van Moorsel & Wolter 2004, eq. 2; Glatard et al. 2006, eq. 5. Not for laws with visible failures,
    whose attempts last differently long.

    Parameters
    ----------
    law, cost, params
        As in `expected_duration`.
    x
        Times in seconds, a number or an array.
    t_inf
        One timeout, in seconds.

    Returns
    -------
    Floats
        The share of jobs done by each time.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> latfit.completion_cdf(law, [100.0, 358.0, 1000.0], 358.0).round(3).tolist()
    [0.181, 0.632, 0.938]
    """
    law = as_law(law, **params)
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    at = np.asarray(x, dtype=np.float64)
    return np.where(at < 0, 0.0, -np.expm1(log_survival(law, np.maximum(at, 0.0), t, c)))


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
    reached = np.exp(-_product(n, -log_not_completed(law, np.array(t))))
    return np.where((at >= 0) & (age < t), reached * law.pdf(np.clip(age, 0.0, t)), 0.0)


def log_survival(law: Law, x: Floats, t: Floats, cost: float) -> Floats:
    """The log of P(J > x) with timeout t, both vectorised."""
    refuse_failures(law, "the distribution of the completion time")
    period = t + cost
    if law.jumps is not None:  # 0.3 + 0.3 + 0.1 must reach 0.7 in spite of rounding
        x = x * (1 + 1e-12)
    with np.errstate(all="ignore"):
        n = np.where(np.isfinite(period) & (period > 0), np.floor(x / period), 0.0)
    n = np.where(np.isfinite(n), n, 0.0)
    rest = np.clip(np.where(n > 0, x - n * np.where(n > 0, period, 0.0), x), 0.0, t)
    log_out = -_product(n, -log_not_completed(law, t)) + log_not_completed(law, rest)
    at_once = (period == 0) & (law.cdf(t) > 0)  # any number of attempts at 0 takes no time
    return np.where(at_once, -np.inf, log_out)


def log_not_completed(law: Law, t: Floats) -> Floats:
    """The log of 1 − F̃(t) without failures, accurate in both tails."""
    F = law.cdf(t)
    with np.errstate(all="ignore"):
        return np.where(F < 0.5, np.log1p(-np.minimum(F, 0.5)), np.log(derived.still_out(law, t)))


def refuse_failures(law: Law, what: str) -> None:
    """Say that something is not computed for laws with visible failures."""
    if derived.has_failures(law):
        raise RestartError(
            f"{what} is not computed for a law with visible failures, whose attempts last differently long: "
            "read failures as completed or as lost, or ask for mean, std or a moment"
        )


def completion_quantile(law: Law, q: float, t_inf: ArrayLike, *, cost: float = 0.0) -> Floats:
    """The smallest x with F_J(x) ≥ q: n (t+c) + F̃⁻¹(1 − (1−q)/(1−F̃(t))ⁿ), n failed attempts before it."""
    if not 0 < q < 1:
        raise RestartError(f"the level of a quantile is {q}; it must lie between 0 and 1")
    refuse_failures(law, "a quantile of the completion time")
    t, c = derived.check_timeouts(t_inf), derived.check_time("cost", cost)
    F, target, log_out = law.cdf(t), np.log1p(-q), log_not_completed(law, t)
    with np.errstate(all="ignore"):
        attempts = np.where(F > 0, target / log_out, 1.0)
    n = np.maximum(np.ceil(attempts * (1 - 1e-12)) - 1.0, 0.0)
    level = np.minimum(-np.expm1(target + _product(n, -log_out)), F)
    # a timeout of ∞ that is never reached at this level (ρ ≥ 1 − q) leaves the quantile infinite
    reached = (F > 0) & ((n == 0) | np.isfinite(t)) & ((n > 0) | (q * (1 - 1e-12) <= F))
    u = np.minimum(derived.inverse_cdf(law, np.where(reached, level, 0.0)), t)
    with np.errstate(all="ignore"):
        return np.where(reached, _product(n, t + c) + u, np.inf)


def submissions(law: Law, t_inf: ArrayLike, *, copies: int = 1) -> Floats:
    """The expected number of submissions for one completed job, b/F̃(t) with b copies an attempt."""
    F = derived.with_copies(law, copies).cdf(derived.check_timeouts(t_inf))
    with np.errstate(all="ignore"):
        return copies / F


def simulate(law: Law, t_inf: ArrayLike, size: int, rng: np.random.Generator, *, cost: float = 0.0) -> Floats:
    """Completion times of `size` jobs, with one timeout for ever, or with several in turn and then none."""
    timeouts, c = np.atleast_1d(derived.check_timeouts(t_inf)), derived.check_time("cost", cost)
    last = np.inf if np.ndim(t_inf) else float(timeouts[0])
    if not np.ndim(t_inf) and not float(law.cdf(last)) > 0:
        raise RestartError(f"nothing completes within the timeout {last:g}: no job would ever end")
    done, waiting = np.zeros(size), np.arange(size)
    for t in chain(timeouts, repeat(last)):
        latency, failure = draw(law, waiting.size, rng)
        spent = np.where(latency <= t, latency, np.minimum(failure, t) + c)
        done[waiting] += spent
        waiting = waiting[(latency > t) & np.isfinite(spent)]
        if not waiting.size:
            break
    return done


def draw(law: Law, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Latency and time of visible failure of `size` attempts; ∞ for what does not happen."""
    p, F = rng.random(size), derived.completion_probability(law)
    latency = np.where(p <= F, derived.inverse_cdf(law, np.minimum(p, F)), np.inf)
    if not derived.has_failures(law):
        return latency, np.full(size, np.inf)
    times = derived.failure_times(law)
    failure = np.append(times, np.inf)[np.searchsorted(law.failed(times), p - F, side="left")]
    return latency, np.where(p > F, failure, np.inf)
