"""A sample as counts in narrow bins of the logarithm of time, and E_J as a function of them.

A resample is a row of counts, and costs the same for a thousand probes as for ten million.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from latfit.errors import SampleError
from latfit.numbers import Bools, Floats, Ints
from latfit.restart.steps import StepCurves
from latfit.sample import LatencySample, Tally

BINS = ((1000, 512), (5000, 1024))  # up to so many probes, so many bins: narrow beside what is not known
MOST_BINS = 2048
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
    blur: _Blur | None = None

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
        size = next((bins for probes, bins in BINS if sample.n <= probes), MOST_BINS)
        edges = np.linspace(low, max(high, low + 1e-6), size + 1)
        width = float(edges[1] - edges[0])
        times = np.exp(edges[1:] - width / 2)
        sharp = times * h < sample.resolution

        kernel = np.exp(-0.5 * (np.arange(-size // 2, size // 2 + 1) * width / h) ** 2) if h > width / 4 else None
        shape = cls(np.append(0.0, times), np.empty(0), np.empty(0), np.empty(0), sample.lost, width)
        out = shape.counts(sample.censored.values, sample.censored.counts)
        # after the last one censored nobody is at risk: no return may be blurred beyond it
        beyond = sample.lost or not sample.censored.total or sample.censored.values[-1] < returned.values[-1]
        end = size if beyond else max(1, int(np.flatnonzero(out)[-1]))
        blur_ = _Blur(kernel, sharp, end)
        done, gone = (blur_(shape.counts(tally.values, tally.counts)) for tally in (sample.completed, sample.failed))
        return replace(shape, completed=done, failed=gone, censored=out, blur=blur_)

    def sharp(self, sample: LatencySample) -> Bins:
        """The sample in the same bins without any blur."""
        done, gone = (self.counts(tally.values, tally.counts) for tally in (sample.completed, sample.failed))
        return replace(self, completed=done, failed=gone)

    def counts(self, values: Floats, weights: Floats | Ints) -> Floats:
        """How many of the values lie in each bin."""
        size = self.times.size - 1
        low = np.log(self.times[1]) - self.width / 2
        at = ((np.log(np.maximum(values, self.times[1])) - low) / self.width).astype(np.intp)
        at = np.where(values > 0, np.clip(at, 0, size - 1) + 1, 0)
        return np.bincount(at, weights=weights, minlength=size + 1).astype(np.float64)


def silverman(sample: LatencySample) -> float:
    """Silverman's bandwidth 0.9 min(s, IQR/1.34) n^(−1/5) of the logarithms of the completions above 0."""
    first = int(np.searchsorted(sample.completed.values, 0.0, side="right"))
    above = Tally.trusted(sample.completed.values[first:], sample.completed.counts[first:])
    if not above.values.size:
        return 0.0
    logs = np.log(above.values)
    centre = np.average(logs, weights=above.counts)
    s = float(np.sqrt(np.average((logs - centre) ** 2, weights=above.counts)))
    low, high = np.log(above.quantiles([0.25, 0.75]))
    spread = float(high - low) / 1.34
    return 0.9 * (min(s, spread) if spread > 0 else s) * float(above.total ** (-1 / 5))


@dataclass(frozen=True)
class _Blur:
    """Counts spread by a kernel, but for the sharp bins; what would pass bin `end` stays in it."""

    kernel: Floats | None
    sharp: Bools
    end: int

    def __call__(self, counts: Floats) -> Floats:
        """The counts, blurred."""
        if self.kernel is None or not counts.any():
            return counts
        half = self.kernel.size // 2
        kept = np.where(self.sharp, counts[1:], 0.0)
        wide = np.convolve(counts[1:] - kept, self.kernel / self.kernel.sum())
        inside = wide[half : half + kept.size].copy()
        inside[0] += wide[:half].sum()
        inside[self.end - 1] += wide[half + self.end :].sum()
        inside[self.end :] = 0.0
        inside[inside < NOBODY] = 0.0
        return np.append(counts[0], kept + inside)


def curves(bins: Bins, done: Floats, gone: Floats, out: Floats, lost: Floats) -> StepCurves:
    """The curves of rows of counts in the bins."""
    return StepCurves.of_counts(bins.times[None], done, gone, out, lost)


def curve_of(bins: Bins) -> StepCurves:
    """The curve of the bins themselves, as one row."""
    counts = (bins.completed[None], bins.failed[None], bins.censored[None])
    return curves(bins, *counts, np.array([float(bins.lost)]))


def with_ratio(bins: Bins, share: float) -> StepCurves:
    """The curve of the bins where `share` times as many attempts would return; visible failures stay as they are.

    With S_f the Kaplan–Meier estimate of not failing, F̃ becomes s F̃ and S becomes (1 − s) S_f + s S.
    """
    curve = curve_of(bins)
    at_risk = np.append(bins.completed + bins.failed + bins.censored, bins.lost)[::-1].cumsum()[::-1][:-1]
    S_f = np.cumprod(1.0 - np.divide(bins.failed, at_risk, out=np.zeros_like(at_risk), where=at_risk > 0))
    W_f = np.cumsum(np.append(1.0, S_f[:-1]) * np.diff(bins.times, prepend=0.0))
    S, W = share * curve.S + (1 - share) * S_f, share * curve.W + (1 - share) * W_f
    return replace(curve, F=share * curve.F, S=S, W=W)


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
