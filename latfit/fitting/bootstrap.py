"""Least squares fitted again to resamples, starting from the fit of the log: for standard errors and tests of fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import (
    FINE_BLOCKS,
    counted_ratio,
    held_parameters,
    levenberg_marquardt,
    stacked,
    target,
)
from latfit.fitting.search import kernel_of, law_class
from latfit.laws.kernel import Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats
from latfit.resample import interval, resamples
from latfit.sample import LatencySample


class Refits(NamedTuple):
    """Many samples fitted: parameters u (p, B) of `kernel`, times in `unit`, ρ of each, and which succeeded."""

    kernel: Kernel
    unit: float
    u: Floats
    rho: Floats
    succeeded: Bools

    def cdf(self, row: int) -> Callable[[Floats], Floats]:
        kernel, u = self.kernel.take(np.array([row])), self.u[:, [row]]
        return lambda t: kernel.probability(np.maximum(t, 1e-300)[None] / self.unit, u)[0]


def refit_least_squares(samples: Sequence[LatencySample], fit: Fit, rho: float | None = None) -> Refits:
    """All samples at once on blocks of steps, from the parameters of `fit`; ρ is counted in each, or given."""
    usable = [at for at, sample in enumerate(samples) if sample.completed.values.size > 1]
    some, kernel = [samples[at] for at in usable], kernel_of(fit.name)
    shape = len(kernel.free), len(samples)
    u, succeeded = np.full(shape, np.nan), np.zeros(len(samples), dtype=bool)
    ratios = np.array([counted_ratio(sample) if sample.completed.total else np.nan for sample in samples])
    if not usable:
        return Refits(kernel, 1.0, u, ratios, succeeded)
    unit = float(np.median([sample.completed.values[sample.completed.values.size // 2] for sample in some]))
    goals = [target(sample, rho, unit=unit, paper=fit.paper_t_min) for sample in some]
    goal = stacked([each.blocks(FINE_BLOCKS) for each in goals])
    start = kernel.from_params(np.array([[value] for value in fit.params.values()]), unit)
    held = held_parameters(kernel, SampleBatch.of_samples(some).scaled(unit), paper=fit.paper_t_min)
    starts = np.repeat(start, len(some), axis=1)
    best = levenberg_marquardt(kernel.holding(held), goal, starts, tolerance=1e-8)
    u[:, usable], succeeded[usable] = best.u, np.isfinite(best.sse)
    all_held = np.ones((len(held), len(samples)))
    all_held[:, usable] = held
    return Refits(kernel.holding(all_held), unit, u, ratios, succeeded)


def with_std_errors(
    sample: LatencySample,
    fit: Fit,
    *,
    rho: float | None = None,
    count: int = 100,
    rng: np.random.Generator | None = None,
) -> Fit:
    """A least-squares fit with the standard errors of its parameters and of the counted ρ, by `count` resamples.

    The residuals of a cdf depend on each other, so no formula helps. An error is half the range that holds the middle
    68 % of the refitted values, for positive parameters on the log scale times the estimate; None at the exponential
    limit, for parameters read off the sample, and where more than a tenth of the resamples cannot be fitted.
    """
    if fit.law is None:
        return fit
    refits = refit_least_squares(list(resamples(sample, count, rng or np.random.default_rng(0))), fit, rho)
    errors: dict[str, float | None] = dict.fromkeys(fit.params)
    if not fit.at_limit:
        with np.errstate(all="ignore"):
            params = np.where(refits.succeeded, refits.kernel.to_params(refits.u, refits.unit)[0], np.nan)
        for parameter, values in zip(law_class(fit.name).parameters, params, strict=True):
            if parameter.name not in refits.kernel.held:
                scale = None if parameter.domain == "real" else fit.params[parameter.name]
                errors[parameter.name] = _spread(values, count, scale)
    if rho is None:
        errors["rho"] = _spread(refits.rho, count, None)
    return replace(fit, std_errors=errors)


def _spread(values: Floats, count: int, scale: float | None) -> float | None:
    """Half the range of the middle 68 %; with a scale that of the logarithms, times the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = values if scale is None else scale * np.log(values)
    usable = usable[np.isfinite(usable)]
    if usable.size < 0.9 * count:  # too many resamples have no fit
        return None
    low, high = interval(usable, 0.682689)  # as much as a normal law has within one standard deviation
    return float(high - low) / 2
