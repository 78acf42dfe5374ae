"""Which laws are tried on a sample, how they rank, and how well they fit: one rule for every command."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
from scipy.special import xlogy

import latfit.fitting as fitting
from latfit.decision.prepare import Options, Prepared
from latfit.decision.result import FittedLaw
from latfit.errors import FitError, LatfitError
from latfit.fitting import Fit, default_laws
from latfit.fitting.estimate import law_class
from latfit.fitting.ranking import best_first, fit_many
from latfit.laws import Law
from latfit.resample import RESAMPLES
from latfit.restart import optimal_timeout
from latfit.restart.completion import regret
from latfit.sample import LatencySample

MAX_SIMPLE_DISTANCE = 0.8  # √n times the KS distance of the best simple law, beyond which elaborate ones are tried
MIN_LATENCIES_FOR_ELABORATE = 100  # distinct ones
CELLS = np.array([0.002, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.998])  # levels of a fitted cdf


def elaborate() -> list[str]:
    """Laws of many parameters, which the paper fits by least squares: tried where no simple one comes near."""
    return [name for name in default_laws("ls") if name not in default_laws("mle")]


def simple_fits(fits: Sequence[Fit]) -> list[Fit]:
    """The likelihood fits that succeeded, without the laws of many parameters."""
    rich = elaborate()
    return [fit for fit in fits if fit.method == "mle" and fit.error is None and fit.name not in rich]


def ranked(cases: Sequence[Prepared], options: Options) -> list[list[Fit]]:
    """The fits of each sample, best first; many samples in batches, without tests their best alone."""
    asked = default_laws(options.method) if options.laws is None else options.laws
    laws = list(dict.fromkeys([*asked, *([] if options.law is None else [options.law])]))
    samples, alone = [case.sample for case in cases], len(cases) == 1 or options.law is not None
    if not laws:
        return [[] for _ in cases]

    def fit_all(some: Sequence[LatencySample], laws: Sequence[str]) -> list[list[Fit]]:
        fits = map(best_first, fit_many(some, laws, method=options.method, errors=alone))
        return [several if options.test or alone else several[:1] for several in fits]

    results = fit_all(samples, laws)
    if options.laws is not None:
        return results
    far = [at for at, (best, *_) in enumerate(results) if _leaves_room(samples[at], best)]
    for at, others in zip(far, fit_all([samples[at] for at in far], elaborate()), strict=True):
        results[at] = best_first([*results[at], *others])
    return results


def _leaves_room(sample: LatencySample, fit: Fit) -> bool:
    """Whether the law misses, and a law of more parameters could have the better BIC: exact shares of cells would."""
    if fit.law is None or sample.completed.values.size < MIN_LATENCIES_FOR_ELABORATE:
        return False
    if float(np.sqrt(sample.n)) * fitting.ks_distance(sample, fit.law.cdf, fit.rho or 0.0) <= MAX_SIMPLE_DISTANCE:
        return False
    more = min(len(law_class(name).kernel.free) for name in elaborate()) - len(law_class(fit.name).kernel.free)
    x, weights = sample.completed.values, sample.completed.counts
    levels = fit.law.cdf(x) / fit.law.cdf(sample.cutoff or np.inf)
    counts = np.bincount(np.searchsorted(CELLS, levels), weights, minlength=CELLS.size + 1)
    expected = counts.sum() * np.diff(CELLS, prepend=0.0, append=1.0)
    gain = float(xlogy(counts, counts / expected).sum())
    return gain > more * float(np.log(sample.n)) / 2


def tested(case: Prepared, fits: Sequence[Fit], *, every: bool) -> list[FittedLaw]:
    """The fits, tested until one is accepted, and the best simple one; p depends on sample, law and seed alone."""
    test = case.options.test
    resamples = RESAMPLES if test and case.options.resamples else 0
    best_simple = next(iter(simple_fits(fits)), None) if test else None
    results: list[FittedLaw] = []
    accepted = False
    for each in fits:
        ks = None
        if each.law is not None and (every or (test and (each is best_simple or not accepted))):
            rng = case.rng("test", each.name, each.method)
            ks = fitting.assess(case.sample, each, bootstrap=resamples, rng=rng)
        results.append(FittedLaw(each, ks))
        accepted = accepted or results[-1].rejected is False
    return results


def put_to_use(fitted: FittedLaw, case: Prepared, data: Law, least: float | None) -> FittedLaw:
    """A fit with the timeout that it would give, and what that would cost on the data."""
    if fitted.fit.law is None:
        return fitted
    try:
        optimum = optimal_timeout(fitting.fitted_law(case.sample, fitted.fit), cost=case.cost)
    except (LatfitError, ArithmeticError):  # a law so extreme that it has no usable times
        return fitted
    t = np.inf if optimum.timeout is None else optimum.timeout
    return replace(fitted, optimum=optimum, regret=regret(data, t, least, cost=case.cost))


def joint(case: Prepared, fits: Sequence[Fit], *, detail: bool) -> fitting.JointRatio | None:
    """The ratio with the best simple law; None without one or, but for `detail`, where it agrees with the count."""
    simple = simple_fits(fits)
    if not simple or not (detail or not case.ratio.low <= (simple[0].rho or 0.0) <= case.ratio.high):
        return None
    competing = [fit.name for fit in simple if fit.score - simple[0].score < fitting.COMPETING]
    with suppress(FitError):
        return fitting.joint_outlier_ratio(case.sample, competing)
    return None
