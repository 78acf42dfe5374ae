"""What describes a log beside its worlds: how probes were given up, what follows what, which column explains most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtr

from latfit.evidence.worlds import NEGLIGIBLE, World, survey
from latfit.sample import LatencySample, Tally
from latfit.table import Column, ProbeTable

MIN_PROBES_TO_DESCRIBE = 40  # fewer say nothing of dependence, drift or replay
MIN_GIVEN_UP = 5  # at one time, for that to be a rule


@dataclass(frozen=True)
class Censoring:
    """What share was given up before the cutoff, whether most of it at one time, and whether that is a rule.

    `common_time` is where most were given up, None where there is no such time. `informative` says that probes
    given up there ended there: others completed later, so giving up was a decision of the system about the probe.
    `cut_at` is a largest value that so many rows share that it must be a timeout, in a log without outcomes.
    """

    share: float
    common_time: float | None = None
    informative: bool = False
    cut_at: float | None = None
    window: tuple[float, float] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields."""
        return {name: value for name, value in vars(self).items() if name != "window"}


def censoring(sample: LatencySample, *, has_outcomes: bool = True) -> Censoring:
    """How the probes that did not return were given up.

    The common time is the narrowest window [a, 1.02 a] that holds most of them; three completions after it make it a
    rule of the system.
    """
    values, counts, total = sample.censored.values, sample.censored.counts, sample.censored.total
    share = total / sample.n if sample.n else 0.0
    if not total:
        return Censoring(share, cut_at=None if has_outcomes or sample.lost else _shared_maximum(sample.completed))
    before = np.concatenate([[0], np.cumsum(counts)])
    ends = np.searchsorted(values, values * 1.02, side="right")
    held = before[ends] - before[:-1]
    start = int(held.argmax())
    inside = slice(start, ends[start])
    if held[start] < max(MIN_GIVEN_UP, total / 2):
        return Censoring(share)
    common = float(np.average(values[inside], weights=counts[inside] / counts[inside].sum()))  # 1e308s do not overflow
    window = float(values[start]), float(values[ends[start] - 1])
    later = int(sample.completed.counts[sample.completed.values > window[1]].sum())
    return Censoring(share, common, later >= 3, window=window)


def _shared_maximum(completed: Tally) -> float | None:
    """The largest latency if far more probes share it than any of those just below."""
    if completed.values.size < 10:
        return None
    last, below = int(completed.counts[-1]), completed.counts[-21:-1]
    enough = last >= max(MIN_GIVEN_UP, 0.005 * completed.total) and last > 8 * below.max()
    return float(completed.values[-1]) if enough else None


@dataclass(frozen=True)
class Dependence:
    """Rank correlation of successive probes, its significance, and how losses cluster.

    `lag1` is that of neighbours, `strongest` the largest over ten lags; `p_value` is Ljung and Box's over these lags.
    By the integrated `autocorrelation_time` n probes are worth about n/time independent ones.
    `lost_after_lost` is the share lost among those that follow a lost one, None where none was.
    """

    lag1: float
    strongest: float
    p_value: float
    autocorrelation_time: float
    lost_after_lost: float | None

    @property
    def found(self) -> bool:
        """Whether it is strong enough to matter and too strong for chance."""
        return self.strongest > 0.1 and self.p_value < 1e-3

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        return dict(vars(self))


def dependence(probes: ProbeTable) -> Dependence | None:
    """The dependence between probes in the order of their submission; None without times or with few probes.

    The autocorrelation time is 1 + 2 Σ r_k, summed until r_k falls into the noise. Of a longer log the last 10⁶ probes
    are looked at.
    """
    probes = probes.take(slice(-1_000_000, None))
    n, ranks, lost = probes.n, probes.ranks, probes.lost
    if probes.submitted is None or n < MIN_PROBES_TO_DESCRIBE or not np.ptp(ranks):
        return None
    spectrum = np.fft.rfft(ranks - ranks.mean(), 2 * n)
    r = np.fft.irfft(spectrum * spectrum.conj())[:n]
    r = r / r[0]
    lags = np.arange(1, 1 + min(10, n // 5))
    Q = n * (n + 2) * float((r[lags] ** 2 / (n - lags)).sum())  # Ljung and Box 1978
    noise = np.flatnonzero(r < 2 / np.sqrt(n))
    time = max(1.0, 1 + 2 * float(r[1 : noise[0] if noise.size else n].sum()))
    follows = lost[1:][lost[:-1]]
    after = float(follows.mean()) if follows.size else None
    return Dependence(float(r[1]), float(r[lags].max()), float(chdtrc(lags.size, Q)), time, after)


@dataclass(frozen=True)
class Mixing:
    """The column that explains most of the latencies, and the share of their rank variance between its groups.

    `groups` is how many there are. `worst_cost` is by which share one timeout for all is slower than waiting in the
    world of this column (∞: some jobs never end, negative: faster), `harmed` what is slower, None where nothing is.
    """

    column: Column
    share: float
    groups: int
    p_value: float
    worst_cost: float | None = None
    harmed: str | None = None

    @property
    def few(self) -> bool:
        """Whether the groups are few enough to be shown each with a decision of its own."""
        return self.groups <= 30

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields; an infinite cost is null in JSON."""
        return {**vars(self), "column": self.column.name}


def mixing(
    probes: ProbeTable, worlds: Sequence[World] | None = None, unlimited: Mapping[str, float | None] | None = None
) -> Mixing | None:
    """The column with the largest share of the rank variance among those that explain latencies beyond chance.

    `unlimited` is what one timeout, repeated for ever, takes in each world, as a share of waiting.
    """
    candidates = survey(probes).worlds if worlds is None else worlds
    columns = [world for world in candidates if world.kind == "column" and world.shared >= NEGLIGIBLE]
    if not columns:
        return None
    strongest = max(columns, key=lambda world: world.shared)
    column, ratio = probes.columns[strongest.name], (unlimited or {}).get(strongest.name)
    costs = (None, None) if ratio is None else (ratio - 1, f"some {column.name}" if ratio > 1 else None)
    return Mixing(column, strongest.shared, int(np.unique(column.codes).size), float(ndtr(-strongest.z)), *costs)
