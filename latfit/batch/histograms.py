"""Histograms among the logs of a batch: they add up by group, and each group is a row with its guarantee."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from latfit.batch.rows import RESULTS, Row
from latfit.buckets import Histogram
from latfit.errors import LatfitError, LogError
from latfit.histograms import guaranteed_timeout
from latfit.logs.histogram_format import HistogramLog, Series
from latfit.numbers import finite
from latfit.table import Key

Parts = Iterable[tuple[Key, Histogram]]


def histogram_groups(
    log: HistogramLog, by: tuple[str, ...], shared: Mapping[str, str], *, windows: bool
) -> dict[Key, Histogram]:
    """The histograms of one file by the labels in `by`, which may be the metric's `name`; a window is not known."""
    known = {label for one in log.histograms for label in one.labels} | {"name"}
    for column in by:
        if column not in known and column not in shared:
            raise LogError(f"{log.path}: no histogram has the label {column!r}")
    chosen: dict[Key, list[Series]] = {}
    for one in log.histograms:
        labels = {"name": one.name, **one.labels, **shared}
        key = tuple(labels.get(column, "") for column in by)
        chosen.setdefault((*key, "unknown") if windows else key, []).append(one)
    return {key: replace(log, histograms=tuple(several)).histogram()[0] for key, several in chosen.items()}


def histogram_rows(parts: Parts, cost: float) -> dict[Key, Row]:
    """One row a group, in the order of names: what the counts guarantee, or the reason why they do not add up."""
    gathered: dict[Key, list[Histogram]] = {}
    for key, histogram in parts:
        gathered.setdefault(key, []).append(histogram)
    return {key: _row(gathered[key], cost) for key in sorted(gathered)}


def _row(several: list[Histogram], cost: float) -> Row:
    row: Row = dict.fromkeys(RESULTS)
    try:
        total = several[0]
        for other in several[1:]:
            total = total + other
        found = guaranteed_timeout(total, cost=cost)
    except LatfitError as problem:
        return row | {"error": str(problem)}
    row |= {"probes": total.n, "completed": total.returned, "failed": total.failed, "censored": 0, "lost": total.lost,
            "guaranteed": finite(found.guaranteed), "least": found.least, "worst_regret": finite(found.worst_regret),
            "likely_regret": None if found.likely is None else found.likely.regret,
            "basis": "histogram", "warnings": ",".join(warning.code for warning in found.warnings)}  # fmt: skip
    best = found.optimum
    if best is None:
        return row | {"error": found.warnings[0].message}
    if found.withheld:
        return row | {"verdict": "withheld", "withheld": ",".join(found.withheld)}
    return row | {"verdict": best.verdict, "timeout": best.timeout, "expected_duration": best.expected_duration,
                  "submissions": best.submissions}  # fmt: skip
