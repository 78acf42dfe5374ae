"""Intervals for the optimal timeout and what it brings, and a smoother optimum."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.outliers import outlier_ratio
from latfit.restart.advice import MIN_COMPLETIONS
from latfit.sample import LatencySample
from latfit.uncertainty.bins import BINS, NOBODY, Bins, Floats, curve_of, curves, influence

Range = tuple[float, float]

RESAMPLES = 999
BLUR = 0.35  # of Silverman's bandwidth, for the bootstrap
SMOOTH = 1.0  # of Silverman's bandwidth, for the smoothed optimum
FEW_OUT = 5  # with fewer probes still out at the cutoff, resampling them does not tell how many there may be
MAX_SKEWNESS, REACH = 1.0, 3.0  # up to these a quantile by Cornish and Fisher rises with its probability
ROWS = 64  # resamples worked on at once, so that they stay in the cache


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals for the optimum of a sample; ∞ where no timeout is as good as any.

    `speed_up` is that over waiting until the cutoff; `smoothed_timeout` is the optimum of the sample
    blurred by Silverman's bandwidth, which has about half the regret of the exact one.
    """

    timeout: Range
    expected_duration: Range
    speed_up: Range
    smoothed_timeout: float | None
    level: float
    resamples: int


def _allowed(bins: Bins, done: Floats, resolution: float) -> NDArray[np.bool_]:
    """Where a timeout may lie: at least five completions at or below it, not below the clock's step."""
    late_enough = (bins.times > 0) & (bins.times * np.exp(bins.width) >= resolution)
    return np.asarray((np.cumsum(done, axis=1) >= MIN_COMPLETIONS - 1e-9) & late_enough)


def smoothed_timeout(sample: LatencySample, *, cost: float = 0.0) -> float | None:
    """The optimum of the sample blurred by Silverman's bandwidth; None where no timeout helps."""
    bins = Bins.of(sample, SMOOTH)
    E, S, _ = curve_of(bins, cost)
    E[~_allowed(bins, bins.completed[None], sample.resolution)[0]] = np.inf
    at = int(E.argmin())
    if not np.isfinite(E[at]) or S[at] < NOBODY:
        return None
    return _on_clock(float(bins.times[at]), sample.resolution)


def _on_clock(time: float, step: float) -> float:
    return max(1, round(time / step)) * step if step > 0 else time


def bootstrap(
    sample: LatencySample,
    timeout: float,
    expected_duration: float,
    speed_up: float,
    *,
    cost: float = 0.0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Intervals:
    """Intervals for the optimum of `sample`: its `timeout` (∞ for none), E_J there, and the speed-up over the cutoff.

    The timeout: percentiles of the optima of Poisson resamples of the blurred sample. E_J: the
    bias-corrected and accelerated interval on the log scale at the fixed timeout, moved by the
    bootstrap estimate of the optimism, since the minimum over t is biased low. The speed-up over the
    cutoff: the same.
    """
    bins = Bins.of(sample, BLUR)
    at = int(np.clip(np.searchsorted(bins.times, timeout), 0, BINS))
    best, least, here, at_end = (np.empty(resamples) for _ in range(4))
    for start in range(0, resamples, ROWS):
        rows = slice(start, min(start + ROWS, resamples))
        shape = (rows.stop - rows.start, BINS + 1)
        done, gone, out = (
            rng.poisson(each, shape).astype(np.float64) for each in (bins.completed, bins.failed, bins.censored)
        )
        lost = rng.poisson(bins.lost, shape[0]).astype(np.float64)
        E, S, _ = curves(bins.times, done, gone, out, lost, cost)
        here[rows], at_end[rows] = E[:, at], E[:, -1]
        E[~_allowed(bins, done, sample.resolution)] = np.inf
        k = E.argmin(axis=1)
        each = np.arange(shape[0])
        least[rows] = E[each, k]
        none = (S[each, k] < NOBODY) | ~np.isfinite(E[each, k])
        best[rows] = np.where(none, np.inf, bins.times[k])
    E, a = curve_of(bins, cost).E, _accelerations(sample, timeout, cost)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may complete nothing; _bca leaves it out
        faster = _bca(speed_up, _Replicates(at_end / here, at_end / least, float(E[-1] / E[at])), a[1], level)
    duration = _Replicates(here, least, float(E[at]))
    return Intervals(
        timeout=_percentiles(best, timeout, level, sample.resolution),
        expected_duration=_bca(expected_duration, duration, a[0], level),
        speed_up=(max(1.0, faster[0]), max(faster[1], _speed_up_if_more_are_lost(sample, bins, cost, level))),
        smoothed_timeout=smoothed_timeout(sample, cost=cost),
        level=level,
        resamples=resamples,
    )


def _percentiles(values: Floats, estimate: float, level: float, step: float) -> Range:
    """The percentiles, on the clock's steps; ∞ where so many resamples need no timeout."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    low, high = min(float(low), estimate), max(float(high), estimate)  # binning may put the estimate just outside
    if not step:
        return low, high
    floor = max(1.0, np.floor(low / step + 1e-9)) * step if np.isfinite(low) else np.inf
    return floor, float(np.ceil(high / step - 1e-9) * step if np.isfinite(high) else np.inf)


def _accelerations(sample: LatencySample, timeout: float, cost: float) -> tuple[float, float]:
    """Efron's a = Σ l³ / (6 (Σ l²)^(3/2)) for E_J and for the speed-up, l the influence of each probe.

    It is a sixth of the skewness, and at most 1/6, of what is linear in the probes.
    """
    bins = Bins.of(sample, 0.0)
    here = influence(bins, int(np.clip(np.searchsorted(bins.times, timeout), 0, BINS)), cost)
    probes = np.array([bins.completed, bins.failed, bins.censored])

    def a(influence: Floats) -> float:
        square, cube = ((probes * influence**k).sum() + bins.lost * influence[2, -1] ** k for k in (2, 3))
        return float(cube / (6 * square**1.5)) if square > 0 else 0.0

    return a(here), a(influence(bins, BINS, cost) - here)


def _speed_up_if_more_are_lost(sample: LatencySample, bins: Bins, cost: float, level: float) -> float:
    """The speed-up if ρ were at the upper end of its interval; 0 where enough are out for a bootstrap.

    A sample without outliers has none in any resample, though some may be lost. Scaling F̃ to sF̃, s = (1−ρ′)/(1−ρ),
    makes t − W into s(t − W) with W = ∫₀ᵗ S.
    """
    ratio = outlier_ratio(sample, level=level)
    if ratio.estimate * ratio.n > FEW_OUT - 0.5:
        return 0.0
    E, S, F = curve_of(bins, cost)
    s = (1 - ratio.high) / (1 - float(S[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        W = E * F - cost * (1 - F)
        scaled = np.where(F > 0, (bins.times - s * (bins.times - W) + cost * (1 - s * F)) / (s * F), np.inf)
    chosen = scaled[_allowed(bins, bins.completed[None], sample.resolution)[0]]
    return float(scaled[-1] / chosen.min()) if chosen.size else 0.0


class _Replicates(NamedTuple):
    """Resampled values at the fixed timeout and at the chosen one, and the value of what was resampled."""

    fixed: Floats
    chosen: Floats
    centre: float


def _bca(estimate: float, values: _Replicates, a: float, level: float) -> Range:
    """The bias-corrected and accelerated interval of the logarithm (Efron 1987), minus the optimism of choosing t.

    z₀ = Φ⁻¹(P(resampled < resampled from)) and the quantile at z₀ + w/(1 − a w), w = z₀ ± z. Quantiles are
    those of Cornish and Fisher by mean, spread and skewness of the resampled, which vary less than order statistics.
    """
    good = np.isfinite(values.fixed) & np.isfinite(values.chosen) & (values.fixed > 0) & (values.chosen > 0)
    if not np.isfinite(estimate) or not 0 < values.centre < np.inf or good.sum() < 20:
        return 0.0, np.inf
    fixed, chosen = np.log(values.fixed[good]), np.log(values.chosen[good])
    mean, s = float(fixed.mean()), float(fixed.std())
    centre = np.log(estimate) - float((chosen - fixed).mean())
    if s == 0:
        return min(float(np.exp(centre)), estimate), max(float(np.exp(centre)), estimate)
    sixth = float(np.clip(np.mean(((fixed - mean) / s) ** 3), -MAX_SKEWNESS, MAX_SKEWNESS)) / 6
    off = (np.log(values.centre) - mean) / s
    z_0, z = float(np.clip(off + sixth * (1 - off**2), -1, 1)), NormalDist().inv_cdf((1 + level) / 2)
    ends = []
    for w in (z_0 - z, z_0 + z):
        u = float(np.clip(z_0 + w / (1 - a * w), -REACH, REACH))
        ends.append(float(np.exp(centre + s * (u + sixth * (u**2 - 1) - off))))
    return min(ends[0], estimate), max(ends[1], estimate)
