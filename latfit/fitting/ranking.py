"""Fit several laws to a sample, and rank them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.errors import FitError, LatfitError, none_of
from latfit.fitting import least_squares
from latfit.fitting.estimate import EXPONENTIAL_DISTANCE, BatchFit, fit_batch, read_rho
from latfit.fitting.fitted import Fit
from latfit.fitting.search import kernel_of, law_class
from latfit.laws import get_law, law_names
from latfit.laws.kernel import ExponentialLimit
from latfit.laws.samples import SampleBatch, cell_width
from latfit.logs.frames import as_sample
from latfit.numbers import finite
from latfit.sample import LatencySample

CLASSICAL = ("uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto")
DEFAULT_LAWS = (*CLASSICAL, "gamma", "log-logistic")
LEAST_SQUARES_BLOCK = 4  # samples fitted at once: their grids have up to 10 000 steps each


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
    t_min: str | None = None,
    resamples: int = 100,
    seed: int = 0,
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
    t_min
        `paper`: least squares of lognormal-pareto with t_min at the smallest latency, as Glatard et al. have it, and
        not one step of the clock below it.
    resamples, seed
        Least squares: how many resamples the standard errors come from (0: none), and their random numbers.

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
    names = default_laws(method) if laws is None else [laws] if isinstance(laws, str) else list(laws)
    sample, ratio = as_sample(sample), read_rho(rho)
    fits = best_first(fit_many([sample], names, method=method, rho=ratio, t_min=t_min)[0])
    if method == "ls" and resamples:
        rng = np.random.default_rng(seed)
        fits = [least_squares.with_std_errors(sample, each, rho=ratio, count=resamples, rng=rng) for each in fits]
    return fits


def best_first(fits: Sequence[Fit]) -> list[Fit]:
    """The fits by their score, those that failed last."""
    return sorted(fits, key=lambda fit: (fit.error is not None, fit.score))


def fit_many(
    samples: Sequence[LatencySample],
    laws: Sequence[str],
    *,
    method: str = "mle",
    rho: float | None = None,
    t_min: str | None = None,
    errors: bool = True,
) -> list[list[Fit]]:
    """Each law fitted to each sample, in the order of `laws`; samples alike in clock and size are fitted together."""
    if method not in ("mle", "ls"):
        raise FitError(f"the method is {method!r}; it must be mle or ls")
    if t_min not in (None, "paper") or (t_min and method != "ls"):
        raise FitError(f"t_min is {t_min!r} with {method}; it can be 'paper', with least squares only")
    for name in laws:
        get_law(name)  # a name that is not known is the caller's mistake, not a law that failed
    alike: dict[tuple[float, int], list[int]] = defaultdict(list)
    for at, sample in enumerate(samples):
        alike[cell_width(sample), sample.completed.values.size.bit_length()].append(at)
    results: list[list[Fit]] = [[] for _ in samples]
    for members in alike.values():
        size = LEAST_SQUARES_BLOCK if method == "ls" else len(members)
        for block in (members[start : start + size] for start in range(0, len(members), size)):
            some = [samples[at] for at in block]
            batch = SampleBatch.of_samples(some)
            for name in laws:
                try:
                    if not any(sample.completed.total for sample in some):
                        raise FitError(f"{none_of(some[0].n, 'probe')} completed: there is no latency to fit")
                    with np.errstate(all="ignore"):  # a step may go too far, where it is refused
                        if method == "ls":
                            fits = _ls(name, some, rho=rho, paper=t_min == "paper")
                        else:
                            likely = fit_batch(name, batch, rho="joint" if rho is None else rho, errors=errors)
                            fits = fits_of(likely, batch, joint=rho is None)
                except (LatfitError, ArithmeticError, np.linalg.LinAlgError) as problem:
                    fits = [Fit(name, method, some[0].n, error=str(problem))]
                    if len(some) > 1:
                        how: dict[str, Any] = {"method": method, "rho": rho, "t_min": t_min, "errors": errors}
                        fits = [fit_many([sample], [name], **how)[0][0] for sample in some]
                for at, each in zip(block, fits, strict=True):
                    results[at].append(replace(each, sample=samples[at]))
    return results


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


def _ls(name: str, samples: Sequence[LatencySample], *, rho: float | None, paper: bool) -> list[Fit]:
    """Least squares on the cdf, or the exponential law where that is the limit of this one and no worse."""
    fits, kernel = _free_ls(name, samples, rho, paper), kernel_of(name)
    if not isinstance(kernel, ExponentialLimit):
        return fits
    for at, simple in enumerate(_free_ls("exponential", samples, rho, paper)):
        if simple.law is not None and not fits[at].score < simple.score * (1 - 1e-9):
            u = kernel.near_exponential(np.log([simple.params["rate"]]), EXPONENTIAL_DISTANCE)
            law = law_class(name)(*map(float, kernel.to_params(u, 1.0)[0][:, 0]))
            fits[at] = replace(simple, name=name, law=law, params=dict(law.params), at_limit=True)
    return fits


def _free_ls(name: str, samples: Sequence[LatencySample], rho: float | None, paper: bool) -> list[Fit]:
    """Least squares on the cdf of each sample; the best start whose law is a cdf everywhere wins."""
    law, kernel, batch = law_class(name), kernel_of(name), SampleBatch.of_samples(samples)
    quartiles = np.array([sample.completed.quantiles((0.25, 0.5, 0.75)) for sample in samples])
    quartiles = np.maximum(quartiles, batch.step[:, None] / 2)  # a latency of 0 counts as half a step of the clock
    unit = float(np.median(quartiles[:, 1]))
    goals = [least_squares.target(sample, rho, unit=unit, paper=paper and "t_min" in kernel.held) for sample in samples]
    scaled, held = batch.scaled(unit), least_squares.held_parameters(kernel, batch, paper=paper)
    kernel = kernel.holding(least_squares.held_parameters(kernel, scaled, paper=paper))
    starts = kernel.starts(scaled)
    if hasattr(law, "start"):
        rough = [law.start(*map(float, row / unit)) for row in quartiles]
        params = np.array([[each[parameter] for each in rough] for parameter in kernel.parameters])
        starts = [kernel.from_params(params, 1.0), *starts]
    rows, u = least_squares.finalists(kernel, goals, starts)
    whole = least_squares.stacked(goals)
    reasons = dict.fromkeys(range(len(samples)), "the law is not a cdf at any start")
    results: dict[int, Fit] = {}
    while rows.size:
        first = np.unique(rows, return_index=True)[1]  # the best start that is left of each sample
        best = least_squares.levenberg_marquardt(kernel.take(rows[first]), whole.rows(rows[first]), u[:, first])
        params = kernel.to_params(best.u, unit)[0]
        params[len(kernel.free) :] = held[:, rows[first]]
        for column, row in enumerate(rows[first].tolist()):
            try:
                fitted = law(*map(float, params[:, column]))
            except LatfitError as refused:
                reasons[row] = str(refused)
                continue
            ratio = least_squares.counted_ratio(samples[row]) if rho is None else rho
            sse, converged = float(best.sse[column]), bool(best.converged[column])
            results[row] = Fit(
                name, "ls", samples[row].n, fitted, ratio, dict(fitted.params), sse=sse, converged=converged
            )
        left = np.setdiff1d(np.arange(rows.size), first)
        left = left[~np.isin(rows[left], list(results))]
        rows, u = rows[left], u[:, left]
    failed = "no start of least squares ended at a cdf: {}"
    return [
        results.get(row) or Fit(name, "ls", sample.n, error=failed.format(reasons[row]))
        for row, sample in enumerate(samples)
    ]
