"""The daily and the weekly cycle of a log: is there one, and how much slower is its slowest part?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latfit.numbers import Floats

Times = NDArray[np.datetime64]

DAY, WEEK = 86_400, 604_800
MONDAY = np.datetime64("1970-01-05", "us")
MIN_PERIODS = 4  # fewer days or weeks cannot tell a cycle from two bad mornings
MIN_PER_CELL = 1.0  # probes that each part must have, on average, in the fewest periods
FILLED = 0.25  # the share of all parts of all periods that must have a probe: one a day knows nothing of hours
SHUFFLES = 499
SOME = 16  # of them come first: without a cycle they mostly tell already
TOGETHER = 1 << 18  # parts of shuffled periods worked on at once
SIGNIFICANT = 0.01


@dataclass(frozen=True, eq=False)
class Cycle:
    """A repeating pattern: `ratio` is that of its slowest to its fastest part, `effects` the parts' log offsets."""

    ratio: float
    p_value: float
    effects: Floats


def find_cycle(submitted: Times, scores: Floats, logs: Floats, *, period: int, parts: int) -> Cycle | None:
    """The cycle of length `period` seconds in `parts` equal parts, or None where none is significant.

    The statistic is the spread of the parts' mean scores. Its distribution without a cycle is that of periods each
    turned by a random number of parts, which keeps how the parts of one period depend on each other; p ≤ 0.01 counts.
    The offsets in log latency are shrunk towards 0 by the share of their spread that noise explains.
    `submitted` must not contain NaT; times are UTC.
    """
    if submitted.size < MIN_PER_CELL * parts * MIN_PERIODS:
        return None
    seconds = (submitted - MONDAY) / np.timedelta64(1, "s")
    number, part = (seconds // period).astype(np.int64), (seconds % period * parts // period).astype(np.int64)
    number = np.unique(number, return_inverse=True)[1].ravel()  # periods without a probe do not count
    periods = int(number.max()) + 1
    if periods < MIN_PERIODS:
        return None
    cell = number * parts + part
    counts = np.bincount(cell, minlength=periods * parts).reshape(periods, parts).astype(np.float64)
    if np.count_nonzero(counts) < FILLED * counts.size:
        return None
    sums = np.bincount(cell, scores, minlength=periods * parts).reshape(periods, parts)
    rest = sums - counts * (sums.sum(axis=1) / counts.sum(axis=1))[:, None]  # a slow day is no cycle
    if not rest.any():
        return None
    observed = _spread(rest.sum(axis=0), counts.sum(axis=0))
    rng = np.random.default_rng(0)
    turns = rng.integers(0, parts, (SHUFFLES, periods))
    rows, columns = np.arange(periods)[:, None], np.arange(parts)
    exceeded, first, many = 0, 0, SOME
    while first < SHUFFLES:
        turned = (columns + turns[first : first + many, :, None]) % parts
        spread = _spread(rest[rows, turned].sum(axis=1), counts[rows, turned].sum(axis=1))
        exceeded += int(np.count_nonzero(spread >= observed))
        p_value = (1 + exceeded) / (1 + SHUFFLES)  # at least: those to come can only raise it
        if p_value > SIGNIFICANT:
            return None
        first, many = first + many, max(1, min(4 * many, TOGETHER // counts.size))
    effects = _offsets(part, number, logs, parts)
    return Cycle(float(np.exp(np.ptp(effects))), p_value, effects)


def _spread(sums: Floats, counts: Floats) -> Floats:
    """The variance between parts (the last axis), each weighted by how many probes it has."""
    return np.asarray(np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0).sum(axis=-1))


def _offsets(part: NDArray[np.int64], number: NDArray[np.int64], logs: Floats, parts: int) -> Floats:
    """Each part's mean log latency less that of its period, shrunk (empirical Bayes)."""
    per_period = np.bincount(number, logs) / np.maximum(np.bincount(number), 1)
    rest = logs - per_period[number]
    counts = np.bincount(part, minlength=parts).astype(np.float64)
    means = np.bincount(part, rest, minlength=parts) / np.maximum(counts, 1)
    seen = counts > 0
    means -= np.average(means[seen], weights=counts[seen])
    noise = float(np.var(rest - means[part])) / np.maximum(counts, 1)
    between = max(0.0, float(np.var(means[seen])) - float(np.mean(noise[seen])))
    return np.where(seen, means * between / np.maximum(between + noise, 1e-300), 0.0)
