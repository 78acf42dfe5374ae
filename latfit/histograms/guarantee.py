"""From a histogram to a decision: the timeout with the best guarantee, and how much better another could be."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from latfit.buckets import Histogram
from latfit.curve import MIN_COMPLETIONS
from latfit.decision import Warned
from latfit.histograms.bounds import Bounds, bounds, worst_regret
from latfit.histograms.likely import EVEN, Likely, histogram_law, likely
from latfit.restart import Optimum, evaluate_timeout

TOGETHER = 0.2  # slow latencies of one interval correlated by more than this: attempts are not independent


@dataclass(frozen=True)
class Guarantee:
    """The timeout whose E_J has the least upper bound, and what is known of it.

    `optimum` has what the timeout brings if latencies are spread evenly inside their buckets, or as evenly as a known
    sum allows; None where too few completed. Whatever happened inside the buckets, `guaranteed` ≥ E_J at the timeout
    and `least` ≤ E_J of any timeout; `worst_regret` is the largest E_J(timeout)/E_J(best) − 1 that the counts allow,
    ∞ where they do not limit it.

    Examples
    --------
    >>> import latfit
    >>> found = latfit.guaranteed_timeout(latfit.Histogram.of([0.1, 0.25, 0.5, 1.0], [10, 40, 30, 10], n_inf=6, lost=4))
    >>> found.optimum.timeout, found.least <= found.guaranteed
    (0.5, True)
    """

    histogram: Histogram
    bounds: Bounds
    optimum: Optimum | None
    guaranteed: float
    worst_regret: float
    likely: Likely | None
    warnings: tuple[Warned, ...]

    @property
    def withheld(self) -> tuple[str, ...]:
        """Why the timeout is not a decision: series differ, or intervals of the log show slow ones together."""
        together = self.histogram.together
        if self.optimum is None or self.optimum.timeout is None:
            return ()
        dependent = together is not None and together > TOGETHER
        return ("mixed",) * (self.harmed is not None) + ("dependent",) * dependent

    @property
    def harmed(self) -> str | None:
        """The name of a part of the histogram that the timeout makes slower than waiting, for certain."""
        if self.optimum is None or self.optimum.timeout is None:
            return None
        t = self.optimum.timeout
        return next((name for name, part in self.histogram.parts if _is_harmed(part, t)), None)

    @property
    def least(self) -> float:
        """No timeout has a smaller E_J."""
        return self.bounds.least

    def to_dict(self) -> dict[str, Any]:
        """The fields of an Optimum, and the bounds beside them."""
        empty = {field.name: None for field in fields(Optimum)}
        known = self.bounds
        columns = (known.edges, known.counts, known.low, known.high)
        found = self.optimum.to_dict() if self.optimum is not None else empty
        return {
            **(empty | {"verdict": "withheld"} if self.withheld else found),
            "withheld": list(self.withheld),
            "if_independent": found if self.withheld else None,
            "guaranteed": self.guaranteed,
            "least": self.least,
            "worst_regret": self.worst_regret,
            "likely": None if self.likely is None else self.likely.to_dict(),
            "buckets": [
                {"le": float(e), "count": int(n), "low": float(low), "high": float(high)}
                for e, n, low, high in zip(*columns, strict=True)
            ],
            "counts": {
                "in_buckets": int(known.counts.sum()),
                "beyond": self.histogram.n_inf,
                "failed": self.histogram.failed,
                "lost": self.histogram.lost,
            },
            "sum": self.histogram.latency_sum,
        }


def guaranteed_timeout(histogram: Histogram, *, cost: float = 0.0) -> Guarantee:
    """The edge with the least upper bound on E_J when a restart costs `cost` seconds.

    Parameters: `histogram`, and `cost` in seconds. Returns a `Guarantee`. At least 5 must have completed by the
    timeout. The bounds are of these attempts; how far another day may differ, counts alone do not tell.

    >>> h = Histogram.of([0.05, 0.1, 0.25, 0.5, 1], [0, 10, 40, 30, 10], n_inf=6, lost=4)
    >>> found = guaranteed_timeout(h)
    >>> found.optimum.timeout, round(found.guaranteed, 6), round(found.least, 6), round(found.worst_regret, 3)
    (0.5, 0.45, 0.19, 0.941)
    """
    known = bounds(histogram, cost=cost)
    enough = np.cumsum(histogram.counts) >= MIN_COMPLETIONS
    high = np.where(enough, known.high, np.inf)
    k = int(np.argmin(high))
    if not np.isfinite(high[k]):
        message = f"fewer than {MIN_COMPLETIONS} completions lie in buckets with an upper end: no timeout can be told"
        few = Warned("few-completions", message)
        return Guarantee(histogram, known, None, np.inf, np.inf, None, (few,))
    if known.waiting <= high[k]:
        optimum = _never(histogram, cost, known.waiting)
        regret = max(known.waiting / known.least - 1, 0.0) if known.least > 0 else np.inf
        return Guarantee(histogram, known, optimum, known.waiting, regret, None, _warnings(histogram, regret, None))
    timeout, regret = float(known.edges[k]), worst_regret(histogram, k, cost=cost)
    optimum = evaluate_timeout(histogram_law(histogram), timeout, cost=cost)
    E = float(
        np.clip(optimum.expected_duration or np.inf, known.low[k], known.high[k])
    )  # a known sum may forbid "even"
    optimum = replace(optimum, law=EVEN, expected_duration=E, objective={"name": "mean", "value": E})
    strikes = int(np.cumsum(histogram.counts)[k]) < histogram.n
    optimum = replace(optimum, verdict="finite") if strikes else replace(optimum, verdict="never", timeout=None)
    fitted = likely(histogram, timeout, cost=cost)
    return Guarantee(histogram, known, optimum, float(high[k]), regret, fitted, _warnings(histogram, regret, fitted))


def _is_harmed(part: Histogram, t: float) -> bool:
    """Whether a histogram alone shows that what it counts takes longer under a timeout than by waiting."""
    k = int(np.searchsorted(part.edges[1:], t, side="right")) - 1
    if part.returned < MIN_COMPLETIONS or k < 0 or k == part.counts.size - 1:
        return False
    known = bounds(part)
    return bool(known.low[k] > known.high[-1])


def _never(histogram: Histogram, cost: float, waiting: float) -> Optimum:
    """No timeout, whose E_J is known: all returned, and the sum of their latencies is known."""
    found = evaluate_timeout(histogram_law(histogram), np.inf, cost=cost)
    return replace(
        found, verdict="never", timeout=None, expected_duration=waiting, submissions=1.0, speed_up=1.0, rho=0.0,
        std_duration=None, quantiles=dict.fromkeys(found.quantiles), law=EVEN,
        objective={"name": "mean", "value": waiting},
    )  # fmt: skip


def _warnings(histogram: Histogram, regret: float, fitted: Likely | None) -> tuple[Warned, ...]:
    """What the reader of a guarantee should know."""
    found = []
    if np.isinf(regret):
        found.append(Warned(
            "not-identified",
            f"the first bucket begins at 0 s, ends at {histogram.edges[1]:g} s, and restarts are free, so that a much "
            "shorter timeout might be best: give --cost, the seconds that a restart costs",
        ))  # fmt: skip
    if not histogram.lost and not histogram.failed:
        found.append(Warned(
            "lost-unknown",
            "a histogram holds only what returned: give the number that never did with --lost, or the bounds are "
            "those of a system that loses nothing",
        ))  # fmt: skip
    if fitted is not None and fitted.law == EVEN:
        why = "can be fitted to so few buckets"
        if fitted.distance is not None:
            why = f"fits the buckets: the best misses a count by {fitted.distance:.0%}"
        message = f"no law {why}; the likely regret takes latencies to be spread evenly inside each bucket"
        found.append(Warned("no-law", message))
    together = histogram.together
    if together is not None and together > TOGETHER:
        found.append(Warned(
            "dependence",
            "slow latencies come together: within an interval of the log, being among the slowest 5 % is correlated "
            f"by {together:.2f}, so that a resubmission meets what the first attempt met; E_J takes attempts to be "
            "independent",
        ))  # fmt: skip
    else:
        found.append(Warned(
            "untested",
            "a histogram keeps no order: whether slow attempts follow each other, so that a resubmission is slow too, "
            "cannot be checked; E_J takes attempts to be independent",
        ))  # fmt: skip
    return tuple(found)
