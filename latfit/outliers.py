"""Stage 3: the outlier ratio ρ, its interval, and how it depends on the cutoff.

An outlier is a probe that never returns. All that a log shows is who was still out at a cutoff T,
so ρ is estimated by the probability of being still out at T; a visible failure is censored when it is seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from latfit.curve import kaplan_meier
from latfit.errors import SampleError, counted, none_of
from latfit.logs.frames import as_sample
from latfit.numbers import is_number
from latfit.sample import LatencySample


@dataclass(frozen=True)
class OutlierRatio:
    """The share still out at `cutoff`, with its interval.

    `count` is how many were seen to be out at the cutoff or are known to be lost; `method` is
    `wilson` where nothing was censored before the cutoff and `kaplan-meier` otherwise.

    Examples
    --------
    >>> import latfit
    >>> ratio = latfit.outlier_ratio(latfit.example_log(), cutoff=10_000)
    >>> ratio.count, ratio.n, round(ratio.estimate, 4), ratio.method
    (53, 2137, 0.0248, 'wilson')
    """

    estimate: float
    low: float
    high: float
    cutoff: float
    count: int
    n: int
    method: str
    level: float = 0.95

    def to_dict(self) -> dict[str, float]:
        return {"cutoff": self.cutoff, "ratio": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class CutoffChoice:
    """A cutoff, and why; `assumed`: a latency of the log, as nobody said when to give up, and no probe shows it."""

    cutoff: float
    reason: str
    assumed: bool = False


def default_cutoff(sample: Any) -> CutoffChoice:
    """The cutoff of a log for which none was given.

    1. The sample's own cutoff, if it was cut.
    2. The log's common censoring time: the most frequent one, if it holds at least half of the
       censored probes, and no return lies beyond it.
    3. Nothing censored: the largest latency; whoever is out then is lost.
    4. The largest latency at which at least ten probes (a tenth of fewer than 100) were still at risk, so that the
       estimate does not rest on a handful.

    Parameters
    ----------
    sample : a `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.

    Returns
    -------
    CutoffChoice : `.cutoff` in seconds, and `.reason` in words.

    Examples
    --------
    >>> import latfit
    >>> latfit.default_cutoff(latfit.example_log().sample()).cutoff
    10000.0
    """
    sample = as_sample(sample)
    if sample.cutoff is not None:
        return CutoffChoice(sample.cutoff, "the cutoff of the sample")
    km = kaplan_meier(sample)
    if not km.times.size:
        raise SampleError(f"{none_of(sample.n, 'probe')} returned: nothing can be said of a cutoff or a latency")
    last, censored = float(km.times[-1]), sample.censored
    if censored.total:
        common = int(censored.counts.argmax())
        value, held = float(censored.values[common]), int(censored.counts[common])
        if 2 * held >= censored.total and value >= last and value > 0:
            return CutoffChoice(value, f"{held} of the {censored.total} censored probes were cut off at it")
        needed = min(10, -(-sample.n // 10))
        enough = km.times[(km.at_risk >= needed) & (km.times > 0)]
        if enough.size:
            reason = f"the largest latency with {counted(needed, 'probe')} still out"
            return CutoffChoice(float(enough[-1]), reason, assumed=True)
    return CutoffChoice(last or sample.resolution or 1.0, "the largest latency", assumed=True)


def outlier_ratio(sample: Any, *, cutoff: float | None = None, level: float = 0.95) -> OutlierRatio:
    """The share of probes still out at the cutoff T, with a confidence interval.

    Nothing censored before T: k/n with Wilson's interval. Otherwise 1 − F_KM(T), the Kaplan–Meier
    estimate of being still out, with Greenwood's variance on the log-log scale. A visible failure ends an attempt
    of which nobody knows whether it would have come back: it counts as censored then, as in a joint fit.

    Parameters
    ----------
    sample : a `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    cutoff : when a probe that is still out counts as an outlier (default: `default_cutoff`).
    level : the confidence of the interval.

    Returns
    -------
    OutlierRatio : `.estimate`, `.low`, `.high`, and how it was made.

    Examples
    --------
    >>> import latfit
    >>> ratio = latfit.outlier_ratio(latfit.example_log(), cutoff=10_000)
    >>> round(ratio.estimate, 4), round(ratio.low, 4), round(ratio.high, 4)
    (0.0248, 0.019, 0.0323)
    """
    if not (is_number(level) and 0 < level < 1):
        raise SampleError(f"the confidence level is {level!r}; it must lie between 0 and 1")
    sample = as_sample(sample)  # or a log, or an array of latencies in seconds
    if not sample.n:
        raise SampleError("the sample is empty: there is no outlier ratio")
    cut = sample.cut(default_cutoff(sample).cutoff if cutoff is None else cutoff)
    assert cut.cutoff is not None
    z = NormalDist().inv_cdf((1 + level) / 2)
    complete = not cut.censored_early
    if cut.failed.total and complete and not cut.out_at_cutoff:
        estimate, low, high = _wilson(0, max(1, cut.completed.total), z)
    elif complete and not cut.failed.total:
        estimate, low, high = _wilson(cut.out_at_cutoff, cut.n, z)
    else:
        complete, (estimate, low, high) = False, _greenwood(cut.failures_censored(), z)
    method = "wilson" if complete else "kaplan-meier"
    return OutlierRatio(estimate, low, high, cut.cutoff, cut.out_at_cutoff, cut.n, method, level)


def _wilson(k: int, n: int, z: float) -> tuple[float, float, float]:
    """k/n and Wilson's score interval (Wilson 1927)."""
    p = k / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return p, max(0.0, centre - half) if k else 0.0, min(1.0, centre + half) if k < n else 1.0


def _greenwood(cut: LatencySample, z: float) -> tuple[float, float, float]:
    """S(T) = Π (1 − d/n) and the interval S^exp(±z·s), s² = Σ d/(n(n−d)) / (log S)² (Kalbfleisch & Prentice).

    Where the interval degenerates it is Wilson's with the number at risk last: at S = 1 because
    nothing returned, at S = 0 because the last at risk did.
    """
    km = kaplan_meier(cut)
    S = float(km.still_out[-1]) if km.times.size else 1.0
    if S in (0.0, 1.0):
        at_risk = int(km.at_risk[-1]) if km.times.size else max(1, cut.out_at_cutoff)
        return S, *_wilson(round(S * at_risk), at_risk, z)[1:]
    s = math.sqrt(float(km.greenwood[-1])) / abs(math.log(S))
    return S, S ** math.exp(z * s), S ** math.exp(-z * s)


def ratio_by_cutoff(sample: Any, *, cutoff: float | None = None, level: float = 0.95) -> list[OutlierRatio]:
    """The ratio at cutoffs from the median return up to T, about equally spaced in the logarithm.

    Parameters
    ----------
    sample : a `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    cutoff : T, the last of the cutoffs (default: `default_cutoff`).
    level : the confidence of the interval.

    Returns
    -------
    list of OutlierRatio, in the order of their cutoffs; a ratio that still falls at the end counts some that are
    only late.

    Examples
    --------
    >>> import latfit
    >>> rows = latfit.ratio_by_cutoff(latfit.example_log().sample())
    >>> len(rows), rows[0].cutoff < rows[-1].cutoff, rows[-1].count
    (13, True, 53)
    """
    sample = as_sample(sample)
    last = default_cutoff(sample).cutoff if cutoff is None else cutoff
    km = kaplan_meier(sample)
    reached = np.flatnonzero(km.still_out <= 0.5)
    first = float(km.times[reached[0]]) if reached.size else last / 100
    first = min(max(first, last * 1e-4), last / 4)
    round_cutoffs = {float(f"{t:.3g}") for t in np.geomspace(first, last, 12)[:-1]}
    cutoffs = sorted(round_cutoffs | {float(f"{last / 2:.3g}"), last})
    return [outlier_ratio(sample, cutoff=t, level=level) for t in cutoffs if t <= last]


def cutoff_verdict(sample: LatencySample, ratio: OutlierRatio) -> str:
    """`still falling` if half the cutoff's ratio is above the interval and not all who are out are lost."""
    if sample.cut(ratio.cutoff).out_at_cutoff == sample.lost:
        return "stable"
    half = outlier_ratio(sample, cutoff=ratio.cutoff / 2, level=ratio.level)
    return "still falling" if half.estimate > ratio.high else "stable"
