"""From a chunk of groups to one row of results a group: the function that every engine runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from latfit.buckets import Histogram
from latfit.decision import Decision, Options, decide
from latfit.decision.fits import simple_fits
from latfit.errors import LatfitError
from latfit.histograms import guaranteed_timeout
from latfit.numbers import finite
from latfit.table import Key, ProbeTable

Row = dict[str, Any]

PATHS: dict[str, tuple[type, str]] = {
    "probes": (int, ""),
    "completed": (int, "counts completed"),
    "failed": (int, "counts failed"),
    "censored": (int, "counts censored"),
    "lost": (int, "counts lost"),
    "cutoff": (float, "outliers cutoff"),
    "count": (int, "outliers count"),
    "ratio": (float, "outliers estimate"),
    "ratio_low": (float, "outliers low"),
    "ratio_high": (float, "outliers high"),
    "mean": (float, "latency mean"),
    "std": (float, "latency std"),
    "median": (float, "latency quantiles 0.5"),
    "best": (str, "best fit name"),
    "params": (str, "best fit params"),
    "joint_ratio": (float, "best fit rho"),
    "p_bootstrap": (float, "best ks p_bootstrap"),
    "verdict": (str, "timeout verdict"),
    "basis": (str, "timeout basis"),
    "withheld": (str, "timeout withheld"),
    "retry_timeouts": (str, "timeout retry timeouts"),
    "retry_expected_duration": (float, "timeout retry expected_duration"),
    "retry_worst_loss": (float, "timeout retry worst_loss"),
    "timeout": (float, "timeout timeout"),
    "low": (float, "timeout intervals timeout 0"),
    "high": (float, "timeout intervals timeout 1"),
    "exact_timeout": (float, "timeout exact_timeout"),
    "expected_duration": (float, "timeout expected_duration"),
    "expected_duration_corrected": (float, "timeout expected_duration_corrected"),
    "expected_duration_low": (float, "timeout intervals expected_duration 0"),
    "expected_duration_high": (float, "timeout intervals expected_duration 1"),
    "submissions": (float, "timeout submissions"),
    "speed_up_vs_cutoff": (float, "timeout speed_up_vs_cutoff"),
    "speed_up_vs_cutoff_low": (float, "timeout intervals speed_up 0"),
    "speed_up_vs_cutoff_high": (float, "timeout intervals speed_up 1"),
    "mixing": (str, "evidence mixing column name"),
    "mixing_share": (float, "evidence mixing share"),
    "lag1": (float, "evidence dependence lag1"),
    "changes": (int, "evidence drift changes"),
    "replay": (float, "evidence replay at 0 expected_duration"),
    "replay_waiting": (float, "evidence replay waiting expected_duration"),
    "guaranteed": (float, ""),
    "least": (float, ""),
    "worst_regret": (float, ""),
    "likely_regret": (float, ""),
    "warnings": (str, "codes"),
    "error": (str, "error"),
}
"""The columns of results: their types, and where a `Decision` has them. Every one may be None."""
FIELDS = {name: kind for name, (kind, _) in PATHS.items()}


def chunk_rows(groups: Mapping[Key, ProbeTable], options: Options) -> list[Row]:
    """One row a group: what cannot be answered is None, and `error` says why."""
    return [row_of(decision) for decision in decide(list(groups.values()), options, keys=list(groups))]


def row_of(decision: Decision) -> Row:
    """A decision as one row."""
    row = {name: _cell(decision, kind, path.split()) for name, (kind, path) in PATHS.items()}
    row["probes"] = sum(decision.counts.values())
    if decision.best is not None and decision.best.ks:  # a law of many parameters tells less of the ratio
        simple = simple_fits([fitted.fit for fitted in decision.fits])
        row["joint_ratio"] = finite((*simple, decision.best.fit)[0].rho)
    if decision.timeout is not None and "few-completions" in decision.timeout.withheld:
        row["error"] = decision.error or decision.warnings[0].message
    return row


def _cell(value: Any, kind: type, path: Sequence[str]) -> Any:
    """What stands at a path of names and places, as a cell: codes are joined, other texts are JSON."""
    for name in path:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, (tuple, list)):
            value = value[int(name)] if value else None
        else:
            value = getattr(value, name, None)
    if value is None or not path:
        return None
    if kind is float:
        return finite(value)
    if kind is int:
        return value if isinstance(value, int) else len(value)
    codes = isinstance(value, tuple) and all(isinstance(code, str) for code in value)
    return value if isinstance(value, str) else ",".join(value) if codes else json.dumps(value)


def are_rows(rows: object, count: int, fields: Mapping[str, type]) -> bool:
    """Whether what a journal kept are that many rows; a checksum is not a signature."""
    kinds: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
    return (
        isinstance(rows, list)
        and len(rows) == count
        and all(isinstance(row, dict) and row.keys() == fields.keys() for row in rows)
        and all(v is None or isinstance(v, kinds[fields[name]]) for row in rows for name, v in row.items())
    )


def histogram_row(several: list[Histogram], cost: float) -> Row:
    """The row of a group of histograms: what the counts guarantee, or the reason why they do not add up."""
    row: Row = dict.fromkeys(FIELDS)
    try:
        total = several[0]
        for other in several[1:]:
            total = total + other
        guarantee = guaranteed_timeout(total, cost=cost)
    except LatfitError as problem:
        return row | {"error": str(problem)}
    row |= {"probes": total.n, "completed": total.returned, "failed": total.failed, "censored": 0, "lost": total.lost}
    row |= {name: finite(getattr(guarantee, name)) for name in ("guaranteed", "least", "worst_regret")}
    row |= {"basis": "histogram", "warnings": ",".join(warning.code for warning in guarantee.warnings)}
    row["likely_regret"] = guarantee.likely and guarantee.likely.regret
    if guarantee.optimum is None:
        return row | {"error": guarantee.warnings[0].message}
    if guarantee.withheld:
        return row | {"verdict": "withheld", "withheld": ",".join(guarantee.withheld)}
    names = ("verdict", "timeout", "expected_duration", "submissions")
    return row | {name: getattr(guarantee.optimum, name) for name in names}
