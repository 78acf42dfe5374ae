"""Ordinary random logs through every command: laws × n × ρ × clock × censoring × failures × groups.

A fuzzer mutates a few logs; this makes plain ones. `scripts/survey` runs as many as you like.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from click.testing import CliRunner

from latfit.cli import main
from latfit.decision import compared

UNITS = {"latency": 1.0, "latency_ms": 1e3, "rtt_s": 1.0, "duration_s": 1.0, "elapsed_us": 1e6, "wait": 1.0}
FEW = 19  # resamples: enough to take every path
WORDS = (
    ("completed", "failed", "censored", "lost"),
    ("ok", "error", "timeout", "lost"),
    ("success", "fail", "cancelled", "never"),
)

EXCUSES = ("replay needs", "under visible failures", "needs at least", "none of the", "not even the one",
           "infinite for every timeout",
           "every attempt takes 0 s", "no column looks like a latency", "that is not plausible")  # fmt: skip


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


def problems(seed: int, folder: Path, *, every: bool = True) -> list[str]:
    """Problems with the commands' answers on one log: a failure, a library's warning, an answer that is beaten.

    Without `every` the log goes through `analyze` and one of the other commands.
    """
    path = folder / f"{seed}.csv"
    make_log(seed, path)
    table = pd.read_csv(path)
    quick = ["--resamples", str(FEW) if seed % 10 == 0 else "0"]
    by = ["--by", "site"] if "site" in table and (every or seed % 3 == 0) else []
    log, out = str(path), str(folder / f"{seed}.out.csv")
    calls = [["outliers", log], ["fit", log, "--bootstrap", quick[1]], ["compare", log], ["settings", "curl", log],
             ["timeout", log, *quick], ["timeout", log, "--objective", "quantile:0.9", *quick],
             ["timeout", log, "--cost", "1", *quick], ["convert", log, "-o", out],
             ["batch", log, "-o", out, "--workers", "1", *by, *quick],
             ["agents", "--agent", f"a={log}", "--agent", "b=exponential(rate=1)"]]  # fmt: skip
    if "timestamp" in table:
        calls += [["replay", log], ["drift", log, "--window", "7d"]]
    if not every:
        calls = [calls[seed % len(calls)]]
    found, documents = [], {}
    for call in [["analyze", log, *quick, *by], *calls]:
        with (
            warnings.catch_warnings(record=True) as caught,
            patch.object(compared, "comparison_intervals", partial(compared.comparison_intervals, count=FEW)),
        ):
            warnings.simplefilter("always")
            done = CliRunner().invoke(main, [*call, *([] if out in call else ["--json"])])
        told = f"{seed} {' '.join(call)}"
        if done.exit_code or done.exception:
            if done.exit_code != 1 or not any(words in done.stderr for words in EXCUSES):
                found.append(f"{told}: exit {done.exit_code}: {done.stderr[-200:]} {done.exception!r}")
            continue
        found += [f"{told}: {w.category.__name__}: {w.message}" for w in caught]
        if out not in call:
            documents[call[0]] = json.loads(done.stdout, parse_constant=_finite_only)
    for made in folder.glob(f"{seed}.*"):
        made.unlink()
    if "analyze" in documents:
        found += [
            f"{seed}: {what}" for what in _contradictions(documents["analyze"]) + _beaten(documents["analyze"], table)
        ]
    return found


def _contradictions(told: dict) -> list[str]:
    """Figures that contradict each other."""
    own, bad = told["timeout"], []
    plain = own["if_independent"] or own
    if plain["timeout"] is None:
        return bad
    for name in ("within_1pct", "within_5pct"):
        low, high = plain[name]
        if not low * (1 - 1e-9) <= plain["timeout"] <= (high or np.inf) * (1 + 1e-9):
            bad.append(f"{name} {low}–{high} does not hold the timeout {plain['timeout']}")
    if plain["low"] is not None and not plain["low"] <= plain["timeout"] * (1 + 1e-9):
        bad.append(f"the interval {plain['low']}–{plain['high']} begins after {plain['timeout']}")
    return bad


def _beaten(told: dict, table: pd.DataFrame) -> list[str]:
    """(Σ min(x, t))/#{x ≤ t} straight from the table, if nothing failed or was lost early, against the answer."""
    column = table.columns[0]
    status = table["status"] if "status" in table else pd.Series("ok", index=table.index)
    if not status.isin([word for words in WORDS for word in (words[0], words[3])]).all():
        return []
    back = status.isin([words[0] for words in WORDS])
    x = np.sort(table.loc[back, column].to_numpy() / UNITS[column])
    x, n, k = x[x <= told["outliers"]["cutoff"]], len(table), np.arange(1, len(x) + 1)[x <= told["outliers"]["cutoff"]]
    if not x.size or not x[-1] > 0:
        return []
    curve = np.where(np.append(x[1:] > x[:-1], True), (np.cumsum(x) + x * (n - k)) / k, np.inf)
    plain = told["timeout"]["if_independent"] or told["timeout"]
    bad = []
    for name in ("exact_timeout", "timeout"):
        if plain[name] is None:
            continue
        at = np.searchsorted(x, plain[name] * (1 + 1e-12), side="right")
        value = (x[:at].sum() + plain[name] * (n - at)) / at
        if name == "timeout" and abs(value / plain["expected_duration"] - 1) > 1e-9:
            bad.append(f"E_J at {plain[name]} is {value}, not {plain['expected_duration']}")
        least = curve[4:][x[4:] > 0].min(initial=np.inf)  # never at once: the clock does not see it
        if name == "exact_timeout" and value > least * (1 + 1e-9):
            bad.append(f"E_J at the optimum {plain[name]} is {value}; {least} can be had")
        if name == "timeout" and value > curve[-1] * (1 + 1e-9) and plain["timeout"] <= x[-1]:
            bad.append(f"waiting takes {curve[-1]}, the advice {value}")
    return bad
