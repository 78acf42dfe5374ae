"""Ordinary random logs through every command: laws × n × ρ × clock × censoring × failures × groups.

A fuzzer mutates a few logs; this makes plain ones. `scripts/survey` runs as many as you like.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from click.testing import CliRunner

from latfit.cli import main

UNITS = {"latency": 1.0, "latency_ms": 1e3, "rtt": 1.0, "duration_s": 1.0, "elapsed_us": 1e6, "wait": 1.0}
WORDS = (
    ("completed", "failed", "censored", "lost"),
    ("ok", "error", "timeout", "lost"),
    ("success", "fail", "cancelled", "never"),
)


def _draw(kind, n, rng):
    """Latencies of one of six shapes."""
    return (
        lambda: rng.lognormal(0, rng.uniform(0.15, 1.6), n),
        lambda: rng.gamma(rng.uniform(0.8, 9), 1, n),
        lambda: rng.exponential(1, n),
        lambda: rng.weibull(rng.uniform(0.7, 3), n),
        lambda: rng.uniform(0.2, 1, n),
        lambda: 0.1 + rng.pareto(rng.uniform(1.3, 4), n),
    )[kind]()


def _finite_only(word):
    raise ValueError(f"{word} in the JSON")


def make_log(seed: int, path: Path) -> None:
    """One log, written as CSV."""
    rng = np.random.default_rng(seed)
    n = int(np.exp(rng.uniform(np.log(20), np.log(1500))))
    kind, scale = rng.integers(6), float(np.exp(rng.uniform(-6, 8)))
    x = scale * _draw(int(kind), n, rng)
    column = str(rng.choice(list(UNITS)))
    decimals = int(rng.integers(0, 7))
    words = WORDS[int(rng.integers(len(WORDS)))]
    shares = np.array(
        [1.0, rng.choice([0, 0, 0.1, 0.3]), rng.choice([0, 0, 0.05, 0.3]), rng.choice([0, 0.01, 0.05, 0.2])]
    )
    code = rng.choice(4, n, p=shares / shares.sum())
    frame = pd.DataFrame({column: np.round(x * UNITS[column], decimals)})
    if rng.random() < 0.85:
        frame["status"] = np.array(words)[code]
    if rng.random() < 0.7:
        gaps = np.cumsum(rng.exponential(float(rng.choice([0.01, 1, 100])) * scale, n))
        frame["timestamp"] = (pd.Timestamp("2026-03-01", tz="UTC") + pd.to_timedelta(gaps, unit="s")).strftime(
            "%Y-%m-%dT%H:%M:%S.%fZ")  # fmt: skip
    if rng.random() < 0.6:
        frame["site"] = rng.choice(["cern", "in2p3", "ral"], n)
    if rng.random() < 0.3:
        frame["id"] = np.arange(n)
    frame.to_csv(path, index=False)


def problems(seed: int, folder: Path) -> list[str]:
    """What is wrong with what the commands say of one log: a failure, a warning of a library, an answer beaten."""
    path = folder / f"{seed}.csv"
    make_log(seed, path)
    table = pd.read_csv(path)
    by = ["--by", "site"] if "site" in table else []
    quick = ["--resamples", 19 if seed % 10 == 0 else 0]
    calls = [["analyze", *quick, *by], ["timeout", *quick], ["outliers"], ["fit", "--bootstrap", quick[1]],
             ["timeout", "--objective", "quantile:0.9", *quick], ["timeout", "--cost", "1", *quick]]  # fmt: skip
    if "timestamp" in table:
        calls += [["replay"], ["drift", "--window", "7d"]]
    found, documents = [], {}
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            done = CliRunner().invoke(main, [call[0], str(path), *map(str, call[1:]), "--json"])
        told = " ".join(map(str, call))
        if done.exit_code or done.exception:
            excuses = ("replay needs", "under visible failures", "needs at least")
            few = any(words in done.stderr for words in excuses)
            none = "none of the" in done.stderr or "infinite for every timeout" in done.stderr
            if done.exit_code != 1 or not (few or none):
                found.append(f"{seed} {told}: exit {done.exit_code}: {done.stderr[-200:]} {done.exception!r}")
            continue
        found += [f"{seed} {told}: {w.category.__name__}: {w.message}" for w in caught]
        documents[told] = json.loads(done.stdout, parse_constant=_finite_only)
    own = next((documents[key]["timeout"] for key in documents if key.startswith("analyze")), None)
    return found + (_beaten(seed, own) if own else [])


def _beaten(seed: int, own: dict) -> list[str]:
    """Figures that contradict themselves or each other."""
    bad = []
    plain = own["if_independent"] or own
    if plain["timeout"] is None:
        return bad
    for name in ("within_1pct", "within_5pct"):
        low, high = plain[name]
        if not low * (1 - 1e-9) <= plain["timeout"] <= (high or np.inf) * (1 + 1e-9):
            bad.append(f"{seed}: {name} {low}–{high} does not hold the timeout {plain['timeout']}")
    if plain["low"] is not None and not plain["low"] <= plain["timeout"] * (1 + 1e-9):
        bad.append(f"{seed}: the interval {plain['low']}–{plain['high']} begins after {plain['timeout']}")
    end = plain["at_cutoff"] and plain["at_cutoff"]["expected_duration"]
    if end is not None and plain["expected_duration"] > end * 1.5:
        bad.append(f"{seed}: waiting takes {end}, the advice {plain['expected_duration']}")
    return bad
