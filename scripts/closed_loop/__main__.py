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
from .client import Lag, Setup, jobs, probes, through_haproxy
from .service import Service

SYSTEMS = ("independent", "haproxy", "lossy", "drifting", "sticky", "overloaded", "slurm", "queue")
LOSS = 0.04
ATTEMPTS = 12
LATE, TURNS = 0.02, 3  # a mean lag of this share of E_J spoils a row, which is then measured again, at most so often


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
    analysis = await asyncio.to_thread(lambda: latfit.analyze(log, cutoff=setup.cutoff, laws=(), test=False).to_dict())
    row, arms = advice(analysis, system, seed, setup.cutoff)
    through = arms.pop("schedule", None) if system == "haproxy" else None
    lag.mean()
    pairs = await jobs(setup, service.port, k, arms, ATTEMPTS, folder, rng)
    if through:
        written = settings_for("haproxy", log, cutoff=setup.cutoff)
        row["written"] = f"{written.attempts} × {written.written}"
        await through_haproxy(setup, service, written.snippet, k, folder / "schedule.csv", rng)
    row["lag"] = max(*lags, lag.mean())
    watching.cancel()
    server.close()
    if service.others:
        service.others.cancel()
    result = row | await asyncio.to_thread(measured, setup.cutoff, log, folder)
    for name in set(pairs) - {"waiting"}:
        result["took"][name]["paired_error"] = paired_error(pairs[name], pairs["waiting"])
    return result


def paired_error(arm: list[tuple[float, bool]], waiting: list[tuple[float, bool]]) -> float:
    """The standard error of the logarithm of time over jobs done, relative to waiting with the same jobs."""
    shares = []
    for each in (arm, waiting):
        time, done = np.array(each).T
        shares.append(time / time.sum() - done / done.sum())
    return float(np.sqrt(((shares[0] - shares[1]) ** 2).sum()))


def advice(analysis: dict, system: str, seed: int, cutoff: float) -> tuple[dict, dict[str, list[float]]]:
    """What the log decides, and the limits of the attempts of each arm: waiting, the schedule, the formula."""
    decision = analysis["timeout"]
    formula = decision["timeout"] or (decision.get("if_independent") or {}).get("timeout")
    row = {"system": system, "seed": seed, "retry": decision["retry"], "verdict": decision["verdict"],
           "codes": decision.get("withheld") or [], "binding": analysis["evidence"]["binding"]}  # fmt: skip
    arms = {"waiting": [cutoff]}
    if decision["retry"]:
        arms["schedule"] = [*decision["retry"]["timeouts"], cutoff]
    if formula:
        arms["constant"] = [formula]
    return row, arms


def measured(cutoff: float, log: latfit.ProbeLog, folder: Path) -> dict:
    """What the jobs of each arm took, and the verification of the schedule."""
    took = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.stem != "before":
            durations = jobs_of(read_attempts(path))
            time = np.concatenate([durations.durations, durations.spent])
            mean = time.sum() / durations.durations.size
            done = np.arange(time.size) < durations.durations.size
            error = math.sqrt(((time - mean * done) ** 2).sum()) / done.sum() / mean
            took[path.stem] = {"mean": mean, "error": error, "done": int(done.sum()), "jobs": int(time.size)}
            if path.stem == "schedule":
                took["verification"] = verify(log, read_attempts(path), cutoff=cutoff).to_dict()
    return {"took": took, "verification": took.pop("verification", None)}


def line(row: dict) -> str:
    """A row of the table."""
    seed = f"{row['seed']} (lag {1000 * row['lag']:.0f} ms)" if late(row) else str(row["seed"])
    if not row["retry"]:
        why = ", ".join(row["codes"]) or row["binding"]
        return f"| {row['system']} | {seed} | wait ({why}) | | | | | | 1 | {_gain(row, 'constant')} |"
    verification = row["verification"]
    predicted, seen = verification["predicted"], verification["measured"]
    inside = seen["low"] <= predicted["expected_duration"] <= seen["high"]
    reasons = ", ".join(reason["code"] for reason in verification["reasons"])
    verdict = verification["verdict"] if verification["agrees"] else f"{verification['verdict']}: {reasons}"
    schedule = ", ".join(f"{1000 * t:.0f}" for t in row["retry"]["timeouts"])
    if "written" in row:
        schedule += f" ({row['written']})"
    loss, error = _loss(row)
    low, high = (100 * (loss * math.exp(z * error) - 1) for z in (-1.96, 1.96))
    promised, most = 100 * row["retry"]["worst_loss"], 100 * row["retry"]["worst_loss_interval"][1]
    cells = [row["system"], seed, schedule, _ms(predicted), f"{_ms(seen)}{' ·' if inside else ''}", verdict,
             f"{promised:.0f} (at most {most:.0f})",
             f"{100 * (loss - 1):+.0f} ({low:+.0f} to {high:+.0f}){' **exceeded**' if low > most else ''}",
             _gain(row, "schedule"), _gain(row, "constant")]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def late(row: dict) -> bool:
    """Whether the machine was too busy for the row to say anything of the service."""
    return (row.get("lag") or 0.0) > LATE * row["took"]["waiting"]["mean"]


def _ms(estimate: dict) -> str:
    low, high = (f"{1000 * estimate[name]:.0f}" for name in ("low", "high"))
    return f"{1000 * estimate['expected_duration']:.0f} ({low}–{high})"


def _loss(row: dict, arm: str = "schedule") -> tuple[float, float]:
    """The mean of an arm over that of waiting in the same minutes, and the standard error of its logarithm."""
    waiting, other = row["took"]["waiting"], row["took"][arm]
    unpaired = math.hypot(waiting["error"], other["error"])
    return other["mean"] / waiting["mean"], other.get("paired_error", unpaired)


def _gain(row: dict, arm: str) -> str:
    """The speed-up over waiting in the same minutes, with its interval."""
    if arm not in row["took"]:
        return ""
    loss, error = _loss(row, arm)
    return f"{1 / loss:.2f} ({math.exp(-1.96 * error) / loss:.2f}–{math.exp(1.96 * error) / loss:.2f})"


HEAD = """\
| system | seed | schedule, ms | predicted, ms | measured, ms | verify | promised loss | loss, % | schedule | formula |
|---|---|---|---|---|---|---|---|---|---|"""


def one(setup: Setup, system: str, seed: int, n: int, k: int) -> dict:
    """One turn, in a process of its own where packets are to be lost."""
    with tempfile.TemporaryDirectory() as folder:
        if system in ("slurm", "queue"):
            row = slurm.loop(Path(folder), seed, n, k, advice, queue=system == "queue")
            shutil.rmtree(Path(folder) / "slurm")
            return row | measured(row["cutoff"], latfit.read_log(Path(folder) / "before.jsonl"), Path(folder))
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
