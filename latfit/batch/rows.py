"""From a chunk of groups to the rows of each group, decisions or fits: the functions that every engine runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from latfit.buckets import Histogram
from latfit.decision import Decision, Options, decide, prepare
from latfit.decision.fits import simple_fits
from latfit.decision.prepare import generator
from latfit.decision.recommend import law_named
from latfit.errors import LatfitError
from latfit.fitting import Fit, assess, default_laws, fit_many, with_std_errors
from latfit.histograms import guaranteed_timeout
from latfit.logs import as_log, from_frame
from latfit.numbers import finite
from latfit.resample import RESAMPLES
from latfit.restart import expected_duration, optimal_timeout
from latfit.sample import LatencySample
from latfit.table import Key, ProbeTable

if TYPE_CHECKING:
    import pandas as pd


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
"""The columns of results: their types, and their paths in a `Decision`. Every one may be None."""
FIELDS = {name: kind for name, (kind, _) in PATHS.items()}
SPLIT_PATHS = [(name, kind, path.split()) for name, (kind, path) in PATHS.items()]


def chunk_rows(groups: Mapping[Key, ProbeTable], options: Options) -> list[list[Row]]:
    """One row for each group: missing values are None, and `error` says why."""
    return [[row_of(decision)] for decision in decide(list(groups.values()), options, keys=list(groups))]


def row_of(decision: Decision) -> Row:
    """A decision as one row."""
    row = {name: _cell(decision, kind, path) for name, kind, path in SPLIT_PATHS}
    row["probes"] = sum(decision.counts.values())
    if decision.best is not None and decision.best.ks:  # a law with many parameters determines the ratio less well
        simple = simple_fits([fitted.fit for fitted in decision.fits])
        row["joint_ratio"] = finite((*simple, decision.best.fit)[0].rho)
    if decision.timeout is not None and "few-completions" in decision.timeout.withheld:
        row["error"] = decision.error or decision.warnings[0].message
    return row


def _cell(value: Any, kind: type, path: Sequence[str]) -> Any:
    """The value at a path of names and indices as a cell: codes are joined, other values become JSON."""
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


def are_rows(groups: object, count: int, fields: Mapping[str, type]) -> bool:
    """Whether a journal's entry has rows for `count` groups; a checksum is not a signature."""
    if not (
        isinstance(groups, list) and len(groups) == count and all(isinstance(rows, list) and rows for rows in groups)
    ):
        return False
    kinds: dict[type, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}
    return all(
        isinstance(row, dict)
        and row.keys() == fields.keys()
        and all(value is None or isinstance(value, kinds[fields[name]]) for name, value in row.items())
        for row in chain.from_iterable(groups)
    )


def histogram_row(several: list[Histogram], cost: float) -> Row:
    """The row of a group of histograms: what their counts guarantee, or why they cannot be added."""
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


FIT_FIELDS: dict[str, type] = {
    **dict.fromkeys(("probes", "completed"), int),
    **dict.fromkeys(("cutoff", "ratio"), float),
    **dict.fromkeys(("law", "method", "params", "std_errors"), str),
    **dict.fromkeys(("rho", "sse", "log_likelihood", "aic", "bic", "ks", "d_n", "p_asymptotic", "p_bootstrap"), float),
    **dict.fromkeys(("d_n_completed", "p_asymptotic_completed"), float),
    "verdict": str,
    **dict.fromkeys(("timeout", "expected_duration", "submissions", "speed_up", "speed_up_vs_cutoff"), float),
    "error": str,
}
"""The columns of fits and their types. Every one may be None."""


def fit_rows(groups: Mapping[Key, ProbeTable], options: Options) -> list[list[Row]]:
    """For each group, a row for each law: missing values are None, and `error` says why."""
    laws = default_laws(options.method) if options.laws is None else list(dict.fromkeys(options.laws))
    for law in laws:
        law_named(law)  # an error for one that cannot be fitted
    empty: Row = dict.fromkeys(FIT_FIELDS)
    rows: dict[Key, list[Row]] = {}
    cases = {}
    for key, probes in groups.items():
        base = empty | {"probes": probes.n, "method": options.method}
        try:
            case = cases[key] = prepare(probes, options)
            base |= {"completed": case.sample.completed.total, "cutoff": case.cutoff.cutoff}
            base["ratio"] = case.ratio.estimate
        except LatfitError as problem:
            base["error"] = str(problem)
        rows[key] = [base | {"law": law} for law in laws]
    many = fit_many([case.sample for case in cases.values()], laws, method=options.method)
    for (key, case), fits in zip(cases.items(), many, strict=True):
        for row, fit in zip(rows[key], fits, strict=True):
            row |= _cells(case.sample, fit, case.cutoff.cutoff, options, key)
    return list(rows.values())


def _cells(sample: LatencySample, fit: Fit, cutoff: float, options: Options, key: Key) -> Row:
    if fit.law is None:
        return {"error": fit.error}
    if fit.method == "ls" and options.resamples:
        fit = with_std_errors(sample, fit, rng=generator(options.seed, "errors", fit.name, *key))
    plain = fit.to_dict()
    cells = {name: plain[name] for name in ("rho", "sse", "log_likelihood", "aic", "bic")}
    cells |= {name: json.dumps(plain[name]) for name in ("params", "std_errors") if plain[name] is not None}
    rng = generator(options.seed, "test", fit.name, fit.method, *key)
    ks = assess(sample, fit, bootstrap=RESAMPLES if options.test else 0, rng=rng)
    if ks is not None:
        cells |= {"ks": ks.statistic} | {name: getattr(ks, name) for name in ("d_n", "p_asymptotic", "p_bootstrap")}
        cells |= {f"{name}_completed": getattr(ks.completed, name) for name in ("d_n", "p_asymptotic")}
    try:
        law = fit.as_law()
        best = optimal_timeout(law, cost=options.cost, figures=False)
        cells |= {name: getattr(best, name) for name in ("verdict", "timeout", "expected_duration", "submissions")}
        E, waiting = best.expected_duration, finite(expected_duration(law, cutoff, cost=options.cost))
        cells |= {"speed_up": best.speed_up, "speed_up_vs_cutoff": waiting / E if E and waiting else None}
    except (LatfitError, ArithmeticError) as problem:  # a law so extreme that it has no usable times
        cells["error"] = str(problem)
    return cells


def fit_groups(
    frame: Any,
    by: str | Sequence[str],
    laws: str | Sequence[str] | None = None,
    *,
    method: str = "mle",
    cutoff: float | None = None,
    cost: float = 0.0,
    resamples: int = 0,
    test: bool = False,
    seed: int = 0,
    **columns: Any,
) -> pd.DataFrame:
    """Fit laws to each group of a data frame, many groups at a time: the rows of `latfit batch --law`.

    Parameters
    ----------
    frame
        A DataFrame with a row for each probe, or a log.
    by
        The columns whose values make a group.
    laws
        Names of laws, or one of them (default: those of `default_laws(method)`).
    method, cutoff, cost, seed
        As in `latfit.fit` and `latfit.Options`; without a cutoff each group has its own.
    resamples
        If not 0, least-squares fits get standard errors.
    test
        Whether to compute the bootstrap p-value.
    columns
        As in `from_frame`: `latency="rtt"`, `status="ok"`, `unit="ms"`…

    Returns
    -------
    DataFrame
        A row for each group and law; `params` and `std_errors` are dicts, and `error` says why there is no fit.

    Examples
    --------
    >>> import latfit
    >>> fits = latfit.fit_groups(latfit.example_log(), "broker", "lognormal", cutoff=10_000)
    >>> fits[["broker", "probes", "timeout"]].round().values.tolist()
    [['rb1', 700, 675.0], ['rb2', 743, 815.0], ['rb3', 694, 713.0]]
    """
    import pandas as pd

    how: dict[str, Any] = {"cutoff": cutoff, "cost": cost, "resamples": resamples, "test": test, "seed": seed}
    options = Options(laws=laws, method=method, **how)
    table = (from_frame(frame, **columns) if isinstance(frame, pd.DataFrame) else as_log(frame)).table
    names = [by] if isinstance(by, str) else list(by)
    division = table.group_by(names)
    groups = iter(zip(division.keys, table.parts(division), strict=True))
    rows: list[Row] = []
    while chunk := dict(islice(groups, 256)):
        for key, several in zip(chunk, fit_rows(chunk, options), strict=True):
            rows += [dict(zip(names, key, strict=True)) | row for row in several]
    result = pd.DataFrame(rows, columns=[*names, *FIT_FIELDS])
    for name in ("params", "std_errors"):
        result[name] = result[name].map(json.loads, na_action="ignore")
    return result
