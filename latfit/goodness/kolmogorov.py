"""Kolmogorov–Smirnov: the distance of a sample from the law fitted to it, and how often chance makes it as large.

Distances between the Kaplan–Meier estimate F̃ and the fitted (1−ρ)F, with two p-values. The asymptotic one takes
the parameters as known, as Glatard et al. 2006, §4.3 do, and is too large after fitting. The honest one is a
parametric bootstrap: each resample is rounded, cut and censored like the log, and fitted again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import kolmogorov

from latfit.errors import FitError
from latfit.fitting.estimate import fit_batch
from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import as_censored
from latfit.fitting.search import kernel_of
from latfit.goodness.distance import row_gaps, standard_gaps
from latfit.goodness.refit import refitted_laws
from latfit.goodness.resample import Simulator
from latfit.laws import ContinuousLaw
from latfit.laws.location_scale import LocationScaleKernel
from latfit.laws.samples import cell_width
from latfit.numbers import Floats, finite
from latfit.sample import LatencySample
from latfit.threads import in_threads

Cdf = Callable[[Floats], Floats]
MAX_FAILED = 0.02  # the share of resamples that may have no fit before the bootstrap is given up
BLOCK_ELEMENTS = 1 << 19  # resampled latencies in a block: large, so that threads seldom wait for the interpreter
MAX_DRAWS = 50_000_000  # simulated probes that a report waits for: some seconds a law
MAX_SEARCHED = 200_000  # the same for laws that are searched for


@dataclass(frozen=True)
class GoodnessOfFit:
    """A distance between a sample and a fitted law, and how often chance alone makes it as large.

    `d_n` = √n · statistic for Kolmogorov–Smirnov, None for others. `p_asymptotic` takes the parameters as known;
    `p_bootstrap` refits on each resample; None where it was not asked for or cannot be had.

    Examples
    --------
    >>> import latfit
    >>> sample = latfit.example_log().sample(cutoff=10_000)
    >>> latfit.ks_test(sample, latfit.fit(sample, laws=["lognormal"])[0], bootstrap=0).p_bootstrap is None
    True
    """

    statistic: float
    d_n: float | None
    n: int
    p_asymptotic: float | None
    p_bootstrap: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: finite numbers or None."""
        numbers = {name: finite(getattr(self, name)) for name in ("statistic", "d_n", "p_asymptotic", "p_bootstrap")}
        return {"statistic": numbers["statistic"], "d_n": numbers["d_n"], "n": self.n} | numbers


def ks_test(
    sample: LatencySample,
    fit: Fit,
    *,
    bootstrap: int = 999,
    rng: np.random.Generator | None = None,
    subsample: int | None = None,
) -> GoodnessOfFit:
    """Kolmogorov–Smirnov: sup |F̃(t) − (1−ρ)F(t)| over the times that were seen, and D_n = √n times that.

    With `subsample` it is the paper's procedure: n completions are drawn without replacement (all of them if
    there are fewer), and their cdf is compared with F alone; Glatard et al. 2006, §4.3, took 1000.

    Parameters
    ----------
    sample
        A `LatencySample`.
    fit
        One of `latfit.fit(sample)`.
    bootstrap
        Resamples, each fitted again; 0 leaves `p_bootstrap` out.
    rng
        Where the random numbers come from (default: a fixed seed).
    subsample
        How many completions the paper's procedure takes.

    Returns
    -------
    GoodnessOfFit
        The distance and its p-values.

    Examples
    --------
    >>> import latfit
    >>> sample = latfit.example_log().sample(cutoff=10_000)
    >>> found = latfit.ks_test(sample, latfit.fit(sample, laws=["lognormal"])[0], bootstrap=19)
    >>> round(found.statistic, 3), found.p_bootstrap
    (0.168, 0.05)
    """
    law, rho, generator = tested_law(fit), float(fit.rho or 0.0), rng or np.random.default_rng(0)
    if subsample is None:
        n, statistic = sample.n, ks_distance(sample, law.cdf, rho, round_up=fit.method == "ls")
    else:
        n = min(subsample, sample.completed.total)
        statistic = _subsampled(sample.completed.expand(), law.cdf, n, generator)
    d_n = math.sqrt(n) * statistic
    p = None
    if bootstrap:
        if subsample is None and fit.method == "mle" and kernel_of(fit.name):
            distances = _batched_distances(sample, fit, bootstrap, generator)
        else:
            distances = _distances(sample, fit, bootstrap, generator, subsample)
        p = bootstrap_p_value(statistic, distances)
    return GoodnessOfFit(statistic, d_n, n, float(kolmogorov(d_n)), p)


def assess(
    sample: LatencySample, fit: Fit, *, bootstrap: int, rng: np.random.Generator, subsample: int | None = None
) -> GoodnessOfFit | None:
    """`ks_test` for reports: None for a failed fit, no bootstrap where it fails or would take minutes.

    It would where `bootstrap` samples of this size have more than 5·10⁷ probes, or 2·10⁵ for likelihood fits of laws
    without a kernel, each of which is a search of its own.
    """
    if fit.law is None:
        return None
    quick = fit.method == "ls" or kernel_of(fit.name) is not None
    fast = bootstrap * sample.n <= (MAX_DRAWS if quick else MAX_SEARCHED)
    try:
        return ks_test(sample, fit, bootstrap=bootstrap if fast else 0, rng=rng, subsample=subsample)
    except FitError:
        return ks_test(sample, fit, bootstrap=0, rng=rng, subsample=subsample)


def tested_law(fit: Fit) -> ContinuousLaw:
    """The law of a fit that succeeded."""
    if fit.law is None:
        raise FitError(f"the {fit.name} fit failed, so there is nothing to test: {fit.error}")
    return fit.law


def bootstrap_p_value(statistic: float, distances: Floats) -> float:
    """(1 + how many resamples are as far) / (1 + how many there are)."""
    fine = distances[np.isfinite(distances)]
    if fine.size < (1 - MAX_FAILED) * distances.size:
        failed = distances.size - fine.size
        raise FitError(f"{failed} of {distances.size} bootstrap resamples could not be fitted: no p-value")
    return float((1 + (fine >= statistic * (1 - 1e-12)).sum()) / (1 + fine.size))


def ks_distance(sample: LatencySample, cdf: Cdf, rho: float, *, round_up: bool = False) -> float:
    """The sup |F̃(t) − (1−ρ)F(t)|, before and after each jump of F̃.

    On a clock so coarse that latencies are cells, the cells' ends are compared: (t − step/2, t + step/2], or
    (t − step, t] with `round_up`, as least squares reads the clock.
    """
    curve = as_censored(sample).kaplan_meier()
    times, after = curve.times, 1 - curve.still_out
    cell = cell_width(sample)
    if round_up and times.size > 1 and times[0] == 0:  # a latency of 0 lies in the first step too
        times, after = times[1:], after[1:]
    shift = 0.0 if round_up else cell / 2
    high, low = times + shift, np.maximum(times + shift - cell, 0.0)
    before = np.concatenate([[0.0], after[:-1]])
    ends = (np.abs(after - (1 - rho) * cdf(high)), np.abs(before - (1 - rho) * cdf(low)))
    return float(max(gap.max(initial=0.0) for gap in ends))


def _subsampled(latencies: Floats, cdf: Cdf, n: int, rng: np.random.Generator) -> float:
    """The plain distance of n of the latencies from F."""
    chosen = np.sort(rng.choice(latencies, n, replace=False))
    F, steps = cdf(chosen), np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - F), np.max(F - steps[:-1])))


def block_sizes(n: int, count: int) -> list[int]:
    """`count` samples of n numbers in blocks."""
    size = max(1, BLOCK_ELEMENTS // n)
    return [min(size, count - start) for start in range(0, count, size)]


def _batched_distances(sample: LatencySample, fit: Fit, count: int, rng: np.random.Generator) -> Floats:
    """The distances of `count` resamples from the laws fitted to them, all in arrays."""
    simulator, kernel = Simulator.of(sample, fit), kernel_of(fit.name)
    assert kernel is not None
    # ρ was estimated if the fit says how well; otherwise it was given
    rho: str | float = "joint" if "rho" in (fit.std_errors or {}) else simulator.rho
    params, cell = np.array(list(fit.params.values())), simulator.cell

    def standard(size: int, own: np.random.Generator) -> Floats:
        assert isinstance(kernel, LocationScaleKernel)
        return standard_gaps(kernel, simulator.n, size, own)

    def general(size: int, own: np.random.Generator) -> Floats:
        rows = simulator.rows(size, own)
        batch = rows.batch(cell, simulator.resolution)
        found = fit_batch(fit.name, batch, rho=rho, start=None if fit.at_limit else params, errors=False)
        fine = found.error == ""
        all_params = np.where(fine[:, None], found.params, params).T
        u, held = kernel.unnatural(all_params, 1.0), all_params[len(kernel.free) :]
        ratio = np.where(fine, found.rho, simulator.rho)
        return np.where(fine, row_gaps(kernel.holding(held), rows, cell, u, ratio), np.nan)

    alike = isinstance(kernel, LocationScaleKernel) and simulator.complete and not simulator.resolution
    sizes = block_sizes(2 * simulator.n if alike else simulator.n, count)  # latencies and probabilities
    seeds = rng.integers(2**63, size=(len(sizes), 2))  # a stream of its own for each block, whichever thread has it

    def block(at: int) -> Floats:
        return (standard if alike else general)(sizes[at], np.random.default_rng(seeds[at]))

    return np.concatenate(list(in_threads(block, range(len(sizes)))))


def _distances(sample: LatencySample, fit: Fit, count: int, rng: np.random.Generator, subsample: int | None) -> Floats:
    """The distances of `count` resamples, one by one: for least squares, for laws without a kernel and subsamples."""
    simulator, found = Simulator.of(sample, fit), []
    for size in block_sizes(simulator.n, count):
        rows = simulator.rows(size, rng)
        samples = [rows.sample(row, sample) for row in range(rows.time.shape[0])]
        for resample, fitted in zip(samples, refitted_laws(samples, fit), strict=True):
            if fitted is None:
                found.append(np.nan)
                continue
            cdf, rho = fitted
            if subsample is None:
                found.append(ks_distance(resample, cdf, rho, round_up=fit.method == "ls"))
            else:
                latencies = resample.completed.expand()
                found.append(_subsampled(latencies, cdf, min(subsample, latencies.size), rng))
    return np.array(found)
