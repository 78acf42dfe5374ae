"""The best parameters of a policy: global on a coarse law, then exact; free or under a budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats
from latfit.restart.coarse import coarse
from latfit.restart.evaluate import PolicyOutcome, evaluate_policy
from latfit.restart.objectives import Objective
from latfit.restart.optimum import optimal_timeout
from latfit.restart.plan import Plan
from latfit.restart.policies import Policy, get_policy
from latfit.restart.shifted import with_wall_clock
from latfit.restart.single_r import single_r
from latfit.restart.times import check_time, completes, inverse_cdf

CELLS = 300  # steps of the law on which the search begins
FINE = 4000  # steps of a law that has more of them, at the end
TIMES, RATIOS = 24, 9  # the grid over the two free times
BORDER = 1e-3  # a load this close to the budget is limited by it
SIMPLEX = np.array([[0.0, 0.0], [0.02, 0.0], [0.0, -0.05]])
SLACK = 1e-7  # a load this little above the budget is within it


@dataclass(frozen=True)
class Budget:
    """The load that a policy may make: at most `value` submissions or job-seconds a job."""

    name: Literal["submissions", "job_seconds"]
    value: float

    def excess(self, plan: Plan) -> float:
        """By which share a plan goes beyond it; negative within it."""
        load: float = getattr(plan, self.name)
        return load / self.value - 1.0 if np.isfinite(load) else np.inf


class Found(NamedTuple):
    """A point of the search and its figure, ∞ where the budget does not allow it."""

    figure: float
    time: float
    ratio: float


@dataclass(frozen=True)
class _Search:
    """One kind of policy on one law: the figure at the two free times, to a precision of their logarithms."""

    kind: type[Policy]
    law: Law
    cost: float
    objective: Objective
    budget: Budget | None
    precision: float
    min_time: float = 0.0
    earliest_end: float = 0.0

    def plan(self, time: float, ratio: float) -> Plan | None:
        """The plan at a point, None where it is not computable or too early."""
        if time < self.min_time or time * ratio < self.earliest_end:
            return None
        try:
            return self.kind.spanned(time, ratio).plan(self.law, self.cost)
        except RestartError:
            return None

    def excess(self, time: float, ratio: float) -> float:
        """By which share the load there goes beyond the budget."""
        if self.budget is None:
            return -1.0
        if self.budget.name == "submissions":
            try:
                N = self.kind.spanned(time, ratio).mean_submissions(self.law, self.cost)
            except RestartError:
                return np.inf
            return N / self.budget.value - 1.0
        plan = self.plan(time, ratio)
        return np.inf if plan is None else self.budget.excess(plan)

    def at(self, time: float, ratio: float) -> Found:
        """The figure there; ∞ where it is not allowed or not computable."""
        by_submissions = self.budget is not None and self.budget.name == "submissions"
        plan = None if by_submissions and self.excess(time, ratio) > SLACK else self.plan(time, ratio)
        if plan is None or (self.budget is not None and self.budget.excess(plan) > 2 * SLACK):
            return Found(np.inf, time, ratio)
        figure = self.objective.of_plan(plan)
        return Found(figure if np.isfinite(figure) else np.inf, time, ratio)

    def row(self, times: Floats, ratio: float) -> tuple[Found, float, float]:
        """The best of some times for one ratio, and the times beside it."""
        found = [self.at(float(time), ratio) for time in times]
        i = min(range(len(found)), key=lambda k: found[k].figure)
        return found[i], float(times[max(i - 1, 0)]), float(times[min(i + 1, len(found) - 1)])

    def along(self, times: Floats, ratio: float) -> Found:
        """The best time for one ratio: the best of a row, polished between its neighbours."""
        best, before, after = self.row(times, ratio)
        if not np.isfinite(best.figure):
            return best
        low, high = (self._edge(best.time, end, ratio) for end in (before, after))
        inner = _polished(lambda y: self.at(float(np.exp(y)), ratio).figure, np.log(low), np.log(high), self.precision)
        points = [best, self.at(low, ratio), self.at(high, ratio), self.at(float(np.exp(inner)), ratio)]
        return min(points, key=lambda point: point.figure)

    def _edge(self, inside: float, time: float, ratio: float) -> float:
        """`time` if the budget allows it, otherwise the last allowed time on the way to it from `inside`."""
        if self.budget is None or not self.excess(time, ratio) > SLACK:
            return time
        good, bad = np.log(inside), np.log(time)

        def excess(y: float) -> float:
            return float(np.clip(self.excess(float(np.exp(y)), ratio), -1.0, 1e6))

        if excess(good) < 0 < excess(bad):
            root = float(scipy.optimize.brentq(excess, good, bad, xtol=self.precision))
            step = self.precision * np.sign(good - bad)
            allowed = [y for y in (root, root + step, root + 2 * step) if excess(y) <= SLACK]
            return float(np.exp(allowed[0] if allowed else good))
        return inside

    def everywhere(self, times: Floats) -> Found:
        """The best time and ratio: rows of times for a grid of ratios, then between the best ratio's neighbours."""
        if self.kind.ratios is None:
            return self.along(times, 1.0)
        ratios = np.geomspace(*self.kind.ratios, RATIOS)
        found = [self.along(times, float(r)) if self.budget else self.row(times, float(r))[0] for r in ratios]
        best = min(found, key=lambda point: point.figure)
        if not np.isfinite(best.figure):
            return best
        i = found.index(best)
        a, b = np.log(ratios[max(i - 1, 0)]), np.log(ratios[min(i + 1, RATIOS - 1)])
        near = _near(best.time, 1.4)
        inner = _polished(lambda y: self.along(near, float(np.exp(y))).figure, a, b, 10 * self.precision)
        points = [best, self.along(near, best.ratio), self.along(near, float(np.exp(inner)))]
        return min(points, key=lambda point: point.figure)


def _near(time: float, factor: float, count: int = 5) -> Floats:
    return time * np.geomspace(1 / factor, factor, count)


def _polished(figure: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """The minimum of a figure between two places; ∞ counts as very large."""
    if not low < high:
        return low
    found = scipy.optimize.minimize_scalar(
        lambda y: min(figure(y), 1e300), bounds=(low, high), method="bounded", options={"xatol": tolerance}
    )
    return float(found.x)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_policy(
    law: Law,
    kind: str,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    objective: str = "mean",
    budget: Budget | None = None,
    min_time: float = 0.0,
) -> PolicyOutcome:
    """The best policy of one kind, and what it brings.

    Parameters
    ----------
    law
        The law of one attempt.
    kind
        The name of a policy with free times: `timeout`, `delayed`, `hedge`, `resubmit`, `copies` or `luby`.
    cost, wall_clock, objective
        As in `evaluate_policy`.
    budget
        The submissions or job-seconds that a job may take on average. Under a budget of submissions and a quantile
        as the objective, a hedge may be one that is made with a probability and never cancelled (SingleR).
    min_time
        Nothing is cancelled or submitted again before; on a log the step of its clock, or its fifth completion.

    Returns
    -------
    PolicyOutcome
        A kind whose optimum is another kind (a hedge at once is two copies) gives that one. An error where no
        parameters are allowed or finite.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> best = latfit.optimal_policy(law, "delayed")
    >>> round(best.policy.t0), round(best.expected_duration)
    (101, 253)

    """
    law = as_law(law)
    c, chosen = check_time("cost", cost), get_policy(kind)
    if not chosen.searched:
        raise RestartError(f"{kind} has no parameter to optimise: write it out, as in {chosen.example}")
    whole = with_wall_clock(law, check_time("wall-clock time", wall_clock))
    goal = Objective.parse(objective)
    if chosen.needs_budget and budget is None:
        raise RestartError(f"{kind}: the more submissions the better; give a budget of submissions or job-seconds")
    known = _known(law, chosen, c, wall_clock, objective, budget, min_time)
    if known is not None:
        return evaluate_policy(law, known, cost=c, wall_clock=wall_clock, objective=objective)
    times = _times(whole, min_time)
    earliest = 0.0 if chosen.needs_budget else float(times[0])  # cancelled earlier, so few complete that it is rounding
    rough = _Search(chosen, coarse(whole, CELLS), c, goal, budget, 3e-3, min_time, earliest)
    start = rough.everywhere(times)
    exact = _Search(chosen, _exact(whole), c, goal, budget, 1e-7, min_time, earliest)
    policy, figure = _finished(exact, start)
    if budget is not None and budget.name == "submissions" and goal.name == "quantile" and kind == "hedge" and c == 0:
        hedge, quantile = single_r(whole, goal.parameter, budget.value - 1.0)
        policy, figure = (hedge, quantile) if quantile < figure else (policy, figure)
    if policy is None:
        allowed = "" if budget is None else f" with at most {budget.value:.4g} {budget.name.replace('_', '-')}"
        raise RestartError(f"no {kind} policy{allowed} has a finite {goal}")
    return evaluate_policy(law, policy, cost=c, wall_clock=wall_clock, objective=objective)


def _known(
    law: Law,
    kind: type[Policy],
    cost: float,
    wall_clock: float,
    objective: str,
    budget: Budget | None,
    min_time: float,
) -> Policy | None:
    """The exact optimum of a policy with one timeout, where it is a time or none; None where it is to be sought."""
    b = kind.copies_at_once
    if b is None or (budget is not None and budget.name != "submissions"):
        return None
    limit = None if budget is None else budget.value * (1 + SLACK)
    options: dict[str, Any] = {"max_submissions": limit, "min_timeout": min_time, "objective": objective}
    best = optimal_timeout(law, cost=cost, wall_clock=wall_clock, copies=b, **options)
    if best.verdict == "finite" and best.timeout:
        return kind.spanned(best.timeout, 1.0)
    return kind() if best.verdict in ("never", "any") and best.expected_duration is not None else None


def _times(law: Law, least: float) -> Floats:
    """Times over the range of a law that matters, even in the logarithm."""
    low, high = inverse_cdf(law, completes(law) * np.array([0.01, 0.999]))
    if not max(high, least) > 0:
        raise RestartError("every attempt takes 0 s: the clock is too coarse to compare strategies; record finer times")
    return np.geomspace(max(low, high * 1e-12, least), 2 * max(high, least), TIMES)


def _exact(law: Law) -> Law:
    """The law on which a search ends: the law itself, unless it has very many steps."""
    return coarse(law, FINE) if law.jumps is not None and law.jumps.size > 5 * FINE else law


def _finished(search: _Search, start: Found) -> tuple[Policy | None, float]:
    """From the best point of a coarse law to the best point of the law itself."""
    if not np.isfinite(start.figure):
        return None, np.inf
    near = _near(start.time, 1.15, 5 if search.law.jumps is None else 25)
    points = [search.along(near, start.ratio)]
    if search.kind.ratios is not None and np.isfinite(points[0].figure):
        points.append(_both(search, points[0]) if search.budget is None else _on_border(search, points[0]))
    points += [point for near in tuple(points) for point in _snapped(search, near)]
    best = min(points, key=lambda point: point.figure)
    return (search.kind.spanned(best.time, best.ratio), best.figure) if np.isfinite(best.figure) else (None, np.inf)


def _both(search: _Search, start: Found) -> Found:
    """Both free times at once, by the simplex of Nelder and Mead."""
    low, high = search.kind.ratios or (1.0, 1.0)

    def clipped(y: float) -> float:
        return float(np.clip(np.exp(y), low, high))

    def figure(x: Floats) -> float:
        return min(search.at(float(np.exp(x[0])), clipped(float(x[1]))).figure, 1e300)

    at: Floats = np.log(np.array([start.time, start.ratio]))
    options = {"maxfev": 60, "xatol": 1e-6, "fatol": 0.0, "initial_simplex": at + SIMPLEX}
    found = scipy.optimize.minimize(figure, at, method="Nelder-Mead", options=options)  # type: ignore[call-overload]
    return search.at(float(np.exp(found.x[0])), clipped(found.x[1]))


def _on_border(search: _Search, start: Found) -> Found:
    """Along the border of the budget, where it is what limits: the best ratio near the one that was found."""
    low, high = np.log(search.kind.ratios or (1.0, 1.0))
    if search.excess(start.time, start.ratio) < -BORDER:
        return start

    def at(y: float) -> Found:
        ratio, time = float(np.exp(y)), start.time
        inside = next((t for t in time * np.array([1.0, 1.05, 0.95, 1.3, 0.7]) if search.excess(t, ratio) <= 0), None)
        if inside is None:
            return Found(np.inf, time, ratio)
        ends = [search._edge(inside, end, ratio) for end in (0.5 * inside, 2 * inside)]
        return min((search.at(end, ratio) for end in ends), key=lambda point: point.figure)

    y = np.log(start.ratio)
    inner = _polished(lambda z: at(z).figure, max(low, y - 0.4), min(high, y + 0.4), 1e-3)
    return min([start, at(inner)], key=lambda point: point.figure)


def _snapped(search: _Search, point: Found) -> list[Found]:
    """On a step law: the same with the end moved back to the last time at which something can complete."""
    if search.law.jumps is None or not np.isfinite(point.figure):
        return []
    plan = search.kind.spanned(point.time, point.ratio).plan(search.law, search.cost)
    this = plan.rounds[-1]
    earlier = search.law.jumps[search.law.jumps <= point.time * point.ratio]
    found = []
    if search.kind.ratios is not None:
        ages = np.concatenate([earlier[-1:], this.ages[this.ages < this.length][-1:]])
        found = [search.at(point.time, float(age / point.time)) for age in ages if age >= point.time]
    elif earlier.size:
        found = [search.at(float(earlier[-1]), 1.0)]
    return found
