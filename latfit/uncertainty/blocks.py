"""Blocks of consecutive probes, resampled whole: what an interval needs where slow probes follow slow ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri, stdtrit

from latfit.numbers import Floats, Ints
from latfit.uncertainty.bins import Bins

LENGTHS = 3.0  # autocorrelation times in a block
FEWEST, MOST = 8, 200  # blocks
MOST_MISSED = 0.5  # of the variance, between blocks: beyond that nothing can be said


@dataclass(frozen=True, eq=False)
class Blocks:
    """The probes in their order: latencies, and which of completed, failed, censored and lost (0…3) each is."""

    latency: Floats
    status: Ints
    count: int
    time: float
    _kept: dict[int, tuple[Floats, Floats, Floats, Floats]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, latency: Floats, status: Ints, time: float) -> Blocks:
        """Blocks of about three autocorrelation times, at least 8 and at most 200 of them."""
        return cls(latency, status, int(np.clip(latency.size / (LENGTHS * time), FEWEST, MOST)), time)

    def stretch(self, level: float) -> float:
        """How much wider an interval is than by the spread of resampled blocks and the normal law.

        The variance of b blocks of length l misses b/(b−1), and what neighbouring blocks share: about τ/(2l) of it
        for an autocorrelation time τ. Student's quantile with b − 1 degrees of freedom stands for that of the normal.
        """
        b, length = self.count, self.latency.size / self.count
        missed = min(self.time / (2 * length), MOST_MISSED)
        p = (1 + level) / 2
        return float(stdtrit(b - 1, p) / ndtri(p) * np.sqrt(b / (b - 1) / (1 - missed)))

    def drawn(self, bins: Bins, size: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
        """Counts in the bins of `size` resamples: each block comes a Poisson number of times."""
        times = rng.poisson(1.0, (size, self.count)).astype(np.float64)
        done, gone, out, lost = self._matrix(bins)
        return times @ done, times @ gone, times @ out, times @ lost

    def _matrix(self, bins: Bins) -> tuple[Floats, Floats, Floats, Floats]:
        """The counts of each block, blurred as those of the bins; kept, since every resample needs them."""
        if id(bins) not in self._kept:
            block = np.arange(self.latency.size) * self.count // self.latency.size
            done, gone, out = (self._counts(bins, block, code) for code in (0, 1, 2))
            lost = np.bincount(block[self.status == 3], minlength=self.count).astype(np.float64)
            self._kept[id(bins)] = (done, gone, out, lost)
        return self._kept[id(bins)]

    def _counts(self, bins: Bins, block: Ints, code: int) -> Floats:
        rows = []
        for one in range(self.count):
            mine = (block == one) & (self.status == code)
            counts = bins.counts(self.latency[mine], np.ones(int(mine.sum())))
            rows.append(bins.blur(counts) if bins.blur is not None and code < 2 else counts)
        return np.array(rows)
