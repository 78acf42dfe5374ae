"""The timeout to recommend from a sample: the exact optimum, where the sample says enough."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from latfit.laws.empirical import Empirical
from latfit.restart.objectives import Objective
from latfit.restart.optimum import optimal_timeout
from latfit.restart.result import Optimum, label

MIN_COMPLETIONS = 5  # the raw optimum of a sample may rest on one lucky latency
MOVES = 0.1  # an optimum that moves by this share when one step of the clock is its cost is not identified


@dataclass(frozen=True)
class Warned:
    """Something the reader of a result should know, by a code that programs can test."""

    code: str
    message: str


@dataclass(frozen=True)
class Advice:
    """The optimum of a sample, None where it has too few completions, and what to know about it."""

    optimum: Optimum | None
    warnings: tuple[Warned, ...]
    about: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The Optimum as plain values, all None where there is none."""
        empty = {**{field.name: None for field in fields(Optimum)}, "parallel": None}
        return self.optimum.to_dict() if self.optimum is not None else {**empty, **self.about}


def advise(law: Empirical, *, cost: float = 0.0, objective: str = "mean", **options: Any) -> Advice:
    """The optimal timeout of a sample with at least 5 completions at or below it, not below the clock's step.

    `options` are those of `optimal_timeout`. Warnings: `few-completions` where the sample has fewer than 5,
    `not-identified` where the optimum falls on the clock's step, or moves by more than 10 % when a restart
    costs one such step.
    """
    r = options.get("wall_clock", 0.0)
    about = {
        "rho": law.rho,
        "law": label(law),
        "cost": cost,
        "objective": {"name": str(Objective.parse(objective, shift=r)), "value": None},
    }
    seen = int(law.completed[-1])
    if seen < MIN_COMPLETIONS:
        few = Warned(
            "few-completions",
            f"only {seen} probes completed; a timeout needs at least {MIN_COMPLETIONS} at or below it",
        )
        return Advice(None, (few,), about)
    limits = {"min_completions": MIN_COMPLETIONS, "min_timeout": law.resolution + r, "objective": objective, **options}
    best = optimal_timeout(law, cost=cost, **limits)
    step = law.resolution
    if not step > cost:
        return Advice(best, (), about)
    dearer = optimal_timeout(law, cost=cost + step, **limits)
    if not _identified(best.timeout, dearer.timeout, step + r):
        message = (
            f"the optimum is not identified: give --cost. A clock of {step:g} s and a cost of {cost:g} s for each "
            "restart do not tell which of the shortest waits is worth a restart"
        )
        return Advice(best, (Warned("not-identified", message),), about)
    return Advice(best, (), about)


def _identified(timeout: float | None, dearer: float | None, smallest: float) -> bool:
    """Whether an optimum lies clear of the smallest timeout and hardly moves when a step of the clock is the cost."""
    if timeout is None or dearer is None:
        return timeout is dearer
    return timeout > smallest and abs(dearer - timeout) <= MOVES * timeout
