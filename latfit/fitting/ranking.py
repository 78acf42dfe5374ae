"""Fit several laws to a sample, and rank them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from latfit.errors import FitError, LatfitError, SampleError, none_of
from latfit.fitting.estimate import BatchFit, fit_batch, law_class
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import fit_least_squares, with_std_errors
from latfit.laws import get_law, law_names
from latfit.laws.samples import SampleBatch, cell_width
from latfit.logs.frames import as_sample
from latfit.numbers import finite, is_count
from latfit.sample import LatencySample

CLASSICAL = ("uniform", "truncated-gaussian", "exponential", "weibull", "lognormal", "pareto")
DEFAULT_LAWS = (*CLASSICAL, "gamma", "log-logistic")
LEAST_SQUARES_BLOCK = 32  # samples fitted at once: their grids have up to 10 000 steps each


def default_laws(method: str) -> list[str]:
    """The laws that `method` tries by default, as each law declares (`tried_by`); the paper's come first."""
    laws = {name: get_law(name) for name in law_names()}
    tried = [
        name for name, law in laws.items() if getattr(law, "kernel", None) and method in getattr(law, "tried_by", ())
    ]
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
        Best first; `fits[0].law` is proper and does not include `fits[0].rho`.

    Examples
    --------
    >>> import latfit
    >>> fits = latfit.fit(latfit.example_log().sample(cutoff=10_000), laws=["lognormal", "exponential"])
    >>> [fit.name for fit in fits], round(fits[0].params["mu"], 2)
    (['lognormal', 'exponential'], 5.56)
    """
    names = default_laws(method) if laws is None else names_of_laws(laws)
    if laws is not None and not names:
        raise FitError("there is no law to fit: give names of laws, or leave out `laws` for the default ones")
    if not (rho == "joint" if isinstance(rho, str) else isinstance(rho, (int, float, np.number)) and 0 <= rho < 1):
        raise FitError(f'the outlier ratio is {rho!r}; it must be "joint" or a number in [0, 1)')
    for name, number in (("resamples", resamples), ("seed", seed)):
        if not is_count(number):
            raise FitError(f"{name} is {number!r}; it must be a whole number, 0 or more")
    sample, ratio = as_sample(sample), None if isinstance(rho, str) else float(rho)
    if not sample.n:
        raise SampleError("the sample is empty: there is nothing to fit a law to")
    fits = best_first(fit_many([sample], names, method=method, rho=ratio, t_min=t_min)[0])
    if method == "ls" and resamples:
        rng = np.random.default_rng(seed)
        fits = [with_std_errors(sample, each, rho=ratio, count=resamples, rng=rng) for each in fits]
    return fits


def names_of_laws(laws: str | Sequence[str]) -> tuple[str, ...]:
    """One name, or several, as a tuple of names."""
    names = (laws,) if isinstance(laws, str) or not np.iterable(laws) else tuple(laws)
    if not all(isinstance(name, str) for name in names):
        raise FitError(f"the laws to fit are {laws!r}; give names of laws, such as ['lognormal', 'weibull']")
    return names


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
            batch = SampleBatch.of_samples(some).given(rho)
            for name in laws:
                try:
                    if not any(sample.completed.total for sample in some):
                        raise FitError(f"{none_of(some[0].n, 'probe')} completed: there is no latency to fit")
                    with np.errstate(all="ignore"):  # a step may go too far, where it is refused
                        if method == "ls":
                            fits = fit_least_squares(name, some, rho, paper=t_min == "paper")
                        else:
                            fits = fits_of(fit_batch(name, batch, errors=errors), batch)
                except (LatfitError, ArithmeticError, np.linalg.LinAlgError) as problem:
                    fits = [Fit(name, method, some[0].n, error=str(problem))]
                    if len(some) > 1:
                        how: dict[str, Any] = {"method": method, "rho": rho, "t_min": t_min, "errors": errors}
                        fits = [fit_many([sample], [name], **how)[0][0] for sample in some]
                for at, each in zip(block, fits, strict=True):
                    results[at].append(replace(each, sample=samples[at]))
    return results


def fits_of(best: BatchFit, batch: SampleBatch) -> list[Fit]:
    """One law fitted to each sample of a batch; ρ counts as a parameter where it was estimated, held ones do not."""
    law, fits = law_class(best.law), []
    names = (*law.kernel.free, "rho") if batch.rho is None else law.kernel.free
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
