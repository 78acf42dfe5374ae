"""Rows on restart: the exact optimum of raw latencies, against sorting them; the best hedge, against a second."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pandas as pd

from benchmarks.data import Floats
from benchmarks.timing import Row, Timed, duel, in_process, in_turns, seconds
from latfit.curve import Counts
from latfit.decision.schedule import Strata, choose_schedules
from latfit.evidence.worlds import survey
from latfit.laws import Empirical
from latfit.restart import PolicyOutcome, optimal_policy
from latfit.restart.search import Budget
from latfit.sample import LatencySample
from latfit.table import Column, ProbeTable

KINDS = {
    "lognormal": lambda rng, n: rng.lognormal(5.5, 1, n),
    "seconds": lambda rng, n: np.round(rng.lognormal(5.5, 1, n)),
    "exponential": lambda rng, n: rng.exponential(300, n),
}


def exact(latencies: Floats, lost: int) -> tuple[float, float]:
    """The optimal timeout of raw latencies and E_J there, as every command finds it: sample, curve, argmin."""
    curves = Counts.of_sample(LatencySample.of(latencies, lost=lost)).curves()
    at, E = curves.exact(0.0, curves.allowed(0.0, completions=1))
    return float(curves.times[0, at[0]]), float(E[0])


def judged(latencies: Floats, found: tuple[float, float]) -> tuple[bool, str]:
    """E_J against the plain formula at every latency."""
    x, i = np.sort(latencies), np.arange(1, latencies.size + 1)
    E = float(np.min((np.cumsum(x) + (x.size + x.size // 40 - i) * x) / i))
    return bool(np.isclose(found[1], E, rtol=1e-9, atol=0)), f"E_J {found[1]:.6f} s, by the plain formula {E:.6f} s"


def optimum(key: str, kind: str, quick: bool) -> list[Row]:
    """10⁷ unsorted latencies (10⁶ with --quick), 2.5 % of the probes never returned."""
    n = 10**6 if quick else 10**7
    x = KINDS[kind](np.random.default_rng(7), n)
    work = f"exact empirical optimum, {n:.0e} unsorted latencies, {kind}"

    def theirs() -> float:  # keeps nothing: the next run of either side must find the same free memory
        return float(np.sort(x)[-1])

    def judge(_: float, found: tuple[float, float]) -> tuple[bool, str]:
        return judged(x, found)

    ours = partial(exact, x, n // 40)
    return [duel(key, work, "np.sort", "≤ 1.2 ×", theirs, ours, rounds=5, judge=judge)]


DRAWN = """
import numpy as np
from latfit.decision import Options, decide
from latfit.sample import LatencySample
x = np.random.default_rng(1).lognormal(5.5, 1, {n})
"""
ADVICE = """
asked = Options(resamples=0, test=False, laws=())
made = decide([LatencySample.of(x, lost=x.size // 40)], asked, figures=True)[0].timeout.to_dict()
"""
MOST_BYTES = 64


def advice(key: str, quick: bool) -> list[Row]:
    """The decision of `latfit timeout` on distinct latencies: windows, standard deviation, quantiles."""
    n = 10**6 if quick else 10**7
    setup = DRAWN.format(n=n)
    a, b = in_turns(2, partial(in_process, setup, "np.sort(x)"), partial(in_process, setup, ADVICE, "made['timeout']"))
    before = in_process(setup, "pass").result.peak
    each = [(one.result.peak - before) * 2**20 / n for one in b]
    work = f"decision with windows and quantiles, {n:.0e} distinct latencies"
    told = f"timeout {b[0].result.answer:.6g} s"
    return [
        Row(f"{key}/time", work, "np.sort", "≤ 6 ×", seconds(a), seconds(b), answers=told),
        Row(f"{key}/memory", f"{work}, above the latencies", f"{MOST_BYTES} bytes each", "≤ 1 ×", [MOST_BYTES], each,
            "bytes"),
    ]  # fmt: skip


HEDGE_N, HEDGE_E = 1.521425, 290.634  # the submissions of the law's best timeout, and its best hedge within them


def best_hedge(latencies: Floats) -> Timed:
    """The processor time of the best hedge of raw latencies at the load of the best timeout, and what it brings."""
    start = time.process_time()
    law = Empirical.of(LatencySample.of(latencies, lost=latencies.size // 39))
    best = optimal_policy(law, "hedge", budget=Budget("submissions", HEDGE_N))
    return Timed(time.process_time() - start, best)


def hedge(key: str, quick: bool) -> list[Row]:
    """10⁶ distinct latencies (10⁵ with --quick), 2.5 % of the probes never returned."""
    n = 10**5 if quick else 10**6
    x = KINDS["lognormal"](np.random.default_rng(7), n)
    (found,) = in_turns(5, partial(best_hedge, x))
    best: PolicyOutcome = found[-1].result
    E = best.expected_duration or np.inf
    told = f"{best.policy.spec(4)}: E_J {E:.2f} s, {HEDGE_E:.2f} s under the law that generated them"
    work = f"the best hedge at the load of the best timeout, {n:.0e} distinct latencies"
    return [Row(key, work, "one second", "≤ 1 ×", [1.0], seconds(found), "processor s", abs(E / HEDGE_E - 1) < 0.02,
                told)]  # fmt: skip


def objective(key: str, quick: bool) -> list[Row]:
    """The worlds that a log of 1000 rows supports, and the best schedule in the worst of them."""
    x, rng = KINDS["lognormal"](np.random.default_rng(7), 1000), np.random.default_rng(8)
    columns = {name: Column(name, rng.integers(0, k, x.size), pd.Index([f"{name}{i}" for i in range(k)]))
               for name, k in (("site", 20), ("size", 5))}  # fmt: skip
    probes = ProbeTable(x, np.zeros(x.size, dtype=np.int8), np.sort(rng.uniform(0, 1e6, x.size)), columns)

    def ours() -> Timed:
        start = time.process_time()
        strata = Strata.of(probes.latency, probes.status, 1e4, survey(probes, 1e4).worlds)
        return Timed(time.process_time() - start, choose_schedules([strata], risk=0.3))

    (found,) = in_turns(5 if quick else 25, ours)
    work = "worlds and schedule of a log of 1000 rows with two columns and times"
    return [Row(key, work, "5 ms", "≤ 1 ×", [0.005], seconds(found), "processor s")]


BENCHES = {f"optimum/{kind}": partial(optimum, kind=kind) for kind in KINDS} | {
    "optimum/hedge": hedge,
    "advice": advice,
    "objective": objective,
}
