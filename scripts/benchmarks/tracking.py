"""Rows on tracking: what an observation and an estimate cost inside a client, and a line that is watched."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.data import FOLDER
from benchmarks.timing import CallCounter, Row, Timed, in_turns, seconds
from latfit import Tracker
from latfit.tracking.estimate import estimate
from latfit.tracking.watch import Watch

CUTOFF, T = 20_000.0, 400.0


def attempts(n: int) -> list[float]:
    return np.random.default_rng(5).lognormal(5.5, 1, n).tolist()


def warm(n: int = 5000) -> Tracker:
    """A tracker in the middle of its work."""
    tracker = Tracker(initial=T, cutoff=CUTOFF)
    for y in attempts(n):
        t = tracker.next()
        tracker.observe(min(y, t), "completed" if y <= t else "censored")
    return tracker


def each(key: str, work: str, limit: float, n: int, run: Callable[[], None]) -> list[Row]:
    """What one of `n` costs, against a limit in microseconds of processor time."""

    def ours() -> Timed:
        start = time.process_time()
        run()
        return Timed(1e6 * (time.process_time() - start) / n, None)

    (found,) = in_turns(3, ours)
    return [Row(key, f"{work}, mean of {n}", f"{limit:g} µs", "≤ 1 ×", [limit], seconds(found), "µs")]


def observing(key: str, quick: bool) -> list[Row]:
    """Observations alone, nobody asking for the timeout."""
    x, tracker = attempts(10**4 if quick else 10**5), warm()

    def run() -> None:
        for y in x:
            tracker.observe(min(y, T), "completed" if y <= T else "censored")

    return each(key, "one observation", 5.0, len(x), run)


def estimating(key: str, quick: bool) -> list[Row]:
    n, tracker = 100 if quick else 1000, warm()

    def run() -> None:
        for _ in range(n):
            estimate(tracker._memories, cost=0.0, slack=0.01)

    return each(key, "one estimate of the timeout", 200.0, n, run)


def watching(key: str, quick: bool) -> list[Row]:
    """Calls of latfit's functions for one line that is appended to a watched log."""
    path, lines = Path(FOLDER.name) / "watched.csv", [f"{y:.3f},completed\n" for y in attempts(1020)]
    path.write_text("latency,status\n" + "".join(lines[:1000]), encoding="utf-8")
    counter = CallCounter()
    try:
        with Watch(path, cutoff=CUTOFF) as watch:
            watch.read()
            watch.notice()
            for line in lines[1000:]:
                with path.open("a", encoding="utf-8") as file:
                    file.write(line)
                counter.during(watch.read)
                counter.during(watch.notice)
    finally:
        counter.end()
    found = counter.count / len(lines[1000:])
    return [Row(key, "`watch`: one line appended to a log", "100 calls", "≤ 1 ×", [100.0], [found], "calls")]


BENCHES = {"tracking/observe": observing, "tracking/estimate": estimating, "tracking/watch": watching}
