"""p-values under the null, and how often a warning of drift or dependence is a false alarm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import chisquare

import latfit
from calibration.cases import Row, Task, latencies, law_of, recorded, short
from calibration.ratios import LAWS
from latfit.decision import Options, decide
from latfit.evidence import probes_of
from latfit.fitting import Fit, GoodnessOfFit, fit, ks_test
from latfit.sample import LatencySample

COMPLETE, CENSORED, ROUNDED = "complete", "2.5 % outliers, cut at 90 %", "60 s clock"
LATE, ROUNDED_UP = "2.5 % outliers, cut at 99.99 %", "60 s clock that rounds up"
Test = Callable[..., GoodnessOfFit]


def drawn(spec: str, n: int, kind: str, rng: np.random.Generator) -> LatencySample:
    law = law_of(spec)
    centile = {CENSORED: 0.9, LATE: 0.9999}.get(kind)
    rho, cutoff = (0.0, None) if centile is None else (0.025, float(law.ppf(centile)))
    x = latencies(law, n, rho, rng)
    if kind == ROUNDED_UP:
        x = 60 * np.ceil(x / 60)
    return recorded(x, cutoff, 60.0 if kind in (ROUNDED, ROUNDED_UP) else 0.0)


def _row(name: str, about: dict[str, str], p: np.ndarray) -> Row:
    """Rejections at three levels, and a χ² test that ten equal bins hold equally many p-values."""
    cells = {"logs": str(p.size)}
    for level in (0.01, 0.05, 0.1):
        rejected = float((p <= level + 1e-12).mean())
        error = np.sqrt(level * (1 - level) / p.size)
        mark = " ↑" if rejected > level + 3 * error else " ↓" if rejected < level - 3 * error else ""
        cells[f"at {level:.0%}"] = f"{100 * rejected:.1f}{mark}"
    counts = np.bincount(np.clip(np.ceil(10 * p - 1e-9).astype(int), 1, 10) - 1, minlength=10)
    even = float(chisquare(counts).pvalue)
    cells["uniform (χ² p)"] = f"{even:.3f}" if even >= 0.001 else "<0.001"
    return Row("p-values", {"p-value": name, **about}, cells)


def known(rng: np.random.Generator, rounds: int, spec: str, n: int, kind: str) -> Row:
    """Kolmogorov's p-value with the true law."""
    law, p = law_of(spec), []
    truth = Fit(law.name, "mle", n, law=law, rho=0.025 if kind == CENSORED else 0.0, params=dict(law.params))
    for _ in range(rounds):
        p.append(ks_test(drawn(spec, n, kind, rng), truth, bootstrap=0).p_asymptotic)
    return _row("KS asymptotic, parameters known", _about(spec, n, kind), np.array(p))


def fitted(rng: np.random.Generator, rounds: int, spec: str, n: int) -> Row:
    """Kolmogorov's p-value with a fitted law: what the paper does."""
    law, p = law_of(spec), []
    for _ in range(rounds):
        sample = drawn(spec, n, COMPLETE, rng)
        p.append(ks_test(sample, fit(sample, [law.name], rho=0.0)[0], bootstrap=0).p_asymptotic)
    return _row("KS asymptotic, parameters fitted", _about(spec, n, COMPLETE), np.array(p))


TESTS: dict[str, tuple[Test, str, int]] = {
    "KS bootstrap": (ks_test, "mle", 199),
    "KS bootstrap, least squares": (ks_test, "ls", 99),
    "KS bootstrap, subsample of 100": (partial(ks_test, subsample=100), "mle", 99),
}


def bootstrapped(rng: np.random.Generator, rounds: int, name: str, spec: str, n: int, kind: str) -> Row:
    """p-values of a parametric bootstrap, which refits."""
    law, p = law_of(spec), []
    test, method, resamples = TESTS[name]
    for _ in range(rounds):
        sample = drawn(spec, n, kind, rng)
        p.append(test(sample, fit(sample, [law.name], method=method)[0], bootstrap=resamples, rng=rng).p_bootstrap)
    return _row(name, _about(spec, n, kind), np.array(p))


def _about(spec: str, n: int, kind: str) -> dict[str, str]:
    return {"law": short(spec), "n": str(n), "sample": kind}


def alarms(rng: np.random.Generator, rounds: int, n: int) -> Row:
    """How often independent, identical probes are called drifting or dependent."""
    codes = []
    submitted = pd.Timestamp("2006-01-01", tz="UTC") + pd.to_timedelta(np.arange(n), unit="min")
    for _ in range(rounds):
        frame = pd.DataFrame({"submitted": submitted, "latency": rng.lognormal(5.5, 1, n), "status": "completed"})
        made = decide([probes_of(latfit.from_frame(frame))], Options(resamples=0, test=False, laws=("uniform",)))
        codes.append(set(made[0].codes))
    shares = {code: f"{100 * np.mean([code in each for each in codes]):.2f}" for code in ("drift", "dependence")}
    return Row("alarms", {"n": str(n)}, shares)


def tasks() -> list[Task]:
    lognormal, weibull = "lognormal(mu=5.5,sigma=1)", "weibull(shape=1.5,scale=300)"
    kinds = (COMPLETE, CENSORED, ROUNDED)
    return [
        *(Task(known, (lognormal, n, COMPLETE), 4) for n in (50, 200, 1000)),
        Task(known, (lognormal, 200, CENSORED), 4),
        Task(fitted, (lognormal, 200), 4),
        *(Task(bootstrapped, ("KS bootstrap", spec, 200, kind), 2) for spec in LAWS for kind in kinds[:2]),
        *(Task(bootstrapped, ("KS bootstrap", spec, 200, ROUNDED)) for spec in LAWS[:5]),  # slow for the others
        *(
            Task(bootstrapped, ("KS bootstrap", spec, n, CENSORED), 2)
            for spec in (lognormal, weibull)
            for n in (50, 1000)
        ),
        *(Task(bootstrapped, ("KS bootstrap, least squares", lognormal, 200, kind), 0.5) for kind in kinds),
        Task(bootstrapped, ("KS bootstrap, subsample of 100", lognormal, 500, COMPLETE), 0.5),
        *(Task(alarms, (n,), 0.5) for n in (50, 200, 1000)),
        *(
            Task(bootstrapped, ("KS bootstrap, least squares", lognormal, 200, kind), 0.5)
            for kind in (LATE, ROUNDED_UP)
        ),
    ]
