"""What policies would have brought on a log, each with only what was known at the time.

A job is submitted with every probe, under the timeout that the policy would have set then. If the probe is not back
by that time, the job is resubmitted at that moment, under the timeout of then, and takes the latency of the next
probe that the log shows. An outcome is known at submission + latency and not earlier: feeding outcomes in the order
of submission would leak the future.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latfit.decision import Options
from latfit.evidence import Observations
from latfit.logs.table import COMPLETED, FAILED, LOST, tallied
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.tracking.tracker import Tracker
from latfit.tracking.windows import recommendations

WARM_UP = 0.1  # the share of outcomes after which the fixed timeout is set, and from which all are scored
FEWEST = 50  # outcomes before that
DECISIONS = 40  # times at which the pooled timeout is set anew
UPDATES = 4000  # times at which the tracked one is
JOBS = 50_000  # jobs that are followed, evenly spread over a longer log
ROUNDS = 5000  # resubmissions after which a job is given up
GRID = 60  # timeouts tried in hindsight


@dataclass(frozen=True)
class Scored:
    """What a policy brought: Σ time spent / jobs done, submissions a job, and the share not done at the log's end."""

    policy: str
    expected_duration: float
    submissions: float
    ran_off: float

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        return {"policy": self.policy, "expected_duration": finite(self.expected_duration),
                "submissions": finite(self.submissions), "ran_off": self.ran_off}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Backtest:
    """The scores, and the tracked timeout at each probe that was scored, with its time in seconds since 1970."""

    scores: tuple[Scored, ...]
    when: Floats
    tracked: Floats


def backtest(seen: Observations, cutoff: float, *, cost: float = 0.0, current: float | None = None) -> Backtest | None:
    """Fixed, pooled, tracked and best in hindsight, waiting, and the timeout in use, on one group of probes.

    Parameters
    ----------
    seen : the probes in order of submission; None is returned without times, or with too few of them.
    cutoff : the longest that an attempt may take; `waiting` gives up here.
    cost : seconds that each resubmission costs.
    current : a timeout in use, to be scored too.
    """
    if seen.submitted is None:
        return None
    seen = seen.take(np.flatnonzero(np.isfinite(seen.submitted)))
    assert seen.submitted is not None
    known = _known(seen, cutoff)
    warm = max(FEWEST, int(WARM_UP * seen.n))
    if seen.n < 2 * warm:
        return None
    order = np.argsort(known, kind="stable")
    start = int(np.searchsorted(seen.submitted, known[order[warm - 1]]))
    if seen.n - start < FEWEST:
        return None
    ladder = tracked_timeouts(seen, known, order, cutoff, cost)
    marks = np.unique(np.linspace(warm, seen.n, DECISIONS + 1).astype(np.int64)[:-1])
    decided = _decided(seen, order, marks, cutoff, cost)
    upto = np.searchsorted(known[order], seen.submitted, side="right")  # outcomes known at each submission
    pooled = decided[np.clip(np.searchsorted(marks, upto, side="right") - 1, 0, None)]
    policies = {"fixed": np.full(seen.n, decided[0]), "pooled": pooled, "tracked": ladder}
    if current is not None:
        policies["current"] = np.full(seen.n, min(current, cutoff))
    policies["waiting"] = np.full(seen.n, cutoff)
    jobs = np.arange(start, seen.n)[:: max(1, (seen.n - start) // JOBS)]
    scores = [Scored(name, *_replayed(seen, jobs, timeouts, cutoff, cost)) for name, timeouts in policies.items()]
    x = seen.latency[(seen.status == COMPLETED) & (seen.latency <= cutoff)]
    tried = np.unique(np.append(np.quantile(x, np.linspace(0.02, 1, GRID), method="inverted_cdf"), cutoff))
    each = [_replayed(seen, jobs, np.full(seen.n, max(t, seen.resolution)), cutoff, cost) for t in tried[tried > 0]]
    scores.append(Scored("hindsight", *min(each)))
    return Backtest(tuple(scores), seen.submitted[start:], ladder[start:])


def _known(seen: Observations, cutoff: float) -> Floats:
    """When the outcome of each probe is known; of a lost one, at the cutoff."""
    assert seen.submitted is not None
    waited = np.where((seen.status == LOST) | ~np.isfinite(seen.latency), cutoff, np.minimum(seen.latency, cutoff))
    return np.asarray(seen.submitted + waited)


def tracked_timeouts(seen: Observations, known: Floats, order: Ints, cutoff: float, cost: float) -> Floats:
    """The tracker's timeout at each submission, fed with outcomes as they become known."""
    assert seen.submitted is not None
    # probes show what lies beyond the timeout, so being late is no safety that slack would have to buy
    tracker = Tracker(initial=cutoff, cutoff=cutoff, cost=cost, slack=0.0)
    latency = np.where(np.isfinite(seen.latency), seen.latency, cutoff)[order]
    status = seen.status[order].astype(np.int8)
    step = max(5, seen.n // UPDATES)
    marks = np.arange(step, seen.n + 1, step)
    timeouts = np.empty(marks.size + 1)
    timeouts[0] = cutoff
    for i, end in enumerate(marks):
        tracker.learn_codes(latency[end - step : end], status[end - step : end])
        timeouts[i + 1] = tracker.timeout
    at = np.searchsorted(known[order][marks - 1], seen.submitted, side="right")
    return np.maximum(timeouts[at], seen.resolution)


def _decided(seen: Observations, order: Ints, marks: Ints, cutoff: float, cost: float) -> Floats:
    """What `latfit timeout` would have said when so many outcomes were known; the cutoff where it said none."""
    latency, status = seen.latency[order], seen.status[order].astype(np.int8)
    step = seen.resolution
    samples = [replace(tallied(latency[:end], status[:end]), resolution=step).cut(cutoff) for end in marks]
    asked = Options(cutoff=cutoff, cost=cost, resamples=0, censoring="independent")
    found = [made.timeout for _, made in recommendations(samples, asked)]
    return np.maximum([cutoff if t is None or t <= 0 else min(t, cutoff) for t in found], seen.resolution)


def _replayed(
    seen: Observations, jobs: Ints, timeouts: Floats, cutoff: float, cost: float
) -> tuple[float, float, float]:
    """Σ time spent / jobs done, submissions a job done, and the share of jobs that ran off the log."""
    assert seen.submitted is not None
    inside = seen.latency <= cutoff
    completed, failed = (seen.status == COMPLETED) & inside, (seen.status == FAILED) & inside
    gap = (seen.submitted[-1] - seen.submitted[0]) / seen.n
    sparse = bool(completed.any()) and gap > float(seen.latency[completed].mean())  # the next in order, then
    spent, submitted, done = 0.0, 0, 0
    at, clock = jobs, seen.submitted[jobs].copy()
    for _ in range(ROUNDS):
        submitted += at.size
        t, x = timeouts[at], seen.latency[at]
        back: Bools = completed[at] & (x <= t)
        used = np.where(back, x, np.where(failed[at] & (x <= t), x, t) + cost)
        spent += float(used.sum())
        done += int(back.sum())
        clock = (clock + used)[~back]
        at = np.maximum(np.searchsorted(seen.submitted, clock), at[~back] + sparse)
        at, clock = at[at < seen.n], clock[at < seen.n]
        if not at.size:
            break
    if not done:
        return np.inf, np.inf, 1.0
    return spent / done, submitted / done, 1 - done / jobs.size
