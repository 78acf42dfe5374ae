"""The optimal timeout, E_J at it, and the speed-up over waiting until the cutoff."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.cases import Row, Task, bundled, coverage, law_of, recorded, short
from latfit.decision import Options, decide
from latfit.laws import ContinuousLaw, Defective
from latfit.laws.discrete import Discrete
from latfit.restart import expected_duration, optimal_timeout

RESAMPLES = 299


class Case(NamedTuple):
    """Probes of one system: which law, how many, which share is lost, the cutoff, the clock, what else."""

    spec: str
    n: int
    rho: float = 0.025
    cutoff: float = 10_000.0
    step: float = 1.0
    censored_after: float = np.inf
    cost: float = 0.0


CASES = (
    Case("lognormal(mu=5.5,sigma=1)", 50, 0.05),
    Case("lognormal(mu=5.5,sigma=1)", 200),
    Case("lognormal(mu=5.5,sigma=1)", 500),
    Case("lognormal(mu=5.5,sigma=1)", 2000),
    Case("lognormal(mu=5.5,sigma=1)", 500, 0.0),
    Case("lognormal(mu=5.5,sigma=1)", 500, 0.1),
    Case("lognormal(mu=5.5,sigma=1)", 500, cutoff=2000.0),
    Case("lognormal(mu=5.5,sigma=1)", 500, censored_after=3000.0),
    Case("lognormal(mu=5.5,sigma=1)", 500, cost=100.0),
    Case("lognormal(mu=6.5,sigma=1)", 500, 0.05, 20_000.0, step=60.0),
    Case("lognormal(mu=5.5,sigma=0.5)", 500),
    Case("lognormal(mu=5.5,sigma=1.5)", 500),
    Case("truncated-gaussian(mu=300,sigma=100)", 500),
    Case("weibull(shape=1.5,scale=300)", 500),
    Case("gamma(shape=2.5,scale=100)", 200, 0.01, 5000.0),
    Case("log-logistic(shape=2,scale=300)", 300, 0.05, 3000.0),
    Case("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[0.02,0.002])", 500),
    Case("bundled", 200),
    Case("bundled", 500),
    Case("bundled", 2000),
)


def as_recorded(law: ContinuousLaw, rho: float, cutoff: float, step: float) -> Defective:
    """The law of what a clock shows that rounds to the nearest step: the intervals are about it."""
    if step <= 1:
        return Defective(law, rho)
    values = np.arange(0.0, cutoff + step, step)
    F = law.cdf(values + step / 2)
    probs = np.diff(F, prepend=0.0) / F[-1]
    return Defective(Discrete(values=tuple(values), probs=tuple(probs)), 1 - (1 - rho) * float(F[-1]))


def intervals(rng: np.random.Generator, rounds: int, case: Case) -> Row:
    """Coverage of the three, and the regret of the exact and of the smoothed optimum."""
    proper = bundled() if case.spec == "bundled" else law_of(case.spec)
    law = as_recorded(proper, case.rho, case.cutoff, case.step)
    best = optimal_timeout(law, cost=case.cost, min_timeout=case.step)
    E_J = best.expected_duration
    assert E_J is not None
    truth = (best.timeout or np.inf, E_J, float(expected_duration(law, case.cutoff, cost=case.cost)) / E_J)
    hits, regrets, source = [], [], Defective(proper, case.rho)
    for _ in range(rounds):
        early = rng.exponential(case.censored_after, case.n) if np.isfinite(case.censored_after) else None
        sample = recorded(source.sample(case.n, rng), case.cutoff, case.step, early)
        seed = int(rng.integers(2**31))
        asked = Options(cost=case.cost, resamples=RESAMPLES, test=False, laws=("uniform",), seed=seed)
        chosen = decide([sample], asked)[0].timeout
        if chosen is None or chosen.timeout is None or chosen.intervals is None:
            continue
        found = chosen.intervals
        pairs = zip((found.timeout, found.expected_duration, found.speed_up), truth, strict=True)
        hits.append([low <= true <= high for (low, high), true in pairs])
        tried = np.minimum([chosen.timeout, found.smoothed_timeout or np.inf], case.cutoff)
        regrets.append(np.asarray(expected_duration(law, tried, cost=case.cost)) / E_J - 1)
    columns = dict(zip(("timeout", "E_J", "speed-up"), map(coverage, np.array(hits).T), strict=True))
    exact, smoothed = 100 * np.mean(regrets, axis=0)
    return Row("timeout", _described(case), columns | {"regret %": f"{exact:.2f}", "smoothed %": f"{smoothed:.2f}"})


def _described(case: Case) -> dict[str, str]:
    more = []
    if np.isfinite(case.censored_after):
        more.append(f"lost from sight after {case.censored_after:g} s on average")
    if case.cost:
        more.append(f"cost {case.cost:g} s")
    if case.step > 1:
        more.append(f"{case.step:g} s clock")
    law = "that of the bundled log" if case.spec == "bundled" else short(case.spec)
    about = {"law": law, "n": str(case.n), "ρ": f"{case.rho:g}", "cutoff": f"{case.cutoff:g} s"}
    return about | {"": "; ".join(more)}


def tasks() -> list[Task]:
    return [Task(intervals, (case,)) for case in CASES]
