"""The exact optimum of raw latencies, hardly slower than sorting them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import RestartError
from latfit.restart.times import Floats, check_time

BLOCK = 1024


def empirical_optimum(latencies: ArrayLike, n_out: int = 0, *, cost: float = 0.0) -> tuple[float, float]:
    """The timeout and E_J of the exact optimum for latencies in any order and `n_out` that never returned.

    With x sorted and N all probes, E_i = (x_1 + … + x_i + (N−i)(x_i + c))/i. Equal values need no care:
    among them E falls with i. Within a block i₀ < i ≤ i₁ no E_i is below
    (Σ_{j≤i₀} x_j + (N−i₀) x_{i₀+1} + (N−i₁) c)/i₁, so only blocks whose bound is below the least E at
    the ends of blocks are looked into.
    """
    c = check_time("cost", cost)
    x = np.sort(np.asarray(latencies, dtype=np.float64).ravel())
    if not x.size:
        raise RestartError("there is no latency to find an optimum from")
    if not (x[0] >= 0 and np.isfinite(x[-1])):  # NaN and ∞ sort to the end
        raise RestartError("latencies must be finite and not negative; count what never returned in n_out")
    if n_out < 0 or n_out != int(n_out):
        raise RestartError(f"the number of probes that never returned is {n_out}; it must be a whole number, 0 or more")
    n_all = x.size + int(n_out)
    starts = np.arange(0, x.size, BLOCK)
    ends = np.minimum(starts + BLOCK, x.size)
    total = np.cumsum(np.add.reduceat(x, starts))
    before = np.concatenate([[0.0], total[:-1]])
    at_ends = (total + (n_all - ends) * (x[ends - 1] + c)) / ends
    floor = (before + (n_all - starts) * x[starts] + (n_all - ends) * c) / ends
    best = int(np.argmin(at_ends))
    timeout, E_J = float(x[ends[best] - 1]), float(at_ends[best])
    for block in np.flatnonzero(floor <= E_J):
        if floor[block] <= E_J:
            t, E = _in_block(x[starts[block] : ends[block]], int(starts[block]), float(before[block]), n_all, c)
            if (E, t) < (E_J, timeout):
                timeout, E_J = t, E
    return timeout, E_J


def _in_block(x: Floats, start: int, before: float, n_all: int, cost: float) -> tuple[float, float]:
    """The best timeout among the latencies of one block and its E_J."""
    i = np.arange(start + 1, start + x.size + 1)
    E = (before + np.cumsum(x) + (n_all - i) * (x + cost)) / i
    best = int(np.argmin(E))
    return float(x[best]), float(E[best])
