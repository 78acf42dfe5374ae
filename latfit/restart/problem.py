"""What is minimised, and what a timeout brings under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats, finite
from latfit.restart.completion import completion_quantile, expected_duration, std_duration
from latfit.restart.copies import with_copies
from latfit.restart.lattice import lattice_quantiles
from latfit.restart.objectives import Objective
from latfit.restart.result import QUANTILES, Optimum, Verdict, Window, label, ratio
from latfit.restart.times import check_time, has_failures
from latfit.restart.windows import flat_windows


@dataclass(frozen=True)
class Problem:
    """A law and an objective with the wall-clock time r folded in: J = r + J′, cost c + r, timeout t − r."""

    single: Law
    law: Law
    b: int
    cost: float
    r: float
    objective: Objective

    @classmethod
    def of(cls, law: Law, cost: float, wall_clock: float, copies: int, objective: str) -> Problem:
        """From what a user gives; the objective by its text."""
        c, r = check_time("cost", cost), check_time("wall-clock time", wall_clock)
        return cls(law, with_copies(law, copies), copies, c, r, Objective.parse(objective, shift=r))

    def value(self, t: Floats) -> Floats:
        """The objective's figure."""
        return self.objective.value(self.law, t, self.cost + self.r)

    def mean(self, t: Floats) -> Floats:
        """E_J."""
        return self.r + expected_duration(self.law, t, cost=self.cost + self.r)

    @property
    def on_lattice(self) -> bool:
        """Whether the figure is slow to compute: a distribution under visible failures."""
        return has_failures(self.law) and self.objective.name in ("quantile", "deadline")


def immediate(problem: Problem, E_0: float) -> Optimum:
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


def _about(problem: Problem, figure: float) -> dict[str, Any]:
    """What every verdict reports alike."""
    return {
        "rho": float(problem.single.rho),
        "law": label(problem.single),
        "cost": problem.cost,
        "objective": {"name": str(problem.objective), "value": finite(problem.objective.report(figure))},
    }


def outcome(problem: Problem, verdict: Verdict, t: float, at_least: float = 0.0) -> Optimum:
    """What a timeout brings; its windows hold only timeouts that are allowed."""
    law, cost, r = problem.law, problem.cost + problem.r, problem.r
    both = np.array([t, np.inf])
    E_J, untimed = float(problem.mean(both)[0]), float(problem.value(both)[1])
    figure = float(problem.value(np.array([t]))[0])  # alone: an error where it cannot be computed
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
        speed_up=1.0 if figure == untimed < np.inf else ratio(finite(untimed), figure),
        job_seconds=_job_seconds(problem, t),
        success=1.0 if np.isfinite(E_J) else None,
        **_about(problem, figure),
    )


def _job_seconds(problem: Problem, t: float) -> float | None:
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
