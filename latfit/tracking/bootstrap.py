"""How sure the current timeout is: a Poisson bootstrap of the effective counts."""

from __future__ import annotations

import numpy as np

from latfit.numbers import Floats
from latfit.tracking.estimate import Curves, best, curves_of
from latfit.tracking.memories import LEVELS, Memories

RESAMPLES = 199


def resampled(memories: Memories, rng: np.random.Generator) -> Curves:
    """The laws of counts drawn from Poisson laws whose means are the effective counts, W/W₂ times the weights."""
    low, high = memories.low, memories.high
    scale = memories.whole / np.maximum(memories.cross.diagonal(), 1e-300)
    counts = rng.poisson(memories.counts[:, :, low:high] * scale[:, None]).astype(np.float64)
    lost = rng.poisson(memories.lost * scale).astype(np.float64)
    whole = counts.sum(axis=(0, 2)) + lost
    return curves_of(counts, lost, np.ones(LEVELS), whole, memories.edges(low, high))


def intervals(memories: Memories, levels: list[int], *, cost: float, slack: float) -> tuple[Floats, Floats]:
    """95 % intervals of the best timeout and of E_J at it, the union over some memories.

    The lower end of the timeout is that of the plain minimum of E_J, the upper end that of what `slack` allows.
    """
    rng = np.random.default_rng(0)
    found: dict[int, list[tuple[float, float, float]]] = {level: [] for level in levels}
    for _ in range(RESAMPLES):
        laws = resampled(memories, rng)
        for level in levels:
            plain = best(laws, level, cost=cost, slack=0.0, blur=False)
            late = best(laws, level, cost=cost, slack=slack)
            if plain is not None and late is not None:
                found[level].append((plain.timeout, late.timeout, plain.expected_duration))
    ends = [
        (np.quantile(t, 0.025), np.quantile(later, 0.975), *np.quantile(E, [0.025, 0.975]))
        for t, later, E in (np.array(drawn).T for drawn in found.values() if drawn)
    ]
    if not ends:
        nothing = np.array([0.0, np.inf])
        return nothing, nothing
    columns = np.array(ends).T
    return (np.array([columns[0].min(), columns[1].max()]), np.array([columns[2].min(), columns[3].max()]))
