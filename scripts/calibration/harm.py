"""Does following the advice do harm? Jobs of simulated systems under it, beside waiting, hindsight and 0.2.0.

0.2.0's figures are in `harm-0.2.0.csv`, measured once on the same worlds with the package at commit 0d0966f:
`PYTHONPATH=TREE:scripts python -m calibration.harm timeout > scripts/calibration/harm-0.2.0.csv`.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

import latfit
from calibration.cases import Row, Task
from calibration.worlds import System, World, systems

SIZES, SEEDS = (100, 400, 1500), (0, 1, 2)
MEASURED = Path(__file__).with_name("harm-0.2.0.csv")
HARMED = 1.1  # times waiting
RISK, MAX_LOAD, GROWTHS, MAX_CANCELLATIONS = 0.3, 1.0, (1.0, 1.5, 2.0), 7  # what schedules latfit chooses from
WORTH = 0.95  # of waiting: a gain below it is not counted as one to collect
Schedules = dict[str, tuple[float, ...]] | tuple[float, ...]


def retry_advice(result: latfit.Analysis) -> Schedules:
    """What somebody sets who follows the analysis."""
    if result.timeout.retry is None and result.by == ("path",):
        return {
            group.key["path"]: retry.timeouts if (retry := group.decision.timeout.retry) else ()
            for group in result.groups
        }
    return result.timeout.retry.timeouts if result.timeout.retry else ()


def timeout_advice(result: latfit.Analysis) -> Schedules:
    """What 0.2.0 said: one timeout, repeated for ever, or those of groups."""
    if result.timeout.timeout is None and result.by == ("path",):
        timeouts = {group.key["path"]: group.decision.timeout for group in result.groups}
        return {path: (own.timeout,) if own and own.timeout else () for path, own in timeouts.items()}
    return () if result.timeout.timeout is None else (result.timeout.timeout,)


def analysed(system: System, n: int, seed: int) -> tuple[World, latfit.Analysis]:
    world = system.world(n, seed)
    return world, latfit.analyze(world.log(), resamples=0, test=False, laws=("lognormal",), cutoff=system.cutoff)


def hindsight(world: World, waiting: float) -> dict[str, float]:
    """The best single timeout, repeated for ever; seven times before waiting; the best schedule within the limits."""
    cuts = np.quantile(world.latencies, [*np.linspace(0.05, 0.9, 10), 0.95, 0.98, 0.995])
    return {
        "best": min(waiting, *(world.duration((t,), repeated=True) for t in cuts)),
        "best of 8 attempts": min(waiting, *(world.duration((t,) * 7) for t in cuts)),
        "best within the limits": min([waiting, *map(world.duration, _within_limits(world, cuts))]),
    }


def _within_limits(world: World, cuts: np.ndarray) -> Iterator[tuple[float, ...]]:
    """Schedules with ℓ ≤ 30 % and at most twice the load under the true pooled law, once and as often as allowed."""
    x, cutoff = world.first_attempts(), world.system.cutoff
    waiting = np.minimum(x, cutoff).mean() / (x <= cutoff).mean()
    for first, growth in product(cuts, GROWTHS):
        timeouts = np.minimum(first * growth ** np.arange(MAX_CANCELLATIONS), cutoff)
        out = (x > timeouts[:, None]).mean(axis=1)
        allowed = (np.cumsum(timeouts * out) <= RISK * waiting) & (np.cumsum(out) <= MAX_LOAD)
        yield from (tuple(timeouts[:count]) for count in {1, int(allowed.sum())} if allowed[:count].any())


def rows(rng: np.random.Generator, rounds: int, number: int) -> list[Row]:
    """One system: every size and seed."""
    system = systems()[number]
    table = []
    for n in SIZES[: max(1, rounds // 2)]:
        for seed in SEEDS[: max(1, rounds // 2)]:
            world, result = analysed(system, n, seed)
            waiting = world.duration(())
            figures = {"advice": world.duration(retry_advice(result)), **hindsight(world, waiting)}
            names = {"system": system.name, "n": str(n), "seed": str(seed)}
            table.append(Row("harm", names, {key: f"{value / waiting:.5g}" for key, value in figures.items()}))
    return table


def summary(table: list[Row]) -> list[Row]:
    """Figures of each rule over the systems that were looked at and over those held out."""
    kinds = {system.name: system for system in systems()}
    with MEASURED.open() as file:
        old = {(r["system"], r["n"], r["seed"]): float(r["ratio"]) for r in csv.DictReader(file)}
    result = []
    for name in dict.fromkeys(system.part for system in kinds.values()):
        part = [row for row in table if kinds[row.case["system"]].part == name]
        if not part:
            continue
        independent = np.array([kinds[r.case["system"]].family == "independent" and r.case["n"] != "100" for r in part])
        best = np.array([float(row.cells["best"]) for row in part])
        rules = {
            "best single timeout, in hindsight": best,
            "the same, at most 8 attempts": np.array([float(row.cells["best of 8 attempts"]) for row in part]),
            "within the risk and twice the load, in hindsight": np.array(
                [float(row.cells["best within the limits"]) for row in part]
            ),
            "0.2.0": np.array([old.get(tuple(row.case.values()), np.nan) for row in part]),
            "latfit": np.array([float(row.cells["advice"]) for row in part]),
        }
        worth = independent & (best < WORTH)
        for rule, ratio in rules.items():
            if np.isnan(ratio).any():  # 0.2.0 was not measured on the twisted ones
                continue
            figures = {
                "logs": str(len(part)),
                "slower by > 10 %": f"{100 * np.mean(ratio > HARMED):.1f} %",
                "worst": f"{ratio.max():.3g}",
                "mean": f"{ratio.mean():.3f}",
                "gain collected, independent, n ≥ 400": _share(ratio[independent], best[independent]),
                "median": f"{100 * np.median((1 - ratio[worth]) / (1 - best[worth])):.0f} %" if worth.any() else "",
            }
            result.append(Row("harm summary", {"systems": name, "rule": rule}, figures))
    return result


def _share(ratio: np.ndarray, best: np.ndarray) -> str:
    possible = float((1 - best).sum())
    return f"{100 * float((1 - ratio).sum()) / possible:.0f} %" if possible > 0 else ""


def tasks() -> list[Task]:
    return [Task(rows, (number,), 0.25) for number in range(len(systems()))]


def main() -> None:
    """Print the durations under 0.2.0's single timeouts, in units of waiting."""
    print("system,n,seed,ratio")
    for system in systems():
        for n in SIZES:
            for seed in SEEDS:
                world, result = analysed(system, n, seed)
                advice = timeout_advice(result)
                ratio = world.duration(advice, repeated=True) / world.duration(()) if advice else 1.0
                print(f'"{system.name}",{n},{seed},{ratio:.5g}', flush=True)


if __name__ == "__main__":
    sys.exit(main())
