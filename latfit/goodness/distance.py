"""Kolmogorov–Smirnov distances of many samples from the laws fitted to them."""

from __future__ import annotations

import numpy as np

from latfit.fitting.likelihood import REFIT_DECREMENT, maximise
from latfit.goodness.resample import Rows
from latfit.laws.kernel import Kernel
from latfit.laws.location_scale import LocationScaleKernel
from latfit.laws.samples import LogBatch
from latfit.numbers import Bools, Floats


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
        if returned.all() and rows.ordered:
            return _even_gaps(F)
        return np.asarray(np.where(returned, np.maximum(after - F, F - before), 0.0).max(axis=1))
    # of equal values only the last one ends a step, and only the first one begins it
    last, first = returned.copy(), returned.copy()
    last[:, :-1] &= ~(returned[:, 1:] & (key[:, 1:] == key[:, :-1]))
    first[:, 1:] &= key[:, 1:] != key[:, :-1]
    worst = np.zeros(u.shape[1])
    for chosen, level, shift in ((last, after, cell / 2), (first, before, -cell / 2)):
        row = np.nonzero(chosen)[0]
        t = np.maximum(key[chosen] + shift, 1e-300)
        F = (1 - rho[row]) * kernel.take(row).probability(t[:, None], u[:, row])[:, 0]
        np.maximum.at(worst, row, np.abs(np.broadcast_to(level, key.shape)[chosen] - F))
    return worst


def standard_gaps(kernel: LocationScaleKernel, n: int, count: int, rng: np.random.Generator) -> Floats:
    """Sup distances of `count` samples of n latencies that all returned, from the laws fitted to them; (count,).

    log x = m + s z, so that neither m nor s matters: the rows are samples of z, sorted and fitted.
    """
    z = kernel.standard_draws((count, n), rng)
    z.sort(axis=1)
    batch = LogBatch.of_rows(z)
    u = kernel.complete_form(batch)
    if u is None:
        found = maximise(kernel, batch, 0.0, [np.zeros((2, count))], decrement=REFIT_DECREMENT)
        u = np.where(found.converged, found.u, np.nan)
    z -= u[0][:, None]
    z *= np.exp(-u[1])[:, None]
    return _even_gaps(kernel.standard_cdf(z))


def _even_gaps(F: Floats) -> Floats:
    """Sup |i/n − F| before and after each of n even steps; every step is 1/n high, so the one gap tells the other."""
    n = F.shape[1]
    F -= np.arange(n) / n
    return np.asarray(np.maximum(F.max(axis=1), 1 / n - F.min(axis=1)))


def _steps(rows: Rows) -> tuple[Floats, Bools, Floats]:
    """Times in order, which of them are returns, and F̃ after each; one row of F̃ where it is the same for all."""
    returned, n = rows.returned, rows.time.shape[1]
    if rows.ordered:
        return rows.time, returned, np.arange(1.0, n + 1)[None] / n
    # at equal times returns come first
    key = np.where(returned, rows.time, np.nextafter(np.where(rows.lost, np.inf, rows.time), np.inf))
    order = np.argsort(key, axis=1)
    key, returned = (np.take_along_axis(part, order, axis=1) for part in (key, returned))
    return key, returned, 1 - np.cumprod(1 - returned / np.arange(float(n), 0, -1), axis=1)
