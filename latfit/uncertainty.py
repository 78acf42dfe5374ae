"""How sure the optimal timeout is: bootstrap intervals, and a smoother optimum.

Latencies are put into narrow bins of the logarithm of time, so that a resample is a row of counts
and costs the same for a thousand probes as for ten million. The timeout's interval is the percentile
interval of a *smoothed* bootstrap: the resamples are drawn from the sample blurred a little, because
the optimum is a cube-root estimator (Kim and Pollard 1990), for which the plain bootstrap fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from latfit.errors import SampleError
from latfit.restart.advice import MIN_COMPLETIONS
from latfit.sample import LatencySample, Tally

Floats = NDArray[np.float64]
Range = tuple[float, float]

BINS = 2048
RESAMPLES = 999
BLUR = 0.35  # of Silverman's bandwidth, for the bootstrap
SMOOTH = 1.0  # of Silverman's bandwidth, for the smoothed optimum
NOBODY = 1e-9  # a share still out below which a timeout is none
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


@dataclass(frozen=True)
class _Bins:
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
    def of(cls, sample: LatencySample, blur: float) -> _Bins:
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
        blurred = [_blurred(counts(tally), kernel, sharp) for tally in (sample.completed, sample.failed)]
        return cls(np.append(0.0, times), blurred[0], blurred[1], counts(sample.censored), sample.lost, width)


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


def _blurred(counts: Floats, kernel: Floats | None, sharp: NDArray[np.bool_]) -> Floats:
    """Counts spread by the kernel, but for the sharp bins; what would leave at an end stays in the last bin."""
    if kernel is None or not counts.any():
        return counts
    half = kernel.size // 2
    kept = np.where(sharp, counts[1:], 0.0)
    wide = np.convolve(counts[1:] - kept, kernel / kernel.sum())
    inside = wide[half : half + kept.size].copy()
    inside[0] += wide[:half].sum()
    inside[-1] += wide[half + kept.size :].sum()
    return np.append(counts[0], kept + np.maximum(inside, 0.0))


def _curves(times: Floats, done: Floats, gone: Floats, out: Floats, lost: Floats, cost: float) -> tuple[Floats, Floats]:
    """E_J at every bin, and S, for rows of counts: E_J = (∫₀ᵗ S + c(1 − F̃))/F̃ with Kaplan–Meier's S."""
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
    return E, S


def _curve_of(bins: _Bins, cost: float) -> tuple[Floats, Floats]:
    """E_J and S of the bins themselves."""
    E, S = _curves(
        bins.times,
        bins.completed[None],
        bins.failed[None],
        bins.censored[None],
        np.array([float(bins.lost)]),
        cost,
    )
    return E[0], S[0]


def _allowed(bins: _Bins, done: Floats, resolution: float) -> NDArray[np.bool_]:
    """Where a timeout may lie: at least five completions at or below it, not below the clock's step."""
    late_enough = (bins.times > 0) & (bins.times * np.exp(bins.width) >= resolution)
    return np.asarray((np.cumsum(done, axis=1) >= MIN_COMPLETIONS - 1e-9) & late_enough)


def smoothed_timeout(sample: LatencySample, *, cost: float = 0.0) -> float | None:
    """The optimum of the sample blurred by Silverman's bandwidth; None where no timeout helps."""
    bins = _Bins.of(sample, SMOOTH)
    E, S = _curve_of(bins, cost)
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
    delta method on the log scale at the fixed timeout, moved by the bootstrap estimate of the
    optimism, since the minimum over t is biased low. The speed-up over the cutoff: the same.
    """
    bins = _Bins.of(sample, BLUR)
    at = int(np.clip(np.searchsorted(bins.times, timeout), 0, BINS))
    best, least, here, at_end = (np.empty(resamples) for _ in range(4))
    for start in range(0, resamples, ROWS):
        rows = slice(start, min(start + ROWS, resamples))
        shape = (rows.stop - rows.start, BINS + 1)
        done, gone, out = (
            rng.poisson(each, shape).astype(np.float64) for each in (bins.completed, bins.failed, bins.censored)
        )
        lost = rng.poisson(bins.lost, shape[0]).astype(np.float64)
        E, S = _curves(bins.times, done, gone, out, lost, cost)
        here[rows], at_end[rows] = E[:, at], E[:, -1]
        E[~_allowed(bins, done, sample.resolution)] = np.inf
        k = E.argmin(axis=1)
        each = np.arange(shape[0])
        least[rows] = E[each, k]
        none = (S[each, k] < NOBODY) | ~np.isfinite(E[each, k])
        best[rows] = np.where(none, np.inf, bins.times[k])
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample may complete nothing; _delta leaves it out
        faster = _delta(speed_up, at_end / here, at_end / least, level)
    return Intervals(
        timeout=_percentiles(best, timeout, level, sample.resolution),
        expected_duration=_delta(expected_duration, here, least, level),
        speed_up=(max(1.0, faster[0]), faster[1]),
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


def _delta(estimate: float, fixed: Floats, chosen: Floats, level: float) -> Range:
    """exp(log estimate − optimism ± z s): s is the spread at the fixed timeout, the optimism that of choosing it."""
    good = np.isfinite(fixed) & np.isfinite(chosen) & (fixed > 0) & (chosen > 0)
    if not np.isfinite(estimate) or good.sum() < 20:
        return 0.0, np.inf
    z = NormalDist().inv_cdf((1 + level) / 2)
    s = float(np.log(fixed[good]).std())
    centre = np.log(estimate) - float((np.log(chosen[good]) - np.log(fixed[good])).mean())
    return min(float(np.exp(centre - z * s)), estimate), max(float(np.exp(centre + z * s)), estimate)
