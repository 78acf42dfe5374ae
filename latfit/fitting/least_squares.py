"""Least squares on the cdf, the paper's criterion: Σ over the clock's steps of (F(t) − F̃(t)/(1−ρ̂))².

Glatard et al. 2006, §4.3. The steps run from the smallest to the largest latency, one resolution apart, at most 10⁴ of
them. Starts are compared on blocks of steps, and the best is polished on all steps. Resamples are fitted on blocks from
the fit of the log, for standard errors and tests of fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.curve import kaplan_meier
from latfit.errors import FitError, LatfitError
from latfit.fitting.estimate import EXPONENTIAL_DISTANCE, law_class
from latfit.fitting.fitted import Fit
from latfit.fitting.likelihood import moved
from latfit.laws.kernel import ExponentialLimit, Kernel
from latfit.laws.samples import SampleBatch, power_of_two
from latfit.numbers import Bools, Floats
from latfit.resample import interval, resamples
from latfit.sample import LatencySample

MAX_GRID_STEPS = 10_000
COARSE_BLOCKS, FINE_BLOCKS = 100, 250  # blocks of steps, narrower towards t_min
POLISHED_STARTS = 4  # starts that are followed from the coarse to the fine blocks
GRID_VALUES = 40_000  # steps that are polished at once, so that they stay in the cache
MAX_DAMPED_STEPS = 200


class Target(NamedTuple):
    """What F is fitted to: the values `y` at times `t`, each for `weight` steps; arrays of shape (B, k).

    `rho` is the outlier ratio with which the F̃ of a sample was scaled.
    """

    t: Floats
    y: Floats
    weight: Floats
    rho: float = 0.0

    @classmethod
    def of(cls, sample: LatencySample, rho: float | None = None, *, unit: float = 1.0, paper: bool = False) -> Target:
        """F̃_KM/(1−ρ̂) on the grid of the sample's clock, times in `unit`."""
        values = sample.completed.values
        if values.size < 2:
            raise FitError(f"least squares needs two distinct latencies; the sample has {values.size}")
        curve = kaplan_meier(sample.failures_censored())
        span, steps = values[-1] - values[0], MAX_GRID_STEPS
        if sample.resolution:
            steps = int(min(MAX_GRID_STEPS, max(1, np.rint(span / sample.resolution))))
        t = values[0] + span * np.arange(steps + 1) / steps
        # a grid point just below a latency by rounding is at it
        reached = np.searchsorted(t * (1 + 1e-12), curve.times, side="left")
        F = np.repeat(1 - np.append(1.0, curve.still_out), np.diff(reached, prepend=0, append=t.size))
        ratio = float(curve.still_out[-1]) if rho is None else rho
        # F is 0 at t_min whatever the parameters, so a t_min at the smallest latency needs a time just above it
        least = np.nextafter(t[0], np.inf) if paper else 0.0
        return cls(np.maximum(t, max(least, 1e-300))[None] / unit, F[None] / (1 - ratio), np.ones((1, t.size)), ratio)

    @classmethod
    def stacked(cls, targets: Sequence[Target]) -> Target:
        """Targets of different lengths as rows, padded with their last step at weight 0."""
        width = max(goal.t.shape[1] for goal in targets)
        t, y, weight = (np.empty((len(targets), width)) for _ in range(3))
        for row, goal in enumerate(targets):
            size = goal.t.shape[1]
            t[row, :size], y[row, :size], weight[row, :size] = goal.t[0], goal.y[0], goal.weight[0]
            t[row, size:], y[row, size:], weight[row, size:] = goal.t[0, -1], goal.y[0, -1], 0.0
        return cls(t, y, weight)

    def blocks(self, count: int) -> Target:
        """At most `count` log-spaced blocks of steps, with their mean times and values."""
        steps = self.t.shape[1]
        starts = np.unique(np.geomspace(1, steps + 1, count).astype(np.intp))[:-1] - 1
        weight = np.add.reduceat(self.weight, starts, axis=1)
        t, y = (np.add.reduceat(part * self.weight, starts, axis=1) / weight for part in (self.t, self.y))
        return Target(t, y, weight)

    def rows(self, rows: NDArray[np.intp]) -> Target:
        everything = rows.size == self.t.shape[0] and (rows == np.arange(rows.size)).all()
        return self if everything else Target(self.t[rows], self.y[rows], self.weight[rows])


def counted_ratio(sample: LatencySample) -> float:
    """ρ̂ = 1 − F_KM at the largest latency: the share still out then, with failures censored."""
    return float(kaplan_meier(sample.failures_censored()).still_out[-1])


class LeastSquares(NamedTuple):
    """The parameters that minimise the weighted sum of squares of each sample."""

    u: Floats
    sse: Floats
    converged: Bools


def finalists(model: Kernel, goals: Sequence[Target], starts: Sequence[Floats]) -> tuple[NDArray[np.intp], Floats]:
    """The best few fits of each sample from many starts (p, B): their rows, best first, and parameters (p, rows).

    All starts are followed on coarse blocks of steps, and the best of each sample on fine ones.
    """
    size = len(goals)
    u = np.concatenate([np.broadcast_to(start, (start.shape[0], size)) for start in starts], axis=1)
    rows = np.tile(np.arange(size), len(starts))
    for count, tolerance in ((COARSE_BLOCKS, 1e-2), (FINE_BLOCKS, 1e-7)):
        blocks = Target.stacked([goal.blocks(count) for goal in goals])
        fits = levenberg_marquardt(model, blocks.rows(rows), u, tolerance=tolerance)
        order = np.lexsort((fits.sse, rows))
        rank = np.arange(order.size) - np.searchsorted(rows[order], rows[order])
        best = order[(rank < POLISHED_STARTS) & np.isfinite(fits.sse[order])]
        rows, u = rows[best], fits.u[:, best]
    return rows, u


def levenberg_marquardt(model: Kernel, goal: Target, start: Floats, *, tolerance: float = 1e-9) -> LeastSquares:
    """Damped Gauss–Newton steps until one promises a relative gain below `tolerance`; F stays a cdf."""
    u = start.copy()
    sse, gradient, normal = _normal_equations(model, goal, u)
    damping = np.full(u.shape[1], 1e-3)
    converged = np.zeros(u.shape[1], dtype=bool)
    alive = np.isfinite(sse)
    identity = np.eye(len(model.free))
    for _ in range(MAX_DAMPED_STEPS):
        rows = np.flatnonzero(alive)
        if not rows.size:
            break
        size = np.sqrt(np.einsum("bii->bi", normal[rows])) + 1e-150
        scaled = normal[rows] / (size[:, :, None] * size[:, None, :]) + damping[rows, None, None] * identity
        step = -np.linalg.solve(scaled, (gradient[rows] / size)[:, :, None])[:, :, 0]
        promised = -(step * gradient[rows] / size).sum(axis=1)
        most = 2.0 * model.curvature_scale(u[:, rows])[: len(model.free)]
        candidate = moved(u[:, rows], np.clip((step / size).T, -most, most))
        small = promised < tolerance * sse[rows] + 1e-30
        new = _normal_equations(model, goal.rows(rows), candidate, slopes=not small.all())
        better = new[0] < sse[rows]
        taken = rows[better]
        u[:, taken] = candidate[:, better]
        sse[taken], gradient[taken], normal[taken] = (part[better] for part in new)
        damping[rows] = np.maximum(damping[rows] * np.where(better, 0.2, 6.0), 1e-13)
        converged[rows] = small
        alive[rows] = ~small & (damping[rows] < 1e14)
    converged |= np.isfinite(sse) & (damping >= 1e14)  # no step of any size improves it
    return LeastSquares(u, sse, converged)


@np.errstate(all="ignore")
def _normal_equations(model: Kernel, goal: Target, u: Floats, *, slopes: bool = True) -> tuple[Floats, Floats, Floats]:
    """Σ w r² (∞ if F is not a cdf), Jᵀ w r (B, p) and Jᵀ w J (B, p, p) with r = F − y; J = 0 without `slopes`."""
    F, J = (
        model.cdf(goal.t, u) if slopes else (model.probability(goal.t, u), np.zeros((len(model.free), u.shape[1], 1)))
    )
    residual = F - goal.y
    sse = np.einsum("bk,bk->b", goal.weight * residual, residual)
    weighted = J * goal.weight
    gradient, normal = np.einsum("pbk,bk->bp", weighted, residual), np.einsum("pbk,qbk->bpq", weighted, J)
    legal = (np.diff(F, axis=1) >= -1e-12).all(axis=1)
    legal &= np.isfinite(normal).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1)
    return np.where(legal, sse, np.inf), gradient, normal


def fit_least_squares(name: str, samples: Sequence[LatencySample], rho: float | None, *, paper: bool) -> list[Fit]:
    """Least squares on the cdf, or the exponential limit of the law if that is no worse."""
    fits, kernel = _free_ls(name, samples, rho, paper), law_class(name).kernel
    if not isinstance(kernel, ExponentialLimit):
        return fits
    for at, simple in enumerate(_free_ls("exponential", samples, rho, paper)):
        if simple.law is not None and not fits[at].score < simple.score * (1 - 1e-9):
            u = kernel.near_exponential(np.log([simple.params["rate"]]), EXPONENTIAL_DISTANCE)
            law = law_class(name)(*map(float, kernel.to_params(u, 1.0)[0][:, 0]))
            fits[at] = replace(simple, name=name, law=law, params=dict(law.params), at_limit=True)
    return fits


def _measured(
    kernel: Kernel, samples: Sequence[LatencySample], rho: float | None, paper: bool
) -> tuple[float, SampleBatch, list[Target]]:
    """A typical latency as the unit, and the samples and their targets in it.

    As in the `paper`, t_min can be the smallest latency itself, as if the clock had no steps.
    """
    paper = paper and "t_min" in kernel.held
    batch = SampleBatch.of_samples(samples)
    middles = np.array([sample.completed.quantiles((0.5,))[0] for sample in samples])
    unit = power_of_two(np.median(np.maximum(middles, batch.step / 2)))  # a latency of 0 counts as half a step
    goals = [Target.of(sample, rho, unit=unit, paper=paper) for sample in samples]
    return unit, (replace(batch, step=np.zeros(1)) if paper else batch).scaled(unit), goals


def _free_ls(name: str, samples: Sequence[LatencySample], rho: float | None, paper: bool) -> list[Fit]:
    """Least squares on the cdf of each sample, from the best start whose law is a cdf everywhere."""
    law = law_class(name)
    kernel = law.kernel
    unit, batch, goals = _measured(kernel, samples, rho, paper)
    starts = kernel.starts(batch)
    if hasattr(law, "start"):
        quartiles = np.array([sample.completed.quantiles((0.25, 0.5, 0.75)) for sample in samples]) / unit
        rough = [law.start(*map(float, row)) for row in np.maximum(quartiles, batch.step[:, None] / 2)]
        params = np.array([[each[parameter] for each in rough] for parameter in kernel.parameters])
        starts = [kernel.from_params(params, 1.0), *starts]
    rows, u = finalists(kernel, goals, starts)
    failed = "no start of least squares ended at a cdf: {}"
    fits = [Fit(name, "ls", each.n, error=failed.format("the law is not a cdf at any start")) for each in samples]
    size = max(1, GRID_VALUES // max(goal.t.shape[1] for goal in goals))
    while rows.size:
        first = np.unique(rows, return_index=True)[1]  # the best remaining start of each sample
        for part in (first[start : start + size] for start in range(0, first.size, size)):
            best = levenberg_marquardt(kernel, Target.stacked([goals[row] for row in rows[part]]), u[:, part])
            params = kernel.to_params(best.u, unit)[0]
            for column, row in enumerate(rows[part].tolist()):
                try:
                    fitted = law(*map(float, params[:, column]))
                except LatfitError as refused:
                    fits[row] = replace(fits[row], error=failed.format(refused))
                    continue
                fit = Fit(name, "ls", samples[row].n, fitted, goals[row].rho, dict(fitted.params))
                sse, converged = float(best.sse[column]), bool(best.converged[column])
                fits[row] = replace(fit, sse=sse, converged=converged)
        left = np.setdiff1d(np.arange(rows.size), first)
        left = left[[fits[row].error is not None for row in rows[left]]]
        rows, u = rows[left], u[:, left]
    return fits


def refit_least_squares(samples: Sequence[LatencySample], fit: Fit, rho: float | None = None) -> tuple[Floats, Floats]:
    """The parameters (p, B), NaN if the fit fails, and ρ (B,) of samples fitted on blocks of steps, from `fit` on."""
    kernel = law_class(fit.name).kernel
    paper = fit.sample is not None and fit.params.get("t_min") == fit.sample.completed.values[0]
    params, ratios = np.full((len(kernel.parameters), len(samples)), np.nan), np.full(len(samples), np.nan)
    usable = [at for at, sample in enumerate(samples) if sample.completed.values.size > 1]
    if usable:
        unit, batch, goals = _measured(kernel, [samples[at] for at in usable], rho, paper)
        start = kernel.from_params(np.array([[value] for value in fit.params.values()]), unit)
        blocks = Target.stacked([goal.blocks(FINE_BLOCKS) for goal in goals])
        best = levenberg_marquardt(kernel, blocks, kernel.placed(start, batch), tolerance=1e-8)
        with np.errstate(all="ignore"):
            params[:, usable] = np.where(np.isfinite(best.sse), kernel.to_params(best.u, unit)[0], np.nan)
        ratios[usable] = [goal.rho for goal in goals]
    for at in set(range(len(samples))) - set(usable):
        ratios[at] = counted_ratio(samples[at]) if samples[at].completed.total else np.nan
    return params, ratios


def with_std_errors(
    sample: LatencySample,
    fit: Fit,
    *,
    rho: float | None = None,
    count: int = 100,
    rng: np.random.Generator | None = None,
) -> Fit:
    """A least-squares fit with the standard errors of its parameters and of the counted ρ, by `count` resamples.

    The residuals of a cdf are correlated, so there is no formula. An error is half the range of the middle 68 % of the
    refitted values, for positive parameters on the log scale times the estimate. It is None at the exponential limit,
    for parameters read off the sample, and if more than a tenth of the resamples cannot be fitted.
    """
    if fit.law is None:
        return fit
    draws = list(resamples(sample, count, rng or np.random.default_rng(0)))
    params, ratios = refit_least_squares(draws, fit, rho)
    errors: dict[str, float | None] = dict.fromkeys(fit.params)
    if not fit.at_limit:
        for parameter, values in zip(fit.law.parameters, params, strict=True):
            if parameter.name not in law_class(fit.name).kernel.held:
                scale = None if parameter.domain == "real" else fit.params[parameter.name]
                errors[parameter.name] = _spread(values, count, scale)
    if rho is None:
        errors["rho"] = _spread(ratios, count, None)
    return replace(fit, std_errors=errors)


def _spread(values: Floats, count: int, scale: float | None) -> float | None:
    """Half the range of the middle 68 %; with a scale, of the logarithms times the scale."""
    with np.errstate(divide="ignore", invalid="ignore"):
        usable = values if scale is None else scale * np.log(values)
    usable = usable[np.isfinite(usable)]
    if usable.size < 0.9 * count:  # too many resamples have no fit
        return None
    low, high = interval(usable, 0.682689)  # a normal law's share within one standard deviation
    return float(high - low) / 2
