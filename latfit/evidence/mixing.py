"""Is the log one population? Which of its columns explains the latencies, and what one timeout for all costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import fdtrc

from latfit.evidence.observations import KEYS, Column, Observations, is_fixed
from latfit.numbers import Floats, Ints

SIGNIFICANT = 1e-3  # over all columns together
SHARE = 0.02  # a smaller share of the rank variance does not matter
FEWEST = 30  # probes below which only what was asked for is looked at: urls, names, hosts
SUSPECTED = 0.02  # and less evidence is enough, as neither a replay nor large groups can tell
LEAST = 8  # probes below which nothing is said
DRIFT_WINDOWS = 40  # the level of the log is taken out over windows of n/40 probes
NEARLY = 0.7  # of columns that explain nearly as much, the one with the fewest groups is the most useful
FEW_GROUPS = 30  # up to as many groups a report can show their decisions


@dataclass(frozen=True)
class Mixing:
    """The column that explains most of the latencies, and the share of their rank variance between its groups.

    `groups` is how many there are; `p_value` is corrected for the number of columns. `worst_cost` is what the pooled
    timeout costs the worst group over the best timeout of its own (∞: its jobs would never end), `harmed` the
    group that would be slower than by waiting, None where there is none: both are filled in once there is a timeout.
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
        return self.groups <= FEW_GROUPS

    @property
    def known_afterwards(self) -> bool:
        """Whether a probe's group shows only in its answer: a code, a size."""
        return is_fixed(self.column.name)

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields; an infinite cost is null in JSON."""
        return {"column": self.column.name, "share": self.share, "groups": self.groups, "worst_cost": self.worst_cost,
                "harmed": self.harmed, "p_value": self.p_value}  # fmt: skip


def mixing(seen: Observations) -> Mixing | None:
    """The column whose groups explain the rank variance of the latencies best, if it is more than chance.

    One-way analysis of variance on ranks (what did not complete ranks last), slow changes taken out where the log
    has times; the share is ε² = (SSB − (k−1) MSW)/SST, which is 0 on average where the groups are alike however
    many and small they are, and p is that of F times the number of columns. Of fewer than 30 probes only the columns
    that name what was asked for are looked at.
    """
    few = seen.n < FEWEST
    columns = [column for column in seen.columns.values() if not few or KEYS.match(column.name)]
    if seen.n < LEAST or not columns:
        return None
    some = seen.thinned()
    ranks = some.ranks if some.submitted is None else without_level(some.ranks)
    if not np.ptp(ranks):
        return None
    found = [(column, *explained(ranks, some.columns[column.name].codes)) for column in columns]
    tried, level = len(found), SUSPECTED if few else SIGNIFICANT
    good = [
        Mixing(column, share, int(np.count_nonzero(np.bincount(column.codes))), min(1.0, p * tried))
        for column, share, p in found
        if share > SHARE and p * tried < level
    ]
    most = max((one.share for one in good), default=0.0)
    return min((one for one in good if one.share >= NEARLY * most), key=lambda one: one.groups, default=None)


def without_level(ranks: Floats) -> Floats:
    """Ranks less their mean over the neighbours in time, each probe itself left out of its mean."""
    n = ranks.size
    half = max(10, n // DRIFT_WINDOWS) // 2
    if n < 4 * half:
        return ranks
    total = np.concatenate([[0.0], np.cumsum(ranks)])
    low, high = np.maximum(np.arange(n) - half, 0), np.minimum(np.arange(n) + half + 1, n)
    around = (total[high] - total[low] - ranks) / (high - low - 1)
    return np.asarray(ranks - around)


def explained(values: Floats, codes: Ints) -> tuple[float, float]:
    """The share ε² of the variance between groups, and the p-value of F."""
    counts = np.bincount(codes)
    present = counts > 0
    k, n = int(present.sum()), values.size
    if k < 2 or k >= n - 1:
        return 0.0, 1.0
    centred = values - values.mean()
    sums = np.bincount(codes, weights=centred)
    between = float((sums[present] ** 2 / counts[present]).sum())
    total = float(centred @ centred)
    within = max(total - between, 1e-300) / (n - k)
    share = max(0.0, (between - (k - 1) * within) / total)
    return share, float(fdtrc(k - 1, n - k, between / (k - 1) / within))
