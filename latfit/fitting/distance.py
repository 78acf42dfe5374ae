"""Kolmogorov–Smirnov distances of many samples from the laws fitted to them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latfit.fitting.batch import Floats
from latfit.fitting.kernel import Kernel
from latfit.fitting.resample import Rows


def tallied_gaps(kernel: Kernel, x: Floats, weights: Floats, cell: float, n: int, u: Floats, rho: Floats) -> Floats:
    """Sup distances of rows that share their values, nothing censored before the cutoff."""
    after = np.cumsum(weights, axis=1) / n
    before = after - weights / n
    share = (1 - rho)[:, None]
    high, low = (share * kernel.probability(edge[None], u) for edge in (x + cell / 2, np.maximum(x - cell / 2, 1e-300)))
    seen = weights > 0
    return np.asarray(np.where(seen, np.maximum(np.abs(after - high), np.abs(before - low)), 0.0).max(axis=1))


def row_gaps(kernel: Kernel, rows: Rows, cell: float, u: Floats, rho: Floats) -> Floats:
    """Sup distances of rows, by the product-limit estimate of each where sight was lost early."""
    key, returned, after = _steps(rows)
    before = np.concatenate([np.zeros((after.shape[0], 1)), after[:, :-1]], axis=1)
    share = (1 - rho)[:, None]
    time = np.where(returned, key, 1.0) if rows.lost.any() else key
    if not cell:
        F = kernel.probability(time, u)
        if rho.any():
            F *= share
        if returned.all() and rows.ordered:  # every step is 1/n high, so the gap before it tells the one after it
            F -= before
            return np.asarray(np.maximum(F.max(axis=1), after[0, 0] - F.min(axis=1)))
        return np.asarray(np.where(returned, np.maximum(after - F, F - before), 0.0).max(axis=1))
    # of equal values only the last one ends a step, and only the first one begins it
    same = key[:, 1:] == key[:, :-1]
    edge = np.zeros((key.shape[0], 1), dtype=bool)
    last, first = ~np.concatenate([same, edge], axis=1), ~np.concatenate([edge, same], axis=1)
    high = np.abs(after - share * kernel.probability(time + cell / 2, u))
    low = np.abs(before - share * kernel.probability(np.maximum(time - cell / 2, 1e-300), u))
    return np.asarray(np.maximum(np.where(returned & last, high, 0), np.where(returned & first, low, 0)).max(axis=1))


def _steps(rows: Rows) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Times in order, which of them are returns, and F̃ after each; one row of F̃ where it is the same for all."""
    returned, n = rows.returned, rows.time.shape[1]
    if rows.ordered:
        return rows.time, returned, np.arange(1.0, n + 1)[None] / n
    key = np.where(rows.lost, np.inf, rows.time)
    order = np.lexsort((~returned, key), axis=1)  # at equal times returns come first
    key, returned = (np.take_along_axis(part, order, axis=1) for part in (key, returned))
    return key, returned, 1 - np.cumprod(1 - returned / np.arange(float(n), 0, -1), axis=1)
