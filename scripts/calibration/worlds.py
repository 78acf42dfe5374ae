"""Systems of which the truth is known, and what happens to jobs that follow advice in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

import latfit
from latfit.laws import parse_law

Floats = np.ndarray
GAP = 5.0  # seconds between two probes, on average, in units of a median latency of 100 s
JOBS = 4000
ROUNDS = 300


@dataclass(frozen=True)
class System:
    """Latencies X · level(time, job) of which a share never returns and another fails at once.

    `law` is that of X; `groups` are levels of the groups of a column; `sticky` jobs keep a level of their own that no
    column shows, but the log has a column `job` with several probes each; `phi` is the correlation of neighbours in
    the log of X; `spells` the share of time that is slow by 20; `drift` the factor by which the second half is slower;
    `cycle` that of the slowest hour; `client` is a client timeout at which most give up; `fails` fail after 1 % of X.
    """

    law: str
    rho: float = 0.0
    groups: tuple[float, ...] = (1.0,)
    sticky: float = 0.0
    phi: float = 0.0
    spells: float = 0.0
    drift: float = 1.0
    cycle: float = 1.0
    client: float | None = None
    fails: float = 0.0

    @property
    def independent(self) -> bool:
        return (self.groups == (1.0,) and not self.sticky and not self.phi and not self.spells
                and self.drift == self.cycle == 1.0 and self.client is None)  # fmt: skip

    def world(self, span: float, rng: np.random.Generator) -> World:
        """What the time of an attempt decides, over `span` seconds."""
        size = int(span / GAP) + 2
        z = rng.standard_normal(size)
        if self.phi:
            from scipy.signal import lfilter

            z = lfilter([np.sqrt(1 - self.phi**2)], [1, -self.phi], z)
        slow = np.zeros(size, bool)
        if self.spells:
            slow = np.repeat(rng.random(size // 200 + 1) < self.spells, 200)[:size]
        return World(self, z, slow, span)


@dataclass(frozen=True)
class World:
    """A realisation of a system: z and the spells on a grid of time."""

    system: System
    z: Floats
    slow: Floats
    span: float

    def attempts(self, when: Floats, group: Floats, own: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Latency (∞: never) and time of failure (∞: none) of attempts submitted at these times."""
        s, law = self.system, parse_law(self.system.law)
        when = when % self.span
        at = np.minimum((when / GAP).astype(int), self.z.size - 1)
        if s.phi:
            from scipy.special import ndtr

            x = law.ppf(np.clip(ndtr(self.z[at]), 1e-12, 1 - 1e-12))
        else:
            x = law.sample(when.size, rng)
        level = np.asarray(s.groups)[group] * np.exp(s.sticky * own) * np.where(self.slow[at], 20.0, 1.0)
        level = level * np.where(when > self.span / 2, s.drift, 1.0)
        level = level * s.cycle ** ((1 - np.cos(2 * np.pi * when / 86400)) / 2)
        x = np.where(rng.random(when.size) < s.rho, np.inf, x * level)
        failure = np.where(rng.random(when.size) < s.fails, 0.01 * np.where(np.isinf(x), 100.0, x), np.inf)
        if s.client is not None:  # most clients give up here, some never
            gives_up = rng.random(when.size) < 0.7
            failure = np.where(gives_up & (x > s.client), np.minimum(failure, s.client), failure)
        return np.where(failure < x, np.inf, x), failure

    def log(self, n: int, cutoff: float, rng: np.random.Generator) -> latfit.ProbeLog:
        """What n probes show."""
        when = np.sort(rng.uniform(0, self.span, n))
        s = self.system
        group = rng.integers(0, len(s.groups), n)
        job = rng.integers(0, max(2, n // 8), n)
        own = rng.standard_normal(max(2, n // 8))[job]
        x, failure = self.attempts(when, group, own, rng)
        latency = np.minimum(np.minimum(x, failure), cutoff)
        given_up = s.client is not None and failure == s.client
        word = np.where(x <= cutoff, "ok", np.where(failure < cutoff, np.where(given_up, "timeout", "failed"), "lost"))
        frame = {"latency": latency, "status": word, "submitted": pd.Timestamp("2026-01-05", tz="UTC")
                 + pd.to_timedelta(when, unit="s"), "host": rng.integers(0, 6, n).astype(str)}  # fmt: skip
        if len(s.groups) > 1:
            frame["site"] = group.astype(str)
        if s.sticky:
            frame["job"] = job.astype(str)
        return latfit.from_frame(pd.DataFrame(frame))

    def duration(self, timeouts: Floats, cutoff: float, seed: int) -> float:
        """Mean time that a job takes under a timeout for each group, ∞ for waiting until the cutoff."""
        rng = np.random.default_rng(seed)
        s = self.system
        when = rng.uniform(0, self.span, JOBS)
        group = rng.integers(0, len(s.groups), JOBS)
        own = rng.standard_normal(JOBS)
        limit = np.minimum(np.asarray(timeouts, dtype=float), cutoff)[group]
        spent, alive = np.zeros(JOBS), np.arange(JOBS)
        for _ in range(ROUNDS):
            x, failure = self.attempts(when[alive] + spent[alive], group[alive], own[alive], rng)
            t = limit[alive]
            done = x <= t
            spent[alive] += np.where(done, x, np.minimum(failure, t))
            alive = alive[~done]
            if not alive.size:
                return float(spent.mean())
        return float(spent.mean() * (1 + 10 * alive.size / JOBS))  # some would never end


def population(count: int, rng: np.random.Generator) -> list[tuple[System, int]]:
    """Systems and sizes of logs, fixed before anything was measured on them."""
    bodies = ("lognormal(mu=4.6,sigma={s})", "gamma(shape={g},scale=40)", "weibull(shape={w},scale=110)",
              "log-logistic(shape={l},scale=100)", "truncated-gaussian(mu=100,sigma={t})",
              "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[0.03,0.002])")  # fmt: skip
    found = []
    for k in range(count):
        spec = bodies[int(rng.integers(len(bodies)))].format(
            s=round(rng.uniform(0.3, 1.5), 2), g=round(rng.uniform(1, 5), 2), w=round(rng.uniform(0.8, 2.5), 2),
            l=round(rng.uniform(1.5, 4), 2), t=round(rng.uniform(15, 60), 1))  # fmt: skip
        rho = float(rng.choice([0.0, 0.01, 0.03, 0.1]))
        n = int(rng.choice([100, 300, 1000, 3000]))
        kind = ("plain", "plain", "plain", "mixed", "sticky", "ar", "spells", "drift", "cycle", "client")[k % 10]
        more = {
            "plain": {"fails": float(rng.choice([0.0, 0.0, 0.1]))},
            "mixed": {"groups": tuple(np.round(rng.lognormal(0, rng.uniform(0.3, 2), int(rng.integers(2, 6))), 3))},
            "sticky": {"sticky": round(rng.uniform(0.5, 2), 2)},
            "ar": {"phi": float(rng.choice([0.5, 0.9, 0.99, 0.999]))},
            "spells": {"spells": round(rng.uniform(0.03, 0.2), 3)},
            "drift": {"drift": round(rng.uniform(1.5, 8), 2)},
            "cycle": {"cycle": round(rng.uniform(1.5, 8), 2)},
            "client": {"client": round(rng.uniform(80, 300), 1)},
        }[kind]
        found.append((System(spec, rho, **more), n))
    return found
