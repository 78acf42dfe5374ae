"""Do slow times last? Where probes are sparser than a timeout, no replay shows what a resubmission soon after meets.

A job that is cancelled in a slow hour meets the slow hour again, however often it is resubmitted; the next probe of a
sparse log may be after it. What such a log does show is whether the probes that a timeout would cancel come together.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import hypergeom

from latfit.evidence.observations import Observations
from latfit.logs.table import CENSORED, COMPLETED

FEWEST = 40  # probes below which nothing is said
LATEST = 50_000  # probes of a longer log that are looked at
LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99)  # of the latencies: longer times that are looked at as well
BEYOND_CHANCE = 1e-4  # the chance of so few runs among independent probes
FAR = 3.0  # standard deviations below which it need not be computed


@dataclass(frozen=True)
class SlowTimes:
    """Probes slower than `beyond` come together, and a timeout at or below it would cancel them.

    They are a `share` of all, and `lasts` is how long after that time the next one that is not slower was submitted, on
    average; `by_chance` what that would be of independent probes.
    """

    beyond: float
    share: float
    lasts: float
    by_chance: float

    @property
    def held_up(self) -> float:
        """Seconds a job by which slow times delay it, at most, beyond what the formula counts."""
        return self.share * max(0.0, self.lasts - self.by_chance)

    def to_dict(self) -> dict[str, Any]:
        """The fields, and the delay."""
        return {**asdict(self), "held_up": self.held_up}


def slow_times(seen: Observations, timeout: float, *, dense: bool = False) -> SlowTimes | None:
    """The slow times that delay jobs under a timeout most; None where probes come as independent ones would.

    Runs of probes slower than the timeout, or than some longer times, are counted, as Wald and Wolfowitz (1940)
    do. `dense` also tells it of logs whose probes are denser than the timeout, which a replay shows better.

    >>> import latfit
    >>> slow_times(Observations.of(latfit.example_log()), 358.0) is None  # its slow probes come as they like
    True
    """
    if seen.submitted is None or not np.isfinite(seen.submitted).any():
        return None
    part = seen if seen.n <= LATEST else seen.take(np.arange(seen.n - LATEST, seen.n))
    assert part.submitted is not None
    gaps = np.diff(part.submitted[np.isfinite(part.submitted)])
    if gaps.size < FEWEST or not (dense or np.median(gaps) > timeout):
        return None
    done = part.latency[part.status == COMPLETED]
    longer = np.quantile(done, LEVELS, method="inverted_cdf") if done.size else np.empty(0)
    found = [_beyond(part, t) for t in np.unique([timeout, *longer[longer > timeout]]).tolist()]
    return max((one for one in found if one and one.held_up), key=lambda one: one.held_up, default=None)


def _beyond(seen: Observations, t: float) -> SlowTimes | None:
    """The times in which probes are slower than t; those given up before it do not tell."""
    assert seen.submitted is not None
    rows = np.isfinite(seen.submitted) & ~((seen.status == CENSORED) & (seen.latency < t))
    when, slower = seen.submitted[rows], ~((seen.status == COMPLETED) & (seen.latency <= t))[rows]
    n, m = slower.size, int(np.count_nonzero(slower))
    if n < FEWEST or not 0 < m < n:
        return None
    runs = int(slower[0]) + int(np.count_nonzero(np.diff(slower.astype(np.int8)) > 0))
    mean = m * (n - m + 1) / n  # of runs of m among n, which are hypergeometric
    far = mean - runs > FAR * np.sqrt(mean * (m - 1) * (n - m) / (n * max(n - 1, 1)))
    if not far or hypergeom.cdf(runs, n, n - m + 1, m) > BEYOND_CHANCE:
        return None
    back = np.minimum.accumulate(np.where(slower, when[-1], when)[::-1])[::-1]
    lasts = float(np.maximum(back - when - t, 0)[slower].mean())
    rest = float(when[-1] - when[0]) / (n - 1) * (n + 1) / (n - m + 1)  # until the next one that is not slower
    return SlowTimes(t, m / n, lasts, rest * float(np.exp(-t / rest)) if rest > 0 else 0.0)
