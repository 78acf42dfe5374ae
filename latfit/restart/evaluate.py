"""What a policy brings on a law, and jobs drawn under it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from latfit.errors import RestartError
from latfit.laws.base import Law
from latfit.laws.empirical import as_law
from latfit.numbers import Floats, finite
from latfit.restart.completion import draw
from latfit.restart.follow import follow
from latfit.restart.objectives import Objective
from latfit.restart.policies import Policy, parse_policy
from latfit.restart.result import Figures, label
from latfit.restart.shifted import with_wall_clock
from latfit.restart.times import check_time, completes


@dataclass(frozen=True, kw_only=True)
class PolicyOutcome(Figures):
    """What a policy brings on a law; None where a figure is infinite or is not computed.

    The fields are those of `Outcome`; `objective` is the figure that was asked for, as a user reads it.
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
            "expected_duration": self.expected_duration,
            "std_duration": self.std_duration,
            "quantiles": self.quantiles,
            "objective": self.objective,
            "submissions": self.submissions,
            "job_seconds": self.job_seconds,
            "parallel": self.parallel,
            "success": self.success,
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
    law = as_law(law)
    c, r = check_time("cost", cost), check_time("wall-clock time", wall_clock)
    what = parse_policy(policy) if isinstance(policy, str) else policy
    if not completes(law) > 0:
        raise RestartError("no attempt ever completes under this law: no policy can help")
    goal = Objective.parse(objective)
    plan = what.plan(with_wall_clock(law, r), c)
    return PolicyOutcome(
        policy=what,
        **plan.figures,
        objective={"name": str(goal), "value": finite(goal.report(goal.of_plan(plan)))},
        law=label(law),
        cost=c,
    )


class Simulated(NamedTuple):
    """Jobs drawn under a policy: completion times (∞: given up), submissions and job-seconds."""

    durations: Floats
    submissions: Floats
    job_seconds: Floats


def simulate_policy(
    law: Law, policy: str | Policy, size: int, rng: np.random.Generator, *, cost: float = 0.0
) -> Simulated:
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
    law = as_law(law)
    c = check_time("cost", cost)
    what = parse_policy(policy) if isinstance(policy, str) else policy
    jobs = follow(what, size, lambda made, *_: draw(law, made.size, rng), rng, cost=c)
    return Simulated(jobs.durations, jobs.submissions, jobs.job_seconds)
