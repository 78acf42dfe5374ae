"""A finite number of restarts with timeouts of their own, the last attempt without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats, finite
from latfit.restart.completion import log_not_completed, lost_moment, refuse_failures
from latfit.restart.minimise import candidates
from latfit.restart.optimum import NO_GAIN
from latfit.restart.result import QUANTILES, label, ratio
from latfit.restart.times import check_time, check_timeouts, completes, density, inverse_cdf, still_out

MAX_RESTARTS = 10_000  # more are as good as unbounded ones
NOTHING = 1e-200  # no attempt is worth its name that completes less often: it is a restart at τ → 0


@dataclass(frozen=True)
class Schedule:
    """Timeouts τ_K…τ_1 in the order of use (∞: let it run), then one attempt without timeout; what they bring.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.optimal_schedule(latfit.parse_law("pareto(a=10,nu=1.5)"), restarts=2)
    >>> [round(t, 1) for t in best.timeouts], round(best.expected_duration, 2)
    ([8.5, 20.0], 10.18)
    """

    timeouts: tuple[float, ...]
    expected_duration: float
    std_duration: float | None
    quantiles: dict[str, float | None]
    submissions: float
    speed_up: float | None
    law: str
    cost: float
    job_seconds: float | None = None
    success: float = 1.0

    @property
    def parallel(self) -> float | None:
        """How many jobs are out at a time, on average."""
        return ratio(self.job_seconds, self.expected_duration)

    def to_dict(self) -> dict[str, Any]:
        """The Optimum's fields for a schedule: `timeout` is the first one of it."""
        timeouts = [finite(tau) for tau in self.timeouts]
        return {
            "verdict": "never" if timeouts[0] is None else "finite",
            "timeout": timeouts[0],
            "expected_duration": finite(self.expected_duration),
            "std_duration": self.std_duration,
            "quantiles": self.quantiles,
            "submissions": self.submissions,
            "within_1pct": None,
            "within_5pct": None,
            "conservative_timeout": None,
            "speed_up": self.speed_up,
            "rho": 0.0,
            "law": self.law,
            "cost": self.cost,
            "objective": {"name": "mean", "value": finite(self.expected_duration)},
            "job_seconds": self.job_seconds,
            "parallel": self.parallel,
            "success": self.success,
            "schedule": timeouts,
        }


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_schedule(law: Law, restarts: int, *, cost: float = 0.0, min_timeout: float = 0.0) -> Schedule:
    """The K timeouts that minimise E_J when only K restarts are allowed, none earlier than `min_timeout`.

    τ_k minimises M₁(τ) + (1−F(τ)) (τ + c + E_{k−1}), from E_0 = E[T] on.
    van Moorsel & Wolter 2004, Algorithm 3.

    Parameters
    ----------
    law
        The law of one attempt: `Defective(law, rho)`, `Empirical.of(sample)` or any other `Law`.
    restarts
        K, how often at most.
    cost
        Seconds between a cancellation and the next attempt.

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
    refuse_never_ending(law)
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
        return still_out(law, t) - density(law, t) * (cost + following)

    no_timeout = float(value(np.array(np.inf)))
    if not np.isfinite(following):
        return np.inf, no_timeout
    t = candidates(law, value, slope, at_least=at_least)
    t = t[law.cdf(t) > NOTHING]
    v = value(t)
    best = v.min(initial=np.inf)
    if best >= no_timeout * (1 - NO_GAIN):
        return np.inf, no_timeout
    return float(t[v <= best * (1 + 1e-13)].min()), float(best)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_schedule(law: Law, schedule: Sequence[float], *, cost: float = 0.0) -> Schedule:
    """What given timeouts bring, in the order of use."""
    E = schedule_moments(law, schedule, 2, cost=cost)
    E_R = float(law.partial_moment(1, np.inf))
    reached = np.cumprod(still_out(law, np.asarray(schedule, dtype=np.float64)))
    variance = float(E[2] - E[1] ** 2)
    return Schedule(
        timeouts=tuple(float(tau) for tau in schedule),
        expected_duration=float(E[1]),
        std_duration=float(np.sqrt(max(variance, 0.0))) if np.isfinite(variance) else None,
        quantiles={str(q): _quantile(law, q, schedule, cost) for q in QUANTILES},
        submissions=1.0 + float(reached.sum()),
        speed_up=finite(E_R / E[1]) if E[1] > 0 else None,
        law=label(law),
        cost=float(cost),
        job_seconds=finite(E[1] - cost * reached.sum()),
    )


def refuse_never_ending(law: Law) -> None:
    """Say that finitely many restarts need a law that always completes."""
    if completes(law) < 1 - 1e-12:
        raise RestartError(
            f"a share {1 - completes(law):.4g} of attempts never completes, and with finitely many restarts the last "
            "one has no timeout, so every moment is infinite: allow unbounded restarts (no --restarts), if need be "
            "with a deadline (--objective deadline:D)"
        )


def schedule_moments(law: Law, schedule: Sequence[float], order: int = 2, *, cost: float = 0.0) -> Floats:
    """E[Jⁿ], n = 0…order, with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    E_k[Jⁿ] = Mₙ(τ_k) + (1−F(τ_k)) Σ_{l≤n} C(n,l) (τ_k+c)ⁿ⁻ˡ E_{k−1}[Jˡ], backward from E_0[Jⁿ] = E[Tⁿ].
    van Moorsel & Wolter 2004, Theorem 3 and Algorithm 2.
    """
    refuse_never_ending(law)
    timeouts, c = np.atleast_1d(check_timeouts(schedule)), check_time("cost", cost)
    E = np.array([float(law.partial_moment(n, np.inf)) if n else 1.0 for n in range(order + 1)])
    for tau in timeouts[::-1]:
        if float(still_out(law, tau)) == 0:
            E = np.array([float(law.partial_moment(n, tau)) if n else 1.0 for n in range(order + 1)])
            continue
        lost = [float(lost_moment(law, m, tau, c)) for m in range(order + 1)]
        E = np.array(
            [1.0]
            + [
                float(law.partial_moment(n, tau)) + sum(comb(n, k) * lost[n - k] * E[k] for k in range(n + 1))
                for n in range(1, order + 1)
            ]
        )
    return E


def schedule_cdf(law: Law, x: ArrayLike, schedule: Sequence[float], *, cost: float = 0.0) -> Floats:
    """P(J ≤ x) with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    1 − Π_{i>k} (1−F̃(τ_i)) (1−F̃(x − s_k)) within attempt k, which starts at s_k, and
    1 − Π_{i≥k} (1−F̃(τ_i)) while it is being replaced. van Moorsel & Wolter 2004, eq. 10, whose second
    branch prints i > k.
    """
    refuse_failures(law, "the distribution of the completion time")
    timeouts, c = np.append(check_timeouts(schedule), np.inf), check_time("cost", cost)
    starts = np.concatenate([[0.0], np.cumsum(timeouts[:-1] + c)])
    at = np.asarray(x, dtype=np.float64) * (1.0 if law.jumps is None else 1 + 1e-12)  # see log_survival
    log_out = np.zeros(at.shape)
    for start, tau in zip(starts, timeouts, strict=True):
        begun = (at >= start) & np.isfinite(start)
        log_out += np.where(begun, log_not_completed(law, np.clip(np.where(begun, at - start, 0.0), 0.0, tau)), 0.0)
    return np.where(at < 0, 0.0, -np.expm1(log_out))


def _quantile(law: Law, q: float, schedule: Sequence[float], cost: float) -> float | None:
    """The smallest x with P(J ≤ x) ≥ q: attempt by attempt until one of them reaches q."""
    start, log_out, target = 0.0, 0.0, np.log1p(-q)
    for tau in [*schedule, np.inf]:
        after = log_out + float(log_not_completed(law, np.array(tau)))
        if after <= target + 1e-12:
            return finite(start + min(float(inverse_cdf(law, -np.expm1(target - log_out))), tau))
        start, log_out = start + tau + cost, after
    return None
