"""The best parameters of a policy: global on a coarse law, then exact; free or under a budget."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart import derived
from latfit.restart.evaluate import PolicyOutcome, evaluate_policy
from latfit.restart.objectives import Objective
from latfit.restart.optimum import optimal_timeout, polished
from latfit.restart.plan import Plan
from latfit.restart.policies import REGISTRY, Policy
from latfit.restart.policies.overlap import Hedge
from latfit.restart.result import Optimum

EXACT_CELLS = 4000  # steps of a law that has many more of them, at the end of a search
BUDGET_SLACK = 1e-7  # a load this little above the budget is within it


@dataclass(frozen=True)
class Budget:
    """The largest mean load that a policy may cause: `value` submissions or job-seconds per job."""

    name: Literal["submissions", "job_seconds"]
    value: float


class _Point(NamedTuple):
    """A time, the ratio of the second free time to it, and the figure there: ∞ if not allowed or not computable."""

    figure: float
    time: float
    ratio: float


def _best(*points: _Point) -> _Point:
    return min(points, key=lambda point: point.figure)


@dataclass(frozen=True)
class _Search:
    """A search for the best `policy` of a time and a ratio on a law; `precision` is that of the logarithm of a time."""

    policy: Callable[[float, float], Policy]
    ratios: tuple[float, float] | None
    law: Law
    cost: float
    objective: Objective
    budget: Budget | None
    precision: float
    min_time: float = 0.0
    earliest_end: float = 0.0
    _plans: dict[tuple[float, float], Plan | None] = field(default_factory=dict, init=False)

    def plan(self, time: float, ratio: float) -> Plan | None:
        """The plan of the policy with these times; None where they are too early or the plan cannot be computed."""
        if (time, ratio) not in self._plans:
            plan = None
            if time >= self.min_time and time * ratio >= self.earliest_end:
                with suppress(RestartError):
                    plan = self.policy(time, ratio).plan(self.law, self.cost)
            self._plans[time, ratio] = plan
        return self._plans[time, ratio]

    def excess(self, time: float, ratio: float) -> float:
        """The share by which the load exceeds the budget; negative within it."""
        if self.budget is None:
            return -1.0
        plan = self.plan(time, ratio)
        load = np.inf if plan is None else getattr(plan, self.budget.name)
        return load / self.budget.value - 1.0 if np.isfinite(load) else np.inf

    def at(self, time: float, ratio: float) -> _Point:
        plan = self.plan(time, ratio)
        allowed = plan is not None and self.excess(time, ratio) <= 2 * BUDGET_SLACK
        figure = self.objective.of_plan(plan) if plan is not None and allowed else np.inf
        return _Point(figure if np.isfinite(figure) else np.inf, time, ratio)

    def row(self, times: Floats, ratio: float) -> tuple[_Point, float, float]:
        points = [self.at(float(time), ratio) for time in times]
        i = points.index(_best(*points))
        return points[i], float(times[max(i - 1, 0)]), float(times[min(i + 1, len(points) - 1)])

    def along(self, times: Floats, ratio: float) -> _Point:
        """The best time for one ratio: the best of a row, polished between its neighbours."""
        best, before, after = self.row(times, ratio)
        if not np.isfinite(best.figure):
            return best
        low, high = (self.edge(best.time, end, ratio) for end in (before, after))
        inner = polished(lambda y: self.at(float(np.exp(y)), ratio).figure, np.log(low), np.log(high), self.precision)
        return _best(best, *(self.at(float(time), ratio) for time in (low, high, np.exp(inner))))

    def edge(self, inside: float, time: float, ratio: float) -> float:
        """`time` if the budget allows it, otherwise the last allowed time on the way to it from `inside`."""
        if self.budget is None or not self.excess(time, ratio) > BUDGET_SLACK:
            return time
        good, bad = np.log(inside), np.log(time)

        def excess(y: float) -> float:
            return float(np.clip(self.excess(float(np.exp(y)), ratio), -1.0, 1e6))

        if not excess(good) < 0 < excess(bad):
            return inside
        root = float(scipy.optimize.brentq(excess, good, bad, xtol=self.precision))
        steps_back = root + self.precision * np.sign(good - bad) * np.arange(3)
        return float(np.exp(next((y for y in steps_back if excess(y) <= BUDGET_SLACK), good)))

    def everywhere(self, times: Floats) -> _Point:
        """The best time and ratio: rows of times for a grid of ratios, then between the best ratio's neighbours."""
        if self.ratios is None:
            return self.along(times, 1.0)
        ratios = np.geomspace(*self.ratios, 9)
        points = [self.along(times, float(r)) if self.budget else self.row(times, float(r))[0] for r in ratios]
        best = _best(*points)
        if not np.isfinite(best.figure):
            return best
        i = points.index(best)
        low, high = np.log(ratios[max(i - 1, 0)]), np.log(ratios[min(i + 1, ratios.size - 1)])
        near = best.time * np.geomspace(1 / 1.4, 1.4, 5)
        inner = polished(lambda y: self.along(near, float(np.exp(y))).figure, low, high, 10 * self.precision)
        return _best(best, self.along(near, best.ratio), self.along(near, float(np.exp(inner))))

    def finished(self, start: _Point) -> tuple[Policy | None, float]:
        """The best policy near the best point on a coarse law, and its figure."""
        if not np.isfinite(start.figure):
            return None, np.inf
        times = start.time * np.geomspace(1 / 1.15, 1.15, 5 if self.law.jumps is None else 25)
        points = [self.along(times, start.ratio)]
        if self.ratios is not None and np.isfinite(points[0].figure):
            points.append(self.both_times(points[0]) if self.budget is None else self.on_border(points[0]))
        best = _best(*points, *(each for point in points for each in self.snapped(point)))
        return (self.policy(best.time, best.ratio) if np.isfinite(best.figure) else None), best.figure

    def both_times(self, start: _Point) -> _Point:
        low, high = self.ratios or (1.0, 1.0)

        def at(x: Floats) -> _Point:
            return self.at(float(np.exp(x[0])), float(np.clip(np.exp(x[1]), low, high)))

        origin: Floats = np.log(np.array([start.time, start.ratio]))
        simplex = origin + np.array([[0.0, 0.0], [0.02, 0.0], [0.0, -0.05]])
        options = {"maxfev": 60, "xatol": 1e-6, "fatol": 0.0, "initial_simplex": simplex}
        best = scipy.optimize.minimize(  # type: ignore[call-overload]
            lambda x: min(at(x).figure, derived.HUGE), origin, method="Nelder-Mead", options=options
        )
        return at(best.x)

    def on_border(self, start: _Point) -> _Point:
        """The best point along the border of the budget, if `start` is on it."""
        low, high = np.log(self.ratios or (1.0, 1.0))
        if self.excess(start.time, start.ratio) < -1e-3:
            return start

        def at(y: float) -> _Point:
            ratio, times = float(np.exp(y)), start.time * np.array([1.0, 1.05, 0.95, 1.3, 0.7])
            inside = next((float(time) for time in times if self.excess(time, ratio) <= 0), None)
            if inside is None:
                return _Point(np.inf, start.time, ratio)
            return _best(*(self.at(self.edge(inside, end, ratio), ratio) for end in (0.5 * inside, 2 * inside)))

        y = np.log(start.ratio)
        inner = polished(lambda z: at(z).figure, max(low, y - 0.4), min(high, y + 0.4), 1e-3)
        return _best(start, at(inner))

    def snapped(self, point: _Point) -> list[_Point]:
        """On a step law: the same points with the end moved back to the last time at which a copy can complete."""
        if self.law.jumps is None or not np.isfinite(point.figure):
            return []
        earlier = self.law.jumps[self.law.jumps <= point.time * point.ratio][-1:]
        if self.ratios is None:
            return [self.at(float(time), 1.0) for time in earlier]
        plan = self.plan(point.time, point.ratio)
        assert plan is not None
        last = plan.rounds[-1]
        ages = np.append(earlier, last.ages[last.ages < last.length][-1:])
        return [self.at(point.time, float(age / point.time)) for age in ages if age >= point.time]


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_policy(
    law: Any,
    kind: str,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    objective: str = "mean",
    budget: Budget | None = None,
    min_time: float = 0.0,
    max_copies: int = 2,
    **params: Any,
) -> PolicyOutcome:
    """The best policy of one kind, and its figures.

    Parameters
    ----------
    kind
        The name of a policy with free times: `timeout`, `delayed`, `hedge`, `resubmit`, `copies` or `luby`.
    law, cost, wall_clock, objective, params
        As in `evaluate_policy`.
    budget
        The mean submissions or job-seconds allowed per job. With a budget of submissions and a quantile as the
        objective, a hedge may be one with a probability that is never cancelled (SingleR).
    min_time
        The earliest time to cancel or submit again; on a log, `earliest_timeout`.
    max_copies
        The largest number of `copies` to try under a budget of submissions.

    Returns
    -------
    PolicyOutcome
        If the optimum is a policy of another kind (an immediate hedge is two copies), that one. An error if no
        parameters are allowed, or none has a finite figure.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> best = latfit.optimal_policy(law, "delayed")
    >>> round(best.policy.t0), round(best.expected_duration)
    (101, 253)
    """
    law, chosen, goal = as_law(law, **params), REGISTRY[kind], Objective.parse(objective)
    c, whole = derived.check_time("cost", cost), derived.with_wall_clock(law, wall_clock)
    if not chosen.searched:
        raise RestartError(f"{kind} has no parameter to optimise: write it out, as in {chosen.example}")
    if chosen.needs_budget and budget is None:
        raise RestartError(f"{kind}: the more submissions the better; give a budget of submissions or job-seconds")
    options: dict[str, Any] = {"cost": c, "wall_clock": wall_clock, "objective": objective}
    policy = _exact_optimum(law, chosen, budget, max_copies, min_timeout=min_time, **options)
    if policy is None:
        times = _times(whole, min_time)
        earliest_end = 0.0 if chosen.needs_budget else float(times[0])  # earlier, figures are rounding: few complete
        few_requests = budget is not None and budget.name == "submissions"
        may_draw = few_requests and kind == "hedge" and goal.name == "quantile" and c == 0

        def searches(law: Law, precision: float) -> list[_Search]:
            this = _Search(chosen.from_times, chosen.ratios, law, c, goal, budget, precision, min_time, earliest_end)
            drawn = partial(_single_r, law, budget.value - 1.0 if budget else 0.0)
            return [this, replace(this, policy=drawn, ratios=None, earliest_end=0.0)] if may_draw else [this]

        many_steps = whole.jumps is not None and whole.jumps.size > 5 * EXACT_CELLS
        exact = searches(derived.coarse(whole, EXACT_CELLS) if many_steps else whole, 1e-7)
        rough = searches(derived.coarse(whole, 300), 3e-3)
        ends = [fine.finished(some.everywhere(times)) for fine, some in zip(exact, rough, strict=True)]
        policy, _ = min(ends, key=lambda end: end[1])
    if policy is None:
        allowed = "" if budget is None else f" with at most {budget.value:.4g} {budget.name.replace('_', '-')}"
        raise RestartError(f"no {kind} policy{allowed} has a finite {goal}")
    return evaluate_policy(law, policy, **options)


def _exact_optimum(
    law: Law, kind: type[Policy], budget: Budget | None, max_copies: int, **options: Any
) -> Policy | None:
    """The optimum of a policy with one timeout, if that is a time or waiting; None if a search must find it."""
    if kind.copies_at_once is None or (budget is not None and budget.name != "submissions"):
        return None
    limit = None if budget is None else budget.value * (1 + BUDGET_SLACK)
    least, report = kind.copies_at_once, Objective.parse(options["objective"]).report
    most = least if limit is None or least == 1 else max(least, min(int(limit), max_copies))
    optima: dict[int, Optimum] = {}
    for b in range(least, most + 1):  # with a budget of submissions, as many copies as are best
        try:
            optima[b] = optimal_timeout(law, copies=b, max_submissions=limit, figures=False, **options)
        except RestartError:  # too many, even without a timeout
            if b == least:
                raise
    b = min(optima, key=lambda b: np.inf if (value := optima[b].objective["value"]) is None else report(value))
    best, copies = optima[b], {} if least == 1 else {"b": b}
    if best.verdict == "finite" and best.timeout:
        return replace(kind.from_times(best.timeout, 1.0), **copies)
    return kind(**copies) if best.verdict in ("never", "any") and best.expected_duration is not None else None


def _times(law: Law, least: float) -> Floats:
    low, high = law.ppf(derived.completion_probability(law) * np.array([0.01, 0.999]))
    if not max(high, least) > 0:
        raise RestartError("every attempt takes 0 s: the clock is too coarse to compare strategies; record finer times")
    return np.geomspace(max(low, high * 1e-12, least), 2 * max(high, least), 24)


def _single_r(law: Law, extra: float, d: float, _: float) -> Hedge:
    """The hedge without a timeout and with at most a share of `extra` requests, q S(d) ≤ B; Kaler et al. 2017."""
    S = float(derived.not_completed(law, np.array(d)))
    return Hedge(d, None, 1.0 if extra >= S else extra / S)
