"""Other ways to set a timeout from the attempts that it cuts short."""

from __future__ import annotations

from collections import deque

import numpy as np

from calibration.cases import Floats
from calibration.systems import CUTOFF

FLOOR = 1e-3


class Fixed:
    """Set once, rightly for the first law."""

    def __init__(self, best: float) -> None:
        self.t = best

    def next(self) -> float:
        return self.t

    def observe(self, latency: float, done: bool) -> None:
        pass


class Window(Fixed):
    """The exact optimum of the last 300 attempts by Kaplan–Meier, at least 5 completions, every 10."""

    size, every = 300, 10

    def __init__(self, best: float) -> None:
        super().__init__(best)
        self.kept: deque[tuple[float, bool]] = deque(maxlen=self.size)
        self.n = 0

    def observe(self, latency: float, done: bool) -> None:
        self.kept.append((latency, done))
        self.n += 1
        if self.n % self.every == 0:
            found = optimum(np.array(self.kept))
            self.t = self.t if found is None else min(found, CUTOFF)


def optimum(kept: Floats) -> float | None:
    """The plain optimum of attempts, some of them censored; None with fewer than 5 completions."""
    x, done = kept[:, 0], kept[:, 1]
    order = np.lexsort((1 - done, x))
    x, done = x[order], done[order]
    at_risk = x.size - np.arange(x.size)
    S = np.cumprod(1 - done / at_risk)
    mass = np.append(1.0, S[:-1]) * done / at_risk
    F = np.cumsum(mass)
    E = (np.cumsum(mass * x) + (1 - F) * x) / np.maximum(F, 1e-12)
    E[np.cumsum(done) < 5] = np.inf
    return float(x[E.argmin()]) if np.isfinite(E).any() else None


class Rto(Fixed):
    """TCP's retransmission timeout: smoothed mean + 4 deviations, doubled after each miss (RFC 6298)."""

    def __init__(self, best: float) -> None:
        super().__init__(best)
        self.mean: float | None = None
        self.deviation = 0.0

    def observe(self, latency: float, done: bool) -> None:
        if not done:
            self.t = min(2 * self.t, CUTOFF)
            return
        if self.mean is None:
            self.mean, self.deviation = latency, latency / 2
        else:
            self.deviation += (abs(self.mean - latency) - self.deviation) / 4
            self.mean += (latency - self.mean) / 8
        self.t = min(self.mean + 4 * self.deviation, CUTOFF)


class Percentile(Fixed):
    """1.5 × the 95th percentile of the last 200 completions."""

    def __init__(self, best: float) -> None:
        super().__init__(best)
        self.kept: deque[float] = deque(maxlen=200)

    def observe(self, latency: float, done: bool) -> None:
        if done:
            self.kept.append(latency)
            if len(self.kept) >= 20 and len(self.kept) % 5 == 0:
                self.t = min(max(1.5 * float(np.quantile(self.kept, 0.95)), FLOOR), CUTOFF)


RIVALS = {"fixed": Fixed, "window 300": Window, "TCP's RTO": Rto, "1.5 × p95": Percentile}
