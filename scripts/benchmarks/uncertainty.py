"""The row on intervals: 1000 bootstraps of the optimal timeout against a loop of resample, sort, optimum."""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Row, in_turns, median, seconds, spread
from latfit.sample import LatencySample
from latfit.uncertainty import bootstrap

N, OUT, RESAMPLES, LOOPED = 100_000, 2_500, 1000, 20


def _loop(latencies: np.ndarray, rng: np.random.Generator) -> list[float]:
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


def rows(quick: bool) -> list[Row]:
    """The loop is measured on 20 resamples and taken 50 times."""
    rng = np.random.default_rng(3)
    x = np.round(rng.lognormal(5.5, 1, N - OUT), 3)
    sample = LatencySample.of(x, lost=OUT)
    # the estimates that the intervals belong to do not change the work
    rival, ours = in_turns(
        2 if quick else 5,
        lambda: seconds(lambda: _loop(x, rng)) * RESAMPLES / LOOPED,
        lambda: seconds(lambda: bootstrap(sample, 380.0, 370.0, 2.0, resamples=RESAMPLES, rng=rng)),
    )
    a, b = median(rival), median(ours)
    interval = bootstrap(sample, 380.0, 370.0, 2.0, resamples=200, rng=rng).timeout
    looped = sorted(_loop(x, rng))
    answers = f"interval {interval[0]:.0f}–{interval[1]:.0f} s, the loop's optima {looped[0]:.0f}–{looped[-1]:.0f} s"
    work, told = "1000 bootstraps of the optimum, n = 10⁵", "resample, sort, optimum in numpy"
    return [Row(work, told, a, b, "s", "≥ 5 ×", a / b, f"latfit {spread(ours)} s; {answers}")]
