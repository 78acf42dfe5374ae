"""When a log says enough: what the uncertainty of the best timeout can still cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latfit.sample import LatencySample

FIRST = 30  # probes that have ended before the first look
GROWTH = 1.25  # each look has this many times the probes of the one before
RESAMPLES = 199


@dataclass(frozen=True)
class Precision:
    """The best timeout of a growing log, its interval, and how much longer jobs may take by the uncertainty of it.

    `regret` is the largest E_J(t)/E_J(timeout) − 1 over the interval's t; ∞ while it cannot be told: `why` says why.
    """

    probes: int
    timeout: float | None
    low: float | None
    high: float | None
    regret: float
    why: str = ""


def precision(path: str | Path, *, cutoff: float, cost: float = 0.0, seed: int = 0) -> Precision:
    """How precisely a log tells the best timeout now; only first attempts of jobs count.

    Sequential stopping looks at this at 1.25 times as many probes each time. Those still out are censored at their
    age, so that the quick do not count more than the slow because they end first.

    Parameters
    ----------
    path : str or Path
        The log that is being written.
    cutoff : float
        That of the probes, in seconds.
    cost : float
        Of a restart, in seconds.
    seed : int
        Of the resamples.

    Returns
    -------
    Precision
        What the log does not say yet is in `why`.

    """
    from latfit.decision import Options, decide
    from latfit.evidence import Observations
    from latfit.measure.before import first_attempts

    log = first_attempts(path)
    # no law is asked for: the one that is quickest to fit
    options = Options(cutoff=cutoff, cost=cost, laws=("exponential",), resamples=RESAMPLES, test=False, seed=seed)
    found = decide([Observations.of(log)], options)[0]
    n, best = len(log.frame), found.timeout
    if best is None or best.verdict == "withheld" or best.intervals is None:
        withheld = best is not None and best.withheld
        why = found.error or (f"withheld: {', '.join(best.withheld)}" if best and withheld else "too few completions")
        return Precision(n, None, None, None, math.inf, why)
    low, high = map(float, best.intervals.timeout)
    regret = regret_within(log.sample(cutoff=cutoff), best.timeout, (low, high), cost=cost)
    return Precision(n, best.timeout, low, high, regret)


def regret_within(
    sample: LatencySample, timeout: float | None, interval: tuple[float, float], *, cost: float = 0.0
) -> float:
    """The largest E_J(t)/E_J(timeout) − 1 for t in the interval, by the law of a sample; no timeout is its cutoff."""
    import numpy as np

    from latfit.laws import Empirical
    from latfit.restart import expected_duration

    cutoff = math.inf if sample.cutoff is None else sample.cutoff
    law = Empirical.of(sample)
    low, high = (min(cutoff, end) for end in interval)
    inside = law.jumps[(law.jumps > low) & (law.jumps < high)]
    # between two jumps E_J only rises: it is largest just before a jump, and at the end
    at = np.concatenate([[low, high], inside, np.nextafter(inside, 0)])
    least = float(expected_duration(law, cutoff if timeout is None else timeout, cost=cost))
    worst = float(np.max(expected_duration(law, at, cost=cost)))
    return max(0.0, worst / least - 1) if least > 0 and math.isfinite(worst) else math.inf
