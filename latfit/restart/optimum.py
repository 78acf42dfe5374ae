"""The optimal timeout for unbounded restarts, and what it brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.curve import MIN_COMPLETIONS
from latfit.errors import RestartError, counted
from latfit.laws.base import Law
from latfit.laws.empirical import Empirical, as_law
from latfit.numbers import Floats, finite
from latfit.restart.completion import completion_quantile, expected_duration, std_duration
from latfit.restart.derived import (
    ROUNDING,
    check_time,
    check_timeouts,
    completion_probability,
    has_failures,
    inverse_cdf,
    scan_times,
    still_out,
    with_copies,
)
from latfit.restart.lattice import lattice_quantiles
from latfit.restart.minimise import candidates, flat_windows, thinned
from latfit.restart.objectives import Objective
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
) -> Optimum:
    """The timeout t̂ that minimises E_J (or another objective) when restarts are unbounded.

    Exact on step laws (empirical, discrete): the optimum is one of the times at which they
    complete. Global on laws with a density, limits at 0 and ∞ included. Equal figures: the smallest E_J, then the
    smallest t. van Moorsel & Wolter 2004, §3.1; Glatard et al. 2006, §3.

    Parameters
    ----------
    law
        A `Law`; a sample, a log or an array stands for its `Empirical` law.
    cost
        Seconds between a cancellation and the next attempt.
    wall_clock
        Seconds that each job itself runs, beside its latency.
    copies
        Copies that are submitted at once.
    objective
        What to minimise: `mean`, `std`, `moment:n`, `quantile:q` or `deadline:D`.
    max_submissions
        B, the largest mean number of submissions: F̃(t) ≥ 1/B.
    min_completions
        On empirical laws, the observed completions needed at or below t̂.
    min_timeout
        Seconds; nothing is cancelled earlier.

    Returns
    -------
    Optimum
        The timeout with its verdict, what it brings, and the windows within 1 % and 5 %.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> best = latfit.optimal_timeout(law)
    >>> round(best.timeout), round(best.expected_duration), round(best.submissions, 2)
    (384, 375, 1.52)
    """
    problem = _Problem.of(as_law(law), cost, wall_clock, copies, objective)
    first, c, goal = problem.law, problem.cost, problem.objective
    if not completion_probability(first) > 0:
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
        at_zero = goal.limit(E_0) if np.isfinite(E_0) else np.inf
        if np.isfinite(at_zero) and _is_constant(problem, at_zero):
            return _outcome(problem, "any", np.inf)
        if at_zero <= float(problem.value(np.array(best))) * (1 + ROUNDING):
            return _outcome(problem, "immediate", 0.0, E_0=E_0)
    else:  # a sample never says `any` or `immediate`
        best = _argmin(problem, thinned(problem.value, t) if problem.on_lattice else t) if t.size else np.inf
        best = best if float(still_out(first, best)) > 0 else np.inf
    never = _no_gain(problem, best)
    return _outcome(problem, "never" if never else "finite", np.inf if never else best, at_least)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_timeout(
    law: Law, timeout: float, *, cost: float = 0.0, wall_clock: float = 0.0, copies: int = 1, objective: str = "mean"
) -> Optimum:
    """What a given timeout brings, with verdict `given`; ∞ is no timeout.

    Parameters
    ----------
    timeout
        Seconds; ∞ is no timeout.
    law, cost, wall_clock, copies
        As in `optimal_timeout`.
    objective
        The figure to report beside the others: `mean`, `quantile:0.95`, `deadline:600`…

    Returns
    -------
    Optimum
        What the timeout brings; no windows, since nothing was optimised.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> given = latfit.evaluate_timeout(law, 600.0)
    >>> given.verdict, round(given.expected_duration), round(given.submissions, 3)
    ('given', 382, 1.258)
    """
    problem = _Problem.of(as_law(law), cost, wall_clock, copies, objective)
    t = float(check_timeouts(timeout)) - problem.r
    if t < 0:
        raise RestartError(f"the timeout {timeout:g} s is shorter than the wall-clock time {problem.r:g} s")
    return _outcome(problem, "given", t)


def earliest_timeout(law: Law) -> float:
    """On data, the first completion from the step of the clock on with five at or below it, else the last; 0 on laws.

    A latency of 0 means one below the step of the clock, and the minimum of a sample may rest on one lucky latency.
    """
    if not isinstance(law, Empirical):
        return 0.0
    allowed = law.jumps[(law.jumps >= law.resolution) & (law.completed >= MIN_COMPLETIONS)]
    return float(allowed[0]) if allowed.size else max(law.resolution, float(law.jumps[-1]))


@dataclass(frozen=True)
class _Problem:
    """A law and an objective with the wall-clock time r folded in: J = r + J′, cost c + r, timeout t − r."""

    single: Law
    law: Law
    b: int
    c: float
    r: float
    objective: Objective

    @classmethod
    def of(cls, law: Law, cost: float, wall_clock: float, copies: int, objective: str) -> _Problem:
        c, r = check_time("cost", cost), check_time("wall-clock time", wall_clock)
        return cls(law, with_copies(law, copies), copies, c, r, Objective.parse(objective, shift=r))

    @property
    def cost(self) -> float:
        return self.c + self.r

    def value(self, t: Floats) -> Floats:
        return self.objective.value(self.law, t, self.cost)

    def mean(self, t: Floats) -> Floats:
        return self.r + expected_duration(self.law, t, cost=self.cost)

    @property
    def on_lattice(self) -> bool:
        """Whether the figure is slow to compute: a distribution under visible failures."""
        return has_failures(self.law) and self.objective.name in ("quantile", "deadline")


def _earliest(problem: _Problem, max_submissions: float | None, min_completions: int, min_timeout: float) -> float:
    limits = [max(0.0, check_time("smallest timeout", min_timeout) - problem.r)]
    if max_submissions is not None:
        top = completion_probability(problem.law)
        if not max_submissions >= problem.b / top * (1 - ROUNDING):
            raise RestartError(
                f"at most {max_submissions:g} submissions a job are allowed, but even without a timeout "
                f"{problem.b / top:.6g} are needed: allow more"
            )
        limits.append(float(inverse_cdf(problem.law, min(problem.b / max_submissions, top))))
    law = problem.single
    if min_completions > 1 and isinstance(law, Empirical):
        completions = int(law.completed[-1])
        if min_completions > completions:
            raise RestartError(
                f"only {counted(completions, 'completion', 'was', 'were')} seen, and {min_completions} are needed at "
                "or below the timeout"
            )
        limits.append(float(law.jumps[np.searchsorted(law.completed, min_completions)]))
    return max(limits)


def _argmin(problem: _Problem, t: Floats) -> float:
    """The t of the smallest figure; among equal ones that of the smallest E_J, then the smallest."""
    v = problem.value(t)
    v = np.where(np.isnan(v), np.inf, v)
    if not np.isfinite(v).any():
        raise RestartError(f"the objective {problem.objective} is infinite for every timeout")
    equal = t[v <= v.min() * (1 + ROUNDING)]
    E_J = problem.mean(equal)
    return float(equal[E_J.min() * (1 + ROUNDING) >= E_J].min())


def _no_gain(problem: _Problem, t: float) -> bool:
    """Whether t is no better than no timeout, by the objective and, where that is equal, by the mean."""
    both = np.array([t, np.inf])
    pairs = (problem.value(both), problem.mean(both))
    return np.isinf(t) or all(np.isfinite(none) and figure >= none * (1 - MIN_GAIN) for figure, none in pairs)


def _is_constant(problem: _Problem, at_zero: float) -> bool:
    no_timeout = float(problem.value(np.array(np.inf)))
    if not np.isfinite(no_timeout) or abs(at_zero - no_timeout) > MIN_GAIN * no_timeout:
        return False
    v = problem.value(scan_times(problem.law))
    return bool((np.abs(v - no_timeout) <= MIN_GAIN * no_timeout).all())


def _origin_limit(law: Law, cost: float) -> float:
    """The limit of E_J(t) for t → 0, lim t/F̃(t) when nothing costs: 1/f(0), van Moorsel & Wolter 2004, §3."""
    if cost > 0 or law.support[0] > 0:
        return np.inf
    scan = scan_times(law)
    if scan.size <= 20:  # the range is too narrow for floats to show how F̃ starts
        return np.inf
    t = scan[[0, 20]]
    F = law.cdf(t)
    power = float(np.log(F[1] / F[0]) / np.log(t[1] / t[0]))
    if power < 1 - 1e-6:
        return 0.0
    return float(t[0] / F[0]) if power < 1 + 1e-6 else np.inf


def _outcome(
    problem: _Problem, verdict: Verdict, t: float, at_least: float = 0.0, *, E_0: float | None = None
) -> Optimum:
    """What a timeout brings; with E_0 in the limit t → 0, in which J is exponential with mean E_0."""
    law, cost, r, b, goal = problem.law, problem.cost, problem.r, problem.b, problem.objective
    untimed = float(problem.value(np.array([t, np.inf]))[1])
    quantiles: list[float | None]
    if E_0 is not None:
        figure, E_J, std, job_seconds, F = goal.limit(E_0), E_0, E_0, b * E_0, 0.0
        quantiles = [float(-E_0 * np.log1p(-q)) for q in QUANTILES]
    else:
        figure = float(problem.value(np.array([t]))[0])  # alone: an error where it cannot be computed
        E_J, std = float(problem.mean(np.array(t))), float(std_duration(law, t, cost=cost))
        F, job_seconds = float(law.cdf(t)), b * (r + float(expected_duration(law, t, cost=r)))
        if has_failures(law):  # quantiles only where all times are whole steps of a clock
            quantiles = lattice_quantiles(law, QUANTILES, t, cost)
            job_seconds = job_seconds if b == 1 else np.nan  # some copies may fail before the others end
        else:
            quantiles = [finite(completion_quantile(law, q, t, cost=cost)) for q in QUANTILES]
    windows: list[Window] | None = None
    if verdict == "any":
        windows = [(0.0, np.inf)] * 2
    elif E_0 == 0:
        windows = [(0.0, 0.0)] * 2
    elif verdict != "given" and np.isfinite(figure) and not problem.on_lattice:
        around = flat_windows(law, t, [1.01 * figure, 1.05 * figure], cost=cost, objective=goal)
        windows = [(max(low, at_least) + r, high + r) for low, high in around]
    within_1pct, within_5pct = windows or (None, None)
    return Optimum(
        verdict=verdict,
        timeout=finite(t + r),
        expected_duration=finite(E_J),
        std_duration=finite(std),
        quantiles={str(q): None if x is None else x + r for q, x in zip(QUANTILES, quantiles, strict=True)},
        submissions=finite(b / F) if F > 0 and verdict != "any" else None,
        speed_up=1.0 if figure == untimed < np.inf else ratio(finite(untimed), figure),
        job_seconds=finite(job_seconds),
        success=1.0 if np.isfinite(E_J) else None,
        rho=float(problem.single.rho),
        law=label(problem.single),
        cost=problem.c,
        objective={"name": str(goal), "value": finite(goal.report(figure))},
        within_1pct=within_1pct,
        within_5pct=within_5pct,
        conservative_timeout=None if within_5pct is None else finite(within_5pct[1]),
    )
