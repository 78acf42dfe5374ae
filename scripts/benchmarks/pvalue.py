"""Rows on p-values: Kolmogorov–Smirnov with a refit on every resample."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import stats

import latfit
from benchmarks import rivals
from benchmarks.data import probes, sample_of
from benchmarks.timing import Row, Timed, duel, in_turns, seconds
from latfit.fitting import Fit, GoodnessOfFit, fit, ks_test
from latfit.fitting.kolmogorov import resampled_distances
from latfit.laws import parse_law
from latfit.sample import LatencySample

N = 1000
HYBRID_REFITS, HYBRID_SECONDS = 199, 2.0  # of the law that is searched for, and what they may take
FEW = 5  # surpyval's refits are measured on so many
COMPLETE = {
    "lognormal": ("lognormal(mu=5.5,sigma=1)", stats.lognorm, "≥ 4 ×"),
    "weibull": ("weibull(shape=1.5,scale=300)", stats.weibull_min, "≥ 120 ×"),
}


def refits(quick: bool) -> int:
    return 199 if quick else 999


def tested(sample: LatencySample, best: Fit, count: int) -> GoodnessOfFit:
    """The p-value with every refit, which `ks_test` leaves out once the verdict is certain."""
    test = ks_test(sample, best, bootstrap=0)
    distances = resampled_distances(sample, best, count, np.random.default_rng(2))
    return replace(test, p_bootstrap=float((1 + (distances >= test.statistic).sum()) / (1 + count)))


def complete(key: str, name: str, quick: bool) -> list[Row]:
    """Raw latencies that all returned to a fit and its p-value."""
    spec, law, wanted = COMPLETE[name]
    x, count = parse_law(spec).sample(N, np.random.default_rng(1)), refits(quick)

    def theirs() -> Any:
        return stats.goodness_of_fit(law, x, known_params={"loc": 0}, statistic="ks", n_mc_samples=count, rng=2)

    def ours() -> GoodnessOfFit:
        sample = sample_of(x, None)
        return tested(sample, fit(sample, [name], rho=0.0)[0], count)

    def judged(a: Any, b: GoodnessOfFit) -> tuple[bool, str]:
        p, q = float(a.pvalue), float(b.p_bootstrap or 0.0)
        noise = 3 * np.sqrt((p * (1 - p) + q * (1 - q)) / count)  # of two independent bootstraps
        same = abs(p - q) <= noise and abs(a.statistic - b.statistic) < 1e-4
        return same, f"p {p:.3f} and {q:.3f}, distance {a.statistic:.5f} and {b.statistic:.5f}"

    work, rounds = f"KS p-value, {count} refits, n = {N}, {name}", 1 if quick else 3
    return [duel(key, work, "scipy goodness_of_fit", wanted, theirs, ours, rounds=rounds, judge=judged)]


def defective(key: str, alone: bool, quick: bool) -> list[Row]:
    """Censored and with ρ: against surpyval's whole test, or against nothing but the refits in it."""
    x, count = probes(N, seed=3), refits(quick)
    resamples = probes(N * FEW, seed=4).reshape(FEW, N)

    def theirs() -> Any:
        if not alone:
            return rivals.surpyval_ks(x, FEW)
        return [rivals.surpyval_laws(row, ("lognormal",), lfp=True) for row in resamples]

    def ours() -> GoodnessOfFit:
        sample = sample_of(x)
        return tested(sample, fit(sample, ["lognormal"])[0], count)

    def judged(a: Any, b: GoodnessOfFit) -> tuple[bool | None, str]:
        if alone:
            return None, "fits alone, without the test"
        return abs(a - b.statistic) < 1e-6, f"distance {a:.7f} and {b.statistic:.7f}"

    told = (
        "surpyval lfp, plain fits of the same number of samples" if alone else "surpyval's own bootstrap of its lfp fit"
    )
    work = f"KS p-value, {count} refits, n = {N}, defective and censored log-normal"
    rival = f"{told}, {FEW} refits × {count / FEW:g}"
    rounds, wanted = 1 if quick else 3, "≥ 1000 ×" if alone else "≥"  # the target was set on the refits alone
    return [duel(key, work, rival, wanted, theirs, ours, rounds=rounds, scale=count / FEW, judge=judged)]


def hybrid(key: str, quick: bool) -> list[Row]:
    """The paper's law by likelihood on the bundled log: no other package tests such a fit."""
    sample = latfit.example_log().sample(cutoff=10_000)
    best = fit(sample, ["lognormal-pareto"])[0]

    def run() -> Timed:
        start = time.process_time()
        found = tested(sample, best, HYBRID_REFITS)
        return Timed(time.process_time() - start, found)

    (ours,) = in_turns(1 if quick else 3, run)
    work = f"KS p-value, {HYBRID_REFITS} refits, bundled log, log-normal–Pareto by likelihood"
    told = f"p {ours[-1].result.p_bootstrap:.3f}"
    return [
        Row(key, work, f"{HYBRID_SECONDS:g} s", "≤ 1 ×", [HYBRID_SECONDS], seconds(ours), "processor s", answers=told)
    ]


BENCHES = {f"pvalue/{name}": partial(complete, name=name) for name in COMPLETE} | {
    "pvalue/defective-refits": partial(defective, alone=True),
    "pvalue/defective": partial(defective, alone=False),
    "pvalue/hybrid": hybrid,
}
