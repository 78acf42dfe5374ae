"""The loop on a real SLURM on loopback: jobs that hang now and then, resubmitted by `latfit probe slurm`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
CUTOFF = "10s"
JOB = "case $(shuf -i 1-12 -n 1) in 1) sleep 60 ;; *) sleep 0.$(shuf -i 1-9 -n 1) ;; esac"
IN_FLIGHT = 6


def loop(folder: Path, seed: int, n: int, k: int) -> dict:
    """One turn: probes, the decision, jobs that wait and jobs that are resubmitted, the verification."""
    sys.path.append(str(REPO / "tests" / "measure"))
    from systems import slurm  # the harness that the tests of `latfit probe slurm` use

    with slurm(folder / "slurm") as cluster:

        def latfit(*words: object) -> subprocess.CompletedProcess[str]:
            done = subprocess.run([Path(sys.executable).parent / "latfit", *map(str, words)], env=cluster.environment,
                                  capture_output=True, text=True, timeout=900)  # fmt: skip
            if done.returncode:
                raise SystemExit(done.stderr)
            return done

        def probe(name: str, count: int, *more: object) -> None:
            latfit("probe", "slurm", "-o", folder / name, "--in-flight", IN_FLIGHT, "--cutoff", CUTOFF,
                   "--probes", count, "--poll", "100ms", "--seed", seed, "--job", JOB, *more)  # fmt: skip

        probe("before.jsonl", n)
        found = json.loads(latfit("analyze", folder / "before.jsonl", "--cutoff", CUTOFF, "--json").stdout)
        decision = found["timeout"]
        row = {"system": "slurm", "seed": seed, "decided": decision["verdict"], "codes": decision.get("withheld") or [],
               "timeout": decision["timeout"], "pilot": None, "drift": None}  # fmt: skip
        t = decision["timeout"] or (decision.get("if_independent") or {}).get("timeout")
        if not t:
            return row
        probe("waiting.jsonl", k, "--policy", "timeout(t=10)", "--submissions", 20 * k)
        probe("constant.jsonl", k, "--policy", f"timeout(t={t})", "--submissions", 20 * k)
    return row | {"formula": t}
