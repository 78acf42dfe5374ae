"""Kolmogorov–Smirnov: the distance of a sample from the law fitted to it, and how often chance makes it as large.

Distances between the Kaplan–Meier estimate F̃ and the fitted (1−ρ)F, with two p-values. The asymptotic one takes
the parameters as known, as Glatard et al. 2006, §4.3 do, and is too large after fitting. The honest one is a
parametric bootstrap: each resample is rounded, cut and censored like the log, and fitted again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import kolmogorov

from latfit._system import in_threads
from latfit.curve import kaplan_meier
from latfit.errors import FitError
from latfit.fitting.estimate import fit_batch, law_class
from latfit.fitting.fitted import Cdf, Fit, ks_distance
from latfit.fitting.least_squares import counted_ratio, refit_least_squares
from latfit.fitting.likelihood import maximise
from latfit.fitting.ranking import fit as fit_laws
from latfit.fitting.simulate import Rows, Simulator
from latfit.laws import ContinuousLaw, Defective
from latfit.laws.empirical import as_law
from latfit.laws.kernel import DifferencesKernel, Kernel
from latfit.laws.location_scale import LocationScaleKernel
from latfit.laws.samples import LogBatch
from latfit.logs.frames import as_sample
from latfit.numbers import Floats, finite, is_count
from latfit.resample import LEVEL, thinned
from latfit.sample import LatencySample

MAX_FAILED_RESAMPLES = 0.02  # share of resamples that may have no fit before the p-value is given up
RESAMPLED_BLOCK = 1 << 17  # resampled latencies in a block: they stay in the cache
MAX_TESTED = 5_000  # probes that a p-value is computed from; from a larger log this many are drawn at random
SURELY_REJECTED = 5e-4  # an asymptotic p-value, which is too large after fitting, that leaves no doubt


@dataclass(frozen=True)
class GoodnessOfFit:
    """A distance between a sample and a fitted law, and how often chance alone makes it as large.

    `statistic` is the distance of F̃ from (1−ρ)F, the defective cdfs, over all n probes, and `d_n` = √n · statistic.
    `p_asymptotic` takes the parameters as known; `p_bootstrap` refits on each resample; None where it was not requested
    or does not exist. `completed` is the same test as the paper defines it, of F over the probes that returned.

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
    completed: GoodnessOfFit | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        plain = {name: getattr(self, name) for name in ("statistic", "d_n", "n", "p_asymptotic", "p_bootstrap")}
        plain = {name: value if name == "n" else finite(value) for name, value in plain.items()}
        return plain if self.completed is None else {**plain, "completed": self.completed.to_dict()}


def ks_test(
    sample: Any,
    fit: Any,
    *,
    bootstrap: int = 999,
    rng: np.random.Generator | int | None = None,
    subsample: int | None = None,
) -> GoodnessOfFit:
    """Kolmogorov–Smirnov: sup |F̃(t) − (1−ρ)F(t)| over the observed times, and D_n = √n times that.

    With `subsample` it is the paper's procedure: n completions are drawn without replacement (all of them if
    there are fewer), and their cdf is compared with F alone; Glatard et al. 2006, §4.3, took 1000.

    Parameters
    ----------
    sample
        A `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    fit
        One of `latfit.fit(sample)`, or the name of a law, which is fitted first. A law with its parameters is tested as
        it is: then nothing was fitted, and `p_asymptotic` is the p-value.
    bootstrap
        Resamples at most, each fitted again; 0 leaves `p_bootstrap` out. It ends once the verdict at 5 % is certain.
    rng
        Where the random numbers come from: a generator or a seed (default: a fixed one).
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
    >>> test = latfit.ks_test(sample, latfit.fit(sample, laws=["lognormal"])[0], bootstrap=19)
    >>> round(test.statistic, 3), test.p_bootstrap
    (0.168, 0.05)
    """
    sample = as_sample(sample)
    if not is_count(bootstrap):
        raise FitError(f"bootstrap is {bootstrap!r}; it must be a whole number of resamples, 0 or more")
    if subsample is not None and not (is_count(subsample) and subsample):
        raise FitError(f"subsample is {subsample!r}; it must be a whole number of completions, 1 or more")
    try:
        generator = np.random.default_rng(0 if rng is None else rng)
    except (TypeError, ValueError):
        raise FitError(f"rng is {rng!r}; it must be a seed (a whole number, 0 or more) or a generator") from None
    if not isinstance(fit, Fit):
        fit = _fit_of(sample, fit)
        bootstrap = bootstrap if fit.method != "given" else 0
    law, rho = fit.law_and_rho
    completed = None
    if subsample is None:
        returned = LatencySample(completed=sample.completed, resolution=sample.resolution)
        n, up = sample.n, fit.method == "ls"
        statistic = ks_distance(sample, law.cdf, rho, round_up=up)
        # √n sup |F_n − F| of the n probes that returned: Glatard et al. 2006, §4.3
        among = ks_distance(returned, law.cdf, 0.0, round_up=up)
        d_n = math.sqrt(returned.n) * among
        completed = GoodnessOfFit(among, d_n, returned.n, float(kolmogorov(d_n)), None)
    else:
        n = min(subsample, sample.completed.total)
        statistic = _subsampled(sample.completed.expand(), law.cdf, n, generator)
    d_n = math.sqrt(n) * statistic
    test = GoodnessOfFit(statistic, d_n, n, float(kolmogorov(d_n)), None, completed)
    if not bootstrap:
        return test
    return replace(test, p_bootstrap=_p_value(test, sample, fit, bootstrap, generator, subsample))


def _p_value(
    test: GoodnessOfFit, sample: LatencySample, fit: Fit, count: int, rng: np.random.Generator, subsample: int | None
) -> float:
    """(1 + k)/(1 + l) where k of l resamples are as far from their fits; h/l where the l-th is the h-th of them.

    A sequential test (Besag and Clifford 1991): h is so large that p > 5 % whatever the rest of `count` would be. It
    also ends at half of 5 % where the asymptotic p-value, which is too large, is below 5 %: the law is rejected.
    """
    enough = math.ceil((1 - LEVEL) * (1 + count))
    distances, size = np.empty(0), 2 * enough
    while distances.size < count:
        more = resampled_distances(sample, fit, min(size, count - distances.size), rng, subsample)
        distances, size = np.append(distances, more), 2 * size
        usable = distances[np.isfinite(distances)]
        failed = distances.size - usable.size
        if failed > MAX_FAILED_RESAMPLES * count:
            raise FitError(f"{failed} of {distances.size} bootstrap resamples could not be fitted: no p-value")
        as_far = np.flatnonzero(usable >= test.statistic * (1 - 1e-12))
        if as_far.size >= enough:
            return float(enough / (1 + as_far[enough - 1]))
        p = float((1 + as_far.size) / (1 + usable.size))
        if 2 * p <= 1 - LEVEL and (test.p_asymptotic or 0.0) < 1 - LEVEL:
            break
    return p


def _fit_of(sample: LatencySample, law: Any) -> Fit:
    """The fit of a law by its name, or a law with its parameters as if it had been fitted."""
    if isinstance(law, str) and "(" not in law:
        return fit_laws(sample, law)[0]
    whole = as_law(law)
    inner, rho = (whole.law, whole.rho) if isinstance(whole, Defective) else (whole, counted_ratio(sample))
    if not isinstance(inner, ContinuousLaw):
        kind = type(law).__name__
        raise FitError(f"the test compares a sample with a fit, the name of a law or a law with a density, not {kind}")
    return Fit(inner.name, "given", sample.n, inner, rho)


def assess(
    sample: LatencySample, fit: Fit, *, bootstrap: int, rng: np.random.Generator, subsample: int | None = None
) -> GoodnessOfFit | None:
    """`ks_test` for reports: None for a failed fit, no bootstrap where the asymptotic p-value decides or refits fail.

    The cost does not grow with the log: beyond `MAX_TESTED` probes (a twentieth of that for laws without a kernel)
    `p_bootstrap` is that of a part drawn at random, to which the law is fitted again.
    """
    if fit.law is None:
        return None
    if subsample is not None or not bootstrap:
        return ks_test(sample, fit, bootstrap=bootstrap, rng=rng, subsample=subsample)
    test = part = ks_test(sample, fit, bootstrap=0)
    most = MAX_TESTED // 20 if isinstance(law_class(fit.name).kernel, DifferencesKernel) else MAX_TESTED
    try:
        if sample.n > most:
            sample = thinned(sample, most, rng)
            (fit,) = fit_laws(sample, [fit.name], method=fit.method, resamples=0)
            part = ks_test(sample, fit, bootstrap=0)
        if part.p_asymptotic is not None and part.p_asymptotic < SURELY_REJECTED:
            return replace(test, p_bootstrap=1 / (1 + bootstrap))
        return replace(test, p_bootstrap=_p_value(part, sample, fit, bootstrap, rng, None))
    except FitError:
        return test


def _subsampled(latencies: Floats, cdf: Cdf, n: int, rng: np.random.Generator) -> float:
    """The plain distance from F of n of the latencies, or of all if there are fewer."""
    n = min(n, latencies.size)
    chosen = np.sort(rng.choice(latencies, n, replace=False))
    F, steps = cdf(chosen), np.arange(n + 1) / n
    return float(max(np.max(steps[1:] - F), np.max(F - steps[:-1])))


def qq(sample: LatencySample, fit: Fit) -> tuple[Floats, Floats]:
    """Quantiles of (1−ρ)F, where the law reaches so far, and those of the sample in the middle of each jump of F̃."""
    law, rho = fit.law_and_rho
    curve = kaplan_meier(sample.failures_censored())
    p = (1 - (curve.still_out + np.concatenate([[1.0], curve.still_out[:-1]])) / 2) / (1 - rho)
    inside = p < 1
    return law.ppf(p[inside]), curve.times[inside]


def resampled_distances(
    sample: LatencySample, fit: Fit, count: int, rng: np.random.Generator, subsample: int | None = None
) -> Floats:
    """The distances of `count` samples drawn from the fit from laws fitted to them; NaN where none could be."""
    simulator, kernel = Simulator(sample, fit), law_class(fit.name).kernel
    in_arrays = fit.method == "mle" and subsample is None
    scaled = simulator.complete and not simulator.resolution and isinstance(kernel, LocationScaleKernel)
    numbers = 2 * simulator.n if in_arrays and scaled else simulator.n  # of latencies, and of probabilities
    size = max(1, RESAMPLED_BLOCK // numbers)
    sizes = [min(size, count - start) for start in range(0, count, size)]

    def block(at: int, generator: np.random.Generator) -> Floats:
        if in_arrays and scaled:
            assert isinstance(kernel, LocationScaleKernel)
            return standard_gaps(kernel, simulator.n, sizes[at], generator)
        rows = simulator.rows(sizes[at], generator)
        u, rho = _refitted(fit, rows, simulator, quick=in_arrays)
        if in_arrays:
            return _row_gaps(kernel, u, rho, rows, simulator.cell)
        gaps = np.full(sizes[at], np.nan)
        for row in np.flatnonzero(np.isfinite(rho)).tolist():

            def cdf(t: Floats, row: int = row) -> Floats:
                return np.asarray(kernel.probability(np.maximum(t, 1e-300)[None], u[:, [row]])[0])

            resample = rows.sample(row, sample)
            if subsample is None:
                gaps[row] = ks_distance(resample, cdf, rho[row], round_up=fit.method == "ls")
            else:
                gaps[row] = _subsampled(resample.completed.expand(), cdf, subsample, generator)
        return gaps

    if not in_arrays:
        return np.concatenate([block(at, rng) for at in range(len(sizes))])
    seeds = rng.integers(2**63, size=(len(sizes), 2))  # one stream for each block, whichever thread runs it
    every = in_threads(lambda at: block(at, np.random.default_rng(seeds[at])), range(len(sizes)))
    return np.concatenate(list(every))


def _refitted(fit: Fit, rows: Rows, simulator: Simulator, *, quick: bool) -> tuple[Floats, Floats]:
    """Parameters u (p, B) and ρ (B,) of the law of `fit` fitted to each row by its method; ρ is NaN where that fails.

    A `quick` search starts at the fit and ends sooner.
    """
    kernel, params = law_class(fit.name).kernel, np.array([[value] for value in fit.params.values()])
    if fit.method == "ls":
        refitted, ratio = refit_least_squares([rows.sample(at, simulator.sample) for at in range(len(rows.time))], fit)
    else:
        # ρ was estimated if the fit says how well; otherwise it was given
        given = None if "rho" in (fit.std_errors or {}) else simulator.rho
        batch = rows.batch(simulator.cell, simulator.resolution).given(given)
        fits = fit_batch(fit.name, batch, start=params[:, 0] if quick and not fit.at_limit else None, errors=False)
        refitted, ratio = np.where(fits.error == "", fits.params.T, np.nan), fits.rho
    fitted = np.isfinite(refitted).all(axis=0)
    return kernel.from_params(np.where(fitted, refitted, params), 1.0), np.where(fitted, ratio, np.nan)


def _row_gaps(kernel: Kernel, u: Floats, rho: Floats, rows: Rows, cell: float) -> Floats:
    """Sup distances of simulated rows, by the product-limit estimate of each where some were censored early."""
    returned, n = rows.returned, rows.time.shape[1]
    if rows.ordered:
        key, after = rows.time, np.arange(1.0, n + 1)[None] / n
    else:  # at equal times returns come first
        key = np.where(returned, rows.time, np.nextafter(np.where(rows.lost, np.inf, rows.time), np.inf))
        order = np.argsort(key, axis=1)
        key, returned = np.take_along_axis(key, order, axis=1), np.take_along_axis(returned, order, axis=1)
        after = 1 - np.cumprod(1 - returned / np.arange(float(n), 0, -1), axis=1)
    before = np.concatenate([np.zeros((after.shape[0], 1)), after[:, :-1]], axis=1)
    if not cell:
        F = kernel.probability(np.where(returned, key, 1.0) if rows.lost.any() else key, u)
        if rho.any():
            F *= (1 - rho)[:, None]
        if returned.all() and rows.ordered:
            return _even_gaps(F)
        return np.asarray(np.where(returned, np.maximum(after - F, F - before), 0.0).max(axis=1))
    # among equal values only the last ends a step, and only the first begins it
    last, first = returned.copy(), returned.copy()
    last[:, :-1] &= ~(returned[:, 1:] & (key[:, 1:] == key[:, :-1]))
    first[:, 1:] &= key[:, 1:] != key[:, :-1]
    worst = np.zeros(u.shape[1])
    for chosen, level, shift in ((last, after, cell / 2), (first, before, -cell / 2)):
        row = np.nonzero(chosen)[0]
        t = np.maximum(key[chosen] + shift, 1e-300)
        F = (1 - rho[row]) * kernel.probability(t[:, None], u[:, row])[:, 0]
        np.maximum.at(worst, row, np.abs(np.broadcast_to(level, key.shape)[chosen] - F))
    return worst


def standard_gaps(kernel: LocationScaleKernel, n: int, count: int, rng: np.random.Generator) -> Floats:
    """(count,) sup distances of complete samples from their fits: log x = m + s z, so neither m nor s matters."""
    z = kernel.standard_draws((count, n), rng)
    z.sort(axis=1)
    batch = LogBatch.of_rows(z).given(0.0)
    u = kernel.closed_form(batch)
    if u is None:
        best = maximise(kernel, batch, [np.zeros((2, count))], rough=True)
        u = np.where(best.converged, best.u, np.nan)
    z -= u[0][:, None]
    z *= np.exp(-u[1])[:, None]
    return _even_gaps(kernel.standard_cdf(z))


def _even_gaps(F: Floats) -> Floats:
    """Sup |i/n − F| before and after each of n even steps; every step is 1/n high, so one gap gives the other."""
    n = F.shape[1]
    F -= np.arange(n) / n
    return np.asarray(np.maximum(F.max(axis=1), 1 / n - F.min(axis=1)))
