"""Rows on restart: the exact optimum of raw latencies, against sorting them."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.timing import Row, in_turns, median, seconds, spread
from latfit.restart import empirical_optimum


def rows(quick: bool) -> list[Row]:
    """10⁷ unsorted latencies (10⁶ with --quick) of three kinds, 2.5 % of the probes never returned."""
    n = 10**6 if quick else 10**7
    rng = np.random.default_rng(7)
    kinds = {
        "log-normal": rng.lognormal(5.5, 1, n),
        "whole seconds": np.round(rng.lognormal(5.5, 1, n)),
        "exponential": rng.exponential(300, n),
    }
    found = []
    for kind, x in kinds.items():
        runs = (partial(np.sort, x), partial(empirical_optimum, x, n // 40))
        rival, ours = in_turns(7, *(partial(seconds, run) for run in runs))
        note = f"latfit {spread(ours)} s, np.sort {spread(rival)} s"
        name = f"exact empirical optimum, {n:.0e} unsorted latencies, {kind}"
        ratio = median(ours) / median(rival)
        found.append(Row(name, "np.sort", median(rival), median(ours), "s", "≤ 1.2 ×", ratio, note))
    return found
