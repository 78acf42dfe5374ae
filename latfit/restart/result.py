"""Results as values: the figures that all strategies have, and the result for one timeout."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from latfit.laws.base import Law, ParametricLaw
from latfit.laws.competing import Competing, Defective
from latfit.numbers import finite

Verdict = Literal["finite", "never", "any", "immediate", "given"]
Window = tuple[float, float]

QUANTILES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The figures of a strategy; None where a figure is infinite or is not computed.

    `expected_duration` and `std_duration` are those of the completion time J (of a finite schedule: of the time until
    success or giving up), `quantiles` its quantiles by level, `submissions` the mean number of jobs submitted,
    `job_seconds` the mean time that they occupy the system together, and `success` the probability that the job is
    done at all.
    """

    expected_duration: float | None
    std_duration: float | None
    quantiles: dict[str, float | None]
    submissions: float | None
    job_seconds: float | None = None
    success: float | None = None

    @property
    def parallel(self) -> float | None:
        """How many jobs are out at a time, on average: job_seconds/expected_duration."""
        return ratio(self.job_seconds, self.expected_duration)

    def figures(self) -> dict[str, Any]:
        names = ("expected_duration", "std_duration", "quantiles", "submissions", "job_seconds", "parallel", "success")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class Optimum(Figures):
    """A timeout and its figures.

    `verdict` is `finite`, `never` (no timeout helps), `any` (the timeout does not matter),
    `immediate` (the smaller the better; figures are limits) or `given` (evaluated, not optimised).
    `timeout` is None for `never` and `any`; what is infinite or not computable is None.
    The windows are the connected sets around the timeout in which the objective's figure (for a deadline: the chance
    to miss it) stays within 1 % and 5 % of its value there, ∞ (None in `to_dict`) where every later timeout
    qualifies. `conservative_timeout` is the end of the 5 % window: waiting up to it costs at most 5 % more; None where
    there is no limit. `speed_up` is the objective's figure without a timeout over the one with it.

    >>> import latfit
    >>> best = latfit.optimal_timeout("lognormal", mu=5.5, sigma=1, rho=0.025)
    >>> best.verdict, round(best.timeout), round(best.expected_duration), round(best.submissions, 2)
    ('finite', 384, 375, 1.52)
    """

    verdict: Verdict
    timeout: float | None
    within_1pct: Window | None = None
    within_5pct: Window | None = None
    conservative_timeout: float | None = None
    speed_up: float | None
    rho: float
    law: str
    cost: float
    objective: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: finite numbers, strings, None."""
        windows = {"within_1pct": self.within_1pct, "within_5pct": self.within_5pct}
        plain = {key: window and [finite(end) for end in window] for key, window in windows.items()}
        return {**asdict(self), "parallel": self.parallel, **plain}


def ratio(above: float | None, below: float | None) -> float | None:
    """The quotient of two figures, None where one of them is absent or the second is 0."""
    return finite(above / below) if above is not None and below is not None and below > 0 else None


def label(law: Law) -> str:
    """How a law is written: the specification of what returns, or the name of a law without one."""
    while isinstance(law, (Defective, Competing)):
        law = law.law
    return law.spec() if isinstance(law, ParametricLaw) else law.name
