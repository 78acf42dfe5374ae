"""What the log itself says a policy would have brought: hedges, delayed resubmission, copies, schedules.

The rule is that of a timeout's replay (`replay.py`): a job begins when a probe was submitted, with that probe's
latency, and each later copy takes the latency of the next probe of the job's own group that the log shows submitted at
or after the copy's start and that no other copy of the job has which is still out (of the next in order, where probes
are sparse). A job that needs a probe after the last one has run off the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from latfit.evidence.replay import FAR, Figures, Replay, _Followed, _Resampled, _summaries, _Track
from latfit.numbers import Floats, Ints, finite
from latfit.restart.evaluate import Followed, follow
from latfit.restart.policies import Policy
from latfit.restart.policies.timeout import Timeout
from latfit.restart.result import QUANTILES


@dataclass(frozen=True)
class ReplayedPolicy(Figures):
    """What a policy would have brought on the log.

    `undone` is the share of the jobs that the policy left undone: a finite schedule gives up, and the time until then
    counts in the mean; under a policy that never cancels all copies may be lost, and the mean is infinite.
    `gain_low` and `gain_high` bound the gain in the mean over waiting until the cutoff, or over another policy, as a
    share of that.
    """

    policy: Policy
    undone: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; None where a figure is infinite."""
        figures = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "policy"}
        plain = {name: finite(value) if isinstance(value, float) else value for name, value in figures.items()}
        return {"policy": self.policy.spec(), **plain}


def replay_policies(
    log: Replay, policies: Sequence[Policy], *, against: Policy | None = None
) -> tuple[ReplayedPolicy, ...]:
    """Policies replayed on a log.

    Parameters
    ----------
    log
        The log as `replay` has it, with its cutoff, cost, groups and seed.
    policies
        What to replay.
    against
        The policy that gains are told over; None: waiting until the cutoff.

    Examples
    --------
    >>> import numpy as np
    >>> from latfit.evidence import replay, replay_policies
    >>> from latfit.restart.policies import parse_policy
    >>> from latfit.table import ProbeTable
    >>> rng = np.random.default_rng(0)
    >>> probes = ProbeTable(rng.lognormal(5.5, 1, 5000), np.zeros(5000, int), np.arange(5000.0))
    >>> (hedge,) = replay_policies(replay(probes, 1e5), [parse_policy("hedge(d=300)")])
    >>> hedge.expected_duration < replay(probes, 1e5).waiting.expected_duration
    True

    """
    track, cost, seed = log._search.track, log._search.cost, log._search.seed

    def followed(policy: Policy) -> Followed:
        return follow(policy, track.starts.size, _Attempts(track), np.random.default_rng(seed), cost=cost, most=FAR)

    base = followed(Timeout(log.waiting.timeout) if against is None else against)
    blocks = _Resampled.of(_row(base), seed)
    return tuple(_summary(policy, followed(policy), blocks) for policy in policies)


class _Attempts:
    """Latencies and failures of the copies of a track's jobs; knows which probe each copy has, and until when."""

    def __init__(self, track: _Track) -> None:
        jobs = track.starts.size
        self.track, self.last, self.begun = track, track.starts.copy(), np.zeros(jobs, dtype=bool)
        self.held, self.until = np.full((1, jobs), -1), np.full((1, jobs), -np.inf)  # a row for each copy at a time

    def __call__(self, jobs: Ints, begins: Floats, age: float) -> tuple[Floats, Floats]:
        """See `latfit.restart.evaluate.Attempts`."""
        track, first = self.track, self.track.starts[jobs]
        at = self._next(jobs, begins, first)
        gone = at >= track.ends[first]
        at = np.where(gone, first, at)
        latency, failure = (np.where(each[at], track.latency[at], np.inf) for each in (track.completed, track.failed))
        self._hold(jobs, begins, at, begins + np.minimum(np.minimum(latency, failure), age))
        return np.where(gone, np.nan, latency), failure

    def _next(self, jobs: Ints, begins: Floats, first: Ints) -> Ints:
        """The next probe that no other copy of the job has which is still out; at first the job's own."""
        at = np.where(self.begun[jobs], self.track.after(self.track.key[first] + begins, self.last[jobs]), first)
        self.begun[jobs] = True
        if self.track.sparse:
            self.last[jobs] = at
            return at
        held, out = self.held[:, jobs], self.until[:, jobs] > begins
        while (taken := ((held == at) & out).any(axis=0)).any():
            at = at + taken
        return at

    def _hold(self, jobs: Ints, begins: Floats, at: Ints, until: Floats) -> None:
        """Note the probe of each copy in a row that is free."""
        if not (free := self.until[:, jobs] <= begins).any(axis=0).all():
            self.held = np.append(self.held, np.full_like(self.held[:1], -1), axis=0)
            self.until = np.append(self.until, np.full_like(self.until[:1], -np.inf), axis=0)
            free = np.append(free, np.ones_like(free[:1]), axis=0)
        row = free.argmax(axis=0)
        self.held[row, jobs], self.until[row, jobs] = at, until


def _row(found: Followed) -> _Followed:
    """Jobs as the one row of a table."""
    return _Followed(found.spent[None], found.off[None], found.submissions[None])


def _summary(policy: Policy, found: Followed, blocks: _Resampled) -> ReplayedPolicy:
    """The figures; the mean is the time that all jobs spent over the number that were done or given up."""
    (row,) = _summaries(np.array([np.inf]), _row(found), blocks)
    values = {item.name: getattr(row, item.name) for item in fields(Figures)}
    levels = np.quantile(found.durations, QUANTILES, method="inverted_cdf")
    values["quantiles"] = dict(zip(map(str, QUANTILES), map(finite, levels), strict=True))
    if np.isinf(found.spent).any():
        values.update(low=np.inf, high=np.inf, gain_low=-np.inf, gain_high=-np.inf)
    undone = float((np.isinf(found.durations) & ~found.off).mean())
    return ReplayedPolicy(**values, policy=policy, undone=undone)
