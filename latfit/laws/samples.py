"""The arrays that batched fitting works on: many samples as padded rows.

Bootstrap weightings of one sample share a row of values and differ in their weights. Groups of unequal sizes are padded
with weight 0. Failures are a competing risk: for the law of completion they are censored at their time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latfit.errors import FitError
from latfit.numbers import Floats
from latfit.sample import LatencySample, Tally

COARSE_CLOCK = 0.05  # latencies are cells if the clock's step exceeds this share of the median
MAX_CELL_STEPS = 64.5  # longer latencies on a coarse clock are points again


@dataclass(frozen=True, eq=False)
class SampleBatch:
    """B samples as rows; every array has B rows, or one row that all samples share.

    `x` are latencies of completions with `weights`, `c` times at which probes were still out with `c_weights`, and
    `lost` (B,) probes known never to return. If `cell` > 0, a latency x of at most 64 cells stands for the cell
    (x − cell/2, x + cell/2], cut at 0, with the likelihood P(cell)/width(cell). For longer ones f(x) differs from that
    only by (cell/x)² x² f″/(24 f), 1e-5 if f is a power of x. `step` is the clock's step, for all samples or for each,
    0 if it is too fine to see. `rho` (B,) is a given outlier ratio, or None if it is estimated with the law. `memory`
    keeps results for the fits of other laws.
    """

    x: Floats
    weights: Floats
    c: Floats
    c_weights: Floats
    lost: Floats
    cell: float = 0.0
    step: Floats = field(default_factory=lambda: np.zeros(1))
    rho: Floats | None = None
    memory: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    size: int = field(init=False, repr=False)
    """How many samples there are."""
    n: Floats = field(init=False, repr=False)
    """(B,) how many completions each sample has."""
    n_out: Floats = field(init=False, repr=False)
    """(B,) how many probes of each sample were still out at the last observation."""
    probes: Floats = field(init=False, repr=False)
    """(B,) how many probes each sample has, of every status."""
    complete: bool = field(init=False, repr=False)
    """Whether everything returned in every sample, each latency a point."""

    def __post_init__(self) -> None:
        size = max(self.weights.shape[0], self.c_weights.shape[0], self.lost.size, self.x.shape[0])
        n, n_out = (np.broadcast_to(part.sum(axis=1), (size,)) for part in (self.weights, self.c_weights))
        complete = not (self.cell or self.lost.any() or n_out.any())
        vars(self).update(size=size, n=n, n_out=n_out, probes=n + n_out + self.lost, complete=complete)

    @cached_property
    def log_x(self) -> Floats:
        """Log x; a latency of 0 is a quarter of its cell."""
        return np.log(self.inner)

    @cached_property
    def inner(self) -> Floats:
        """The latencies, with those at 0 moved to the middle of their cell."""
        return np.where(self.x > 0, self.x, self.cell / 4) if self.cell else self.x

    @cached_property
    def points_and_cells(self) -> tuple[SampleBatch, SampleBatch]:
        """The completions that are points, and those that are cells."""
        parts, in_cells = [], self.x <= MAX_CELL_STEPS * self.cell
        for chosen, cell in ((~in_cells, 0.0), (in_cells, self.cell)):
            used = chosen.any(axis=0)
            weights = np.where(chosen[:, used], self.weights[:, used], 0.0)
            parts.append(replace(self, x=np.where(chosen, self.x, 1.0)[:, used], weights=weights, cell=cell))
        return parts[0], parts[1]

    def mean_of(self, values: Floats) -> Floats:
        """(B,) the weighted mean over the completions of each sample, 0 if there are none."""
        return np.asarray(weighted_sum(self.weights, values) / np.where(self.n > 0, self.n, 1.0))

    @cached_property
    def mean_x(self) -> Floats:
        return self.mean_of(self.inner)

    @cached_property
    def mean_log(self) -> Floats:
        return self.mean_of(self.log_x)

    @cached_property
    def var_log(self) -> Floats:
        """(B,) the variance of log x, divisor n."""
        off = self.log_x - self.mean_log[:, None]
        off *= off
        return self.mean_of(off)

    @cached_property
    def extremes(self) -> tuple[Floats, Floats]:
        used = self.weights > 0
        above, below = (self.x, self.x) if used.all() else (np.where(used, self.x, end) for end in (np.inf, -np.inf))
        low, high = above.min(axis=1, initial=np.inf), below.max(axis=1, initial=-np.inf)
        return np.broadcast_to(low, (self.size,)), np.broadcast_to(high, (self.size,))

    def quantiles(self, levels: Sequence[float]) -> Floats:
        """(levels, B) quantiles of the completions of each sample."""
        x, weights = np.broadcast_arrays(self.x, self.weights)
        found = np.quantile(x, levels, axis=1, weights=weights, method="inverted_cdf")
        return np.broadcast_to(found, (len(levels), self.size))

    def take(self, rows: NDArray[np.intp] | slice) -> SampleBatch:
        parts = {
            name: array if array.shape[0] == 1 and self.size > 1 else array[rows]
            for name in ("x", "weights", "c", "c_weights", "step")
            for array in (getattr(self, name),)
        }
        return replace(self, lost=self.lost[rows], rho=None if self.rho is None else self.rho[rows], **parts)

    def repeated(self, times: int) -> SampleBatch:
        if self.size == 1:
            rho = None if self.rho is None else np.repeat(self.rho, times)
            return self._with(lost=np.repeat(self.lost, times), rho=rho)
        return self.take(np.tile(np.arange(self.size), times))

    def given(self, rho: float | Floats | None) -> SampleBatch:
        """The same samples with a known outlier ratio, for all or for each; None: it is estimated."""
        return self._with(rho=None if rho is None else np.broadcast_to(rho, (self.size,)).astype(np.float64))

    def _with(self, **out: Any) -> SampleBatch:
        """The same completions with other numbers of who is out; what only depends on completions is not made again."""
        other = replace(self, **out)
        for name in {"inner", "log_x", "thinned"} & vars(self).keys():
            value = vars(self)[name]
            vars(other)[name] = value._with(**out) if isinstance(value, SampleBatch) else value
        return other

    @cached_property
    def mean_square(self) -> Floats:
        return self.mean_of(self.inner**2)

    @cached_property
    def thinned(self) -> SampleBatch | None:
        """The same samples with runs of neighbouring values merged, for starting values; None if there are few."""
        if self.x.shape[0] > 1 or self.x.shape[1] <= 4000 or self.cell:
            return None
        starts = np.unique(np.linspace(0, self.x.shape[1], 1000, endpoint=False).astype(np.intp))
        total = np.maximum(self.weights.sum(axis=0), 1e-300)
        x = np.add.reduceat(self.x[0] * total, starts) / np.add.reduceat(total, starts)
        return replace(self, x=x[None], weights=np.add.reduceat(self.weights, starts, axis=1))

    @cached_property
    def prepared(self) -> tuple[float, list[SampleBatch]]:
        """A typical latency, and blocks of samples measured in it, which fits of several laws share."""
        means = self.mean_x[self.n > 0] if self.n.any() else np.ones(1)
        unit = power_of_two(np.exp(np.mean(np.log(np.maximum(means, 1e-300)))))
        values = max(1, self.x.shape[1] + self.c.shape[1])
        rows = max(1, (1 << 17) // values)  # so that a block stays in the processor's cache
        return unit, [self.take(slice(at, at + rows)).scaled(unit) for at in range(0, self.size, rows)]

    def scaled(self, unit: float) -> SampleBatch:
        return replace(self, x=self.x / unit, c=self.c / unit, cell=self.cell / unit, step=self.step / unit)

    @classmethod
    def of_samples(cls, samples: Sequence[LatencySample]) -> SampleBatch:
        """Several samples as padded rows; if one needs cells, all are in cells."""
        widths = {cell_width(sample) for sample in samples} - {0.0}
        if widths and (len(widths) > 1 or {sample.resolution for sample in samples} != widths):
            raise FitError("samples of different coarse clocks cannot be fitted in one batch: fit them one by one")
        x, weights = _padded([sample.completed for sample in samples])
        c, c_weights = _padded([Tally.sum([sample.censored, sample.failed]) for sample in samples])
        lost = np.array([float(sample.lost) for sample in samples])
        step = np.array([sample.resolution for sample in samples])
        return cls(x, weights, c, c_weights, lost, cell=widths.pop() if widths else 0.0, step=step)

    @classmethod
    def of_rows(cls, latencies: Floats, cutoff: float | None = None) -> SampleBatch:
        """One sample per row; latencies beyond `cutoff` are censored there."""
        if cutoff is None:
            none = np.empty((1, 0))
            return cls(latencies, np.ones((1, latencies.shape[1])), none, none, np.zeros(latencies.shape[0]))
        inside = latencies <= cutoff
        out = (~inside).sum(axis=1, dtype=np.float64)[:, None]
        x = np.where(inside, latencies, cutoff)
        return cls(x, inside.astype(np.float64), np.full((1, 1), cutoff), out, np.zeros(latencies.shape[0]))


@dataclass(frozen=True, eq=False)
class LogBatch(SampleBatch):
    """Samples of which `x` is already the logarithm, for laws of log x only."""

    @cached_property
    def log_x(self) -> Floats:
        return self.x


def power_of_two(value: float) -> float:
    """The nearest power of 2: a unit of time that causes no rounding."""
    return float(2.0 ** np.clip(np.rint(np.log2(value)), -1000, 1000))


def weighted_sum(weights: Floats, values: Floats) -> Floats:
    """(B,) the sums of weights × values over each row; one row may serve all samples."""
    if weights.shape[1] == 1 == values.shape[1]:
        return weights[:, 0] * values[:, 0]
    return np.asarray(np.einsum("bm,bm->b", weights, values))


def cell_width(sample: LatencySample) -> float:
    """The clock's step if latencies are cells (some are 0, or the step exceeds 5 % of the median), else 0."""
    step, values = sample.resolution, sample.completed.values
    if not step or not values.size:
        return 0.0
    (middle,) = sample.completed.quantiles([0.5])
    return step if values[0] == 0 or step > COARSE_CLOCK * middle else 0.0


def _padded(tallies: Sequence[Tally]) -> tuple[Floats, Floats]:
    """The values and counts of tallies as rows, padded with 1 and a count of 0."""
    shape = len(tallies), max((tally.values.size for tally in tallies), default=0)
    values, counts = np.ones(shape), np.zeros(shape)
    for row, tally in enumerate(tallies):
        values[row, : tally.values.size], counts[row, : tally.values.size] = tally.values, tally.counts
    return values, counts
