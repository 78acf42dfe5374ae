"""The loop on a real SLURM on loopback, resubmitted by `latfit probe slurm`: jobs that hang, or a queue that fills."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from systems import SlurmCluster

REPO = Path(__file__).resolve().parent.parent.parent
JOB = "case $(shuf -i 1-12 -n 1) in 1) sleep 60 ;; *) sleep 0.$(shuf -i 1-9 -n 1) ;; esac"
QUEUED = "sleep 0.$(shuf -i 1-9 -n 1)"
BURST, PAUSE = 8, 12.0  # jobs of other people, all at once, and the mean of the seconds until they come again


def loop(folder: Path, seed: int, n: int, k: int, advice: Callable, *, queue: bool = False) -> dict:
    """One turn: probes, the decision, and jobs for each arm of the `advice`.

    With `queue` there is one node, nothing hangs, and other people's jobs come in bursts: a resubmitted job goes to
    the end of the queue.
    """
    name, job, nodes, in_flight, cutoff = ("queue", QUEUED, 1, 2, 60) if queue else ("slurm", JOB, 4, 6, 10)
    sys.path.append(str(REPO / "tests" / "measure"))
    from systems import slurm  # the harness that the tests of `latfit probe slurm` use

    with slurm(folder / "slurm", nodes) as cluster, others(cluster, seed) if queue else nullcontext():

        def latfit(*words: object) -> subprocess.CompletedProcess[str]:
            done = subprocess.run([Path(sys.executable).parent / "latfit", *map(str, words)], env=cluster.environment,
                                  capture_output=True, text=True, timeout=900)  # fmt: skip
            if done.returncode and "stopped by the breaker" not in done.stderr:
                raise SystemExit(done.stderr)
            return done

        def probe(log: str, count: int, *more: object) -> bool:
            done = latfit("probe", "slurm", "-o", folder / log, "--in-flight", in_flight, "--cutoff", f"{cutoff}s",
                   "--probes", count, "--poll", "100ms", "--seed", seed, "--job", job, *more)  # fmt: skip
            return done.returncode > 0

        probe("before.jsonl", n)
        found = json.loads(latfit("analyze", folder / "before.jsonl", "--cutoff", f"{cutoff}s", "--json").stdout)
        row, arms = advice(found, name, seed, cutoff)
        for arm, times in arms.items():
            policy = f"timeout(t={times[0]})" if len(times) == 1 else f"schedule(timeouts={times})"
            stopped = probe(f"{arm}.jsonl", k, "--policy", policy, "--submissions", 20 * k)
            row["stopped"] = stopped
    return row | {"cutoff": cutoff}


@contextmanager
def others(cluster: SlurmCluster, seed: int) -> Iterator[None]:
    """Bursts of other people's jobs for as long as the context lasts."""
    rng, done = random.Random(seed), threading.Event()

    def submit() -> None:
        while not done.wait(rng.expovariate(1 / PAUSE)):
            for _ in range(rng.randint(1, BURST)):
                cluster.call("sbatch", "--output=/dev/null", "--wrap", "sleep 1")

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
