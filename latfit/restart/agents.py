"""Several agents with laws of their own: whom to ask first, how long to wait, whom to ask then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.restart.optimum import optimal_timeout
from latfit.restart.plan import Plan
from latfit.restart.result import Figures
from latfit.restart.rounds import attempt
from latfit.restart.schedule import MAX_RESTARTS, best_attempt
from latfit.restart.times import check_time, completion_probability


@dataclass(frozen=True, kw_only=True)
class Strategy(Figures):
    """Whom to ask and how long to wait, in the order of use; the last timeout of a finite strategy is None.

    With unbounded restarts there is one step, repeated for ever; a timeout of 0 is the limit: the sooner the better.
    """

    steps: tuple[tuple[str, float | None], ...]
    unbounded: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**self.figures(), "strategy": [{"agent": agent, "timeout": timeout} for agent, timeout in self.steps]}


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_strategy(
    agents: Mapping[str, Law],
    *,
    restarts: int | None = None,
    cost: float = 0.0,
    min_timeouts: Mapping[str, float] | None = None,
) -> Strategy:
    """The strategy of the least expected duration over several agents, none cut before its `min_timeouts`.

    E*_k = min over agents i and timeouts τ of M̃₁ᵢ(τ) + (1−F̃ᵢ(τ)) (τ + c + E*_{k−1}), from
    E*_0 = min E[Tᵢ] on; without a limit on restarts the best agent's own E_J.

    Chalasani et al. 1998, eqs. 2–4, whose remaining term drops the time τ that was waited.

    Parameters
    ----------
    agents
        The law of each agent by its name.
    restarts
        K, how often at most (default: no limit).
    cost
        Seconds between a cancellation and the next attempt.

    Returns
    -------
    Strategy
        Agents and timeouts in the order of use, and the expected duration.

    Examples
    --------
    >>> import latfit
    >>> near, far = map(latfit.parse_law, ("lognormal(mu=4,sigma=1.5)", "lognormal(mu=5,sigma=0.3)"))
    >>> agents = {"near": near, "far": far}
    >>> best = latfit.optimal_strategy(agents, restarts=1)
    >>> [agent for agent, _ in best.steps], round(best.expected_duration, 1)
    (['near', 'far'], 110.2)
    """
    agents = {name: as_law(law) for name, law in agents.items()}
    c = check_time("cost", cost)
    if not agents:
        raise RestartError("there is no agent to ask")
    limits = dict.fromkeys(agents, 0.0) | dict(min_timeouts or {})
    if restarts is None:
        return _unbounded(agents, c, limits)
    if not 0 <= restarts <= MAX_RESTARTS or restarts != int(restarts):
        raise RestartError(f"the number of restarts is {restarts}; it must be a whole number from 0 to {MAX_RESTARTS}")
    always = {name: law for name, law in agents.items() if completion_probability(law) >= 1 - 1e-12}
    means = {name: float(law.partial_moment(1, np.inf)) for name, law in always.items()}
    name = min(means, key=lambda key: means[key], default="")
    E = means.get(name, np.inf)
    if not np.isfinite(E):
        raise RestartError(
            "the last attempt has no timeout, and no agent completes in a finite mean time without one "
            "(outliers, failures or a tail too heavy): allow unbounded restarts"
        )
    steps: list[tuple[str, float | None]] = [(name, None)]
    for _ in range(int(restarts)):
        options = {name: best_attempt(law, E, c, limits[name]) for name, law in agents.items()}
        name = min(options, key=lambda key: options[key][1])
        tau, value = options[name]
        if np.isinf(tau) or value >= E * (1 - 1e-12):
            break
        E, steps = value, [(name, tau), *steps]
    rounds = [attempt(agents[name], np.inf if t is None else t, pause=c) for name, t in steps]
    return Strategy(steps=tuple(steps), unbounded=False, **Plan(tuple(rounds), repeats=False).figures)


def _unbounded(agents: Mapping[str, Law], cost: float, limits: Mapping[str, float]) -> Strategy:
    optima = {name: optimal_timeout(law, cost=cost, min_timeout=limits[name]) for name, law in agents.items()}
    durations = {name: best.expected_duration for name, best in optima.items() if best.expected_duration is not None}
    if not durations:
        raise RestartError("no agent has a finite expected duration")
    name = min(durations, key=lambda key: durations[key])
    best = optima[name]
    figures = {each.name: getattr(best, each.name) for each in fields(Figures)}
    return Strategy(steps=((name, best.timeout),), unbounded=True, **figures)
