"""Systems of which the truth is known, and what happens to jobs that follow advice in them.

The families were fixed before any rule was measured on them. A `part` of the systems was looked at while the rule was
made, another was held out, and the last two were drawn up when the rule was finished, the `twisted` ones to break it.
Latencies have a median of about 1 s; times are in seconds.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import lfilter

import latfit

Floats = np.ndarray
DAY = 86400.0
JOBS = 6000
MOST_ATTEMPTS = 400
WINDOWED = ("step", "walk")  # what happens in the log's own window; other systems are the same for ever


@dataclass(frozen=True)
class System:
    """Attempts take noise · level(columns) · level(time); a share `rho` never returns.

    `time` and `columns` name what time and columns do, followed by its parameters. A retry keeps the columns, and the
    hidden level of its job, and meets the time at which it is sent. Where time makes attempts slow, the share `failing`
    fails at once. `clients` give their probes up after these times, in turn.
    """

    name: str
    family: str
    law: tuple[str, Any]
    rho: float = 0.0
    cutoff: float = 1000.0
    gap: float = 10.0
    time: tuple[Any, ...] = ("constant",)
    columns: tuple[Any, ...] = ("none",)
    regular: bool = False
    part: str = "looked at"
    failing: float = 0.0
    clients: tuple[float, ...] = ()

    def noise(self, n: int, rng: np.random.Generator) -> Floats:
        kind, p = self.law
        if kind == "bimodal":
            return rng.lognormal(0, 0.3, n) * np.where(rng.random(n) < p[0], p[1], 1.0)
        if kind == "log-logistic":
            return (1 / rng.random(n) - 1) ** (-1 / p)
        draws = {
            "lognormal": lambda: rng.lognormal(0, p, n),
            "gamma": lambda: rng.gamma(p, 1 / p, n),
            "exponential": lambda: rng.exponential(p, n),
            "uniform": lambda: rng.uniform(p, 2 - p, n),
            "weibull": lambda: rng.weibull(p, n),
            "pareto": lambda: 0.3 + 0.5 * rng.pareto(p, n),
        }
        return draws[kind]()

    def cells(self, n: int, rng: np.random.Generator) -> dict[str, Floats]:
        """The columns of n jobs."""
        kind, *p = self.columns  # "any": columns that do not matter
        if kind in ("none", "job", "sticky", "mixture"):
            return {}
        if kind == "size":
            return {"bytes": rng.lognormal(0, p[0], n)}
        if kind == "pair":
            noise = {"host": rng.integers(0, p[4], n)} if len(p) > 4 else {}
            return {"method": rng.integers(0, p[0], n), "path": rng.integers(0, p[1], n)} | noise
        weights = np.ones(p[0])
        if kind == "rare":
            weights = np.append(p[1], np.full(p[0] - 1, (1 - p[1]) / (p[0] - 1)))
        elif kind == "paths" and len(p) > 2:
            weights = 1 / np.arange(1, p[0] + 1) ** p[2]
        return {"path": rng.choice(p[0], n, p=weights / weights.sum()), "host": rng.integers(0, 6, n)}

    def levels(self, cells: dict[str, Floats], n: int, rng: np.random.Generator) -> tuple[Floats, Floats, float]:
        """The level of each job, its share of slow answers, and how slow those are; `rng` is the system's own."""
        kind, *p = self.columns
        level, share, slow = np.ones(n), np.zeros(n), 1.0
        if kind == "paths":
            level = np.exp(p[1] * rng.standard_normal(p[0]))[cells["path"]]
        elif kind == "rare":
            level = np.where(cells["path"] == 0, p[2], 1.0)
        elif kind == "shares":
            share, slow = rng.uniform(p[2], p[3], p[0])[cells["path"]], p[1]
        elif kind == "one path":  # of which a share of the jobs is slow at every attempt
            share, slow = ((cells["path"] == 0) & (rng.random(n) < p[2])).astype(float), p[1]
        elif kind == "mixture":
            share, slow = np.full(n, p[0]), p[1]
        elif kind == "sticky":  # of which the log shows nothing
            level = np.exp(p[0] * rng.standard_normal(n))
        elif kind == "size":
            level = 0.3 + 0.7 * cells["bytes"] * p[1]
        elif kind == "pair":
            method, path = cells["method"], cells["path"]
            places = {
                "one": (method == 0) & (path == 2),
                "interaction": (method + path) % 2 == 1,
                "some": (rng.random((p[0], p[1])) < 0.15)[method, path],
            }
            level = np.where(places[p[2]], p[3], 1.0)
        return level, share, slow

    def world(self, n: int, seed: int) -> World:
        """A realisation, with a log of n probes somewhere in it."""
        rng = np.random.default_rng([seed, n, zlib.crc32(self.name.encode())])
        span = n * self.gap
        edges, levels, blocked, length = self._course(span, rng)
        start = 0.0 if self.time[0] in WINDOWED else rng.uniform(0, max(length - span, 0.0))
        when = start + (np.arange(n) * self.gap if self.regular else np.sort(rng.uniform(0, span, n)))
        return World(self, edges, levels, blocked, length, when, rng)

    def _course(self, span: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, float]:
        """Edges, the level and whether nothing answers from each on, and how long the course is."""
        kind, *p = self.time
        length = 10 * span
        edges, levels, blocked = np.zeros(1), np.ones(1), np.zeros(1, dtype=bool)
        if kind in ("cycle", "peak", "within"):
            length = max(length, 2 * DAY)
        elif kind in ("spells", "outages", "pauses", "storms"):
            lasts, share = p[:2]
            length = max(length, 40 * lasts / share)
            count = int(3 * length * share / lasts) + 20
            slow = rng.exponential(lasts, count) if p[-1] != "fixed" else np.full(count, lasts)
            rest = rng.exponential(lasts * (1 - share) / share, count)
            edges = np.append(0.0, np.cumsum(np.column_stack([rest, slow])))
            odd = np.arange(edges.size) % 2 == 1
            levels = np.where(odd, p[2], 1.0) if kind == "spells" else np.ones(edges.size)
            blocked = odd & (kind != "spells")
        elif kind in ("markov", "regimes"):
            stay, factors = p[0], np.array(p[1])
            length = max(length, 400 * stay)
            edges = np.append(0.0, np.cumsum(rng.exponential(stay, int(2 * length / stay) + 20)))
            levels = factors[np.cumsum(rng.integers(1, max(2, factors.size), edges.size)) % factors.size]
        elif kind == "ornstein-uhlenbeck":
            step = p[0] / 15
            count = min(int(max(length, 400 * p[0]) / step) + 2, 2_000_000)
            phi = np.exp(-1 / 15)
            z = lfilter([np.sqrt(1 - phi**2)], [1, -phi], rng.standard_normal(count + 200))[200:]
            edges, levels, length = np.arange(count) * step, np.exp(p[1] * z), count * step
        elif kind == "walk":
            length, count = 1.2 * span, 4000
            edges = np.arange(count) * length / count
            levels = np.exp(p[0] * np.cumsum(rng.standard_normal(count)) / np.sqrt(count / 1.2))
        elif kind == "step":
            edges, levels, length = np.array([0.0, p[0] * span]), np.array([1.0, p[1]]), 1.5 * span
        elif kind == "heavy spells":
            edges = np.append(0.0, np.cumsum(p[0] * (rng.pareto(1.5, 200_000) + 0.3)))
            levels = np.where(rng.random(edges.size) < p[1], p[2], 1.0)
            length = min(edges[-1], max(length, 400 * p[0]))
        return edges, levels, blocked, length


@dataclass(eq=False)
class World:
    """A realisation of a system: its course in time, and when the probes of its log are sent."""

    system: System
    edges: Floats
    level: Floats
    blocked: Floats
    length: float
    when: Floats
    rng: np.random.Generator
    seed: int = field(init=False)
    latencies: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.seed = int(self.rng.integers(1 << 31))

    def attempts(self, when: Floats, level: Floats, share: Floats, slow: float, rng: np.random.Generator) -> Floats:
        """Latencies of attempts sent at these times, ∞ for those that never return, negative for those that fail."""
        kind, *p = self.system.time
        within = when % self.edges[-1] if self.edges.size > 3 else when
        at = np.searchsorted(self.edges, within, side="right") - 1
        if kind == "within":  # every p[0] seconds, from p[1] to p[2]
            share = np.where((when % p[0] >= p[1]) & (when % p[0] < p[2]), share, 0.0)
        elif kind == "regimes":  # a mixture in one of them
            share = np.where(self.level[at] == p[2], share, 0.0)
        x = self.system.noise(when.size, rng) * level * np.where(rng.random(when.size) < share, slow, 1.0)
        lost = rng.random(when.size) < self.system.rho
        if kind == "cycle":
            return np.where(lost, np.inf, x * p[0] ** ((1 - np.cos(2 * np.pi * when / DAY)) / 2))
        if kind == "peak":
            hour = when % DAY / 3600
            peak = (hour > p[1]) & (hour < p[2])
            x = np.where(lost, np.inf, x * np.where(peak, p[0], 1.0))
            return np.where(peak & (rng.random(when.size) < self.system.failing), -0.1, x) if self.system.failing else x
        if kind == "sawtooth":
            return np.where(lost, np.inf, x * (1 + (p[1] - 1) * (when % p[0]) / p[0]))
        x = x * self.level[at]
        if kind == "outages":
            lost = lost | self.blocked[at]
        if kind in ("pauses", "storms"):
            ends = self.edges[np.minimum(at + 1, self.edges.size - 1)]
            backlog = (within - self.edges[at]) / 2 if kind == "storms" else 0.0  # a retry goes to the end of it
            x = x + np.where(self.blocked[at], np.maximum(ends - within, 0.0) + backlog, 0.0)
        return np.where(lost, np.inf, x)

    def log(self) -> latfit.ProbeLog:
        """What the probes show."""
        n, system = self.when.size, self.system
        cells = system.cells(n, self.rng)
        level, share, slow = system.levels(cells, n, np.random.default_rng(self.seed))
        frame: dict[str, Any] = {
            name: v if name == "bytes" else np.char.add("/", v.astype(str)) for name, v in cells.items()
        }
        if system.columns[0] == "job":
            jobs = max(2, n // system.columns[1])
            job = self.rng.integers(0, jobs, n)
            level = level * np.exp(system.columns[2] * self.rng.standard_normal(jobs))[job]
            frame["job"] = job.astype(str)
        x = self.attempts(self.when, level, share, slow, self.rng)
        limit = np.minimum(np.resize(system.clients or np.inf, n), system.cutoff)
        frame["latency"] = self.latencies = np.minimum(np.abs(x), limit)
        late = np.where(limit < system.cutoff, "censored", "lost")
        frame["status"] = np.where(x < 0, "failed", np.where(x <= limit, "ok", late))
        frame["submitted"] = pd.Timestamp("2026-01-05", tz="UTC") + pd.to_timedelta(self.when, unit="s")
        return latfit.from_frame(pd.DataFrame(frame))

    def jobs(self, count: int, rng: np.random.Generator) -> tuple[Floats, dict[str, Floats], Floats, Floats, float]:
        """When jobs are sent, their columns, levels and shares of slow answers, and how slow those are."""
        when, cells = rng.uniform(0, self.length, count), self.system.cells(count, rng)
        level, share, slow = self.system.levels(cells, count, np.random.default_rng(self.seed))
        if self.system.columns[0] == "job":
            level = level * np.exp(self.system.columns[2] * rng.standard_normal(count))
        return when, cells, level, share, slow

    def first_attempts(self) -> Floats:
        """Latencies of the first attempts of many jobs: the pooled law."""
        rng = np.random.default_rng(2)
        when, _, level, share, slow = self.jobs(3 * JOBS, rng)
        return np.abs(self.attempts(when, level, share, slow, rng))

    def duration(self, schedules: dict[str, tuple[float, ...]] | tuple[float, ...], *, repeated: bool = False) -> float:
        """Mean duration of a job: cancel after each timeout, then wait, or repeat the only one for ever.

        A dict gives a schedule to each path; the last attempt ends at the cutoff and is sent again.
        """
        rng, system = np.random.default_rng(1), self.system
        when, cells, level, share, slow = self.jobs(JOBS, rng)
        own = schedules if isinstance(schedules, dict) else {"": schedules}
        limits = np.full((JOBS, MOST_ATTEMPTS), float(system.cutoff))
        for path, timeouts in own.items():
            if timeouts:
                width = MOST_ATTEMPTS if repeated else len(timeouts)
                rows = cells["path"] == int(path[1:]) if path else slice(None)
                limits[rows, :width] = np.minimum(np.resize(timeouts, width), system.cutoff)
        spent, alive = np.zeros(JOBS), np.arange(JOBS)
        for attempt in range(MOST_ATTEMPTS):
            sent = when[alive] + spent[alive]
            seed = rng if attempt == 0 else np.random.default_rng([1, attempt])
            x = self.attempts(sent, level[alive], share[alive], slow, seed)
            limit = limits[alive, attempt]
            spent[alive] += np.minimum(np.abs(x), limit)
            alive = alive[(x > limit) | (x < 0)]
            if not alive.size:
                break
        return float(spent.mean() * (1 + 10 * alive.size / JOBS))  # some would never end


def _lognormal(sigma: float) -> tuple[str, float]:
    return "lognormal", sigma


def systems() -> list[System]:
    """134 systems: 64 looked at, 40 held out, 20 for a last check, 10 twisted."""
    ln, S = _lognormal, System
    fixed = [
        S("log-normal .3", "independent", ln(0.3)),
        S("log-normal .3, ρ 3 %", "independent", ln(0.3), 0.03, 30),
        S("log-normal .6, ρ 1 %", "independent", ln(0.6), 0.01, 30, columns=("any", 10)),
        S("log-normal .9", "independent", ln(0.9), gap=60),
        S("log-normal .9, ρ 2 %", "independent", ln(0.9), 0.02, 30),
        S("log-normal 1.2", "independent", ln(1.2), columns=("any", 20)),
        S("log-normal 1.2, ρ 1 %", "independent", ln(1.2), 0.01, 60, gap=2),
        S("log-normal 1.6", "independent", ln(1.6)),
        S("gamma 2", "independent", ("gamma", 2.0)),
        S("gamma 1.3, ρ 1 %", "independent", ("gamma", 1.3), 0.01, 30),
        S("exponential", "independent", ("exponential", 1.0)),
        S("exponential, ρ 3 %", "independent", ("exponential", 1.0), 0.03, 30),
        S("exponential, ρ 1 %", "independent", ("exponential", 1.0), 0.01, 60, gap=5),
        S("uniform", "independent", ("uniform", 0.2)),
        S("uniform, ρ 2 %", "independent", ("uniform", 0.2), 0.02, 30),
        S("5 % × 30", "independent", ("bimodal", (0.05, 30.0)), regular=True),
        S("10 % × 20", "independent", ("bimodal", (0.1, 20.0)), columns=("any", 30)),
        S("log-normal .5, ρ 3 %", "independent", ln(0.5), 0.03, 100, gap=20),
        S("gamma 2, ρ 2 %", "independent", ("gamma", 2.0), 0.02, 100, regular=True),
        S("spells 30 s × 60", "spells", ln(0.5), time=("spells", 30, 0.03, 60)),
        S("spells 30 s × 10", "spells", ln(0.6), time=("spells", 30, 0.10, 10)),
        S("spells 2 min × 20", "spells", ln(0.5), time=("spells", 120, 0.05, 20)),
        S("spells 5 min × 60", "spells", ln(0.5), gap=30, time=("spells", 300, 0.02, 60)),
        S("spells 10 min × 5", "spells", ln(0.7), time=("spells", 600, 0.10, 5)),
        S("spells 10 min × 20", "spells", ln(0.5), gap=60, time=("spells", 600, 0.05, 20)),
        S("spells 1 h × 10", "spells", ln(0.6), gap=30, time=("spells", 3600, 0.10, 10)),
        S("spells 1 h × 60", "spells", ln(0.4), gap=60, time=("spells", 3600, 0.03, 60)),
        S("spells 1 h × 20, dense", "spells", ln(0.5), gap=2, time=("spells", 3600, 0.08, 20)),
        S("cycle × 3", "cycle", ln(0.6), gap=60, time=("cycle", 3.0)),
        S("cycle × 5", "cycle", ln(0.5), gap=60, time=("cycle", 5.0)),
        S("cycle × 10", "cycle", ln(0.5), gap=120, time=("cycle", 10.0)),
        S("cycle × 5, wide", "cycle", ln(0.9), gap=300, time=("cycle", 5.0)),
        S("Markov 20 s × 10", "modulated", ln(0.4), time=("markov", 20, (1.0, 10.0))),
        S("Markov 100 s × 10", "modulated", ln(0.5), time=("markov", 100, (1.0, 1.0, 10.0))),
        S("Markov 1000 s", "modulated", ln(0.5), gap=20, time=("markov", 1000, (1.0, 3.0, 20.0))),
        S("OU 30 s, 1", "modulated", ln(0.4), time=("ornstein-uhlenbeck", 30, 1.0)),
        S("OU 5 min, 1", "modulated", ln(0.5), time=("ornstein-uhlenbeck", 300, 1.0)),
        S("OU 1 h, .8", "modulated", ln(0.5), gap=60, time=("ornstein-uhlenbeck", 3600, 0.8)),
        S("OU 1 h, 1.3", "modulated", ln(0.3), gap=60, time=("ornstein-uhlenbeck", 3600, 1.3)),
        S("saw 10 min × 5", "sawtooth", ln(0.5), time=("sawtooth", 600, 5.0)),
        S("saw 1 h × 10", "sawtooth", ln(0.5), gap=30, time=("sawtooth", 3600, 10.0)),
        S("step × 5", "step", ln(0.5), time=("step", 0.5, 5.0)),
        S("late step × 8", "step", ln(0.5), time=("step", 0.85, 8.0)),
        S("step ÷ 4", "step", ln(0.6), time=("step", 0.5, 0.25)),
        S("outages 2 min", "outages", ln(0.5), cutoff=60, time=("outages", 120, 0.02)),
        S("outages 10 min", "outages", ln(0.6), cutoff=60, gap=20, time=("outages", 600, 0.03)),
        S("pauses 20 s", "pauses", ln(0.4), time=("pauses", 20, 0.05)),
        S("pauses 2 min", "pauses", ln(0.5), time=("pauses", 120, 0.03)),
        S("5 paths", "paths", ln(0.5), columns=("paths", 5, 0.8)),
        S("5 paths, wide", "paths", ln(0.4), columns=("paths", 5, 1.8)),
        S("20 paths", "paths", ln(0.5), columns=("paths", 20, 1.0)),
        S("90 paths", "paths", ln(0.5), columns=("paths", 90, 1.0)),
        S("40 paths, Zipf", "paths", ln(0.6), columns=("paths", 40, 1.2, 1.0)),
        S("rare 1 % × 100", "rare path", ln(0.6), columns=("rare", 20, 0.01, 100.0)),
        S("rare 2 % × 30", "rare path", ln(0.9), columns=("rare", 20, 0.02, 30.0)),
        S("POST /c × 20", "interaction", ln(0.6), columns=("pair", 2, 5, "one", 20.0)),
        S("interaction × 20", "interaction", ln(0.5), columns=("pair", 2, 2, "interaction", 20.0)),
        S("4 × 6 cells × 10", "interaction", ln(0.6), columns=("pair", 4, 6, "some", 10.0)),
        S("40 shares to 39 %", "shares", ln(0.4), columns=("shares", 40, 20.0, 0.0, 0.39)),
        S("10 shares to 30 %", "shares", ln(0.4), columns=("shares", 10, 20.0, 0.0, 0.3)),
        S("sizes 1", "sizes", ln(0.3), columns=("size", 1.0, 1.0)),
        S("sizes 1.6", "sizes", ln(0.4), columns=("size", 1.6, 1.0)),
        S("sticky jobs", "jobs", ln(0.5), columns=("job", 4, 1.0)),
        S("fresh jobs", "jobs", ln(1.2), columns=("job", 4, 0.0)),
    ]
    unseen = [
        S("Weibull .7, ρ 2 %", "independent", ("weibull", 0.7), 0.02, 40),
        S("log-logistic 1.8", "independent", ("log-logistic", 1.8), cutoff=200, gap=5),
        S("Pareto 1.7", "independent", ("pareto", 1.7), cutoff=300),
        S("log-normal 1, ρ 3 %", "independent", ln(1.0), 0.03, 50, columns=("any", 50)),
        S("log-normal 1.4", "independent", ln(1.4), gap=120, regular=True),
        S("2 % × 100", "independent", ("bimodal", (0.02, 100.0)), gap=1),
        S("20 % × 8", "independent", ("bimodal", (0.2, 8.0)), columns=("any", 5)),
        S("gamma 4, ρ .5 %", "independent", ("gamma", 4.0), 0.005, 100),
        S("3 hours × 6", "cycle", ln(0.6), gap=60, time=("peak", 6.0, 12, 15)),
        S("nights × 4", "cycle", ln(0.8), gap=120, time=("peak", 4.0, 0, 8)),
        S("cycle × 7", "cycle", ln(0.4), gap=45, time=("cycle", 7.0)),
        S("spells 1 min × 15", "spells", ln(0.7), gap=15, time=("spells", 60, 0.06, 15)),
        S("spells 20 min × 8", "spells", ln(0.8), gap=20, time=("spells", 1200, 0.12, 8, "fixed")),
        S("spells 5 min × 30", "spells", ln(0.5), gap=60, regular=True, time=("spells", 300, 0.04, 30, "fixed")),
        S("heavy spells × 25", "spells", ln(0.5), time=("heavy spells", 100, 0.06, 25)),
        S("heavy spells × 5", "spells", ln(0.8), gap=5, time=("heavy spells", 40, 0.15, 5)),
        S("walk 1.5", "walk", ln(0.5), time=("walk", 1.5)),
        S("walk 3", "walk", ln(0.4), gap=60, time=("walk", 3.0)),
        S("Markov, 5 states", "modulated", ln(0.5), gap=15, time=("markov", 200, (1.0, 1.5, 3.0, 6.0, 12.0))),
        S("OU 2 min, 1.5", "modulated", ln(0.5), gap=20, time=("ornstein-uhlenbeck", 120, 1.5)),
        S("OU 20 min, .6", "modulated", ln(0.9), gap=30, time=("ornstein-uhlenbeck", 1200, 0.6)),
        S("early step × 3", "step", ln(0.7), time=("step", 0.25, 3.0)),
        S("late step × 20", "step", ln(0.5), time=("step", 0.92, 20.0)),
        S("saw 30 min × 20", "sawtooth", ln(0.6), gap=20, time=("sawtooth", 1800, 20.0)),
        S("outages 30 s", "outages", ln(0.6), cutoff=40, gap=5, time=("outages", 30, 0.04)),
        S("pauses 5 s", "pauses", ln(0.3), gap=3, time=("pauses", 5, 0.1)),
        S("pauses 10 min", "pauses", ln(0.6), cutoff=3000, gap=20, time=("pauses", 600, 0.03)),
        S("12 paths", "paths", ln(0.8), columns=("paths", 12, 0.8)),
        S("60 paths, Zipf", "paths", ln(0.4), columns=("paths", 60, 1.5, 1.2)),
        S("8 paths and spells", "paths", ln(0.5), time=("spells", 300, 0.05, 15), columns=("paths", 8, 0.7)),
        S("rare .5 % × 100", "rare path", ln(0.7), columns=("rare", 30, 0.005, 100.0)),
        S("rare 3 % × 15", "rare path", ln(0.8), columns=("rare", 10, 0.03, 15.0)),
        S("POST /c × 8", "interaction", ln(0.8), columns=("pair", 3, 8, "one", 8.0)),
        S("interaction × 6", "interaction", ln(0.7), columns=("pair", 2, 2, "interaction", 6.0)),
        S("20 shares to 15 %", "shares", ln(0.5), columns=("shares", 20, 40.0, 0.0, 0.15)),
        S(
            "shares and OU",
            "shares",
            ln(0.5),
            time=("ornstein-uhlenbeck", 600, 0.7),
            columns=("shares", 10, 15.0, 0.0, 0.3),
        ),
        S("sizes .7", "sizes", ln(0.6), columns=("size", 0.7, 1.0)),
        S("sizes 1.3", "sizes", ln(0.2), columns=("size", 1.3, 2.0)),
        S("sticky jobs .6", "jobs", ln(0.8), columns=("job", 3, 0.6)),
        S("paired fresh", "jobs", ln(1.0), 0.02, 40, columns=("job", 2, 0.0)),
    ]
    last = [
        S("log-normal .8, ρ 1.5 %", "independent", ln(0.8), 0.015, 40),
        S("gamma 3, ρ 1 %", "independent", ("gamma", 3.0), 0.01, 60, columns=("any", 12)),
        S("log-logistic 2.5", "independent", ("log-logistic", 2.5), cutoff=100, gap=30),
        S("8 % × 12", "independent", ("bimodal", (0.08, 12.0)), gap=4),
        S("Weibull 1.5, ρ 2 %", "independent", ("weibull", 1.5), 0.02, 30),
        S("log-normal 1.1", "independent", ln(1.1), columns=("any", 8)),
        S("uniform .5, ρ 1 %", "independent", ("uniform", 0.5), 0.01, 50, regular=True),
        S("spells 3 min × 12", "spells", ln(0.6), gap=20, time=("spells", 180, 0.07, 12)),
        S("spells 40 s × 40", "spells", ln(0.5), gap=5, time=("spells", 40, 0.04, 40)),
        S("cycle × 4", "cycle", ln(0.7), gap=90, time=("cycle", 4.0)),
        S("2 hours × 8", "cycle", ln(0.5), gap=60, time=("peak", 8.0, 9, 11)),
        S("Markov 50 s", "modulated", ln(0.5), time=("markov", 50, (1.0, 2.0, 8.0))),
        S("OU 10 min, 1.2", "modulated", ln(0.4), gap=30, time=("ornstein-uhlenbeck", 600, 1.2)),
        S("step × 6", "step", ln(0.6), time=("step", 0.6, 6.0)),
        S("outages 5 min", "outages", ln(0.5), cutoff=60, time=("outages", 300, 0.03)),
        S("pauses 1 min", "pauses", ln(0.5), time=("pauses", 60, 0.04)),
        S("25 paths", "paths", ln(0.5), columns=("paths", 25, 1.2)),
        S("rare 1.5 % × 50", "rare path", ln(0.7), columns=("rare", 15, 0.015, 50.0)),
        S("3 × 4 cells × 12", "interaction", ln(0.6), columns=("pair", 3, 4, "some", 12.0)),
        S("15 shares to 25 %", "shares", ln(0.5), columns=("shares", 15, 25.0, 0.0, 0.25)),
    ]
    night, five_minutes = ("within", DAY, 0, DAY / 4), ("within", 3600, 0, 300)
    twisted = [
        S("outages with a backlog", "outages", ln(0.5), time=("storms", 120, 0.04)),
        S(
            "one path on the hour × 25",
            "rare path",
            ln(0.5),
            gap=20,
            time=five_minutes,
            columns=("one path", 5, 25.0, 1.0),
        ),
        S("interaction beside noise", "interaction", ln(0.6), columns=("pair", 3, 3, "interaction", 12.0, 40)),
        S("one user's jobs at night", "jobs", ln(0.5), gap=120, time=night, columns=("one path", 8, 20.0, 0.5)),
        S(
            "three regimes",
            "modulated",
            ln(0.5),
            time=("regimes", 900, (1.0, 6.0, 1.2), 1.2),
            columns=("mixture", 0.3, 20.0),
        ),
        S("half sticky, heavy tail", "jobs", ("log-logistic", 2.5), cutoff=200, columns=("sticky", 0.725)),
        S("3000 paths", "paths", ln(0.5), columns=("paths", 3000, 1.0)),
        S("step at the end × 10", "step", ln(0.5), time=("step", 0.97, 10.0)),
        S(
            "three clients",
            "shares",
            ln(0.5),
            0.02,
            60,
            columns=("shares", 12, 15.0, 0.0, 0.3),
            clients=(3.0, 10.0, 40.0),
        ),
        S("fast failures in slow hours", "cycle", ln(0.6), gap=120, time=("peak", 6.0, 9, 17), failing=0.4),
    ]
    parts = (("looked at", fixed), ("held out", unseen), ("last check", last), ("twisted", twisted))
    return [replace(system, part=part) for part, some in parts for system in some]
