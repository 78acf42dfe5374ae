"""Rows on tracking: what an observation and an estimate cost inside a client, against keeping a window."""

from __future__ import annotations

from collections import deque

import numpy as np

from benchmarks.timing import Row, duel
from latfit import Tracker
from latfit.tracking.estimate import estimate

CUTOFF, T = 20_000.0, 400.0
WINDOW = 1000  # completions of which a client would take a percentile


def attempts(n: int) -> list[float]:
    return np.random.default_rng(5).lognormal(5.5, 1, n).tolist()


def warm(n: int = 5000) -> Tracker:
    """A tracker in the middle of its work."""
    tracker = Tracker(initial=T, cutoff=CUTOFF)
    for y in attempts(n):
        t = tracker.next()
        tracker.observe(min(y, t), "completed" if y <= t else "censored")
    return tracker


def observing(key: str, quick: bool) -> list[Row]:
    """ProbeTable alone, nobody asking for the timeout."""
    x, tracker = attempts(10**4 if quick else 10**5), warm()

    def theirs() -> None:
        kept: deque[float] = deque(maxlen=WINDOW)
        for y in x:
            kept.append(min(y, T))

    def ours() -> int:
        for y in x:
            tracker.observe(min(y, T), "completed" if y <= T else "censored")
        return len(x)

    def judge(_: None, n: int) -> tuple[bool, str]:
        size, text = tracker._memories.counts.nbytes / 1e3, len(tracker.to_json()) / 1e3
        return True, f"{n} observations; {size:.0f} KB, JSON {text:.0f} KB"

    return [duel(key, f"{len(x):.0e} observations", "deque.append", "≤", theirs, ours, judge=judge)]


def estimating(key: str, quick: bool) -> list[Row]:
    """Estimates alone, against a percentile of the last thousand, which is no timeout yet."""
    n, tracker, kept = 100 if quick else 1000, warm(), deque(attempts(WINDOW), maxlen=WINDOW)

    def theirs() -> None:
        for _ in range(n):
            np.quantile(kept, 0.95)

    def ours() -> None:
        for _ in range(n):
            estimate(tracker._memories, cost=0.0, slack=0.01)

    return [duel(key, f"{n} estimates of the timeout", "np.quantile of 1000", "≤", theirs, ours)]


def traffic(key: str, quick: bool) -> list[Row]:
    """A timeout asked for and an outcome told, again and again, an estimate every five."""
    x = attempts(2000 if quick else 20_000)

    def theirs() -> None:
        kept, t = deque([T], maxlen=WINDOW), T
        for i, y in enumerate(x):
            kept.append(min(y, t))
            if i % 5 == 0:
                t = 1.5 * float(np.quantile(kept, 0.95))

    def ours() -> None:
        tracker = Tracker(initial=T, cutoff=CUTOFF)
        for y in x:
            t = tracker.next()
            tracker.observe(min(y, t), "completed" if y <= t else "censored")

    return [duel(key, f"{len(x):.0e} attempts with their timeouts", "1.5 × p95 of 1000", "≤", theirs, ours)]


BENCHES = {"tracking/observe": observing, "tracking/estimate": estimating, "tracking/traffic": traffic}
