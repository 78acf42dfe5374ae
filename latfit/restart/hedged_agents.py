"""Two agents and a hedge: whom to ask first, whom to ask as well and when, and when to begin again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart.coarse import coarse
from latfit.restart.hedged import hedged
from latfit.restart.objectives import Objective
from latfit.restart.result import Figures
from latfit.restart.times import check_time, completes, inverse_cdf

CELLS = 150  # steps of the laws on which the search for a pair begins
GRID = 14


@dataclass(frozen=True, kw_only=True)
class HedgedPair(Figures):
    """Ask one agent, and another one as well if the first has not answered after d; the first answer counts.

    Both are given up at `t_inf` (None: never), and all begins again. The figures are those of `Outcome`.
    """

    first: str
    second: str
    d: float
    t_inf: float | None
    objective: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "parallel": self.parallel}


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_hedge(
    agents: Mapping[str, Law],
    *,
    cost: float = 0.0,
    objective: str = "mean",
    min_timeouts: Mapping[str, float] | None = None,
) -> HedgedPair:
    """The best pair of agents for a hedge, an agent with itself included.

    Parameters
    ----------
    agents
        The law of each agent.
    cost
        Seconds between the decision to ask again and the start of the new request.
    objective
        `mean`, `quantile:0.95`, `deadline:600`…
    min_timeouts
        The earliest time at which an agent may be given up.

    Returns
    -------
    HedgedPair
        The best over all ordered pairs, d and t_inf.

    Examples
    --------
    >>> import latfit
    >>> from latfit.restart import optimal_hedge
    >>> agents = {"a": latfit.parse_law("lognormal(mu=0,sigma=1.5)"), "b": latfit.parse_law("uniform(a=1,b=1.1)")}
    >>> pair = optimal_hedge(agents, objective="quantile:0.95")
    >>> pair.first, pair.second, pair.d
    ('b', 'b', 0.0)
    """
    c, goal = check_time("cost", cost), Objective.parse(objective)
    if not agents:
        raise RestartError("there is no agent to ask")
    for name, law in agents.items():
        if not float(inverse_cdf(law, 0.999 * completes(law))):
            raise RestartError(
                f"every attempt of {name} takes 0 s: the clock is too coarse for a hedge; record finer times"
            )
    rough = {name: coarse(law, CELLS) for name, law in agents.items()}
    limits = dict.fromkeys(agents, 0.0) | dict(min_timeouts or {})
    least = {(i, j): max(limits[i], limits[j]) for i in agents for j in agents}
    pairs = {(i, j): _start(_Pair(rough[i], rough[j], c, goal, at_least)) for (i, j), at_least in least.items()}
    best = min(value[0] for value in pairs.values())
    close = {pair: value for pair, value in pairs.items() if value[0] <= 1.05 * best}
    if not np.isfinite(best):
        raise RestartError(f"no pair of agents has a finite {goal}")
    found = [
        (*_polished(_Pair(agents[i], agents[j], c, goal, least[i, j]), d, t_inf), i, j)
        for (i, j), (_, d, t_inf) in close.items()
    ]
    _, d, t_inf, first, second = min(found)
    plan = hedged(agents[first], agents[second], d, t_inf, cost=c)
    return HedgedPair(
        first=first,
        second=second,
        d=d,
        t_inf=finite(t_inf),
        **plan.figures,
        objective={"name": str(goal), "value": finite(goal.report(goal.of_plan(plan)))},
    )


class _Pair(NamedTuple):
    """Two laws, and what is to be minimised over d and t_inf, given up no earlier than `least`."""

    first: Law
    second: Law
    cost: float
    goal: Objective
    least: float

    def figure(self, d: float, t_inf: float) -> tuple[float, float, float]:
        """The figure with its times; ∞ where they are not allowed."""
        if t_inf <= d + self.cost or t_inf < self.least:
            return np.inf, d, t_inf
        value = self.goal.of_plan(hedged(self.first, self.second, d, t_inf, cost=self.cost))
        return (value if np.isfinite(value) else np.inf), d, t_inf


def _start(pair: _Pair) -> tuple[float, float, float]:
    """The best of a grid over d and t_inf for one ordered pair."""
    first = pair.first
    last = max(pair.least, *(float(inverse_cdf(law, 0.999 * completes(law))) for law in (first, pair.second)))
    starts = np.append(0.0, inverse_cdf(first, completes(first) * np.linspace(0.02, 0.98, GRID)))
    ends = np.append(np.geomspace(max(0.02 * last, pair.least), 2 * last, GRID), np.inf)
    return min(pair.figure(float(d), float(end)) for d in starts for end in ends)


def _polished(pair: _Pair, d: float, t_inf: float) -> tuple[float, float, float]:
    """Both times at once on the laws themselves, by the simplex of Nelder and Mead."""
    scale = d if d > 0 else 0.05 * float(inverse_cdf(pair.first, 0.5 * completes(pair.first))) or pair.least or 1.0
    log_end = 0.0 if np.isinf(t_inf) else float(np.log(t_inf))

    def at(x: Floats) -> tuple[float, float, float]:
        return pair.figure(max(float(x[0]) * scale, 0.0), np.inf if np.isinf(t_inf) else float(np.exp(x[1])))

    origin = np.array([d / scale, log_end])
    simplex = origin + np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]])
    options = {"maxfev": 120, "xatol": 1e-6, "fatol": 0.0, "initial_simplex": simplex}
    found = scipy.optimize.minimize(lambda x: min(at(x)[0], 1e300), origin, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    return min(at(found.x), pair.figure(d, t_inf), pair.figure(0.0, t_inf))
