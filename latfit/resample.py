"""The one bootstrap: resamples of probes, of blocks of consecutive probes or of whole jobs, and their intervals.

A resample counts every probe, block or job a Poisson number of times. The interval of the best timeout is that of a
*smoothed* bootstrap: the resamples are drawn from the sample blurred a little, because the optimum is a cube-root
estimator (Kim and Pollard 1990), for which the plain bootstrap fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.curve import NOTHING, Counts, StepCurves, expected_duration, hazards, masses, survival
from latfit.errors import SampleError
from latfit.numbers import Bools, Floats, Ints
from latfit.sample import CENSORED, COMPLETED, FAILED, LOST, LatencySample, Tally

if TYPE_CHECKING:
    from latfit.outliers import OutlierRatio

RESAMPLES = 199  # the default number: intervals were calibrated with it
LEVEL = 0.95  # the confidence of every interval
RESAMPLED_ROWS = 64  # resamples that are computed at once, so that they stay in the cache
MAX_RESAMPLED_TIMES = 2048  # times of a resampled curve, or bins of a blurred one
NOBODY = 1e-9  # a smaller expected count or share is 0: at the far ends of a blur 1/n would overflow
FEW_OUT = 5  # with fewer out at the cutoff, the best timeouts at both ends of the interval of ρ count too

Limits = tuple[float, float]
Centred = tuple[float, float, float]  # low, estimate, high
Replicates = tuple[Floats, Limits]  # logs of resampled over original values; the largest and smallest shift by choosing


def interval(values: Floats, level: float = LEVEL) -> Floats:
    """The ends (2, …) of the central share `level` of resampled values, along the last axis.

    Each end is the smallest value with the share (1 ∓ level)/2 of the values at or below it, so it is ∞ if enough
    values are. NaN values do not count.
    """
    ordered = np.sort(values, axis=-1)  # NaN comes last
    count = np.count_nonzero(~np.isnan(values), axis=-1)
    shares = np.multiply.outer([(1 - level) / 2, (1 + level) / 2], count)
    index = np.maximum(np.ceil(shares - 1e-9).astype(np.intp) - 1, 0)
    return np.stack([np.take_along_axis(ordered, at[..., None], axis=-1)[..., 0] for at in index])


def weights(expected: Floats | Ints, size: int, rng: np.random.Generator) -> Floats:
    """(size, …) how often each unit is drawn: Poisson counts with these expectations, many of which may be 0."""
    drawn = np.zeros((size, *expected.shape))
    some = expected > 0
    drawn[:, some] = rng.poisson(expected[some], (size, int(np.count_nonzero(some))))
    return drawn


def resamples(sample: LatencySample, count: int, rng: np.random.Generator) -> Iterator[LatencySample]:
    """`count` resamples; those of a small sample may have no completion."""
    for _ in range(count):
        yield _counted_anew(sample, lambda counts: weights(counts, 1, rng)[0])


def thinned(sample: LatencySample, size: int, rng: np.random.Generator) -> LatencySample:
    """`size` probes of a larger sample, drawn without replacement."""
    chosen = rng.choice(sample.n, size, replace=False, shuffle=False)

    def counted(counts: Floats) -> Ints:
        return np.bincount(np.searchsorted(np.cumsum(counts), chosen, side="right"), minlength=counts.size)

    return _counted_anew(sample, counted)


def _counted_anew(sample: LatencySample, count: Callable[[Floats], Any]) -> LatencySample:
    tallies = (sample.completed, sample.failed, sample.censored)
    counts = np.concatenate([*(tally.counts for tally in tallies), [sample.lost]])
    ends = np.cumsum([tally.counts.size for tally in tallies])
    *parts, lost = np.split(np.asarray(count(counts), dtype=np.int64), ends)
    drawn = (Tally.trusted(t.values[n > 0], n[n > 0]) for t, n in zip(tallies, parts, strict=True))
    completed, failed, censored = drawn
    return replace(sample, completed=completed, failed=failed, censored=censored, lost=int(lost[0]))


def variation_interval(sample: LatencySample, rng: np.random.Generator) -> Limits:
    """The interval of the coefficient of variation of the latencies that completed."""
    counts = sample.completed.counts.astype(np.float64)
    sums = [counts, *(counts * sample.completed.values**n for n in (1, 2))]
    if counts.size > 4096:  # of a large sample only the largest latencies matter one by one: group the others
        groups = np.linspace(0, counts.size - 2048, 2048, endpoint=False).astype(np.int64)
        starts = np.append(groups, np.arange(counts.size - 2048, counts.size))
        sums = [np.add.reduceat(values, starts) for values in sums]
    drawn = weights(sums[0], RESAMPLES, rng)
    n, total, square = (drawn @ (values / sums[0]) for values in sums)
    low, high = interval(np.sqrt(np.maximum(n * square / np.where(total > 0, total, 1.0) ** 2 - 1, 0.0)))
    return float(low), float(high)


def resampled_curves(
    counts: Counts, at: Sequence[float], rng: np.random.Generator, *, count: int = RESAMPLES
) -> Iterator[StepCurves]:
    """The curves of resamples of one row, in blocks; if there are many times, those other than `at` are merged."""
    if counts.times.size > MAX_RESAMPLED_TIMES:
        counts = counts.merged(np.searchsorted(counts.times[0], at, side="right"), MAX_RESAMPLED_TIMES)
    for start in range(0, count, RESAMPLED_ROWS):
        size = min(RESAMPLED_ROWS, count - start)
        yield replace(_drawn(counts, size, rng), lost=weights(counts.lost, size, rng)[:, 0]).curves()


def _drawn(counts: Counts, size: int, rng: np.random.Generator) -> Counts:
    """Rows drawn from one row of expected counts, all with its lost probes."""
    parts = (counts.completed, counts.failed, counts.censored)
    completed, failed, censored = (weights(part[0], size, rng) for part in parts)
    return Counts(counts.times, completed, failed, censored, np.broadcast_to(counts.lost, size))


# The best timeout of a sample and what it brings


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals for the optimum of a sample; ∞ where no timeout is as good as any.

    `timeout` is the interval of the best timeout, `expected_duration` of E_J at the chosen timeout, and `speed_up`
    of its gain over waiting until the cutoff. `optimism` is the relative bias of the minimum of a noisy curve. `blocks`
    is the number of blocks of consecutive probes that were resampled, None if probes were.
    """

    timeout: Limits
    expected_duration: Limits
    speed_up: Limits
    optimism: float
    blocks: int | None = None


def bootstrap(
    sample: LatencySample,
    timeout: float,
    expected_duration: float,
    speed_up: float,
    *,
    cost: float = 0.0,
    resamples: int = RESAMPLES,
    rng: np.random.Generator,
    blocks: Blocks | None = None,
) -> Intervals:
    """Intervals for the best timeout, for E_J at the chosen `timeout` (∞ for none), and for its speed-up.

    The best timeout: percentiles of the optima of Poisson resamples of the blurred sample, and every timeout at which
    E_J is not clearly above its minimum; beyond the last completion as far as the log cannot rule out (`tail_limit`).
    E_J and the speed-up: the bias-corrected and accelerated interval on the log scale at the fixed timeout, shifted by
    the bootstrap estimate of the optimism, since a chosen minimum is biased low. The share that is out at the end is
    not resampled, which would say nothing if it is small; the interval of ρ is combined with the rest instead. With
    `blocks`, whole blocks of consecutive probes are resampled, for logs in which slow probes follow slow ones.
    """
    from latfit.outliers import outlier_ratio  # with pandas, which a tracker does not need

    bins = Bins.of(sample, 0.35)  # calibrated
    ratio = outlier_ratio(sample, level=LEVEL)
    draws = _draws(bins, blocks, resamples, rng)
    optima, best, flat, of_duration, of_speed_up = _replicates(sample, bins, timeout, cost, draws)
    stretch = 1.0 if blocks is None else blocks.stretch
    a = accelerations(bins.unblurred, bins.index(timeout), cost)
    duration, optimism = corrected(expected_duration, of_duration, a[0], stretch)
    faster, _ = corrected(speed_up, of_speed_up, a[1], stretch)
    low, high = (best * (interval(optima) / best) ** stretch).tolist()
    low, high = min(low, flat[0], timeout), max(high, flat[1], timeout)
    few = ratio.estimate * ratio.n < FEW_OUT - 0.5
    if few or blocks is None:
        extremes, slower, more = _by_ratio(sample, ratio, bins.counts, timeout, cost)
        duration, faster = combined(duration, slower), combined(faster, more)
        if few:
            low, high = min(low, extremes[0]), max(high, extremes[1])
    slowest = min(faster[0], speed_up * unseen_tail_factor(sample, bins.unblurred, timeout, cost))
    if high >= sample.completed.values[-1]:
        high = max(high, tail_limit(sample, expected_duration))
    if step := sample.resolution:
        low = max(1.0, float(np.floor(low / step + 1e-9))) * step if np.isfinite(low) else np.inf
        high = float(np.ceil(high / step - 1e-9) * step) if np.isfinite(high) else np.inf
    return Intervals(
        timeout=(low, high),
        expected_duration=(min(duration[0], expected_duration), max(duration[2], expected_duration)),
        speed_up=(min(slowest, speed_up), max(faster[2], speed_up)),
        optimism=max(optimism, 0.0),  # a chosen minimum is not too high
        blocks=None if blocks is None else blocks.count,
    )


# What is resampled


@dataclass(frozen=True, eq=False)
class Bins:
    """A sample as one row of expected counts in narrow bins of log time, so that every resample costs the same.

    The first bin is the time 0; `width` is that of the others in the logarithm. In `counts` returns are spread by
    `kernel`, except in the `sharp` bins, where the clock itself blurs more, and not beyond bin `end`.
    """

    unblurred: Counts
    counts: Counts
    width: float
    kernel: Floats | None
    sharp: Bools
    end: int

    @classmethod
    def of(cls, sample: LatencySample, blur: float) -> Bins:
        """The sample in bins, its returns blurred by `blur` times Silverman's bandwidth."""
        returned = Tally.sum([sample.completed, sample.failed])
        positive = returned.values[returned.values > 0]
        if not positive.size:
            raise SampleError("every latency is 0: the clock is too coarse for an interval")
        last = max(float(t.values[-1]) for t in (returned, sample.censored) if t.values.size)
        h = blur * silverman(sample)
        low, high = np.log(positive[0]) - 4 * h, np.log(max(last, sample.cutoff or 0.0)) + 1e-9
        size = MAX_RESAMPLED_TIMES >> ((sample.n <= 5000) + (sample.n <= 1000))
        edges = np.linspace(low, max(high, low + 1e-6), size + 1)
        width = float(edges[1] - edges[0])
        times = np.append(0.0, np.exp(edges[1:] - width / 2))
        kernel = np.exp(-0.5 * (np.arange(-size // 2, size // 2 + 1) * width / h) ** 2) if h > width / 4 else None
        empty = Counts(times[None], NOTHING, NOTHING, NOTHING, np.array([float(sample.lost)]))
        kernel = None if kernel is None else kernel / kernel.sum()
        bins = cls(empty, empty, width, kernel, times[1:] * h < sample.resolution, size)
        tallies = (sample.completed, sample.failed, sample.censored)
        completed, failed, censored = (bins.binned(tally.values, tally.counts) for tally in tallies)
        # after the last censored probe nobody is at risk: no return may be blurred beyond it
        if sample.censored.total and not sample.lost and sample.censored.values[-1] >= returned.values[-1]:
            bins = replace(bins, end=max(1, int(np.flatnonzero(censored)[-1])))
        unblurred = replace(empty, completed=completed[None], failed=failed[None], censored=censored[None])
        counts = replace(unblurred, completed=bins.blurred(completed)[None], failed=bins.blurred(failed)[None])
        return replace(bins, unblurred=unblurred, counts=counts)

    def binned(self, values: Floats, weights: Floats | Ints) -> Floats:
        first, size = self.counts.times[0, 1], self.sharp.size
        place = ((np.log(np.maximum(values, first) / first) + self.width / 2) / self.width).astype(np.intp)
        place = np.where(values > 0, np.clip(place, 0, size - 1) + 1, 0)
        return np.bincount(place, weights=weights, minlength=size + 1).astype(np.float64)

    def blurred(self, counts: Floats) -> Floats:
        if self.kernel is None or not counts.any():
            return counts
        half = self.kernel.size // 2
        kept = np.where(self.sharp, counts[1:], 0.0)
        wide = np.convolve(counts[1:] - kept, self.kernel)
        inside = wide[half : half + kept.size].copy()
        inside[0] += wide[:half].sum()
        inside[self.end - 1] += wide[half + self.end :].sum()
        inside[self.end :] = 0.0
        inside[inside < NOBODY] = 0.0
        return np.append(counts[0], kept + inside)

    def index(self, t: float) -> int:
        return int(np.clip(np.searchsorted(self.counts.times[0], t), 0, self.sharp.size))


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


@dataclass(frozen=True, eq=False)
class Blocks:
    """Probes in their order, in `count` blocks that are resampled whole; `time` is their autocorrelation time."""

    latency: Floats
    status: Ints
    count: int
    time: float

    @classmethod
    def of(cls, latency: Floats, status: Ints, time: float) -> Blocks:
        """Blocks of about three autocorrelation times, at least 8 and at most 200 of them."""
        return cls(latency, status, int(np.clip(latency.size / (3 * time), 8, 200)), time)

    @property
    def stretch(self) -> float:
        """Student's over the normal quantile, √(b/(b−1)), and the share τ/(2l) that neighbours of length l share."""
        from scipy.special import stdtrit  # a tracker needs no scipy

        b, length = self.count, self.latency.size / self.count
        missed = min(self.time / (2 * length), 0.5)
        p = (1 + LEVEL) / 2
        return float(stdtrit(b - 1, p) / NormalDist().inv_cdf(p) * np.sqrt(b / (b - 1) / (1 - missed)))

    def counts(self, bins: Bins) -> Counts:
        """A row for each block, with its returns blurred like those of the bins."""
        block = np.arange(self.latency.size) * self.count // self.latency.size

        def rows(code: int) -> Floats:
            inside = [self.latency[(block == at) & (self.status == code)] for at in range(self.count)]
            binned = [bins.binned(values, np.ones(values.size)) for values in inside]
            return np.array(binned if code == CENSORED else [bins.blurred(each) for each in binned])

        lost = np.bincount(block[self.status == LOST], minlength=self.count).astype(np.float64)
        return Counts(bins.counts.times, rows(COMPLETED), rows(FAILED), rows(CENSORED), lost)


def _draws(bins: Bins, blocks: Blocks | None, count: int, rng: np.random.Generator) -> Iterator[StepCurves]:
    """Curves of resamples of the blocks, or of the bins with a fixed share out at the end."""
    counts, of_block = bins.counts, None if blocks is None else blocks.counts(bins)
    out = counts.curves().S[0, -1]
    for start in range(0, count, RESAMPLED_ROWS):
        size = min(RESAMPLED_ROWS, count - start)
        if of_block is not None:
            times = weights(np.ones(of_block.lost.size), size, rng)
            parts = (of_block.completed, of_block.failed, of_block.censored, of_block.lost)
            completed, failed, censored, lost = (times @ part for part in parts)
            yield Counts(of_block.times, completed, failed, censored, lost).curves()
        else:
            drawn = _drawn(counts, size, rng)
            drawn.censored[:, -1] = counts.censored[0, -1]
            yield drawn.curves().with_outliers(np.full(size, out), exactly=True)


# Resampled values


@np.errstate(divide="ignore", invalid="ignore")  # a resample may complete nothing; values not finite are left out
def _replicates(
    sample: LatencySample, bins: Bins, timeout: float, cost: float, draws: Iterator[StepCurves]
) -> tuple[Floats, float, Limits, Replicates, Replicates]:
    """Resampled optima, the original one, the timeouts as good as that, and resampled E_J and speed-up at the timeout.

    The effect of choosing a minimum is estimated in two ways: with E_J of the sample as the truth, where a lucky
    timeout seems to be a good one; and with E_J as flat as it may be, where every timeout less than two standard errors
    above the minimum is as good.
    """
    at, times = bins.index(timeout), bins.counts.times[0]
    step = sample.resolution * np.exp(-bins.width)
    whole, unblurred = bins.counts.curves(), bins.unblurred.curves()
    plain, floored, allowed = whole.E_J(cost)[0], _floored(whole), whole.allowed(step)
    log_E = np.log(floored.E_J(cost)[0])
    least = int(floored.exact(cost, allowed)[0][0]) if allowed.any() else at  # blurring may leave too few completions
    lowest = np.minimum(log_E, np.log(_floored(unblurred).E_J(cost)[0]))  # blurring hides the edge of a law
    chunks: list[tuple[Floats, ...]] = []
    tilt, total, squares = np.zeros((3, times.size))
    for curves in draws:
        E, may, floor = curves.E_J(cost), curves.allowed(step), _floored(curves)
        moved = np.minimum(np.log(floor.E_J(cost)) - log_E, 3.0)  # ∞ before the first completion
        moved -= moved[:, least, None]
        total += moved.sum(axis=0)
        squares += (moved**2).sum(axis=0)
        if not chunks:
            tilt = -np.minimum(log_E - log_E[least], 2.0 * moved.std(axis=0))
        views: list[Floats] = []
        for chosen in curves.robust_argmins((0.0, tilt), cost, may):
            luck = np.log(E[np.arange(chosen.size), chosen] / plain[chosen])
            views += [luck, np.log(E[:, -1] / plain[-1]) - luck, np.log(whole.F[0, chosen])]
        chunks.append((_optima(floor, cost, may), E[:, at], E[:, -1], *views))
    optima, fixed, waiting, *lucks = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    spread = np.sqrt(squares / optima.size - (total / optima.size) ** 2)
    # a timeout that only the last tenth of the completions miss counts as waiting, which must be clearly worse
    early = whole.completed[0] < 0.9 * whole.completed[0, -1]
    alike = times[allowed[0] & (lowest - log_E[least] <= np.where(early, 1.0, 1.645) * spread)]
    flat = (float(alike[0]), float(alike[-1])) if alike.size else (np.inf, 0.0)
    logs, centre = np.log(fixed / plain[at]), float(np.log(whole.F[0, at]))
    faster = np.log(waiting / plain[-1] * plain[at] / fixed)
    duration, speed_up = (
        (each, _shift(each, [lucks[i], lucks[i + 3]], [lucks[2], lucks[5]], centre))
        for i, each in enumerate((logs, faster))
    )
    return optima, float(times[least]), flat, duration, speed_up


def _floored(curves: StepCurves) -> StepCurves:
    """The curves with at least half an outlier, ρ ≥ ½/(n+1)."""
    return curves.with_outliers(0.5 / (curves.probes + 1))


def _optima(curves: StepCurves, cost: float, allowed: Bools) -> Floats:
    """(B,) the timeouts with the smallest E_J, ∞ if none is better than waiting."""
    k, least = curves.exact(cost, allowed)
    nobody_out = curves.S[np.arange(k.size), k] < NOBODY
    return np.where(nobody_out | ~np.isfinite(least), np.inf, curves.times[0, k])


def _shift(logs: Floats, lucks: list[Floats], chosen_log_F: list[Floats], centre: float) -> Limits:
    """The largest and smallest shift of a value by choosing, from at least 20 resamples near `centre` in log F."""
    usual = logs[np.isfinite(logs)]
    shifts = []
    for luck, log_F in zip(lucks, chosen_log_F, strict=True):
        distance = np.where(np.isfinite(log_F), np.abs(log_F - centre), np.inf)
        far = float(np.sort(distance)[min(20, distance.size) - 1])
        weight = np.exp(-0.5 * (distance / max(0.3, far)) ** 2) if np.isfinite(far) else np.isfinite(log_F) * 1.0
        some = np.isfinite(luck) & (weight > 0)
        usable = usual.size and some.any()
        shifts.append(float(np.average(luck[some], weights=weight[some]) - usual.mean()) if usable else 0.0)
    return max(shifts), min(shifts)


# From resampled values to limits; the effects of few outliers and of the unobserved tail


def corrected(estimate: float, values: Replicates, a: float, stretch: float) -> tuple[Centred, float]:
    """The bias-corrected and accelerated interval of the logarithm (Efron 1987) less the optimism, and the optimism.

    z₀ = Φ⁻¹(P(resampled < original)), and the ends are the quantiles at z₀ + w/(1 − a w), w = z₀ ± z. Quantiles are
    those of Cornish and Fisher from mean, spread and skewness, which vary less than order statistics; up to a skewness
    of 1 and |z| of 3 they rise with their probability. The spread is multiplied by `stretch`. Each end uses the
    estimate of the optimism that moves it outwards, the middle their mean.
    """
    logs, shifts = values[0][np.isfinite(values[0])], values[1]
    if not np.isfinite(estimate) or logs.size < 20:
        return (0.0, estimate, np.inf), 0.0
    mean, s = float(logs.mean()), float(logs.std())
    shift = sum(shifts) / 2
    middle, optimism = float(estimate * np.exp(-shift)), float(np.expm1(-shift))
    if s == 0:
        return (min(middle, estimate), middle, max(middle, estimate)), optimism
    sixth = float(np.clip(np.mean(((logs - mean) / s) ** 3), -1, 1)) / 6
    off = -mean / s
    z_0, z = float(np.clip(off + sixth * (1 - off**2), -1, 1)), NormalDist().inv_cdf((1 + LEVEL) / 2)
    w = z_0 + np.array([-z, z])
    u = np.clip(z_0 + w / (1 - a * w), -3, 3)
    low, high = (estimate * np.exp(stretch * s * (u + sixth * (u**2 - 1) - off) - shifts)).tolist()
    return (low, middle, high), optimism


def accelerations(counts: Counts, at: int, cost: float) -> Limits:
    """Efron's a = Σ l³ / (6 (Σ l²)^(3/2)) of E_J at bin `at` and of the speed-up, l the influence of each probe."""
    probes = np.concatenate([counts.completed, counts.failed, counts.censored])
    fixed = influence(counts, at, cost)

    def a(influence: Floats) -> float:
        square, cube = ((probes * influence**k).sum() + counts.lost[0] * influence[2, -1] ** k for k in (2, 3))
        return float(cube / (6 * square**1.5)) if square > 0 else 0.0

    return a(fixed), a(influence(counts, counts.times.shape[1] - 1, cost) - fixed)


def influence(counts: Counts, at: int, cost: float) -> Floats:
    """∂ log E_J(t) for one more completion, failure or censored probe in each bin (3, bins + 1), t that of bin `at`.

    A probe seen in bin i moves the hazards λ = d/n of the bins j ≤ i by (1{j = i and it returned} − λ_j)/n_j, and
    E_J = (W + c(1−F̃))/F̃ with W = Σ S₋ Δt, F̃ = Σ S₋ λ₁, S = Π (1 − λ). A lost probe counts as censored in the last bin.
    """
    curve, upto = counts.curves(), slice(at + 1)
    W, F = curve.W[0, upto], curve.F[0, upto]
    each = hazards(np.ones(W.size), counts.at_risk[0, upto])
    completing, ending = counts.completed[0, upto] * each, (counts.completed + counts.failed)[0, upto] * each
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(ending < 1, 1.0 / (1.0 - ending), 0.0)
        top = W[-1] + cost * (1.0 - F[-1])
        by_F = -cost / top - 1.0 / F[-1]  # ∂ log E_J / ∂F̃
        by_completing = by_F * masses(curve.S[0, upto], each)
        by_ending = -((W[-1] - W) / top + by_F * (F[-1] - F)) * rest * each
    fall = np.cumsum(completing * by_completing + ending * by_ending)
    moved = np.array([by_completing + by_ending - fall, by_ending - fall, -fall])
    return np.concatenate([moved, np.full((3, counts.times.shape[1] - at - 1), -fall[-1])], axis=1)


def tail_limit(sample: LatencySample, E: float) -> float:
    """The upper limit of the best timeout, if it may lie beyond the last completion L.

    If it is at t > L then E_J(t) ≤ E_J(L), so the share that completes after L is at least (1/E_J) ∫_L^t S du: one
    completion in E_J seconds at risk. The probability of observing none is exp(−(seconds at risk after L)/E_J). The
    limit is where this is (1 − level)/2, and ∞ if the log has too few seconds at risk.
    """
    last = float(sample.completed.values[-1])
    ends = Tally.sum([sample.failed, sample.censored])
    later = ends.values > last
    values, counts = ends.values[later] - last, ends.counts[later]
    at_risk = np.append(counts[::-1].cumsum()[::-1], 0) + float(sample.lost)
    observed = np.append(0.0, np.cumsum(at_risk[:-1] * np.diff(values, prepend=0.0)))
    needed = -np.log((1 - LEVEL) / 2) * E
    before = int(np.searchsorted(observed, needed, side="right")) - 1
    if not at_risk[before]:
        return np.inf
    return float(last + np.append(0.0, values)[before] + (needed - observed[before]) / at_risk[before])


def unseen_tail_factor(sample: LatencySample, counts: Counts, timeout: float, cost: float) -> float:
    """The factor by which unobserved completions after the timeout t may shorten waiting until the cutoff T.

    If a share q of the m probes at risk after t would complete, the probability of observing none is (1 − q)ᵐ; it is
    (1 − level)/2 for q = 1 − ((1 − level)/2)^(1/m). If they complete at once, F̃(T) becomes F̃ + q S(t), and ∫ₜᵀ S is
    multiplied by 1 − q. The factor is 1 if completions after t were observed: then those are resampled.
    """
    later = Tally.sum([sample.failed, sample.censored])
    out = int(later.counts[later.values > timeout].sum()) + sample.lost
    if not out or timeout < sample.completed.values[-1]:
        return 1.0
    curve = counts.curves()
    k = max(0, int(np.searchsorted(counts.times[0], timeout, side="right")) - 1)
    F, S, W, waiting = curve.F[0, -1], curve.S[0, k], curve.W[0, k], curve.W[0, -1]
    q = 1.0 - ((1 - LEVEL) / 2) ** (1 / out)
    sooner = expected_duration(F + q * S, W + (1 - q) * (waiting - W), cost)
    return float(sooner / expected_duration(F, waiting, cost))


def _by_ratio(
    sample: LatencySample, ratio: OutlierRatio, counts: Counts, timeout: float, cost: float
) -> tuple[Limits, Limits, Limits]:
    """Optima, and factors of E_J and of the speed-up, at the limits of ρ: F̃ → s F̃, S → (1 − s) S_f + s S."""
    curve, times = counts.curves(), counts.times[0]
    failing = hazards(counts.failed[0], counts.at_risk[0])
    unfailed = StepCurves.of_masses(times, np.zeros_like(failing), masses(survival(failing), failing))
    first = times[np.flatnonzero(counts.completed[0])[0]]  # the middle of a bin, in which the timeout may lie too
    t = np.array([max(timeout, first) if np.isfinite(timeout) else times[-1]])
    optima, figures = [], []
    for rho in (_lower_ratio(ratio), ratio.estimate, ratio.high):
        share = (1 - rho) / (1 - ratio.estimate)
        S, W = (share * a + (1 - share) * b for a, b in ((curve.S, unfailed.S), (curve.W, unfailed.W)))
        scaled = replace(curve, F=share * curve.F, S=S, W=W)
        optima.append(float(_optima(scaled, cost, curve.allowed(sample.resolution))[0]))
        E, waiting = float(scaled.E_J_at(t, cost)[0]), float(scaled.E_J(cost)[0, -1])
        figures.append((E, waiting / E if E else 1.0))  # a coarse clock may show E_J as 0
    duration, speed_up = (
        (low / middle, high / middle) if middle else (1.0, 1.0) for low, middle, high in zip(*figures, strict=True)
    )
    return (min(optima), max(optima)), duration, speed_up


def _lower_ratio(ratio: OutlierRatio) -> float:
    """The lower limit of ρ: by mid-P (Lancaster 1961) if fewer than five are out.

    Wilson's lower limit is too high then: if fewer than five are expected, his interval covers as little as 83.8 %, and
    at least 92.8 % with this limit. P(K > k) + ½ P(K = k) = ½ I_ρ(k, n−k+1) + ½ I_ρ(k+1, n−k) is (1 − level)/2 there,
    with the incomplete beta function I.
    """
    from scipy.special import betainc, betaincinv

    k, n, tail = ratio.count, ratio.n, (1 - ratio.level) / 2
    if ratio.method != "wilson" or not 0 < k < min(FEW_OUT, n):
        return ratio.low
    low, high = betaincinv(k, n - k + 1, tail), betaincinv(k + 1, n - k, tail)
    for _ in range(60):  # halve the bracket
        rho = (low + high) / 2
        below = betainc(k, n - k + 1, rho) + betainc(k + 1, n - k, rho) < 2 * tail
        low, high = (rho, high) if below else (low, rho)
    return float(low)


def combined(limits: Centred, factors: Limits) -> Centred:
    """The limits of a product: log distances from the estimates add in quadrature (Zou and Donner 2008)."""
    low, middle, high = limits
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.log([low / middle, high / middle])
        down, up = np.hypot(distances, np.log(factors)).tolist()
    if np.isnan(down) or np.isnan(up):
        return limits
    return middle * float(np.exp(-down)), middle, middle * float(np.exp(up))
