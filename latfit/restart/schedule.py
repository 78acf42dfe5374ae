"""A finite number of restarts with timeouts of their own, the last attempt without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats, finite
from latfit.restart.completion import lost_moment, refuse_failures
from latfit.restart.minimise import candidates
from latfit.restart.optimum import MIN_GAIN
from latfit.restart.plan import Plan
from latfit.restart.result import Figures, label, ratio
from latfit.restart.rounds import attempt, quadrature
from latfit.restart.times import check_time, check_timeouts, completion_probability, still_out

MAX_RESTARTS = 10_000  # more are as good as unbounded ones
MIN_COMPLETION = 1e-200  # an attempt that completes less often is a restart at τ → 0
CANCELS = 1e-4  # a share of E[Tⁿ] below which a difference of moments has lost digits


@dataclass(frozen=True, kw_only=True)
class Schedule(Figures):
    """Timeouts τ_K…τ_1 in the order of use (∞: let it run), then one attempt without timeout; what they bring.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.optimal_schedule(latfit.parse_law("pareto(a=10,nu=1.5)"), restarts=2)
    >>> [round(t, 1) for t in best.timeouts], round(best.expected_duration, 2)
    ([8.5, 20.0], 10.18)
    """

    timeouts: tuple[float, ...]
    speed_up: float | None
    law: str
    cost: float

    def to_dict(self) -> dict[str, Any]:
        """The Optimum's fields for a schedule: `timeout` is the first one of it."""
        timeouts = [finite(tau) for tau in self.timeouts]
        return {
            "verdict": "never" if timeouts[0] is None else "finite",
            "timeout": timeouts[0],
            **self.figures(),
            "within_1pct": None,
            "within_5pct": None,
            "conservative_timeout": None,
            "speed_up": self.speed_up,
            "rho": 0.0,
            "law": self.law,
            "cost": self.cost,
            "objective": {"name": "mean", "value": self.expected_duration},
            "schedule": timeouts,
        }


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_schedule(law: Law, restarts: int, *, cost: float = 0.0, min_timeout: float = 0.0) -> Schedule:
    """The K timeouts that minimise E_J when only K restarts are allowed, none earlier than `min_timeout`.

    τ_k minimises M₁(τ) + (1−F(τ)) (τ + c + E_{k−1}), from E_0 = E[T] on.
    van Moorsel & Wolter 2004, Algorithm 3.

    Parameters
    ----------
    law, cost, min_timeout
        As in `optimal_timeout`.
    restarts
        K, how often at most.

    Returns
    -------
    Schedule
        K timeouts and what they bring; an error where ρ > 0, because then a last attempt may never end.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.optimal_schedule(latfit.parse_law("weibull(shape=0.5,scale=10)"), restarts=2, cost=1.0)
    >>> len(best.timeouts), best.expected_duration < 20.0  # the mean without restarts
    (2, True)
    """
    law = as_law(law)
    c = check_time("cost", cost)
    if not 1 <= restarts <= MAX_RESTARTS or restarts != int(restarts):
        raise RestartError(f"the number of restarts is {restarts}; it must be a whole number from 1 to {MAX_RESTARTS}")
    _refuse_never_ending(law)
    E = float(law.partial_moment(1, np.inf))
    if not np.isfinite(E):
        raise RestartError("the last attempt has no timeout and its mean is infinite: allow unbounded restarts")
    timeouts: list[float] = []
    while len(timeouts) < restarts:
        before, (tau, E) = E, best_attempt(law, E, c, min_timeout)
        settled = abs(E - before) <= 1e-15 * before  # as good as unbounded: the rest are all alike
        timeouts += [tau] * (int(restarts) - len(timeouts) if settled else 1)
    timeouts.reverse()
    return evaluate_schedule(law, timeouts, cost=c)


def best_attempt(law: Law, following: float, cost: float, at_least: float = 0.0) -> tuple[float, float]:
    """The timeout of one attempt after which `following` is still to be expected, and the mean from its start.

    M̃₁(τ) + ∫₀^τ (u+c) dG̃ + S(τ) (τ+c) + (1−F̃(τ)) E; ∞ where no timeout gains. With E = ∞: no timeout.
    """

    def value(t: Floats) -> Floats:
        return law.partial_moment(1, t) + lost_moment(law, 1, t, cost) + lost_moment(law, 0, t, cost) * following

    def slope(t: Floats) -> Floats:
        return still_out(law, t) - law.pdf(t) * (cost + following)

    no_timeout = float(value(np.array(np.inf)))
    if not np.isfinite(following):
        return np.inf, no_timeout
    t = candidates(law, value, slope, at_least=at_least)
    t = t[law.cdf(t) > MIN_COMPLETION]
    v = value(t)
    best = v.min(initial=np.inf)
    if best >= no_timeout * (1 - MIN_GAIN):
        return np.inf, no_timeout
    return float(t[v <= best * (1 + 1e-13)].min()), float(best)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_schedule(law: Law, schedule: Sequence[float], *, cost: float = 0.0) -> Schedule:
    """What given timeouts bring, in the order of use."""
    _refuse_never_ending(law)
    plan = _plan(law, schedule, cost)
    E_R = finite(law.partial_moment(1, np.inf))
    return Schedule(
        **plan.figures,
        timeouts=tuple(float(tau) for tau in schedule),
        speed_up=ratio(E_R, finite(plan.mean)),
        law=label(law),
        cost=float(cost),
    )


def schedule_cdf(law: Law, x: ArrayLike, schedule: Sequence[float], *, cost: float = 0.0) -> Floats:
    """P(J ≤ x) with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    1 − Π_{i>k} (1−F̃(τ_i)) (1−F̃(x − s_k)) within attempt k, which starts at s_k, and
    1 − Π_{i≥k} (1−F̃(τ_i)) while it is being replaced. van Moorsel & Wolter 2004, eq. 10, whose second
    branch prints i > k.
    """
    refuse_failures(law, "the distribution of the completion time")
    plan = _plan(law, schedule, cost)
    at = np.asarray(x, dtype=np.float64)
    return np.reshape([1.0 - plan.survival(float(each)) if each >= 0 else 0.0 for each in at.ravel()], at.shape)


def _plan(law: Law, schedule: Sequence[float], cost: float) -> Plan:
    timeouts, c = check_timeouts(schedule), check_time("cost", cost)
    rounds = [attempt(law, float(tau), pause=c) for tau in np.append(timeouts, np.inf)]
    return Plan(tuple(rounds), repeats=False)


def _refuse_never_ending(law: Law) -> None:
    never = 1 - completion_probability(law)
    if never > 1e-12:
        raise RestartError(
            f"a share {never:.4g} of attempts never completes, and with finitely many restarts the last "
            "one has no timeout, so every moment is infinite: allow unbounded restarts (no --restarts), if need be "
            "with a deadline (--objective deadline:D)"
        )


def schedule_moments(law: Law, schedule: Sequence[float], order: int = 2, *, cost: float = 0.0) -> Floats:
    """E[Jⁿ], n = 0…order, with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    E_k[Jⁿ] = Mₙ(τ_k) + (1−F(τ_k)) Σ_{l≤n} C(n,l) (τ_k+c)ⁿ⁻ˡ E_{k−1}[Jˡ], backward from E_0[Jⁿ] = E[Tⁿ].
    van Moorsel & Wolter 2004, Theorem 3 and Algorithm 2.
    """
    _refuse_never_ending(law)
    timeouts, c = np.atleast_1d(check_timeouts(schedule)), check_time("cost", cost)
    E = [1.0] + [float(law.partial_moment(n, np.inf)) for n in range(1, order + 1)]
    for tau in timeouts[::-1]:
        lost = [float(lost_moment(law, m, tau, c)) for m in range(order + 1)]
        later = [sum(comb(n, k) * lost[n - k] * E[k] for k in range(n + 1)) if lost[0] else 0.0 for n in range(len(E))]
        E = [1.0] + [float(law.partial_moment(n, tau)) + later[n] for n in range(1, order + 1)]
    return np.array(E)


def restart_helps(law: Law, tau: ArrayLike, *, cost: float = 0.0, order: int = 1) -> NDArray[np.bool_]:
    """Whether one restart at τ lowers the n-th moment: E[(T + τ + c)ⁿ] < E[Tⁿ | T > τ].

    For the mean this is E[T] + c < E[T − τ | T > τ], and then any number of restarts at τ helps, the
    more the better. Where E[Tⁿ] is infinite (ρ > 0, or a tail too heavy) restarts for ever make it finite
    (Corollary 1), so the answer is yes wherever something completes by τ.

    van Moorsel & Wolter 2004, eq. 1 and 13, and §5 for n ≥ 2, where they print E[(T+c)ⁿ] < E[(T−τ)ⁿ | T > τ];
    Chalasani et al. 1998, eq. 6.

    Parameters
    ----------
    law, cost
        As in `expected_duration`.
    tau
        When the restart would be made, in seconds; a number or an array.
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
    E = [1.0] + [float(law.partial_moment(n, np.inf)) for n in range(1, order + 1)]
    if completion_probability(law) < 1 - 1e-12 or np.isinf(E[order]):
        return np.asarray((S > 0) & (law.cdf(t) > 0))
    restarted = sum(comb(order, k) * (t + c) ** (order - k) * E[k] for k in range(order + 1))
    with np.errstate(all="ignore"):
        late = _late_moment(law, order, t, E[order])
        return np.asarray((S > 0) & (S * restarted * (1 + 1e-12) < late))  # for the exponential law they are equal


def _late_moment(law: Law, n: int, tau: Floats, total: float) -> Floats:
    """E[Tⁿ; T > τ]: E[Tⁿ] − Mₙ(τ), and where that cancels τⁿ S(τ) + n ∫ uⁿ⁻¹ S(u) du over u > τ."""
    difference = total - law.partial_moment(n, tau)
    if law.jumps is not None or (difference > CANCELS * total).all():
        return difference
    S = law.still_out(tau)
    residual = np.where(S > 0, S / law.pdf(tau), 1.0)[..., None]  # about the mean residual life
    nodes, weights = quadrature(np.append(0.0, np.geomspace(0.25, 1e9, 80)), steps=False)
    u = tau[..., None] + residual * nodes
    tail = n * np.sum(u ** (n - 1) * law.still_out(u) * residual * weights, axis=-1)
    return np.where(difference > CANCELS * total, difference, tau**n * S + tail)
