"""Does a slow probe follow a slow one? Rank correlations at several lags, and clustered losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from latfit.numbers import Floats
from latfit.table import ProbeTable

LAGS = 10
FEWEST = 40  # probes below which nothing is said
LATEST = 1_000_000  # probes of a longer log that are looked at
STRONG, SIGNIFICANT = 0.1, 1e-3


@dataclass(frozen=True)
class Dependence:
    """Rank correlation of successive probes, its significance, and how losses cluster.

    `lag1` is that of neighbours, `strongest` the largest over ten lags; `p_value` is Ljung and Box's over these lags.
    `time` is the integrated autocorrelation time: n probes are worth about n/time independent ones.
    `lost_after_lost` is the share lost among those that follow a lost one, None where none was.
    """

    lag1: float
    strongest: float
    p_value: float
    time: float
    lost_after_lost: float | None

    @property
    def found(self) -> bool:
        """Whether it is strong enough to matter and too strong for chance."""
        return self.strongest > STRONG and self.p_value < SIGNIFICANT

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        return {"lag1": self.lag1, "p_value": self.p_value, "strongest": self.strongest,
                "autocorrelation_time": self.time, "lost_after_lost": self.lost_after_lost}  # fmt: skip


def dependence(seen: ProbeTable) -> Dependence | None:
    """The dependence between probes in the order of their submission; None without times or with few probes."""
    if seen.submitted is None or seen.n < FEWEST:
        return None
    if seen.n > LATEST:
        seen = seen.take(np.arange(seen.n - LATEST, seen.n))
    ranks = seen.ranks
    if not np.ptp(ranks):
        return None
    lags = min(LAGS, seen.n // 5)
    r = autocorrelations(ranks, lags)
    Q = seen.n * (seen.n + 2) * float((r**2 / (seen.n - np.arange(1, lags + 1))).sum())  # Ljung and Box 1978
    p = float(chdtrc(lags, Q))
    lost = seen.lost
    follows = lost[1:][lost[:-1]]
    after = float(follows.mean()) if follows.size else None
    return Dependence(float(r[0]), float(r.max()), p, autocorrelation_time(ranks), after)


def autocorrelations(x: Floats, lags: int) -> Floats:
    """The autocorrelations at lags 1…lags."""
    centred = x - x.mean()
    total = float(centred @ centred)
    return np.array([float(centred[k:] @ centred[:-k]) / total for k in range(1, lags + 1)])


def autocorrelation_time(x: Floats) -> float:
    """1 + 2 Σ r_k, summed until r_k falls into the noise; at least 1."""
    size = x.size
    centred = x - x.mean()
    spectrum = np.fft.rfft(centred, 2 * size)
    r = np.fft.irfft(spectrum * spectrum.conj())[:size]
    r = r / r[0]
    noise = np.flatnonzero(r < 2 / np.sqrt(size))
    return max(1.0, 1 + 2 * float(r[1 : noise[0] if noise.size else size].sum()))
