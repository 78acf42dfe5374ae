"""Fit several laws to a sample, and rank them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.errors import FitError, LatfitError, none_of
from latfit.fitting.estimate import EXPONENTIAL, fit_batch, read_rho
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import counted_ratio, finalists, levenberg_marquardt, target
from latfit.fitting.search import kernel_of, law_class, problem_of, read_off
from latfit.laws import ContinuousLaw, get_law, law_names
from latfit.laws.kernel import ExponentialLimit
from latfit.laws.samples import SampleBatch
from latfit.logs.frames import as_sample
from latfit.numbers import Floats, finite
from latfit.sample import LatencySample

CLASSICAL = ("uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto")
DEFAULT_LAWS = (*CLASSICAL, "gamma", "log-logistic")


def default_laws(method: str) -> list[str]:
    """The laws that `method` tries without being asked, as they say themselves (`tried_by`); the paper's come first."""
    tried = [name for name in law_names() if method in getattr(get_law(name), "tried_by", ())]
    return sorted(tried, key=lambda name: DEFAULT_LAWS.index(name) if name in DEFAULT_LAWS else len(DEFAULT_LAWS))


def fit(
    sample: Any,
    laws: str | Sequence[str] | None = None,
    *,
    method: str = "mle",
    rho: str | float = "joint",
) -> list[Fit]:
    """Fit each law to the sample; the best comes first, laws that failed come last and say why.

    `method="mle"`: censored maximum likelihood, ranked by BIC; ρ is estimated with the law, or given.
    `method="ls"`: least squares on the cdf, ranked by the sum of squares; ρ is counted, or given.
    The default laws are those of `default_laws(method)`. `sample` may also be a log, or an array of latencies.

    Parameters
    ----------
    sample
        A `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    laws
        Names of laws, or one of them (default: all classical ones).
    method
        `mle` or `ls`.
    rho
        The outlier ratio, or `joint`: with `mle` it is then estimated with the law, with `ls` it is counted.

    Returns
    -------
    list of Fit
        Best first; `fits[0].law` is proper, `fits[0].rho` stands beside it.

    Examples
    --------
    >>> import latfit
    >>> fits = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal", "exponential"])
    >>> [fit.name for fit in fits], round(fits[0].params["mu"], 2)
    (['lognormal', 'exponential'], 5.56)
    """
    if method not in ("mle", "ls"):
        raise FitError(f"the method is {method!r}; it must be mle or ls")
    sample = as_sample(sample)
    fixed = read_rho(rho)
    names = default_laws(method) if laws is None else [laws] if isinstance(laws, str) else list(laws)
    for name in names:
        get_law(name)  # a name that is not known is the caller's mistake, not a law that failed
    batch = SampleBatch.of_sample(sample)
    fits = [_fit_one(name, sample, batch, method, fixed) for name in names]
    return sorted(fits, key=lambda found: (found.error is not None, found.score))


def _fit_one(name: str, sample: LatencySample, batch: SampleBatch, method: str, rho: float | None) -> Fit:
    try:
        if not sample.completed.total:
            raise FitError(f"{none_of(sample.n, 'probe')} completed: there is no latency to fit")
        with np.errstate(all="ignore"):  # a step may go too far, where it is refused
            return _mle(name, sample, batch, rho) if method == "mle" else _ls(name, sample, rho)
    except (LatfitError, ArithmeticError, np.linalg.LinAlgError) as problem:
        return Fit(name, method, sample.n, error=str(problem))


def _mle(name: str, sample: LatencySample, batch: SampleBatch, rho: float | None) -> Fit:
    """Maximum likelihood of a batch of one."""
    law, held = law_class(name), read_off(name, batch)
    found = fit_batch(name, batch, rho="joint" if rho is None else rho)
    if found.error[0]:
        raise FitError(str(found.error[0]))
    params = dict(zip(found.parameters, map(float, found.params[0]), strict=True)) | held
    variance = np.einsum("ii->i", found.covariance[0])
    ratio = float(found.rho[0])
    free = [name for name in found.parameters if name not in held]
    errors = _std_errors([*free, "rho"], variance, rho)
    value, limit = float(found.log_likelihood[0]), bool(found.at_limit[0])
    return _likelihood_fit(law(**params), sample.n, ratio, rho, value, errors, limit=limit, held=len(held))


def _std_errors(names: Sequence[str], variance: Floats, rho: float | None) -> dict[str, float | None]:
    """Roots of the variances; ρ has one only where it was estimated."""
    with np.errstate(invalid="ignore"):
        errors = {name: finite(float(value)) for name, value in zip(names, np.sqrt(variance), strict=True)}
    if rho is not None:
        del errors["rho"]
    return errors


def _likelihood_fit(
    law: ContinuousLaw,
    n: int,
    ratio: float,
    rho: float | None,
    value: float,
    errors: dict[str, float | None],
    *,
    limit: bool = False,
    held: int = 0,
) -> Fit:
    """A likelihood fit with its AIC and BIC; ρ counts as a parameter where it was estimated, `held` ones do not."""
    count = len(law.params) - held + (rho is None)
    return Fit(
        law.name,
        "mle",
        n,
        law=law,
        rho=ratio,
        params=dict(law.params),
        std_errors=errors,
        log_likelihood=value,
        aic=2 * count - 2 * value,
        bic=count * math.log(n) - 2 * value,
        converged=True,
        at_limit=limit,
    )


def _ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf, or the exponential law where that is the limit of this one and no worse."""
    found = _free_ls(name, sample, rho)
    kernel = kernel_of(name)
    if not isinstance(kernel, ExponentialLimit):
        return found
    simple = _free_ls("exponential", sample, rho)
    if found.score < simple.score * (1 - 1e-9):
        return found
    u = kernel.near_exponential(np.log([simple.params["rate"]]), EXPONENTIAL)
    law = law_class(name)(*map(float, kernel.natural(u, 1.0)[0][:, 0]))
    return replace(simple, name=name, law=law, params=dict(law.params), at_limit=True)


def _free_ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf; the best start whose law is a cdf everywhere wins."""
    goal = target(sample, rho)
    batch = SampleBatch.of_sample(sample)
    problem, held = problem_of(name, batch), read_off(name, batch)
    scaled = goal._replace(t=goal.t / problem.unit)
    reason = ""
    for start in finalists(problem.model, scaled, problem.starts):
        found = levenberg_marquardt(problem.model, scaled, start)
        try:
            law = problem.build(found.u[:, 0]).scaled(problem.unit)
            law = law_class(name)(**(law.params | held)) if held else law
        except LatfitError as refused:
            reason = str(refused)
            continue
        ratio = counted_ratio(sample) if rho is None else rho
        return Fit(
            name,
            "ls",
            sample.n,
            law=law,
            rho=ratio,
            params=dict(law.params),
            sse=float(found.sse[0]),
            converged=bool(found.converged[0]),
        )
    raise FitError(f"no start ended at a cdf: {reason}")
