"""What an analysis says, as values: the recommendation, the fits beside it, the groups, the warnings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from latfit.fitting import Fit, JointRatio
from latfit.goodness import GoodnessOfFit
from latfit.logs import LogFacts
from latfit.outliers import CutoffChoice, OutlierRatio
from latfit.restart import Optimum, Warned
from latfit.sample import LatencySample
from latfit.uncertainty import Intervals


@dataclass(frozen=True)
class LatencySummary:
    """The latencies that came back: how many, their moments, their quantiles."""

    n: int
    mean: float
    std: float
    min: float
    max: float
    quantiles: dict[str, float]


@dataclass(frozen=True)
class Recommendation:
    """A timeout, what it brings, and how sure that is.

    `optimum` is None where the sample has too few completions; `intervals` where they cannot be had.
    `at_cutoff` is what waiting until the cutoff brings; `speed_up_vs_cutoff` is E_J there over E_J here.
    """

    optimum: Optimum | None
    rho: float
    law: str
    at_cutoff: Optimum | None
    intervals: Intervals | None

    @property
    def speed_up_vs_cutoff(self) -> float | None:
        """E_J(cutoff) / E_J(timeout)."""
        if self.optimum is None or self.at_cutoff is None or not self.optimum.expected_duration:
            return None
        end = self.at_cutoff.expected_duration
        return None if end is None else end / self.optimum.expected_duration

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields as plain values."""
        bounds = self.intervals
        none = (None, None)
        t, E, s = (bounds.timeout, bounds.expected_duration, bounds.speed_up) if bounds else (none, none, none)
        empty = {each.name: None for each in fields(Optimum)}
        return {
            **(self.optimum.to_dict() if self.optimum else {**empty, "law": self.law, "rho": self.rho}),
            "low": t[0],
            "high": t[1],
            "expected_duration_low": E[0],
            "expected_duration_high": E[1],
            "smoothed_timeout": bounds.smoothed_timeout if bounds else None,
            "speed_up_vs_cutoff": self.speed_up_vs_cutoff,
            "speed_up_vs_cutoff_low": s[0],
            "speed_up_vs_cutoff_high": s[1],
            "at_cutoff": self.at_cutoff and self.at_cutoff.to_dict(),
        }


@dataclass(frozen=True)
class FittedLaw:
    """A fit, its test, and the timeout that it would give with its regret on the data."""

    fit: Fit
    ks: GoodnessOfFit | None
    optimum: Optimum | None
    regret: float | None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields as plain values."""
        nothing = {each.name: None for each in fields(GoodnessOfFit)}
        timeout = None if self.optimum is None else {**self.optimum.to_dict(), "regret": self.regret}
        return {**self.fit.to_dict(), "ks": self.ks.to_dict() if self.ks else nothing, "timeout": timeout}


@dataclass(frozen=True)
class Current:
    """The timeout in use now: what it brings, and how much more than the best one (0.1 = 10 %)."""

    timeout: float
    expected_duration: float | None
    regret: float | None


@dataclass(frozen=True)
class Group:
    """One group beside the pooled answer.

    `differs` if its interval and the pooled one have nothing in common and the pooled timeout costs it
    more than 1 %; `pooled_regret` is what the pooled timeout costs this group more than its own.
    """

    key: dict[str, str]
    probes: int
    ratio: OutlierRatio
    recommendation: Recommendation
    differs: bool
    pooled_regret: float | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Analysis:
    """Everything that the report shows; `to_dict()` is the JSON of `latfit analyze`."""

    facts: LogFacts
    counts: dict[str, int]
    sample: LatencySample
    cutoff: CutoffChoice
    outliers: OutlierRatio
    by_cutoff: tuple[OutlierRatio, ...]
    joint: JointRatio | None
    latency: LatencySummary
    fits: tuple[FittedLaw, ...]
    best: str | None
    timeout: Recommendation
    timeout_without_outliers: Recommendation | None
    current: Current | None
    groups: tuple[Group, ...]
    warnings: tuple[Warned, ...]

    def to_dict(self) -> dict[str, Any]:
        """The contract's document; numbers may be infinite where the command line writes null."""
        refused = self.facts.refused
        ratio, joint = self.outliers, self.joint
        return {
            "log": {
                "path": self.facts.path,
                "format": self.facts.format,
                "probes": sum(self.counts.values()),
                **self.counts,
                "refused": refused.to_list(),
                "refused_count": refused.count,
                "resolution": self.sample.resolution,
            },
            "outliers": {
                **ratio.to_dict(),
                "count": ratio.count,
                "method": ratio.method,
                "cutoff_reason": self.cutoff.reason,
                "joint_ratio": joint.estimate if joint else None,
                "joint_low": joint.low if joint else None,
                "joint_high": joint.high if joint else None,
                "joint_law": joint.law if joint else None,
                "by_cutoff": [r.to_dict() for r in self.by_cutoff],
            },
            "latency": {each.name: getattr(self.latency, each.name) for each in fields(LatencySummary)},
            "fits": [fitted.to_dict() for fitted in self.fits],
            "best": self.best,
            "timeout": self.timeout.to_dict(),
            "timeout_without_outliers": self.timeout_without_outliers and self.timeout_without_outliers.to_dict(),
            "current": self.current and {each.name: getattr(self.current, each.name) for each in fields(Current)},
            "groups": [_group_dict(group) for group in self.groups],
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
        }


def _group_dict(group: Group) -> dict[str, Any]:
    return {
        "group": group.key,
        **group.key,
        "probes": group.probes,
        "count": group.ratio.count,
        "ratio": group.ratio.estimate,
        "ratio_low": group.ratio.low,
        "ratio_high": group.ratio.high,
        **group.recommendation.to_dict(),
        "differs": group.differs,
        "pooled_regret": group.pooled_regret,
        "warnings": list(group.warnings),
    }
