"""The timeout of each stretch of a log, what keeping the one before costs, and what policies would have brought.

In the backtest a job is submitted with every probe, under the timeout that the policy would have set then. If the probe
is not back by that time, the job is resubmitted at that moment, under the timeout of then, and takes the latency of the
next probe that the log shows. An outcome is known at submission + latency and not earlier: feeding outcomes in the
order of submission would leak the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latfit.decision import Options, Prepared, Recommendation, prepare
from latfit.decision.recommend import enough, recommend, with_intervals
from latfit.errors import LogError
from latfit.laws import Empirical
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.restart import expected_duration
from latfit.sample import LatencySample
from latfit.table import COMPLETED, FAILED, LOST, ProbeTable, tallied
from latfit.tracking.tracker import Tracker
from latfit.units import parse_duration

DAY = 86_400.0
USUAL_WIDTHS = (60.0, 600.0, 3600.0, 6 * 3600.0, DAY, 7 * DAY, 28 * DAY)
MAX_WINDOWS = 1000
MIN_WARM_UP = 50  # outcomes, and a tenth of all, before the fixed timeout is set and scoring begins


@dataclass(frozen=True)
class Window:
    """One stretch of a log: its probes, their outlier ratio, and the timeout by them alone.

    `start` and `end` are seconds since 1970. `low` and `high` bound the timeout (95 %). `kept_regret` is what the
    timeout of the window before costs in this one over its own (0.1 = 10 %), `current_regret` what the timeout in
    use does; None where one of the two is not known, ∞ where it would never end.
    """

    start: float
    end: float
    probes: int
    ratio: float
    timeout: float | None
    low: float | None
    high: float | None
    expected_duration: float | None
    kept_regret: float | None
    current_regret: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        fields = {name: finite(value) if isinstance(value, float) else value for name, value in vars(self).items()}
        del fields["start"], fields["end"]
        return {"from": iso(self.start), "to": iso(self.end), **fields}


def iso(seconds: float | np.datetime64) -> str:
    """A time as ISO text, UTC, to the second."""
    at = seconds if isinstance(seconds, np.datetime64) else np.datetime64(round(seconds), "s")
    return f"{at.astype('datetime64[s]')}Z"


def edges_of(when: Floats, width: str | None, changes: Sequence[float]) -> Floats:
    """Where windows begin, and the last one ends.

    A given width counts from Monday, 00:00 UTC; without one the change points are the edges, and in a log without
    any, the narrowest usual width whose windows have a hundred probes.
    """
    first, last = float(when[0]), float(when[-1])
    if width is None and changes:
        return np.array([first, *changes, np.nextafter(last, np.inf)])
    if width is None:
        span = max(last - first, 1.0)
        step = next((w for w in USUAL_WIDTHS if when.size * w / span >= 100), span)
    else:
        step = parse_duration(width)
        if not step > 0 or (last - first) / step > MAX_WINDOWS:
            raise LogError(
                f"windows of {width!r}: the log spans {(last - first) / DAY:.3g} days; it can have at most "
                f"{MAX_WINDOWS} windows, each longer than 0 s"
            )
    monday = 4 * DAY  # the first one after 1970 began
    start = monday + (first - monday) // step * step
    return np.asarray(np.arange(start, last + step, step) if last >= start + step else np.array([start, start + step]))


def windows(probes: ProbeTable, edges: Floats, options: Options) -> list[Window]:
    """The windows that have probes, each decided on its own with the cutoff of all."""
    assert probes.submitted is not None
    cuts: Ints = np.searchsorted(probes.submitted, edges)
    full = np.flatnonzero(np.diff(cuts))
    samples = [probes.take(slice(cuts[i], cuts[i + 1])).sample for i in full]
    rows: list[Window] = []
    previous = None
    for i, (prepared, best) in zip(full, _recommendations(samples, options), strict=True):
        low, high = best.intervals.timeout if best and best.intervals else (None, None)
        timeout, E_J = (best.timeout, best.expected_duration) if best else (None, None)
        law, regrets = Empirical.of(prepared.sample), []
        for other in (previous, options.current):
            t = min(np.inf if other is None else other, prepared.cutoff.cutoff)
            kept = max(float(expected_duration(law, t, cost=options.cost)) / E_J - 1, 0.0) if other and E_J else None
            regrets.append(kept)
        counts = prepared.sample.n, prepared.ratio.estimate
        rows.append(Window(float(edges[i]), float(edges[i + 1]), *counts, timeout, low, high, E_J, *regrets))
        previous = previous if timeout is None else timeout
    return rows


def _recommendations(
    samples: Sequence[LatencySample], options: Options
) -> list[tuple[Prepared, Recommendation | None]]:
    """The timeout of each sample by the same rule as everywhere, without fits; None where too few completed."""
    prepared = [prepare(sample, options) for sample in samples]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # resamples in which nothing completes
        of_usable = iter(recommend([each for each in prepared if enough(each.sample)], options))
        pairs: list[tuple[Prepared, Recommendation | None]] = []
        for at, each in enumerate(prepared):
            plain = next(of_usable)[0] if enough(each.sample) else None
            pairs.append((each, plain and with_intervals(plain, each, options, (str(at),), None)[0]))
    return pairs


@dataclass(frozen=True)
class Scored:
    """What a policy brought: Σ time spent / jobs done, submissions a job, and the share not done at the log's end."""

    policy: str
    expected_duration: float
    submissions: float
    ran_off: float

    def to_dict(self) -> dict[str, Any]:
        """The contract's fields and more."""
        return {name: value if isinstance(value, str) else finite(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Backtest:
    """The scores, and the tracked timeout at each probe that was scored, with its time in seconds since 1970."""

    scores: tuple[Scored, ...]
    when: Floats
    tracked: Floats


def backtest(probes: ProbeTable, cutoff: float, *, cost: float = 0.0, current: float | None = None) -> Backtest | None:
    """Fixed, pooled, tracked and best in hindsight, waiting, and the timeout in use, on one group of probes.

    Parameters
    ----------
    probes : the probes in order of submission; None is returned without times, or with too few of them.
    cutoff : the longest that an attempt may take; `waiting` gives up here.
    cost : seconds that each resubmission costs.
    current : a timeout in use, to be scored too.
    """
    if probes.submitted is None:
        return None
    probes = probes.take(np.flatnonzero(np.isfinite(probes.submitted)))
    assert probes.submitted is not None
    known_at = outcome_times(probes, cutoff)
    warm = max(MIN_WARM_UP, int(0.1 * probes.n))
    if probes.n < 2 * warm:
        return None
    order = np.argsort(known_at, kind="stable")
    start = int(np.searchsorted(probes.submitted, known_at[order[warm - 1]]))
    if probes.n - start < MIN_WARM_UP:
        return None
    ladder = tracked_timeouts(probes, known_at, order, cutoff, cost)
    marks = np.unique(np.linspace(warm, probes.n, 41).astype(np.int64)[:-1])  # when the pooled timeout is set anew
    decided = _pooled_timeouts(probes, order, marks, cutoff, cost)
    upto = np.searchsorted(known_at[order], probes.submitted, side="right")  # outcomes known at each submission
    pooled = decided[np.clip(np.searchsorted(marks, upto, side="right") - 1, 0, None)]
    policies = {"fixed": np.full(probes.n, decided[0]), "pooled": pooled, "tracked": ladder}
    if current is not None:
        policies["current"] = np.full(probes.n, min(current, cutoff))
    policies["waiting"] = np.full(probes.n, cutoff)
    jobs = np.arange(start, probes.n)[:: max(1, (probes.n - start) // 50_000)]  # evenly spread over a longer log
    scores = [Scored(name, *_replayed(probes, jobs, timeouts, cutoff, cost)) for name, timeouts in policies.items()]
    x = probes.latency[(probes.status == COMPLETED) & (probes.latency <= cutoff)]
    tried = np.unique(np.append(np.quantile(x, np.linspace(0.02, 1, 60), method="inverted_cdf"), cutoff))
    constant = [np.full(probes.n, max(t, probes.resolution)) for t in tried[tried > 0]]
    scores.append(Scored("hindsight", *min(_replayed(probes, jobs, t, cutoff, cost) for t in constant)))
    return Backtest(tuple(scores), probes.submitted[start:], ladder[start:])


def outcome_times(probes: ProbeTable, cutoff: float) -> Floats:
    """When the outcome of each probe is known; of a lost one, at the cutoff."""
    assert probes.submitted is not None
    waited = np.where(
        (probes.status == LOST) | ~np.isfinite(probes.latency), cutoff, np.minimum(probes.latency, cutoff)
    )
    return np.asarray(probes.submitted + waited)


def tracked_timeouts(probes: ProbeTable, known_at: Floats, order: Ints, cutoff: float, cost: float) -> Floats:
    """The tracker's timeout at each submission, fed with outcomes as they become known."""
    assert probes.submitted is not None
    # probes show what lies beyond the timeout, so being late is no safety that slack would have to buy
    tracker = Tracker(initial=cutoff, cutoff=cutoff, cost=cost, slack=0.0)
    latency = np.where(np.isfinite(probes.latency), probes.latency, cutoff)[order]
    status = probes.status[order].astype(np.int8)
    step = max(5, probes.n // 4000)
    marks, timeouts = np.arange(step, probes.n + 1, step), [cutoff]
    for end in marks:
        tracker.learn(latency[end - step : end], status[end - step : end])
        timeouts.append(tracker.timeout)
    at = np.searchsorted(known_at[order][marks - 1], probes.submitted, side="right")
    return np.asarray(np.maximum(np.array(timeouts)[at], probes.resolution))


def _pooled_timeouts(probes: ProbeTable, order: Ints, marks: Ints, cutoff: float, cost: float) -> Floats:
    """What `latfit timeout` would have given after the outcomes at `marks`; the cutoff where it gave none."""
    latency, status = probes.latency[order], probes.status[order].astype(np.int8)
    step = probes.resolution
    samples = [replace(tallied(latency[:end], status[:end]), resolution=step).cut(cutoff) for end in marks]
    options = Options(cutoff=cutoff, cost=cost, resamples=0, censoring="independent")
    timeouts = [best.timeout if best else None for _, best in _recommendations(samples, options)]
    return np.maximum([cutoff if t is None or t <= 0 else min(t, cutoff) for t in timeouts], probes.resolution)


def _replayed(
    probes: ProbeTable, jobs: Ints, timeouts: Floats, cutoff: float, cost: float
) -> tuple[float, float, float]:
    """Σ time spent / jobs done, submissions a job done, and the share of jobs that ran off the log."""
    assert probes.submitted is not None
    inside = probes.latency <= cutoff
    completed, failed = (probes.status == COMPLETED) & inside, (probes.status == FAILED) & inside
    gap = (probes.submitted[-1] - probes.submitted[0]) / probes.n
    sparse = bool(completed.any()) and gap > float(probes.latency[completed].mean())  # the next in order, then
    spent, submitted, done = 0.0, 0, 0
    at, clock = jobs, probes.submitted[jobs].copy()
    for _ in range(5000):  # then the jobs that are left are given up
        submitted += at.size
        t, x = timeouts[at], probes.latency[at]
        back: Bools = completed[at] & (x <= t)
        used = np.where(back, x, np.where(failed[at] & (x <= t), x, t) + cost)
        spent += float(used.sum())
        done += int(back.sum())
        clock = (clock + used)[~back]
        at = np.maximum(np.searchsorted(probes.submitted, clock), at[~back] + sparse)
        at, clock = at[at < probes.n], clock[at < probes.n]
        if not at.size:
            break
    if not done:
        return np.inf, np.inf, 1.0
    return spent / done, submitted / done, 1 - done / jobs.size
