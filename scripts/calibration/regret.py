"""Which rule picks the timeout of a log: the exact optimum, the smoothed one, or the robust one?

The population was fixed before anything was measured on it: light, heavy, flat, bimodal and kinked laws, small and
large logs, no, few and many outliers. The regret of a rule is E_J of the truth at its timeout over the least, − 1.
"""

from __future__ import annotations

import numpy as np

from calibration.cases import Row, Task, law_of, recorded, short
from latfit.curve import Counts, StepCurves
from latfit.laws import Defective
from latfit.resample import Bins
from latfit.restart import expected_duration, optimal_timeout

LAWS = (
    "lognormal(mu=5.5,sigma=0.4)",
    "lognormal(mu=5.5,sigma=1)",
    "lognormal(mu=5.5,sigma=1.5)",
    "exponential(rate=0.003)",
    "weibull(shape=1.1,scale=300)",
    "weibull(shape=2,scale=300)",
    "truncated-gaussian(mu=300,sigma=100)",
    "gamma(shape=2.5,scale=100)",
    "log-logistic(shape=2,scale=300)",
    "pareto(a=500,nu=2.2)",
    "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[0.02,0.002])",
    "piecewise-uniform(edges=[100,200,600,700],probs=[0.5,0,0.5])",
    "uniform(a=100,b=500)",
)
SIZES = (50, 100, 300, 1000)
RATIOS = (0.0, 0.01, 0.05)
CUTOFF = 10_000.0
RULES = ("exact", "smoothed", "robust")


def minimum(curve: StepCurves, resolution: float) -> float:
    """The timeout with the least E_J, ∞ where waiting is as good."""
    k, _ = curve.exact(0.0, curve.allowed(resolution))
    return np.inf if curve.S[0, k[0]] < 1e-9 else float(curve.times[0, k[0]])


def regrets(rng: np.random.Generator, rounds: int, spec: str, n: int, rho: float) -> np.ndarray:
    """(rounds, 3) the regret of each rule."""
    law = Defective(law_of(spec), rho)
    best = optimal_timeout(law, min_timeout=1.0)
    assert best.expected_duration is not None
    found = []
    for _ in range(rounds):
        sample = recorded(law.sample(n, rng), CUTOFF, 1.0)
        if sample.completed.total < 5:
            continue
        curve = Counts.of_sample(sample).curves()
        exact, smoothed = (minimum(each, sample.resolution) for each in (curve, Bins.of(sample, 1.0).counts.curves()))
        robust = curve.robust_argmin(0.0, curve.allowed(sample.resolution))[1][0]
        tried = np.minimum([exact, smoothed, robust], CUTOFF)
        found.append(np.asarray(expected_duration(law, tried)) / best.expected_duration - 1)
    return np.array(found)


def rows(rng: np.random.Generator, rounds: int, spec: str) -> list[Row]:
    """One row a law: median, mean and 95 % quantile over all sizes and ratios."""
    every = np.concatenate([regrets(rng, rounds, spec, n, rho) for n in SIZES for rho in RATIOS])
    cells = {}
    for rule, values in zip(RULES, 100 * every.T, strict=True):
        middle, tail = np.quantile(values, [0.5, 0.95])
        cells[rule] = f"{middle:.2f} / {values.mean():.2f} / {tail:.1f}"
    return [Row("regret", {"law": short(spec)}, cells)]


def tasks() -> list[Task]:
    return [Task(rows, (spec,), 0.1) for spec in LAWS]
