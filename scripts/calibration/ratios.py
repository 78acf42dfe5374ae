"""The outlier ratio: counted with Wilson's interval, by Kaplan–Meier, and joint with a law."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from calibration.cases import Row, Task, coverage, latencies, law_of, marked, recorded, short
from latfit.fitting import SampleBatch, fit_batch, joint_outlier_ratio
from latfit.outliers import outlier_ratio
from latfit.sample import LatencySample, Tally

CHI2_95 = 3.841459
LAWS = (
    "exponential(rate=0.003)",
    "weibull(shape=1.5,scale=300)",
    "lognormal(mu=5.5,sigma=1)",
    "gamma(shape=2.5,scale=100)",
    "log-logistic(shape=2,scale=300)",
    "pareto(a=300,nu=2.5)",
    "truncated-gaussian(mu=300,sigma=100)",
)
CUTS = ((0.025, 0.975), (0.1, 0.9))  # ρ, and the share of those who return that does so before the cutoff
SIZES = (50, 200, 2000)


def counted(rng: np.random.Generator, rounds: int, rho: float) -> Row:
    """Wilson's interval covers exactly so often: no simulation."""
    cells = {}
    for n in (50, 200, 1000, 5000):
        k = np.arange(*binom.interval(1 - 1e-9, n, rho), dtype=int)
        found = [
            outlier_ratio(LatencySample(Tally(np.array([1.0]), np.array([n - i])), lost=int(i)), cutoff=10) for i in k
        ]
        inside = [each.low <= rho <= each.high for each in found]
        p = float(binom.pmf(k[inside], n, rho).sum())
        cells[f"n = {n}"] = f"{100 * p:.1f}{marked(p, 0.0)}"
    return Row("counted", {"ρ": f"{rho:g}"}, cells)


def kaplan_meier(rng: np.random.Generator, rounds: int, rho: float, mean: float) -> Row:
    """Early censoring at exponential times; at the cutoff and, as `by_cutoff` shows, at a tenth of it."""
    law, cutoff, cells = law_of("lognormal(mu=5,sigma=0.8)"), 2000.0, {}
    for n in (50, 200, 1000):
        hits = []
        for _ in range(rounds):
            early = rng.exponential(mean, n)
            sample = recorded(latencies(law, n, rho, rng), cutoff, early=early)
            hits.append([_covers(sample, t, rho + (1 - rho) * float(law.sf(t))) for t in (cutoff, cutoff / 10)])
        at, before = np.array(hits).T
        cells |= {f"n = {n}, at 2000 s": coverage(at), f"n = {n}, at 200 s": coverage(before)}
    return Row("kaplan-meier", {"ρ": f"{rho:g}", "lost from sight after": f"{mean:g} s on average"}, cells)


def _covers(sample: LatencySample, cutoff: float, true: float) -> bool:
    found = outlier_ratio(sample, cutoff=cutoff)
    return found.low <= true <= found.high


def joint(rng: np.random.Generator, rounds: int, spec: str, rho: float, centile: float) -> Row:
    """The likelihood interval covers ρ if the likelihood-ratio test of ρ accepts: two batches of fits."""
    law, cells = law_of(spec), {}
    cutoff = float(law.ppf(centile))
    for n in SIZES:
        batch = SampleBatch.of_rows(latencies(law, (rounds, n), rho, rng), cutoff)
        free, fixed = fit_batch(law.name, batch), fit_batch(law.name, batch.given(rho))
        fine = (free.error == "") & (fixed.error == "")
        cells[f"n = {n}"] = coverage((2 * (free.log_likelihood - fixed.log_likelihood) <= CHI2_95)[fine])
    return Row("joint", {"law": short(spec), "ρ": f"{rho:g}", "cut at": f"{centile:.1%}"}, cells)


def joint_chosen(rng: np.random.Generator, rounds: int, spec: str, n: int, rho: float, centile: float) -> Row:
    """As `latfit outliers` does it: the law is chosen by BIC among all, and the interval covers all that compete."""
    law, hits, right = law_of(spec), [], []
    cutoff = float(law.ppf(centile))
    for _ in range(rounds):
        found = joint_outlier_ratio(recorded(latencies(law, n, rho, rng), cutoff))
        hits.append(found.low <= rho <= found.high)
        right.append(found.law == law.name)
    case = {"law": short(spec), "n": str(n), "ρ": f"{rho:g}", "cut at": f"{centile:.1%}"}
    cells = {"covered": coverage(hits), "right law chosen": f"{100 * np.mean(right):.0f}"}
    if not all(right):
        cells["covered where it is"] = coverage(np.array(hits)[right])
    return Row("joint-chosen", case, cells)


def tasks() -> list[Task]:
    return [
        *(Task(counted, (rho,)) for rho in (0.005, 0.01, 0.025, 0.05, 0.1, 0.3)),
        *(Task(kaplan_meier, (rho, mean), 4) for rho in (0.025, 0.1) for mean in (4000.0, 1000.0)),
        *(Task(joint, (spec, *cut), 4) for spec in LAWS for cut in CUTS),
        *(
            Task(joint_chosen, (spec, n, 0.05, 0.975), 0.5)
            for spec in ("lognormal(mu=5.5,sigma=1)", "weibull(shape=1.5,scale=300)")
            for n in (200, 1000)
        ),
    ]


def error(rounds: float) -> float:
    """The Monte Carlo standard error of a coverage of 95 %, in %."""
    return 100 * math.sqrt(0.95 * 0.05 / rounds)
