"""What is measured on: simulated probes, in memory and in files."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv

from latfit.sample import LatencySample
from latfit.table import CENSORED, COMPLETED, ProbeTable

Floats = np.ndarray[Any, np.dtype[np.float64]]

CUTOFF = 2000.0
FOLDER = tempfile.TemporaryDirectory(prefix="latfit-bench-")


def probes(n: int, seed: int = 0) -> Floats:
    """Log-normal latencies, 2.5 % of them outliers."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.025, np.inf, rng.lognormal(5.5, 1, n))


def sample_of(x: Floats, cutoff: float | None = CUTOFF) -> LatencySample:
    """The sample of raw latencies, cut off or complete."""
    if cutoff is None:
        return LatencySample.of(x, resolution=0)
    seen = x[x <= cutoff]
    return LatencySample.of(seen, censored=[cutoff] * (x.size - seen.size), cutoff=cutoff, resolution=0)


def observed(x: Floats) -> ProbeTable:
    """The same probes in the order of submission, cut off."""
    return ProbeTable(np.minimum(x, CUTOFF), np.where(x <= CUTOFF, COMPLETED, CENSORED), clock=0.0)


@cache
def probe_csv(rows: int, *, timestamps: bool) -> Path:
    """Probes with millisecond latencies, 2.5 % of them cut off at 10 000 s; written once a run."""
    path, rng, step = Path(FOLDER.name) / f"{rows}-{timestamps}.csv", np.random.default_rng(7), 1_000_000
    with path.open("wb") as file:
        for first in range(0, rows, step):
            n = min(step, rows - first)
            latency = np.round(rng.lognormal(5.5, 1, n), 3)
            out = (rng.random(n) < 0.025) | (latency > 10_000)
            columns = {"latency": np.where(out, 10_000.0, latency), "status": np.where(out, "censored", "completed")}
            if timestamps:
                when = np.datetime64("2026-01-01T00:00:00") + np.arange(first, first + n).astype("timedelta64[s]")
                columns = {"submitted": np.char.add(np.datetime_as_string(when), "Z")} | columns
            if first == 0:
                file.write((",".join(columns) + "\n").encode())
            options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
            pa.csv.write_csv(pa.table(columns), file, options)
    return path


@cache
def command_log(rows: int, suffix: str, *, sites: int = 2000) -> Path:
    """The log of the whole commands: id, site, submitted (an epoch), latency (ms digits), status; 3 % are lost."""
    path = Path(FOLDER.name) / f"log-{rows}-{sites}.{suffix}"
    if suffix != "csv":
        frame = pd.read_csv(command_log(rows, "csv", sites=sites))
        if suffix == "csv.gz":
            frame.to_csv(path, index=False, compression={"method": "gzip", "compresslevel": 1})
        elif suffix == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
        return path
    rng, step, clock = np.random.default_rng(1), 1_000_000, 1.6e9
    with path.open("wb") as file:
        file.write(b"id,site,submitted,latency,status\n")
        for first in range(0, rows, step):
            n = min(step, rows - first)
            lost, when = rng.random(n) < 0.03, clock + np.cumsum(rng.exponential(1.0, n))
            clock = float(when[-1])
            columns = {
                "id": np.arange(first, first + n),
                "site": np.char.add("site", rng.integers(0, sites, n).astype(str)),
                "submitted": pa.array(np.round(when, 3)).cast(pa.decimal128(14, 3)),
                "latency": pa.array(np.round(rng.lognormal(5.5, 1, n), 3), mask=lost),
                "status": np.where(lost, "lost", "done"),
            }
            pa.csv.write_csv(pa.table(columns), file, pa.csv.WriteOptions(include_header=False, quoting_style="none"))
    return path
