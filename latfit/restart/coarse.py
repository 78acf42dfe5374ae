"""A law as a few hundred steps that keep its cdf and its mean: what a search over many policies can afford."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from latfit.laws.base import Law
from latfit.laws.steps import Steps
from latfit.numbers import Floats
from latfit.restart.times import completes, failure_times, has_failures, inverse_cdf

TAIL = np.geomspace(1e-9, 1e-3, 40)  # levels near 0 and near F̃(∞), beside the even ones


@dataclass(frozen=True, eq=False)
class Coarse(Law):
    """The steps of a law, each at the mean of the latencies that it stands for."""

    name: ClassVar[str] = "coarse"
    steps: Steps
    rho: float
    failures: Steps = field(default_factory=lambda: Steps.of(np.empty(0), np.empty(0)))
    resolution: ClassVar[float] = 0.0

    @property
    def support(self) -> tuple[float, float]:
        """The first and the last step."""
        return float(self.steps.times[0]), float(self.steps.times[-1])

    @property
    def jumps(self) -> Floats:
        """The steps."""
        return self.steps.times

    def cdf(self, t: ArrayLike) -> Floats:
        """F̃(t); a search asks for it so often that the sums are kept with a 0 in front."""
        return np.asarray(self._sums[np.searchsorted(self.steps.times, t, side="right")])

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([[0.0], self.steps.cumulative])

    def partial_moment(self, n: int, t: ArrayLike) -> Floats:
        """The sum over the steps up to t."""
        return self.steps.moment(n, t)


@dataclass(frozen=True, eq=False)
class CoarseFailing(Coarse):
    """The same with visible failures, in steps as well."""

    def still_out(self, t: ArrayLike) -> Floats:
        """S(t) = 1 − F̃(t) − G̃(t)."""
        return np.maximum(1.0 - self.cdf(t) - self.failed(t), 0.0)

    def failed(self, t: ArrayLike) -> Floats:
        """G̃(t)."""
        return self.failures.mass(t)

    def failed_moment(self, n: int, t: ArrayLike) -> Floats:
        """The sum over the steps of G̃ up to t."""
        return self.failures.moment(n, t)


def coarse(law: Law, cells: int) -> Law:
    """The law in at most about `cells` steps of even probability, finer in both tails; itself where it has no more."""
    gone = failure_times(law)
    if law.jumps is not None and law.jumps.size + gone.size <= cells:
        return law
    top = completes(law)
    levels = np.concatenate([TAIL, np.linspace(1e-3, 1 - 1e-3, cells), 1 - TAIL[::-1]])
    edges = inverse_cdf(law, top * levels)
    edges = np.unique(np.append(edges[np.isfinite(edges)], law.support[1]))
    steps = _means(law.cdf(edges), law.partial_moment(1, edges))
    rho = 1.0 - float(steps.masses.sum())
    if not has_failures(law):
        return Coarse(steps, rho)
    G = law.failed(gone)
    edges = gone[np.unique(np.searchsorted(G, G[-1] * np.linspace(0, 1, cells + 1)[1:] * (1 - 1e-12)))]
    return CoarseFailing(steps, rho, _means(law.failed(edges), law.failed_moment(1, edges)))


def _means(sums: Floats, moments: Floats) -> Steps:
    """Steps at the means of the times between edges, from the running sums of probability and of time there."""
    masses, times = np.diff(sums, prepend=0.0), np.diff(moments, prepend=0.0)
    used = masses > 0
    times, masses = times[used] / masses[used], masses[used]
    finite = np.isfinite(times)
    times, masses = times[finite], masses[finite]
    order = np.concatenate([[True], np.diff(times) > 0])
    return Steps.of(times[order], masses[order])
