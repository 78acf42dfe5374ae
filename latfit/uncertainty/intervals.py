"""Intervals for the optimal timeout and what it brings, and a smoother optimum."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from latfit.numbers import Floats
from latfit.outliers import OutlierRatio, outlier_ratio
from latfit.restart.steps import StepCurves
from latfit.sample import LatencySample
from latfit.uncertainty.bins import NOBODY, Bins, curve_of, curves, influence
from latfit.uncertainty.blocks import Blocks

Range = tuple[float, float]

BLUR = 0.35  # of Silverman's bandwidth, for the bootstrap
SMOOTH = 1.0  # of Silverman's bandwidth, for the smoothed optimum
FEW_OUT = 5  # with fewer probes still out at the cutoff, resampling them does not tell how many there may be
MAX_SKEWNESS, REACH = 1.0, 3.0  # up to these a quantile by Cornish and Fisher rises with its probability
ROWS = 64  # resamples worked on at once, so that they stay in the cache


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals for the optimum of a sample; ∞ where no timeout is as good as any.

    `speed_up` is that over waiting until the cutoff; `optimism` is by how much the least of a noisy curve lies below
    the truth, as a share; `smoothed_timeout` is the optimum of the sample blurred by Silverman's bandwidth. `blocks`
    is how many blocks of consecutive probes were resampled, None where probes were.
    """

    timeout: Range
    expected_duration: Range
    speed_up: Range
    optimism: float
    smoothed_timeout: float | None
    level: float
    resamples: int
    blocks: int | None = None


def smoothed_timeout(sample: LatencySample, *, cost: float = 0.0) -> float | None:
    """The optimum of the sample blurred by Silverman's bandwidth; None where no timeout helps."""
    bins = Bins.of(sample, SMOOTH)
    curve = curve_of(bins)
    k, least = curve.exact(cost, curve.allowed(sample.resolution))
    if not np.isfinite(least[0]) or curve.S[0, k[0]] < NOBODY:
        return None
    return _on_clock(float(bins.times[k[0]]), sample.resolution)


def _on_clock(time: float, step: float) -> float:
    return max(1, round(time / step)) * step if step > 0 else time


def bootstrap(
    sample: LatencySample,
    timeout: float,
    expected_duration: float,
    speed_up: float,
    *,
    cost: float = 0.0,
    resamples: int,
    level: float = 0.95,
    rng: np.random.Generator,
    blocks: Blocks | None = None,
) -> Intervals:
    """Intervals for the optimum of `sample`: its `timeout` (∞ for none), E_J there, and the speed-up over the cutoff.

    The timeout: percentiles of the optima of Poisson resamples of the blurred sample. E_J: the bias-corrected and
    accelerated interval on the log scale at the fixed timeout, moved by the bootstrap estimate of the optimism, since
    the chosen minimum is biased low. The speed-up over the cutoff: the same. With `blocks`, blocks of consecutive
    probes are resampled instead of probes, which holds where slow ones follow slow ones.
    """
    bins = Bins.of(sample, BLUR)
    last = bins.times.size - 1
    at = int(np.clip(np.searchsorted(bins.times, timeout), 0, last))
    best, chosen, here, at_end = (np.empty(resamples) for _ in range(4))
    for start in range(0, resamples, ROWS):
        rows = slice(start, min(start + ROWS, resamples))
        size = rows.stop - rows.start
        curve = curves(bins, *(_drawn(bins, size, rng) if blocks is None else blocks.drawn(bins, size, rng)))
        E, each = curve.E_J(cost), np.arange(size)
        here[rows], at_end[rows] = E[:, at], E[:, -1]
        allowed = curve.allowed(sample.resolution * np.exp(-bins.width))
        floored = curve.with_outliers(0.5 / (curve.probes + 1))
        k, least = floored.exact(cost, allowed)
        none = (floored.S[each, k] < NOBODY) | ~np.isfinite(least)
        best[rows] = np.where(none, np.inf, bins.times[k])
        chosen[rows] = E[each, curve.careful(cost, allowed)[0]]
    E, a = curve_of(bins).E_J(cost)[0], _accelerations(sample, timeout, cost)
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may complete nothing; _bca leaves it out
        faster, _ = _bca(speed_up, _Replicates(at_end / here, at_end / chosen, float(E[-1] / E[at])), a[1], level)
    duration, optimism = _bca(expected_duration, _Replicates(here, chosen, float(E[at])), a[0], level)
    low, high = _percentiles(best, timeout, level, sample.resolution)
    few = _if_few_are_out(sample, bins, cost, level)
    if few is not None:
        low, high = min(low, few.timeout[0]), max(high, few.timeout[1])
        faster = (min(faster[0], few.speed_up[0]), max(faster[1], few.speed_up[1]))
    return Intervals(
        timeout=(low, high),
        expected_duration=duration,
        speed_up=(max(1.0, faster[0]), faster[1]),
        optimism=optimism,
        smoothed_timeout=smoothed_timeout(sample, cost=cost),
        level=level,
        resamples=resamples,
        blocks=None if blocks is None else blocks.count,
    )


def _drawn(bins: Bins, size: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
    """Poisson counts around those of the bins."""
    shape = (size, bins.times.size)
    done, gone, out = (rng.poisson(each, shape).astype(np.float64) if each.any() else np.zeros(shape)
                       for each in (bins.completed, bins.failed, bins.censored))  # fmt: skip
    return done, gone, out, rng.poisson(bins.lost, size).astype(np.float64)


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
    last = bins.times.size - 1
    here = influence(bins, int(np.clip(np.searchsorted(bins.times, timeout), 0, last)), cost)
    probes = np.array([bins.completed, bins.failed, bins.censored])

    def a(influence: Floats) -> float:
        square, cube = ((probes * influence**k).sum() + bins.lost * influence[2, -1] ** k for k in (2, 3))
        return float(cube / (6 * square**1.5)) if square > 0 else 0.0

    return a(here), a(influence(bins, last, cost) - here)


class _FewOut(NamedTuple):
    """What the ends of the interval of ρ make of the timeout and the speed-up."""

    timeout: Range
    speed_up: Range


def _if_few_are_out(sample: LatencySample, bins: Bins, cost: float, level: float) -> _FewOut | None:
    """The optima if ρ were at either end of its interval; None where enough are out for a bootstrap.

    A sample without outliers has none in any resample, though some may be lost.
    """
    ratio: OutlierRatio = outlier_ratio(sample, level=level)
    if ratio.estimate * ratio.n > FEW_OUT - 0.5:
        return None
    curve, ends, gains = curve_of(bins), [], []
    for rho in (ratio.high, ratio.low):
        scaled: StepCurves = curve.with_outliers(np.array([rho]), exactly=True)
        k, least = scaled.exact(cost, curve.allowed(sample.resolution))
        none = scaled.S[0, k[0]] < NOBODY or not np.isfinite(least[0])
        ends.append(np.inf if none else float(bins.times[k[0]]))
        E = scaled.E_J(cost)[0, -1]
        gains.append(float(E / least[0]) if 0 < least[0] < np.inf and np.isfinite(E) else 1.0)
    return _FewOut((min(ends), max(ends)), (min(gains), max(gains)))


class _Replicates(NamedTuple):
    """Resampled values at the fixed timeout and at the chosen one, and the value of what was resampled."""

    fixed: Floats
    chosen: Floats
    centre: float


def _bca(estimate: float, values: _Replicates, a: float, level: float) -> tuple[Range, float]:
    """The bias-corrected and accelerated interval of the logarithm (Efron 1987) less the optimism, and the optimism.

    z₀ = Φ⁻¹(P(resampled < resampled from)) and the quantile at z₀ + w/(1 − a w), w = z₀ ± z. Quantiles are
    those of Cornish and Fisher by mean, spread and skewness of the resampled, which vary less than order statistics.
    """
    good = np.isfinite(values.fixed) & np.isfinite(values.chosen) & (values.fixed > 0) & (values.chosen > 0)
    if not np.isfinite(estimate) or not 0 < values.centre < np.inf or good.sum() < 20:
        return (0.0, np.inf), 0.0
    fixed, chosen = np.log(values.fixed[good]), np.log(values.chosen[good])
    mean, s = float(fixed.mean()), float(fixed.std())
    shift = float((chosen - fixed).mean())
    centre, optimism = np.log(estimate) - shift, float(np.expm1(-shift))
    if s == 0:
        return (min(float(np.exp(centre)), estimate), max(float(np.exp(centre)), estimate)), optimism
    sixth = float(np.clip(np.mean(((fixed - mean) / s) ** 3), -MAX_SKEWNESS, MAX_SKEWNESS)) / 6
    off = (np.log(values.centre) - mean) / s
    z_0, z = float(np.clip(off + sixth * (1 - off**2), -1, 1)), NormalDist().inv_cdf((1 + level) / 2)
    ends = []
    for w in (z_0 - z, z_0 + z):
        u = float(np.clip(z_0 + w / (1 - a * w), -REACH, REACH))
        ends.append(float(np.exp(centre + s * (u + sixth * (u**2 - 1) - off))))
    return (min(ends[0], estimate), max(ends[1], estimate)), optimism
