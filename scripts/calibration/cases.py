"""Simulated probes, and what a table of the report is made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import latfit
from latfit.laws import ContinuousLaw, parse_law
from latfit.sample import LatencySample

LOW, HIGH = 0.93, 0.97
Floats = np.ndarray


class Task(NamedTuple):
    """One line of a table: `run(rng, rounds, *arguments)`; `weight` times as many rounds as were asked for."""

    run: Callable[..., Row | list[Row]]
    arguments: tuple[Any, ...]
    weight: float = 1


@dataclass(frozen=True)
class Row:
    """A case and the figures of its columns."""

    table: str
    case: dict[str, str]
    cells: dict[str, str]


def law_of(spec: str) -> ContinuousLaw:
    return parse_law(spec)


@cache
def bundled() -> ContinuousLaw:
    """The log-normal–Pareto law fitted to the bundled log."""
    fitted = latfit.fit(latfit.example_log().sample(cutoff=10_000), ["lognormal-pareto"], method="ls")[0]
    assert fitted.law is not None
    return fitted.law


def latencies(law: ContinuousLaw, size: int | tuple[int, int], rho: float, rng: np.random.Generator) -> Floats:
    """Latencies of probes of which a share never returns: ∞."""
    x = law.sample(size, rng)
    return np.where(rng.random(size) < rho, np.inf, x)


def recorded(x: Floats, cutoff: float | None = None, step: float = 0.0, early: Floats | None = None) -> LatencySample:
    """What a log shows of probes: rounded to a clock's step, cut off, and some lost from sight early."""
    if step:
        x = np.rint(x / step) * step
    limit = np.full(x.shape, np.inf if cutoff is None else cutoff)
    if early is not None:
        limit = np.minimum(limit, early)
    back = x <= limit
    return LatencySample.of(x[back & np.isfinite(x)], censored=limit[~back], lost=0, cutoff=cutoff, resolution=step)


def share(hits: Floats | list[bool]) -> tuple[float, int]:
    """The share of hits, and of how many."""
    return float(np.mean(hits)), len(hits)


def coverage(hits: Floats | list[bool]) -> str:
    """A share in %, with ↓ or ↑ where it lies outside 93–97 % by more than two Monte Carlo standard errors."""
    if len(hits) == 0:
        return "–"
    p, n = share(hits)
    error = math.sqrt(max(p * (1 - p), 1 / n) / n)
    return f"{100 * p:.1f}{marked(p, error)}"


def marked(p: float, error: float) -> str:
    return " ↓" if p + 2 * error < LOW else " ↑" if p - 2 * error > HIGH else ""


def short(spec: str) -> str:
    """A law as a cell of a table: weibull(1.5, 300)."""
    name, _, rest = spec.partition("(")
    if name == "erlang-mixture":
        return "mixture of two Erlang laws"
    if name == "piecewise-uniform":
        return "two equal minima" if "500,600" in rest else "two minima"
    return f"{name}({', '.join(part.split('=')[1] for part in rest.rstrip(')').split(','))})"
