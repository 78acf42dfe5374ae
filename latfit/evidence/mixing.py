"""Which column explains most of the latencies: a description of the strongest world that a column makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from latfit.evidence.worlds import NEGLIGIBLE, World, survey
from latfit.table import Column, ProbeTable

FEW_GROUPS = 30  # up to as many groups a report can show their decisions


@dataclass(frozen=True)
class Mixing:
    """The column that explains most of the latencies, and the share of their rank variance between its groups.

    `groups` is how many there are. `worst_cost` is by which share one timeout for all is slower than waiting in the
    world of this column (∞: some jobs never end, negative: faster), `harmed` what is slower, None where nothing is:
    both are filled in once there is a timeout.
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

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields; an infinite cost is null in JSON."""
        return {
            "column": self.column.name,
            "share": self.share,
            "groups": self.groups,
            "worst_cost": self.worst_cost,
            "harmed": self.harmed,
            "p_value": self.p_value,
        }


def mixing(probes: ProbeTable, worlds: Sequence[World] | None = None) -> Mixing | None:
    """The column with the largest share of the rank variance among those that explain latencies beyond chance."""
    candidates = survey(probes).worlds if worlds is None else worlds
    columns = [world for world in candidates if world.kind == "column" and world.shared >= NEGLIGIBLE]
    if not columns:
        return None
    strongest = max(columns, key=lambda world: world.shared)
    column = probes.columns[strongest.name]
    groups = int(np.unique(column.codes).size)
    return Mixing(column, strongest.shared, groups, float(ndtr(-strongest.z)))
