"""What the reader of an analysis should be warned of, because the theory or the data do not carry it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import kolmogorov

from latfit.decision import FittedLaw, Recommendation
from latfit.fitting import JointRatio
from latfit.logs import ProbeLog
from latfit.logs.columns import NO_OUTCOMES
from latfit.outliers import OutlierRatio, cutoff_verdict
from latfit.restart import Warned
from latfit.sample import LatencySample

QUEUES = ("swf", "gwf", "sacct", "htcondor")
DRIFT = 0.1  # a smaller distance between the halves does not matter in practice
DEPENDENCE = 0.1
SIGNIFICANT = 0.01
REJECTED = 0.05
FLAT = 4.0  # a 5 % window whose ends are this far apart: nearly any timeout will do
SMALL_GAIN = 1.05
HEAVY_LOAD = 3.0
EDGE = 0.98


def about_log(log: ProbeLog) -> list[Warned]:
    """Refused rows, a queue, drift and dependence: the theory assumes independent, identical attempts."""
    found = []
    if log.facts.refused.count:
        rows = log.facts.refused
        reasons = ", ".join(f"{count} × {reason}" for reason, count in rows.reasons.items())
        told = f"{rows.count} rows of the log were refused ({reasons}), the first at line {rows.earliest.line}"
        if {"unknown status", "no latency", "no status"} & set(rows.reasons):
            told += "; if they never came back, the outlier ratio is too low: say so with --status lost=WORD"
        found.append(Warned("refused", told))
    if NO_OUTCOMES in log.facts.notes:
        told = "the log has no column of outcomes: probes that were lost or given up do not show in it"
        found.append(Warned("no-outcomes", told))
    if log.facts.format in QUEUES:
        found.append(
            Warned(
                "queue",
                "these are waits in a queue: resubmitting loses the place in it, which the theory does not count",
            )
        )
    return found + _in_time(log)


def _in_time(log: ProbeLog) -> list[Warned]:
    """Drift (two-sample KS of the halves of the log) and dependence (lag-1 rank correlation)."""
    frame = log.frame.loc[log.frame["status"] == "completed", ["submitted", "latency"]].dropna()
    if len(frame) < 40 or frame["submitted"].nunique() < 10:
        return []
    waits = frame.sort_values("submitted", kind="stable")["latency"].to_numpy()
    found = []
    half = waits.size // 2
    distance = _distance(waits[:half], waits[half:])
    p = kolmogorov(distance * np.sqrt(half * (waits.size - half) / waits.size))
    if p < SIGNIFICANT and distance > DRIFT:
        medians = np.median(waits[:half]), np.median(waits[half:])
        found.append(
            Warned(
                "drift",
                f"the latencies drift: their median is {medians[0]:.4g} s in the first half of the log, "
                f"{medians[1]:.4g} s in the second; look at windows of time",
            )
        )
    if np.ptp(waits):
        follow = float(np.corrcoef(_ranks(waits[:-1]), _ranks(waits[1:]))[0, 1])
        if follow > max(DEPENDENCE, 3 / np.sqrt(waits.size)):
            found.append(
                Warned(
                    "dependence",
                    f"slow probes follow slow ones (lag-1 rank correlation {follow:.2f}): a resubmitted job will not "
                    "be as independent of the first as the theory assumes, and the gain will be smaller",
                )
            )
    return found


def _distance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The largest distance between two empirical cdfs, the two-sample Kolmogorov–Smirnov statistic."""
    both = np.concatenate([a, b])
    cdfs = (np.searchsorted(np.sort(side), both, side="right") / side.size for side in (a, b))
    return float(np.abs(np.subtract(*cdfs)).max())


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, equal values sharing their mean rank."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[where])


def about_ratio(
    whole: LatencySample, ratio: OutlierRatio, joint: JointRatio | None, fits: tuple[FittedLaw, ...]
) -> list[Warned]:
    """A ratio that still falls, or that a fitting law contradicts."""
    found = []
    if cutoff_verdict(whole, ratio) == "still falling":
        found.append(
            Warned(
                "ratio-falling",
                f"the outlier ratio is still falling at the cutoff of {ratio.cutoff:g} s: some of the outliers are "
                "late rather than lost",
            )
        )
    fitting = any(f.fit.name == joint.law and _accepted(f) for f in fits) if joint else False
    if joint and fitting and (joint.high < ratio.low or joint.low > ratio.high):
        found.append(
            Warned(
                "rho-disagree",
                f"the counted outlier ratio ({ratio.estimate:.2%}) and that of {joint.law} ({joint.estimate:.2%}) "
                "disagree: beyond the cutoff the tail and the outliers cannot be told apart",
            )
        )
    return found


def _rejected(fitted: FittedLaw) -> bool:
    return fitted.ks is not None and fitted.ks.p_bootstrap is not None and fitted.ks.p_bootstrap < REJECTED


def _accepted(fitted: FittedLaw) -> bool:
    return fitted.ks is not None and fitted.ks.p_bootstrap is not None and not _rejected(fitted)


def about_fits(fits: tuple[FittedLaw, ...]) -> list[Warned]:
    """No law that describes the latencies."""
    tested = [f for f in fits if f.ks is not None and f.ks.p_bootstrap is not None]
    if tested and all(_rejected(f) for f in tested):
        return [
            Warned(
                "all-rejected", "no fitted law describes these latencies (all p < 0.05): trust the empirical timeout"
            )
        ]
    return []


def about_law(name: str | None, fits: tuple[FittedLaw, ...]) -> list[Warned]:
    """A recommendation by a law that the data reject."""
    if name and any(f.fit.name == name and _rejected(f) for f in fits):
        return [Warned("law-rejected", f"the timeout is that of {name}, which the test rejects (p < 0.05)")]
    return []


def about_optimum(recommended: Recommendation, sample: LatencySample, cutoff: float) -> list[Warned]:
    """An optimum at the edge of what was seen, beyond a timeout in force, or on a flat curve."""
    best = recommended.optimum
    if best is None or best.within_5pct is None:
        return []
    found = []
    low, high = best.within_5pct
    middle = sample.completed.values[np.searchsorted(np.cumsum(sample.completed.counts), sample.completed.total / 2)]
    gain = recommended.speed_up_vs_cutoff
    if best.verdict == "finite" and gain is not None and gain < SMALL_GAIN:
        told = f"the choice hardly matters: even waiting until the cutoff takes only {100 * (gain - 1):.1f} % longer"
        found.append(Warned("flat", told))
    elif high > FLAT * low and (best.verdict == "finite" or low <= middle):
        top = "any later time" if not np.isfinite(high) else f"{high:.4g} s"
        told = f"the choice hardly matters: any timeout from {low:.4g} s to {top} is within 5 % of the best"
        found.append(Warned("flat", told))
    if best.verdict != "finite" or best.timeout is None:
        return found
    if best.submissions is not None and best.submissions > HEAVY_LOAD:
        times = f"a job would be submitted {best.submissions:.1f} times on average"
        told = f"{times}; to limit that, see latfit timeout --max-submissions"
        found.append(Warned("load", told))
    early = sample.censored
    cut_before = int(early.counts[early.values < best.timeout].sum())
    if best.timeout > EDGE * cutoff and sample.out_at_cutoff:
        found.append(
            Warned("beyond-timeout", f"the optimum lies at the cutoff of {cutoff:g} s: beyond it nothing was seen")
        )
    elif cut_before > 5 and 2 * cut_before > early.total:
        found.append(
            Warned(
                "beyond-timeout",
                f"{cut_before} probes were given up before {best.timeout:g} s: a timeout is in force already, and "
                "above it the log says little",
            )
        )
    return found
