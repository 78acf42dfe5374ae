"""Batched maximum likelihood of one law: arrays in, arrays out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latfit.errors import FitError
from latfit.fitting.likelihood import (
    DECREMENT,
    REFIT_DECREMENT,
    SMALL_SAMPLE,
    Likelihood,
    Maximum,
    Ratio,
    best_start,
    inverse_information,
    log_likelihood,
    maximise,
    ratio_of,
)
from latfit.fitting.search import kernel_of
from latfit.laws.kernel import ExponentialLimit, Kernel
from latfit.laws.samples import SampleBatch
from latfit.numbers import Bools, Floats

EXPONENTIAL_DISTANCE = 1e-12  # the distance at which a law is its exponential limit to rounding


@dataclass(frozen=True, eq=False)
class BatchFit:
    """One law fitted to B samples by maximum likelihood.

    `params` is (B, p) in the order of `parameters`; `covariance` is (B, p+1, p+1) for (free params, ρ), not a number
    where the information is not positive definite or the estimate lies on a boundary. `at_limit` marks estimates
    at which the law is an exponential: its `params` are those of the limit to rounding. Where `error` is not
    empty it says why there is no estimate, and the numbers are not numbers.
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

    @classmethod
    def empty(cls, kernel: Kernel, size: int) -> BatchFit:
        free, error = len(kernel.free), np.full(size, "", dtype=object)
        params = np.full((size, len(kernel.parameters)), np.nan)
        covariance = np.full((size, free + 1, free + 1), np.nan)
        rho, value = np.full((2, size), np.nan)
        converged, at_limit = np.zeros((2, size), dtype=bool)
        return cls(kernel.law, kernel.parameters, params, rho, value, converged, at_limit, covariance, error)


def read_rho(rho: str | float) -> float | None:
    """ρ as given, or None where it is to be estimated with the law."""
    if rho == "joint":
        return None
    if isinstance(rho, str) or not 0 <= rho < 1:
        raise FitError(f'the outlier ratio is {rho!r}; it must be "joint" or a number in [0, 1)')
    return float(rho)


def fit_batch(
    law: str,
    batch: SampleBatch,
    *,
    rho: str | float | Floats = "joint",
    start: Floats | None = None,
    errors: bool = True,
) -> BatchFit:
    """The most likely `law` for every sample of `batch`, with ρ joint or given, one for all or one for each.

    `start` are parameters near all estimates, (p,), as a bootstrap knows them; without `errors` there is no covariance.
    """
    kernel, fixed = kernel_of(law), rho if isinstance(rho, np.ndarray) else read_rho(rho)
    (unit, blocks), end = batch.prepared, 0
    fits = BatchFit.empty(kernel, batch.size)
    for block in blocks:
        rows = np.arange(end, end + block.size)
        _fit_block(fits, rows, kernel, block, ratio_of(fixed, rows), unit, start, errors)
        end += block.size
    held = kernel.read(batch) if kernel.held else np.empty((0, batch.size))  # without the rounding of a unit
    fits.params[:, len(kernel.free) :] = np.where(fits.error == "", held, np.nan).T
    return fits


def _fit_block(
    fits: BatchFit,
    rows: NDArray[np.intp],
    kernel: Kernel,
    batch: SampleBatch,
    rho: Ratio,
    unit: float,
    start: Floats | None,
    errors: bool,
) -> None:
    fits.error[rows] = _unfit(kernel, batch, rho)
    usable = np.flatnonzero(fits.error[rows] == "")
    if not usable.size:
        return
    if usable.size < rows.size:
        rows, batch, rho = rows[usable], batch.take(usable), ratio_of(rho, usable)
    kernel = kernel.holding(kernel.read(batch))
    best, limit = _maximum(kernel, batch, rho, None if start is None else kernel.from_params(start[:, None], unit))
    params, jacobian = kernel.to_params(best.u, unit)
    fits.params[rows], fits.rho[rows] = params.T, best.at.rho
    fits.log_likelihood[rows] = best.at.value - batch.n * np.log(unit)
    fits.converged[rows], fits.at_limit[rows] = best.converged, limit
    if errors and kernel.regular and not limit.all():
        fits.covariance[rows] = np.where(limit[:, None, None], np.nan, _covariance(best.at, jacobian, rho))
    fits.error[rows[~best.converged]] = "the likelihood has no maximum that Newton's method could find"


def _unfit(kernel: Kernel, batch: SampleBatch, rho: Ratio) -> NDArray[np.str_]:
    """Why a sample cannot have an estimate, "" where it can."""
    low, high = batch.extremes
    special, zero = kernel.refused(batch), np.asarray(rho == 0)
    if (
        not any(bad.any() for bad, _ in special)
        and ((low > 0) & (low < high)).all()
        and not (zero.any() and batch.lost.any())
    ):
        return np.zeros(batch.size, dtype="U1")
    no_clock = "latencies of 0 without a known clock: give the sample its resolution"
    reasons = [
        (batch.n == 0, "no completed probe"),
        ((batch.lost > 0) & zero, "with lost probes the outlier ratio cannot be 0"),
        (high == 0, "all latencies are 0: the clock is too coarse for a law"),
        ((low >= high) & (kernel.min_distinct > 1), "all latencies are equal: the likelihood has no maximum"),
        ((low == 0) & (batch.cell == 0) & (not kernel.zero_allowed), no_clock),
        *special,
    ]
    return np.select([bad for bad, _ in reasons], [reason for _, reason in reasons], "")


def _maximum(kernel: Kernel, batch: SampleBatch, rho: Ratio, start: Floats | None) -> tuple[Maximum, Bools]:
    """The maximum, and where it is the limit in which the law is an exponential."""
    nowhere = np.zeros(batch.size, dtype=bool)
    exact = kernel.closed_form(batch) if batch.complete or (rho is None and not kernel.regular) else None
    if exact is not None:
        return Maximum(exact, log_likelihood(kernel, batch, exact, rho), ~nowhere), nowhere
    if not kernel.regular:
        best = maximise(kernel, batch, rho, [best_start(kernel, batch, rho, kernel.starts(batch))[0]])
        return Maximum(best.u, best.at, np.isfinite(best.at.value)), nowhere
    if kernel.law == "exponential" and start is None:
        return _exponential(batch, rho), nowhere
    if isinstance(kernel, ExponentialLimit):
        return _maximum_or_limit(kernel, batch, rho, start)
    starts = kernel.starts(batch) if start is None else [np.repeat(start, batch.size, axis=1)]
    best = maximise(kernel, batch, rho, starts, decrement=DECREMENT if start is None else REFIT_DECREMENT)
    if start is not None and not best.converged.all():
        best = maximise(kernel, batch, rho, [best.u, *kernel.starts(batch)])
    return best, nowhere


def _exponential(batch: SampleBatch, rho: Ratio) -> Maximum:
    key = ("exponential", rho.tobytes() if isinstance(rho, np.ndarray) else rho)
    if key not in batch.memory:
        kernel = kernel_of("exponential")
        batch.memory[key] = maximise(kernel, batch, rho, kernel.starts(batch))
    maximum: Maximum = batch.memory[key]
    return maximum


def _maximum_or_limit(
    kernel: ExponentialLimit, batch: SampleBatch, rho: Ratio, start: Floats | None
) -> tuple[Maximum, Bools]:
    """Newton's method only where some start beats the exponential law that is the limit of this one."""
    simple = _exponential(batch, rho)
    starts = [kernel.near_exponential(simple.u[0], share) for share in (1e-6, 1e-3, 0.03)]
    if start is not None:
        starts.append(np.repeat(start, batch.size, axis=1))
    if start is None or batch.x.shape[1] <= SMALL_SAMPLE:
        starts += kernel.starts(batch)
    best = maximise(kernel, batch, rho, starts, above=simple.at.value + 1e-9)
    gain = best.at.value - simple.at.value
    limit = (~(gain > 1e-9) | (~best.converged & (gain < 1e-4))) & simple.converged
    u = np.where(limit, kernel.near_exponential(simple.u[0], EXPONENTIAL_DISTANCE), best.u)
    value, ratio = (np.where(limit, a, b) for a, b in ((simple.at.value, best.at.value), (simple.at.rho, best.at.rho)))
    return Maximum(u, best.at._replace(value=value, rho=ratio), best.converged | limit), limit


@np.errstate(all="ignore")  # what is not finite has no standard error
def _covariance(at: Likelihood, jacobian: Floats, rho: Ratio) -> Floats:
    """The inverse of the observed information of (params, ρ); ρ is left out where it is given.

    Where ρ is estimated to be 0 it has no variance, but the parameters vary with it: without that their standard
    errors are those of a known ρ, and ±1.96 of them covered as little as 75 % in small samples.
    """
    p, size = at.grad.shape
    free = (at.rho > 0) & (rho is None)
    information = np.zeros((size, p + 1, p + 1))
    information[:, :p, :p] = -at.hess_u.transpose(2, 0, 1)
    information[:, p, p] = 1.0
    if rho is None:
        information[:, :p, p] = information[:, p, :p] = -at.cross.T
        information[:, p, p] = -at.curve
    cov = inverse_information(information)
    full = np.zeros((size, p + 1, p + 1))
    full[:, :p, :p], full[:, p, p] = jacobian.transpose(2, 0, 1), 1.0
    cov = np.asarray(full @ cov @ np.swapaxes(full, 1, 2))
    cov[:, p, :] = np.where(free[:, None], cov[:, p, :], np.nan)
    cov[:, :, p] = np.where(free[:, None], cov[:, :, p], np.nan)
    return cov
