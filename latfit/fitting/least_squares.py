"""Least squares on the cdf, the paper's criterion: Σ over the clock's steps of (F(t) − F̃(t)/(1−ρ̂))².

Glatard et al. 2006, §4.3. The steps run from the smallest to the largest latency, one resolution apart, at most
10⁴ of them. Starts are compared on blocks of steps and the best is polished on all of them. Resamples are fitted from
the fit of the log, for standard errors and tests of fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latfit.curve import kaplan_meier
from latfit.errors import FitError
from latfit.fitting.fitted import Fit
from latfit.fitting.search import kernel_of, law_class
from latfit.laws.kernel import Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats
from latfit.resample import interval, resamples
from latfit.sample import LatencySample

MAX_GRID_STEPS = 10_000
COARSE_BLOCKS, FINE_BLOCKS = 100, 250  # blocks of steps, finer towards t_min
POLISHED_STARTS = 4  # how many of the starts go on from the coarse to the fine blocks
MAX_DAMPED_STEPS = 200


class Target(NamedTuple):
    """What F is fitted to: at times `t` the values `y`, `weight` steps each; arrays of shape (B, k)."""

    t: Floats
    y: Floats
    weight: Floats

    def blocks(self, count: int) -> Target:
        """At most `count` log-spaced blocks of steps, with their mean times and values."""
        steps = self.t.shape[1]
        starts = np.unique(np.geomspace(1, steps + 1, count).astype(np.intp))[:-1] - 1
        weight = np.add.reduceat(self.weight, starts, axis=1)
        t, y = (np.add.reduceat(part * self.weight, starts, axis=1) / weight for part in (self.t, self.y))
        return Target(t, y, weight)

    def rows(self, rows: NDArray[np.intp]) -> Target:
        return Target(self.t[rows], self.y[rows], self.weight[rows])


def counted_ratio(sample: LatencySample) -> float:
    """ρ̂ = 1 − F_KM at the largest latency: the share still out then, failures read as censored."""
    return float(kaplan_meier(sample.failures_censored()).still_out[-1])


def target(sample: LatencySample, rho: float | None = None, *, unit: float = 1.0, paper: bool = False) -> Target:
    """F̃_KM/(1−ρ̂) on the grid of the sample's clock, times in `unit`."""
    values = sample.completed.values
    if values.size < 2:
        raise FitError(f"least squares needs two distinct latencies; the sample has {values.size}")
    curve = kaplan_meier(sample.failures_censored())
    span = values[-1] - values[0]
    steps = MAX_GRID_STEPS
    if sample.resolution:
        steps = int(min(MAX_GRID_STEPS, max(1, np.rint(span / sample.resolution))))
    t = values[0] + span * np.arange(steps + 1) / steps
    # a grid point that rounding has put just below a latency still counts as at it
    at = np.searchsorted(curve.times, t * (1 + 1e-12), side="right")
    F = np.concatenate([[0.0], 1 - curve.still_out])[at]
    ratio = float(curve.still_out[-1]) if rho is None else rho
    # with t_min at the smallest latency, F is 0 there whatever the parameters: just above it F has derivatives
    least = np.nextafter(t[0], np.inf) if paper else 0.0
    return Target(np.maximum(t, max(least, 1e-300))[None] / unit, F[None] / (1 - ratio), np.ones((1, t.size)))


class LeastSquares(NamedTuple):
    """Where the weighted sum of squares of each sample is smallest."""

    u: Floats
    sse: Floats
    converged: Bools


def stacked(targets: Sequence[Target]) -> Target:
    """Targets of different lengths as rows: the last step is repeated with weight 0."""
    width = max(goal.t.shape[1] for goal in targets)
    pads = [((0, 0), (0, width - goal.t.shape[1])) for goal in targets]
    t, y = (
        np.concatenate([np.pad(goal[part], pad, mode="edge") for goal, pad in zip(targets, pads, strict=True)])
        for part in (0, 1)
    )
    weight = np.concatenate([np.pad(goal.weight, pad) for goal, pad in zip(targets, pads, strict=True)])
    return Target(t, y, weight)


def held_parameters(kernel: Kernel, batch: SampleBatch, *, paper: bool) -> Floats:
    """The parameters that are read off the samples; t_min as in the `paper` is the smallest latency itself."""
    held = kernel.read(batch)
    if paper and "t_min" in kernel.held:
        held[kernel.held.index("t_min")] = batch.extremes[0]
    return held


def finalists(model: Kernel, goals: Sequence[Target], starts: Sequence[Floats]) -> tuple[NDArray[np.intp], Floats]:
    """The best few fits of each sample from many starts (p, B): rows, best first, and parameters (p, rows).

    All starts are followed on coarse blocks of steps, the best of each sample on fine ones.
    """
    size = len(goals)
    u = np.concatenate([np.broadcast_to(start, (start.shape[0], size)) for start in starts], axis=1)
    rows = np.tile(np.arange(size), len(starts))
    for count, tolerance in ((COARSE_BLOCKS, 1e-2), (FINE_BLOCKS, 1e-7)):
        blocks = stacked([goal.blocks(count) for goal in goals])
        fits = levenberg_marquardt(model.take(rows), blocks.rows(rows), u, tolerance=tolerance)
        order = np.lexsort((fits.sse, rows))
        rank = np.arange(order.size) - np.searchsorted(rows[order], rows[order])
        best = order[(rank < POLISHED_STARTS) & np.isfinite(fits.sse[order])]
        rows, u = rows[best], fits.u[:, best]
    return rows, u


def levenberg_marquardt(model: Kernel, goal: Target, start: Floats, *, tolerance: float = 1e-9) -> LeastSquares:
    """Damped Gauss–Newton steps until one promises to gain less than `tolerance`; none to where F is no cdf."""
    u = start.copy()
    sse, gradient, normal = _normal_equations(model, goal, u)
    damping = np.full(u.shape[1], 1e-3)
    converged = np.zeros(u.shape[1], dtype=bool)
    alive = np.isfinite(sse)
    identity = np.eye(u.shape[0])
    for _ in range(MAX_DAMPED_STEPS):
        rows = np.flatnonzero(alive)
        if not rows.size:
            break
        size = np.sqrt(np.einsum("bii->bi", normal[rows])) + 1e-150
        scaled = normal[rows] / (size[:, :, None] * size[:, None, :]) + damping[rows, None, None] * identity
        step = -np.linalg.solve(scaled, (gradient[rows] / size)[:, :, None])[:, :, 0]
        promised = -(step * gradient[rows] / size).sum(axis=1)
        candidate = u[:, rows] + np.clip(step / size, -2.0, 2.0).T
        new = _normal_equations(model.take(rows), goal.rows(rows), candidate)
        better = new[0] < sse[rows]
        small = promised < tolerance * sse[rows] + 1e-30
        taken = rows[better]
        u[:, taken] = candidate[:, better]
        sse[taken], gradient[taken], normal[taken] = (part[better] for part in new)
        damping[rows] = np.maximum(damping[rows] * np.where(better, 0.2, 6.0), 1e-9)
        converged[rows] = small
        alive[rows] = ~small & (damping[rows] < 1e14)
    converged |= np.isfinite(sse) & (damping >= 1e14)  # no step of any size is better
    return LeastSquares(u, sse, converged)


def _normal_equations(model: Kernel, goal: Target, u: Floats) -> tuple[Floats, Floats, Floats]:
    """Σ w r², Jᵀ w r (B, p) and Jᵀ w J (B, p, p) with r = F − y; the sum is ∞ where F is not a cdf."""
    with np.errstate(all="ignore"):
        F, J = model.cdf(goal.t, u)
        residual = F - goal.y
        weighted = J * goal.weight
        sse = np.einsum("bk,bk->b", goal.weight * residual, residual)
        gradient = np.einsum("pbk,bk->bp", weighted, residual)
        normal = np.einsum("pbk,qbk->bpq", weighted, J)
        legal = (np.diff(F, axis=1) >= -1e-12).all(axis=1)
        legal &= np.isfinite(normal).all(axis=(1, 2)) & np.isfinite(gradient).all(axis=1)
    return np.where(legal, sse, np.inf), gradient, normal


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
