"""Did a log change, when and in what; the timeout of then and of now; and what following it would have brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latfit.decision import Options, Warned, prepare
from latfit.errors import LogError, counted
from latfit.evidence import Dependence, dependence, mixing, probes_of
from latfit.evidence.changes import Changes, find_changes
from latfit.logs import ProbeLog
from latfit.table import ProbeTable
from latfit.tracking.windows import Backtest, Window, backtest, edges_of, iso, windows
from latfit.units import seconds

MIN_PROBES_FOR_DRIFT = 40  # with a time
BACKTEST_CONTRADICTS = 1.5  # over the E_J of the windows, from which their timeouts are withheld


@dataclass(frozen=True, eq=False)
class Drift:
    """What `latfit drift` says of a log, or of a group of it; `groups` has one for each group."""

    key: dict[str, str]
    probes: int
    cutoff: float
    changes: Changes
    windows: tuple[Window, ...]
    backtest: Backtest | None
    dependence: Dependence | None
    warnings: tuple[Warned, ...]
    groups: tuple[Drift, ...] = ()
    refused: dict[str, str] = field(default_factory=dict)  # groups that say nothing, and why

    def to_dict(self) -> dict[str, Any]:
        """The contract's document."""
        changes = [
            {
                "at": None if change.at is None else iso(change.at),
                "kind": change.kind,
                "p_value": change.p_value,
                "index": change.index,
                "median": list(change.median),
                "ratio": list(change.ratio),
            }
            for change in self.changes.changes
        ]
        return {
            "group": self.key or None,
            "probes": self.probes,
            "cutoff": self.cutoff,
            "changes": changes,
            "windows": [window.to_dict() for window in self.windows],
            "daily_cycle": self.changes.daily_cycle,
            "weekly_cycle": self.changes.weekly_cycle,
            "backtest": [] if self.backtest is None else [score.to_dict() for score in self.backtest.scores],
            "dependence": self.dependence and self.dependence.to_dict(),
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
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
    log : it must say when its probes were submitted.
    window : how wide the windows are, such as 1d or 7d; by default the segments between the change points.
    by : columns of the log; each group is looked at on its own too.
    cost : seconds that each resubmission costs.
    current : the timeout in use, to see what it costs in each window and in the backtest.
    cutoff, failed, seed : as in `latfit.analyze`.

    Examples
    --------
    >>> import latfit
    >>> result = drift(latfit.example_log())
    >>> result.changes.changes, len(result.windows)
    ((), 3)
    """
    options = Options(cutoff=cutoff, failed=failed, cost=cost, current=current, laws=(), test=False, seed=seed)
    whole = _of_group({}, probes_of(log), window, options)
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        return whole
    groups, refused = [], {}
    for values, part in log.groups(columns).items():
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
            f"the time of submission is known of {timed.size} of {counted(probes.n, 'probe')}; drift needs at least "
            f"{MIN_PROBES_FOR_DRIFT}: name the column with --column submitted=NAME"
        )
    prepared = prepare(probes.take(timed), options)
    probes, T = prepared.seen or probes, prepared.cutoff.cutoff
    assert probes.submitted is not None
    when = (probes.submitted * 1e6).astype("datetime64[us]")
    changes = find_changes(when, probes.latency, probes.status.astype(np.int8), T)
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
    """Why the timeouts may not be believed."""
    warnings = []
    if probes.facts.queue:
        warnings.append(Warned("queue", "these are waits in a queue: a resubmitted job loses its place in it"))
    if (mixed := mixing(probes)) is not None:
        name = mixed.column.name
        warnings.append(
            Warned("groups-differ", f"the log mixes different populations: see --by {name} for each {name}")
        )
    if tested is None:
        return (*warnings, Warned("no-backtest", "there are too few outcomes for a backtest"))
    scores = {score.policy: score.expected_duration for score in tested.scores}
    promised = [(row.expected_duration, row.probes) for row in rows if row.expected_duration is not None]
    if not np.isfinite(scores["tracked"]):
        return (*warnings, Warned("never-done", "no job was done in the backtest, whatever the timeout"))
    E_J = sum(E * n for E, n in promised) / max(1, sum(n for _, n in promised))
    if dependent is not None and dependent.found and scores["tracked"] > BACKTEST_CONTRADICTS * E_J > 0:
        follow = f"slow probes follow slow ones (rank correlation {dependent.strongest:.2f})"
        warnings.append(Warned("dependence", f"{follow}: a resubmitted job is not independent of the first attempt"))
        warnings.append(
            Warned(
                "dependent",
                f"E_J of the windows promises {seconds(E_J)} a job, the backtest by replay "
                f"{seconds(scores['tracked'])}: their timeouts are withheld, and a tracker must not be used here",
            )
        )
    if scores["waiting"] <= scores["tracked"]:
        waits = "in the backtest no tracked timeout does better than waiting until the cutoff"
        warnings.append(Warned("waiting-wins", waits))
    return tuple(warnings)
