"""Jobs followed under a policy, copy by copy: drawn from a law, or taken from a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from latfit.numbers import Bools, Floats, Ints
from latfit.restart.plan import ROUNDING
from latfit.restart.policies.base import Policy, Submission

Attempts = Callable[[Ints, Floats, float], tuple[Floats, Floats]]
"""Latency and time of visible failure of attempts, ∞ for what does not happen, NaN where nothing is known of one.

The arguments: whose attempts, when they start (since the job began), at which age they are cancelled.
"""


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


@dataclass(eq=False)
class _Jobs:
    """Jobs under way: when each is done, when the last of its copies is over, when its next copy begins."""

    done: Floats  # ∞ where it is not known yet
    left: Floats  # when a job went off, ∞ where it did not
    over: Floats
    begins: Floats
    planned_start: Floats
    planned_end: Floats
    submitted: Floats
    copies: list[tuple[Ints, Floats, Floats]] = field(default_factory=list)

    @classmethod
    def new(cls, size: int) -> _Jobs:
        """Jobs that have not begun."""
        done, left = np.full((2, size), np.inf)
        over, begins, start, end, submitted = np.zeros((5, size))
        return cls(done, left, over, begins, start, end, submitted)

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
        """One copy of each of some jobs."""
        begins = self.begins[jobs]
        latency, failure = attempts(jobs, begins, age)
        unknown = np.isnan(latency)
        if unknown.any():
            self.left[jobs[unknown]] = begins[unknown]
            known = ~unknown
            jobs, begins, latency, failure = jobs[known], begins[known], latency[known], failure[known]
        ends = begins + np.minimum(np.minimum(latency, failure), age)
        self.done[jobs] = np.minimum(self.done[jobs], np.where(latency <= np.minimum(failure, age), ends, np.inf))
        self.over[jobs] = np.maximum(self.over[jobs], ends)
        self.submitted[jobs] += 1
        self.copies.append((jobs, begins, ends))

    def result(self) -> Followed:
        """What became of them."""
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

    Where a job has no copy out because all of them failed visibly, the next one begins at once: after the pause that
    the policy makes between the end of the last copy and the start of the next, after the cost where these overlap. A
    copy that is only made beside another (the second request of a hedge) is left out then.

    Parameters
    ----------
    policy
        What is submitted when.
    size
        How many jobs.
    attempts
        Where latencies and failures come from.
    rng
        Draws who makes a copy that is made with a probability, and sleeps with jitter.
    cost
        Seconds between the decision to submit again and the start of the new copy.
    most
        Submissions after which a job that is not done counts as `off`.

    """
    jobs = _Jobs.new(size)
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
