"""The optimal timeout for unbounded restarts, its figures, and how flat the objective is around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from latfit.curve import MIN_COMPLETIONS
from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.discrete import Discrete
from latfit.laws.empirical import Empirical, as_law
from latfit.laws.gamma import Exponential
from latfit.numbers import Floats, finite
from latfit.restart import derived
from latfit.restart.objectives import Figure, Mean, Objective
from latfit.restart.plan import restarted
from latfit.restart.result import QUANTILES, Optimum, Verdict, Window, label, ratio

MIN_GAIN = 1e-9  # a smaller relative gain is none


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def optimal_timeout(
    law: Any,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    copies: int = 1,
    objective: str = "mean",
    max_submissions: float | None = None,
    min_completions: int = 1,
    min_timeout: float = 0.0,
    figures: bool = True,
    **params: Any,
) -> Optimum:
    """The timeout t̂ that minimises E_J (or another objective) when restarts are unbounded.

    Exact on step laws (empirical, discrete), where the optimum is a time at which an attempt can complete; global on
    laws with a density, including the limits at 0 and ∞. Ties go to the smallest E_J, then to the smallest t.
    van Moorsel & Wolter 2004, §3.1; Glatard et al. 2006, §3.

    Parameters
    ----------
    law, cost, wall_clock, copies, params
        As in `expected_duration`.
    objective
        What to minimise: `mean`, `std`, `moment:n`, `quantile:q` or `deadline:D`.
    max_submissions
        B, the largest mean number of submissions: F̃(t) ≥ 1/B.
    min_completions
        The number of completions that an empirical law needs at or below t̂.
    min_timeout
        The earliest timeout, in seconds.
    figures
        Whether to compute quantiles, standard deviation and windows too.

    Returns
    -------
    Optimum
        The timeout with its verdict, its figures, and the windows within 1 % and 5 %.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> best = latfit.optimal_timeout(law)
    >>> best.verdict, round(best.timeout), round(best.expected_duration), [round(t) for t in best.within_5pct]
    ('finite', 384, 375, [213, 820])
    >>> latfit.optimal_timeout("lognormal", mu=5.5, sigma=1, rho=0.025).timeout == best.timeout
    True
    """
    problem = _Problem.of(as_law(law, **params), cost, wall_clock, copies, objective)
    first, c, goal = problem.law, problem.cost, problem.objective
    if not derived.completion_probability(first) > 0:
        raise RestartError("no attempt ever completes under this law: no timeout can help")
    at_least = _earliest(problem, max_submissions, min_completions, min_timeout)
    t = candidates(
        first,
        problem.value,
        lambda t: goal.slope(first, t, c),
        special=goal.special_times(first, c),
        at_least=at_least,
        at_most=goal.latest,
    )
    if first.jumps is None:
        best = _argmin(problem, np.append(t, np.inf))
        E_0 = _origin_limit(first, c) if at_least == 0 else np.inf
        at_zero = float(goal.value(_limit_law(E_0), np.array(np.inf), 0.0)) if np.isfinite(E_0) else np.inf
        if np.isfinite(at_zero) and _is_constant(problem, at_zero):
            return _outcome(problem, "any", np.inf, figures=figures)
        if at_zero <= float(problem.value(np.array(best))) * (1 + MIN_GAIN):
            return _outcome(problem, "immediate", 0.0, E_0=E_0, figures=figures)
    else:  # a sample never says `any` or `immediate`
        best = _argmin(problem, thinned(problem.value, t) if problem.on_lattice else t) if t.size else np.inf
        best = best if float(derived.still_out(first, best)) > 0 else np.inf
    both = np.array([best, np.inf])  # by the objective and, where that is equal, by the mean
    pairs = (problem.value(both), Mean().value(first, both, c))
    if np.isinf(best) or all(np.isfinite(none) and figure >= none * (1 - MIN_GAIN) for figure, none in pairs):
        return _outcome(problem, "never", np.inf, at_least, figures=figures)
    return _outcome(problem, "finite", best, at_least, figures=figures)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_timeout(
    law: Any,
    timeout: float,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    copies: int = 1,
    objective: str = "mean",
    **params: Any,
) -> Optimum:
    """The figures of a given timeout (∞: none), with the verdict `given` and without windows.

    `law`, `cost`, `wall_clock`, `copies` and `params` are those of `optimal_timeout`; `objective` is the figure to
    report beside the others. Returns an `Optimum`.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> given = latfit.evaluate_timeout(law, 600.0)
    >>> given.verdict, round(given.expected_duration), round(given.submissions, 3)
    ('given', 382, 1.258)
    """
    problem = _Problem.of(as_law(law, **params), cost, wall_clock, copies, objective)
    t = float(derived.check_timeouts(timeout))
    if t < problem.r:
        raise RestartError(f"the timeout {timeout:g} s is shorter than the wall-clock time {problem.r:g} s")
    return _outcome(problem, "given", t)


def earliest_timeout(law: Law) -> float:
    """The earliest timeout that data support: at least one step of the clock, with five completions at or below it.

    A recorded latency of 0 is one below the step of the clock, and the minimum of a sample may be one lucky latency. On
    other laws any timeout is supported: 0.
    """
    if not isinstance(law, Empirical):
        return 0.0
    allowed = law.jumps[(law.jumps >= law.resolution) & (law.completed >= MIN_COMPLETIONS)]
    return float(allowed[0]) if allowed.size else max(law.resolution, float(law.jumps[-1]))


@dataclass(frozen=True)
class _Problem:
    """The figure to minimise. `data` is the law of a latency, `law` that of an attempt of b copies that each run r."""

    data: Law
    law: Law
    b: int
    cost: float
    r: float
    objective: Objective

    @classmethod
    def of(cls, law: Law, cost: float, wall_clock: float, copies: int, objective: str) -> _Problem:
        goal, job = Objective.parse(objective), derived.with_wall_clock(law, wall_clock)
        if goal.latest <= wall_clock:
            raise RestartError(f"the deadline {goal.latest:g} s is not after the wall-clock time {wall_clock:g} s")
        c = derived.check_time("cost", cost)
        return cls(law, derived.with_copies(job, copies), copies, c, wall_clock, goal)

    def value(self, t: Floats) -> Floats:
        return self.objective.value(self.law, t, self.cost)

    @property
    def on_lattice(self) -> bool:
        """Whether the figure is slow to compute: a distribution under visible failures."""
        return derived.has_failures(self.law) and self.objective.name in ("quantile", "deadline")


def _earliest(problem: _Problem, max_submissions: float | None, min_completions: int, min_timeout: float) -> float:
    limits = [derived.check_time("smallest timeout", min_timeout)]
    if max_submissions is not None:
        top = derived.completion_probability(problem.law)
        if not max_submissions >= problem.b / top * (1 - derived.ROUNDING):
            raise RestartError(
                f"at most {max_submissions:g} submissions a job are allowed, but even without a timeout "
                f"{problem.b / top:.6g} are needed: allow more"
            )
        limits.append(float(problem.law.ppf(min(problem.b / max_submissions, top))))
    law = problem.data
    if min_completions > 1 and isinstance(law, Empirical):
        completions = int(law.completed[-1])
        if min_completions > completions:
            raise RestartError(
                f"{min_completions} completions are needed at or below the timeout; the sample has only {completions}"
            )
        limits.append(problem.r + float(law.jumps[np.searchsorted(law.completed, min_completions)]))
    return max(limits)


def _argmin(problem: _Problem, t: Floats) -> float:
    """The t of the smallest figure; ties go to the smallest E_J, then to the smallest t."""
    v = problem.value(t)
    v = np.where(np.isnan(v), np.inf, v)
    if not np.isfinite(v).any():
        raise RestartError(f"the objective {problem.objective} is infinite for every timeout")
    equal = t[v <= v.min() * (1 + derived.ROUNDING)]
    E_J = Mean().value(problem.law, equal, problem.cost)
    return float(equal[E_J.min() * (1 + derived.ROUNDING) >= E_J].min())


def _is_constant(problem: _Problem, at_zero: float) -> bool:
    """Whether the figure is the same for every timeout."""
    untimed = float(problem.value(np.array(np.inf)))
    if not np.isfinite(untimed) or abs(at_zero - untimed) > MIN_GAIN * untimed:
        return False
    return bool(np.allclose(problem.value(derived.scan_times(problem.law)), untimed, rtol=MIN_GAIN, atol=0.0))


def _origin_limit(law: Law, cost: float) -> float:
    """The limit of E_J(t) for t → 0, lim t/F̃(t) when nothing costs: 1/f(0), van Moorsel & Wolter 2004, §3."""
    if cost > 0 or law.support[0] > 0:
        return np.inf
    scan = derived.scan_times(law)
    if scan.size <= 20:  # the range is too narrow for floats to show how F̃ starts
        return np.inf
    t = scan[[0, 20]]
    F = law.cdf(t)
    power = float(np.log(F[1] / F[0]) / np.log(t[1] / t[0]))
    if power < 1 - 1e-6:
        return 0.0
    return float(t[0] / F[0]) if power < 1 + 1e-6 else np.inf


def _limit_law(E_0: float) -> Law:
    """The law of J in the limit t → 0: exponential with mean E_0."""
    return Exponential(1.0 / E_0) if E_0 > 0 else Discrete((0.0,), (1.0,))


def _outcome(
    problem: _Problem,
    verdict: Verdict,
    t: float,
    at_least: float = 0.0,
    *,
    E_0: float | None = None,
    figures: bool = True,
) -> Optimum:
    """The figures of a timeout; with E_0, the mean in the limit t → 0, those of the limit."""
    law, cost, b, goal = problem.law, problem.cost, problem.b, problem.objective
    untimed = float(problem.value(np.array([t, np.inf]))[1])
    plan = restarted(law, t, cost) if E_0 is None else restarted(_limit_law(E_0), np.inf, 0.0)
    figure, E_J = float(goal.of_plan(plan)), float(plan.mean)
    tail: dict[str, Any] = (
        plan.figures if figures else {"std_duration": None, "quantiles": dict.fromkeys(map(str, QUANTILES))}
    )
    # of several copies some may fail before the others end
    job_seconds = None if b > 1 and derived.has_failures(law) else finite(b * plan.job_seconds)
    windows: list[Window] | None = None
    if verdict == "any":
        windows = [(0.0, np.inf)] * 2
    elif E_0 == 0:
        windows = [(0.0, 0.0)] * 2
    elif figures and verdict != "given" and np.isfinite(figure) and not problem.on_lattice:
        around = flat_windows(law, t, [1.01 * figure, 1.05 * figure], cost=cost, objective=goal)
        windows = [(max(low, at_least), high) for low, high in around]
    within_1pct, within_5pct = windows or (None, None)
    F = float(law.cdf(t))
    return Optimum(
        verdict=verdict,
        timeout=finite(t),
        expected_duration=finite(E_J),
        std_duration=tail["std_duration"],
        quantiles=tail["quantiles"],
        submissions=finite(b / F) if F > 0 and verdict not in ("any", "immediate") else None,
        speed_up=1.0 if figure == untimed < np.inf else ratio(finite(untimed), figure),
        job_seconds=job_seconds,
        success=1.0 if np.isfinite(E_J) else None,
        rho=float(problem.data.rho),
        law=label(problem.data),
        cost=cost,
        objective={"name": str(goal), "value": finite(goal.report(figure))},
        within_1pct=within_1pct,
        within_5pct=within_5pct,
        conservative_timeout=None if within_5pct is None else finite(within_5pct[1]),
    )


def candidates(
    law: Law,
    value: Figure,
    slope: Callable[[Floats], Any] = lambda t: None,
    *,
    special: Floats | None = None,
    at_least: float = 0.0,
    at_most: float = np.inf,
) -> Floats:
    """Timeouts among which the minimum of `value` over [at_least, at_most] lies, apart from the limits at 0 and ∞.

    On a step law these are the times at which it can complete: between two of them J only gets
    longer with the timeout. On a law with a density: the 20 lowest local minima of a scan of its whole
    range, polished by the root of `slope` or, where that is None, by Brent's minimiser; and the kinks.
    """
    if law.jumps is not None:
        later = law.jumps[(law.jumps >= at_least) & (law.jumps <= at_most)]
        return np.union1d(later, [at_least]) if law.jumps[0] < at_least <= at_most else later
    corners = np.concatenate([derived.kinks(law), [at_least, at_most], np.empty(0) if special is None else special])
    corners = corners[(corners >= at_least) & (corners <= at_most) & (corners > 0) & np.isfinite(corners)]
    scan = derived.scan_times(law)
    t: Floats = np.union1d(scan[(scan >= at_least) & (scan <= at_most)], corners)
    if not t.size:
        return t
    slopes, minima = slope(t), []
    if slopes is None:
        v = value(t)
        around = np.concatenate([[np.inf], v, [np.inf]])
        lows = np.flatnonzero((v <= around[:-2]) & (v <= around[2:]) & np.isfinite(v))
        for i in lows[np.argsort(v[lows], kind="stable")[:20]]:
            low, high = np.log(t[max(i - 1, 0)]), np.log(t[min(i + 1, t.size - 1)])
            minima += [float(t[i]), float(np.exp(_lowest(lambda y: float(value(np.exp(np.array(y)))), low, high)))]
        return np.concatenate([corners, t[:1], minima])

    def at(y: float) -> float:
        return float(np.nan_to_num(slope(np.exp(np.array(y))), neginf=-derived.HUGE))

    sloping = np.flatnonzero((slopes < 0) | (slopes > 0))  # times where the slope is 0 are passed over
    turns = np.flatnonzero((slopes[sloping[:-1]] < 0) & (slopes[sloping[1:]] > 0))
    ends = t[sloping[turns + 1]]
    for i in np.argsort([float(value(end)) for end in ends], kind="stable")[:20]:
        a, b = float(t[sloping[turns[i]]]), float(ends[i])
        low, high = np.log(a), np.log(b)
        if at(low) < 0 < at(high):
            minima.append(float(np.exp(scipy.optimize.brentq(at, low, high, xtol=1e-15, rtol=1e-15))))
        else:  # the turn is a kink at an end, and exp(log(·)) has stepped over it
            minima.append(b if at(low) < 0 else a)
    return np.concatenate([corners, t[:1], minima])


def polished(figure: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Where the figure is least between two points, by Brent's method; an infinite figure is a very large one."""
    if not low < high:
        return low
    options: dict[str, Any] = {"bounds": (low, high), "method": "bounded", "options": {"xatol": tolerance}}
    return float(scipy.optimize.minimize_scalar(lambda y: min(figure(y), derived.HUGE), **options).x)


def _lowest(figure: Callable[[float], float], low: float, high: float) -> float:
    """Brent's minimum, good to 1e-7 as the figure is flat there, moved to the root of the figure's differences."""

    def rise(y: float) -> float:
        return figure(y + 2e-5) - figure(y - 2e-5)

    best = polished(figure, low, high, 1e-11)
    a, b = max(low, best - 1e-6), min(high, best + 1e-6)
    root = float(scipy.optimize.brentq(rise, a, b, xtol=1e-14)) if rise(a) < 0 < rise(b) else best
    return root if figure(root) <= figure(best) * (1 + derived.ROUNDING) else best  # Brent's is better at a kink


def thinned(value: Figure, t: Floats) -> Floats:
    """At most 200 of the times t, closer together the better they are: for figures that are slow to compute."""
    while t.size > 200:
        few = t[np.unique(np.linspace(0, t.size - 1, 100).astype(np.intp))]
        best = np.argsort(value(few), kind="stable")[:3]
        spans = [(few[max(i - 1, 0)], few[min(i + 1, few.size - 1)]) for i in best]
        inside = np.any([(t >= a) & (t <= b) for a, b in spans], axis=0)
        if inside.all():
            return few
        t = t[inside]
    return t


def flat_windows(
    law: Law, t: float, limits: Sequence[float], *, cost: float = 0.0, objective: Objective | None = None
) -> list[Window]:
    """For each limit the connected timeouts around t whose figure (E_J) is at most it, up to ∞ or a deadline."""
    goal = Mean() if objective is None else objective
    if law.jumps is None:
        # close below a special time the figure may have a narrow peak
        special = np.outer(goal.special_times(law, cost), np.append(1.0, 1 - np.geomspace(1e-6, 0.05, 30)))
        grid, start = np.union1d(derived.scan_times(law), special), law.support[0]
    else:  # a sawtooth: from each jump the figure rises, and only a jump brings it down
        grid, start = np.union1d(law.jumps, np.nextafter(law.jumps[1:], 0)), float(law.jumps[0])

    def last_within(inside: float, outside: float, bound: float) -> float:
        while np.nextafter(inside, outside) != outside:
            between = np.linspace(inside, outside, 100)
            above = np.append(~(goal.value(law, between[1:-1], cost) <= bound), True)
            first = int(np.argmax(above)) + 1
            if (between[first - 1], between[first]) == (inside, outside):
                break
            inside, outside = between[first - 1], between[first]
        return float(inside)

    earlier = np.append(grid[grid < t], t)
    later = np.concatenate([[t], grid[grid > t], max(t, grid[-1]) * np.geomspace(2, 1e12, 80)])
    later = later[np.isfinite(later)]
    before, after = (goal.value(law, times, cost) for times in (earlier[:-1], later[1:]))
    windows = []
    for bound in (limit * (1 + 1e-13) for limit in limits):
        low, high = start, np.inf
        if (places := np.flatnonzero(~(before <= bound))).size:
            outside, inside = earlier[places[-1]], earlier[places[-1] + 1]
            # without a finite time inside, no time is late enough
            low = last_within(inside, outside, bound) if np.isfinite(inside) else float(grid[-1])
        if np.isfinite(t) and (places := np.flatnonzero(~(after <= bound))).size:
            high = last_within(later[places[0]], later[places[0] + 1], bound)
        windows.append((low, max(min(high, goal.latest), low)))
    return windows
