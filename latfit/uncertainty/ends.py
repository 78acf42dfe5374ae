"""From resampled values to the ends of intervals, and what few outliers and the unseen tail add to them."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import scipy
from scipy.special import betainc, betaincinv

from latfit.numbers import Floats
from latfit.outliers import OutlierRatio
from latfit.sample import LatencySample, Tally
from latfit.uncertainty.bins import NOBODY, Bins, curve_of, with_ratio

Range = tuple[float, float]
Centred = tuple[float, float, float]  # low, estimate, high

FEW_OUT = 5  # with fewer out at the cutoff, the best timeout at either end of the interval of ρ counts too
MAX_SKEWNESS, REACH = 1.0, 3.0  # up to these a quantile by Cornish and Fisher rises with its probability


class Replicates(NamedTuple):
    """Resampled values at the fixed timeout, the value of what was resampled, and the shift (log) of the chosen.

    Of the shift the most and the least that it may be.
    """

    fixed: Floats
    centre: float
    shift: Range


def corrected(estimate: float, values: Replicates, a: float, level: float, stretch: float) -> tuple[Centred, float]:
    """The bias-corrected and accelerated interval of the logarithm (Efron 1987) less the optimism, and the optimism.

    z₀ = Φ⁻¹(P(resampled < resampled from)) and the quantile at z₀ + w/(1 − a w), w = z₀ ± z. Quantiles are
    those of Cornish and Fisher by mean, spread and skewness of the resampled, which vary less than order statistics.
    The spread is taken `stretch` times. The optimism is taken in the middle of what it may be, for each end as that
    moves it outwards.
    """
    good = np.isfinite(values.fixed) & (values.fixed > 0)
    if not np.isfinite(estimate) or not 0 < values.centre < np.inf or good.sum() < 20:
        return (0.0, estimate, np.inf), 0.0
    fixed = np.log(values.fixed[good])
    mean, s = float(fixed.mean()), float(fixed.std())
    shift = sum(values.shift) / 2
    middle, optimism = float(estimate * np.exp(-shift)), float(np.expm1(-shift))
    if s == 0:
        return (min(middle, estimate), middle, max(middle, estimate)), optimism
    sixth = float(np.clip(np.mean(((fixed - mean) / s) ** 3), -MAX_SKEWNESS, MAX_SKEWNESS)) / 6
    off = (np.log(values.centre) - mean) / s
    z_0, z = float(np.clip(off + sixth * (1 - off**2), -1, 1)), NormalDist().inv_cdf((1 + level) / 2)
    ends = []
    for w, moved in zip((z_0 - z, z_0 + z), values.shift, strict=True):
        u = float(np.clip(z_0 + w / (1 - a * w), -REACH, REACH))
        ends.append(float(estimate * np.exp(stretch * s * (u + sixth * (u**2 - 1) - off) - moved)))
    return (ends[0], middle, ends[1]), optimism


def percentiles(values: Floats, estimate: float, level: float, stretch: float) -> Range:
    """The percentiles, `stretch` times as far from the estimate; ∞ where so many resamples need no timeout."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(estimate * (low / estimate) ** stretch), float(estimate * (high / estimate) ** stretch)


def on_steps(low: float, high: float, step: float) -> Range:
    """The range on the clock's steps."""
    if not step:
        return low, high
    floor = max(1.0, float(np.floor(low / step + 1e-9))) * step if np.isfinite(low) else np.inf
    return floor, float(np.ceil(high / step - 1e-9) * step if np.isfinite(high) else np.inf)


def tail_end(sample: LatencySample, E: float, level: float) -> float:
    """The latest that the best timeout may be, where it may lie beyond the last completion L.

    If it is at t > L then E_J(t) ≤ E_J(L), so the share that completes after L is at least (1/E_J) ∫_L^t S du: one
    completion in E_J seconds at risk. That none was seen has the probability exp(−(seconds at risk after L)/E_J): t is
    where this is (1 − level)/2, and ∞ where so many seconds were never seen.
    """
    last = float(sample.completed.values[-1])
    ends = Tally.sum([sample.failed, sample.censored])
    later = ends.values > last
    values, counts = ends.values[later] - last, ends.counts[later]
    at_risk = np.append(counts[::-1].cumsum()[::-1], 0) + float(sample.lost)
    seen = np.append(0.0, np.cumsum(at_risk[:-1] * np.diff(values, prepend=0.0)))
    needed = -np.log((1 - level) / 2) * E
    before = int(np.searchsorted(seen, needed, side="right")) - 1
    if not at_risk[before]:
        return np.inf
    return float(last + np.append(0.0, values)[before] + (needed - seen[before]) / at_risk[before])


def unseen(sample: LatencySample, bins: Bins, timeout: float, cost: float, level: float) -> float:
    """By how much completions after the timeout t, of which none was seen, may shorten waiting until the cutoff T.

    With m at risk after t, that none completes has the probability (1 − q)ᵐ where a share q of them would; it is
    (1 − level)/2 for q = 1 − ((1 − level)/2)^(1/m). If they do so at once, F̃(T) becomes F̃ + q S(t), and ∫ₜᵀ S a share
    1 − q of what it is. 1 where completions after t were seen: then those are resampled.
    """
    later = Tally.sum([sample.failed, sample.censored])
    out = int(later.counts[later.values > timeout].sum()) + sample.lost
    if not out or timeout < sample.completed.values[-1]:
        return 1.0
    curve = curve_of(bins.sharp(sample))
    k = max(0, int(np.searchsorted(bins.times, timeout, side="right")) - 1)
    F, S, W, waiting = curve.F[0, -1], curve.S[0, k], curve.W[0, k], curve.W[0, -1]
    q = 1.0 - ((1 - level) / 2) ** (1 / out)
    more = F + q * S
    return float((W + (1 - q) * (waiting - W) + cost * (1 - more)) / more * F / (waiting + cost * (1 - F)))


class ByRatio(NamedTuple):
    """The optima at the ends of the interval of ρ, and the factors that these make of E_J and of the speed-up."""

    timeout: Range
    duration: Range
    speed_up: Range


def by_ratio(sample: LatencySample, ratio: OutlierRatio, bins: Bins, timeout: float, cost: float) -> ByRatio:
    """What ρ at either end of its interval would make of the sample."""
    curve, best, figures = curve_of(bins), [], []
    first = bins.times[np.flatnonzero(bins.completed)[0]]  # the middle of a bin, in which the timeout may lie too
    t = np.array([max(timeout, first) if np.isfinite(timeout) else bins.times[-1]])
    for rho in (_low(ratio), ratio.estimate, ratio.high):
        scaled = with_ratio(bins, (1 - rho) / (1 - ratio.estimate))
        k, least = scaled.exact(cost, curve.allowed(sample.resolution))
        none = scaled.S[0, k[0]] < NOBODY or not np.isfinite(least[0])
        best.append(np.inf if none else float(bins.times[k[0]]))
        E = float(scaled.E_J_at(t, cost)[0])
        figures.append((E, _factor(float(scaled.E_J(cost)[0, -1]), E)))
    (E_low, s_low), (E, s), (E_high, s_high) = figures
    durations, speeds = ((_factor(low, middle), _factor(high, middle))
                         for low, middle, high in ((E_low, E, E_high), (s_low, s, s_high)))  # fmt: skip
    return ByRatio((min(best), max(best)), durations, speeds)


def _factor(figure: float, of: float) -> float:
    """How many times another a figure is; of one that a clock shows as 0, once."""
    return figure / of if of else 1.0


def _low(ratio: OutlierRatio) -> float:
    """The lower end of the interval of ρ: where fewer than five out were counted, the mid-P one (Lancaster 1961).

    Wilson's lower end is too high there: where fewer than five are to be expected his interval covers as little as
    83.8 %, with the other end at least 92.8 %. It is where P(K > k) + ½ P(K = k) = ½ I_ρ(k, n−k+1) + ½ I_ρ(k+1, n−k)
    is (1 − level)/2, I the incomplete beta function.
    """
    k, n, tail = ratio.count, ratio.n, (1 - ratio.level) / 2
    if ratio.method != "wilson" or not 0 < k < min(FEW_OUT, n):
        return ratio.low

    def off(rho: float) -> float:
        return float(betainc(k, n - k + 1, rho) + betainc(k + 1, n - k, rho) - 2 * tail)

    return float(
        scipy.optimize.bisect(off, float(betaincinv(k, n - k + 1, tail)), float(betaincinv(k + 1, n - k, tail)))
    )


def combined(ends: Centred, factors: Range) -> Centred:
    """The interval of a product of two independent estimates from those of each (Zou and Donner 2008).

    On the log scale, the distances of the ends from the estimate add in quadrature.
    """
    low, middle, high = ends
    with np.errstate(divide="ignore", invalid="ignore"):
        down, up = (float(np.hypot(np.log(end / middle), np.log(factor)))
                    for end, factor in zip((low, high), factors, strict=True))  # fmt: skip
    if np.isnan(down) or np.isnan(up):
        return ends
    return middle * float(np.exp(-down)), middle, middle * float(np.exp(up))
