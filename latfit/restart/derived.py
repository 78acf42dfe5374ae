"""Laws made from another law: several copies at once, a fixed running time on top, a few hundred steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law, SameTimes
from latfit.laws.steps import Steps
from latfit.numbers import Bools, Floats
from latfit.restart.times import (
    Failing,
    beyond_power_tail,
    completion_probability,
    failure_times,
    has_failures,
    inverse_cdf,
    scan_times,
    still_out,
)

MAX_COPIES = 10**9
EARLIEST_PANEL = 1e-280  # seconds above the start: earlier no moment can begin, and a density may overflow
MIN_DENSITY = 1e-290  # a smaller density has lost its digits
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
TAIL_LEVELS = np.geomspace(1e-9, 1e-3, 40)  # levels of a coarse law near 0 and near F̃(∞), beside the even ones


@dataclass(frozen=True)
class _Derived(Law):
    law: Law
    rho: float = field(init=False)

    @cached_property
    def failures(self) -> Steps:
        times = failure_times(self.law)
        cumulative = self.failed(times)
        return Steps(times, np.diff(cumulative, prepend=0.0), cumulative)

    @property
    def resolution(self) -> float:
        return self.law.resolution if isinstance(self.law, Failing) else 0.0

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        return self.failures.moment(n, t)


@lru_cache(maxsize=16)
def with_copies(law: Law, copies: int) -> Law:
    """The law of one attempt of `copies` simultaneous submissions."""
    if not 1 <= copies <= MAX_COPIES or copies != int(copies):
        raise RestartError(f"the number of copies is {copies}; it must be a whole number from 1 to {MAX_COPIES}")
    return law if copies == 1 else Copies(law, int(copies))


@dataclass(frozen=True)
class Copies(SameTimes, _Derived):
    """The first of b independent copies: F̃_b = 1 − (1−F̃)ᵇ; it has failed when all have, G̃_b = G̃ᵇ.

    Then E_J = ∫₀ᵗ (1−F̃)ᵇ / (1 − (1−F̃(t))ᵇ) when c = 0 and nothing fails.
    """

    name: ClassVar[str] = "copies"
    b: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", self.law.rho**self.b)

    def _not_completed(self, t: ArrayLike) -> Floats:
        return still_out(self.law, t) + self.law.failed(t)

    def cdf(self, t: ArrayLike) -> Floats:
        """1 − (1−F̃)ᵇ, accurate for small F̃."""
        F = self.law.cdf(t)
        with np.errstate(all="ignore"):
            small = -np.expm1(self.b * np.log1p(-np.minimum(F, 0.5)))
        return np.where(F < 0.5, small, 1.0 - self._not_completed(t) ** self.b)

    def pdf(self, t: ArrayLike) -> Floats:
        """The density b (1−F̃)ᵇ⁻¹ f̃."""
        return self.b * self._not_completed(t) ** (self.b - 1) * self.law.pdf(t)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃ᵇ: all copies have failed."""
        return self.law.failed(t) ** self.b

    def still_out(self, t: ArrayLike) -> Floats:
        """(1−F̃)ᵇ − G̃ᵇ: none has completed and not all have failed; accurate where S is small beside G̃."""
        none = self._not_completed(t) ** self.b
        if not has_failures(self.law):
            return none
        S, G = still_out(self.law, t), self.law.failed(t)
        ratio = np.divide(S, G, where=G > 0, out=np.full_like(S, np.inf))
        return np.asarray(none * -np.expm1(-self.b * np.log1p(ratio)))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dF̃_b: a sum over the jumps of a step law, Gauss–Legendre panels for a density."""
        at = np.asarray(t, dtype=np.float64)
        if n == 0:
            return self.cdf(at)
        if self.jumps is not None:
            return Steps.of(self.jumps, np.diff(self.cdf(self.jumps), prepend=0.0)).moment(n, at)
        edges, before = self._edges, self._moments_at_edges(n)
        inside = np.clip(at, edges[0], edges[-1])
        left = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, edges.size - 2)
        value = before[left] + self._integral(n, edges[left], inside)
        at_start = self.support[0] ** n * self.cdf(at)
        return np.where(at >= edges[-1], before[-1], np.where(at <= edges[0], at_start, value))

    @cached_property
    def _edges(self) -> Floats:
        edges = scan_times(self.law)
        edges = edges[edges - self.support[0] > EARLIEST_PANEL]
        return np.append(edges, edges[-1] * np.geomspace(1, 1e100, 700)[1:]) if np.isinf(self.support[1]) else edges

    @cached_property
    def _moment_sums(self) -> dict[int, Floats]:
        return {}

    def _moments_at_edges(self, n: int) -> Floats:
        """∫ uⁿ dF̃_b up to each edge, computed once for each n; the last is ∞ where the tail is too heavy."""
        if n not in self._moment_sums:
            edges = self._edges
            panels = self._integral(n, edges[:-1], edges[1:])
            sums = self.support[0] ** n * float(self.cdf(edges[0])) + np.append(0.0, np.cumsum(panels))
            last = np.flatnonzero(self.pdf(edges) > MIN_DENSITY)[-1:]
            if last.size and last[0] > 1 and np.isinf(self.support[1]):
                k = int(last[0])
                sums[-1] = sums[k] + beyond_power_tail(panels[k - 1], panels[k - 2], sums[k])
            self._moment_sums[n] = sums
        return self._moment_sums[n]

    def _integral(self, n: int, low: Floats, high: Floats) -> Floats:
        """∫ uⁿ f̃_b(u) du over panels, in the variable log(u − start) that follows the law's scale."""
        start = self.support[0]
        a, b = np.log(low - start), np.log(high - start)
        half = 0.5 * (b - a)[..., None]
        gap = np.exp(0.5 * (a + b)[..., None] + half * NODES)
        u = start + gap
        return np.asarray((u**n * self.pdf(u) * gap * half) @ WEIGHTS)


def with_wall_clock(law: Law, r: float) -> Law:
    """The law of latency + r, the time from submission to result of a job that runs r seconds."""
    return law if r == 0 else Shifted(law, r)


@dataclass(frozen=True)
class Shifted(_Derived):
    """F̃(t − r): the job itself runs r seconds once its latency is over. Failures come before that.

    Glatard et al. 2006, eq. 2.
    """

    name: ClassVar[str] = "shifted"
    r: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", self.law.rho)

    @property
    def support(self) -> tuple[float, float]:
        low, high = self.law.support
        return low + self.r, high + self.r

    @property
    def jumps(self) -> Floats | None:
        return None if self.law.jumps is None else self.law.jumps + self.r

    @property
    def kinks(self) -> tuple[float, ...]:
        return tuple(kink + self.r for kink in self.law.kinks)

    def _latency(self, t: ArrayLike) -> tuple[Bools, Floats]:
        """Whether t comes after r seconds, and t − r or 0."""
        latency = np.asarray(t, dtype=np.float64) - self.r
        return latency >= 0, np.maximum(latency, 0.0)

    def cdf(self, t: ArrayLike) -> Floats:
        begun, latency = self._latency(t)
        return np.where(begun, self.law.cdf(latency), 0.0)

    def pdf(self, t: ArrayLike) -> Floats:
        begun, latency = self._latency(t)
        return np.where(begun, self.law.pdf(latency), 0.0)

    def still_out(self, t: ArrayLike) -> Floats:
        begun, latency = self._latency(t)
        out = np.where(begun, self.law.still_out(latency) + self.law.failed(latency), 1.0)
        return np.asarray(out - self.law.failed(t))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        begun, latency = self._latency(t)
        total = sum(comb(n, k) * self.r ** (n - k) * self.law.partial_moment(k, latency) for k in range(n + 1))
        return np.where(begun, total, 0.0)

    def failed(self, t: ArrayLike) -> Floats:
        return self.law.failed(t)


@dataclass(frozen=True, eq=False)
class Coarse(Law):
    """A law in steps, each at the mean of the latencies that it stands for; with visible failures in steps as well."""

    name: ClassVar[str] = "coarse"
    steps: Steps
    failures: Steps
    rho: float
    resolution: ClassVar[float] = 0.0

    @property
    def support(self) -> tuple[float, float]:
        return float(self.steps.times[0]), float(self.steps.times[-1])

    @property
    def jumps(self) -> Floats:
        return self.steps.times

    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t); a search asks for it so often that the sums are kept with a 0 in front."""
        return np.asarray(self._sums[np.searchsorted(self.steps.times, t, side="right")])

    @cached_property
    def _sums(self) -> Floats:
        return np.append(0.0, self.steps.cumulative)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        return self.steps.moment(n, t)

    def still_out(self, t: ArrayLike) -> Floats:
        done = self.cdf(t)
        return np.maximum(1.0 - done - self.failed(t), 0.0) if self.failures.times.size else 1.0 - done

    def failed(self, t: ArrayLike) -> Floats:
        return self.failures.mass(t)

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        return self.failures.moment(n, t)


def coarse(law: Law, cells: int) -> Law:
    """The law in at most about `cells` steps of even probability, finer in both tails; itself if it has no more.

    Its cdf and its mean are those of the law, up to the width of a step: what a search over many policies can afford.
    """
    failed_at = failure_times(law)
    if law.jumps is not None and law.jumps.size + failed_at.size <= cells:
        return law
    levels = np.concatenate([TAIL_LEVELS, np.linspace(1e-3, 1 - 1e-3, cells), 1 - TAIL_LEVELS[::-1]])
    edges = inverse_cdf(law, completion_probability(law) * levels)
    edges = np.unique(np.append(edges[np.isfinite(edges)], law.support[1]))
    steps = _steps_at_means(law.cdf(edges), law.partial_moment(1, edges))
    rho = 1.0 - float(steps.masses.sum())
    if not has_failures(law):
        return Coarse(steps, Steps.of(np.empty(0), np.empty(0)), rho)
    G = law.failed(failed_at)
    edges = failed_at[np.unique(np.searchsorted(G, G[-1] * np.linspace(0, 1, cells + 1)[1:] * (1 - 1e-12)))]
    return Coarse(steps, _steps_at_means(law.failed(edges), law.failed_moment(1, edges)), rho)


def _steps_at_means(cumulative: Floats, moment: Floats) -> Steps:
    """Steps at the mean times between edges, from the probability and the partial moment at each edge."""
    masses, moments = np.diff(cumulative, prepend=0.0), np.diff(moment, prepend=0.0)
    times = np.divide(moments, masses, out=np.full_like(moments, np.inf), where=masses > 0)
    finite = np.isfinite(times)
    times, masses = times[finite], masses[finite]
    rising = np.append(True, np.diff(times) > 0)
    return Steps.of(times[rising], masses[rising])
