"""Intervals of a comparison on a log: the same resamples for every strategy, so that differences are sharp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.errors import LatfitError
from latfit.fitting import resamples
from latfit.laws import Empirical, Law
from latfit.numbers import Floats
from latfit.restart.coarse import coarse
from latfit.restart.compare import Comparison
from latfit.restart.shifted import with_wall_clock
from latfit.sample import LatencySample

RESAMPLES = 200
CELLS = 200


@dataclass(frozen=True)
class Spread:
    """The 95 % interval of a strategy's figure, and of its ratio to that of the first strategy."""

    low: float | None
    high: float | None
    ratio_low: float | None
    ratio_high: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"low": self.low, "high": self.high, "ratio_low": self.ratio_low, "ratio_high": self.ratio_high}


def comparison_intervals(
    sample: LatencySample,
    comparison: Comparison,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    count: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> list[Spread]:
    """The 95 % intervals of the strategies of a comparison, their parameters held fixed.

    Parameters
    ----------
    sample
        The sample that the comparison was made from.
    comparison
        The strategies and the objective.
    cost, wall_clock
        As in the comparison.
    count, rng
        How many resamples, and their source of random numbers.

    Returns
    -------
    list of Spread
        One for each row; None where a strategy is infinite on more than 2.5 % of the resamples.

    Examples
    --------
    >>> import latfit
    >>> from latfit.uncertainty.compared import comparison_intervals
    >>> sample = latfit.LatencySample.of([1, 2, 2, 3, 4, 5, 30, 40, 50] * 20)
    >>> table = latfit.compare_policies(latfit.Empirical.of(sample), ["timeout()"])
    >>> spread = comparison_intervals(sample, table, count=50)
    >>> spread[-1].ratio_high < 1
    True

    """
    source = np.random.default_rng(0) if rng is None else rng
    # under failures a quantile needs the steps of the log's own clock
    by_clock = sample.failed.total > 0 and comparison.objective.name not in ("mean", "std")
    drawn = []
    for each in resamples(sample, count, source):
        if each.completed.total:
            law = Empirical.of(each)
            few = law if by_clock else coarse(law, CELLS)
            drawn.append(_figures(with_wall_clock(few, wall_clock), comparison, cost))
    figures = np.array(drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = figures / figures[:, :1]
    return [Spread(*_interval(figures[:, i]), *_interval(ratios[:, i])) for i in range(len(comparison.rows))]


def _figures(law: Law, comparison: Comparison, cost: float) -> list[float]:
    """The figure of every strategy on one resample, ∞ where it does not end there."""
    found = []
    for row in comparison.rows:
        try:
            with np.errstate(all="ignore"):
                found.append(comparison.objective.of_plan(row.outcome.policy.plan(law, cost)))
        except LatfitError:
            found.append(np.inf)
    return found


def _interval(values: Floats) -> tuple[float | None, float | None]:
    usable = np.where(np.isnan(values), np.inf, values)
    low, high = np.quantile(usable, [0.025, 0.975], method="inverted_cdf")
    return (float(low) if np.isfinite(low) else None, float(high) if np.isfinite(high) else None)
