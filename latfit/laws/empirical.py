"""The empirical law: what a sample says of the latencies, and of nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latfit.errors import LawError, SampleError
from latfit.laws.base import Floats, Law, register
from latfit.laws.steps import Steps
from latfit.sample import LatencySample


@register
@dataclass(frozen=True, eq=False)
class Empirical(Law):
    """Kaplan–Meier law of a sample, failures as a competing risk.

    F̃(t) = Σ S(t_i−) d_i/n_i over the completions t_i ≤ t, G̃(t) the same over the failures,
    S(t) = 1 − F̃(t) − G̃(t) (Aalen and Johansen 1978). It is defective: `rho` = 1 − F̃(T), the
    probability of not completing by the end T of what was seen. That includes the failures,
    since a failed attempt never completes; `never` leaves them out.
    """

    name: ClassVar[str] = "empirical"
    completions: Steps
    failures: Steps
    never: float
    completed: NDArray[np.int64]
    """How many completions were seen at or below each jump."""
    resolution: float = 0.0
    rho: float = field(init=False)

    def __post_init__(self) -> None:
        rho = 1.0 - self.completions.total if self.failures.times.size else self.never
        object.__setattr__(self, "rho", rho)

    @classmethod
    def of(cls, sample: LatencySample) -> Empirical:
        """The Kaplan–Meier law of `sample`."""
        n = sample.n
        if not n:
            raise SampleError("the sample is empty: there is no probe to take a law from")
        if not sample.completed.total:
            raise SampleError(f"none of the {n} probes completed: there is no latency to take a law from")
        estimate = sample.kaplan_meier()
        steps = []
        for tally, cumulative in ((sample.completed, estimate.completed), (sample.failed, estimate.failed)):
            if sample.censored_early:
                at = cumulative[np.searchsorted(estimate.times, tally.values)]
                steps.append(Steps(tally.values, np.diff(at, prepend=0.0), at))
            else:  # the product telescopes, and the quotients are exact
                steps.append(Steps(tally.values, tally.counts / n, np.cumsum(tally.counts) / n))
        never = float(estimate.still_out[-1])
        return cls(steps[0], steps[1], never, np.cumsum(sample.completed.counts), sample.resolution)

    @property
    def support(self) -> tuple[float, float]:
        """The smallest and the largest latency that completed."""
        return float(self.jumps[0]), float(self.jumps[-1])

    @property
    def jumps(self) -> Floats:
        """The latencies that completed, among which is the optimal timeout."""
        return self.completions.times

    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t)."""
        return self.completions.mass(t)

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """M̃ₙ(t), the sum of timeⁿ over the steps of F̃ up to t."""
        return self.completions.moment(n, t)

    def still_out(self, t: ArrayLike) -> Floats:
        """S(t) = 1 − F̃(t) − G̃(t)."""
        return np.maximum(1.0 - self.cdf(t) - self.failed(t), self.never)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t)."""
        return self.failures.mass(t)

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """The sum of timeⁿ over the steps of G̃ up to t."""
        return self.failures.moment(n, t)

    def n_completed_at_or_below(self, t: ArrayLike) -> NDArray[np.int64]:
        """How many completions of the sample lie at or below t."""
        return np.concatenate([[0], self.completed])[self.completions.count(t)]

    def rescaled(self, rho: float) -> Empirical:
        """The same completions with another share `rho` that does not complete.

        Completions are multiplied by (1 − rho)/(1 − own rho), failures and what never
        returns by rho/(own rho).
        """
        if not 0 <= rho < 1:
            raise LawError(f"the outlier ratio rho is {rho:g}; it must lie in [0, 1)")
        completions = self.completions.times_factor((1.0 - rho) / self.completions.total)
        if self.rho == 0:
            return Empirical(completions, self.failures, rho, self.completed, self.resolution)
        share = rho / self.rho
        failures = self.failures.times_factor(share) if rho else Steps.of(np.empty(0), np.empty(0))
        return Empirical(completions, failures, self.never * share, self.completed, self.resolution)

    def conditional(self) -> Empirical:
        """The law of those that completed, F̃/F̃(T)."""
        return self.rescaled(0.0)
