"""Least squares on the cdf with automatic starts, against scipy from one good start: the hybrid, and many groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import curve_fit
from scipy.special import ndtr

from benchmarks.data import probes, sample_of
from benchmarks.timing import Row, duel
from latfit.fitting import fit, fit_many
from latfit.fitting.least_squares import Target
from latfit.laws import parse_law
from latfit.sample import LatencySample


def hybrid(key: str, quick: bool) -> list[Row]:
    """Least squares from nothing but the sample, against one start at the truth on a curve made ready."""
    law = parse_law("lognormal-pareto(mu=4.7,sigma=0.7,a=750,nu=2.2,k=0.45,t_min=103,t_max=9790)")
    x = np.ceil(law.sample(2084, np.random.default_rng(5)))
    sample = LatencySample.of(x[x <= 10_000], censored=[10_000.0] * int(53 + (x > 10_000).sum()), cutoff=10_000.0)
    goal = Target.of(sample)
    t, y = goal.t[0], goal.y[0]
    t_min, t_max = sample.completed.values[0] - 1, sample.completed.values[-1]

    def model(t: Any, mu: float, sigma: float, a: float, nu: float, k: float) -> Any:
        alpha = ((t - t_min) / (t_max - t_min)) ** k
        return (1 - alpha) * ndtr((np.log(t - t_min) - mu) / sigma) + alpha * (1 - (a / (a + t)) ** nu)

    def theirs() -> float:
        found, _ = curve_fit(model, t, y, p0=(4.7, 0.7, 750, 2.2, 0.45), maxfev=20_000)
        return float(((model(t, *found) - y) ** 2).sum())

    def ours() -> float:
        return float(fit(sample, ["lognormal-pareto"], method="ls", resamples=0)[0].sse or np.inf)

    def judged(a: float, b: float) -> tuple[bool, str]:
        return b <= a * (1 + 1e-9), f"sse {a:.9f} and {b:.9f}"

    work = f"log-normal–Pareto least squares over {t.size} steps, automatic multi-start"
    rival = "scipy curve_fit from the truth"
    return [duel(key, work, rival, "≥ 1 ×", theirs, ours, rounds=3 if quick else 5, judge=judged)]


def groups(key: str, quick: bool) -> list[Row]:
    """The log-normal law over many groups of 500, against a loop on curves made ready."""
    count, size, few = (64 if quick else 1000), 500, 20
    samples = [sample_of(row) for row in probes(count * size).reshape(count, size)]
    goals = [Target.of(sample) for sample in samples[:few]]

    def model(t: Any, mu: float, sigma: float) -> Any:
        return ndtr((np.log(t) - mu) / sigma)

    def theirs() -> list[float]:
        found = [curve_fit(model, goal.t[0], goal.y[0], p0=(5.5, 1.0))[0] for goal in goals]
        return [float(((model(goal.t[0], *at) - goal.y[0]) ** 2).sum()) for goal, at in zip(goals, found, strict=True)]

    def ours() -> list[float]:
        return [float(fits[0].sse or np.inf) for fits in fit_many(samples, ["lognormal"], method="ls")]

    def judged(a: list[float], b: list[float]) -> tuple[bool, str]:
        worst = max(mine / other - 1 for mine, other in zip(b, a, strict=False))
        return worst <= 1e-9, f"sse latfit/rival − 1 at most {worst:+.1e} in {few} fits"

    work = f"log-normal least squares, {count} groups of {size}, {goals[0].t.shape[1] - 1} steps"
    rival = f"scipy curve_fit from the truth, {few} groups × {count // few}"
    return [duel(key, work, rival, "≥ 1 ×", theirs, ours, rounds=3, scale=count / few, judge=judged)]


BENCHES = {"hybrid/curve_fit": hybrid, "groups/curve_fit": groups}
