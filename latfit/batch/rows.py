"""From a chunk of groups to one row of results a group: the function that every engine runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latfit.decision import Decision, Options, decide
from latfit.decision.fits import simple_fits
from latfit.numbers import finite
from latfit.table import Key, ProbeTable

Row = dict[str, Any]

RESULTS: dict[str, type] = {
    "probes": int, "completed": int, "failed": int, "censored": int, "lost": int,
    "cutoff": float, "count": int, "ratio": float, "ratio_low": float, "ratio_high": float,
    "mean": float, "std": float, "median": float,
    "best": str, "params": str, "joint_ratio": float, "p_bootstrap": float,
    "verdict": str, "basis": str, "withheld": str,
    "retry_timeouts": str, "retry_expected_duration": float, "retry_worst_loss": float,
    "timeout": float, "low": float, "high": float, "exact_timeout": float,
    "expected_duration": float, "expected_duration_corrected": float,
    "expected_duration_low": float, "expected_duration_high": float, "submissions": float,
    "speed_up_vs_cutoff": float, "speed_up_vs_cutoff_low": float, "speed_up_vs_cutoff_high": float,
    "mixing": str, "mixing_share": float, "lag1": float, "changes": int, "replay": float, "replay_waiting": float,
    "guaranteed": float, "least": float, "worst_regret": float, "likely_regret": float,
    "warnings": str, "error": str,
}  # fmt: skip
"""The columns of results and their types; every one may be None."""


@dataclass(frozen=True)
class Chunk:
    """Some groups, in the order of their names, and how to analyse them."""

    groups: Mapping[Key, ProbeTable]
    options: Options


def chunk_text(chunk: Chunk) -> str:
    """The rows of a chunk as JSON: what the journal keeps."""
    return json.dumps(chunk_rows(chunk), ensure_ascii=False, allow_nan=False)


def rows_kept(text: str, chunk: Chunk) -> list[Row] | None:
    """The rows of a chunk that a journal kept; None where they are not such rows: then they are made anew."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(rows, list) or len(rows) != len(chunk.groups):
        return None
    return rows if all(isinstance(row, dict) and _is_row(row) for row in rows) else None


def _is_row(row: Row) -> bool:
    kinds: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
    return row.keys() == RESULTS.keys() and all(
        value is None or isinstance(value, kinds[RESULTS[name]]) for name, value in row.items()
    )


def chunk_rows(chunk: Chunk) -> list[Row]:
    """One row a group: what cannot be answered is None, and `error` says why."""
    made = decide(list(chunk.groups.values()), chunk.options, keys=list(chunk.groups))
    return [row_of(one) for one in made]


def row_of(made: Decision) -> Row:
    """A decision as one row."""
    row: Row = dict.fromkeys(RESULTS)
    row |= {"probes": sum(made.counts.values()), **made.counts, "warnings": ",".join(made.codes), "error": made.error}
    if made.outliers is not None:
        ratio = made.outliers
        row |= {"cutoff": ratio.cutoff, "count": ratio.count, "ratio": ratio.estimate, "ratio_low": ratio.low,
                "ratio_high": ratio.high}  # fmt: skip
    if made.latency is not None:
        row |= {"mean": made.latency.mean, "std": made.latency.std, "median": made.latency.quantiles["0.5"]}
    if made.best is not None:
        row |= {"best": made.best.fit.name, "params": json.dumps(made.best.fit.params),
                "p_bootstrap": made.best.ks.p_bootstrap if made.best.ks else None}  # fmt: skip
        tested = [one.fit for one in made.fits] if made.best.ks else []
        row["joint_ratio"] = finite((*simple_fits(tested), made.best.fit)[0].rho)
    return row | _recommended(made) | _evidence(made)


def _recommended(made: Decision) -> Row:
    own = made.timeout
    if own is None:
        return {}
    few = "few-completions" in own.withheld
    error = made.error or (made.warnings[0].message if few else None)
    row: Row = {
        "verdict": own.verdict, "basis": own.basis, "withheld": ",".join(own.withheld), "timeout": own.timeout,
        "exact_timeout": own.exact_timeout, "expected_duration": own.expected_duration,
        "expected_duration_corrected": own.expected_duration_corrected, "submissions": own.submissions,
        "speed_up_vs_cutoff": own.speed_up_vs_cutoff, "error": error,
    }  # fmt: skip
    if own.retry is not None:
        row |= {"retry_timeouts": json.dumps(list(own.retry.timeouts)),
                "retry_expected_duration": finite(own.retry.expected_duration),
                "retry_worst_loss": finite(own.retry.worst_loss)}  # fmt: skip
    if own.intervals is not None:
        ends = own.intervals
        for name, pair in (("", ends.timeout), ("expected_duration_", ends.expected_duration),
                           ("speed_up_vs_cutoff_", ends.speed_up)):  # fmt: skip
            row |= {f"{name}low": finite(pair[0]), f"{name}high": finite(pair[1])}
    return row


def _evidence(made: Decision) -> Row:
    found = made.evidence
    if found is None:
        return {}
    mixed, follows, drift, log = found.mixing, found.dependence, found.drift, found.replay
    return {
        "mixing": mixed and mixed.column.name, "mixing_share": mixed and mixed.share, "lag1": follows and follows.lag1,
        "changes": len(drift.changes) if drift else None,
        "replay": finite(log.at[0].expected_duration) if log and log.at else None,
        "replay_waiting": finite(log.waiting.expected_duration) if log else None,
    }  # fmt: skip
