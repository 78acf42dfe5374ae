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

MAX_CORRELATION = 0.2  # of slow latencies in one interval; beyond it attempts are not independent


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
        if self.optimum is None or self.optimum.timeout is None:
            return ()
        together = self.histogram.together
        dependent = together is not None and together > MAX_CORRELATION
        return ("mixed",) * (self.harmed is not None) + ("dependent",) * dependent

    @property
    def harmed(self) -> str | None:
        """The name of a part of the histogram that the timeout makes slower than waiting, for certain."""
        if self.optimum is None or self.optimum.timeout is None:
            return None
        t = self.optimum.timeout
        for name, part in self.histogram.parts:
            k = int(np.searchsorted(part.edges[1:], t, side="right")) - 1
            if part.returned >= MIN_COMPLETIONS and 0 <= k < part.counts.size - 1:
                known = bounds(part)
                if known.low[k] > known.high[-1]:
                    return name
        return None

    @property
    def least(self) -> float:
        """No timeout has a smaller E_J."""
        return self.bounds.least

    def to_dict(self) -> dict[str, Any]:
        empty = {field.name: None for field in fields(Optimum)}
        known = self.bounds
        columns = [values.tolist() for values in (known.edges, known.counts, known.low, known.high)]
        optimum = self.optimum.to_dict() if self.optimum is not None else empty
        return {
            **(empty | {"verdict": "withheld"} if self.withheld else optimum),
            "withheld": list(self.withheld),
            "if_independent": optimum if self.withheld else None,
            "guaranteed": self.guaranteed,
            "least": self.least,
            "worst_regret": self.worst_regret,
            "likely": None if self.likely is None else self.likely.to_dict(),
            "buckets": [
                {"le": le, "count": count, "low": low, "high": high}
                for le, count, low, high in zip(*columns, strict=True)
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
    high = np.where(np.cumsum(histogram.counts) >= MIN_COMPLETIONS, known.high, np.inf)
    k = int(np.argmin(high))
    if not np.isfinite(high[k]):
        message = f"fewer than {MIN_COMPLETIONS} completions lie in buckets with an upper end: no timeout can be told"
        return Guarantee(histogram, known, None, np.inf, np.inf, None, (Warned("few-completions", message),))
    if known.waiting <= high[k]:  # all returned, and the sum of their latencies is known
        E, fitted, guaranteed = known.waiting, None, known.waiting
        regret = max(E / known.least - 1, 0.0) if known.least > 0 else np.inf
        optimum = evaluate_timeout(histogram_law(histogram), np.inf, cost=cost)
        unknown = dict.fromkeys(optimum.quantiles)
        optimum = replace(optimum, submissions=1.0, speed_up=1.0, rho=0.0, std_duration=None, quantiles=unknown)
    else:
        timeout, guaranteed, regret = float(known.edges[k]), float(high[k]), worst_regret(histogram, k, cost=cost)
        fitted = likely(histogram, timeout, cost=cost)
        optimum = evaluate_timeout(histogram_law(histogram), timeout, cost=cost)
        E = float(np.clip(optimum.expected_duration or np.inf, known.low[k], high[k]))  # a known sum may forbid "even"
    strikes = known.waiting > high[k] and int(histogram.counts[: k + 1].sum()) < histogram.n
    optimum = replace(optimum, law=EVEN, expected_duration=E, objective={"name": "mean", "value": E}, verdict="finite")
    optimum = optimum if strikes else replace(optimum, verdict="never", timeout=None)
    return Guarantee(histogram, known, optimum, guaranteed, regret, fitted, _warnings(histogram, regret, fitted))


def _warnings(histogram: Histogram, regret: float, fitted: Likely | None) -> tuple[Warned, ...]:
    warnings = []
    if np.isinf(regret):
        message = (
            f"the first bucket begins at 0 s, ends at {histogram.edges[1]:g} s, and restarts are free, so that a much "
            "shorter timeout might be best: give --cost, the seconds that a restart costs"
        )
        warnings.append(Warned("not-identified", message))
    if not histogram.lost and not histogram.failed:
        message = (
            "a histogram holds only what returned: give the number that never did with --lost, or the bounds are "
            "those of a system that loses nothing"
        )
        warnings.append(Warned("lost-unknown", message))
    if fitted is not None and fitted.law == EVEN:
        why = "can be fitted to so few buckets"
        if fitted.distance is not None:
            why = f"fits the buckets: the best misses a count by {fitted.distance:.0%}"
        message = f"no law {why}; the likely regret takes latencies to be spread evenly inside each bucket"
        warnings.append(Warned("no-law", message))
    if histogram.together is not None and histogram.together > MAX_CORRELATION:
        message = (
            "slow latencies come together: within an interval of the log, being among the slowest 5 % is correlated "
            f"by {histogram.together:.2f}, so that a resubmission meets what the first attempt met; E_J takes attempts "
            "to be independent"
        )
        warnings.append(Warned("dependence", message))
    else:
        message = (
            "a histogram keeps no order: whether slow attempts follow each other, so that a resubmission is slow too, "
            "cannot be checked; E_J takes attempts to be independent"
        )
        warnings.append(Warned("untested", message))
    return tuple(warnings)
