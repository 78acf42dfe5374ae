"""Standard errors of least squares by fitting resamples: residuals of a cdf depend on each other, no formula helps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import counted_ratio
from latfit.fitting.refit import natural_params, refit_least_squares
from latfit.fitting.search import kernel_of, law_class
from latfit.numbers import Floats
from latfit.sample import LatencySample, Tally

RESAMPLES = 100
MAX_FAILED = 0.1  # the share of resamples that may have no fit before a standard error is given up
ONE_SIGMA = (0.158655, 0.841345)


def resamples(sample: LatencySample, count: int, rng: np.random.Generator) -> Iterator[LatencySample]:
    """Samples of as many probes drawn from the sample with replacement: multinomial counts of its tallies."""
    tallies = (sample.completed, sample.failed, sample.censored)
    counts = np.concatenate([*(tally.counts for tally in tallies), [sample.lost]])
    ends = np.cumsum([tally.counts.size for tally in tallies])
    for row in rng.multinomial(sample.n, counts / counts.sum(), size=count):
        parts = np.split(row, ends)
        done, gone, out = (Tally(t.values[n > 0], n[n > 0]) for t, n in zip(tallies, parts[:3], strict=True))
        yield replace(sample, completed=done, failed=gone, censored=out, lost=int(parts[3][0]))


def with_std_errors(
    sample: LatencySample,
    fit: Fit,
    *,
    rho: float | None = None,
    count: int = RESAMPLES,
    rng: np.random.Generator | None = None,
) -> Fit:
    """A least-squares fit with the standard errors of its parameters and of the counted ρ.

    Parameters
    ----------
    sample : what was fitted.
    fit : the fit, by least squares; a failed one comes back as it is.
    rho : the outlier ratio where it was given and not counted; it has no standard error then.
    count, rng : how many resamples of the probes are fitted again, and their random numbers.

    Returns
    -------
    The fit with `std_errors`: half the range that holds the middle 68 % of the refitted values, for positive
    parameters on the log scale times the estimate; None at the exponential limit, for parameters that are read off
    the sample, and where more than a tenth of the resamples cannot be fitted.

    Examples
    --------
    >>> import latfit
    >>> from latfit.fitting import with_std_errors
    >>> sample = latfit.example_log().sample(cutoff=10_000)
    >>> plain = latfit.fit(sample, "lognormal", method="ls")[0]
    >>> 0.01 < with_std_errors(sample, plain, count=50).std_errors["sigma"] < 0.04
    True

    """
    if fit.law is None:
        return fit
    drawn = [each for each in resamples(sample, count, rng or np.random.default_rng(0))
             if each.completed.values.size > 1]  # fmt: skip
    ratios = np.array([counted_ratio(each) for each in drawn])
    errors: dict[str, float | None] = dict.fromkeys(fit.params)
    kernel = kernel_of(fit.name)
    if not fit.at_limit and drawn:
        with np.errstate(all="ignore"):
            found = natural_params(refit_least_squares(drawn, fit, rho), fit)
        held = () if kernel is None else kernel.held
        free = [parameter for parameter in law_class(fit.name).parameters if parameter.name not in held]
        for parameter, values in zip(free, found, strict=True):
            scale = None if parameter.domain == "real" else fit.params[parameter.name]
            errors[parameter.name] = _spread(values, count, scale)
    if rho is None:
        errors["rho"] = _spread(ratios, count, None)
    return replace(fit, std_errors=errors)


def _spread(values: Floats, count: int, scale: float | None) -> float | None:
    """Half the range of the middle 68 %; with a scale that of the logarithms, times the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = values if scale is None else scale * np.log(values)
    usable = usable[np.isfinite(usable)]
    if usable.size < (1 - MAX_FAILED) * count:
        return None
    low, high = np.quantile(usable, ONE_SIGMA)
    return float(high - low) / 2
