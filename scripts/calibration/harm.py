"""Does following the advice do harm? Jobs of simulated systems under it, beside waiting and beside 0.1.0's rule."""

from __future__ import annotations

import numpy as np

import latfit
from calibration.cases import Row, Task
from calibration.worlds import GAP, System, population
from latfit.decision.curves import curves_of

SYSTEMS = 1000
BLOCK = 50
CUTOFF = 10_000.0
SHORTEST = 2000.0  # seconds that a log spans at least
POSSIBLE = 0.05  # a gain that is worth collecting
KINDS = ("plain", "mixed", "sticky", "ar", "spells", "drift", "cycle", "client")


def kind_of(system: System) -> str:
    marks = {"mixed": len(system.groups) > 1, "sticky": system.sticky > 0, "ar": system.phi > 0,
             "spells": system.spells > 0, "drift": system.drift > 1, "cycle": system.cycle > 1,
             "client": system.client is not None}  # fmt: skip
    return next((name for name, found in marks.items() if found), "plain")


def followed(result: latfit.Analysis, groups: int) -> np.ndarray:
    """The timeout of each group that somebody sets who follows the advice; ∞ is waiting."""
    own = result.timeout
    if own.timeout is not None:
        return np.full(groups, own.timeout)
    timeouts = np.full(groups, np.inf)
    if result.by == ("site",):
        for group in result.groups:
            t = group.decision.timeout.timeout if group.decision.timeout else None
            timeouts[int(group.key["site"])] = np.inf if t is None else t
    return timeouts


def one(system: System, n: int, seed: int) -> dict[str, float]:
    """Durations by waiting, by the advice, by 0.1.0's rule, and by the best timeout of a grid."""
    rng = np.random.default_rng(seed)
    world = system.world(max(n * GAP, SHORTEST), rng)
    log = world.log(n, CUTOFF, rng)
    result = latfit.analyze(log, resamples=0, test=False, laws=("lognormal",), cutoff=CUTOFF)
    sample = log.sample(cutoff=CUTOFF)
    curve = curves_of([sample])
    k, least = curve.exact(0.0, curve.allowed(sample.resolution))
    old = np.inf if not np.isfinite(least[0]) or curve.S[0, k[0]] <= 0 else curve.times[0, k[0]]
    g = len(system.groups)
    waiting = world.duration(np.full(g, np.inf), CUTOFF, seed)
    durations = {"waiting": waiting, "advice": world.duration(followed(result, g), CUTOFF, seed),
                 "0.1.0": world.duration(np.full(g, old), CUTOFF, seed)}  # fmt: skip
    if system.independent:
        grid = np.quantile(sample.completed.expand(), np.linspace(0.05, 1, 40))
        durations["best"] = min(waiting, *(world.duration(np.array([t]), CUTOFF, seed) for t in grid))
    return durations | {"withheld": float(result.timeout.verdict == "withheld")}


def rows(rng: np.random.Generator, rounds: int, block: int) -> list[Row]:
    """The systems of one block; the page adds them up."""
    systems = population(SYSTEMS, np.random.default_rng(2026))[block * BLOCK : (block + 1) * BLOCK][: max(1, rounds)]
    found = []
    for at, (system, n) in enumerate(systems):
        figures = one(system, n, 1000 * block + at)
        told = {"system": kind_of(system), "law": system.law, "n": str(n)}
        found.append(Row("harm", told, {key: f"{value:.6g}" for key, value in figures.items()}))
    return found


def summary(table: list[Row]) -> list[Row]:
    """Shares of harm and of the gain that is collected, by kind of system."""
    out = []
    for kind in (*KINDS, "all"):
        cells = [row.cells for row in table if kind in ("all", row.case["system"])]
        if not cells:
            continue
        wait, advice, old = (np.array([float(c[name]) for c in cells]) for name in ("waiting", "advice", "0.1.0"))
        gains = [(float(c["waiting"]) - float(c["advice"])) / (float(c["waiting"]) - float(c["best"])) for c in cells
                 if "best" in c and float(c["waiting"]) > (1 + POSSIBLE) * float(c["best"])]  # fmt: skip
        figures = {
            "systems": str(len(cells)),
            "withheld %": f"{100 * np.mean([float(c['withheld']) for c in cells]):.1f}",
            "worse by > 1 %": f"{100 * np.mean(advice > 1.01 * wait):.1f}",
            "worst": f"{advice.max() and 100 * (advice / wait - 1).max():.1f}",
            "0.1.0: worse by > 1 %": f"{100 * np.mean(old > 1.01 * wait):.1f}",
            "0.1.0: worst": f"{100 * (old / wait - 1).max():.0f}",
            "gain collected, median %": f"{100 * np.median(gains):.1f}" if gains else "",
        }
        out.append(Row("harm summary", {"system": kind}, figures))
    return out


def tasks() -> list[Task]:
    return [Task(rows, (block,), 0.25) for block in range(SYSTEMS // BLOCK)]
