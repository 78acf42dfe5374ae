"""A grid over the range of a law, and laws derived from another one: copies, a wall-clock time, steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.discrete import Steps
from latfit.laws.empirical import Empirical
from latfit.laws.quadrature import quadrature_moment
from latfit.numbers import Floats, is_number

MAX_COPIES = 10**9
HUGE = 1e300  # stands for ∞ where a finite number is needed
ROUNDING = 1e-12  # figures this close are equal: 0.3 + 0.3 + 0.1 must reach 0.7


def check_time(name: str, value: float) -> float:
    """`value` in seconds, if it is finite and not negative."""
    if not (is_number(value) and np.isfinite(value) and value >= 0):
        raise RestartError(f"the {name} is {value!r}; it must be a finite number of seconds, not negative")
    return float(value)


def check_timeouts(t_inf: ArrayLike) -> Floats:
    """Timeouts in seconds, if none is negative; ∞ means no timeout."""
    t = np.asarray(t_inf, dtype=np.float64)
    if np.isnan(t).any() or (t < 0).any():
        raise RestartError("a timeout must be a number and not negative (∞ means no timeout)")
    return t


def completion_probability(law: Law) -> float:
    """F̃(∞): the probability that an attempt without timeout ever completes."""
    return float(law.cdf(np.inf))


def has_failures(law: Law) -> bool:
    """Whether an attempt can fail visibly, G̃(∞) > 0."""
    return float(law.failed(np.inf)) > 0 if law.failures is None else law.failures.total > 0


def failure_times(law: Law) -> Floats:
    """The times at which an attempt can fail visibly."""
    return np.empty(0) if law.failures is None else law.failures.times


def still_out(law: Law, t: ArrayLike) -> Floats:
    """S(t); on a step law a value too small for any sample is rounding and counts as 0."""
    S = law.still_out(t)
    return S if law.jumps is None else np.where(S < 1e-14, 0.0, S)


def not_completed(law: Law, t: ArrayLike) -> Floats:
    """1 − F̃(t) = S(t) + G̃(t), accurate in the upper tail; 1 before age 0."""
    age = np.maximum(t, 0.0) if law.jumps is None else t  # a step law is 1 there anyway
    out = still_out(law, age)
    if has_failures(law):
        out = out + law.failed(age)
    return np.where(np.less(t, 0), 1.0, out) if law.jumps is None else out


def log_not_completed(law: Law, t: ArrayLike, F: Floats) -> Floats:
    """The log of 1 − F̃(t), F̃(t) = `F`, accurate in both tails."""
    with np.errstate(all="ignore"):
        return np.where(F < 0.5, np.log1p(-np.minimum(F, 0.5)), np.log(not_completed(law, t)))


def kinks(law: Law) -> Floats:
    """The times at which the density of a law may jump, the ends of its support among them."""
    edges = np.array([*law.support, *law.kinks], dtype=np.float64)
    return edges[np.isfinite(edges) & (edges > 0)]


def scan_times(law: Law) -> Floats:
    """Times over the whole range of a law with a density, dense where it has mass.

    Quantiles at levels evenly spaced in log F̃ and then in logit F̃, times evenly spaced in log t between them, times far
    beyond, and the kinks: the grid does not depend on the unit of time.
    """
    start, end = law.support
    low = np.linspace(-650, -16, 250, endpoint=False)
    centre = np.linspace(-16, 16, 1500)
    levels = completion_probability(law) * np.concatenate([np.exp(low), 1 / (1 + np.exp(-centre))])
    at_levels = law.ppf(levels)
    first, last = at_levels[low.size] - start, at_levels[-1] - start
    if not (first > 0 and np.isfinite(last)):
        raise RestartError(f"the times of {law!r} are too small, too large or too close to compute with")
    even, late = start + np.geomspace(first, last, 1000), at_levels[-1] * np.geomspace(1, 1e4, 60)
    t = np.concatenate([at_levels, even, late, kinks(law)])
    return np.unique(t[(t > start) & (t <= end) & np.isfinite(t)])


@dataclass(frozen=True)
class _Derived(Law):
    """A law derived from another one; subclasses state `failed`, with steps at the failures of that law."""

    law: Law
    rho: float = field(init=False)

    @cached_property
    def failures(self) -> Steps:  # type: ignore[override]
        times = failure_times(self.law)
        cumulative = self.failed(times)
        return Steps(times, np.diff(cumulative, prepend=0.0), cumulative)


@lru_cache(maxsize=16)
def with_copies(law: Law, copies: int) -> Law:
    """The law of one attempt of `copies` simultaneous submissions."""
    if not 1 <= copies <= MAX_COPIES or copies != int(copies):
        raise RestartError(f"the number of copies is {copies}; it must be a whole number from 1 to {MAX_COPIES}")
    return law if copies == 1 else Copies(law, int(copies))


@dataclass(frozen=True)
class Copies(_Derived):
    """The first of b independent copies: F̃_b = 1 − (1−F̃)ᵇ; the attempt has failed when all have, G̃_b = G̃ᵇ.

    With c = 0 and no failures E_J = ∫₀ᵗ (1−F̃)ᵇ / (1 − (1−F̃(t))ᵇ).
    """

    name: ClassVar[str] = "copies"
    b: int

    def __post_init__(self) -> None:
        law, rho = self.law, self.law.rho**self.b
        vars(self).update(rho=rho, support=law.support, jumps=law.jumps, kinks=law.kinks, resolution=law.resolution)

    def cdf(self, t: ArrayLike) -> Floats:
        with np.errstate(all="ignore"):
            return np.asarray(-np.expm1(self.b * log_not_completed(self.law, t, self.law.cdf(t))))

    def pdf(self, t: ArrayLike) -> Floats:
        return self.b * not_completed(self.law, t) ** (self.b - 1) * self.law.pdf(t)

    def _cdf_above(self, v: Floats) -> Floats:
        return np.asarray(-np.expm1(self.b * log_not_completed(self.law, self.support[0] + v, self.law._cdf_above(v))))

    def _logpdf_above(self, v: Floats) -> Floats:
        none = log_not_completed(self.law, self.support[0] + v, self.law._cdf_above(v))
        return np.asarray(np.log(self.b) + (self.b - 1) * none + self.law._logpdf_above(v))

    def failed(self, t: ArrayLike) -> Floats:
        return self.law.failed(t) ** self.b

    def still_out(self, t: ArrayLike) -> Floats:
        """(1−F̃)ᵇ − G̃ᵇ: none has completed and not all have failed; accurate where S is small beside G̃."""
        none = not_completed(self.law, t) ** self.b
        if not has_failures(self.law):
            return none
        S, G = still_out(self.law, t), self.law.failed(t)
        ratio = np.divide(S, G, where=G > 0, out=np.full_like(S, np.inf))
        return np.asarray(none * -np.expm1(-self.b * np.log1p(ratio)))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dF̃_b: a sum over the jumps of a step law, by quadrature for a density."""
        if n == 0:
            return self.cdf(t)
        if self.jumps is not None:
            return Steps.of(self.jumps, np.diff(self.cdf(self.jumps), prepend=0.0)).moment(n, t)
        with np.errstate(all="ignore"):
            return quadrature_moment(self, n, np.asarray(t, dtype=np.float64))


def with_wall_clock(law: Law, r: float) -> Law:
    """The law of latency + r, the time from submission to result of a job that runs r seconds."""
    return Shifted(law, r) if check_time("wall-clock time", r) else law


@dataclass(frozen=True)
class Shifted(_Derived):
    """F̃(t − r): the job runs r seconds after its latency, failures come before. Glatard et al. 2006, eq. 2."""

    name: ClassVar[str] = "shifted"
    r: float

    def __post_init__(self) -> None:
        law, (low, high) = self.law, self.law.support
        jumps = None if law.jumps is None else law.jumps + self.r
        kinks = tuple(kink + self.r for kink in law.kinks)
        support = low + self.r, high + self.r
        vars(self).update(rho=law.rho, support=support, jumps=jumps, kinks=kinks, resolution=law.resolution)

    def _after(self, formula: Callable[[Floats], Floats], t: ArrayLike, before: float = 0.0) -> Floats:
        times = np.asarray(t, dtype=np.float64)
        latency = times - self.r
        if self.law.jumps is not None:  # (jump + r) − r must reach the jump in spite of rounding
            latency = latency + ROUNDING * np.where(np.isfinite(times), times, 0.0)
        return np.where(latency >= 0, formula(np.maximum(latency, 0.0)), before)

    def cdf(self, t: ArrayLike) -> Floats:
        return self._after(self.law.cdf, t)

    def pdf(self, t: ArrayLike) -> Floats:
        return self._after(self.law.pdf, t)

    def ppf(self, q: ArrayLike) -> Floats:
        return self.r + self.law.ppf(q)

    def _cdf_above(self, v: Floats) -> Floats:
        return self.law._cdf_above(v)

    def _logpdf_above(self, v: Floats) -> Floats:
        return self.law._logpdf_above(v)

    def still_out(self, t: ArrayLike) -> Floats:
        return self._after(lambda u: self.law.still_out(u) + self.law.failed(u), t, 1.0) - self.law.failed(t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        powers = [comb(n, k) * self.r ** (n - k) for k in range(n + 1)]
        return self._after(
            lambda u: np.asarray(sum(power * self.law.partial_moment(k, u) for k, power in enumerate(powers))), t
        )

    def failed(self, t: ArrayLike) -> Floats:
        return self.law.failed(t)


def coarse(law: Law, cells: int) -> Law:
    """The law in about `cells` steps, finer in both tails, each at the mean of the latencies that it replaces."""
    failed_at = failure_times(law)
    if law.jumps is not None and law.jumps.size + failed_at.size <= cells:
        return law
    tail = np.geomspace(1e-9, 1e-3, 40)
    levels = np.concatenate([tail, np.linspace(1e-3, 1 - 1e-3, cells), 1 - tail[::-1]])
    edges = law.ppf(completion_probability(law) * levels)
    edges = np.unique(np.append(edges[np.isfinite(edges)], law.support[1]))
    completions = _steps_at_means(law.cdf(edges), law.partial_moment(1, edges))
    failures = Steps.of(np.empty(0), np.empty(0))
    if has_failures(law):
        G = law.failed(failed_at)
        edges = failed_at[np.unique(np.searchsorted(G, G[-1] * np.linspace(0, 1, cells + 1)[1:] * (1 - 1e-12)))]
        failures = _steps_at_means(law.failed(edges), law.failed_moment(1, edges))
    never = max(1.0 - completions.total - failures.total, 0.0)
    return Empirical(completions, failures, never, np.arange(1, completions.times.size + 1))


def _steps_at_means(cumulative: Floats, moment: Floats) -> Steps:
    """Steps at the mean times between edges, from the probability and the partial moment at each edge."""
    masses, moments = np.diff(cumulative, prepend=0.0), np.diff(moment, prepend=0.0)
    times = np.divide(moments, masses, out=np.full_like(moments, np.inf), where=masses > 0)
    finite = np.isfinite(times)
    times, masses = times[finite], masses[finite]
    rising = np.append(True, np.diff(times) > 0)
    return Steps.of(times[rising], masses[rising])
