"""From memories to the current timeout: the longest memory that the shorter ones do not contradict.

Each memory gives a Kaplan–Meier law, with failures as a competing risk. The longest that agrees with every shorter
one is used (Lepski's rule): sup|F − F′| ≤ 1.7 √v, v = W₂/W² + W₂′/W′² − 2 Σgg′/(WW′). Where it has seen fewer than
three at risk, the hazards of longer memories go on. The masses are blurred, and
E_J(t) = (∫₀ᵗ S + c (1 − F̃)) / F̃ is minimised over the bucket edges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.numbers import Floats
from latfit.tracking import checked
from latfit.tracking.memories import LEVELS, WIDTH, Memories

AGREE = 1.7  # standard errors within which two memories agree
ALARM = 2.3  # and from which the longest is contradicted
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

    @classmethod
    def restored(cls, state: dict[str, Any]) -> Estimate:
        """The estimate whose values were written, each checked."""
        return cls(
            checked.positive("timeout", state["timeout"]),
            checked.number("expected_duration", state["expected_duration"], 0.0),
            checked.number("still_out", state["still_out"], -1e-9, 1 + 1e-9),
            checked.number("effective", state["effective"], 0.0),
            checked.whole("level", state["level"], LEVELS - 1),
            bool(state["changed"]),
        )


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


def best(
    laws: Curves, level: int, *, cost: float, slack: float, blur: bool = True, splice: bool = True
) -> Estimate | None:
    """The timeout by the law of one memory; None where too few attempts completed.

    The blur chooses the timeout; E_J at it, and the share still out, are those of the law as it was seen.
    """
    done, gone = spliced(laws, level, splice=splice)
    if done.size == 0:
        return None
    before = _before(np.cumprod(np.maximum(1 - done - gone, 0.0), dtype=np.float64))
    completed, failed = before * done, before * gone
    effective = float(laws.effective[level])
    enough = int(np.searchsorted(np.cumsum(completed) * effective, COMPLETIONS - 1e-9))
    if enough >= done.size:
        return None
    kernel = _kernel(completed, effective) if blur else np.ones(1)
    half = kernel.size // 2  # the blur spreads over so many buckets before the first, and beyond the last
    edges = laws.edges[0] * np.exp(WIDTH * np.arange(-half, done.size + half + 1))
    blurred = np.convolve(completed, kernel), np.convolve(failed, kernel)
    E = _durations(*blurred, edges, cost, first=half + enough)
    at = int(np.argmin(E))
    above = np.flatnonzero(E[at:] > (1 + slack) * E[at])
    end = at + int(above[0]) - 1 if above.size else E.size - 1
    t = float(edges[half + enough + end + 1])
    seen = min(enough + end, done.size - 1)
    seen_E = _durations(completed[: seen + 1], failed[: seen + 1], edges[half:], cost, first=seen, t=t)
    out = 1 - float(completed[: seen + 1].sum() + failed[: seen + 1].sum())
    return Estimate(t, float(seen_E[0]), max(out, 0.0), effective, level, False)


def _durations(
    completed: Floats, failed: Floats, edges: Floats, cost: float, *, first: int, t: float | None = None
) -> Floats:
    """E_J = (∫₀ᵗ S + c (1 − F̃)) / F̃ at the end of each bucket from `first` on, or at `t`, of masses in buckets."""
    mass = completed + failed
    ends = edges[1 : mass.size + 1]
    F, spent = np.cumsum(completed)[first:], np.cumsum(mass * ends)[first:] * math.exp(-WIDTH / 2)
    out = np.maximum(1 - np.cumsum(mass)[first:], 0.0)
    return np.asarray((spent + out * (ends[first:] if t is None else t) + cost * (1 - F)) / F)


def _kernel(mass: Floats, effective: float) -> Floats:
    """Gaussian weights with Silverman's bandwidth, .9 min(sd, IQR/1.34) n^(−1/5), in buckets."""
    total = np.cumsum(mass)
    at = np.arange(mass.size)
    mean = float(mass @ at) / total[-1]
    sd = math.sqrt(max(float(mass @ (at - mean) ** 2) / total[-1], 0.0))
    low, high = np.searchsorted(total, [0.25 * total[-1], 0.75 * total[-1]])
    h = 0.9 * min(sd, float(high - low) / 1.34) * effective**-0.2
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


def regret(memories: Memories, level: int, timeout: float, *, cost: float) -> float:
    """E_J at a timeout over the least, less 1, by the law of one memory as it was seen; ∞ where nothing completes.

    Beyond what was seen, nothing is taken to complete.
    """
    laws = curves(memories)
    done, gone = spliced(laws, level)
    before = _before(np.cumprod(np.maximum(1 - done - gone, 0.0), dtype=np.float64))
    completed, failed = before * done, before * gone
    enough = int(np.searchsorted(np.cumsum(completed) * float(laws.effective[level]), COMPLETIONS - 1e-9))
    at = int(np.searchsorted(laws.edges[1 : done.size + 1], timeout * (1 + 1e-9), side="right")) - 1
    if at < 0 or not completed[: at + 1].sum() > 0:
        return math.inf
    least = float(_durations(completed, failed, laws.edges, cost, first=min(enough, done.size - 1)).min())
    here = _durations(completed[: at + 1], failed[: at + 1], laws.edges, cost, first=at, t=timeout)
    return max(float(here[0]) / least - 1, 0.0)
