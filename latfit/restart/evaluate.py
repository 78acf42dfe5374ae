"""The figures of a policy on a law, and jobs followed copy by copy under a policy: drawn from a law or from a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.restart.derived import (
    ROUNDING,
    check_time,
    completion_probability,
    failure_times,
    has_failures,
    with_wall_clock,
)
from latfit.restart.objectives import Objective
from latfit.restart.policies import Policy, parse_policy
from latfit.restart.result import QUANTILES, Figures, label

DRAWN_JOBS = 50_000  # their p99 is known to about 1 %

Attempts = Callable[[Ints, Floats, float], tuple[Floats, Floats]]
"""Latency and time of visible failure of attempts, ∞ for what does not happen, NaN for an unknown attempt.

The arguments are the jobs that try, when their attempts start (since the job began), and the age at which they are
cancelled.
"""


@dataclass(frozen=True, kw_only=True)
class PolicyOutcome(Figures):
    """The `Figures` of a policy on a law; `objective` is the requested figure as a user reads it."""

    policy: Policy
    objective: dict[str, Any]
    law: str
    cost: float

    @property
    def figure(self) -> float:
        """The figure that the objective minimises."""
        value = self.objective["value"]
        return float("inf") if value is None else Objective.parse(self.objective["name"]).report(value)

    def to_dict(self) -> dict[str, Any]:
        params = {key: list(value) if isinstance(value, tuple) else value for key, value in self.policy.params.items()}
        return {
            "policy": self.policy.spec(),
            "kind": self.policy.name,
            "parameters": params,
            "objective": self.objective,
            **self.figures(),
        }


@np.errstate(all="ignore")  # figures beyond all floats are ∞, which is reported as such
def evaluate_policy(
    law: Any,
    policy: str | Policy,
    *,
    cost: float = 0.0,
    wall_clock: float = 0.0,
    objective: str = "mean",
    **params: Any,
) -> PolicyOutcome:
    """The figures of a policy: duration, tail, submissions and the load on the system.

    Parameters
    ----------
    policy
        A policy, or its text, such as `hedge(d=300,t_inf=900)`.
    law, wall_clock, params
        As in `expected_duration`.
    cost
        Seconds between the decision to submit again and the start of the new copy.
    objective
        The figure to report beside the others: `mean`, `quantile:0.95`, `deadline:600`…

    Returns
    -------
    PolicyOutcome
        Figures that are infinite, or that are not computed for this law, are None.

    Examples
    --------
    >>> import latfit
    >>> law = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
    >>> round(latfit.evaluate_policy(law, "hedge(d=300,t_inf=900)").expected_duration, 2)
    303.37
    """
    law, policy, goal = as_law(law, **params), parse_policy(policy), Objective.parse(objective)
    c, shifted = check_time("cost", cost), with_wall_clock(law, wall_clock)
    if not completion_probability(law) > 0:
        raise RestartError("no attempt ever completes under this law: no policy can help")
    plan = policy.plan(shifted, c)
    figure = {"name": str(goal), "value": finite(goal.report(goal.of_plan(plan)))}
    figures = plan.figures
    # no formula under visible failures: drawn jobs, where they end
    if has_failures(law) and figures["quantiles"]["0.5"] is None and np.isfinite(plan.mean):
        durations = simulate_policy(shifted, policy, DRAWN_JOBS, np.random.default_rng(0), cost=c).durations
        drawn = np.quantile(durations, QUANTILES, method="inverted_cdf")
        figures["quantiles"] = {str(q): finite(x) for q, x in zip(QUANTILES, drawn, strict=True)}
    return PolicyOutcome(policy=policy, **figures, objective=figure, law=label(law), cost=c)


@dataclass(frozen=True, eq=False)
class Followed:
    """Jobs under a policy.

    `durations` are the completion times, ∞ where a job was not done; `spent` the times until completion or giving up.
    Jobs that are `off` needed an unknown attempt or too many attempts; their `spent` is the time until then.
    """

    durations: Floats
    spent: Floats
    submissions: Floats
    job_seconds: Floats
    off: Bools


def follow(
    policy: Policy, size: int, attempts: Attempts, rng: np.random.Generator, *, cost: float = 0.0, most: float = np.inf
) -> Followed:
    """Follow `size` jobs under a policy, all of them one copy at a time.

    `rng` draws sleeps with jitter and which jobs make a copy that has a probability. A job that is not done after
    `most` submissions is `off`. If all copies of a job have failed visibly, the next one begins early: after the pause
    that the policy makes between the end of the last copy and the start of the next, or after the cost where these
    overlap. A copy that is only made beside another (the second request of a hedge) is then left out.
    """
    done, left = np.full((2, size), np.inf)  # when a job is done or goes off; ∞ until it is known
    over, begins, planned_start, planned_end, submitted = np.zeros((5, size))
    copies: list[tuple[Ints, Floats, Floats]] = []
    for number, copy in enumerate(policy.submissions(cost, size, rng)):
        start = np.broadcast_to(np.asarray(copy.start, dtype=np.float64), done.shape)
        with np.errstate(invalid="ignore"):  # what follows a copy that is never cancelled has no time: NaN loses
            begins = begins + (start - planned_start if copy.after is None else copy.after)
            if copy.after is None:  # where nothing is out any more, because copies failed, it begins after its pause
                pause = start - planned_end
                begins = np.fmin(begins, over + np.where(pause >= 0, pause, cost))
            planned_start, planned_end = start, np.maximum(planned_end, start + copy.age)
        due = (begins * (1 + ROUNDING) < done) & np.isinf(left)
        if not due.any():
            break
        if number >= most:
            left[due] = begins[due]
            break
        if copy.beside:
            due &= over > begins
        if copy.probability < 1:
            due &= rng.random(size) < copy.probability
        jobs = np.flatnonzero(due)
        latency, failure = attempts(jobs, begins[jobs], copy.age)
        known = ~np.isnan(latency)
        left[jobs[~known]] = begins[jobs[~known]]
        jobs, latency, failure = jobs[known], latency[known], failure[known]
        ends = begins[jobs] + np.minimum(np.minimum(latency, failure), copy.age)
        completed = latency <= np.minimum(failure, copy.age)
        done[jobs] = np.minimum(done[jobs], np.where(completed, ends, np.inf))
        over[jobs] = np.maximum(over[jobs], ends)
        submitted[jobs] += 1
        copies.append((jobs, begins[jobs], ends))
    off = np.isfinite(left)
    done = np.where(off, np.inf, done)
    spent = np.where(off, left, np.where(np.isfinite(done), done, over))
    job_seconds = np.zeros(size)
    for jobs, starts, ends in copies:
        job_seconds[jobs] += np.minimum(ends, spent[jobs]) - starts
    return Followed(done, spent, submitted, job_seconds, off)


def _draw(law: Law, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Latency and time of visible failure of `size` attempts; ∞ for what does not happen."""
    p, F = rng.random(size), completion_probability(law)
    latency = np.where(p <= F, law.ppf(np.minimum(p, F)), np.inf)
    if not has_failures(law):
        return latency, np.full(size, np.inf)
    times = failure_times(law)
    failure = np.append(times, np.inf)[np.searchsorted(law.failed(times), p - F, side="left")]
    return latency, np.where(p > F, failure, np.inf)


def simulate_policy(
    law: Any, policy: str | Policy, size: int, rng: np.random.Generator, *, cost: float = 0.0, **params: Any
) -> Followed:
    """Draw `size` jobs under a policy, copy by copy.

    `law`, `policy`, `cost` and `params` are as in `evaluate_policy`; `rng` draws the latencies. Returns the jobs as
    arrays: `durations`, `submissions`, `job_seconds`.

    >>> import latfit
    >>> import numpy as np
    >>> latfit.simulate_policy("exponential", "timeout(t=3)", 5, np.random.default_rng(0), rate=0.5).durations.size
    5
    """
    law, policy, c = as_law(law, **params), parse_policy(policy), check_time("cost", cost)
    try:
        ends = policy.most_submissions is not None or policy.plan(law, c).success > 0
    except RestartError:  # resubmission under visible failures has no formula, but ends
        ends = True
    if not ends:
        raise RestartError(f"nothing completes under {policy.spec(4)}: no job would ever end")
    return follow(policy, size, lambda jobs, *_: _draw(law, jobs.size, rng), rng, cost=c)
