"""Whether a log changed, when and how; the timeout of each stretch; and what following the changes would have brought.

The backtest replays the log under timeouts that change: those that the policy would have set when each probe was
submitted. An outcome is known at submission + latency and not earlier: feeding outcomes in the order of submission
would leak the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latfit.decision import Options, Warned, decide, prepare
from latfit.errors import LogError, counted
from latfit.evidence import Dependence, dependence, mixing, probes_of
from latfit.evidence.changes import Changes, find_changes
from latfit.evidence.replay import replay_changing
from latfit.laws import Empirical
from latfit.logs import ProbeLog
from latfit.numbers import Floats, Ints, plain_values
from latfit.restart.completion import regret
from latfit.table import A_MONDAY, COMPLETED, LOST, ProbeTable, tallied
from latfit.tracking.tracker import Tracker
from latfit.units import UNITS, parse_duration, seconds

MIN_PROBES_FOR_DRIFT = 40  # with a time
MIN_WARM_UP = 50  # outcomes, and a tenth of all, before the fixed timeout is set and scoring begins


@dataclass(frozen=True)
class Window:
    """One stretch of a log: its probes, their outlier ratio, and the timeout that they alone advise.

    `start` and `end` are seconds since 1970. `low` and `high` bound the timeout (95 %). `kept_regret` is the share by
    which the timeout of the previous window makes jobs slower in this one (0.1 = 10 %), `current_regret` the same for
    the timeout in use; None if one of the two is unknown, ∞ if jobs would never end.
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
        fields = plain_values(self)
        return {"from": iso(fields.pop("start")), "to": iso(fields.pop("end")), **fields}


@dataclass(frozen=True)
class Scored:
    """What a policy brought: Σ time spent / jobs done, submissions per job, and the share not done at the log's end."""

    policy: str
    expected_duration: float
    submissions: float
    ran_off: float


@dataclass(frozen=True, eq=False)
class Backtest:
    """The scores, and the tracked timeout at each scored probe, with its time in seconds since 1970."""

    scores: tuple[Scored, ...]
    when: Floats
    tracked: Floats


@dataclass(frozen=True, eq=False)
class Drift:
    """The result of `latfit drift` for a log, or for one of its groups; `groups` has the results of the groups."""

    key: dict[str, str]
    probes: int
    cutoff: float
    changes: Changes
    windows: tuple[Window, ...]
    backtest: Backtest | None
    dependence: Dependence | None
    warnings: tuple[Warned, ...]
    groups: tuple[Drift, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)  # groups without a result, and why

    def to_dict(self) -> dict[str, Any]:
        changes = self.changes.changes
        return {
            "group": self.key or None,
            "probes": self.probes,
            "cutoff": self.cutoff,
            "changes": [vars(change) | {"at": change.at and iso(change.at)} for change in changes],
            "windows": [window.to_dict() for window in self.windows],
            "daily_cycle": self.changes.daily_cycle,
            "weekly_cycle": self.changes.weekly_cycle,
            "backtest": [plain_values(score) for score in self.backtest.scores] if self.backtest else [],
            "dependence": self.dependence and self.dependence.to_dict(),
            "warnings": [vars(warning) for warning in self.warnings],
            "groups": [{**group.key, **group.to_dict()} for group in self.groups],
            "refused_groups": self.refused,
        }


def drift(
    log: ProbeLog,
    *,
    window: str | None = None,
    by: str | Sequence[str] = (),
    cost: float = 0.0,
    current: float | None = None,
    cutoff: float | None = None,
    failed: str = "retry",
    seed: int = 0,
) -> Drift:
    """Change points, cycles, the timeout by window, and a prequential backtest of a log.

    Parameters
    ----------
    log : must contain the times of submission.
    window : the width of the windows, such as 1d or 7d; by default they are the segments between the change points.
    by : columns of the log; each group gets a result of its own, too.
    cost : seconds that each resubmission costs.
    current : the timeout in use, to show what it costs in each window and in the backtest.
    cutoff, failed, seed : as in `latfit.analyze`.

    Examples
    --------
    >>> import latfit
    >>> result = drift(latfit.example_log())
    >>> result.changes.changes, len(result.windows)
    ((), 3)
    """
    how: dict[str, Any] = {"cutoff": cutoff, "failed": failed, "cost": cost, "current": current, "seed": seed}
    options = Options(laws=(), test=False, accept_implausible=True, **how)
    whole = _of_group({}, probes_of(log), window, options)
    columns = [by] if isinstance(by, str) else list(by)
    groups, refused = [], {}
    for values, part in log.groups(columns).items() if columns else ():
        key = dict(zip(columns, values, strict=True))
        try:
            groups.append(_of_group(key, probes_of(part), window, replace(options, cutoff=whole.cutoff)))
        except LogError as problem:
            refused[", ".join(values)] = str(problem)
    return replace(whole, groups=tuple(groups), refused=refused)


def _of_group(key: dict[str, str], probes: ProbeTable, window: str | None, options: Options) -> Drift:
    timed = np.flatnonzero(np.isfinite(probes.submitted)) if probes.submitted is not None else np.empty(0, np.int64)
    if timed.size < MIN_PROBES_FOR_DRIFT:
        raise LogError(
            f"the time of submission is known for {timed.size} of {counted(probes.n, 'probe')}; drift needs at least "
            f"{MIN_PROBES_FOR_DRIFT}: name the column with --column submitted=NAME"
        )
    prepared = prepare(probes.take(timed), options)
    probes, T = prepared.seen, prepared.cutoff.cutoff
    assert probes.submitted is not None
    changes = find_changes(probes.submitted, probes.latency, probes.status, T)
    change_times = np.array([change.at for change in changes.changes], dtype="datetime64[us]").astype(np.int64) / 1e6
    edges = edges_of(probes.submitted, window, change_times.tolist())
    rows = windows(probes, edges, replace(options, cutoff=T, failed="retry", censoring="independent"))
    tested = backtest(probes, T, cost=options.cost, current=options.current)
    dependent = dependence(probes)
    warnings = _warnings(probes, rows, tested, dependent)
    if any(warning.code == "dependent" for warning in warnings):
        rows = [replace(row, timeout=None, low=None, high=None, kept_regret=None, current_regret=None) for row in rows]
    return Drift(key, probes.n, T, changes, tuple(rows), tested, dependent, warnings)


def _warnings(
    probes: ProbeTable, rows: list[Window], tested: Backtest | None, dependent: Dependence | None
) -> tuple[Warned, ...]:
    warnings = []
    if probes.facts.queue:
        warnings.append(Warned("queue", "these are waits in a queue: a resubmitted job loses its place in it"))
    if (mixed := mixing(probes)) is not None:
        name = mixed.column.name
        message = f"the log mixes different populations: see --by {name} for each {name}"
        warnings.append(Warned("groups-differ", message))
    if tested is None:
        return (*warnings, Warned("no-backtest", "there are too few outcomes for a backtest"))
    tracked, waiting = ({score.policy: score for score in tested.scores}[name] for name in ("tracked", "waiting"))
    replayed = tracked.expected_duration
    if not np.isfinite(replayed):
        return (*warnings, Warned("never-done", "no job was done in the backtest, whatever the timeout"))
    promised = [(row.expected_duration, row.probes) for row in rows if row.expected_duration is not None]
    E_J = sum(E * n for E, n in promised) / max(1, sum(n for _, n in promised))
    if dependent is not None and dependent.found and replayed > 1.5 * E_J > 0:
        follow = f"slow probes follow slow ones (rank correlation {dependent.strongest:.2f})"
        warnings.append(Warned("dependence", f"{follow}: a resubmitted job is not independent of the first attempt"))
        message = (
            f"E_J of the windows promises {seconds(E_J)} a job, the backtest by replay {seconds(replayed)}: "
            "their timeouts are withheld, and a tracker must not be used here"
        )
        warnings.append(Warned("dependent", message))
    if waiting.expected_duration <= replayed:
        message = "in the backtest no tracked timeout does better than waiting until the cutoff"
        warnings.append(Warned("waiting-wins", message))
    return tuple(warnings)


# The timeout of each stretch


def iso(seconds: float | np.datetime64) -> str:
    """A time as ISO text, UTC, to the second."""
    at = seconds if isinstance(seconds, np.datetime64) else np.datetime64(round(seconds), "s")
    return f"{at.astype('datetime64[s]')}Z"


def edges_of(when: Floats, width: str | None, changes: Sequence[float]) -> Floats:
    """Edges of windows: of `width` from Monday, 00:00 UTC; or else at the changes; or else of a usual width.

    That width is the smallest that gives at most 200 windows, with at least 100 probes each on average.
    """
    first, last = float(when[0]), float(when[-1])
    if width is None and changes:
        return np.array([first, *changes, np.nextafter(last, np.inf)])
    if width is None:
        span = max(last - first, 1.0)
        usual = (parse_duration(width) for width in ("1m", "10m", "1h", "6h", "1d", "7d", "28d"))
        step = next((width for width in usual if width >= span * max(100 / when.size, 1 / 200)), span)
    else:
        step = parse_duration(width)
        if not step > 0 or (last - first) / step > 1000:
            raise LogError(
                f"windows of {width!r}: the log spans {(last - first) / UNITS['d']:.3g} days; it can have at most "
                "1000 windows, each longer than 0 s"
            )
    start = A_MONDAY + (first - A_MONDAY) // step * step
    return np.asarray(start + step * np.arange((last - start) // step + 2))


def windows(probes: ProbeTable, edges: Floats, options: Options) -> list[Window]:
    """The windows that have probes, each decided on its own with the cutoff of all."""
    assert probes.submitted is not None
    cuts: Ints = np.searchsorted(probes.submitted, edges)
    full = np.flatnonzero(np.diff(cuts))
    samples = [probes.take(slice(cuts[i], cuts[i + 1])).sample for i in full]
    rows: list[Window] = []
    previous = None
    for i, decision in zip(full, decide(samples, options, keys=[(str(i),) for i in range(len(samples))]), strict=True):
        best, ratio, sample = decision.timeout, decision.outliers, decision.sample
        assert best is not None
        assert ratio is not None
        assert sample is not None
        E_J, T = best.expected_duration, options.cutoff or np.inf
        low, high = best.intervals.timeout if best.intervals else (None, None)
        law = Empirical.of(sample) if E_J else None  # nothing completed: there is no law
        regrets = [regret(law, min(t, T) if t else None, E_J, cost=options.cost) for t in (previous, options.current)]
        span = float(edges[i]), float(edges[i + 1])
        rows.append(Window(*span, sample.n, ratio.estimate, best.timeout, low, high, E_J, *regrets))
        previous = best.timeout or previous
    return rows


# What policies would have brought


def backtest(probes: ProbeTable, cutoff: float, *, cost: float = 0.0, current: float | None = None) -> Backtest | None:
    """Every policy on probes with times, in their order, at most `cutoff` per attempt; None with too few of them."""
    assert probes.submitted is not None
    never = (probes.status == LOST) | ~np.isfinite(probes.latency)  # known to be lost at the cutoff
    known_at = probes.submitted + np.where(never, cutoff, np.minimum(probes.latency, cutoff))
    warm = max(MIN_WARM_UP, int(0.1 * probes.n))
    x = probes.latency[(probes.status == COMPLETED) & (probes.latency <= cutoff)]
    if not x.size or probes.n < 2 * warm:
        return None
    order = np.argsort(known_at, kind="stable")
    start = int(np.searchsorted(probes.submitted, known_at[order[warm - 1]]))
    if probes.n - start < MIN_WARM_UP:
        return None
    marks = np.unique(np.linspace(warm, probes.n, 41).astype(np.int64)[:-1])  # when the pooled timeout is set anew
    options = Options(
        cutoff=cutoff, cost=cost, laws=(), test=False, resamples=0, censoring="independent", accept_implausible=True
    )
    decided = np.full(marks.size, cutoff)  # what `latfit timeout` would have advised
    for k, end in enumerate(marks):  # one by one: together they would need 40 times the memory of the log
        known = order[:end]
        sample = tallied(probes.latency[known], probes.status[known].astype(np.int8))
        best = decide([replace(sample, resolution=probes.resolution).cut(cutoff)], options)[0].timeout
        if best is not None and best.timeout:
            decided[k] = max(min(best.timeout, cutoff), probes.resolution)
    upto = np.searchsorted(known_at[order], probes.submitted, side="right")  # outcomes known at each submission
    ladder = tracked_timeouts(probes, known_at, order, cutoff, cost)
    policies = {
        "fixed": np.full(probes.n, decided[0]),
        "pooled": decided[np.clip(np.searchsorted(marks, upto, side="right") - 1, 0, None)],
        "tracked": ladder,
        **({} if current is None else {"current": np.full(probes.n, min(current, cutoff))}),
        "waiting": np.full(probes.n, cutoff),
    }
    tried = np.unique(np.append(np.quantile(x, np.linspace(0.02, 1, 60), method="inverted_cdf"), cutoff))
    constant = {f"{t}": np.broadcast_to(max(t, probes.resolution), probes.n) for t in tried[tried > 0].tolist()}
    replayed = replay_changing(probes, cutoff, policies | constant, first=start, cost=cost)
    constants = [replayed.pop(name) for name in constant]
    replayed["hindsight"] = min(constants, key=lambda each: each.expected_duration)
    scores = [Scored(name, each.expected_duration, each.submissions, each.ran_off) for name, each in replayed.items()]
    return Backtest(tuple(scores), probes.submitted[start:], ladder[start:])


def tracked_timeouts(probes: ProbeTable, known_at: Floats, order: Ints, cutoff: float, cost: float) -> Floats:
    """The tracker's timeout at each submission, fed with outcomes as they become known."""
    assert probes.submitted is not None
    # probes show what lies beyond the timeout: no slack is needed to be on the safe side
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
