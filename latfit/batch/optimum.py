"""The exact optimum of many samples at once, for those of which nothing was lost from sight early."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.errors import SampleError
from latfit.fitting import SampleBatch
from latfit.laws import Empirical
from latfit.restart import Optimum, advise, expected_duration
from latfit.restart.advice import MIN_COMPLETIONS, MOVES
from latfit.restart.optimum import NO_GAIN, TIE
from latfit.sample import LatencySample

Floats = NDArray[np.float64]


class Found(NamedTuple):
    """The optimum of a sample, E_J when waiting until its cutoff, who is out at half of it, codes of warnings."""

    optimum: Optimum
    at_cutoff: float
    out_at_half: float
    codes: tuple[str, ...]


def optimum_of(sample: LatencySample, cutoff: float, cost: float) -> Found:
    """The exact optimum of one sample of any kind with enough completions."""
    law = Empirical.of(sample)
    advice = advise(law, cost=cost)
    if advice.optimum is None:
        raise SampleError(advice.warnings[0].message)
    at_cutoff, out = float(expected_duration(law, cutoff, cost=cost)), float(law.still_out(cutoff / 2))
    return Found(advice.optimum, at_cutoff, out, tuple(warned.code for warned in advice.warnings))


def is_plain(sample: LatencySample) -> bool:
    """Whether `optima` can do it: no failures, nothing censored early, the fifth completion not below the clock."""
    first = np.cumsum(sample.completed.counts[:MIN_COMPLETIONS])
    if sample.failed.total or sample.censored_early or not first.size or first[-1] < MIN_COMPLETIONS:
        return False
    fifth = sample.completed.values[np.searchsorted(first, MIN_COMPLETIONS)]
    return bool(fifth > 0 and fifth >= sample.resolution)


@dataclass(frozen=True, eq=False)
class _Curves:
    """E_J(x_i) = (s_i + (N − i)(x_i + c))/i at the completions x_i of each sample, a row each.

    i counts the completions at or below x_i, s_i is their sum, N − i is `out`. Where a row has no more
    completions x is ∞. `allowed` is where a timeout may lie.
    """

    x: Floats
    i: Floats
    s: Floats
    out: Floats
    allowed: NDArray[np.bool_]

    @classmethod
    def of(cls, batch: SampleBatch, step: Floats) -> _Curves:
        x = np.where(batch.weights > 0, batch.x, np.inf)
        i, s = np.cumsum(batch.weights, axis=1), np.cumsum(batch.weights * batch.x, axis=1)
        allowed = np.isfinite(x) & (i >= MIN_COMPLETIONS) & (x >= step[:, None])
        return cls(x, i, s, batch.probes[:, None] - i, allowed)

    def E_J(self, t: Floats, c: Floats) -> Floats:
        """E_J at times t, each before the next completion; ∞ where waiting for ever may never end."""
        waited = np.where(self.out > 0, self.out * np.where(self.out > 0, t + c[:, None], 0.0), 0.0)
        return np.asarray((self.s + waited) / self.i)

    def best(self, c: Floats) -> tuple[Floats, Floats]:
        """The smallest timeout of the least E_J, ∞ where none is better than no timeout, and that E_J."""
        E = np.where(self.allowed, self.E_J(self.x, c), np.inf)
        k = (E.min(axis=1, keepdims=True) * (1 + TIE) >= E).argmax(axis=1)
        rows = np.arange(k.size)
        E_R = np.where(self.out[:, -1] == 0, self.s[:, -1] / self.i[:, -1], np.inf)
        never = (self.out[rows, k] == 0) | (E[rows, k] >= E_R * (1 - NO_GAIN))
        return np.where(never, np.inf, self.x[rows, k]), np.where(never, E_R, E[rows, k])

    def window(self, t: Floats, limit: Floats, c: Floats) -> tuple[Floats, Floats]:
        """The ends of the connected set around t with E_J ≤ limit.

        From each completion E_J rises with slope (N − i)/i, and only the next one brings it down: the window
        begins at a completion and ends between two.
        """
        rows, columns = np.arange(t.size), np.arange(self.x.shape[1])
        after_it = np.concatenate([self.x[:, 1:], np.full((t.size, 1), np.inf)], axis=1)
        too_high = self.E_J(after_it, c) > limit[:, None]
        earlier = self.x < t[:, None]
        begin = np.where(too_high & earlier, columns + 1, 0).max(axis=1)
        later = too_high & ~earlier
        j = later.argmax(axis=1)
        x, slope = self.x[rows, j], self.out[rows, j] / self.i[rows, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            end = x + (limit - self.E_J(self.x, c)[rows, j]) / slope
        return self.x[rows, begin], np.where(later.any(axis=1), np.fmax(t, end), np.inf)


def optima(batch: SampleBatch, samples: Sequence[LatencySample], cutoffs: Sequence[float], cost: float) -> list[Found]:
    """The same as `optimum_of`, but for figures that a row does not show, for plain samples: the rows of `batch`."""
    step, cutoff = np.array([sample.resolution for sample in samples]), np.array(cutoffs)
    c, N = np.full(step.size, cost), batch.probes
    curves = _Curves.of(batch, step)
    (t, E_J), (dearer, _) = curves.best(c), curves.best(c + step)
    low, high = curves.window(t, 1.05 * E_J, c)
    at_cutoff = curves.E_J(cutoff[:, None], c)[:, -1]
    F, F_half = (np.where(curves.x <= at[:, None], curves.i, 0.0).max(axis=1) / N for at in (t, cutoff / 2))
    with np.errstate(invalid="ignore"):  # ∞ − ∞, where neither has a timeout
        moved = np.where(np.isfinite(t), (t <= step) | ~(np.abs(dearer - t) <= MOVES * t), np.isfinite(dearer))
    unclear = (step > cost) & moved
    columns = (t, E_J, 1 / F, low, high, curves.out[:, -1] / N, at_cutoff, 1 - F_half, unclear)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Found(_optimum(cost, *figures), at_cutoff, out_at_half, ("not-identified",) if unclear else ())
        for *figures, at_cutoff, out_at_half, unclear in rows
    ]


def _optimum(cost: float, t: float, E_J: float, submissions: float, low: float, high: float, rho: float) -> Optimum:
    """The figures that a row shows."""
    finite = np.isfinite(t)
    return Optimum(
        verdict="finite" if finite else "never",
        timeout=t if finite else None,
        expected_duration=E_J if np.isfinite(E_J) else None,
        std_duration=None,
        quantiles={},
        submissions=submissions,
        within_1pct=None,
        within_5pct=(low, high) if finite else None,
        conservative_timeout=None,
        speed_up=None,
        rho=rho,
        law="empirical",
        cost=cost,
        objective={"name": "mean", "value": E_J},
    )
