"""What a decision says, as values: the recommendation, the fits beside it, the evidence, the warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np

from latfit.decision.prepare import Censoring
from latfit.errors import SampleError
from latfit.evidence import Changes, Dependence, Mixing, Replay
from latfit.evidence.worlds import World
from latfit.fitting import Fit, GoodnessOfFit, JointRatio
from latfit.laws import Law
from latfit.numbers import finite
from latfit.outliers import CutoffChoice, OutlierRatio
from latfit.resample import Intervals
from latfit.restart import Optimum
from latfit.restart.result import ratio
from latfit.restart.retry import Retry
from latfit.sample import LatencySample


@dataclass(frozen=True)
class Warned:
    """Something the reader of a result should know, by a code that programs can test."""

    code: str
    message: str


@dataclass(frozen=True)
class LatencySummary:
    """The latencies that came back: how many, their moments, their quantiles.

    `variation` is std/mean: above 1, some timeout lowers the mean of independent attempts, even if nothing is lost.
    """

    n: int
    mean: float
    std: float
    min: float
    max: float
    quantiles: dict[str, float]
    variation: float | None = None
    variation_interval: tuple[float, float] | None = None

    @classmethod
    def of(cls, sample: LatencySample) -> LatencySummary | None:
        """The summary of the completions; quantiles are the smallest latency with that share at or below it."""
        x, w, n = sample.completed.values, sample.completed.counts, sample.completed.total
        if not n:
            return None
        mean = float(np.average(x, weights=w))
        std = float(np.sqrt((w * (x - mean) ** 2).sum() / max(1, n - 1)))
        levels = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
        quantiles = zip(map(str, levels), sample.completed.quantiles(levels).tolist(), strict=True)
        return cls(n, mean, std, float(x[0]), float(x[-1]), dict(quantiles), std / mean if mean > 0 else None)


@dataclass(frozen=True, kw_only=True)
class Recommendation(Optimum):
    """A timeout, what it brings, how sure that is, and what it rests on.

    `verdict` may also be `withheld`: the evidence is against the formula, or there is too little of it; `withheld` has
    the codes, `if_independent` what the formula gives. `timeout` is the best one if repeated without limit,
    `exact_timeout` the plain argmin of E_J on the data, `at_cutoff` what waiting until the cutoff brings and `waiting`
    all figures of it. `retry` is what to set: a finite schedule that ends in waiting; None: wait. `source` is the law
    that the figures are of, where it was asked for; `warnings` are those about how it was found.
    """

    verdict: str  # type: ignore[assignment]
    timeout: float | None = None
    expected_duration: float | None = None
    submissions: float | None = None
    std_duration: float | None = None
    quantiles: dict[str, float | None] = field(default_factory=dict)
    speed_up: float | None = None
    exact_timeout: float | None = None
    at_cutoff: float | None = None
    waiting: Optimum | None = None
    intervals: Intervals | None = None
    withheld: tuple[str, ...] = ()
    if_independent: Recommendation | None = None
    source: Law | None = field(default=None, repr=False, compare=False)
    retry: Retry | None = None
    warnings: tuple[Warned, ...] = field(default=(), repr=False)
    basis: ClassVar[str] = "independent"  # replay describes and does not decide

    @property
    def formula(self) -> Recommendation:
        return self.if_independent or self

    @property
    def speed_up_vs_cutoff(self) -> float | None:
        return ratio(self.at_cutoff, self.expected_duration)

    @property
    def expected_duration_corrected(self) -> float | None:
        """E_J less the optimism of having chosen the minimum of a noisy curve; None without intervals."""
        if self.expected_duration is None or self.intervals is None:
            return None
        return self.expected_duration * (1 + self.intervals.optimism)

    def withhold(self, codes: Sequence[str], retry: Retry | None) -> Recommendation:
        """The same without its figures, which remain in `if_independent`."""
        objective = {**self.objective, "value": None}
        kept = {name: getattr(self, name) for name in ("rho", "law", "cost", "exact_timeout", "at_cutoff", "waiting")}
        blank = Recommendation(verdict="withheld", objective=objective, source=self.source, retry=retry, **kept)
        return replace(blank, withheld=tuple(dict.fromkeys(codes)), if_independent=self)

    def to_dict(self) -> dict[str, Any]:
        document = Optimum(**{each.name: getattr(self, each.name) for each in fields(Optimum)}).to_dict()
        for name in ("exact_timeout", "expected_duration_corrected", "speed_up_vs_cutoff"):
            document[name] = finite(getattr(self, name))
        for name, value in (
            ("retry", self.retry),
            ("if_independent", self.if_independent),
            ("at_cutoff", self.waiting),
        ):
            document[name] = value and value.to_dict()
        limits = {"": "timeout", "expected_duration_": "expected_duration", "speed_up_vs_cutoff_": "speed_up"}
        for prefix, name in limits.items():
            ends = getattr(self.intervals, name) if self.intervals else (None, None)
            document |= {f"{prefix}low": ends[0], f"{prefix}high": ends[1]}
        return document | {"withheld": list(self.withheld), "basis": self.basis, "replayed": None}


@dataclass(frozen=True)
class FittedLaw:
    """A fit, its test, and the timeout that it would give with its regret on the data."""

    fit: Fit
    ks: GoodnessOfFit | None = None
    optimum: Optimum | None = None
    regret: float | None = None

    @property
    def rejected(self) -> bool | None:
        """Whether the bootstrap test rejects it at 5 %; None where it was not tested."""
        p = self.ks.p_bootstrap if self.ks else None
        return None if p is None else p < 0.05

    def to_dict(self) -> dict[str, Any]:
        untested = {each.name: None for each in fields(GoodnessOfFit)}
        timeout = None if self.optimum is None else {**self.optimum.to_dict(), "regret": self.regret}
        return {**self.fit.to_dict(), "ks": self.ks.to_dict() if self.ks else untested, "timeout": timeout}


@dataclass(frozen=True)
class Current:
    """The timeout in use now: what it brings, and how much more than the best one (0.1 = 10 %)."""

    timeout: float
    expected_duration: float | None
    regret: float | None


@dataclass(frozen=True)
class Evidence:
    """What the log says on whether the theory applies to it; None where it cannot be seen."""

    censoring: Censoring
    mixing: Mixing | None = None
    dependence: Dependence | None = None
    drift: Changes | None = None
    replay: Replay | None = None
    worlds: tuple[World, ...] = ()
    binding: str | None = None
    columns_used: tuple[str, ...] = ()
    columns_left_out: tuple[tuple[str, str], ...] = ()

    @property
    def binding_world(self) -> World | None:
        return next((world for world in self.worlds if world.name == self.binding), None)

    def to_dict(self) -> dict[str, Any]:
        names = ("mixing", "dependence", "drift", "censoring")
        return {
            **{name: getattr(self, name) and getattr(self, name).to_dict() for name in names},
            "replay": self.replay and self.replay.summary(),
            "worlds": [world.to_dict() for world in self.worlds],
            "binding": self.binding,
            "columns_used": list(self.columns_used),
            "columns_left_out": [{"name": name, "why": why} for name, why in self.columns_left_out],
        }


@dataclass(frozen=True)
class Decision:
    """Everything that was decided about one sample: for a log, a group of it, or a row of a batch.

    `error` says why there is no decision at all; then `timeout` is None too.

    Examples
    --------
    >>> import latfit
    >>> sample = latfit.LatencySample.of([2.0, 2.5, 3.0, 3.5, 4.0, 60.0, 70.0, 80.0], lost=1)
    >>> (decision,) = latfit.decide([sample], latfit.Options(resamples=0, test=False))
    >>> decision.counts["completed"], decision.timeout.verdict, decision.best.fit.name
    (8, 'finite', 'lognormal')
    """

    key: tuple[str, ...]
    counts: dict[str, int]
    whole: LatencySample
    sample: LatencySample | None = None
    cutoff: CutoffChoice | None = None
    outliers: OutlierRatio | None = None
    joint: JointRatio | None = None
    latency: LatencySummary | None = None
    fits: tuple[FittedLaw, ...] = ()
    best: FittedLaw | None = None
    timeout: Recommendation | None = None
    without_outliers: Recommendation | None = None
    current: Current | None = None
    evidence: Evidence | None = None
    warnings: tuple[Warned, ...] = ()
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
