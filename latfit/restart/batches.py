"""A batch of jobs: when the last of them is done, and how many to put into one submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.empirical import as_law
from latfit.numbers import finite
from latfit.restart import derived
from latfit.restart.completion import refuse_failures
from latfit.restart.optimum import optimal_timeout
from latfit.restart.plan import knots, quadrature, restarted

MAX_PERIODS = 5_000  # attempts that the slowest of many jobs is followed through


def expected_maximum(
    law: Any, jobs: int, t_inf: float = np.inf, *, cost: float = 0.0, wall_clock: float = 0.0, **params: Any
) -> float:
    """E[max(J₁, …, J_n)] = ∫ 1 − F_J(x)ⁿ dx, n = `jobs`: the mean time until the last of n independent jobs is done.

    `law`, `t_inf` (one timeout), `cost`, `wall_clock` and `params` are as in `expected_duration`. Returns seconds, ∞ if
    a job may never end.

    Examples
    --------
    >>> import latfit
    >>> round(latfit.expected_maximum("exponential", 3, rate=1.0), 6)  # 1 + 1/2 + 1/3
    1.833333
    """
    job = derived.with_wall_clock(as_law(law, **params), wall_clock)
    refuse_failures(job, "the maximum of several jobs")
    t, c, jobs = float(derived.check_timeouts(t_inf)), derived.check_time("cost", cost), _checked(jobs)
    F = float(job.cdf(t))
    if not F > 0 or (np.isinf(t) and derived.completion_probability(job) < 1 - 1e-12):
        return np.inf
    if not np.isinf(t) and t + c == 0:
        return 0.0
    ends, periods = knots(job) if job.jumps is not None else derived.scan_times(job), 1
    if np.isfinite(t):
        periods = int(np.ceil((np.log(jobs) + 37.0) / -np.log1p(-F))) if F < 1 else 1  # beyond it n S_J < 1e-16
        if periods > MAX_PERIODS:
            raise RestartError(f"with the timeout {t:g} s the last job needs more than {MAX_PERIODS} attempts")
        ends = np.unique(np.concatenate([ends[ends < t], [t, t + c]]))
    else:
        far = ends[-1] * np.geomspace(1.0, 1e12, 400) if job.jumps is None and np.isinf(job.support[1]) else ends[-1:]
        ends = np.unique(np.concatenate([ends, far]))
    x, w = quadrature(np.append(0.0, ends), steps=job.jumps is not None)
    at = (x + np.arange(periods)[:, None] * (t + c if periods > 1 else 0.0)).ravel()
    with np.errstate(all="ignore"):
        unfinished = -np.expm1(jobs * np.log1p(-np.exp(restarted(job, t, c).log_survival(at))))
    return float((unfinished.reshape(periods, -1) * w).sum())


def _checked(jobs: int) -> int:
    if jobs < 1 or jobs != int(jobs):
        raise RestartError(f"the number of jobs is {jobs}; it must be a whole number of at least 1")
    return int(jobs)


@dataclass(frozen=True)
class Grouping:
    """How many jobs of a batch to put into one submission, and when the last submission is done.

    Each of the `submissions` runs `size` jobs one after the other; it is cancelled at `timeout` (None: never) and tried
    again. `expected_duration` is the mean time until all jobs are done, `ungrouped` that with one job per submission
    and the best timeout for that.
    """

    jobs: int
    size: int
    timeout: float | None
    expected_duration: float
    ungrouped: float

    @property
    def submissions(self) -> int:
        return -(-self.jobs // self.size)

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "ungrouped": finite(self.ungrouped), "submissions": self.submissions}


def optimal_grouping(
    law: Any, jobs: int, *, wall_clock: float, cost: float = 0.0, copies: int = 1, **params: Any
) -> Grouping:
    """The number of jobs per submission with which a batch of jobs is done soonest, on average.

    n = `jobs` jobs that run r = `wall_clock` seconds each, in groups of g: ⌈n/g⌉ submissions run g r seconds after
    their latency, and the batch is done with the last of them. Large groups meet fewer slow latencies but run longer.
    Each size has the timeout with the smallest mean. `copies` of each submission are made at once (multi-submission);
    `law`, `cost` and `params` are as in `expected_duration`. Returns a `Grouping`: the `size` of a group, the number of
    submissions, their timeout and the expected duration. After Glatard et al., PDP 2006, with resubmission.

    Examples
    --------
    >>> import latfit
    >>> best = latfit.optimal_grouping("lognormal", 100, wall_clock=60.0, mu=5.5, sigma=1, rho=0.025)
    >>> best.size, best.submissions, round(best.timeout)
    (2, 50, 832)
    """
    latency, jobs = as_law(law, **params), _checked(jobs)

    @cache
    def grouped(size: int) -> Grouping:
        how: dict[str, Any] = {"cost": cost, "wall_clock": size * wall_clock}
        timeout = optimal_timeout(latency, copies=copies, figures=False, **how).timeout
        end, job = np.inf if timeout is None else timeout, derived.with_copies(latency, copies)
        duration = expected_maximum(job, -(-jobs // size), end, **how)
        return Grouping(jobs, size, timeout, duration, duration if size == 1 else grouped(1).expected_duration)

    def best_of(sizes: Sequence[int]) -> Grouping:
        return min(map(grouped, sizes), key=lambda grouping: grouping.expected_duration)

    sizes = sorted({-(-jobs // m) for m in np.unique(np.geomspace(1, jobs, 60).astype(int)).tolist()})
    best = best_of(sizes)
    place = sizes.index(best.size)
    near = range(sizes[max(place - 1, 0)], sizes[min(place + 1, len(sizes) - 1)] + 1)
    best = best_of(near) if len(near) <= 200 else best
    if not np.isfinite(best.expected_duration):
        raise RestartError("no group of jobs has a finite mean time: no timeout of this law has")
    return best
