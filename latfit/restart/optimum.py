"""The optimal timeout for unbounded restarts, and what it brings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import Empirical, as_law
from latfit.numbers import Floats, finite
from latfit.restart.completion import completion_quantile, expected_duration, std_duration
from latfit.restart.copies import with_copies
from latfit.restart.lattice import lattice_quantiles
from latfit.restart.minimise import candidates, thinned
from latfit.restart.objectives import Objective
from latfit.restart.result import QUANTILES, Optimum, Verdict, Window, label, ratio
from latfit.restart.steps import MIN_COMPLETIONS
from latfit.restart.times import (
    check_time,
    check_timeouts,
    completes,
    has_failures,
    inverse_cdf,
    scan_times,
    still_out,
)
from latfit.restart.windows import flat_windows

NO_GAIN = 1e-9  # a relative gain below this is none
TIE = 1e-12  # figures this close are equal


@dataclass(frozen=True)
class _Problem:
    """A law and an objective with the wall-clock time r folded in: J = r + J′, cost c + r, timeout t − r."""

    single: Law
    law: Law
    b: int
    cost: float
    r: float
    objective: Objective

    @classmethod
    def of(cls, law: Law, cost: float, wall_clock: float, copies: int, objective: str) -> _Problem:
        c, r = check_time("cost", cost), check_time("wall-clock time", wall_clock)
        return cls(law, with_copies(law, copies), copies, c, r, Objective.parse(objective, shift=r))

    def value(self, t: Floats) -> Floats:
        return self.objective.value(self.law, t, self.cost + self.r)

    def mean(self, t: Floats) -> Floats:
        return self.r + expected_duration(self.law, t, cost=self.cost + self.r)

    @property
    def on_lattice(self) -> bool:
        """Whether the figure is slow to compute: a distribution under visible failures."""
        return has_failures(self.law) and self.objective.name in ("quantile", "deadline")


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
    problem = _Problem.of(law, cost, wall_clock, copies, objective)
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
    problem = _Problem.of(law, cost, wall_clock, copies, objective)
    t = float(check_timeouts(timeout)) - problem.r
    if t < 0:
        raise RestartError(f"the timeout {timeout:g} s is shorter than the wall-clock time {problem.r:g} s")
    return _result(problem, "given", t)


def _earliest(
    law: Law, problem: _Problem, max_submissions: float | None, min_completions: int, min_timeout: float
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
        raise RestartError(f"only {seen} completions were seen, and {n} are needed at or below the timeout")
    return float(law.jumps[np.searchsorted(law.completed, n)])


def earliest_timeout(law: Law) -> float:
    """On data, the first completion from the step of the clock on with five at or below it, else the last; 0 on laws.

    A latency of 0 means one below the step of the clock, and the minimum of a sample may rest on one lucky latency.
    """
    if not isinstance(law, Empirical):
        return 0.0
    allowed = law.jumps[(law.jumps >= law.resolution) & (law.completed >= MIN_COMPLETIONS)]
    return float(allowed[0]) if allowed.size else max(law.resolution, float(law.jumps[-1]))


def _on_steps(problem: _Problem, at_least: float) -> Optimum:
    """The exact optimum on a step law. A sample never says `any` or `immediate`."""
    t = candidates(problem.law, problem.value, None, at_least=at_least, at_most=problem.objective.latest)
    best = _pick(problem, thinned(problem.value, t) if problem.on_lattice else t) if t.size else np.inf
    if not float(still_out(problem.law, best)) > 0 or _no_gain(problem, best):
        return _result(problem, "never", np.inf, at_least)
    return _result(problem, "finite", best, at_least)


def _on_density(problem: _Problem, at_least: float) -> Optimum:
    law, cost, objective = problem.law, problem.cost + problem.r, problem.objective
    special = objective.special_times(law, cost)
    slope = objective.slope(law, cost)
    t = candidates(law, problem.value, slope, special=special, at_least=at_least, at_most=objective.latest)
    best = _pick(problem, np.append(t, np.inf))
    figure = float(problem.value(np.array(best)))
    E_0 = origin_limit(law, cost) if at_least == 0 else np.inf
    at_zero = objective.limit(E_0) if np.isfinite(E_0) else np.inf
    if np.isfinite(at_zero) and _is_constant(problem, at_zero):
        return _result(problem, "any", np.inf)
    if at_zero <= figure * (1 + TIE):
        return _immediate(problem, E_0)
    if _no_gain(problem, best):
        return _result(problem, "never", np.inf, at_least)
    return _result(problem, "finite", best, at_least)


def _no_gain(problem: _Problem, t: float) -> bool:
    """Whether t is no better than no timeout, by the objective and, where that is equal, by the mean."""
    both = np.array([t, np.inf])
    pairs = (problem.value(both), problem.mean(both))
    return np.isinf(t) or all(np.isfinite(none) and figure >= none * (1 - NO_GAIN) for figure, none in pairs)


def _pick(problem: _Problem, t: Floats) -> float:
    """The t of the smallest figure; among equal ones that of the smallest E_J, then the smallest."""
    v = problem.value(t)
    v = np.where(np.isnan(v), np.inf, v)
    if not np.isfinite(v).any():
        raise RestartError(f"the objective {problem.objective} is infinite for every timeout")
    equal = t[v <= v.min() * (1 + TIE)]
    E_J = problem.mean(equal)
    return float(equal[E_J.min() * (1 + TIE) >= E_J].min())


def _is_constant(problem: _Problem, at_zero: float) -> bool:
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


def _immediate(problem: _Problem, E_0: float) -> Optimum:
    """The limit t → 0, in which J is exponential with mean E_0."""
    figure = problem.objective.limit(E_0)
    windows: list[Window] = [(0.0, 0.0), (0.0, 0.0)]
    if E_0 > 0:
        windows = flat_windows(problem.law, 0.0, [1.01 * figure, 1.05 * figure], objective=problem.objective)
    return Optimum(
        verdict="immediate",
        timeout=0.0,
        expected_duration=E_0,
        std_duration=E_0,
        quantiles={str(q): float(-E_0 * np.log1p(-q)) for q in QUANTILES},
        submissions=None,
        within_1pct=windows[0],
        within_5pct=windows[1],
        conservative_timeout=finite(windows[1][1]),
        speed_up=ratio(finite(problem.value(np.array(np.inf))), figure),
        job_seconds=problem.b * E_0,
        success=1.0,
        **_about(problem, figure),
    )


def _about(problem: _Problem, figure: float) -> dict[str, Any]:
    """What every verdict reports alike."""
    return {
        "rho": float(problem.single.rho),
        "law": label(problem.single),
        "cost": problem.cost,
        "objective": {"name": str(problem.objective), "value": finite(problem.objective.report(figure))},
    }


def _result(problem: _Problem, verdict: Verdict, t: float, at_least: float = 0.0) -> Optimum:
    """What a timeout brings; its windows hold only timeouts that are allowed."""
    law, cost, r = problem.law, problem.cost + problem.r, problem.r
    both = np.array([t, np.inf])
    E_J, (figure, untimed) = float(problem.mean(both)[0]), problem.value(both)
    windows: list[Window | None] = [None, None]
    if verdict == "any":
        windows = [(0.0, np.inf), (0.0, np.inf)]
    elif verdict != "given" and np.isfinite(figure) and not problem.on_lattice:
        found = flat_windows(law, t, [1.01 * figure, 1.05 * figure], cost=cost, objective=problem.objective)
        windows = [(max(low, at_least) + r, high + r) for low, high in found]
    return Optimum(
        verdict=verdict,
        timeout=finite(t + r),
        expected_duration=finite(E_J),
        std_duration=finite(std_duration(law, t, cost=cost)),
        quantiles=_quantiles(law, t, cost, r),
        submissions=None if verdict == "any" else finite(problem.b / law.cdf(t)) if law.cdf(t) > 0 else None,
        within_1pct=windows[0],
        within_5pct=windows[1],
        conservative_timeout=finite(windows[1][1]) if windows[1] is not None else None,
        speed_up=1.0 if figure == untimed < np.inf else ratio(finite(untimed), float(figure)),
        job_seconds=_job_seconds(problem, t),
        success=1.0 if np.isfinite(E_J) else None,
        **_about(problem, float(figure)),
    )


def _job_seconds(problem: _Problem, t: float) -> float | None:
    """B E_J without its costs; None for copies of which some may fail before the others end."""
    if problem.b > 1 and has_failures(problem.law):
        return None
    return finite(problem.b * (problem.r + expected_duration(problem.law, t, cost=problem.r)))


def _quantiles(law: Law, t: float, cost: float, r: float) -> dict[str, float | None]:
    """The quantiles of J; with failures only where all times are whole steps of a clock."""
    if has_failures(law):
        found = lattice_quantiles(law, QUANTILES, t, cost)
    else:
        found = [finite(completion_quantile(law, q, t, cost=cost)) for q in QUANTILES]
    return {str(q): None if x is None else x + r for q, x in zip(QUANTILES, found, strict=True)}
