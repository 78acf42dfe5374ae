"""Measured, analysed, applied, measured again, verified: one row for each system and seed."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import latfit
from latfit.settings import settings_for
from latfit.verify import jobs_of, read_attempts, verify

from . import slurm
from .client import Lag, Setup, jobs, pairs, probes, through_haproxy
from .service import Service

SYSTEMS = ("independent", "haproxy", "lossy", "drifting", "sticky", "overloaded", "slurm", "queue")
LOSS = 0.04
ATTEMPTS = 12
LATE, TURNS = 0.02, 3  # a mean lag of this share of E_J spoils a row, which is then measured again, at most so often
SURE = 0.01  # a pilot in which later attempts are this surely not like first ones: the advice is to wait


async def loop(setup: Setup, system: str, seed: int, n: int, k: int, folder: Path) -> dict:
    """One turn of the loop; everything that the table shows."""
    rng = np.random.default_rng([seed, SYSTEMS.index(system)])
    service = Service("independent" if system == "haproxy" else system, rng, seed=seed, scale=setup.scale)
    server = await service.run()
    lag = Lag()
    watching = asyncio.create_task(lag.watch())
    before = folder / "before.csv"
    await probes(setup, service.port, n, before, rng)
    lags = [lag.mean()]
    log = latfit.read_log(before)
    found = await asyncio.to_thread(lambda: latfit.analyze(log, cutoff=setup.cutoff, laws=(), test=False).to_dict())
    decision = found["timeout"]
    t = decision["timeout"] or (decision.get("if_independent") or {}).get("timeout")
    row = {"system": system, "seed": seed, "decided": decision["verdict"], "codes": decision.get("withheld") or [],
           "timeout": decision["timeout"], "warnings": [w["code"] for w in found["warnings"]]}  # fmt: skip
    if t is None:
        server.close()
        return row
    await pairs(setup, service.port, k, t, folder / "pilot.csv", rng)
    pilot = await asyncio.to_thread(
        lambda: verify(log, read_attempts(folder / "pilot.csv"), timeout=setup.cutoff).tests
    )
    row |= {"pilot": pilot["later_attempts"], "drift": pilot["drift"]}
    lag.mean()
    arms = {"waiting": [setup.cutoff], "constant": [t]}
    if decision["timeout"] and _sure(row["drift"]):  # the system has changed since: the timeout has to follow it
        arms["tracked"] = latfit.Tracker(initial=t, cutoff=setup.cutoff, seed=seed)
    if system == "haproxy":
        arms.pop("constant")
    await jobs(setup, service.port, k, arms, ATTEMPTS, folder, rng)
    if system == "haproxy":
        written = settings_for("haproxy", log, cutoff=setup.cutoff, attempts=ATTEMPTS)
        row["written"] = written.written
        await through_haproxy(setup, service, written.snippet, k, folder / "constant.csv", rng)
    row["lag"] = max(*lags, lag.mean())
    watching.cancel()
    server.close()
    if service.others:
        service.others.cancel()
    return (
        row | {"formula": t} | await asyncio.to_thread(measured, setup, log, folder, None if decision["timeout"] else t)
    )


def measured(setup: Setup, log: latfit.ProbeLog, folder: Path, timeout: float | None) -> dict:
    """What each policy took, and the verification of the constant timeout."""
    took = {}
    for path in sorted(folder.iterdir()):
        if path.stem not in ("before", "pilot"):
            durations = jobs_of(read_attempts(path))
            time = np.concatenate([durations.durations, durations.spent])
            mean = time.sum() / durations.durations.size
            done = np.arange(time.size) < durations.durations.size
            error = math.sqrt(((time - mean * done) ** 2).sum()) / done.sum() / mean
            took[path.stem] = {"mean": mean, "error": error, "done": int(done.sum()), "jobs": int(time.size)}
    after = next(path for path in folder.iterdir() if path.stem == "constant")
    told = verify(log, read_attempts(after), timeout=timeout, cutoff=setup.cutoff).to_dict()
    keep = ("predicted", "measured", "agrees", "verdict", "sentence", "reasons", "tests")
    return {"took": took, **{name: told[name] for name in keep}}


def line(row: dict) -> str:
    """A row of the table."""
    decision = f"{1000 * row['timeout']:.0f} ms" if row["timeout"] else f"{row['decided']} ({', '.join(row['codes'])})"
    if "took" not in row:
        return f"| {row['system']} | {row['seed']} | {decision} | | | | | | 1 |"
    predicted, seen = row["predicted"], row["measured"]
    inside = seen["low"] <= predicted["expected_duration"] <= seen["high"]
    reasons = ", ".join(reason["code"] for reason in row["reasons"])
    verdict = row["verdict"] if row["agrees"] else f"{row['verdict']}: {reasons}"
    verdict += " (stopped by the breaker)" if row.get("stopped") else ""
    pilot = ", ".join(_p(name, row[name]) for name in ("pilot", "drift"))
    if not row["timeout"] or _sure(row["pilot"]):
        advice = "wait: 1"
    else:
        arm = "tracked" if "tracked" in row["took"] else "constant"
        advice = f"{arm}: {_gain(row, arm)}"
    cells = [row["system"], str(row["seed"]), decision, pilot, _ms(predicted), f"{_ms(seen)}{' ·' if inside else ''}",
             verdict, _gain(row, "constant"), advice]  # fmt: skip
    if row.get("lag") is not None:
        cells[1] += "" if not late(row) else f" (lag {1000 * row['lag']:.0f} ms)"
    return f"| {' | '.join(cells)} |"


def late(row: dict) -> bool:
    """Whether the machine was too busy for the row to say anything of the service."""
    return "predicted" in row and (row.get("lag") or 0.0) > LATE * row["predicted"]["expected_duration"]


def _sure(p: float | None) -> bool:
    return p is not None and p < SURE


def _p(name: str, p: float | None) -> str:
    text = "–" if p is None else f"{p:.2f}" if p >= SURE else f"**{p:.0e}**"
    return {"pilot": "later ", "drift": "drift "}[name] + text


def _ms(estimate: dict) -> str:
    low, high = (f"{1000 * estimate[name]:.0f}" for name in ("low", "high"))
    return f"{1000 * estimate['expected_duration']:.0f} ({low}–{high})"


def _gain(row: dict, arm: str) -> str:
    """The speed-up over waiting in the same minutes, with its interval."""
    waiting, other = row["took"]["waiting"], row["took"][arm]
    gain, error = waiting["mean"] / other["mean"], math.hypot(waiting["error"], other["error"])
    return f"{gain:.2f} ({gain * math.exp(-1.96 * error):.2f}–{gain * math.exp(1.96 * error):.2f})"


HEAD = """\
| system | seed | decision | pilot, p | predicted E_J, ms | measured, ms | verify | constant t | by the advice |
|---|---|---|---|---|---|---|---|---|"""


def one(setup: Setup, system: str, seed: int, n: int, k: int) -> dict:
    """One turn, in a process of its own where packets are to be lost."""
    with tempfile.TemporaryDirectory() as folder:
        if system in ("slurm", "queue"):
            row = slurm.loop(Path(folder), seed, n, k, queue=system == "queue")
            if "formula" not in row:
                return row
            shutil.rmtree(Path(folder) / "slurm")
            log = latfit.read_log(Path(folder) / "before.jsonl")
            return row | measured(
                Setup(row["cutoff"] / Setup(1.0).cutoff), log, Path(folder), None if row["timeout"] else row["formula"]
            )
        return asyncio.run(loop(setup, system, seed, n, k, Path(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=SYSTEMS, metavar="SYSTEM", help=", ".join(SYSTEMS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--probes", type=int, default=900)
    parser.add_argument("--jobs", type=int, default=250)
    parser.add_argument("--scale", type=float, default=1.0, help="how much slower everything is, on a busy machine")
    parser.add_argument("--output", type=Path, help="a file to which a line of JSON is added for each row")
    given = parser.parse_args()
    print(HEAD, flush=True)
    for system in given.systems:
        needed = {"haproxy": "haproxy", "slurm": "slurmctld", "queue": "slurmctld", "lossy": "iptables"}.get(system)
        if needed and not shutil.which(needed):
            print(f"{system}: {needed} is not here", file=sys.stderr)
            continue
        for seed in range(given.first, given.first + given.seeds):
            if system == "lossy" and not os.environ.get("CLOSED_LOOP_LOSSY"):
                in_lossy_network(seed, given)
                continue
            for _ in range(TURNS):
                row = one(Setup(given.scale), system, seed, given.probes, given.jobs)
                if not late(row):
                    break
            print(line(row), flush=True)
            if given.output:
                with given.output.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def in_lossy_network(seed: int, given: argparse.Namespace) -> None:
    """The same in a network namespace in which packets are dropped at random."""
    rule = f"iptables -A INPUT -i lo -p tcp -m statistic --mode random --probability {LOSS} -j DROP"
    again = [sys.executable, "-m", "closed_loop", "lossy", "--seeds", "1", "--first", str(seed), "--probes",
             str(given.probes), "--jobs", str(given.jobs), "--scale", str(given.scale)]  # fmt: skip
    if given.output:
        again += ["--output", str(given.output.resolve())]
    with tempfile.TemporaryDirectory() as folder:
        script = f'ip link set lo up && XTABLES_LOCKFILE={folder}/lock {rule} && exec "$@"'
        done = subprocess.run(["unshare", "-rn", "sh", "-c", script, "sh", *again], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "CLOSED_LOOP_LOSSY": "1"})  # fmt: skip
    print("\n".join(done.stdout.splitlines()[2:]), flush=True)
    if done.returncode:
        raise SystemExit(f"the lossy network failed with {done.returncode}")


if __name__ == "__main__":
    main()
