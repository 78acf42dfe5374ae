"""A sample as counts in narrow bins of the logarithm of time, and E_J as a function of them.

A resample is a row of counts, and costs the same for a thousand probes as for ten million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.errors import SampleError
from latfit.sample import LatencySample, Tally

Floats = NDArray[np.float64]

BINS = 2048
NOBODY = 1e-9  # a count or a share that is none: the far ends of a blur, of which 1/n would overflow


@dataclass(frozen=True)
class Bins:
    """Expected counts of completions, failures and the censored in bins of log time; `lost` have no time.

    The first bin is the time 0; `width` is that of the others in the logarithm.
    """

    times: Floats
    completed: Floats
    failed: Floats
    censored: Floats
    lost: int
    width: float

    @classmethod
    def of(cls, sample: LatencySample, blur: float) -> Bins:
        """The sample in bins, its returns blurred by `blur` times Silverman's bandwidth.

        Latencies that the clock itself blurs more are left as they are.
        """
        returned = Tally.sum([sample.completed, sample.failed])
        positive = returned.values[returned.values > 0]
        if not positive.size:
            raise SampleError("every latency is 0: the clock is too coarse for an interval")
        last = max(float(t.values[-1]) for t in (returned, sample.censored) if t.values.size)
        last = max(last, sample.cutoff or 0.0)
        h = blur * silverman(sample)
        low, high = np.log(positive[0]) - 4 * h, np.log(last) + 1e-9
        edges = np.linspace(low, max(high, low + 1e-6), BINS + 1)
        width = float(edges[1] - edges[0])
        times = np.exp(edges[1:] - width / 2)
        sharp = times * h < sample.resolution

        def counts(tally: Tally) -> Floats:
            at = ((np.log(np.maximum(tally.values, positive[0])) - low) / width).astype(np.intp)
            at = np.where(tally.values > 0, np.clip(at, 0, BINS - 1) + 1, 0)
            return np.bincount(at, weights=tally.counts, minlength=BINS + 1).astype(np.float64)

        kernel = np.exp(-0.5 * (np.arange(-BINS // 2, BINS // 2 + 1) * width / h) ** 2) if h > width / 4 else None
        out = counts(sample.censored)
        # after the last one lost from sight nobody is at risk: no return may be blurred beyond it
        beyond = sample.lost or not sample.censored.total or sample.censored.values[-1] < returned.values[-1]
        end = BINS if beyond else max(1, int(np.flatnonzero(out)[-1]))
        done, gone = (_blurred(counts(tally), kernel, sharp, end) for tally in (sample.completed, sample.failed))
        return cls(np.append(0.0, times), done, gone, out, sample.lost, width)


def silverman(sample: LatencySample) -> float:
    """Silverman's bandwidth 0.9 min(s, IQR/1.34) n^(−1/5) of the logarithms of the completions above 0."""
    above = sample.completed.values > 0
    values, counts = sample.completed.values[above], sample.completed.counts[above]
    if not values.size:
        return 0.0
    logs, n = np.log(values), int(counts.sum())
    centre = np.average(logs, weights=counts)
    s = float(np.sqrt(np.average((logs - centre) ** 2, weights=counts)))
    low, high = logs[np.minimum(np.searchsorted(np.cumsum(counts), [0.25 * n, 0.75 * n]), logs.size - 1)]
    spread = float(high - low) / 1.34
    return 0.9 * (min(s, spread) if spread > 0 else s) * float(n ** (-1 / 5))


def _blurred(counts: Floats, kernel: Floats | None, sharp: NDArray[np.bool_], end: int) -> Floats:
    """Counts spread by the kernel, but for the sharp bins; what would pass bin `end` stays in it."""
    if kernel is None or not counts.any():
        return counts
    half = kernel.size // 2
    kept = np.where(sharp, counts[1:], 0.0)
    wide = np.convolve(counts[1:] - kept, kernel / kernel.sum())
    inside = wide[half : half + kept.size].copy()
    inside[0] += wide[:half].sum()
    inside[end - 1] += wide[half + end :].sum()
    inside[end:] = 0.0
    inside[inside < NOBODY] = 0.0
    return np.append(counts[0], kept + inside)


class Curves(NamedTuple):
    """At every bin: E_J, the probability S of being still out, and F̃ of having completed."""

    E: Floats
    S: Floats
    F: Floats


def curves(times: Floats, done: Floats, gone: Floats, out: Floats, lost: Floats, cost: float) -> Curves:
    """E_J = (∫₀ᵗ S + c(1 − F̃))/F̃ with Kaplan–Meier's S, for rows of counts."""
    returned = done + gone
    later = np.cumsum((returned + out)[:, ::-1], axis=1)[:, ::-1] + lost[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.where(later > 0, 1.0 / later, 0.0)
    S = np.cumprod(1.0 - returned * hazard, axis=1, dtype=np.float64)
    before = np.concatenate([np.ones((S.shape[0], 1)), S[:, :-1]], axis=1)
    F = np.cumsum(before * done * hazard, axis=1)
    waited = np.cumsum(before * np.diff(times, prepend=0.0), axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        E = np.where(F > 0, (waited + cost * (1.0 - F)) / F, np.inf)
    return Curves(E, S, F)


def curve_of(bins: Bins, cost: float) -> Curves:
    """E_J, S and F̃ of the bins themselves."""
    counts = (bins.completed[None], bins.failed[None], bins.censored[None])
    return Curves(*(each[0] for each in curves(bins.times, *counts, np.array([float(bins.lost)]), cost)))


def influence(bins: Bins, at: int, cost: float) -> Floats:
    """∂ log E_J(t) for one more completion, failure or censored probe in each bin (3, bins + 1), t that of bin `at`.

    A probe seen in bin i moves the hazards λ = d/n of the bins j ≤ i by (1{j = i and it returned} − λ_j)/n_j, and
    E_J = (W + c(1−F̃))/F̃ has W = Σ S₋ Δt, F̃ = Σ S₋ λ₁, S = Π (1 − λ). A lost probe counts as censored in the last bin.
    """
    done, gone = bins.completed[: at + 1], bins.failed[: at + 1]
    later = np.append(bins.completed + bins.failed + bins.censored, bins.lost)[::-1].cumsum()[::-1][: at + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = np.where(later > 0, 1.0 / later, 0.0)
        first, hazard = done * each, (done + gone) * each
        S = np.cumprod(1.0 - hazard)
        before = np.append(1.0, S[:-1])
        W, F = np.cumsum(before * np.diff(bins.times[: at + 1], prepend=0.0)), np.cumsum(before * first)
        rest = np.where(hazard < 1, 1.0 / (1.0 - hazard), 0.0)
        top = W[-1] + cost * (1.0 - F[-1])
        by_F = -cost / top - 1.0 / F[-1]  # ∂ log E_J / ∂F̃
        by_first = by_F * before * each
        by_hazard = -((W[-1] - W) / top + by_F * (F[-1] - F)) * rest * each
    fall = np.cumsum(first * by_first + hazard * by_hazard)
    moved = np.array([by_first + by_hazard - fall, by_hazard - fall, -fall])
    beyond = np.full((3, bins.times.size - at - 1), -fall[-1])
    return np.concatenate([moved, beyond], axis=1)
