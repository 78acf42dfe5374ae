"""What a decision says, as values: the recommendation, the fits beside it, the evidence, the warnings."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from latfit.errors import SampleError
from latfit.evidence import Censoring, Dependence, Mixing, Replay
from latfit.evidence.changes import Changes
from latfit.fitting import Fit, GoodnessOfFit, JointRatio
from latfit.laws import Law
from latfit.numbers import finite
from latfit.outliers import CutoffChoice, OutlierRatio
from latfit.resample import Intervals
from latfit.restart import Optimum, evaluate_timeout, optimal_timeout
from latfit.restart.result import Window
from latfit.restart.retry import Retry
from latfit.sample import LatencySample

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Warned:
    """Something the reader of a result should know, by a code that programs can test."""

    code: str
    message: str


@dataclass(frozen=True)
class LatencySummary:
    """The latencies that came back: how many, their moments, their quantiles."""

    n: int
    mean: float
    std: float
    min: float
    max: float
    quantiles: dict[str, float]

    @classmethod
    def of(cls, sample: LatencySample) -> LatencySummary | None:
        """The summary of the completions; quantiles are the smallest latency with that share at or below it."""
        x, w, n = sample.completed.values, sample.completed.counts, sample.completed.total
        if not n:
            return None
        mean = float(np.average(x, weights=w))
        std = float(np.sqrt((w * (x - mean) ** 2).sum() / max(1, n - 1)))
        at = sample.completed.quantiles(QUANTILES)
        return cls(n, mean, std, float(x[0]), float(x[-1]), dict(zip(map(str, QUANTILES), at.tolist(), strict=True)))


@dataclass(frozen=True)
class Recommendation:
    """A timeout, what it brings, how sure that is, and what it rests on.

    `verdict`: `finite`, `never` (no timeout helps), `any`, `immediate`, `withheld` (the evidence is against the
    formula, or there is too little of it: `withheld` has the codes, `if_independent` what the formula gives), or
    `given`. `timeout` is what to set, None where there is none; `exact_timeout` the plain argmin of E_J on the data.
    `basis` is `independent` (the formula) or `replay` (the log itself). `expected_duration` is the formula at
    `timeout`; `at_cutoff` what waiting until the cutoff brings.
    """

    verdict: str
    timeout: float | None
    expected_duration: float | None
    submissions: float | None
    within_1pct: Window | None
    within_5pct: Window | None
    rho: float
    law: str
    cost: float
    objective: dict[str, Any]
    exact_timeout: float | None = None
    speed_up: float | None = None
    at_cutoff: float | None = None
    intervals: Intervals | None = None
    basis: str = "independent"
    withheld: tuple[str, ...] = ()
    if_independent: Recommendation | None = None
    replayed: float | None = None
    source: Law | None = field(default=None, repr=False, compare=False)
    policy: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    cutoff: float | None = None
    retry: Retry | None = None
    """What to set: a finite schedule that ends in waiting; None: wait."""

    @property
    def formula(self) -> Recommendation:
        """What the formula gives, withheld or not."""
        return self.if_independent or self

    @property
    def conservative_timeout(self) -> float | None:
        """The latest timeout that costs at most 5 % more; None where there is no limit, or nothing to set."""
        return None if self.within_5pct is None or self.verdict != "finite" else finite(self.within_5pct[1])

    @property
    def speed_up_vs_cutoff(self) -> float | None:
        """E_J(cutoff) / E_J(timeout)."""
        if not self.expected_duration or self.at_cutoff is None:
            return None
        return finite(self.at_cutoff / self.expected_duration)

    @property
    def expected_duration_corrected(self) -> float | None:
        """E_J less the optimism of having chosen the minimum of a noisy curve; None without intervals."""
        if self.expected_duration is None or self.intervals is None:
            return None
        return self.expected_duration * (1 + self.intervals.optimism)

    @cached_property
    def figures(self) -> Optimum | None:
        """Standard deviation and quantiles at the timeout, computed when they are asked for."""
        if self.verdict == "immediate" and self.source is not None:  # those of the limit
            return optimal_timeout(self.source, **self.policy)
        return self._at(np.inf if self.timeout is None else self.timeout) if self.verdict in _SET else None

    @cached_property
    def figures_at_cutoff(self) -> Optimum | None:
        """The same when waiting until the cutoff."""
        return None if self.cutoff is None else self._at(self.cutoff)

    def _at(self, timeout: float) -> Optimum | None:
        return None if self.source is None else evaluate_timeout(self.source, timeout, **self.policy)

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields as plain values."""
        none = (None, None)
        bounds, more = self.intervals, self.figures
        t, E, s = (bounds.timeout, bounds.expected_duration, bounds.speed_up) if bounds else (none, none, none)
        return {
            "verdict": self.verdict,
            "timeout": finite(self.timeout),
            "retry": self.retry and self.retry.to_dict(),
            "basis": self.basis,
            "withheld": list(self.withheld),
            "exact_timeout": finite(self.exact_timeout),
            "expected_duration": finite(self.expected_duration),
            "expected_duration_corrected": finite(self.expected_duration_corrected),
            "std_duration": more and more.std_duration,
            "quantiles": more.quantiles if more else {},
            "submissions": finite(self.submissions),
            "job_seconds": more and more.job_seconds,
            "parallel": more and more.parallel,
            "success": more and more.success,
            "within_1pct": _pair(self.within_1pct),
            "within_5pct": _pair(self.within_5pct),
            "conservative_timeout": self.conservative_timeout,
            "speed_up": finite(self.speed_up),
            "rho": self.rho,
            "law": self.law,
            "cost": self.cost,
            "objective": self.objective,
            "low": t[0],
            "high": t[1],
            "expected_duration_low": E[0],
            "expected_duration_high": E[1],
            "speed_up_vs_cutoff": self.speed_up_vs_cutoff,
            "speed_up_vs_cutoff_low": s[0],
            "speed_up_vs_cutoff_high": s[1],
            "replayed": finite(self.replayed),
            "at_cutoff": self.figures_at_cutoff and self.figures_at_cutoff.to_dict(),
            "if_independent": self.if_independent and self.if_independent.to_dict(),
        }


_SET = ("finite", "never", "any", "given")


def _pair(window: Window | None) -> list[float | None] | None:
    return None if window is None else [finite(end) for end in window]


@dataclass(frozen=True)
class FittedLaw:
    """A fit, its test, and the timeout that it would give with its regret on the data."""

    fit: Fit
    ks: GoodnessOfFit | None
    optimum: Optimum | None
    regret: float | None

    @property
    def rejected(self) -> bool | None:
        """Whether the bootstrap test rejects it at 5 %; None where it was not tested."""
        p = self.ks.p_bootstrap if self.ks else None
        return None if p is None else p < 0.05

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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass(frozen=True)
class JudgedWorld:
    """A world that the log supports, and the ratio of duration to waiting in it, at the schedule that was looked at.

    `unlimited` is the same ratio at the formula's timeout, repeated for ever; ∞ where some jobs never end.
    """

    name: str
    kind: str
    z: float | None
    ratio: float | None
    unlimited: float | None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields."""
        return {"name": self.name, "kind": self.kind, "z": self.z, "ratio": finite(self.ratio)}


@dataclass(frozen=True)
class Evidence:
    """What the log says on whether the theory applies to it; None where it cannot be seen."""

    mixing: Mixing | None
    dependence: Dependence | None
    drift: Changes | None
    censoring: Censoring
    replay: Replay | None
    worlds: tuple[JudgedWorld, ...] = ()
    binding: str | None = None
    columns_used: tuple[str, ...] = ()
    columns_left_out: tuple[tuple[str, str], ...] = ()

    @property
    def binding_world(self) -> JudgedWorld | None:
        """The world that the schedule, or waiting, was chosen for."""
        return next((judged for judged in self.worlds if judged.name == self.binding), None)

    def to_dict(self, timeout: float | None = None) -> dict[str, Any]:
        """The contract's fields; `replay` at the timeout that the formula gives."""
        return {
            "mixing": self.mixing and self.mixing.to_dict(),
            "dependence": self.dependence and self.dependence.to_dict(),
            "drift": self.drift and self.drift.to_dict(),
            "censoring": self.censoring.to_dict(),
            "replay": self.replay and _replay_dict(self.replay),
            "worlds": [judged.to_dict() for judged in self.worlds],
            "binding": self.binding,
            "columns_used": list(self.columns_used),
            "columns_left_out": [{"name": name, "why": why} for name, why in self.columns_left_out],
        }


def _replay_dict(found: Replay) -> dict[str, Any]:
    here = (found.at[0] if found.at else found.waiting).to_dict()
    return here | {
        "waiting": finite(found.waiting.expected_duration),
        "best_timeout": finite(found.best.timeout),
        "best_expected_duration": finite(found.best.expected_duration),
    }


@dataclass(frozen=True)
class Decision:
    """Everything that was decided about one sample: for a log, a group of it, or a row of a batch.

    `error` says why there is no decision at all; then `timeout` is None too.

    Examples
    --------
    >>> import latfit
    >>> sample = latfit.LatencySample.of([2.0, 2.5, 3.0, 3.5, 4.0, 60.0, 70.0, 80.0], lost=1)
    >>> (made,) = latfit.decide([sample], latfit.Options(resamples=0, test=False))
    >>> made.counts["completed"], made.timeout.verdict, made.best.fit.name
    (8, 'finite', 'lognormal')
    """

    key: tuple[str, ...]
    counts: dict[str, int]
    whole: LatencySample
    sample: LatencySample | None
    cutoff: CutoffChoice | None
    outliers: OutlierRatio | None
    joint: JointRatio | None
    latency: LatencySummary | None
    fits: tuple[FittedLaw, ...]
    best: FittedLaw | None
    timeout: Recommendation | None
    without_outliers: Recommendation | None
    current: Current | None
    evidence: Evidence | None
    warnings: tuple[Warned, ...]
    error: str | None = None

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the warnings."""
        return tuple(warning.code for warning in self.warnings)

    def require(self) -> Decision:
        """Itself, or the error that says why there is none."""
        if self.error is not None:
            raise SampleError(self.error)
        return self
