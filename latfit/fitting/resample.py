"""Samples that a fitted law would have produced: rounded, cut and censored like the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latfit.errors import FitError
from latfit.fitting.batch import Floats, SampleBatch, cell_width
from latfit.fitting.least_squares import as_censored
from latfit.fitting.result import Fit
from latfit.laws import ContinuousLaw
from latfit.sample import LatencySample, Tally

Size = tuple[int, int]

# numpy's own generators are several times faster than inverting the cdf
DRAWS: dict[str, Callable[[Any, Size, np.random.Generator], Floats]] = {
    "exponential": lambda law, size, rng: rng.exponential(1 / law.rate, size),
    "gamma": lambda law, size, rng: rng.gamma(law.shape, law.scale, size),
    "lognormal": lambda law, size, rng: np.exp(law.mu + law.sigma * rng.standard_normal(size)),
    "uniform": lambda law, size, rng: rng.uniform(law.a, law.b, size),
    "weibull": lambda law, size, rng: law.scale * np.exp(np.log(rng.standard_exponential(size)) / law.shape),
}


def draw(law: ContinuousLaw, size: Size, rng: np.random.Generator) -> Floats:
    """Latencies of a law; laws whose quantiles are slow are interpolated in a table of them."""
    if law.name in DRAWS:
        return DRAWS[law.name](law, size, rng)
    logit = np.linspace(-20.0, 20.0, 20_001)
    p = 1 / (1 + np.exp(-logit))
    uniform = rng.random(size)
    return np.asarray(np.interp(np.log(uniform) - np.log1p(-uniform), logit, law.ppf(p)))


@dataclass(frozen=True, eq=False)
class Rows:
    """B simulated samples of n probes: `time` of return or of last sight (B, n), and what was seen then.

    A probe that is neither `returned` nor `lost` was still out at its time. Rows that are `ordered` have their
    returns first, in order, and lost no one from sight before the last of them.
    """

    time: Floats
    returned: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    ordered: bool

    def batch(self, cell: float, *, tallied: bool) -> SampleBatch:
        """The rows as a batch to fit; `tallied` where the clock is so coarse that few values differ."""
        out = ~self.returned & ~self.lost
        x, weights = self.time, np.ones((1, self.time.shape[1]))
        if tallied:
            x, weights = _columns(self.time, self.returned)
        elif not self.returned.all():
            weights = self.returned.astype(np.float64)
        c, c_weights = _packed(self.time, out)
        return SampleBatch(x, weights, c, c_weights, self.lost.sum(axis=1, dtype=np.float64), cell)

    def sample(self, row: int, like: LatencySample) -> LatencySample:
        """One row as a sample."""
        time, returned, lost = self.time[row], self.returned[row], self.lost[row]
        return LatencySample(
            completed=Tally.of(time[returned]),
            censored=Tally.of(time[~returned & ~lost]),
            lost=int(lost.sum()),
            cutoff=like.cutoff,
            resolution=like.resolution,
        )


def _columns(time: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The distinct times chosen in any row (1, m), and how often each row has them (B, m)."""
    values, where = np.unique(time[chosen], return_inverse=True)
    row = np.repeat(np.arange(time.shape[0]), chosen.sum(axis=1))
    counts = np.bincount(row * values.size + where, minlength=time.shape[0] * values.size)
    return values[None], counts.reshape(time.shape[0], values.size).astype(np.float64)


def _packed(time: Floats, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The times chosen in each row, moved to its front (B, k), with weight 1, or 0 where a row has fewer.

    Where they are all equal, as at a cutoff, they are one column with their number.
    """
    counts = chosen.sum(axis=1)
    times = time[chosen]
    if not times.size or times.min() == times.max():
        return times[:1].reshape(1, -1), counts[:, None].astype(np.float64)[:, : min(1, times.size)]
    front = np.argsort(~chosen, axis=1, kind="stable")[:, : counts.max()]
    return np.take_along_axis(time, front, axis=1), (np.arange(counts.max()) < counts[:, None]).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Simulator:
    """Draws samples of n probes from a fit as the log would have recorded them.

    Latencies come from (1−ρ)F. Those that lose sight early do so at times drawn from the Kaplan–Meier estimate of
    the law of losing sight; what is out at the cutoff is censored there; of those that never return as many are known
    to be lost as in the log. The clock rounds to the nearest step, for least squares up to the next one, because that
    fits F(t) to what was recorded at or below t.
    """

    law: ContinuousLaw
    rho: float
    n: int
    cutoff: float
    resolution: float
    cell: float
    round_up: bool
    known_lost: float
    loss_times: Floats
    loss_cdf: Floats

    @classmethod
    def of(cls, sample: LatencySample, fit: Fit) -> Simulator:
        """For the probes of `sample` under `fit`."""
        if fit.law is None or fit.rho is None:
            raise FitError(f"the {fit.name} fit failed, so it cannot be simulated: {fit.error}")
        seen = as_censored(sample)
        at_cutoff = np.inf if sample.cutoff is None else sample.cutoff
        early = seen.censored.values < at_cutoff
        left = Tally(seen.censored.values[early], seen.censored.counts[early])
        stayed = Tally.sum([seen.completed, Tally(seen.censored.values[~early], seen.censored.counts[~early])])
        curve = LatencySample(completed=left, censored=stayed, lost=seen.lost).kaplan_meier()
        share = 0.0 if not sample.lost else min(1.0, sample.lost / (sample.n * fit.rho))
        return cls(
            fit.law,
            fit.rho,
            sample.n,
            at_cutoff,
            sample.resolution,
            cell_width(sample),
            fit.method == "ls",
            share,
            curve.times,
            1 - curve.still_out,
        )

    def rows(self, count: int, rng: np.random.Generator) -> Rows:
        """`count` samples."""
        time = self._recorded(draw(self.law, (count, self.n), rng))
        if self.rho == 0 and self.cutoff == np.inf and not self.loss_times.size:
            time.sort(axis=1)
            return Rows(time, np.ones(time.shape, dtype=bool), np.zeros(time.shape, dtype=bool), ordered=True)
        # the probes of a sample are alike, so its outliers may be the first ones
        time[np.arange(self.n) < rng.binomial(self.n, self.rho, (count, 1))] = np.inf
        limit: Floats | float = self.cutoff
        if self.loss_times.size:
            at = np.searchsorted(self.loss_cdf, rng.random(time.shape), side="left")
            limit = np.minimum(np.append(self.loss_times, np.inf)[at], self.cutoff)
        else:
            time.sort(axis=1)
        never = np.isinf(time)
        returned = (time <= limit) & ~never
        time = np.where(returned, time, limit)
        # with outliers and no cutoff nothing ends the watch: whoever never returns is known to be lost
        lost = np.isinf(time)
        if self.known_lost:
            lost |= never & (rng.random(time.shape) < self.known_lost)
        if lost.any():
            time = np.where(lost, 1.0, time)
        return Rows(time, returned, lost, ordered=not self.loss_times.size)

    def _recorded(self, time: Floats) -> Floats:
        """What the log's clock shows; a 0 that the log's reading has no place for becomes half a step."""
        if not self.resolution:
            return time
        steps = np.ceil(time / self.resolution) if self.round_up else np.rint(time / self.resolution)
        return self.resolution * (steps if self.cell else np.maximum(steps, 0.5))
