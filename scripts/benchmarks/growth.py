"""How cost grows: time and peak memory of the optimum and of the fits at n = 10³…10⁷ latencies."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Row, in_process

SETUP = """
import numpy as np
from latfit.fitting import CLASSICAL, fit
from latfit.laws import Empirical
from latfit.restart import advise
from latfit.sample import LatencySample
x = np.random.default_rng(1).lognormal(5.5, 1, {n})
"""
WORK = {
    "sample and exact optimum": "sample = LatencySample.of(x, lost={n} // 40); advise(Empirical.of(sample))",
    "sample and six laws": "sample = LatencySample.of(x, lost={n} // 40); fit(sample, CLASSICAL)",
}


def rows(quick: bool) -> list[Row]:
    """One row a piece of work, with the exponent of n fitted from 10⁵ on."""
    sizes = [10**k for k in range(3, 6 if quick else 8)]
    found = []
    for work, code in WORK.items():
        measured = [in_process(SETUP.format(n=n), code.format(n=n)) for n in sizes]
        last = measured[-3:]
        exponent = np.polyfit(np.log(sizes[-3:]), np.log([m[0] for m in last]), 1)[0]
        note = "; ".join(f"{n:.0e}: {t:.3g} s, {m:.0f} MiB" for n, (t, m) in zip(sizes, measured, strict=True))
        work = f"growth: {work}, n = 10³…{sizes[-1]:.0e}"
        found.append(Row(work, "linear growth", 1.0, float(exponent), "exponent", "none", float(exponent), note))
    return found
