"""Stage 11: the whole pipeline in one call, from a log to a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from latfit.decision import Decision, Options, Recommendation, Warned, decide
from latfit.decision.recommend import group_costs
from latfit.errors import SampleError, counted
from latfit.evidence import as_logged, period_of, probes_of
from latfit.logs import LogFacts, ProbeLog
from latfit.logs.frames import as_log
from latfit.outliers import OutlierRatio, ratio_by_cutoff
from latfit.sample import LatencySample
from latfit.table import Groups, ProbeTable


@dataclass(frozen=True)
class Group:
    """A group; it `differs` if intervals are apart and the pooled timeout costs it over 1 % (`pooled_regret`)."""

    key: dict[str, str]
    decision: Decision
    differs: bool
    pooled_regret: float | None

    def to_dict(self) -> dict[str, Any]:
        decision, ratio = self.decision, self.decision.outliers
        fields = {"count": "count", "ratio": "estimate", "ratio_low": "low", "ratio_high": "high"}
        return {
            "group": self.key,
            **self.key,
            "probes": sum(decision.counts.values()),
            **{name: ratio and getattr(ratio, field) for name, field in fields.items()},
            "best": decision.best and decision.best.fit.name,
            **(decision.timeout.to_dict() if decision.timeout else {"verdict": None, "timeout": None}),
            "differs": self.differs,
            "pooled_regret": self.pooled_regret,
            "warnings": list(decision.codes),
            "error": decision.error,
        }


@dataclass(frozen=True)
class Analysis:
    """Everything that the report shows; `to_dict()` is the JSON of `latfit analyze`.

    Examples
    --------
    >>> import latfit
    >>> result = latfit.analyze(latfit.example_log(), resamples=0, test=False)
    >>> result.timeout.timeout, result.decision.outliers.count, sorted(result.to_dict())[:4]
    (358.0, 53, ['best', 'current', 'evidence', 'fits'])
    """

    facts: LogFacts
    decision: Decision
    by_cutoff: tuple[OutlierRatio, ...]
    groups: tuple[Group, ...]
    by: tuple[str, ...]
    warnings: tuple[Warned, ...]
    seen: ProbeTable | None = None

    @property
    def timeout(self) -> Recommendation:
        assert self.decision.timeout is not None
        return self.decision.timeout

    def to_dict(self) -> dict[str, Any]:
        """The contract's document; numbers may be infinite where the command line writes null."""
        decision, refused = self.decision, self.facts.refused
        ratio, joint = decision.outliers, decision.joint
        assert ratio is not None
        assert decision.cutoff is not None
        log = {"path": self.facts.path, "format": self.facts.format, "probes": sum(decision.counts.values())}
        log |= {**decision.counts, "refused": refused.to_list(), "refused_count": refused.count}
        log |= {"resolution": decision.whole.resolution, "period": self.seen and period_of(self.seen)}
        names = {"joint_ratio": "estimate", "joint_low": "low", "joint_high": "high", "joint_law": "law"}
        outliers = {**ratio.to_dict(), "count": ratio.count, "method": ratio.method}
        outliers |= {name: joint and getattr(joint, field) for name, field in names.items()}
        outliers |= {"cutoff_reason": decision.cutoff.reason, "by_cutoff": [row.to_dict() for row in self.by_cutoff]}
        return {
            "log": log,
            "outliers": outliers,
            "latency": vars(decision.latency) if decision.latency else None,
            "fits": [fitted.to_dict() for fitted in decision.fits],
            "best": decision.best and decision.best.fit.name,
            "timeout": self.timeout.to_dict(),
            "timeout_without_outliers": decision.without_outliers and decision.without_outliers.to_dict(),
            "evidence": decision.evidence and decision.evidence.to_dict(),
            "current": decision.current and dict(vars(decision.current)),
            "groups": [group.to_dict() for group in self.groups],
            "warnings": [dict(vars(warning)) for warning in self.warnings],
        }

    def to_frame(self) -> Any:
        """The fitted laws as a pandas DataFrame, one row a law."""
        import pandas as pd

        rows = []
        for fit in (fitted.to_dict() for fitted in self.decision.fits):
            ks, timeout = fit.pop("ks"), fit.pop("timeout") or {}
            more = {"timeout": timeout.get("timeout"), "regret": timeout.get("regret")}
            rows.append({**fit, **{f"ks_{key}": value for key, value in ks.items()}, **more})
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        t = self.timeout.timeout
        what = f"timeout {t:g} s" if t is not None else self.timeout.verdict
        return f"<Analysis of {self.facts.path}: {counted(sum(self.decision.counts.values()), 'probe')}, {what}>"

    def _repr_html_(self) -> str:
        shown: str = import_module("latfit.report.page").to_html_fragment(self)  # a later stage: a view of this value
        return shown


def analyze(log: Any, *, by: str | Sequence[str] = (), **options: Any) -> Analysis:
    """From a log to a decision: evidence, outliers, fits, goodness of fit, the timeout with intervals, warnings.

    Parameters
    ----------
    log
        A `ProbeLog`, a `LatencySample`, or an array, Series or DataFrame of latencies in seconds.
    by
        Columns to group by.
    options
        Those of `Options`, such as `cutoff=600.0`, `cost=5.0`, `risk=0.1`, `laws=["weibull"]`, `resamples=0`.

    Returns
    -------
    Analysis
        `.timeout` is the recommendation, `.to_dict()` the JSON of the command line.

    Examples
    --------
    >>> import latfit
    >>> latfit.analyze(latfit.example_log(), resamples=0, test=False).timeout.timeout
    358.0

    """
    table = log if isinstance(log, LatencySample) else as_log(log)
    asked = Options(**options)
    probes = probes_of(table) if isinstance(table, ProbeLog) else table
    decision = decide([probes], asked, detail=True)[0].require()
    assert decision.cutoff is not None
    facts = table.facts if isinstance(table, ProbeLog) else LogFacts("sample", "sample")
    by = (by,) if isinstance(by, str) or not np.iterable(by) else tuple(by)
    columns, groups = _grouped(table, probes, by, decision, asked)
    by_cutoff = tuple(ratio_by_cutoff(decision.whole, cutoff=decision.cutoff.cutoff))
    warnings = (*about_reading(facts), *decision.warnings)
    seen = probes if isinstance(probes, ProbeTable) else None
    return Analysis(facts, decision, by_cutoff, groups, columns, warnings, seen)


def about_reading(facts: LogFacts) -> tuple[Warned, ...]:
    """Refused rows, and a log without outcomes."""
    warnings, rows = [], facts.refused
    if rows.count:
        reasons = ", ".join(f"{count} × {reason}" for reason, count in rows.reasons.items())
        message = f"{counted(rows.count, 'row')} of the log {'was' if rows.count == 1 else 'were'} refused ({reasons})"
        message += f", {'the first ' if rows.count > 1 else ''}at line {rows.earliest.line}"
        if {"unknown status", "no latency", "no status", "wrong number of fields"} & set(rows.reasons):
            message += "; if they never came back, the outlier ratio is too low: say so with --status lost=WORD"
        warnings.append(Warned("refused", message))
    if not facts.has_outcomes:
        lost = "rows without a latency are read as lost, " if facts.as_lost else ""
        hidden = f"probes that {'failed' if facts.as_lost else 'were lost'} or were given up do not show in it"
        warnings.append(Warned("no-outcomes", f"the log has no column of outcomes: {lost}{hidden}"))
    return tuple(warnings)


def _grouped(
    table: ProbeLog | LatencySample,
    probes: ProbeTable | LatencySample,
    by: tuple[str, ...],
    pooled: Decision,
    options: Options,
) -> tuple[tuple[str, ...], tuple[Group, ...]]:
    if by:
        if not isinstance(table, ProbeLog):
            raise SampleError(f"a sample has no column {by[0]!r} to group by: give the log that it comes from")
        return by, _groups(as_logged(table), by, table.table.group_by(by), pooled, options)
    assert pooled.timeout is not None
    mixing = pooled.evidence.mixing if pooled.evidence else None
    if pooled.evidence is None or mixing is None or mixing.groups > 30 or not isinstance(probes, ProbeTable):
        return (), ()
    column, binding = mixing.column.as_text(), pooled.evidence.binding or ""
    waits = pooled.timeout.retry is None and (binding == column.name or binding.startswith(f"{column.name}="))
    if not waits and "mixed" not in pooled.timeout.withheld:
        return (), ()
    groups = Groups.of_codes(column.codes, [(str(label),) for label in column.labels])
    return (column.name,), _groups(probes, (column.name,), groups, pooled, options)


def _groups(
    probes: ProbeTable, by: Sequence[str], groups: Groups, pooled: Decision, options: Options
) -> tuple[Group, ...]:
    assert pooled.cutoff is not None
    parts = [part.ordered() for part in probes.parts(groups)]
    options = replace(options, cutoff=pooled.cutoff.cutoff, law=None, current=None)
    decisions = decide(parts, options, keys=groups.keys)
    formula = pooled.timeout.formula if pooled.timeout else None
    regrets = np.full(len(decisions), np.nan)
    if formula is not None and formula.timeout is not None:
        samples = [each.whole if each.sample is None else each.sample for each in decisions]
        regrets = group_costs(samples, formula.timeout, pooled.cutoff.cutoff, options.cost)
    results = []
    for key, decision, regret in zip(groups.keys, decisions, regrets.tolist(), strict=True):
        differs = regret > 0.01 and _apart(decision.timeout, formula)
        named = dict(zip(by, key, strict=True))
        results.append(Group(named, decision, differs, None if np.isnan(regret) else max(0.0, regret)))
    return tuple(results)


def _apart(group: Recommendation | None, pooled: Recommendation | None) -> bool:
    if group is None or pooled is None or group.intervals is None or pooled.intervals is None:
        return False
    (low, high), (pooled_low, pooled_high) = group.intervals.timeout, pooled.intervals.timeout
    return low > pooled_high or high < pooled_low
