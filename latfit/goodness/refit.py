"""Fit a law again to samples that were simulated from its fit, starting from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from latfit.errors import FitError
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import FINE, Model, Target, counted_ratio, levenberg_marquardt, target
from latfit.fitting.ranking import fit as fit_laws
from latfit.fitting.search import LawModel, kernel_of, law_builder
from latfit.laws.samples import SampleBatch
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
    """All samples at once on blocks of steps, from the parameters of `fit`; ρ is counted in each."""
    fine = [row for row, sample in enumerate(samples) if sample.completed.values.size > 1]
    if not fine:
        return [None] * len(samples)
    chosen = [samples[row] for row in fine]
    unit = float(np.median([sample.completed.values[sample.completed.values.size // 2] for sample in chosen]))
    goal = _stacked([target(sample).blocks(FINE) for sample in chosen], unit)
    model, start = _model(fit, chosen, unit)
    found = levenberg_marquardt(model, goal, np.repeat(start, len(chosen), axis=1), tolerance=1e-8)
    results: list[Fitted | None] = [None] * len(samples)
    for i, row in enumerate(fine):
        if np.isfinite(found.sse[i]):
            one = model.take(np.array([i]))
            results[row] = (partial(_cdf, one, found.u[:, i : i + 1], unit), counted_ratio(samples[row]))
    return results


def _cdf(model: Model, u: Floats, unit: float, t: Floats) -> Floats:
    """F(t) of one sample."""
    with np.errstate(all="ignore"):
        return np.asarray(model.cdf(np.maximum(t, 1e-300)[None] / unit, u)[0][0])


def _stacked(goals: list[Target], unit: float) -> Target:
    """Targets of different lengths as rows; the last block is repeated with weight 0."""
    width = max(goal.t.shape[1] for goal in goals)
    pads = [((0, 0), (0, width - goal.t.shape[1])) for goal in goals]
    t, y = (
        np.concatenate([np.pad(goal[part], pad, mode="edge") for goal, pad in zip(goals, pads, strict=True)])
        for part in (0, 1)
    )
    weight = np.concatenate([np.pad(goal.weight, pad) for goal, pad in zip(goals, pads, strict=True)])
    return Target(t / unit, y, weight)


def _model(fit: Fit, samples: Sequence[LatencySample], unit: float) -> tuple[Model, Floats]:
    """How least squares sees the law for these samples, and the parameters of `fit` as u (p, 1)."""
    kernel = kernel_of(fit.name)
    if kernel is not None:
        held = kernel.read(SampleBatch.of_samples(samples).scaled(unit))
        return kernel.holding(held), kernel.unnatural(np.array(list(fit.params.values()))[:, None], unit)
    if fit.law is None:
        raise FitError(f"the {fit.name} fit failed: {fit.error}")
    build, to_u = law_builder(fit.name)
    return LawModel(build), to_u(dict(fit.law.scaled(1 / unit).params))[:, None]
