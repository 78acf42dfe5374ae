"""A fit put to use: the law of an attempt, visible failures included."""

from __future__ import annotations

import numpy as np

from latfit.errors import FitError
from latfit.fitting.result import Fit
from latfit.laws import Competing, Defective, Law
from latfit.sample import LatencySample, Tally

MAX_STEPS = 500  # of the law of failures; neighbouring times beyond that are merged


def fitted_law(sample: LatencySample, fit: Fit) -> Law:
    """The law of an attempt under `fit`: `Defective`, or `Competing` where probes of `sample` failed visibly.

    A fit sees a failure as censored at its time, so its law is that of completion in a world without failures. Here
    the failures come back as an independent risk: their Kaplan–Meier estimate, with completions and whatever was
    censored as censoring, and lost probes at risk for ever. Without it a fitted law would promise the submissions of
    a system that never fails. Where the last probe of all failed, half of its share is taken to go on, so that no
    answer rests on every attempt ending by itself.

    >>> from latfit.fitting import fit, fitted_law
    >>> from latfit.sample import LatencySample
    >>> sample = LatencySample.of([3.0, 5, 6, 8, 9, 14], failed=[2.0, 4])
    >>> fitted_law(sample, fit(sample, ["lognormal"])[0]).name
    'competing'
    """
    if fit.law is None or fit.rho is None:
        raise FitError(f"{fit.name} could not be fitted: {fit.error}")
    law = Defective(fit.law, fit.rho)
    if not sample.failed.values.size:
        return law
    others = Tally.sum([sample.completed, sample.censored])
    curve = LatencySample(completed=sample.failed, censored=others, lost=sample.lost).kaplan_meier()
    masses = -np.diff(curve.still_out, prepend=1.0)
    if curve.still_out[-1] <= 0:  # the last probe seen failed: that nothing outlives it is not known
        masses[-1] /= 2
    starts = np.unique(np.linspace(0, masses.size, MAX_STEPS, endpoint=False).astype(np.intp))
    merged = np.add.reduceat(masses, starts)
    return Competing.of(law, np.add.reduceat(curve.times * masses, starts) / merged, merged)
