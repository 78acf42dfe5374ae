"""Fit a law again to samples that were simulated from its fit, starting from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import Model, counted_ratio
from latfit.fitting.ranking import fit as fit_laws
from latfit.fitting.refit import refit_least_squares
from latfit.numbers import Floats
from latfit.sample import LatencySample

Fitted = tuple[Callable[[Floats], Floats], float]


def refitted_laws(samples: Sequence[LatencySample], fit: Fit) -> list[Fitted | None]:
    """The cdf and ρ fitted to each sample by the method of `fit`; None where there is none."""
    estimated = fit.method == "ls" or "rho" in (fit.std_errors or {})
    if fit.method == "ls":
        return _least_squares(samples, fit)
    found = [fit_laws(sample, [fit.name], rho="joint" if estimated else float(fit.rho or 0.0))[0] for sample in samples]
    return [None if one.law is None else (one.law.cdf, float(one.rho or 0.0)) for one in found]


def _least_squares(samples: Sequence[LatencySample], fit: Fit) -> list[Fitted | None]:
    """All samples at once; ρ is counted in each."""
    usable = [row for row, sample in enumerate(samples) if sample.completed.values.size > 1]
    results: list[Fitted | None] = [None] * len(samples)
    if not usable:
        return results
    found = refit_least_squares([samples[row] for row in usable], fit)
    for i, row in enumerate(usable):
        if found.fine[i]:
            one = found.model.take(np.array([i]))
            results[row] = (partial(_cdf, one, found.u[:, i : i + 1], found.unit), counted_ratio(samples[row]))
    return results


def _cdf(model: Model, u: Floats, unit: float, t: Floats) -> Floats:
    """F(t) of one sample."""
    with np.errstate(all="ignore"):
        return np.asarray(model.cdf(np.maximum(t, 1e-300)[None] / unit, u)[0][0])
