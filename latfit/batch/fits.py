"""Laws fitted to many groups: one row a group and law, for `latfit batch --law` and for data frames."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from latfit.batch.rows import Row
from latfit.decision import Options, prepare
from latfit.decision.fits import generator
from latfit.decision.recommend import law_named
from latfit.errors import LatfitError
from latfit.fitting import Fit, assess, default_laws, fit_many, with_std_errors
from latfit.logs import as_log, from_frame
from latfit.numbers import finite
from latfit.resample import RESAMPLES
from latfit.restart import expected_duration, optimal_timeout
from latfit.sample import LatencySample
from latfit.table import Key, ProbeTable

if TYPE_CHECKING:
    import pandas as pd

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


def fitted_laws(options: Options) -> tuple[str, ...]:
    """The laws that each group is fitted with; an error for one that cannot be fitted."""
    laws = tuple(default_laws(options.method)) if options.laws is None else tuple(dict.fromkeys(options.laws))
    for law in laws:
        law_named(law)
    return laws


def fit_rows(groups: Mapping[Key, ProbeTable], options: Options) -> list[Row]:
    """A row for each group and law, in this order: what cannot be had is None, and `error` says why."""
    laws, empty = fitted_laws(options), dict.fromkeys(FIT_FIELDS)
    rows: dict[Key, list[Row]] = {}
    cases = {}
    for key, probes in groups.items():
        base = empty | {"probes": probes.n, "method": options.method}
        try:
            case = cases[key] = prepare(probes, options)
            base |= {
                "completed": case.sample.completed.total,
                "cutoff": case.cutoff.cutoff,
                "ratio": case.ratio.estimate,
            }
        except LatfitError as problem:
            base["error"] = str(problem)
        rows[key] = [base | {"law": law} for law in laws]
    many = fit_many([case.sample for case in cases.values()], laws, method=options.method)
    for (key, case), fits in zip(cases.items(), many, strict=True):
        for row, fit in zip(rows[key], fits, strict=True):
            row |= _cells(case.sample, fit, case.cutoff.cutoff, options, key)
    return [row for several in rows.values() for row in several]


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
        The columns that the groups are of.
    laws
        Names of laws, or one of them (default: those of `default_laws(method)`).
    method, cutoff, cost, seed
        As in `latfit.fit` and `latfit.Options`; without a cutoff each group has its own.
    resamples
        Not 0: least squares with standard errors.
    test
        Whether the p-value by bootstrap is computed.
    columns
        As in `from_frame`: `latency="rtt"`, `status="ok"`, `unit="ms"`…

    Returns
    -------
    DataFrame
        A row a group and law; `params` and `std_errors` are dicts, and `error` says why there is no fit.

    Examples
    --------
    >>> import latfit
    >>> fits = latfit.fit_groups(latfit.example_log(), "broker", "lognormal", cutoff=10_000)
    >>> fits[["broker", "probes", "timeout"]].round().values.tolist()
    [['rb1', 700, 675.0], ['rb2', 743, 815.0], ['rb3', 694, 713.0]]
    """
    import pandas as pd

    chosen = None if laws is None else (laws,) if isinstance(laws, str) else tuple(laws)
    options = Options(cutoff=cutoff, cost=cost, laws=chosen, method=method, resamples=resamples, test=test, seed=seed)
    table = (from_frame(frame, **columns) if isinstance(frame, pd.DataFrame) else as_log(frame)).table
    names = [by] if isinstance(by, str) else list(by)
    division, count = table.group_by(names), len(fitted_laws(options))
    groups = iter(zip(division.keys, table.parts(division), strict=True))
    rows: list[Row] = []
    while chunk := dict(islice(groups, 256)):
        keys = [key for key in chunk for _ in range(count)]
        rows += [
            dict(zip(names, key, strict=True)) | row for key, row in zip(keys, fit_rows(chunk, options), strict=True)
        ]
    result = pd.DataFrame(rows, columns=[*names, *FIT_FIELDS])
    for name in ("params", "std_errors"):
        result[name] = result[name].map(json.loads, na_action="ignore")
    return result
