"""Batched maximum likelihood of one law: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latfit.errors import FitError
from latfit.fitting.likelihood import SMALL_SAMPLE, Likelihood, Maximum, best_start, log_likelihood, maximise
from latfit.laws import ContinuousLaw, get_law
from latfit.laws.kernel import ExponentialLimit, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats

EXPONENTIAL_DISTANCE = 1e-12  # at which a law is its exponential limit to rounding


@dataclass(frozen=True, eq=False)
class BatchFit:
    """One law fitted to B samples by maximum likelihood.

    `params` is (B, p) in the order of `parameters`. `covariance` is (B, p+1, p+1) for (free params, ρ), NaN if the
    information is not positive definite or the estimate lies on a boundary. `at_limit` marks laws that are at their
    exponential limit, to rounding. If `error` is not empty, it is the reason why there is no estimate, and the numbers
    are NaN.
    """

    law: str
    parameters: tuple[str, ...]
    params: Floats
    rho: Floats
    log_likelihood: Floats
    converged: Bools
    at_limit: Bools
    covariance: Floats
    error: NDArray[np.object_]


def law_class(name: str) -> Any:
    """The class of a law that can be fitted: one with a density and a kernel."""
    law = get_law(name)
    if not issubclass(law, ContinuousLaw) or not law.kernel:
        raise FitError(f"{name} cannot be fitted: the law states no rough parameters to start from")
    return law


def fit_batch(law: str, batch: SampleBatch, *, start: Floats | None = None, errors: bool = True) -> BatchFit:
    """The most likely `law` for every sample of `batch`, with ρ unless the batch gives it.

    `start` (p,) are parameters near all estimates, for a bootstrap; without `errors` there is no covariance.
    """
    kernel, size, (unit, blocks), end = law_class(law).kernel, batch.size, batch.prepared, 0
    p = len(kernel.free) + 1
    params, covariance = np.full((size, len(kernel.parameters)), np.nan), np.full((size, p, p), np.nan)
    (rho, value), (converged, at_limit) = np.full((2, size), np.nan), np.zeros((2, size), dtype=bool)
    error = np.full(size, "", dtype=object)
    fits = BatchFit(law, kernel.parameters, params, rho, value, converged, at_limit, covariance, error)
    for block in blocks:
        rows = np.arange(end, end + block.size)
        end += block.size
        fits.error[rows] = _unfit(kernel, block)
        usable = np.flatnonzero(fits.error[rows] == "")
        if not usable.size:
            continue
        if usable.size < rows.size:
            rows, block = rows[usable], block.take(usable)
        near = None if start is None else kernel.from_params(start[:, None], unit)
        best, limit = maximum(kernel, block, near, rough=True)
        estimates, jacobian = kernel.to_params(best.u, unit)
        fits.params[rows], fits.rho[rows] = estimates.T, best.at.rho
        fits.log_likelihood[rows] = best.at.value - block.n * np.log(unit)
        fits.converged[rows], fits.at_limit[rows] = best.converged, limit
        if errors and kernel.regular and not limit.all():
            inverse = _covariance(best.at, jacobian, joint=batch.rho is None)
            fits.covariance[rows] = np.where(limit[:, None, None], np.nan, inverse)
        fits.error[rows[~best.converged]] = "the likelihood has no maximum that Newton's method could find"
    return fits


def _unfit(kernel: Kernel, batch: SampleBatch) -> NDArray[np.object_]:
    """The reason why a sample has no estimate, "" if it has one."""
    low, high = batch.extremes
    no_clock = "latencies of 0 without a known clock: give the sample its resolution"
    reasons = [
        (batch.n == 0, "no completed probe"),
        ((batch.lost > 0) & np.asarray(batch.rho == 0), "with lost probes the outlier ratio cannot be 0"),
        (high == 0, "all latencies are 0: the clock is too coarse for a law"),
        ((low >= high) & (kernel.min_distinct > 1), "all latencies are equal: the likelihood has no maximum"),
        ((low == 0) & (batch.cell == 0) & (not kernel.zero_allowed), no_clock),
        *kernel.refused(batch),
    ]
    error = np.full(batch.size, "", dtype=object)
    for bad, reason in reversed(reasons):  # the first one counts
        error[bad] = reason
    return error


def maximum(kernel: Kernel, batch: SampleBatch, start: Floats | None, *, rough: bool) -> tuple[Maximum, Bools]:
    """The maximum, and whether it is at the exponential limit of the law; `rough`: near a `start`, ends early."""
    nowhere = np.zeros(batch.size, dtype=bool)
    exact = kernel.closed_form(batch) if batch.complete or (batch.rho is None and not kernel.regular) else None
    if exact is not None:
        return Maximum(exact, log_likelihood(kernel, batch, exact), ~nowhere), nowhere
    if not kernel.regular:
        best = maximise(kernel, batch, [best_start(kernel, batch, kernel.starts(batch))[0]])
        return Maximum(best.u, best.at, np.isfinite(best.at.value)), nowhere
    if kernel.law == "exponential" and start is None:
        return _exponential(batch), nowhere
    if isinstance(kernel, ExponentialLimit):
        return _maximum_or_limit(kernel, batch, start)
    starts = kernel.starts(batch) if start is None else [kernel.placed(start, batch)]
    best = maximise(kernel, batch, starts, rough=rough and start is not None)
    if start is not None and not best.converged.all():
        best = maximise(kernel, batch, [best.u, *kernel.starts(batch)])
    return best, nowhere


def _exponential(batch: SampleBatch) -> Maximum:
    if "exponential" not in batch.memory:
        kernel = law_class("exponential").kernel
        batch.memory["exponential"] = maximise(kernel, batch, kernel.starts(batch))
    maximum: Maximum = batch.memory["exponential"]
    return maximum


def _maximum_or_limit(kernel: ExponentialLimit, batch: SampleBatch, start: Floats | None) -> tuple[Maximum, Bools]:
    """The maximum if some start beats the exponential law that is the limit of this one, else that limit."""
    simple = _exponential(batch)
    starts = [kernel.near_exponential(simple.u[0], share) for share in (1e-6, 1e-3, 0.03)]
    if start is not None:
        starts.append(kernel.placed(start, batch))
    if start is None or batch.x.shape[1] <= SMALL_SAMPLE:
        starts += kernel.starts(batch)
    best = maximise(kernel, batch, starts, above=simple.at.value + 1e-9)
    gain = best.at.value - simple.at.value
    limit = (~(gain > 1e-9) | (~best.converged & (gain < 1e-4))) & simple.converged
    u = np.where(limit, kernel.near_exponential(simple.u[0], EXPONENTIAL_DISTANCE), best.u)
    value, ratio = (np.where(limit, a, b) for a, b in ((simple.at.value, best.at.value), (simple.at.rho, best.at.rho)))
    return Maximum(u, best.at._replace(value=value, rho=ratio), best.converged | limit), limit


@np.errstate(all="ignore")  # values that are not finite give no standard error
def _covariance(at: Likelihood, jacobian: Floats, *, joint: bool) -> Floats:
    """The inverse of the observed information of (params, ρ), without ρ if it is given.

    An estimate ρ = 0 has no variance of its own, but the parameters vary with ρ: with the standard errors for a known
    ρ, ±1.96 of them covered as little as 75 % in small samples.
    """
    p, size = at.grad.shape
    free = (at.rho > 0) & joint
    information = np.zeros((size, p + 1, p + 1))
    information[:, :p, :p] = -at.hess_u.transpose(2, 0, 1)
    information[:, p, p] = 1.0
    if joint:
        information[:, :p, p] = information[:, p, :p] = -at.cross.T
        information[:, p, p] = -at.curve
    diagonal = np.einsum("bii->bi", information)
    scale = np.sqrt(diagonal[:, :, None] * diagonal[:, None, :])
    scaled, cov = information / scale, np.full_like(information, np.nan)  # NaN if it is not positive definite
    fine = (diagonal > 0).all(axis=1) & (np.abs(scaled) < 2).all(axis=(1, 2))  # correlations
    fine[fine] = np.linalg.eigvalsh(scaled[fine])[:, 0] > 1e-12
    cov[fine] = np.linalg.inv(scaled[fine]) / scale[fine]
    full = np.zeros((size, p + 1, p + 1))
    full[:, :p, :p], full[:, p, p] = jacobian.transpose(2, 0, 1), 1.0
    cov = np.asarray(full @ cov @ np.swapaxes(full, 1, 2))
    cov[:, p, :] = np.where(free[:, None], cov[:, p, :], np.nan)
    cov[:, :, p] = np.where(free[:, None], cov[:, :, p], np.nan)
    return cov
