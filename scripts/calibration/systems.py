"""Systems whose law is known at every attempt: what a tracker is measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from calibration.cases import Floats, bundled, law_of

CUTOFF = 20_000.0
ATTEMPTS, CHANGE, SCORED = 4200, 1680, 200
PER_DAY = 200
GRID = np.exp(np.arange(math.log(1e-2), math.log(3e6), 0.005))


class Law:
    """A law with outliers on a fine grid: draws, and what an attempt with a timeout costs and completes."""

    def __init__(self, *parts: tuple[float, str], rho: float) -> None:
        laws = [(w, bundled() if spec == "bundled" else law_of(spec)) for w, spec in parts]
        whole = sum(w * law.cdf(GRID) for w, law in laws)
        self.rho, self.proper, self.F = rho, whole, (1 - rho) * whole
        S = 1 - self.F
        self.spent = np.concatenate([[GRID[0]], GRID[0] + np.cumsum((S[1:] + S[:-1]) / 2 * np.diff(GRID))])

    @cache  # noqa: B019
    def best(self, scale: float) -> tuple[float, float]:
        """The optimum at a scale: t* and E_J, t* at most the cutoff."""
        known = (scale * GRID <= CUTOFF) & (self.F > 1e-6)
        E = self.spent[known] / self.F[known]
        at = int(E.argmin())
        return scale * float(GRID[known][at]), scale * float(E[at])

    def draw(self, rng: np.random.Generator, n: int) -> Floats:
        """Latencies at scale 1; ∞ for outliers."""
        return np.where(rng.random(n) < self.rho, np.inf, np.interp(rng.random(n), self.proper, GRID))


@dataclass(frozen=True)
class Scenario:
    """Which law rules each attempt, and at which scale."""

    name: str
    laws: tuple[Law, ...]
    which: Floats
    scale: Floats

    def draw(self, rng: np.random.Generator) -> Floats:
        """One latency for each attempt."""
        x = np.empty(self.which.size)
        for k, law in enumerate(self.laws):
            rows = self.which == k
            x[rows] = law.draw(rng, int(rows.sum()))
        return x * self.scale

    def regret(self, timeouts: Floats) -> float:
        """Σ time spent / Σ what the oracle takes for as many completions − 1, in %, from attempt 200 on."""
        spent = due = 0.0
        for k, law in enumerate(self.laws):
            rows = np.flatnonzero(self.which == k)
            rows = rows[rows >= SCORED]
            scale = self.scale[rows]
            t = timeouts[rows] / scale
            spent += float((scale * np.interp(t, GRID, law.spent)).sum())
            E = np.array([law.best(round(s, 6))[1] for s in scale.tolist()])
            due += float((E * np.interp(t, GRID, law.F)).sum())
        return 100 * (spent / due - 1)

    @property
    def start(self) -> float:
        """The best timeout at the first attempt."""
        return self.laws[int(self.which[0])].best(round(float(self.scale[0]), 6))[0]


def _steps(name: str, *laws: Law, scale: float = 1.0) -> Scenario:
    """The first law, then from attempt 1680 on the last, at another scale."""
    late = np.arange(ATTEMPTS) >= CHANGE
    return Scenario(name, laws, np.where(late, len(laws) - 1, 0), np.where(late, scale, 1.0))


def _moving(name: str, law: Law, scale: Floats) -> Scenario:
    return Scenario(name, (law,), np.zeros(ATTEMPTS, dtype=np.int64), np.round(scale, 6))


@cache
def scenarios() -> dict[str, Scenario]:
    """Nineteen systems, by name; the first sixteen have no outage and no failure of the whole system."""
    ln, gauss, shipped = "lognormal(mu=5.5,sigma=1)", "truncated-gaussian(mu=300,sigma=100)", "bundled"
    a, narrow = Law((1, ln), rho=0.025), Law((1, "lognormal(mu=5.5,sigma=0.5)"), rho=0.025)
    g, b = Law((1, gauss), rho=0.025), Law((1, shipped), rho=0.025)
    fast = (0.5, "lognormal(mu=5,sigma=0.4)")
    tail = Law(fast, (0.5, "lognormal(mu=7.5,sigma=0.4)"), rho=0.0)
    healed = Law(fast, (0.5, "lognormal(mu=6,sigma=0.3)"), rho=0.0)
    few, many = Law((1, ln), rho=0.02), Law((1, ln), rho=0.2)
    i = np.arange(ATTEMPTS)
    wander = np.exp(np.cumsum(np.random.default_rng(7).normal(0, 0.02, ATTEMPTS)))
    found = [
        _steps("log-normal", a), _steps("bundled", b), _steps("Gaussian", g),
        _steps("log-normal × 3", a, scale=3), _steps("log-normal ÷ 3", a, scale=1 / 3),
        _steps("Gaussian × 3", g, scale=3), _steps("Gaussian ÷ 3", g, scale=1 / 3),
        _steps("bundled × 10", b, scale=10), _steps("bundled ÷ 10", b, scale=0.1),
        _steps("ρ .02 → .2", few, many), _steps("ρ .2 → .02", many, few),
        _steps("σ 1 → .5", a, narrow), _steps("σ .5 → 1", narrow, a),
        _steps("a tail heals", tail, healed), _steps("a tail appears", healed, tail),
        _moving("daily cycle, × 3", b, np.exp(math.log(3) / 2 * np.sin(2 * np.pi * i / PER_DAY))),
        _moving("random walk, 2 % a step", b, wander),
        _moving("slow rise to × 5", b, np.exp(math.log(5) * i / ATTEMPTS)),
        _moving("× 20 for 100 attempts", b, np.where((i >= CHANGE) & (i < CHANGE + 100), 20.0, 1.0)),
    ]  # fmt: skip
    return {one.name: one for one in found}


GOLDENS = {
    "log-normal": (0.4, 1.4), "bundled": (0.7, 1.7), "Gaussian": (0.7, 1.4), "Gaussian × 3": (0.9, 1.8),
    "bundled × 10": (1.0, 2.3), "a tail heals": (1.5, 3.5),
}  # fmt: skip
