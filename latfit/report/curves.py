"""What the figures of the page and of matplotlib both draw: jobs done, strategies, the course of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latfit.analysis import Analysis
from latfit.errors import RestartError
from latfit.evidence import Observations
from latfit.fitting import fitted_law
from latfit.laws import Empirical, Law
from latfit.logs.table import COMPLETED
from latfit.numbers import Floats
from latfit.restart import compare_policies, completion_cdf
from latfit.restart.coarse import coarse
from latfit.restart.compare import Comparison
from latfit.restart.completion import simulate
from latfit.units import seconds

JOBS = 50_000  # simulated where failures leave no formula
CELLS = 1000  # steps of a law on which strategies are compared
SHOWN = 4  # strategies in a figure
WINDOWS = 60
FEWEST = 5  # completions that a window needs for its quantiles


def laws_of(result: Analysis, most: int) -> list[tuple[str, Law]]:
    """The best fits by name, as laws of an attempt: with its outliers, and with its visible failures."""
    sample = result.decision.sample
    assert sample is not None
    fits = [one.fit for one in result.decision.fits if one.fit.law is not None][:most]
    return [(fit.name, fitted_law(sample, fit)) for fit in fits]


def jobs_done(law: Empirical, t: Floats, timeout: float, cost: float) -> Floats:
    """F_J(t): the share of jobs done by t when attempts are cancelled at `timeout` and submitted again.

    Where attempts fail visibly it has no closed form: it is that of 50 000 simulated jobs.

    >>> from latfit.sample import LatencySample
    >>> law = Empirical.of(LatencySample.of([1.0, 2.0, 4.0, 8.0]))
    >>> jobs_done(law, np.array([1.0, 3.0, 4.0]), 2.0, 0.0).round(9).tolist()
    [0.25, 0.625, 0.75]
    """
    if not law.failures.times.size:
        return completion_cdf(law, t, timeout, cost=cost)
    jobs = np.sort(simulate(law, timeout, JOBS, np.random.default_rng(0), cost=cost))
    return np.searchsorted(jobs, t, side="right") / JOBS


@dataclass(frozen=True)
class Strategies:
    """Strategies beside the recommended timeout, and the law that they were compared on."""

    found: Comparison
    law: Law
    cost: float
    coarse: bool

    def tails(self, t: Floats) -> list[tuple[str, Floats]]:
        """The share of jobs not yet done by t under a few of them: the recommended one, then the best at its load."""
        first, *others = self.found.rows
        kinds = [*(row for row in others if row.role == "same"), *(row for row in others if row.role == "free")]
        drawn = []
        for row in [first, *kinds][:SHOWN]:
            plan = row.outcome.policy.plan(self.law, self.cost)
            try:
                left = np.array([plan.survival(float(x)) for x in t])
            except RestartError:  # visible failures, on no common clock
                continue
            drawn.append((row.outcome.policy.sentence(seconds), left))
        return drawn


def strategies_of(result: Analysis, law: Empirical) -> Strategies | None:
    """What else could be done; None where no timeout is recommended by the formula, or none can be compared."""
    own = result.timeout
    unsure = own.verdict != "finite" or own.basis == "replay" or "not-identified" in result.decision.codes
    if unsure or not own.timeout:
        return None
    fewer = law if law.failures.times.size else coarse(law, CELLS)  # tails under failures need the log's own clock
    try:
        found = compare_policies(fewer, [f"timeout(t={own.timeout!r})"], cost=own.cost)
    except RestartError:
        return None
    return Strategies(found, fewer, own.cost, fewer is not law)


def windows_of_time(seen: Observations | None) -> tuple[Floats, Floats, Floats]:
    """The middles of windows of equal length, the median and the 95 % quantile of completions in each.

    All three are empty where the log has no times, or too few completions.
    """
    if seen is None or seen.submitted is None:
        return np.empty(0), np.empty(0), np.empty(0)
    known = np.isfinite(seen.submitted) & (seen.status == COMPLETED)
    when, latency = seen.submitted[known], seen.latency[known]
    if when.size < 2 * FEWEST or np.ptp(when) == 0:
        return np.empty(0), np.empty(0), np.empty(0)
    count = int(min(WINDOWS, max(4, when.size // 30)))
    edges = np.linspace(when.min(), when.max(), count + 1)
    place = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, count - 1)
    order = np.argsort(place, kind="stable")
    parts = np.split(latency[order], np.searchsorted(place[order], np.arange(1, count)))
    levels = [np.quantile(part, [0.5, 0.95]) if part.size >= FEWEST else np.array([np.nan, np.nan]) for part in parts]
    return (edges[:-1] + edges[1:]) / 2, np.array([v[0] for v in levels]), np.array([v[1] for v in levels])
