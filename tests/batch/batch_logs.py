"""Synthetic logs for the tests of the batch."""

import numpy as np

CUTOFF = 1000.0


def probes(rng, count, sites, day):
    """Lines of a log: log-normal latencies, 3 % outliers, seen until the cutoff."""
    for k in range(count):
        x = rng.lognormal(4, 1)
        done = x < CUTOFF and rng.random() > 0.03
        site, latency = f"s{rng.integers(sites):02d}", round(x, 3) if done else CUTOFF
        when = f"2026-01-{day:02d}T{k // 60 % 24:02d}:{k % 60:02d}:00Z"
        yield f"{when},{site},{latency},{'completed' if done else 'censored'}"


def write_logs(folder, files, *, count=200, sites=10, seed=0):
    """So many logs, the probes of each site spread over all of them."""
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    for k in range(files):
        lines = ["submitted,site,latency,status", *probes(rng, count, sites, 1 + k % 28)]
        (folder / f"{k:03d}.csv").write_text("\n".join(lines) + "\n")
    return folder
