"""What a policy brings on a law, and jobs followed under it, copy by copy: drawn from a law, or taken from a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.restart.completion import draw
from latfit.restart.derived import ROUNDING, check_time, completion_probability, with_wall_clock
from latfit.restart.objectives import Objective
from latfit.restart.policies import Policy, Submission, as_policy
from latfit.restart.result import Figures, label

Attempts = Callable[[Ints, Floats, float], tuple[Floats, Floats]]
"""Latency and time of visible failure of attempts, ∞ for what does not happen, NaN where nothing is known of one.

The arguments: whose attempts, when they start (since the job began), at which age they are cancelled.
"""


@dataclass(frozen=True, kw_only=True)
class PolicyOutcome(Figures):
    """What a policy brings on a law; None where a figure is infinite or is not computed.

    The fields are those of `Figures`; `objective` is the figure that was asked for, as a user reads it.
    """

    policy: Policy
    objective: dict[str, Any]
    law: str
    cost: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: finite numbers, strings, None."""
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
    law: Law, policy: str | Policy, *, cost: float = 0.0, wall_clock: float = 0.0, objective: str = "mean"
) -> PolicyOutcome:
    """What a policy brings: duration, tail, submissions and the load on the system.

    Parameters
    ----------
    law
        The law of one attempt.
    policy
        A policy, or its text, such as `hedge(d=300,t_inf=900)`.
    cost
        Seconds between the decision to submit again and the start of the new copy.
    wall_clock
        Seconds that each job itself runs, beside its latency.
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
    law, policy, goal = as_law(law), as_policy(policy), Objective.parse(objective)
    c, r = check_time("cost", cost), check_time("wall-clock time", wall_clock)
    if not completion_probability(law) > 0:
        raise RestartError("no attempt ever completes under this law: no policy can help")
    plan = policy.plan(with_wall_clock(law, r), c)
    value = finite(goal.report(goal.of_plan(plan)))
    objective_figure = {"name": str(goal), "value": value}
    return PolicyOutcome(policy=policy, **plan.figures, objective=objective_figure, law=label(law), cost=c)


@dataclass(frozen=True, eq=False)
class Followed:
    """Jobs under a policy.

    `durations` are the completion times, ∞ where a job was not done; `spent` the times until completion or giving up.
    `off` are the jobs of which an attempt is not known, or that needed too many: there `spent` is what they had spent.
    """

    durations: Floats
    spent: Floats
    submissions: Floats
    job_seconds: Floats
    off: Bools


class _Jobs:
    """Jobs under way: when each is done, when the last of its copies is over, when its next copy begins."""

    def __init__(self, size: int) -> None:
        self.copies: list[tuple[Ints, Floats, Floats]] = []
        self.done, self.left = np.full((2, size), np.inf)  # when a job is done or goes off; ∞ until it is known
        self.over, self.begins, self.planned_start, self.planned_end, self.submitted = np.zeros((5, size))

    @np.errstate(invalid="ignore")  # what follows a copy that is never cancelled has no planned time: NaN loses
    def due(self, copy: Submission, cost: float) -> Bools:
        """Set `begins` of the next copy; which jobs are not done by then."""
        start = np.broadcast_to(np.asarray(copy.start, dtype=np.float64), self.done.shape)
        self.begins = self.begins + (start - self.planned_start if copy.after is None else copy.after)
        if copy.after is None:  # where nothing is out any more, because copies failed, it begins after its pause
            pause = start - self.planned_end
            self.begins = np.fmin(self.begins, self.over + np.where(pause >= 0, pause, cost))
        self.planned_start = start
        self.planned_end = np.maximum(self.planned_end, start + copy.age)
        return np.asarray((self.begins * (1 + ROUNDING) < self.done) & np.isinf(self.left))

    def submit(self, jobs: Ints, age: float, attempts: Attempts) -> None:
        latency, failure = attempts(jobs, self.begins[jobs], age)
        known = ~np.isnan(latency)
        self.left[jobs[~known]] = self.begins[jobs[~known]]
        jobs, latency, failure = jobs[known], latency[known], failure[known]
        begins = self.begins[jobs]
        ends = begins + np.minimum(np.minimum(latency, failure), age)
        self.done[jobs] = np.minimum(self.done[jobs], np.where(latency <= np.minimum(failure, age), ends, np.inf))
        self.over[jobs] = np.maximum(self.over[jobs], ends)
        self.submitted[jobs] += 1
        self.copies.append((jobs, begins, ends))

    def result(self) -> Followed:
        off = np.isfinite(self.left)
        done = np.where(off, np.inf, self.done)
        spent = np.where(off, self.left, np.where(np.isfinite(done), done, self.over))
        used = np.zeros(done.size)
        for jobs, begins, ends in self.copies:
            used[jobs] += np.minimum(ends, spent[jobs]) - begins
        return Followed(done, spent, self.submitted, used, off)


def follow(
    policy: Policy, size: int, attempts: Attempts, rng: np.random.Generator, *, cost: float = 0.0, most: float = np.inf
) -> Followed:
    """`size` jobs under a policy, all of them one copy at a time.

    `rng` draws who makes a copy that is made with a probability, and sleeps with jitter. A job that is not done after
    `most` submissions counts as `off`. Where a job has no copy out because all of them failed visibly, the next one
    begins at once: after the pause that the policy makes between the end of the last copy and the start of the next,
    after the cost where these overlap. A copy that is only made beside another (the second request of a hedge) is
    left out then.
    """
    jobs = _Jobs(size)
    for number, copy in enumerate(policy.submissions(cost, size, rng)):
        due = jobs.due(copy, cost)
        if not due.any():
            break
        if number >= most:
            jobs.left[due] = jobs.begins[due]
            break
        if copy.beside:
            due &= jobs.over > jobs.begins
        if copy.probability < 1:
            due &= rng.random(size) < copy.probability
        jobs.submit(np.flatnonzero(due), copy.age, attempts)
    return jobs.result()


def simulate_policy(
    law: Law, policy: str | Policy, size: int, rng: np.random.Generator, *, cost: float = 0.0
) -> Followed:
    """Draw `size` jobs under a policy, copy by copy.

    Examples
    --------
    >>> import numpy as np, latfit
    >>> from latfit.restart import simulate_policy
    >>> law = latfit.parse_law("exponential(rate=1)")
    >>> jobs = simulate_policy(law, "copies(b=2)", 1000, np.random.default_rng(0))
    >>> bool(0.4 < jobs.durations.mean() < 0.6)
    True

    """
    law, c = as_law(law), check_time("cost", cost)
    return follow(as_policy(policy), size, lambda jobs, *_: draw(law, jobs.size, rng), rng, cost=c)
