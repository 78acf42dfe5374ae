"""Logs of systems whose truth is known: what probes show, and E_J by sums that share no code with latfit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtr

from calibration.cases import Floats, bundled, law_of, short
from latfit.laws import ContinuousLaw
from latfit.table import ProbeTable

SAME = 1e-6  # a timeout at which E_J is this near to the least, as a share, is a best one too
GAP = 60.0  # seconds between two probes of a log that has an order
WARM = 500  # probes before the log begins, so that dependence has no start


class Case(NamedTuple):
    """Probes of one system: which law, how many, which share is lost, the cutoff, the clock, what else.

    `fails` is the hazard of visible failures, `phi` the correlation of neighbours (of the normal scores of latencies);
    with `free` the cutoff is left to latfit. `impossible` says why the best timeout cannot be covered.
    """

    spec: str
    n: int
    rho: float = 0.025
    cutoff: float = 10_000.0
    step: float = 1.0
    censored_after: float = np.inf
    cost: float = 0.0
    fails: float = 0.0
    phi: float = 0.0
    free: bool = False
    impossible: str = ""

    @property
    def law(self) -> ContinuousLaw:
        return bundled() if self.spec == "bundled" else law_of(self.spec)

    def described(self) -> dict[str, str]:
        """The cells of a table."""
        more = []
        if np.isfinite(self.censored_after):
            more.append(f"censored after {self.censored_after:g} s on average")
        if self.fails:
            more.append(f"failures, one in {1 / self.fails:g} s")
        if self.phi:
            more.append(f"AR({self.phi:g})")
        if self.cost:
            more.append(f"cost {self.cost:g} s")
        if self.step > 1:
            more.append(f"{self.step:g} s clock")
        if self.impossible:
            more.append(self.impossible)
        law = "that of the bundled log" if self.spec == "bundled" else short(self.spec)
        cutoff = "chosen" if self.free else f"{self.cutoff:g} s"
        return {"law": law, "n": str(self.n), "ρ": f"{self.rho:g}", "cutoff": cutoff, "": "; ".join(more)}

    def probes(self, rng: np.random.Generator) -> ProbeTable:
        """What a log shows: latencies on the clock, cut off, some censored early, some failed."""
        n, law = self.n, self.law
        if self.phi:
            z = lfilter([np.sqrt(1 - self.phi**2)], [1, -self.phi], rng.standard_normal(n + WARM))[WARM:]
            x = law.ppf(np.clip(ndtr(z), 1e-12, 1 - 1e-12))
        else:
            x = law.sample(n, rng)
        x = np.where(rng.random(n) < self.rho, np.inf, x)
        failure = rng.exponential(1 / self.fails, n) if self.fails else np.full(n, np.inf)
        limit = np.full(n, self.cutoff)
        if np.isfinite(self.censored_after):
            limit = np.minimum(limit, rng.exponential(self.censored_after, n))
        x, failure = (np.rint(each / self.step) * self.step for each in (x, failure))
        ended = np.minimum(x, failure)
        status = np.where(ended > limit, 2, np.where(x <= failure, 0, 1))
        when = np.arange(n) * GAP if self.phi else None
        return ProbeTable(np.minimum(ended, limit), status, when, clock=self.step)


class Truth:
    """E_J of a case as its clock shows it, at every step of the clock: E_J = (Σ S Δt + c(1 − F̃))/F̃."""

    def __init__(self, case: Case) -> None:
        step = max(case.step, 1.0)
        half = step / 2 if case.step >= 1 else 0.0  # a clock that rounds to the nearest step shows t until t + ½ step
        self.t = step * np.arange(np.floor(case.cutoff / step + 1e-9) + 1)
        F = (1 - case.rho) * case.law.cdf(self.t + half)
        self.F = np.cumsum(np.diff(F, prepend=0.0) * np.exp(-case.fails * self.t))
        self.S = (1 - F) * np.exp(-case.fails * (self.t + half))
        self.W = np.append(0.0, np.cumsum(self.S[:-1]) * step)
        self.cost = case.cost
        with np.errstate(divide="ignore", invalid="ignore"):
            self.E = (self.W + case.cost * (1 - self.F)) / self.F
        self.E[0] = np.inf
        self.least = float(self.E.min())
        self.best: Floats = self.t[self.least * (1 + SAME) >= self.E]

    def at(self, t: float) -> float:
        """E_J at a timeout, the cutoff at most."""
        t = min(t, float(self.t[-1]))
        k = max(1, int(np.searchsorted(self.t, t + 1e-9, side="right")) - 1)
        return float((self.W[k] + self.S[k] * (t - self.t[k]) + self.cost * (1 - self.F[k])) / self.F[k])
