"""b copies of a job submitted at once: the first to complete counts. The attempt is a law of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law, SameTimes
from latfit.laws.steps import Steps
from latfit.numbers import Floats
from latfit.restart.times import (
    Failing,
    beyond_power_tail,
    density,
    failure_times,
    has_density,
    has_failures,
    scan_times,
    still_out,
)

MAX_COPIES = 10**9
SMALLEST = 1e-280  # seconds above the start: earlier no moment can begin, and a density may overflow
THINNEST = 1e-290  # a smaller density has lost its digits
NODES, WEIGHTS = leggauss(16)


@lru_cache(maxsize=16)
def with_copies(law: Law, copies: int) -> Law:
    """The law of one attempt of `copies` simultaneous submissions."""
    if not 1 <= copies <= MAX_COPIES or copies != int(copies):
        raise RestartError(f"the number of copies is {copies}; it must be a whole number from 1 to {MAX_COPIES}")
    return law if copies == 1 else Copies(law, int(copies))


@dataclass(frozen=True)
class Copies(SameTimes):
    """The first of b independent copies: F̃_b = 1 − (1−F̃)ᵇ; it has failed when all have, G̃_b = G̃ᵇ.

    Then E_J = ∫₀ᵗ (1−F̃)ᵇ / (1 − (1−F̃(t))ᵇ) when c = 0 and nothing fails.
    """

    name: ClassVar[str] = "copies"
    law: Law
    b: int
    rho: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", self.law.rho**self.b)

    @property
    def failures(self) -> Steps:
        """The times at which the last of all copies fails, and their probabilities."""
        times = failure_times(self.law)
        cumulative = self.failed(times)
        return Steps(times, np.diff(cumulative, prepend=0.0), cumulative)

    @property
    def resolution(self) -> float:
        """The step of the clock that measured one copy."""
        return self.law.resolution if isinstance(self.law, Failing) else 0.0

    def _not_completed(self, t: ArrayLike) -> Floats:
        """1 − F̃ of one copy, still out or failed."""
        return still_out(self.law, t) + self.law.failed(t)

    def _none_completed(self, t: ArrayLike) -> Floats:
        return self._not_completed(t) ** self.b

    def cdf(self, t: ArrayLike) -> Floats:
        """1 − (1−F̃)ᵇ, accurate for small F̃."""
        F = self.law.cdf(t)
        with np.errstate(all="ignore"):
            return np.where(F < 0.5, -np.expm1(self.b * np.log1p(-np.minimum(F, 0.5))), 1.0 - self._none_completed(t))

    def pdf(self, t: ArrayLike) -> Floats:
        """The density b (1−F̃)ᵇ⁻¹ f̃."""
        return self.b * self._not_completed(t) ** (self.b - 1) * density(self.law, t)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃ᵇ: all copies have failed."""
        return self.law.failed(t) ** self.b

    def still_out(self, t: ArrayLike) -> Floats:
        """(1−F̃)ᵇ − G̃ᵇ: none has completed and not all have failed; accurate where S is small beside G̃."""
        none = self._none_completed(t)
        if not has_failures(self.law):
            return none
        S, G = still_out(self.law, t), self.law.failed(t)
        ratio = np.divide(S, G, where=G > 0, out=np.full_like(S, np.inf))
        return np.asarray(none * -np.expm1(-self.b * np.log1p(ratio)))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dF̃_b, a sum over the jumps of a step law, Gauss–Legendre panels for a density."""
        at = np.asarray(t, dtype=np.float64)
        if n == 0:
            return self.cdf(at)
        if self.jumps is not None:
            return Steps.of(self.jumps, np.diff(self.cdf(self.jumps), prepend=0.0)).moment(n, at)
        edges, before = self._edges, self._cumulated(n)
        inside = np.clip(at, edges[0], edges[-1])
        left = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, edges.size - 2)
        value = before[left] + self._integral(n, edges[left], inside)
        at_start = self.support[0] ** n * self.cdf(at)
        return np.where(at >= edges[-1], before[-1], np.where(at <= edges[0], at_start, value))

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dG̃_b, a sum over the times of failure."""
        return self.failures.moment(n, t)

    @cached_property
    def _edges(self) -> Floats:
        edges = scan_times(self.law)
        edges = edges[edges - self.support[0] > SMALLEST]
        far = edges[-1] * np.geomspace(1, 1e100, 700)[1:]
        return np.concatenate([edges, far]) if np.isinf(self.support[1]) and has_density(self.law) else edges

    @cached_property
    def _sums(self) -> dict[int, Floats]:
        return {}

    def _cumulated(self, n: int) -> Floats:
        """∫ uⁿ dF̃_b up to each edge, computed once for each n; the last is ∞ where the tail is too heavy."""
        if n not in self._sums:
            edges = self._edges
            start = self.support[0] ** n * float(self.cdf(edges[0]))
            panels = self._integral(n, edges[:-1], edges[1:])
            sums = start + np.concatenate([[0.0], np.cumsum(panels)])
            end = np.flatnonzero(self.pdf(edges) > THINNEST)[-1:] if has_density(self.law) else np.empty(0, np.intp)
            if end.size and end[0] > 1 and np.isinf(self.support[1]):
                k = int(end[0])
                sums[-1] = sums[k] + beyond_power_tail(panels[k - 1], panels[k - 2], sums[k])
            self._sums[n] = sums
        return self._sums[n]

    def _integral(self, n: int, low: Floats, high: Floats) -> Floats:
        """∫ uⁿ f̃_b(u) du over panels, in the variable log(u − start) that follows the law's scale."""
        if not has_density(self.law):
            return self._without_density(n, low, high)
        start = self.support[0]
        a, b = np.log(low - start), np.log(high - start)
        half = 0.5 * (b - a)[..., None]
        gap = np.exp(0.5 * (a + b)[..., None] + half * NODES)
        u = start + gap
        return np.asarray((u**n * self.pdf(u) * gap * half) @ WEIGHTS)

    def _without_density(self, n: int, low: Floats, high: Floats) -> Floats:
        """∫ uⁿ b (1−F̃)^(b−1) dF̃ over panels in which the weight is taken at the panel's mean of 1 − F̃."""
        moment = self.law.partial_moment(n, high) - self.law.partial_moment(n, low)
        S = 0.5 * (self._not_completed(low) + self._not_completed(high))
        return np.asarray(self.b * S ** (self.b - 1) * moment)
