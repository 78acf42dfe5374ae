"""What a verification says, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from latfit.numbers import finite


@dataclass(frozen=True)
class Estimate:
    """An expected duration in seconds with its 95 % interval, and the submissions of a job; None where unknown.

    `submissions` is the mean over all jobs, `undone` the share of them that was never done. A quantile q is the time
    within which the share q of all jobs is done: None where that share is never reached, or where it is unknown.
    """

    expected_duration: float | None
    low: float | None
    high: float | None
    submissions: float | None
    quantiles: dict[str, float | None] = field(default_factory=dict)
    undone: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        numbers = {name: finite(getattr(self, name)) for name in ("expected_duration", "low", "high", "submissions")}
        return {**numbers, "quantiles": dict(self.quantiles), "undone": finite(self.undone)}


@dataclass(frozen=True)
class Measured(Estimate):
    """What the jobs of the later log took; `quantile_intervals` are those of the quantiles (95 %).

    `jobs` were done, `given_up` were not, and `in_flight` were still under way when the log ended. Neither of the last
    two was done: they count in `undone` and in the submissions, and as later than every time in the quantiles.
    """

    jobs: int = 0
    given_up: int = 0
    in_flight: int = 0
    cuts: tuple[float, ...] = ()
    pause: float = 0.0
    quantile_intervals: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        more = ("jobs", "given_up", "in_flight", "pause")
        return {
            **super().to_dict(),
            **{name: getattr(self, name) for name in more},
            "cuts": list(self.cuts),
            "quantile_intervals": {q: list(pair) for q, pair in self.quantile_intervals.items()},
        }


@dataclass(frozen=True)
class Reason:
    """Why measured and predicted differ: `rounding`, `waits`, `drift`, `later-attempts` or `unexplained`.

    `expected_duration` is the prediction with this and the reasons before it taken into account.
    """

    code: str
    message: str
    p_value: float | None = None
    expected_duration: float | None = None


@dataclass(frozen=True)
class Verification:
    """Predicted against measured; `agrees` is None where there is no prediction. `to_dict()` is the JSON."""

    timeout: float | None
    basis: str
    predicted: Estimate | None
    measured: Measured
    before: Estimate
    speed_up: dict[str, float | None]
    agrees: bool | None
    p_value: float | None
    verdict: str
    sentence: str
    reasons: tuple[Reason, ...]
    tests: dict[str, float | None]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The contract's document."""
        plain = {name: getattr(self, name) for name in ("timeout", "basis", "agrees", "p_value", "verdict", "sentence")}
        return {
            **plain,
            "predicted": self.predicted and self.predicted.to_dict(),
            "measured": self.measured.to_dict(),
            "before": self.before.to_dict(),
            "speed_up": self.speed_up,
            "reasons": [asdict(reason) for reason in self.reasons],
            "tests": self.tests,
            "warnings": list(self.warnings),
        }
