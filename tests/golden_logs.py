"""Logs that exercise every command: one of each kind that people bring, made from fixed seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

START = pd.Timestamp("2026-03-02T06:00:00Z")


def _times(seconds):
    return (START + pd.to_timedelta(np.round(seconds, 3), unit="s")).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def independent(rng):
    """Independent log-normal probes, 3 % of them lost, through three identical brokers."""
    n = 400
    return pd.DataFrame(
        {
            "submitted": _times(np.cumsum(rng.exponential(30, n))),
            "latency": np.round(rng.lognormal(5.5, 1, n), 1),
            "status": np.where(rng.random(n) < 0.03, "lost", "completed"),
            "broker": rng.choice(["a", "b", "c"], n),
        }
    )


def failing(rng):
    """Fast visible failures beside slow answers, milliseconds, a client timeout of 2 s."""
    n = 300
    latency = rng.gamma(2, 150, n)
    failed = rng.random(n) < 0.15
    latency[failed] = rng.uniform(5, 40, failed.sum())
    slow = rng.random(n) < 0.08
    latency[slow] = 2000
    status = np.where(slow, "timeout", np.where(failed, "error", "ok"))
    return pd.DataFrame({"time": _times(np.arange(n) * 1.7), "latency_ms": np.round(latency, 2), "status": status})


def mixed(rng):
    """Two endpoints, one forty times slower."""
    n = 500
    report = rng.random(n) < 0.3
    latency = np.where(report, rng.lognormal(0.3, 0.3, n), rng.lognormal(-3.5, 0.5, n))
    return pd.DataFrame(
        {
            "timestamp": _times(np.cumsum(rng.exponential(2, n))),
            "endpoint": np.where(report, "/report", "/health"),
            "latency": np.round(latency, 4),
            "status": np.where(rng.random(n) < 0.01, 503, 200),
        }
    )


def slow_hours(rng):
    """A probe every five minutes; a tenth of the hours is fifteen times slower."""
    n = 900
    slow = np.repeat(rng.random(n // 12) < 0.1, 12)
    latency = rng.lognormal(0.3, 0.5, n) * np.where(slow, 15, 1)
    return pd.DataFrame({"submitted": _times(np.arange(n) * 300.0), "latency": np.round(latency, 3)})


def drifting(rng):
    """Twice as slow from the middle on, whole seconds, some still out at the end."""
    n = 600
    latency = np.round(rng.lognormal(4, 0.7, n) * np.where(np.arange(n) < 300, 1, 2))
    status = np.where(latency > 400, "censored", "completed")
    return pd.DataFrame(
        {"submitted": _times(np.arange(n) * 120.0), "latency": np.minimum(latency, 400), "status": status}
    )


def jobs(rng):
    """Attempts of jobs, cut at 3 s; a tenth of the jobs is always slow."""
    rows, clock = [], 0.0
    for job in range(150):
        sticky, clock = rng.random() < 0.1, clock + 20
        for attempt in range(1, 5):
            latency = rng.lognormal(2.5 if sticky else 0.2, 0.5)
            done = latency <= 3
            rows.append(
                (_times([clock])[0], f"j{job}", attempt, round(min(latency, 3.0), 3), "ok" if done else "timeout")
            )
            clock += 3
            if done:
                break
    return pd.DataFrame(rows, columns=["submitted", "job", "attempt", "latency", "status"])


def zeros(rng):
    """A batch queue looked at once a minute: many waits are 0."""
    wait = np.floor(rng.lognormal(4, 2, 300) / 60) * 60
    return pd.DataFrame({"submit": _times(np.arange(300) * 400.0), "wait": wait, "queue": rng.choice(["s", "l"], 300)})


def bare(rng):
    """A list of numbers and nothing else."""
    return pd.DataFrame({"latency": np.round(rng.lognormal(1, 1.2, 120), 3)})


def few(rng):
    """Eight probes."""
    return pd.DataFrame({"latency": np.round(rng.lognormal(1, 0.5, 8), 2), "status": ["completed"] * 7 + ["lost"]})


LOGS = {make.__name__: make for make in (independent, failing, mixed, slow_hours, drifting, jobs, zeros, bare, few)}

BUCKETS = "le,count\n.05,0\n.1,10\n.25,40\n.5,30\n1,10\n+Inf,6\n"
PROMETHEUS = """# TYPE request_seconds histogram
request_seconds_bucket{path="/a",le="0.1"} 40
request_seconds_bucket{path="/a",le="0.5"} 90
request_seconds_bucket{path="/a",le="2.5"} 97
request_seconds_bucket{path="/a",le="+Inf"} 100
request_seconds_sum{path="/a"} 34.5
request_seconds_count{path="/a"} 100
"""


def write(folder: Path) -> dict[str, Path]:
    """Write every log into the folder and return the paths."""
    paths = {}
    for at, (name, make) in enumerate(LOGS.items()):
        paths[name] = folder / f"{name}.csv"
        make(np.random.default_rng(2026 + at)).to_csv(paths[name], index=False)
    for name, text in (("buckets.csv", BUCKETS), ("requests.prom", PROMETHEUS)):
        paths[name.split(".")[0]] = folder / name
        (folder / name).write_text(text)
    return paths
