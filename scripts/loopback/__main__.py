"""Mean duration of requests to a service that becomes three times slower and heals: scripts/loopback [JOBS].

The tracker, the timeout that is right at first and stays, and the oracle that knows the law of the moment.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import time
from pathlib import Path

import numpy as np

from latfit import Defective, Tracker, optimal_timeout, parse_law
from loopback.service import Service

MEAN, SD, RHO, CUTOFF = 0.04, 0.012, 0.03, 3.0
PHASES = (1.0, 3.0, 1.0)
IN_FLIGHT = 10
EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"


class Set:
    """A timeout that somebody set; the tracker's interface."""

    cost = 0.0

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout

    def next(self) -> float:
        return self.timeout

    def observe(self, *_: object) -> None:
        pass


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def best(factor: float) -> float:
    """The best timeout of the law at a factor, in seconds."""
    law = parse_law(f"truncated-gaussian(mu={MEAN * factor},sigma={SD * factor})")
    found = optimal_timeout(Defective(law, RHO)).timeout
    assert found is not None
    return found


def draw(rng: np.random.Generator) -> float:
    return abs(float(rng.normal(MEAN, SD)))


async def measured(policy: str, jobs: int, seed: int = 0) -> list[float]:
    """The mean duration of jobs in each phase, `IN_FLIGHT` at a time."""
    fetch = example("tracked_asyncio").fetch
    found = []
    async with Service(draw, RHO, seed).running() as service:
        client = Tracker(initial=2 * MEAN, cutoff=CUTOFF, seed=seed) if policy == "tracker" else Set(best(1.0))
        for factor in PHASES:
            service.factor = factor
            if policy == "oracle":
                client = Set(best(factor))
            todo, took = iter(range(jobs)), []

            async def worker(todo=todo, took=took, client=client):
                for _ in todo:
                    start = time.perf_counter()
                    await fetch("127.0.0.1", service.port, "/", client)
                    took.append(time.perf_counter() - start)

            await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
            found.append(float(np.mean(took)))
    return found


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    print(f"mean duration of {jobs} requests a phase, ms, {IN_FLIGHT} in flight; latency × {PHASES}")
    for policy in ("tracker", "fixed", "oracle"):
        found = asyncio.run(measured(policy, jobs))
        print(f"{policy:<8} {'  '.join(f'{1e3 * mean:8.1f}' for mean in found)}   all {1e3 * np.mean(found):.1f}")


if __name__ == "__main__":
    main()
