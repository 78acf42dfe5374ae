"""Least squares of one law on many samples at once, from the parameters of a fit: for tests and standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latfit.errors import FitError, LatfitError
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import FINE, Model, Target, levenberg_marquardt, target
from latfit.fitting.search import LawModel, kernel_of, law_builder
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats
from latfit.sample import LatencySample


class Refits(NamedTuple):
    """Unconstrained parameters u (p, B) of the samples, how least squares sees them in `unit`, and which succeeded."""

    u: Floats
    model: Model
    unit: float
    fine: Bools


def refit_least_squares(samples: Sequence[LatencySample], fit: Fit, rho: float | None = None) -> Refits:
    """All samples on blocks of steps, from the parameters of `fit`; ρ is counted in each, or given.

    Every sample needs two distinct latencies.
    """
    unit = float(np.median([sample.completed.values[sample.completed.values.size // 2] for sample in samples]))
    goal = _stacked([target(sample, rho).blocks(FINE) for sample in samples], unit)
    model, start = _model(fit, samples, unit)
    found = levenberg_marquardt(model, goal, np.repeat(start, len(samples), axis=1), tolerance=1e-8)
    return Refits(found.u, model, unit, np.isfinite(found.sse))


def natural_params(refits: Refits, fit: Fit) -> Floats:
    """(p, B) the parameters of the refits, not a number where there is no law of them."""
    kernel = kernel_of(fit.name)
    if kernel is not None:
        with np.errstate(all="ignore"):
            natural = kernel.natural(refits.u, refits.unit)[0][: len(kernel.free)]
        return np.where(refits.fine, natural, np.nan)
    build, _ = law_builder(fit.name)
    columns = []
    for u, fine in zip(refits.u.T, refits.fine, strict=True):
        try:
            columns.append(list(build(u).scaled(refits.unit).params.values()) if fine else [np.nan] * u.size)
        except (LatfitError, OverflowError):
            columns.append([np.nan] * u.size)
    return np.array(columns).T


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
