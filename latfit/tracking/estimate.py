"""From memories to the current timeout: the longest memory that the shorter ones do not contradict.

Each memory gives a Kaplan–Meier law, with failures as a competing risk. The longest one that agrees with every shorter
one is used (Lepski's rule): sup|F − F′| ≤ 1.7 √v, v = W₂/W² + W₂′/W′² − 2 Σgg′/(WW′). Where fewer than three of its
attempts are at risk, the hazards of longer memories take over. The masses are blurred, and
E_J(t) = (∫₀ᵗ S + c (1 − F̃)) / F̃ is minimised over the bucket edges.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from latfit.curve import Counts, StepCurves, hazards, masses, survival
from latfit.numbers import Floats, Ints
from latfit.resample import RESAMPLES, Limits, interval, weights
from latfit.sample import CENSORED, LOST, STATUSES

BUCKET_WIDTH = 0.02  # in the logarithm of time
HALF_LIVES = tuple(32.0 * 4**k for k in range(5))  # in observations
LEVELS = len(HALF_LIVES)
BUCKETS = math.ceil(math.log(1e8) / BUCKET_WIDTH) + 2  # the cutoff is at most 1e8 times the smallest latency above 0

_GROWTH = np.exp2(1 / np.array(HALF_LIVES))  # 1/γ
_TOTALS = ("lost", "weight", "whole", "cross")


def signed(state: dict[str, Any]) -> dict[str, Any]:
    """A state with its checksum."""
    return {**state, "crc": crc32(json.dumps(state).encode())}


def check_signed(state: dict[str, Any]) -> None:
    """Raise a ValueError if a state is not what `signed` returned."""
    if signed({name: value for name, value in state.items() if name != "crc"})["crc"] != state["crc"]:
        raise ValueError("one of its values was changed")


class Memories:
    """Decayed counts of completions, failures and censored attempts in buckets, for every half-life.

    A new observation has the weight g, and g grows by 1/γ each time, so that old observations fade without being
    touched. Bucket j holds the times (e_j, e_{j+1}], e_j = exp(BUCKET_WIDTH · (first + j)). A censored attempt goes to
    the first bucket that begins when it was given up or later: it was at risk in the buckets before.
    `cross` holds Σ g_k g_l over all observations, with W₂ as its diagonal; `whole` is W = Σ g_k.
    """

    def __init__(self, cutoff: float) -> None:
        self.first = math.floor(math.log(cutoff) / BUCKET_WIDTH) + 2 - BUCKETS
        self.counts = np.zeros((3, LEVELS, BUCKETS))
        self.lost = np.zeros(LEVELS)
        self.weight = np.ones(LEVELS)
        self.whole = np.zeros(LEVELS)
        self.cross = np.zeros((LEVELS, LEVELS))

    def buckets(self, latency: Floats, statuses: Ints) -> Ints:
        """The bucket of each latency; a time within 1e-9 of an edge lies on it."""
        with np.errstate(divide="ignore"):
            at = np.ceil(np.log(latency) / BUCKET_WIDTH - 1e-9) - self.first - (statuses < CENSORED)
        return np.asarray(np.clip(at, 0, BUCKETS - 1), dtype=np.int64)

    def effective(self) -> tuple[Floats, Floats, Floats]:
        """Effective numbers (weights times W/W₂): counts by bucket, from the first in use to the last; lost; edges."""
        scale = self.whole / np.maximum(self.cross.diagonal(), 1e-300)
        used = np.flatnonzero(self.counts.any(axis=(0, 1)))
        low, high = (used[0], used[-1] + 1) if used.size else (0, 0)
        edges = np.exp(BUCKET_WIDTH * np.arange(self.first + low, self.first + high + 1))
        return self.counts[:, :, low:high] * scale[:, None], self.lost * scale, edges

    def add(self, latencies: Sequence[float], statuses: Sequence[int]) -> None:
        """Add observations, oldest first, in parts whose weights stay below the largest float."""
        codes = np.asarray(statuses, dtype=np.int64)
        every = self.buckets(np.asarray(latencies), codes), codes
        for start in range(0, every[0].size, 2048):
            bucket, status = (values[start : start + 2048] for values in every)
            weights = self.weight[:, None] * _GROWTH[:, None] ** np.arange(1, bucket.size + 1)
            self.weight = weights[:, -1].copy()
            self.whole += weights.sum(axis=1)
            self.cross += weights @ weights.T
            gone = status == LOST
            self.lost += weights[:, gone].sum(axis=1)
            cells = (status * LEVELS * BUCKETS + bucket + BUCKETS * np.arange(LEVELS)[:, None])[:, ~gone]
            np.add.at(self.counts.reshape(-1), cells.ravel(), weights[:, ~gone].ravel())
            if self.weight[0] > 1e100:
                self._scale(1 / self.weight)

    def _scale(self, by: Floats) -> None:
        """Multiply the weights of each level, and drop counts that have faded."""
        self.counts *= by[:, None]
        self.lost *= by
        self.whole *= by
        self.cross *= by[:, None] * by
        self.weight = self.weight * by
        self.counts[self.counts < 1e-14 * self.whole[:, None]] = 0.0

    def restart_shortest(self, run: Sequence[tuple[float, int]]) -> None:
        """Make the shortest memory hold only these observations (latency and status), all with the same weight."""
        g, n = self.weight[0], len(run)
        latency, status = np.array([x for x, _ in run]), np.array([code for _, code in run])
        gone = status == LOST
        self.counts[:, 0], self.lost[0] = 0.0, g * np.count_nonzero(gone)
        np.add.at(self.counts[:, 0], (status[~gone], self.buckets(latency, status)[~gone]), g)
        self.whole[0], self.cross[0, 0] = n * g, n * g * g
        # they are also the newest n observations of the other memories
        self.cross[0, 1:] = self.cross[1:, 0] = g * self.weight[1:] * (1 - _GROWTH[1:] ** -n) / (1 - 1 / _GROWTH[1:])

    def absorb(self, other: Memories) -> None:
        """Add the memories of another tracker with the same cutoff, both as of now; the other one is scaled, too."""
        for memories in (self, other):
            memories._scale(1 / memories.weight)
        for name in ("counts", "lost", "whole", "cross"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain values that restore every number exactly; only buckets in use are written."""
        state: dict[str, Any] = {}
        for name, counts in zip(STATUSES, self.counts, strict=False):
            at = np.flatnonzero(counts.any(axis=0))
            state[name] = {"buckets": at.tolist(), "weights": counts[:, at].tolist()}
        return state | {name: getattr(self, name).tolist() for name in _TOTALS}

    @classmethod
    def from_dict(cls, state: dict[str, Any], cutoff: float) -> Memories:
        memories = cls(cutoff)
        for name, counts in zip(STATUSES, memories.counts, strict=False):
            counts[:, state[name]["buckets"]] = state[name]["weights"]
        for name in _TOTALS:
            setattr(memories, name, np.array(state[name]))
        return memories


MIDDLE = math.exp(-BUCKET_WIDTH / 2)  # the middle of a bucket in the logarithm, as a share of its end


@dataclass(frozen=True)
class Estimate:
    """A timeout, its E_J, the share still out after it, the effective number of attempts, and the memory in use."""

    timeout: float
    expected_duration: float
    still_out: float
    effective: float
    level: int
    changed: bool


@dataclass(frozen=True)
class Laws:
    """Kaplan–Meier by memory: hazards, F̃, S, and how many buckets have an effective three attempts at risk."""

    done: Floats  # (LEVELS, buckets) hazards of completing
    gone: Floats  # of failing
    F: Floats
    S: Floats
    limit: list[int]
    edges: Floats
    effective: Floats  # (LEVELS,)

    @classmethod
    def of(cls, counts: Floats, lost: Floats, edges: Floats) -> Laws:
        """Kaplan–Meier of effective numbers; an attempt given up as a bucket began was last at risk before it."""
        given_up = np.append(counts[2, :, 1:], np.zeros((LEVELS, 1)), axis=1)
        at_risk = Counts(edges[None, 1:], counts[0], counts[1], given_up, lost).at_risk
        limit = np.count_nonzero(at_risk >= 3.0 - 1e-9, axis=1)
        done, gone = hazards(counts[0], at_risk), hazards(counts[1], at_risk)
        S, effective = survival(done + gone), counts.sum(axis=(0, 2)) + lost
        return cls(done, gone, np.cumsum(masses(S, done), axis=1), S, limit.tolist(), edges, effective)

    def masses(self, level: int) -> tuple[Floats, Floats, int]:
        """The masses of completing and failing by bucket, and the first bucket with an effective five completions.

        They are those of the memory `level`, continued by longer memories.
        """
        source = np.zeros(0, dtype=np.int64)
        for k in range(level, LEVELS):
            source = np.append(source, np.full(max(0, self.limit[k] - source.size), k))
        at = np.arange(source.size)
        done, gone = self.done[source, at], self.gone[source, at]
        S = survival(done + gone)
        completed = masses(S, done)
        enough = np.searchsorted(np.cumsum(completed) * float(self.effective[level]), 5.0 - 1e-9)
        return completed, masses(S, gone), int(enough)


def choose(memories: Memories, laws: Laws) -> tuple[int, bool]:
    """The longest memory within 1.7 standard errors of all shorter ones; whether the longest of all is off by 2.3."""
    changed, spread = False, 1 / np.maximum(laws.effective, 1e-300)

    def distance(short: int, level: int) -> float:
        """The distance in standard errors of the difference."""
        upto = min(laws.limit[short], laws.limit[level])
        gap = float(np.abs(laws.F[short, :upto] - laws.F[level, :upto]).max(initial=0.0))
        if laws.gone[level].any():
            gap = max(gap, float(np.abs(laws.S[short, :upto] - laws.S[level, :upto]).max(initial=0.0)))
        if not gap:
            return 0.0
        shared = memories.cross[short, level] / (memories.whole[short] * memories.whole[level])
        return gap / math.sqrt(max(float(spread[short] + spread[level] - 2 * shared), 1e-12))

    for level in range(LEVELS - 1, 0, -1):
        farthest = max(distance(short, level) for short in range(level))
        changed = farthest > 2.3 if level == LEVELS - 1 else changed
        if farthest <= 1.7:
            return level, changed
    return 0, changed


def best(laws: Laws, level: int, *, cost: float, slack: float, blur: bool = True) -> Estimate | None:
    """The timeout of one memory, blurred, with E_J and the share still out as observed; None if too few completed."""
    completed, failed, enough = laws.masses(level)
    effective = float(laws.effective[level])
    if enough >= completed.size:
        return None
    kernel = _kernel(completed, effective) if blur else np.ones(1)
    half = kernel.size // 2  # the buckets by which the blur reaches before the first and beyond the last
    ends = laws.edges[0] * np.exp(BUCKET_WIDTH * np.arange(1 - half, completed.size + half + 1))
    E = _durations(np.convolve(completed, kernel), np.convolve(failed, kernel), ends, cost)[half + enough :]
    least = int(np.argmin(E))
    above = np.flatnonzero(E[least:] > (1 + slack) * E[least])
    last = least + int(above[0]) - 1 if above.size else E.size - 1
    t = ends[half + enough + last]
    k = min(enough + last, completed.size - 1)
    observed = _curve(completed[: k + 1], failed[: k + 1], ends[half:])
    duration = observed.E_J_after(t - observed.times, cost)[0, k]
    return Estimate(float(t), float(duration), float(observed.S[0, k]), effective, level, changed=False)


def _curve(completed: Floats, failed: Floats, ends: Floats) -> StepCurves:
    """The curve of masses in buckets, each at the middle of its bucket in the logarithm."""
    return StepCurves.of_masses(ends[: completed.size] * MIDDLE, completed, failed)


def _durations(completed: Floats, failed: Floats, ends: Floats, cost: float) -> Floats:
    """E_J of a timeout at the end of each bucket."""
    return np.asarray(_curve(completed, failed, ends).E_J_after(ends * (1 - MIDDLE), cost)[0])


def _kernel(mass: Floats, effective: float) -> Floats:
    """Gaussian weights with Silverman's bandwidth, .9 min(sd, IQR/1.34) n^(−1/5), in buckets."""
    total, at = np.cumsum(mass), np.arange(mass.size)
    mean = float(mass @ at) / total[-1]
    sd = math.sqrt(max(float(mass @ (at - mean) ** 2) / total[-1], 0.0))
    low, high = np.searchsorted(total, [0.25 * total[-1], 0.75 * total[-1]])
    h = 0.9 * min(sd, float(high - low) / 1.34) * effective**-0.2
    half = math.ceil(3 * h)
    if half < 1:
        return np.ones(1)
    kernel = np.exp(-0.5 * (np.arange(-half, half + 1) / h) ** 2)
    return np.asarray(kernel / kernel.sum())


def estimate(memories: Memories, *, cost: float, slack: float) -> Estimate | None:
    """The current timeout, or None if too few attempts completed."""
    laws = Laws.of(*memories.effective())
    if not laws.F.size:
        return None
    level, changed = choose(memories, laws)
    chosen = best(laws, level, cost=cost, slack=slack)
    return chosen and replace(chosen, changed=changed)


def regret(memories: Memories, level: int, timeout: float, *, cost: float) -> float:
    """E_J(timeout)/E_J(best) − 1 by one memory as observed, in which nothing completes later; may be ∞."""
    laws = Laws.of(*memories.effective())
    completed, failed, enough = laws.masses(level)
    ends = laws.edges[1 : completed.size + 1]
    over = int(np.searchsorted(ends, timeout * (1 + 1e-9), side="right"))  # buckets that end by the timeout
    if not completed[:over].any():
        return math.inf
    least = float(_durations(completed, failed, ends, cost)[min(enough, ends.size - 1) :].min())
    E = float(_curve(completed[:over], failed[:over], ends).E_J_at(np.array(timeout), cost))
    return max(E / least - 1, 0.0)


def intervals(memories: Memories, levels: list[int], *, cost: float, slack: float) -> tuple[Limits, Limits]:
    """95 % intervals of the timeout (from the plain minimum to the end of `slack`) and of E_J.

    A Poisson bootstrap of the effective counts.
    """
    rng, (*expected, edges) = np.random.default_rng(0), memories.effective()
    drawn = [weights(numbers, RESAMPLES, rng) for numbers in expected]
    figures = np.full((len(levels), 3, RESAMPLES), np.nan)
    for at, (counts, lost) in enumerate(zip(*drawn, strict=True)):
        laws = Laws.of(counts, lost, edges)
        for row, level in enumerate(levels):
            plain = best(laws, level, cost=cost, slack=0.0, blur=False)
            late = best(laws, level, cost=cost, slack=slack)
            if plain is not None and late is not None:
                figures[row, :, at] = plain.timeout, late.timeout, plain.expected_duration
    figures = figures[np.isfinite(figures).any(axis=(1, 2))]
    if not figures.size:
        return (0.0, math.inf), (0.0, math.inf)
    low, high = interval(figures)
    low, high = low.min(axis=0).tolist(), high.max(axis=0).tolist()
    return (low[0], high[1]), (low[2], high[2])
