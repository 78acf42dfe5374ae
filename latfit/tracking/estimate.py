"""From memories to the current timeout: the longest memory that the shorter ones do not contradict.

Each memory gives a Kaplan–Meier law, with failures as a competing risk. The longest that agrees with every shorter
one is used (Lepski's rule): sup|F − F′| ≤ 1.7 √v, v = W₂/W² + W₂′/W′² − 2 Σgg′/(WW′). Where it has seen fewer than
three at risk, the hazards of longer memories go on. The masses are blurred, and
E_J(t) = (∫₀ᵗ S + c (1 − F̃)) / F̃ is minimised over the bucket edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from latfit.tracking.memories import LEVELS, WIDTH, Floats, Memories

AGREE = 1.7  # standard errors within which two memories agree
ALARM = 2.0  # and from which the longest is contradicted
AT_RISK = 3.0  # the effective number at risk that a hazard needs
COMPLETIONS = 5.0  # the effective number of completions that a timeout needs at or below it


@dataclass(frozen=True)
class Estimate:
    """A timeout, E_J at it, the share still out after it, how many attempts that rests on, and how it was found."""

    timeout: float
    expected_duration: float
    still_out: float
    effective: float
    level: int
    changed: bool


@dataclass(frozen=True)
class Curves:
    """Kaplan–Meier by memory: hazards, F̃, S, and how many buckets of each have enough at risk."""

    done: Floats  # (LEVELS, buckets) hazards of completing
    gone: Floats  # of failing
    F: Floats
    S: Floats
    limit: list[int]
    edges: Floats
    effective: Floats  # (LEVELS,)


def curves(memories: Memories) -> Curves:
    """The laws of all memories over the buckets in use."""
    low, high = memories.low, memories.high
    scale = memories.whole / np.maximum(memories.cross.diagonal(), 1e-300)
    counts = memories.counts[:, :, low:high]
    return curves_of(counts, memories.lost, scale, memories.whole * scale, memories.edges(low, high))


def curves_of(counts: Floats, lost: Floats, scale: Floats, effective: Floats, edges: Floats) -> Curves:
    """Kaplan–Meier of weighted counts by status, memory and bucket; `scale` makes numbers of weights."""
    done, gone, cut = counts
    returned = done + gone
    later = np.zeros_like(cut)  # given up after the bucket began
    later[:, :-1] = np.cumsum(cut[:, :0:-1], axis=1)[:, ::-1]
    at_risk = np.cumsum(returned[:, ::-1], axis=1)[:, ::-1] + later + lost[:, None]
    limit = np.count_nonzero(at_risk * scale[:, None] >= AT_RISK, axis=1)
    at_risk[at_risk == 0] = 1.0
    done, gone = done / at_risk, gone / at_risk
    S = np.cumprod(np.maximum(1 - done - gone, 0.0), axis=1)
    F = np.cumsum(_before(S) * done, axis=1)
    return Curves(done, gone, F, S, limit.tolist(), edges, effective)


def _before(S: Floats) -> Floats:
    """S just before each bucket."""
    shifted = np.ones_like(S)
    shifted[..., 1:] = S[..., :-1]
    return shifted


def distances(memories: Memories, laws: Curves, level: int) -> list[float]:
    """How far each memory shorter than `level` is from it, in standard errors of the difference."""
    spread = 1 / np.maximum(laws.effective, 1e-300)
    found = []
    for short in range(level):
        upto = min(laws.limit[short], laws.limit[level])
        if not upto:
            found.append(0.0)
            continue
        gap = float(np.abs(laws.F[short, :upto] - laws.F[level, :upto]).max())
        if laws.gone[level].any():
            gap = max(gap, float(np.abs(laws.S[short, :upto] - laws.S[level, :upto]).max()))
        shared = memories.cross[short, level] / (memories.whole[short] * memories.whole[level])
        found.append(gap / math.sqrt(max(float(spread[short] + spread[level] - 2 * shared), 1e-12)))
    return found


def choose(memories: Memories, laws: Curves) -> tuple[int, bool]:
    """The longest memory that agrees with all shorter ones, and whether the longest of all is contradicted."""
    changed = False
    for level in range(LEVELS - 1, 0, -1):
        apart = max(distances(memories, laws, level))
        if level == LEVELS - 1:
            changed = apart > ALARM
        if apart <= AGREE:
            return level, changed
    return 0, changed


def spliced(laws: Curves, level: int, *, splice: bool = True) -> tuple[Floats, Floats]:
    """The hazards of `level` as far as it has enough at risk, then those of longer memories."""
    done, gone, start = [], [], 0
    for k in range(level, LEVELS if splice else level + 1):
        if laws.limit[k] > start:
            part = slice(start, laws.limit[k])
            done.append(laws.done[k, part])
            gone.append(laws.gone[k, part])
            start = laws.limit[k]
    if not start:
        return np.empty(0), np.empty(0)
    return np.concatenate(done), np.concatenate(gone)


def best(laws: Curves, level: int, *, cost: float, slack: float, splice: bool = True) -> Estimate | None:
    """The timeout by the law of one memory; None where too few attempts completed."""
    done, gone = spliced(laws, level, splice=splice)
    before = _before(np.cumprod(np.maximum(1 - done - gone, 0.0), dtype=np.float64))
    returned = before * done
    if done.size == 0:
        return None
    effective = float(laws.effective[level])
    enough = int(np.searchsorted(np.cumsum(returned) * effective, COMPLETIONS - 1e-9))
    if enough >= done.size:
        return None
    kernel = _kernel(returned, effective)
    half = kernel.size // 2  # the blur spreads over so many buckets before the first, and beyond the last
    F_mass, G_mass = np.convolve(returned, kernel), np.convolve(before * gone, kernel)
    edges = laws.edges[0] * np.exp(WIDTH * np.arange(-half, done.size + half + 1))
    mass = F_mass + G_mass
    F, spent = np.cumsum(F_mass), np.cumsum(mass * edges[1:]) * math.exp(-WIDTH / 2)
    out = np.maximum(1 - np.cumsum(mass), 0.0)
    first = half + enough
    E = (spent + out * edges[1:] + cost * (1 - F))[first:] / F[first:]
    at = int(np.argmin(E))
    above = np.flatnonzero(E[at:] > (1 + slack) * E[at])
    end = at + int(above[0]) - 1 if above.size else E.size - 1
    chosen = first + end
    return Estimate(float(edges[chosen + 1]), float(E[end]), float(out[chosen]), effective, level, False)


def _kernel(mass: Floats, effective: float) -> Floats:
    """Gaussian weights with Silverman's bandwidth, .9 min(sd, IQR/1.34) n^(−1/5), in buckets."""
    total = np.cumsum(mass)
    at = np.arange(mass.size)
    mean = float(mass @ at) / total[-1]
    sd = math.sqrt(max(float(mass @ (at - mean) ** 2) / total[-1], 0.0))
    low, high = np.searchsorted(total, [0.25 * total[-1], 0.75 * total[-1]])
    spread = min(sd, float(high - low) / 1.34) if high > low else sd
    h = 0.9 * spread * effective**-0.2
    half = math.ceil(3 * h)
    if half < 1:
        return np.ones(1)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / h) ** 2)
    return np.asarray(kernel / kernel.sum())


def estimate(memories: Memories, *, cost: float, slack: float, splice: bool = True) -> Estimate | None:
    """The current timeout, or None where too few attempts completed."""
    if memories.high <= memories.low:
        return None
    laws = curves(memories)
    level, changed = choose(memories, laws)
    found = best(laws, level, cost=cost, slack=slack, splice=splice)
    if found is None:
        return None
    return Estimate(found.timeout, found.expected_duration, found.still_out, found.effective, level, changed)
