"""Samples simulated from a fitted law, rounded, cut and censored like the log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.curve import kaplan_meier
from latfit.errors import FitError
from latfit.fitting.fitted import Fit
from latfit.laws.samples import SampleBatch, cell_width
from latfit.numbers import Bools, Floats
from latfit.sample import LatencySample, Tally


@dataclass(frozen=True, eq=False)
class Rows:
    """B simulated samples of n probes: `time` of return or of the last observation (B, n), and the state then.

    A probe that is neither `returned` nor `lost` was still out at its time. Rows that are `ordered` have their
    returns first, in order, and no probe was censored before the last of them.
    """

    time: Floats
    returned: Bools
    lost: Bools
    ordered: bool

    def batch(self, cell: float, step: float) -> SampleBatch:
        """The rows as a batch to fit; with cells, distinct values with their counts."""
        out = ~self.returned & ~self.lost
        x, weights = self.time, np.ones((1, self.time.shape[1]))
        if cell:
            x, weights = _packed(self.time, self.returned)
        elif not self.returned.all():
            weights = self.returned.astype(np.float64)
        c, c_weights = _packed(self.time, out)
        return SampleBatch(x, weights, c, c_weights, self.lost.sum(axis=1, dtype=np.float64), cell, np.array([step]))

    def sample(self, row: int, like: LatencySample) -> LatencySample:
        time, returned, lost = self.time[row], self.returned[row], self.lost[row]
        return LatencySample(
            completed=Tally.of(time[returned]),
            censored=Tally.of(time[~returned & ~lost]),
            lost=int(lost.sum()),
            cutoff=like.cutoff,
            resolution=like.resolution,
        )


def _packed(time: Floats, chosen: Bools) -> tuple[Floats, Floats]:
    """The chosen times of each row with their counts: shared columns if few differ, else moved to the front."""
    counts = chosen.sum(axis=1)
    values, where = np.unique(time[chosen], return_inverse=True)
    if values.size <= counts.max():
        flat = np.nonzero(chosen)[0] * values.size + where
        shape = time.shape[0], values.size
        return values[None], np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
    front = np.argsort(~chosen, axis=1, kind="stable")[:, : counts.max()]
    return np.take_along_axis(time, front, axis=1), (np.arange(counts.max()) < counts[:, None]).astype(np.float64)


class Simulator:
    """Draws samples of n probes from a fit as the log would have recorded them.

    Latencies come from (1−ρ)F. Early censoring times come from the Kaplan–Meier estimate of the censoring
    distribution, and probes still out at the cutoff are censored there. Of those that never return, as many are known
    to be lost as in the log. The clock rounds to the nearest step; for least squares up to the next one, because that
    fits F(t) to the latencies recorded at or below t.
    """

    def __init__(self, sample: LatencySample, fit: Fit) -> None:
        (self.law, self.rho), self.sample, self.round_up = fit.law_and_rho, sample, fit.method == "ls"
        self.n, self.resolution, self.cell = sample.n, sample.resolution, cell_width(sample)
        self.cutoff = np.inf if sample.cutoff is None else sample.cutoff
        self.known_lost = 0.0 if not sample.lost else min(1.0, sample.lost / (sample.n * self.rho))
        sample = sample.failures_censored()
        out, early = sample.censored, sample.censored.values < self.cutoff
        stayed = Tally.sum([sample.completed, Tally(out.values[~early], out.counts[~early])])
        left = Tally(out.values[early], out.counts[early])
        curve = kaplan_meier(LatencySample(completed=left, censored=stayed, lost=sample.lost))
        self.loss_times, self.loss_cdf = curve.times, 1 - curve.still_out
        self.complete = self.rho == 0 and self.cutoff == np.inf and not curve.times.size

    def rows(self, count: int, rng: np.random.Generator) -> Rows:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            time = self.law.draw((count, self.n), rng)
        if not (time.min() > 0 and time.max() < np.inf):
            raise FitError(
                f"{self.law.spec()} has latencies too small or too large for a number: it cannot be simulated"
            )
        if self.resolution:  # as the log's clock shows it; if the log cannot contain 0, that becomes half a step
            steps = np.ceil(time / self.resolution) if self.round_up else np.rint(time / self.resolution)
            time = self.resolution * (steps if self.cell else np.maximum(steps, 0.5))
        if self.complete:
            time.sort(axis=1)
            return Rows(time, np.ones(time.shape, dtype=bool), np.zeros(time.shape, dtype=bool), ordered=True)
        # probes are exchangeable, so the outliers can be the first ones
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
        # without a cutoff nothing ends the observation, so probes that never return are known to be lost
        lost = np.isinf(time)
        if self.known_lost:
            lost |= never & (rng.random(time.shape) < self.known_lost)
        if lost.any():
            time = np.where(lost, 1.0, time)
        return Rows(time, returned, lost, ordered=not self.loss_times.size)
