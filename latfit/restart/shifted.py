"""A law whose every attempt needs a fixed time beside its latency."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.laws.base import Law
from latfit.laws.steps import Steps
from latfit.numbers import Floats
from latfit.restart.times import Failing, density, failure_times


def with_wall_clock(law: Law, r: float) -> Law:
    """The law of latency + r, the time from submission to result of a job that runs r seconds."""
    return law if r == 0 else Shifted(law, r)


@dataclass(frozen=True)
class Shifted(Law):
    """F̃(t − r): the job itself runs r seconds once its latency is over. Failures come before that.

    Glatard et al. 2006, eq. 2.
    """

    name: ClassVar[str] = "shifted"
    law: Law
    r: float
    rho: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", self.law.rho)

    @property
    def support(self) -> tuple[float, float]:
        """The support of the latency, r later."""
        low, high = self.law.support
        return low + self.r, high + self.r

    @property
    def jumps(self) -> Floats | None:
        """The jumps of the latency, r later."""
        return None if self.law.jumps is None else self.law.jumps + self.r

    @property
    def kinks(self) -> tuple[float, ...]:
        """The kinks of the latency, r later."""
        return tuple(kink + self.r for kink in self.law.kinks)

    @property
    def failures(self) -> Steps:
        """The failures of the latency, which happen before the job runs."""
        times = failure_times(self.law)
        cumulative = self.law.failed(times)
        return Steps(times, np.diff(cumulative, prepend=0.0), cumulative)

    @property
    def resolution(self) -> float:
        """The step of the clock that measured the latency."""
        return self.law.resolution if isinstance(self.law, Failing) else 0.0

    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t − r)."""
        at = np.asarray(t, dtype=np.float64) - self.r
        return np.where(at < 0, 0.0, self.law.cdf(np.maximum(at, 0.0)))

    def pdf(self, t: ArrayLike) -> Floats:
        """f̃(t − r)."""
        at = np.asarray(t, dtype=np.float64) - self.r
        return np.where(at < 0, 0.0, density(self.law, np.maximum(at, 0.0)))

    def still_out(self, t: ArrayLike) -> Floats:
        """1 − F̃(t − r) − G̃(t)."""
        at = np.asarray(t, dtype=np.float64) - self.r
        late = np.maximum(at, 0.0)
        out = np.where(at < 0, 1.0, self.law.still_out(late) + self.law.failed(late))
        return np.asarray(out - self.law.failed(t))

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """Σ C(n,k) rⁿ⁻ᵏ M̃_k(t − r)."""
        at = np.asarray(t, dtype=np.float64) - self.r
        late = np.maximum(at, 0.0)
        total = sum(comb(n, k) * self.r ** (n - k) * self.law.partial_moment(k, late) for k in range(n + 1))
        return np.where(at < 0, 0.0, total)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t)."""
        return self.law.failed(t)

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """∫₀ᵗ uⁿ dG̃(u)."""
        return self.law.failed_moment(n, t)
