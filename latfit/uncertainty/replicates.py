"""Resamples of a sample: their optima, E_J at a fixed timeout, and what choosing a minimum does to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latfit.numbers import Bools, Floats, Ints
from latfit.restart.steps import StepCurves
from latfit.sample import LatencySample
from latfit.uncertainty.bins import NOBODY, Bins, curve_of, curves
from latfit.uncertainty.blocks import Blocks
from latfit.uncertainty.ends import Range, Replicates

ROWS = 64  # resamples worked on at once, so that they stay in the cache
NOT_CLEARLY, WAITING = 1.0, 1.645  # standard errors of E_J above its least: of a timeout, and of waiting
NEARLY_ALL = 0.9  # of the completions: a timeout that only a later one of them misses is waiting
FAR = 3.0  # of the logarithm of E_J, beyond any that matters
TOLD_APART = 2.0  # standard errors by which E_J must lie above its least to be told apart from it
NEAR, ALIKE = (
    0.3,
    20,
)  # of the logarithm of F̃: resamples that choose as near as that, or so many, tell what choosing does


class Resampled(NamedTuple):
    """The optima of the resamples and of what was resampled, the range that cannot be told from it, the replicates."""

    best: Floats
    least: float
    flat: Range
    duration: Replicates
    speed_up: Replicates


@np.errstate(divide="ignore", invalid="ignore")  # a resample may complete nothing; what is not finite is left out
def resampled(
    sample: LatencySample,
    bins: Bins,
    timeout: float,
    cost: float,
    resamples: int,
    rng: np.random.Generator,
    *,
    blocks: Blocks | None,
) -> Resampled:
    """What Poisson resamples of the bins give, the share that is out at the end kept; or resamples of the blocks.

    What choosing does is seen in two ways: with E_J as the sample has it, in which a lucky timeout looks like a good
    one and choosing it like no luck; and with E_J as flat as it may be, every timeout that is not two standard errors
    above the least as good as that.
    """
    at = int(np.clip(np.searchsorted(bins.times, timeout), 0, bins.times.size - 1))
    step = sample.resolution * np.exp(-bins.width)
    own, sharp = curve_of(bins), curve_of(bins.sharp(sample))
    plain, floored, allowed = own.E_J(cost)[0], _floored(own), own.allowed(step)
    level, least = np.log(floored.E_J(cost)[0]), int(floored.exact(cost, allowed)[0][0])
    lowest = np.minimum(level, np.log(_floored(sharp).E_J(cost)[0]))  # a blur hides the edge of a law
    best, here, end = (np.empty(resamples) for _ in range(3))
    out = own.S[0, -1]
    views, flatter = np.empty((2, 3, resamples)), np.zeros(bins.times.size)
    total, squares = np.zeros(bins.times.size), np.zeros(bins.times.size)
    for start in range(0, resamples, ROWS):
        rows = slice(start, min(start + ROWS, resamples))
        each = np.arange(rows.stop - rows.start)
        if blocks is None:
            curve = curves(bins, *_drawn(bins, each.size, rng)).with_outliers(np.full(each.size, out), exactly=True)
        else:
            curve = curves(bins, *blocks.drawn(bins, each.size, rng))
        E, may = curve.E_J(cost), curve.allowed(step)
        floor = _floored(curve)
        k, low = floor.exact(cost, may)
        best[rows] = np.where((floor.S[each, k] < NOBODY) | ~np.isfinite(low), np.inf, bins.times[k])
        moved = np.minimum(np.log(floor.E_J(cost)) - level, FAR)  # ∞ where a resample has no completion yet
        moved -= moved[:, least, None]
        total += moved.sum(axis=0)
        squares += (moved**2).sum(axis=0)
        if not start:
            flatter = -np.minimum(level - level[least], TOLD_APART * moved.std(axis=0))
        for view, chosen in zip(views, curve.careful_under((0.0, flatter), cost, may), strict=True):
            view[:, rows] = _luck(curve, own, cost, chosen)
        here[rows], end[rows] = E[:, at], E[:, -1]
    spread = np.sqrt(squares / resamples - (total / resamples) ** 2)
    allowance = np.where(own.done[0] < NEARLY_ALL * own.done[0, -1], NOT_CLEARLY, WAITING)
    flat = _hull(bins.times, allowed[0] & (lowest - level[least] <= allowance * spread))
    weights = [_near(view[2], float(np.log(own.F[0, at]))) for view in views]
    return Resampled(
        best,
        float(bins.times[least]),
        flat,
        _replicates(here, float(plain[at]), views[:, 0], weights),
        _replicates(end / here, float(plain[-1] / plain[at]), views[:, 1], weights),
    )


def _luck(curve: StepCurves, own: StepCurves, cost: float, k: Ints) -> Floats:
    """(3, B) how far E_J lies from its truth where a resample chooses k, waiting from that, and log F̃ there."""
    E, truth = curve.E_J(cost), own.E_J(cost)[0]
    luck = np.log(E[np.arange(k.size), k] / truth[k])
    return np.array([luck, np.log(E[:, -1] / truth[-1]) - luck, np.log(own.F[0, k])])


def _floored(curve: StepCurves) -> StepCurves:
    """The curve with at least half an outlier, ρ ≥ ½/(n+1)."""
    return curve.with_outliers(0.5 / (curve.probes + 1))


def _drawn(bins: Bins, size: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Floats]:
    """Poisson counts around those of the bins; those that are out at the end as they are."""
    counts = []
    for each in (bins.completed, bins.failed, bins.censored):
        some = np.flatnonzero(each)  # most bins are empty
        drawn = np.zeros((size, each.size))
        drawn[:, some] = rng.poisson(each[some], (size, some.size))
        counts.append(drawn)
    done, gone, out = counts
    out[:, -1] = bins.censored[-1]
    return done, gone, out, np.full(size, float(bins.lost))


def _hull(times: Floats, inside: Bools) -> Range:
    """The first and the last of the times that are inside; an empty range without any."""
    some = times[inside]
    return (float(some[0]), float(some[-1])) if some.size else (np.inf, 0.0)


def _near(places: Floats, here: float) -> Floats:
    """Weights of resamples by how near to here they chose; at least 20 are near."""
    off = np.where(np.isfinite(places), np.abs(places - here), np.inf)
    far = float(np.sort(off)[min(ALIKE, off.size) - 1])
    return np.exp(-0.5 * (off / max(NEAR, far)) ** 2) if np.isfinite(far) else np.isfinite(places).astype(np.float64)


def _replicates(fixed: Floats, centre: float, lucks: Floats, weights: list[Floats]) -> Replicates:
    """The replicates, and how far a chosen one lies from its own truth beyond what a fixed one does, in both views."""
    usual = np.log(fixed / centre)
    usual = usual[np.isfinite(usual)]
    shifts = []
    for luck, near in zip(lucks, weights, strict=True):
        some = np.isfinite(luck) & (near > 0)
        known = usual.size and some.any()
        shifts.append(float(np.average(luck[some], weights=near[some]) - usual.mean()) if known else 0.0)
    return Replicates(fixed, centre, (max(shifts), min(shifts)))
