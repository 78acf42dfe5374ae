"""Fit several laws to a sample, and rank them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.errors import FitError, LatfitError, none_of
from latfit.fitting.estimate import EXPONENTIAL_DISTANCE, BatchFit, fit_batch, read_rho
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import counted_ratio, finalists, levenberg_marquardt, target
from latfit.fitting.search import kernel_of, law_class
from latfit.laws import get_law, law_names
from latfit.laws.kernel import ExponentialLimit
from latfit.laws.samples import SampleBatch
from latfit.logs.frames import as_sample
from latfit.numbers import finite
from latfit.sample import LatencySample

CLASSICAL = ("uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto")
DEFAULT_LAWS = (*CLASSICAL, "gamma", "log-logistic")


def default_laws(method: str) -> list[str]:
    """The laws that `method` tries without being asked, as they say themselves (`tried_by`); the paper's come first."""
    tried = [name for name in law_names() if method in getattr(get_law(name), "tried_by", ())]
    return sorted(tried, key=lambda name: DEFAULT_LAWS.index(name) if name in DEFAULT_LAWS else len(DEFAULT_LAWS))


def fit(
    sample: Any, laws: str | Sequence[str] | None = None, *, method: str = "mle", rho: str | float = "joint"
) -> list[Fit]:
    """Fit each law to the sample; the best comes first, laws that failed come last and say why.

    Parameters
    ----------
    sample
        A `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    laws
        Names of laws, or one of them (default: those of `default_laws(method)`).
    method
        `mle`: censored maximum likelihood, ranked by BIC. `ls`: least squares on the cdf, ranked by the sum of squares.
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
    return sorted(fits, key=lambda fit: (fit.error is not None, fit.score))


def _fit_one(name: str, sample: LatencySample, batch: SampleBatch, method: str, rho: float | None) -> Fit:
    try:
        if not sample.completed.total:
            raise FitError(f"{none_of(sample.n, 'probe')} completed: there is no latency to fit")
        with np.errstate(all="ignore"):  # a step may go too far, where it is refused
            if method == "ls":
                return _ls(name, sample, rho)
            return fits_of(fit_batch(name, batch, rho="joint" if rho is None else rho), batch, joint=rho is None)[0]
    except (LatfitError, ArithmeticError, np.linalg.LinAlgError) as problem:
        return Fit(name, method, sample.n, error=str(problem))


def fits_of(best: BatchFit, batch: SampleBatch, *, joint: bool = True) -> list[Fit]:
    """One law fitted to each sample of a batch; ρ counts as a parameter where it was estimated, held ones do not."""
    free, law = kernel_of(best.law).free, law_class(best.law)
    names, fits = (*free, "rho") if joint else free, []
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.einsum("bii->bi", best.covariance))
    for at, n in enumerate(batch.probes.astype(int).tolist()):
        value = float(best.log_likelihood[at])
        try:
            if best.error[at] or not math.isfinite(value):
                raise FitError(str(best.error[at]) or "the likelihood is not finite")
            fitted = law(*map(float, best.params[at]))
        except LatfitError as problem:  # a search may end at parameters that are not those of a law
            fits.append(Fit(best.law, "mle", n, error=str(problem)))
            continue
        std_errors = {name: finite(error) for name, error in zip(names, errors[at], strict=False)}
        fit = Fit(best.law, "mle", n, fitted, float(best.rho[at]), dict(fitted.params), std_errors, converged=True)
        aic, bic = 2 * len(names) - 2 * value, len(names) * math.log(n) - 2 * value
        fits.append(replace(fit, log_likelihood=value, aic=aic, bic=bic, at_limit=bool(best.at_limit[at])))
    return fits


def _ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf, or the exponential law where that is the limit of this one and no worse."""
    best, kernel = _free_ls(name, sample, rho), kernel_of(name)
    if not isinstance(kernel, ExponentialLimit):
        return best
    simple = _free_ls("exponential", sample, rho)
    if best.score < simple.score * (1 - 1e-9):
        return best
    u = kernel.near_exponential(np.log([simple.params["rate"]]), EXPONENTIAL_DISTANCE)
    law = law_class(name)(*map(float, kernel.to_params(u, 1.0)[0][:, 0]))
    return replace(simple, name=name, law=law, params=dict(law.params), at_limit=True)


def _free_ls(name: str, sample: LatencySample, rho: float | None) -> Fit:
    """Least squares on the cdf; the best start whose law is a cdf everywhere wins."""
    goal, batch, law = target(sample, rho), SampleBatch.of_sample(sample), law_class(name)
    quartiles = np.quantile(batch.x[0], (0.25, 0.5, 0.75), weights=batch.weights[0], method="inverted_cdf")
    quartiles = np.maximum(quartiles, batch.step[0] / 2)  # a latency of 0 counts as half a step of the clock
    unit = float(quartiles[1])
    scaled = batch.scaled(unit)
    kernel, goal = kernel_of(name), goal._replace(t=goal.t / unit)
    held, kernel = kernel.read(batch), kernel.holding(kernel.read(scaled))
    starts = kernel.starts(scaled)
    if hasattr(law, "start"):
        rough = law.start(*map(float, quartiles / unit))
        starts = [kernel.from_params(np.array([[rough[each]] for each in kernel.parameters]), 1.0), *starts]
    reason = ""
    for start in finalists(kernel, goal, [u[:, 0] for u in starts]):
        best = levenberg_marquardt(kernel, goal, start)
        params = kernel.to_params(best.u, unit)[0][:, 0]
        params[len(kernel.free) :] = held[:, 0]
        try:
            fitted = law(*map(float, params))
        except LatfitError as refused:
            reason = str(refused)
            continue
        ratio = counted_ratio(sample) if rho is None else rho
        sse, converged = float(best.sse[0]), bool(best.converged[0])
        return Fit(name, "ls", sample.n, fitted, ratio, dict(fitted.params), sse=sse, converged=converged)
    raise FitError(f"no start ended at a cdf: {reason}")
