"""The best timeout, E_J at the one that is recommended, and its speed-up over waiting until the cutoff.

The methods of 0.2.0 were developed on these cases, with other seeds; `scattered` draws systems that nobody chose.
"""

from __future__ import annotations

import numpy as np

from calibration.cases import Row, Task, coverage
from calibration.probed import Case, Truth
from latfit.decision import Options, decide
from latfit.decision.result import Recommendation

PRINTED = 0.005  # of a speed-up: half of its last digit in a report, as of 1.02 ×
IDENTIFIED = 10  # completions that a log has at or below the best timeout on average, for it to be found at all

LOGNORMAL, MINIMA = "lognormal(mu=5.5,sigma=1)", "piecewise-uniform(edges=[100,200,500,600],probs=[0.5,0,0.5])"
EXPONENTIAL, WEIBULL = "exponential(rate=0.003)", "weibull(shape=1.1,scale=300)"
NOTHING, BEYOND = "† the best timeout is 0", "† the best timeout lies beyond the one in force"
CASES = (
    Case(LOGNORMAL, 50, 0.05),
    Case(LOGNORMAL, 200),
    Case(LOGNORMAL, 500),
    Case(LOGNORMAL, 2000),
    Case(LOGNORMAL, 500, 0.0),
    Case(LOGNORMAL, 500, 0.1),
    Case(LOGNORMAL, 500, cutoff=2000.0),
    Case(LOGNORMAL, 500, cost=100.0),
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
    Case("log-logistic(shape=0.9,scale=64)", 500, cost=5.0),
    Case("pareto(a=300,nu=1.2)", 500, cost=30.0),
    Case("pareto(a=300,nu=1.2)", 500, impossible=NOTHING),
    Case("lognormal(mu=5.5,sigma=0.7)", 500, 0.05, fails=0.01),
    Case(LOGNORMAL, 500, fails=0.001),
    Case("lognormal(mu=5.5,sigma=0.4)", 100, 0.02),
    Case("lognormal(mu=5.5,sigma=0.4)", 50, 0.01),
    Case("weibull(shape=2,scale=300)", 200, 0.005),
    Case("truncated-gaussian(mu=300,sigma=100)", 300, 0.0),
    Case(EXPONENTIAL, 300, 0.0, 8000.0, step=0.001),
    Case(EXPONENTIAL, 300, cutoff=8000.0, step=0.001, impossible=NOTHING),
    Case(WEIBULL, 100, 0.0),
    Case(WEIBULL, 1000, 0.0),
    Case(WEIBULL, 1000, 0.01),
    Case(MINIMA, 500, 0.0),
    Case(MINIMA, 500),
    Case("uniform(a=100,b=500)", 500),
    Case("uniform(a=100,b=500)", 100, 0.01),
    Case(LOGNORMAL, 500, censored_after=3000.0),
    Case(LOGNORMAL, 500, cutoff=2000.0, censored_after=1000.0),
    Case(LOGNORMAL, 500, cutoff=2000.0, censored_after=500.0),
    Case(LOGNORMAL, 500, censored_after=1000.0, free=True),
    Case("gamma(shape=2.5,scale=100)", 300, 0.05, 1500.0, censored_after=500.0),
    Case(LOGNORMAL, 500, cutoff=600.0),
    Case(LOGNORMAL, 500, cutoff=250.0, impossible=BEYOND),
    *(Case(LOGNORMAL, 1000, phi=phi) for phi in (0.3, 0.6)),
    Case(LOGNORMAL, 1000, phi=0.9, impossible="‡ about 20 independent stretches"),
    Case(LOGNORMAL, 1000, phi=0.97, impossible="‡ fewer than 10 independent stretches"),
    Case("bundled", 2000, phi=0.6),
)
WRITTEN_FIRST = (  # before what choosing a timeout does to E_J was measured by resamples that chose as near
    Case("gamma(shape=0.7,scale=400)", 400, 0.03, cost=20.0),
    Case("lognormal(mu=5.5,sigma=2)", 300, 0.1),
    Case("weibull(shape=0.6,scale=300)", 500, 0.02, cost=20.0),
    Case("log-logistic(shape=1.5,scale=300)", 500, 0.05, fails=1 / 2000),
    Case("uniform(a=200,b=260)", 250, 0.08),
    Case("exponential(rate=0.01)", 100, 0.05, 3000.0, step=0.001, impossible=NOTHING),
    Case("exponential(rate=0.01)", 2000, 0.05, 3000.0, step=0.001, impossible=NOTHING),
    Case(LOGNORMAL, 300, 0.05, cutoff=300.0, impossible=BEYOND),
    Case(WEIBULL, 300, 0.05),
    Case("gamma(shape=1.2,scale=200)", 800, 0.02),
    Case("weibull(shape=2,scale=300)", 400, 0.02, cutoff=300.0, impossible=BEYOND),
)
UNSEEN = (  # written down when everything was decided
    Case("weibull(shape=0.8,scale=200)", 150, 0.08, cost=10.0),
    Case("lognormal(mu=5,sigma=1.2)", 800, 0.01, 5000.0),
    Case("erlang-mixture(p=[0.7,0.3],phases=[3,1],rates=[0.03,0.004])", 250, 0.04),
    Case("gamma(shape=1.5,scale=150)", 300, 0.1, fails=1 / 800),
    Case("log-logistic(shape=3,scale=200)", 120, 0.03, cutoff=400.0),
    Case("exponential(rate=0.005)", 500, 0.1, 4000.0, step=0.001, impossible=NOTHING),
)


def decided(case: Case, rng: np.random.Generator) -> tuple[Recommendation, float] | None:
    """The formula's answer with its intervals on a log of the case, and the cutoff; None where there is none."""
    seen = case.probes(rng)
    cutoff = None if case.free else case.cutoff
    asked = Options(cost=case.cost, cutoff=cutoff, test=False, laws=(), seed=int(rng.integers(2**31)))
    made = decide([seen if case.phi else seen.sample], asked)[0]
    own = made.timeout
    if own is not None and own.if_independent is not None:  # withheld, and told what the formula would say
        own = own.if_independent
    if own is None or own.intervals is None or own.timeout is None or made.cutoff is None:
        return None
    return own, min(made.cutoff.cutoff, case.cutoff)


def hits(case: Case, truth: Truth, own: Recommendation, cutoff: float) -> tuple[bool, bool, bool]:
    """Whether the best timeout, E_J at the recommended one and its speed-up lie in their intervals."""
    assert own.intervals is not None
    assert own.timeout is not None
    (early, late), duration, faster = own.intervals.timeout, own.intervals.expected_duration, own.intervals.speed_up
    E = truth.at(own.timeout)
    gain = truth.at(cutoff) / E
    best = (truth.best >= early - 1e-9) & (truth.best <= late + 1e-9)
    return (
        bool(best.any()),
        duration[0] <= E <= duration[1],
        faster[0] * (1 - PRINTED) <= gain <= faster[1] * (1 + PRINTED),
    )


def intervals(rng: np.random.Generator, rounds: int, case: Case) -> Row:
    """Coverage of the three, and the regret of what is recommended."""
    truth, found, regrets = Truth(case), [], []
    for _ in range(rounds):
        answer = decided(case, rng)
        if answer is not None and answer[0].timeout is not None:
            found.append(hits(case, truth, *answer))
            regrets.append(truth.at(answer[0].timeout) / truth.least - 1)
    cells = dict(zip(("timeout", "E_J", "speed-up"), map(coverage, np.array(found).T), strict=True))
    if case.impossible.startswith("†"):
        cells["timeout"] = "†"
    told = f"{100 * np.mean(regrets):.2f}"
    return Row("timeout", case.described(), cells | {"regret %": told, "logs": str(len(found))})


def random_case(kind: str, rng: np.random.Generator) -> Case:
    """A system that nobody chose: law, size, outliers, cutoff, and what its kind adds."""
    bodies = ("lognormal(mu=5.5,sigma={:.2f})", "gamma(shape={:.2f},scale=100)", "weibull(shape={:.2f},scale=300)",
              "log-logistic(shape={:.2f},scale=250)", "truncated-gaussian(mu=300,sigma={:.0f})",
              "pareto(a=400,nu={:.2f})", "uniform(a={:.0f},b=600)")  # fmt: skip
    ends = ((0.2, 1.6), (1, 6), (0.8, 3), (1.3, 5), (30, 200), (1.1, 4), (10, 500))
    which = int(rng.integers(len(bodies)))
    n = int(np.exp(rng.uniform(np.log(50), np.log(2000))))
    few = kind == "fewer than five outliers expected"
    rho = rng.uniform(0, min(0.05, 5 / n)) if few else rng.uniform(min(0.2, 8 / n), 0.25)
    more = {
        "early censoring": {"censored_after": float(rng.uniform(500, 5000)), "cutoff": 3000.0},
        "visible failures": {"fails": float(1 / rng.uniform(300, 5000))},
        "a cost": {"cost": float(rng.uniform(5, 200))},
        "a timeout in force": {"cutoff": float(rng.uniform(300, 1500))},
    }.get(kind, {})
    return Case(bodies[which].format(rng.uniform(*ends[which])), n, round(rho, 4), **more)


def scattered(rng: np.random.Generator, rounds: int, kind: str) -> Row:
    """One log of each of many random systems."""
    found, possible = [], []
    for _ in range(rounds):
        case = random_case(kind, rng)
        truth, answer = Truth(case), decided(case, rng)
        if answer is None:
            continue
        found.append(hits(case, truth, *answer))
        at_best = np.isin(truth.t, truth.best)
        possible.append(case.n * truth.F[at_best].max() >= IDENTIFIED and truth.best[0] < truth.t[-1])
    timeout, duration, gain = np.array(found).T
    cells = {"logs": str(len(found)), "timeout": coverage(timeout[np.array(possible)]), "E_J": coverage(duration)}
    return Row("scattered", {"systems": kind}, cells | {"speed-up": coverage(gain)})


KINDS = ("no more than a law and outliers", "fewer than five outliers expected", "early censoring", "visible failures",
         "a cost", "a timeout in force")  # fmt: skip


def tasks() -> list[Task]:
    return [*(Task(intervals, (case,), 0.5 if case.phi else 1) for case in CASES),
            *(Task(scattered, (kind,), 2) for kind in KINDS),
            *(Task(intervals, (case,)) for case in WRITTEN_FIRST + UNSEEN)]  # fmt: skip
