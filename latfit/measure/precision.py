"""What a log of probes says already: the timeout to run jobs by, and how precisely it tells it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latfit.errors import ProbeError
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.decision import Decision
    from latfit.logs import ProbeLog
    from latfit.sample import LatencySample


@dataclass(frozen=True)
class Precision:
    """The best timeout of a log, and the largest E_J(t)/E_J(timeout) − 1 in its interval; ∞: unknown, and `why`."""

    probes: int
    timeout: float | None
    low: float | None
    high: float | None
    regret: float
    why: str = ""


def precision(path: str | Path, *, cutoff: float) -> Precision:
    """How precisely the first attempts tell the best timeout; those still out are censored at their age."""
    log, decision = _decision(path, cutoff=cutoff)
    n, best = log.table.n, decision.timeout
    if best is None or best.verdict == "withheld" or best.intervals is None:
        withheld = f"withheld: {', '.join(best.withheld)}" if best and best.withheld else "too few completions"
        return Precision(n, None, None, None, math.inf, decision.error or withheld)
    low, high = map(float, best.intervals.timeout)
    return Precision(n, best.timeout, low, high, regret_within(log.sample(cutoff=cutoff), best.timeout, (low, high)))


def regret_within(sample: LatencySample, timeout: float | None, interval: tuple[float, float]) -> float:
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
    least = float(expected_duration(law, cutoff if timeout is None else timeout))
    worst = float(np.max(expected_duration(law, at)))
    return max(0.0, worst / least - 1) if least > 0 and math.isfinite(worst) else math.inf


def timeouts_for_jobs(path: str, timeout: float | None = None) -> tuple[tuple[float, ...], float]:
    """After what to cancel jobs (default: the schedule of a log), and the share of attempts that the first lets end."""
    from latfit.laws import Empirical

    decision = _decision(path, resamples=0)[1].require()
    assert decision.timeout is not None
    assert decision.sample is not None
    timeouts = (timeout,) if timeout else decision.timeout.retry.timeouts if decision.timeout.retry else ()
    if not timeouts:
        raise ProbeError(f"{path}: the answer of this log is to wait (`latfit analyze`); give a timeout with --timeout")
    share = float(Empirical.of(decision.sample).cdf(timeouts[0]))
    if share <= 0:
        within = f"nothing completed within {seconds(timeouts[0])}"
        raise ProbeError(f"{path}: {within}: jobs with this timeout would never end")
    return timeouts, share


def _decision(path: str | Path, **options: Any) -> tuple[ProbeLog, Decision]:
    """A log without the later attempts of its jobs (made only because a first one was slow), and its decision."""
    from latfit.decision import Options, decide
    from latfit.evidence import probes_of
    from latfit.logs import ProbeLog, read_log

    log = read_log(path)
    attempt = log.table.columns.get("attempt")
    if attempt is not None:
        log = ProbeLog(log.table.take(attempt.cells().to_numpy() == 1))
    return log, decide([probes_of(log)], Options(laws=(), test=False, **options))[0]
