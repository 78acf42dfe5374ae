"""A hedge on one law or on two: the round that is repeated until a request completes."""

from __future__ import annotations

import numpy as np

from latfit.laws.base import Law
from latfit.numbers import Floats
from latfit.restart.failing import failing_hedge
from latfit.restart.plan import Plan
from latfit.restart.rounds import not_completed, overlapping
from latfit.restart.times import has_failures


def hedged(first: Law, second: Law, d: float, end: float, *, q: float = 1.0, cost: float = 0.0) -> Plan:
    """A second request, maybe to another agent, after d with probability q; both end at `end`, and all begins again.

    H(t) = 1 − S_i(t) (1 − q F̃_j(t−d)).
    """
    start = d + cost
    if start >= end:  # the second one is never made
        q = 0.0

    if has_failures(first) or has_failures(second):
        return Plan((failing_hedge(first, second, start, end, q, cost),), repeats=True)

    def figures(u: Floats) -> tuple[Floats, Floats]:
        alone, other = not_completed(first, u), not_completed(second, u - start)
        survival = np.asarray(alone * (1.0 - q + q * other))
        return survival, survival + np.where(u > start, q * alone * other, 0.0)

    made = 1.0 + q * float(not_completed(first, np.array(start)))
    copies = ((first, 0.0), (second, -start))
    return Plan((overlapping(copies, end, figures, submissions=made, pause=cost),), repeats=True)
