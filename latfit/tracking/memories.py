"""What a tracker remembers: counts in narrow buckets of log time with five half-lives."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any
from zlib import crc32

import numpy as np

from latfit.numbers import Floats, Ints
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
    """Raise a ValueError where a state is not what `signed` returned."""
    if signed({name: value for name, value in state.items() if name != "crc"})["crc"] != state["crc"]:
        raise ValueError("a value of it was changed")


class Memories:
    """Decayed counts of completions, failures and censored attempts in buckets, for every half-life.

    A new observation has the weight g, and g grows by 1/γ with each: old ones fade without being touched. Bucket j
    holds the times (e_j, e_{j+1}], e_j = exp(BUCKET_WIDTH · (first + j)); a censored attempt goes to the first bucket
    that begins when it was given up, or later: it was at risk in those before.
    `cross` holds Σ g_k g_l over all observations, of which the diagonal is W₂; `whole` is W = Σ g_k.
    """

    def __init__(self, cutoff: float) -> None:
        self.first = math.floor(math.log(cutoff) / BUCKET_WIDTH) + 2 - BUCKETS
        self.counts = np.zeros((3, LEVELS, BUCKETS))
        self.lost = np.zeros(LEVELS)
        self.weight = np.ones(LEVELS)
        self.whole = np.zeros(LEVELS)
        self.cross = np.zeros((LEVELS, LEVELS))

    def buckets(self, latency: Floats, statuses: Ints) -> Ints:
        """Which bucket each latency belongs to; a time within 1e-9 of an edge lies on it."""
        with np.errstate(divide="ignore"):
            at = np.ceil(np.log(latency) / BUCKET_WIDTH - 1e-9) - self.first - (statuses < CENSORED)
        return np.asarray(np.clip(at, 0, BUCKETS - 1), dtype=np.int64)

    def in_use(self) -> tuple[Floats, Floats]:
        """The counts of the buckets between the first and the last with any, and the edges of these buckets."""
        used = np.flatnonzero(self.counts.any(axis=(0, 1)))
        low, high = (used[0], used[-1] + 1) if used.size else (0, 0)
        return self.counts[:, :, low:high], np.exp(BUCKET_WIDTH * np.arange(self.first + low, self.first + high + 1))

    def add(self, latencies: Sequence[float], statuses: Sequence[int]) -> None:
        """Take in observations, the oldest first, in parts whose weights stay below the largest float."""
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
        """Multiply the weights of each level, and drop what has faded."""
        self.counts *= by[:, None]
        self.lost *= by
        self.whole *= by
        self.cross *= by[:, None] * by
        self.weight = self.weight * by
        self.counts[self.counts < 1e-14 * self.whole[:, None]] = 0.0

    def restart_shortest(self, run: Sequence[tuple[float, int]]) -> None:
        """Let the shortest memory hold these observations only, latency and status, all with the same weight."""
        g, n = self.weight[0], len(run)
        latency, status = np.array([x for x, _ in run]), np.array([code for _, code in run])
        gone = status == LOST
        self.counts[:, 0], self.lost[0] = 0.0, g * np.count_nonzero(gone)
        np.add.at(self.counts[:, 0], (status[~gone], self.buckets(latency, status)[~gone]), g)
        self.whole[0], self.cross[0, 0] = n * g, n * g * g
        # the newest n of the other memories are these same observations
        self.cross[0, 1:] = self.cross[1:, 0] = g * self.weight[1:] * (1 - _GROWTH[1:] ** -n) / (1 - 1 / _GROWTH[1:])

    def absorb(self, other: Memories) -> None:
        """Add the memories of another tracker with the same cutoff, each as of now; the other one is scaled too."""
        for memories in (self, other):
            memories._scale(1 / memories.weight)
        for name in ("counts", "lost", "whole", "cross"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Plain values that restore every number exactly; only the buckets in use are written."""
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
