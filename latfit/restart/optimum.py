"""The optimal timeout for unbounded restarts, and what it brings."""

from __future__ import annotations

from typing import Any

import numpy as np

from latfit.errors import RestartError, counted
from latfit.laws.base import Law
from latfit.laws.empirical import Empirical, as_law
from latfit.numbers import Floats
from latfit.restart.minimise import candidates, thinned
from latfit.restart.problem import Problem, immediate, outcome
from latfit.restart.result import Optimum
from latfit.restart.steps import MIN_COMPLETIONS
from latfit.restart.times import (
    check_time,
    check_timeouts,
    completes,
    inverse_cdf,
    scan_times,
    still_out,
)

NO_GAIN = 1e-9  # a relative gain below this is none
TIE = 1e-12  # figures this close are equal


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
    complete. Global on laws with a density, limits at 0 and ∞ included. `max_submissions` B keeps
    F̃(t) ≥ 1/B; `min_completions` is the least number of observed completions at or below t̂ on empirical
    laws. Equal figures: the smallest E_J, then the smallest t.

    van Moorsel & Wolter 2004, §3.1; Glatard et al. 2006, §3.

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
        B, the largest mean number of submissions.
    min_completions
        Observed completions needed at or below t̂.
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
    law = as_law(law)  # or a sample, a log, an array of latencies
    problem = Problem.of(law, cost, wall_clock, copies, objective)
    if not completes(law) > 0:
        raise RestartError("no attempt ever completes under this law: no timeout can help")
    at_least = _earliest(law, problem, max_submissions, min_completions, min_timeout)
    if law.jumps is not None:
        return _on_steps(problem, at_least)
    return _on_density(problem, at_least)


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_timeout(
    law: Law, timeout: float, *, cost: float = 0.0, wall_clock: float = 0.0, copies: int = 1, objective: str = "mean"
) -> Optimum:
    """What a given timeout brings, with verdict `given`; ∞ is no timeout.

    Parameters
    ----------
    law
        The law of one attempt: `Defective(law, rho)`, `Empirical.of(sample)` or any other `Law`.
    timeout
        Seconds; ∞ is no timeout.
    cost
        Seconds between a cancellation and the next attempt.
    wall_clock
        Seconds that each job itself runs, beside its latency.
    copies
        Copies that are submitted at once.
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
    law = as_law(law)
    problem = Problem.of(law, cost, wall_clock, copies, objective)
    t = float(check_timeouts(timeout)) - problem.r
    if t < 0:
        raise RestartError(f"the timeout {timeout:g} s is shorter than the wall-clock time {problem.r:g} s")
    return outcome(problem, "given", t)


def _earliest(
    law: Law, problem: Problem, max_submissions: float | None, min_completions: int, min_timeout: float
) -> float:
    """The smallest timeout that respects all limits."""
    limits = [max(0.0, check_time("smallest timeout", min_timeout) - problem.r)]
    if max_submissions is not None:
        needed = problem.b / completes(problem.law)
        if not max_submissions >= needed * (1 - TIE):
            raise RestartError(
                f"at most {max_submissions:g} submissions a job are allowed, but even without a timeout "
                f"{needed:.6g} are needed: allow more"
            )
        limits.append(float(inverse_cdf(problem.law, min(problem.b / max_submissions, completes(problem.law)))))
    if min_completions > 1:
        limits.append(_nth_completion(law, min_completions))
    return max(limits)


def _nth_completion(law: Law, n: int) -> float:
    """The time of the n-th observed completion of an empirical law."""
    if not isinstance(law, Empirical):
        return 0.0
    seen = int(law.completed[-1])
    if n > seen:
        raise RestartError(
            f"only {counted(seen, 'completion', 'was', 'were')} seen, and {n} are needed at or below the timeout"
        )
    return float(law.jumps[np.searchsorted(law.completed, n)])


def earliest_timeout(law: Law) -> float:
    """On data, the first completion from the step of the clock on with five at or below it, else the last; 0 on laws.

    A latency of 0 means one below the step of the clock, and the minimum of a sample may rest on one lucky latency.
    """
    if not isinstance(law, Empirical):
        return 0.0
    allowed = law.jumps[(law.jumps >= law.resolution) & (law.completed >= MIN_COMPLETIONS)]
    return float(allowed[0]) if allowed.size else max(law.resolution, float(law.jumps[-1]))


def _on_steps(problem: Problem, at_least: float) -> Optimum:
    """The exact optimum on a step law. A sample never says `any` or `immediate`."""
    t = candidates(problem.law, problem.value, None, at_least=at_least, at_most=problem.objective.latest)
    best = _pick(problem, thinned(problem.value, t) if problem.on_lattice else t) if t.size else np.inf
    if not float(still_out(problem.law, best)) > 0 or _no_gain(problem, best):
        return outcome(problem, "never", np.inf, at_least)
    return outcome(problem, "finite", best, at_least)


def _on_density(problem: Problem, at_least: float) -> Optimum:
    law, cost, objective = problem.law, problem.cost + problem.r, problem.objective
    special = objective.special_times(law, cost)
    slope = objective.slope(law, cost)
    t = candidates(law, problem.value, slope, special=special, at_least=at_least, at_most=objective.latest)
    best = _pick(problem, np.append(t, np.inf))
    figure = float(problem.value(np.array(best)))
    E_0 = origin_limit(law, cost) if at_least == 0 else np.inf
    at_zero = objective.limit(E_0) if np.isfinite(E_0) else np.inf
    if np.isfinite(at_zero) and _is_constant(problem, at_zero):
        return outcome(problem, "any", np.inf)
    if at_zero <= figure * (1 + TIE):
        return immediate(problem, E_0)
    if _no_gain(problem, best):
        return outcome(problem, "never", np.inf, at_least)
    return outcome(problem, "finite", best, at_least)


def _no_gain(problem: Problem, t: float) -> bool:
    """Whether t is no better than no timeout, by the objective and, where that is equal, by the mean."""
    both = np.array([t, np.inf])
    pairs = (problem.value(both), problem.mean(both))
    return np.isinf(t) or all(np.isfinite(none) and figure >= none * (1 - NO_GAIN) for figure, none in pairs)


def _pick(problem: Problem, t: Floats) -> float:
    """The t of the smallest figure; among equal ones that of the smallest E_J, then the smallest."""
    v = problem.value(t)
    v = np.where(np.isnan(v), np.inf, v)
    if not np.isfinite(v).any():
        raise RestartError(f"the objective {problem.objective} is infinite for every timeout")
    equal = t[v <= v.min() * (1 + TIE)]
    E_J = problem.mean(equal)
    return float(equal[E_J.min() * (1 + TIE) >= E_J].min())


def _is_constant(problem: Problem, at_zero: float) -> bool:
    """Whether the figure is the same for every timeout, limits included."""
    no_timeout = float(problem.value(np.array(np.inf)))
    if not np.isfinite(no_timeout) or abs(at_zero - no_timeout) > NO_GAIN * no_timeout:
        return False
    v = problem.value(scan_times(problem.law))
    return bool((np.abs(v - no_timeout) <= NO_GAIN * no_timeout).all())


def origin_limit(law: Law, cost: float) -> float:
    """The limit of E_J(t) for t → 0, which is lim t/F̃(t) when nothing costs: 0, a number or ∞.

    van Moorsel & Wolter 2004, §3: 1/f(0). The power of t with which F̃ starts decides.
    """
    if cost > 0 or law.support[0] > 0:
        return np.inf
    scan = scan_times(law)
    if scan.size <= 20:  # too narrow for floats: no start to be seen
        return np.inf
    t = scan[[0, 20]]
    F = law.cdf(t)
    power = float(np.log(F[1] / F[0]) / np.log(t[1] / t[0]))
    if power < 1 - 1e-6:
        return 0.0
    return float(t[0] / F[0]) if power < 1 + 1e-6 else np.inf
