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
from latfit.evidence import as_logged, probes_of
from latfit.logs import LogFacts, ProbeLog
from latfit.logs.frames import as_log
from latfit.outliers import OutlierRatio, ratio_by_cutoff
from latfit.resample import RESAMPLES
from latfit.sample import LatencySample
from latfit.table import Groups, ProbeTable

WORTH_IT = 0.01  # what a group must gain by a timeout of its own


@dataclass(frozen=True)
class Group:
    """One group beside the pooled answer.

    `differs` if its interval and the pooled one have nothing in common and the pooled timeout costs it
    more than 1 %; `pooled_regret` is what the pooled timeout costs this group more than its own (∞: it never ends).
    """

    key: dict[str, str]
    decision: Decision
    differs: bool
    pooled_regret: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        own, ratio = self.decision, self.decision.outliers
        return {
            "group": self.key,
            **self.key,
            "probes": sum(own.counts.values()),
            "count": ratio and ratio.count,
            "ratio": ratio and ratio.estimate,
            "ratio_low": ratio and ratio.low,
            "ratio_high": ratio and ratio.high,
            "best": own.best and own.best.fit.name,
            **(own.timeout.to_dict() if own.timeout else {"verdict": None, "timeout": None}),
            "differs": self.differs,
            "pooled_regret": self.pooled_regret,
            "warnings": list(own.codes),
            "error": own.error,
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
        """The recommendation."""
        assert self.decision.timeout is not None
        return self.decision.timeout

    def to_dict(self) -> dict[str, Any]:
        """The contract's document; numbers may be infinite where the command line writes null."""
        made, refused = self.decision, self.facts.refused
        ratio, joint, latency = made.outliers, made.joint, made.latency
        assert ratio is not None
        assert made.cutoff is not None
        return {
            "log": {
                "path": self.facts.path,
                "format": self.facts.format,
                "probes": sum(made.counts.values()),
                **made.counts,
                "refused": refused.to_list(),
                "refused_count": refused.count,
                "resolution": made.whole.resolution,
            },
            "outliers": {
                **ratio.to_dict(),
                "count": ratio.count,
                "method": ratio.method,
                "cutoff_reason": made.cutoff.reason,
                "joint_ratio": joint.estimate if joint else None,
                "joint_low": joint.low if joint else None,
                "joint_high": joint.high if joint else None,
                "joint_law": joint.law if joint else None,
                "by_cutoff": [r.to_dict() for r in self.by_cutoff],
            },
            "latency": vars(latency) if latency else None,
            "fits": [fitted.to_dict() for fitted in made.fits],
            "best": made.best and made.best.fit.name,
            "timeout": self.timeout.to_dict(),
            "timeout_without_outliers": made.without_outliers and made.without_outliers.to_dict(),
            "evidence": made.evidence and made.evidence.to_dict(),
            "current": made.current and made.current.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
            "warnings": [{"code": w.code, "message": w.message} for w in self.warnings],
        }

    def to_frame(self) -> Any:
        """The fitted laws as a pandas DataFrame, one row a law."""
        import pandas as pd

        return pd.DataFrame([_flat(fitted.to_dict()) for fitted in self.decision.fits])

    def __repr__(self) -> str:
        made = self.timeout
        what = f"timeout {made.timeout:g} s" if made.timeout is not None else made.verdict
        return f"<Analysis of {self.facts.path}: {counted(sum(self.decision.counts.values()), 'probe')}, {what}>"

    def _repr_html_(self) -> str:
        shown: str = import_module("latfit.report").to_html_fragment(self)  # a later stage: a view of this value
        return shown


def _flat(fit: dict[str, Any]) -> dict[str, Any]:
    ks, timeout = fit.pop("ks"), fit.pop("timeout") or {}
    more = {"timeout": timeout.get("timeout"), "regret": timeout.get("regret")}
    return {**fit, **{f"ks_{key}": value for key, value in ks.items()}, **more}


def analyze(
    log: Any,
    *,
    cutoff: float | None = None,
    failed: str = "retry",
    censoring: str = "auto",
    laws: str | Sequence[str] | None = None,
    law: str | None = None,
    cost: float = 0.0,
    current: float | None = None,
    by: str | Sequence[str] = (),
    resamples: int = RESAMPLES,
    test: bool = True,
    seed: int = 0,
    risk: float = 0.3,
) -> Analysis:
    """From a log to a decision: evidence, outliers, fits, goodness of fit, the timeout with intervals, warnings.

    Parameters
    ----------
    log
        A `ProbeLog`, a `LatencySample`, or an array, Series or DataFrame of latencies in seconds.
    cutoff
        When a probe still out counts as an outlier (default: from the log).
    failed, censoring
        How visible failures, and probes given up before the cutoff, are read; see `Options`.
    laws, law
        Those to fit (default: all classical ones); the fitted one whose timeout is recommended (default: the data).
    cost
        Seconds that a restart costs.
    current
        The timeout in use now, in seconds.
    by
        Columns to group by.
    resamples, test, seed
        0 leaves out every bootstrap, `test=False` that of the tests of fit; where random numbers begin.
    risk
        The largest loss that a schedule may bring if every retry takes as long as the first attempt would have.

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
    named = None if laws is None else (laws,) if isinstance(laws, str) else tuple(laws)
    options = Options(cutoff=cutoff, failed=failed, censoring=censoring, cost=cost, laws=named, law=law,
                      current=current, resamples=resamples, test=test, seed=seed, risk=risk)  # fmt: skip
    seen = table if not isinstance(table, ProbeLog) else probes_of(table)
    made = decide([seen], options, detail=True)[0].require()
    facts = table.facts if isinstance(table, ProbeLog) else LogFacts("sample", "sample")
    columns, groups = _grouped(table, seen, (by,) if isinstance(by, str) else tuple(by), made, options)
    assert made.cutoff is not None
    return Analysis(
        facts=facts,
        decision=made,
        by_cutoff=tuple(ratio_by_cutoff(made.whole, cutoff=made.cutoff.cutoff)),
        groups=groups,
        by=columns,
        warnings=(*about_reading(facts), *made.warnings),
        seen=seen if isinstance(seen, ProbeTable) else None,
    )


def _grouped(
    table: ProbeLog | LatencySample,
    seen: ProbeTable | LatencySample,
    by: tuple[str, ...],
    made: Decision,
    options: Options,
) -> tuple[tuple[str, ...], tuple[Group, ...]]:
    """The columns to group by, as asked for or the one that a mixed log is mixed by, and the decision of each group."""
    if by:
        if not isinstance(table, ProbeLog):
            raise SampleError(f"a sample has no column {by[0]!r} to group by: give the log that it comes from")
        return by, _groups(as_logged(table), by, table.table.group_by(by), made, options)
    mixed = made.evidence.mixing if made.evidence else None
    if mixed is None or not mixed.few or not isinstance(seen, ProbeTable) or not _splits(made, mixed.column.name):
        return (), ()
    column = mixed.column.as_text()
    return (column.name,), _groups(seen, (column.name,), Groups.of_codes(column.codes, column.keys), made, options)


def _splits(made: Decision, column: str) -> bool:
    """Whether a column is why the formula is withheld, or why waiting is the answer."""
    assert made.timeout is not None
    assert made.evidence is not None
    binding = made.evidence.binding or ""
    return "mixed" in made.timeout.withheld or (
        made.timeout.retry is None and (binding == column or binding.startswith(f"{column}="))
    )


def about_reading(facts: LogFacts) -> tuple[Warned, ...]:
    """Refused rows, and a log without outcomes."""
    found = []
    if facts.refused.count:
        rows = facts.refused
        reasons = ", ".join(f"{count} × {reason}" for reason, count in rows.reasons.items())
        what = f"{counted(rows.count, 'row')} of the log {'was' if rows.count == 1 else 'were'} refused ({reasons})"
        told = f"{what}, {'the first ' if rows.count > 1 else ''}at line {rows.earliest.line}"
        if {"unknown status", "no latency", "no status", "wrong number of fields"} & set(rows.reasons):
            told += "; if they never came back, the outlier ratio is too low: say so with --status lost=WORD"
        found.append(Warned("refused", told))
    if not facts.has_outcomes:
        told = "rows without a latency are read as lost, " if facts.as_lost else ""
        told += f"probes that {'failed' if facts.as_lost else 'were lost'} or were given up do not show in it"
        told = f"the log has no column of outcomes: {told}"
        found.append(Warned("no-outcomes", told))
    return tuple(found)


def _groups(
    seen: ProbeTable, by: Sequence[str], groups: Groups, pooled: Decision, options: Options
) -> tuple[Group, ...]:
    """One decision a group, all at the pooled cutoff."""
    assert pooled.cutoff is not None
    parts = [part.ordered() for part in seen.parts(groups)]
    found = decide(parts, replace(options, cutoff=pooled.cutoff.cutoff, law=None, current=None), keys=groups.keys)
    t = pooled.timeout.formula if pooled.timeout else None
    regrets = np.full(len(found), np.nan)
    if t is not None and t.timeout is not None:
        samples = [one.sample if one.sample is not None else one.whole for one in found]
        regrets, _ = group_costs(samples, t.timeout, pooled.cutoff.cutoff, options.cost)
    return tuple(
        Group(dict(zip(by, key, strict=True)), one, _differs(one.timeout, t, regret), _regret(regret))
        for key, one, regret in zip(groups.keys, found, regrets.tolist(), strict=True)
    )


def _regret(value: float) -> float | None:
    return None if np.isnan(value) else max(0.0, value)


def _differs(own: Recommendation | None, pooled: Recommendation | None, regret: float) -> bool:
    if own is None or pooled is None or own.intervals is None or pooled.intervals is None or not regret > WORTH_IT:
        return False
    (low, high), (pooled_low, pooled_high) = own.intervals.timeout, pooled.intervals.timeout
    return low > pooled_high or high < pooled_low
