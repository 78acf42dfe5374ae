"""Intervals for the optimal timeout and what it brings, and a smoother optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.numbers import Floats
from latfit.outliers import outlier_ratio
from latfit.sample import LatencySample
from latfit.uncertainty.bins import NOBODY, Bins, curve_of, influence
from latfit.uncertainty.blocks import Blocks
from latfit.uncertainty.ends import (
    FEW_OUT,
    Range,
    by_ratio,
    combined,
    corrected,
    on_steps,
    percentiles,
    tail_end,
    unseen,
)
from latfit.uncertainty.replicates import resampled

BLUR = 0.35  # of Silverman's bandwidth, for the bootstrap
SMOOTH = 1.0  # of Silverman's bandwidth, for the smoothed optimum


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals for the optimum of a sample; ∞ where no timeout is as good as any.

    `timeout` is about the best timeout, `expected_duration` about E_J at the timeout that was chosen, `speed_up` about
    that over waiting until the cutoff; `optimism` is by how much the least of a noisy curve lies below the truth, as
    a share; `smoothed_timeout` is the optimum of the sample blurred by Silverman's bandwidth. `blocks` is how many
    blocks of consecutive probes were resampled, None where probes were.
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
    time, step = float(bins.times[k[0]]), sample.resolution
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
    """Intervals for the best timeout, for E_J at the `timeout` chosen (∞ for none), and for the speed-up it brings.

    The best timeout: percentiles of the optima of Poisson resamples of the blurred sample, and every timeout at which
    E_J is not clearly above its least; beyond the last completion until enough was seen there to tell (`tail_end`).
    E_J: the bias-corrected and accelerated interval on the log scale at the fixed timeout, moved by the bootstrap
    estimate of the optimism, since a chosen minimum is biased low. The speed-up: the same. How many are out at the end
    is not resampled, which says nothing where few are; the interval of ρ is `combined` with the rest instead. With
    `blocks`, blocks of consecutive probes are resampled, those that are out too, which holds where slow ones follow
    slow ones.
    """
    bins = Bins.of(sample, BLUR)
    ratio = outlier_ratio(sample, level=level)
    few = ratio.estimate * ratio.n < FEW_OUT - 0.5
    drawn = resampled(sample, bins, timeout, cost, resamples, rng, blocks=blocks)
    stretch = 1.0 if blocks is None else blocks.stretch(level)
    a = _accelerations(sample, timeout, cost)
    duration, optimism = corrected(expected_duration, drawn.duration, a[0], level, stretch)
    faster, _ = corrected(speed_up, drawn.speed_up, a[1], level, stretch)
    low, high = percentiles(drawn.best, drawn.least, level, stretch)
    low, high = min(low, drawn.flat[0], timeout), max(high, drawn.flat[1], timeout)
    if few or blocks is None:
        ends = by_ratio(sample, ratio, bins, timeout, cost)
        duration, faster = combined(duration, ends.duration), combined(faster, ends.speed_up)
        if few:
            low, high = min(low, ends.timeout[0]), max(high, ends.timeout[1])
    slowest = min(faster[0], speed_up * unseen(sample, bins, timeout, cost, level))
    if high >= sample.completed.values[-1]:
        high = max(high, tail_end(sample, expected_duration, level))
    return Intervals(
        timeout=on_steps(low, high, sample.resolution),
        expected_duration=(min(duration[0], expected_duration), max(duration[2], expected_duration)),
        speed_up=(min(slowest, speed_up), max(faster[2], speed_up)),
        optimism=max(optimism, 0.0),  # a chosen minimum is not too high
        smoothed_timeout=smoothed_timeout(sample, cost=cost),
        level=level,
        resamples=resamples,
        blocks=None if blocks is None else blocks.count,
    )


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
