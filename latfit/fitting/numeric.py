"""Unconstrained parameters for any law, from what it states of its parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from latfit.errors import FitError, LawError
from latfit.fitting.batch import Floats
from latfit.laws import ContinuousLaw, get_law
from latfit.sample import LatencySample

Build = Callable[[Floats], ContinuousLaw]


def law_class(name: str) -> Any:
    """The class of a law, which may state `start`."""
    return get_law(name)


def quartiles(sample: LatencySample) -> tuple[float, float, float]:
    """The quartiles of the completions; those at 0 count as half a step of the clock."""
    counts = np.cumsum(sample.completed.counts)
    at = np.searchsorted(counts, np.array([0.25, 0.5, 0.75]) * counts[-1])
    q1, q2, q3 = np.maximum(sample.completed.values[at], sample.resolution / 2)
    return float(q1), float(q2), float(q3)


def law_builder(name: str) -> tuple[Build, Callable[[dict[str, float]], Floats]]:
    """The ways from u to the law and from parameters to u: positive ones by their logarithm, real ones as they are."""
    law = law_class(name)
    if not hasattr(law, "start"):
        raise FitError(f"{name} cannot be fitted: the law states no rough parameters to start from")
    logs = np.array([parameter.domain != "real" for parameter in law.parameters])

    def build(u: Floats) -> ContinuousLaw:
        with np.errstate(over="ignore"):
            built: ContinuousLaw = law(*map(float, np.where(logs, np.exp(u), u)))
        return built

    def to_u(params: dict[str, float]) -> Floats:
        values = np.array([params[parameter.name] for parameter in law.parameters])
        return np.where(logs, np.log(np.where(logs, np.maximum(values, 1e-300), 1.0)), values)

    return build, to_u


@dataclass(frozen=True, eq=False)
class LawModel:
    """A law for least squares, with its gradient by central differences."""

    build: Build

    def cdf(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        """F and ∂F/∂u for each column of u."""
        columns = [self._one(t[b], u[:, b]) for b in range(u.shape[1])]
        return np.stack([F for F, _ in columns]), np.stack([J for _, J in columns], axis=1)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """The model for some of the samples: the same for all."""
        return self

    def _one(self, t: Floats, u: Floats) -> tuple[Floats, Floats]:
        try:
            moves = 1e-5 * np.eye(u.size)
            gradient = [(self.build(u + h).cdf(t) - self.build(u - h).cdf(t)) / 2e-5 for h in moves]
            return self.build(u).cdf(t), np.stack(gradient)
        except (LawError, OverflowError):
            return np.full(t.shape, np.nan), np.full((u.size, *t.shape), np.nan)
