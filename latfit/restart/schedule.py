"""A finite number of restarts, the last attempt without a timeout: on one law, or over several agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats, finite
from latfit.restart import derived
from latfit.restart.objectives import Objective
from latfit.restart.optimum import MIN_GAIN, candidates, optimal_timeout, polished
from latfit.restart.plan import Plan, attempt, quadrature
from latfit.restart.result import Figures, Optimum, label, ratio

MAX_RESTARTS = 10_000  # more are as good as unbounded ones
MAX_DESCENT_RESTARTS, MAX_DESCENT_ROUNDS = 20, 50  # of a descent along one timeout after another


@dataclass(frozen=True, kw_only=True)
class Schedule(Optimum):
    """Timeouts τ_K…τ_1 in the order of use (∞: let it run) before one attempt without a timeout, and their figures.

    >>> import latfit
    >>> schedule = latfit.optimal_schedule("pareto", restarts=2, a=10, nu=1.5)
    >>> [round(t, 1) for t in schedule.timeouts], schedule.timeout == schedule.timeouts[0]
    ([8.5, 20.0], True)
    """

    timeouts: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """The Optimum's fields for a schedule: `timeout` is the first one of it."""
        plain = super().to_dict()
        return {"schedule": [finite(tau) for tau in plain.pop("timeouts")], **plain}


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_schedule(
    law: Any,
    restarts: int,
    *,
    cost: float = 0.0,
    objective: str = "mean",
    min_timeout: float = 0.0,
    **params: Any,
) -> Schedule:
    """The K timeouts with the smallest mean (or another objective) when at most K = `restarts` restarts are allowed.

    For the mean τ_k minimises M₁(τ) + (1−F(τ)) (τ + c + E_{k−1}), from E_0 = E[T] on (van Moorsel & Wolter 2004,
    Algorithm 3). For other objectives the best τ_k depends on the time spent before it, so there is no such recursion
    (§4): each timeout is optimised in turn while the others stay, until none of them improves. `law`, `cost`,
    `min_timeout` and `params` are those of `optimal_timeout`. Returns a `Schedule`. With ρ > 0 the last attempt may
    never end and moments are infinite: an error.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.optimal_schedule("pareto", restarts=2, a=10, nu=1.5)
    >>> [round(t, 1) for t in best.timeouts], round(best.expected_duration, 2)
    ([8.5, 20.0], 10.18)
    """
    law, c, goal = as_law(law, **params), derived.check_time("cost", cost), Objective.parse(objective)
    _check_restarts(restarts, 1)
    if goal.name not in ("quantile", "deadline"):
        _refuse_never_ending(law)
    if goal.name != "mean":
        return _by_objective(law, goal, int(restarts), c, min_timeout)
    E_R = E = float(law.partial_moment(1, np.inf))
    if not np.isfinite(E):
        raise RestartError("the last attempt has no timeout and its mean is infinite: allow unbounded restarts")
    timeouts: list[float] = []
    while len(timeouts) < restarts:
        before, (tau, E) = E, _best_attempt(law, E, c, min_timeout)
        settled = abs(E - before) <= 1e-15 * before  # as good as unbounded: the rest are all alike
        timeouts += [tau] * (int(restarts) - len(timeouts) if settled else 1)
    return _schedule(law, goal, timeouts[::-1], c, E, E_R)


def _schedule(law: Law, goal: Objective, timeouts: list[float], cost: float, figure: float, untimed: float) -> Schedule:
    return Schedule(
        **_plan(law, timeouts, cost).figures,
        verdict="never" if np.isinf(timeouts[0]) else "finite",
        timeout=finite(timeouts[0]),
        timeouts=tuple(timeouts),
        speed_up=ratio(finite(untimed), figure),
        rho=float(law.rho),
        law=label(law),
        cost=cost,
        objective={"name": str(goal), "value": finite(goal.report(figure))},
    )


def _by_objective(law: Law, goal: Objective, restarts: int, cost: float, at_least: float) -> Schedule:
    """The best schedule for any objective: from equal timeouts, improve one after another until none gains."""
    if restarts > MAX_DESCENT_RESTARTS:
        raise RestartError(f"with {goal}, at most {MAX_DESCENT_RESTARTS} restarts are optimised: allow unbounded ones")

    def figure(timeouts: Sequence[float]) -> float:
        return float(goal.of_plan(_plan(law, timeouts, cost)))

    times = law.jumps if law.jumps is not None else derived.scan_times(law)
    least, most = law.ppf(derived.completion_probability(law) * np.array([1e-3, 1 - 1e-6]))
    times = times[(times >= max(least, at_least)) & (times <= min(most, goal.latest))]
    times = times[np.unique(np.linspace(0, times.size - 1, 60).astype(np.intp))] if times.size else times
    untimed, timeouts = figure([np.inf]), list[float]()
    best = untimed
    for count in range(1, restarts + 1):  # from the best schedule with one restart less, or from equal timeouts
        starts = [[*timeouts, np.inf], *([float(t)] * count for t in times[:: max(1, times.size // 12)])]
        best, timeouts = min((figure(start), start) for start in starts)
        for _ in range(MAX_DESCENT_ROUNDS):
            before = best
            for i in range(count):
                best, timeouts = _improved(law, figure, times, best, timeouts, i)
            if not best < before * (1 - 1e-10):
                break
    if not best < untimed * (1 - MIN_GAIN):
        best, timeouts = untimed, [np.inf] * restarts
    if not np.isfinite(best):
        raise RestartError(f"the objective {goal} is infinite for every schedule of {restarts} restarts")
    return _schedule(law, goal, timeouts, cost, best, untimed)


def _improved(
    law: Law, figure: Callable[[list[float]], float], times: Floats, best: float, timeouts: list[float], i: int
) -> tuple[float, list[float]]:
    """The i-th timeout at the best of these times, between the neighbours of that, or at ∞."""

    def at(t: float) -> tuple[float, list[float]]:
        changed = [*timeouts[:i], t, *timeouts[i + 1 :]]
        return figure(changed), changed

    if not times.size:
        return best, timeouts
    row = [at(float(t)) for t in times]
    k = row.index(min(row))
    low, high = float(times[max(k - 1, 0)]), float(times[min(k + 1, times.size - 1)])
    if law.jumps is not None:
        inner = law.jumps[(law.jumps > low) & (law.jumps < high)].tolist()
    else:
        inner = [float(np.exp(polished(lambda y: at(float(np.exp(y)))[0], np.log(low), np.log(high), 1e-9)))]
    return min([(best, timeouts), row[k], *map(at, [np.inf, *inner])], key=lambda option: option[0])


def _check_restarts(restarts: int, least: int) -> None:
    if not least <= restarts <= MAX_RESTARTS or restarts != int(restarts):
        raise RestartError(
            f"the number of restarts is {restarts}; it must be a whole number from {least} to {MAX_RESTARTS}"
        )


def _refuse_never_ending(law: Law) -> None:
    never = 1 - derived.completion_probability(law)
    if never > derived.ROUNDING:
        raise RestartError(
            f"a share {never:.4g} of attempts never completes, and with finitely many restarts the last "
            "one has no timeout, so every moment is infinite: allow unbounded restarts (no --restarts), if need be "
            "with a deadline (--objective deadline:D)"
        )


def _best_attempt(law: Law, following: float, cost: float, at_least: float) -> tuple[float, float]:
    """The τ that minimises M̃₁ + ∫₀^τ (u+c) dG̃ + S (τ+c) + (1−F̃) E, E = `following`, and that; ∞ where none gains."""

    def value(t: Floats) -> Floats:
        return np.asarray(attempt(law, t, pause=cost).followed(1, (1.0, following))[1])

    def slope(t: Floats) -> Floats:
        return derived.still_out(law, t) - law.pdf(t) * (cost + following)

    no_timeout = float(value(np.array(np.inf)))
    t = candidates(law, value, slope, at_least=at_least)
    t = t[law.cdf(t) > 1e-200]  # an attempt that completes less often is a restart at τ → 0
    v = value(t)
    best = v.min(initial=np.inf)
    if best >= no_timeout * (1 - MIN_GAIN):
        return np.inf, no_timeout
    return float(t[v <= best * (1 + 1e-13)].min()), float(best)


def _plan(law: Law, schedule: Sequence[float], cost: float) -> Plan:
    timeouts, c = derived.check_timeouts(schedule), derived.check_time("cost", cost)
    return Plan(tuple(attempt(law, float(tau), pause=c) for tau in np.append(timeouts, np.inf)), repeats=False)


def schedule_cdf(law: Any, x: ArrayLike, schedule: Sequence[float], *, cost: float = 0.0, **params: Any) -> Floats:
    """P(J ≤ x) with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    1 − Π_{i>k} (1−F̃(τ_i)) (1−F̃(x − s_k)) within attempt k, which starts at s_k, and 1 − Π_{i≥k} (1−F̃(τ_i)) while it
    is being replaced. van Moorsel & Wolter 2004, eq. 10, whose second branch prints i > k. `x` is a time or an array,
    `schedule` the timeouts; `law`, `cost` and `params` are as in `expected_duration`. Returns an array in the shape of
    `x`.

    >>> import latfit
    >>> round(float(latfit.schedule_cdf("exponential", 4.0, [3.0], rate=0.5)), 6)  # as without it
    0.864665
    """
    plan, at = _plan(as_law(law, **params), schedule, cost), np.asarray(x, dtype=np.float64)
    return np.reshape([1.0 - plan.survival(float(each)) if each >= 0 else 0.0 for each in at.ravel()], at.shape)


def schedule_moments(
    law: Any, schedule: Sequence[float], order: int = 2, *, cost: float = 0.0, **params: Any
) -> Floats:
    """E[Jⁿ], n = 0…order, with timeouts τ_K…τ_1 in the order of use and a last attempt without one.

    E_k[Jⁿ] = Mₙ(τ_k) + (1−F(τ_k)) Σ_{l≤n} C(n,l) (τ_k+c)ⁿ⁻ˡ E_{k−1}[Jˡ], backward from E_0[Jⁿ] = E[Tⁿ].
    van Moorsel & Wolter 2004, Theorem 3 and Algorithm 2. `schedule` holds the timeouts; `law`, `cost` and `params` are
    as in `expected_duration`. Returns an array of order + 1 moments.

    >>> import latfit
    >>> latfit.schedule_moments("exponential", [3.0], rate=0.5).round(6).tolist()
    [1.0, 2.0, 8.0]
    """
    law = as_law(law, **params)
    _refuse_never_ending(law)
    return np.array(_plan(law, schedule, cost).moments(order))


def restart_helps(law: Any, tau: ArrayLike, *, cost: float = 0.0, order: int = 1, **params: Any) -> NDArray[np.bool_]:
    """Whether one restart at τ lowers the n-th moment: E[(T + τ + c)ⁿ] < E[Tⁿ | T > τ].

    For the mean this is E[T] + c < E[T − τ | T > τ], and then any number of restarts at τ helps, the more the better.
    Where E[Tⁿ] is infinite (ρ > 0, or a tail too heavy) unlimited restarts make it finite (Corollary 1), so the answer
    is yes wherever something completes by τ. `tau` is a time in seconds or an array of them, `order` is n; `law`,
    `cost` and `params` are as in `expected_duration`. Returns booleans in the shape of `tau`.

    van Moorsel & Wolter 2004, eq. 1 and 13, and §5 for n ≥ 2, where they print E[(T+c)ⁿ] < E[(T−τ)ⁿ | T > τ];
    Chalasani et al. 1998, eq. 6.

    Examples
    --------
    >>> import latfit
    >>> latfit.restart_helps(latfit.parse_law("weibull(shape=0.5,scale=10)"), [0.1, 5.0], cost=1.0).tolist()
    [True, True]
    >>> latfit.restart_helps(latfit.parse_law("weibull(shape=2,scale=10)"), 5.0).tolist()
    False
    """
    law, t, c = as_law(law, **params), derived.check_timeouts(tau), derived.check_time("cost", cost)
    if order < 1:
        raise RestartError(f"the order of the moment is {order}; it must be 1 or more")
    S = derived.still_out(law, t)
    E = [1.0] + [float(law.partial_moment(n, np.inf)) for n in range(1, order + 1)]
    if derived.completion_probability(law) < 1 - derived.ROUNDING or np.isinf(E[order]):
        return np.asarray((S > 0) & (law.cdf(t) > 0))
    restarted = sum(comb(order, k) * (t + c) ** (order - k) * E[k] for k in range(order + 1))
    with np.errstate(all="ignore"):
        late = _late_moment(law, order, t, E[order])
        # for the exponential law both sides are equal
        return np.asarray((S > 0) & (S * restarted * (1 + derived.ROUNDING) < late))


def _late_moment(law: Law, n: int, tau: Floats, total: float) -> Floats:
    """E[Tⁿ; T > τ]: E[Tⁿ] − Mₙ(τ), and where that cancels τⁿ S(τ) + n ∫ uⁿ⁻¹ S(u) du over u > τ."""
    difference = total - law.partial_moment(n, tau)
    accurate = difference > 1e-4 * total  # a smaller one has lost digits
    if law.jumps is not None or accurate.all():
        return difference
    S = law.still_out(tau)
    residual = np.where(S > 0, S / law.pdf(tau), 1.0)[..., None]  # about the mean residual life
    nodes, weights = quadrature(np.append(0.0, np.geomspace(0.25, 1e9, 80)), steps=False)
    u = tau[..., None] + residual * nodes
    tail = n * np.sum(u ** (n - 1) * law.still_out(u) * residual * weights, axis=-1)
    return np.where(accurate, difference, tau**n * S + tail)


@dataclass(frozen=True, kw_only=True)
class Strategy(Figures):
    """Which agent to ask and how long to wait, in the order of use; the last timeout of a finite strategy is None.

    With unbounded restarts one step is repeated for ever; a timeout of 0 means the sooner the better.
    """

    steps: tuple[tuple[str, float | None], ...]
    unbounded: bool

    def to_dict(self) -> dict[str, Any]:
        return {**self.figures(), "strategy": [{"agent": agent, "timeout": timeout} for agent, timeout in self.steps]}


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_strategy(
    agents: Mapping[str, Law],
    *,
    restarts: int | None = None,
    cost: float = 0.0,
    min_timeouts: Mapping[str, float] | None = None,
) -> Strategy:
    """The strategy with the smallest expected duration over several agents.

    E*_k = min over agents i and timeouts τ of M̃₁ᵢ(τ) + (1−F̃ᵢ(τ)) (τ + c + E*_{k−1}), from E*_0 = min E[Tᵢ] on;
    without a limit on restarts the E_J of the best agent. Chalasani et al. 1998, eqs. 2–4, whose remaining term omits
    the waiting time τ.

    Parameters
    ----------
    agents
        The law of each agent by its name.
    restarts
        K, the number of restarts allowed (default: no limit).
    cost
        Seconds between a cancellation and the next attempt.
    min_timeouts
        The earliest timeout of each agent, in seconds.

    Returns
    -------
    Strategy
        `steps`: which agent to ask and how long to wait, in the order of use.

    Examples
    --------
    >>> import latfit
    >>> near, far = map(latfit.parse_law, ("lognormal(mu=4,sigma=1.5)", "lognormal(mu=5,sigma=0.3)"))
    >>> agents = {"near": near, "far": far}
    >>> best = latfit.optimal_strategy(agents, restarts=1)
    >>> [agent for agent, _ in best.steps], round(best.expected_duration, 1)
    (['near', 'far'], 110.2)
    """
    agents, c = {name: as_law(law) for name, law in agents.items()}, derived.check_time("cost", cost)
    if not agents:
        raise RestartError("there is no agent to ask")
    limits = dict.fromkeys(agents, 0.0) | dict(min_timeouts or {})
    if restarts is None:
        optima = {name: optimal_timeout(law, cost=c, min_timeout=limits[name]) for name, law in agents.items()}
        durations = {name: E for name, best in optima.items() if (E := best.expected_duration) is not None}
        if not durations:
            raise RestartError("no agent has a finite expected duration")
        name = min(durations, key=lambda key: durations[key])
        figures = {each.name: getattr(optima[name], each.name) for each in fields(Figures)}
        return Strategy(steps=((name, optima[name].timeout),), unbounded=True, **figures)
    _check_restarts(restarts, 0)
    always = {name: law for name, law in agents.items() if derived.completion_probability(law) >= 1 - derived.ROUNDING}
    means = [(name, float(law.partial_moment(1, np.inf))) for name, law in always.items()]
    name, E = min(means, key=lambda pair: pair[1], default=("", np.inf))
    if not np.isfinite(E):
        raise RestartError(
            "the last attempt has no timeout, and no agent completes in a finite mean time without one "
            "(outliers, failures or a tail too heavy): allow unbounded restarts"
        )
    steps: list[tuple[str, float | None]] = [(name, None)]
    for _ in range(int(restarts)):
        options = [(name, *_best_attempt(law, E, c, limits[name])) for name, law in agents.items()]
        name, tau, value = min(options, key=lambda option: option[2])
        if np.isinf(tau) or value >= E * (1 - derived.ROUNDING):
            break
        E, steps = value, [(name, tau), *steps]
    rounds = tuple(attempt(agents[name], np.inf if t is None else t, pause=c) for name, t in steps)
    return Strategy(steps=tuple(steps), unbounded=False, **Plan(rounds, repeats=False).figures)
