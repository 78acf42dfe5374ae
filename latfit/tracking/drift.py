"""Did a log change, when and in what; the timeout of then and of now; and what following it would have brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from latfit.decision import Options, Warned, prepare
from latfit.errors import LogError, counted
from latfit.evidence import Dependence, Observations, dependence, mixing
from latfit.evidence.changes import Changes, find_changes
from latfit.logs import ProbeLog
from latfit.tracking.backtest import Backtest, backtest
from latfit.tracking.windows import Window, edges_of, iso, windows
from latfit.units import seconds

FEWEST = 40  # probes with a time
CONTRADICTS = 1.5  # the backtest over the E_J of the windows, from which these are not to be believed
RESAMPLES = 199


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
        found = self.changes
        changes = [
            {"at": None if c.at is None else iso(c.at), "kind": c.kind, "p_value": c.p_value, "index": c.index,
             "median": list(c.median), "ratio": list(c.ratio)} for c in found.changes
        ]  # fmt: skip
        return {
            "group": self.key or None,
            "probes": self.probes,
            "cutoff": self.cutoff,
            "changes": changes,
            "windows": [window.to_dict() for window in self.windows],
            "daily_cycle": found.daily_cycle,
            "weekly_cycle": found.weekly_cycle,
            "backtest": [] if self.backtest is None else [score.to_dict() for score in self.backtest.scores],
            "dependence": self.dependence and self.dependence.to_dict(),
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
            "groups": [{**self.keyed(group), **group.to_dict()} for group in self.groups],
            "refused_groups": self.refused,
        }

    @staticmethod
    def keyed(group: Drift) -> dict[str, str]:
        """The values of the columns that make a group."""
        return {name: value for name, value in group.key.items() if name not in ("probes", "cutoff")}


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
    >>> found = drift(latfit.example_log())
    >>> found.changes.changes, len(found.windows)
    ((), 3)
    """
    options = Options(cutoff=cutoff, failed=failed, cost=cost, current=current, laws=(), resamples=RESAMPLES,
                      test=False, seed=seed)  # fmt: skip
    whole = _one({}, Observations.of(log), window, options)
    columns = [by] if isinstance(by, str) else list(by)
    if not columns:
        return whole
    groups, refused = [], {}
    for values, part in log.groups(columns).items():
        key = dict(zip(columns, values, strict=True))
        try:
            groups.append(_one(key, Observations.of(part), window, replace(options, cutoff=whole.cutoff)))
        except LogError as problem:
            refused[", ".join(values)] = str(problem)
    return replace(whole, groups=tuple(groups), refused=refused)


def _one(key: dict[str, str], seen: Observations, window: str | None, options: Options) -> Drift:
    """One group of probes."""
    known = np.flatnonzero(np.isfinite(seen.submitted)) if seen.submitted is not None else np.empty(0, np.int64)
    if known.size < FEWEST:
        raise LogError(
            f"the time of submission is known of {known.size} of {counted(seen.n, 'probe')}; drift needs at least "
            f"{FEWEST}: name the column with --column submitted=NAME"
        )
    case = prepare(seen.take(known), options)
    part, T = case.seen, case.cutoff.cutoff
    assert part is not None
    assert part.submitted is not None
    when = (part.submitted * 1e6).astype("datetime64[us]")
    found = find_changes(when, part.latency, part.status.astype(np.int8), T)
    edges = edges_of(part.submitted, window, [_seconds(c.at) for c in found.changes])
    fixed = replace(options, cutoff=T, failed="retry", censoring="independent")
    tested = backtest(part, T, cost=options.cost, current=options.current)
    depends = dependence(part)
    rows = windows(part, edges, fixed)
    warned = _warnings(part, rows, tested, depends)
    if any(one.code == "dependent" for one in warned):
        rows = [replace(row, timeout=None, low=None, high=None, kept_regret=None, current_regret=None) for row in rows]
    return Drift(key, part.n, T, found, tuple(rows), tested, depends, warned)


def _seconds(at: np.datetime64 | None) -> float:
    assert at is not None
    return float(at.astype("datetime64[us]").astype(np.int64)) / 1e6


def _warnings(
    seen: Observations, rows: list[Window], tested: Backtest | None, depends: Dependence | None
) -> tuple[Warned, ...]:
    """Why the timeouts may not be believed."""
    told = []
    if seen.queue:
        told.append(Warned("queue", "these are waits in a queue: a resubmitted job loses its place in it"))
    if (mixed := mixing(seen)) is not None:
        name = mixed.column.name
        told.append(Warned("groups-differ", f"the log mixes different populations: see --by {name} for each {name}"))
    if tested is None:
        return (*told, Warned("no-backtest", "there are too few outcomes for a backtest"))
    scores = {score.policy: score.expected_duration for score in tested.scores}
    promised = [(row.expected_duration, row.probes) for row in rows if row.expected_duration is not None]
    if not np.isfinite(scores["tracked"]):
        return (*told, Warned("never-done", "no job was done in the backtest, whatever the timeout"))
    E_J = sum(E * n for E, n in promised) / max(1, sum(n for _, n in promised))
    if depends is not None and depends.found and scores["tracked"] > CONTRADICTS * E_J > 0:
        follow = f"slow probes follow slow ones (rank correlation {depends.strongest:.2f})"
        told.append(Warned("dependence", f"{follow}: a resubmitted job is not independent of the first attempt"))
        told.append(
            Warned(
                "dependent",
                f"E_J of the windows promises {seconds(E_J)} a job, the backtest by replay "
                f"{seconds(scores['tracked'])}: their timeouts are withheld, and a tracker must not be used here",
            )
        )
    if scores["waiting"] <= scores["tracked"]:
        waits = "in the backtest no tracked timeout does better than waiting until the cutoff"
        told.append(Warned("waiting-wins", waits))
    return tuple(told)
