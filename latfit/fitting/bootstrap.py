"""Laws fitted again to resamples, starting from the fit of the log: for standard errors and tests of fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from latfit.errors import LatfitError
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import FINE_BLOCKS, Model, Target, counted_ratio, levenberg_marquardt, target
from latfit.fitting.ranking import fit as fit_laws
from latfit.fitting.search import LawModel, kernel_of, law_builder, law_class
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats
from latfit.resample import interval, resamples
from latfit.sample import LatencySample

MAX_UNFITTED = 0.1  # share of resamples that may have no fit before a standard error is given up
ONE_SIGMA = 0.682689  # the share of a normal law within one standard deviation


class Refits(NamedTuple):
    """Least squares of many samples: parameters u (p, B) of `model`, times in `unit`, and which succeeded."""

    u: Floats
    model: Model
    unit: float
    succeeded: Bools

    def params(self, name: str) -> Floats:
        """(p, B) the parameters of the law of that name, not a number where there is no fit."""
        kernel = kernel_of(name)
        if kernel is not None:
            with np.errstate(all="ignore"):
                natural = kernel.to_params(self.u, self.unit)[0][: len(kernel.free)]
            return np.where(self.succeeded, natural, np.nan)
        build, _ = law_builder(name)
        params = np.full(self.u.shape, np.nan)
        for row in np.flatnonzero(self.succeeded):
            try:
                params[:, row] = list(build(self.u[:, row]).scaled(self.unit).params.values())
            except (LatfitError, OverflowError):
                continue
        return params

    def cdf(self, row: int) -> Callable[[Floats], Floats]:
        """F of one sample."""
        model, u = self.model.take(np.array([row])), self.u[:, [row]]

        def cdf(t: Floats) -> Floats:
            with np.errstate(all="ignore"):
                return np.asarray(model.cdf(np.maximum(t, 1e-300)[None] / self.unit, u)[0][0])

        return cdf


def refit_least_squares(samples: Sequence[LatencySample], fit: Fit, rho: float | None = None) -> Refits:
    """All samples at once on blocks of steps, from the parameters of `fit`; ρ is counted in each, or given.

    Every sample needs two distinct latencies.
    """
    unit = float(np.median([sample.completed.values[sample.completed.values.size // 2] for sample in samples]))
    targets = [target(sample, rho).blocks(FINE_BLOCKS) for sample in samples]
    # targets of different lengths as rows: the last block is repeated with weight 0
    pads = [((0, 0), (0, max(each.t.shape[1] for each in targets) - goal.t.shape[1])) for goal in targets]
    t, y = (
        np.concatenate([np.pad(goal[part], pad, mode="edge") for goal, pad in zip(targets, pads, strict=True)])
        for part in (0, 1)
    )
    weight = np.concatenate([np.pad(goal.weight, pad) for goal, pad in zip(targets, pads, strict=True)])
    kernel = kernel_of(fit.name)
    if kernel is not None:
        model: Model = kernel.holding(kernel.read(SampleBatch.of_samples(samples).scaled(unit)))
        start = kernel.from_params(np.array(list(fit.params.values()))[:, None], unit)
    else:
        build, to_u = law_builder(fit.name)
        model, start = LawModel(build), to_u(dict(fit.law_and_rho[0].scaled(1 / unit).params))[:, None]
    best = levenberg_marquardt(
        model, Target(t / unit, y, weight), np.repeat(start, len(samples), axis=1), tolerance=1e-8
    )
    return Refits(best.u, model, unit, np.isfinite(best.sse))


def refitted(samples: Sequence[LatencySample], fit: Fit) -> list[tuple[Callable[[Floats], Floats], float] | None]:
    """The cdf and ρ fitted to each sample by the method of `fit`; None where there is none."""
    if fit.method == "mle":
        rho = "joint" if "rho" in (fit.std_errors or {}) else float(fit.rho or 0.0)
        fits = [fit_laws(sample, fit.name, rho=rho)[0] for sample in samples]
        return [None if each.law is None else (each.law.cdf, float(each.rho or 0.0)) for each in fits]
    results: list[tuple[Callable[[Floats], Floats], float] | None] = [None] * len(samples)
    usable = [at for at, sample in enumerate(samples) if sample.completed.values.size > 1]
    if usable:
        refits = refit_least_squares([samples[at] for at in usable], fit)
        for row in np.flatnonzero(refits.succeeded).tolist():
            results[usable[row]] = refits.cdf(row), counted_ratio(samples[usable[row]])
    return results


def with_std_errors(
    sample: LatencySample,
    fit: Fit,
    *,
    rho: float | None = None,
    count: int = 100,
    rng: np.random.Generator | None = None,
) -> Fit:
    """A least-squares fit with the standard errors of its parameters and of the counted ρ.

    By fitting resamples: the residuals of a cdf depend on each other, so no formula helps.

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
    drawn = [
        each for each in resamples(sample, count, rng or np.random.default_rng(0)) if each.completed.values.size > 1
    ]
    errors: dict[str, float | None] = dict.fromkeys(fit.params)
    if not fit.at_limit and drawn:
        with np.errstate(all="ignore"):
            params = refit_least_squares(drawn, fit, rho).params(fit.name)
        for parameter, values in zip(law_class(fit.name).parameters, params, strict=False):  # held ones come last
            scale = None if parameter.domain == "real" else fit.params[parameter.name]
            errors[parameter.name] = _spread(values, count, scale)
    if rho is None:
        errors["rho"] = _spread(np.array([counted_ratio(each) for each in drawn]), count, None)
    return replace(fit, std_errors=errors)


def _spread(values: Floats, count: int, scale: float | None) -> float | None:
    """Half the range of the middle 68 %; with a scale that of the logarithms, times the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = values if scale is None else scale * np.log(values)
    usable = usable[np.isfinite(usable)]
    if usable.size < (1 - MAX_UNFITTED) * count:
        return None
    low, high = interval(usable, ONE_SIGMA)
    return float(high - low) / 2
