"""Two agents and a hedge: whom to ask first, whom to ask as well and when, and when to begin again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart.coarse import coarse
from latfit.restart.objectives import Objective
from latfit.restart.result import QUANTILES, ratio
from latfit.restart.rounds import hedged
from latfit.restart.times import check_time, completes, inverse_cdf

CELLS = 150  # steps of the laws on which the search for a pair begins
GRID = 14


@dataclass(frozen=True)
class HedgedPair:
    """Ask one agent, and another one as well if the first has not answered after d; the first answer counts.

    Both are given up at `t_inf` (None: never), and all begins again. The figures are those of `Outcome`.
    """

    first: str
    second: str
    d: float
    t_inf: float | None
    expected_duration: float | None
    std_duration: float | None
    quantiles: dict[str, float | None]
    submissions: float | None
    job_seconds: float | None
    success: float | None
    objective: dict[str, Any]

    @property
    def parallel(self) -> float | None:
        """How many jobs are out at a time, on average."""
        return ratio(self.job_seconds, self.expected_duration)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "parallel": self.parallel}


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_hedge(agents: Mapping[str, Law], *, cost: float = 0.0, objective: str = "mean") -> HedgedPair:
    """The best pair of agents for a hedge, an agent with itself included.

    Parameters
    ----------
    agents
        The law of each agent.
    cost
        Seconds between the decision to ask again and the start of the new request.
    objective
        `mean`, `quantile:0.95`, `deadline:600`…

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
    pairs = {(i, j): _start(rough[i], rough[j], c, goal) for i in agents for j in agents}
    best = min(value[0] for value in pairs.values())
    close = {pair: value for pair, value in pairs.items() if value[0] <= 1.05 * best}
    if not np.isfinite(best):
        raise RestartError(f"no pair of agents has a finite {goal}")
    found = [(*_polished(agents[i], agents[j], c, goal, *at[1:]), i, j) for (i, j), at in close.items()]
    _, d, t_inf, first, second = min(found)
    plan = hedged(agents[first], agents[second], d, t_inf, cost=c)
    return HedgedPair(
        first=first,
        second=second,
        d=d,
        t_inf=finite(t_inf),
        expected_duration=finite(plan.mean),
        std_duration=finite(plan.std),
        quantiles=plan.quantiles(QUANTILES),
        submissions=finite(plan.submissions),
        job_seconds=finite(plan.job_seconds),
        success=finite(plan.success),
        objective={"name": str(goal), "value": finite(goal.report(goal.of_plan(plan)))},
    )


def _figure(first: Law, second: Law, cost: float, goal: Objective, d: float, t_inf: float) -> float:
    value = goal.of_plan(hedged(first, second, d, t_inf, cost=cost)) if t_inf > d + cost else np.inf
    return value if np.isfinite(value) else np.inf


def _start(first: Law, second: Law, cost: float, goal: Objective) -> tuple[float, float, float]:
    """The best of a grid over d and t_inf for one ordered pair."""
    last = max(float(inverse_cdf(law, 0.999 * completes(law))) for law in (first, second))
    starts = np.append(0.0, inverse_cdf(first, completes(first) * np.linspace(0.02, 0.98, GRID)))
    ends = np.append(last * np.geomspace(0.02, 2, GRID), np.inf)
    grid = [(_figure(first, second, cost, goal, float(d), float(e)), float(d), float(e)) for d in starts for e in ends]
    return min(grid)


def _polished(
    first: Law, second: Law, cost: float, goal: Objective, d: float, t_inf: float
) -> tuple[float, float, float]:
    """Both times at once on the laws themselves, by the simplex of Nelder and Mead."""
    middle, last = inverse_cdf(first, np.array([0.5, 0.999]) * completes(first))
    scale = d or 0.05 * float(middle or last)
    log_end = 0.0 if np.isinf(t_inf) else float(np.log(t_inf))

    def at(x: Floats) -> tuple[float, float, float]:
        start, end = (
            max(float(x[0]) * scale, 0.0),
            np.inf if np.isinf(t_inf) else max(float(np.exp(x[1])), 1e-6 * float(last)),
        )
        return _figure(first, second, cost, goal, start, end), start, end

    origin = np.array([d / scale, log_end])
    simplex = origin + np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]])
    options = {"maxfev": 120, "xatol": 1e-6, "fatol": 0.0, "initial_simplex": simplex}
    found = minimize(lambda x: min(at(x)[0], 1e300), origin, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    return min(at(found.x), at(origin), at(np.array([0.0, log_end])))
