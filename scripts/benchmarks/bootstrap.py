"""The row on intervals: 1000 bootstraps of the optimal timeout against a loop of resample, sort, optimum."""

from __future__ import annotations

import numpy as np

from benchmarks.data import Floats
from benchmarks.timing import Row, duel
from latfit.resample import Intervals, bootstrap
from latfit.sample import LatencySample

N, OUT, RESAMPLES, LOOPED = 100_000, 2_500, 1000, 20


def loop(latencies: Floats, rng: np.random.Generator) -> list[float]:
    """The optima of `LOOPED` resamples, each drawn, sorted and scanned in plain numpy."""
    found = []
    n = latencies.size + OUT
    for _ in range(LOOPED):
        back = rng.binomial(n, latencies.size / n)
        x = np.sort(rng.choice(latencies, back))
        i = np.arange(1, back + 1)
        E = (np.cumsum(x) + (n - i) * x) / i
        found.append(float(x[E.argmin()]))
    return found


def judged(looped: list[float], found: Intervals) -> tuple[bool, str]:
    low, high = found.timeout
    told = f"interval {low:.0f}–{high:.0f} s, the loop's optima {min(looped):.0f}–{max(looped):.0f} s"
    return low <= float(np.median(looped)) <= high, told


def row(key: str, quick: bool) -> list[Row]:
    """The loop is measured on 20 resamples and taken 50 times."""
    rng = np.random.default_rng(3)
    x = np.round(rng.lognormal(5.5, 1, N - OUT), 3)

    def ours() -> Intervals:  # the estimates that the intervals belong to do not change the work
        return bootstrap(LatencySample.of(x, lost=OUT), 380.0, 370.0, 2.0, resamples=RESAMPLES, rng=rng)

    rival = f"resample, sort, optimum in numpy, {LOOPED} × {RESAMPLES // LOOPED}"
    return [
        duel(
            key,
            f"{RESAMPLES} bootstraps of the optimum, n = 10⁵",
            rival,
            "≥ 20 ×",
            lambda: loop(x, rng),
            ours,
            rounds=2 if quick else 5,
            scale=RESAMPLES / LOOPED,
            judge=judged,
        )
    ]


BENCHES = {"bootstrap/loop": row}
