"""Points of P-P and Q-Q plots: on the diagonal where the law describes the sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latfit.fitting.fitted import Fit
from latfit.fitting.least_squares import as_censored
from latfit.goodness.kolmogorov import tested_law
from latfit.numbers import Floats
from latfit.sample import LatencySample


class PlotPoints(NamedTuple):
    """What the fitted law says (`model`) beside what was seen (`observed`); on the diagonal where they agree."""

    model: Floats
    observed: Floats


def pp(sample: LatencySample, fit: Fit) -> PlotPoints:
    """Probabilities at each latency: (1−ρ)F beside the Kaplan–Meier F̃, taken in the middle of its jump."""
    curve = as_censored(sample).kaplan_meier()
    return PlotPoints((1 - float(fit.rho or 0.0)) * tested_law(fit).cdf(curve.times), _middles(curve.still_out))


def qq(sample: LatencySample, fit: Fit) -> PlotPoints:
    """Latencies: the quantiles of (1−ρ)F beside those of the sample, where the law reaches so far."""
    curve = as_censored(sample).kaplan_meier()
    p = _middles(curve.still_out) / (1 - float(fit.rho or 0.0))
    inside = p < 1
    return PlotPoints(tested_law(fit).ppf(p[inside]), curve.times[inside])


def _middles(still_out: Floats) -> Floats:
    """F̃ in the middle of each of its jumps."""
    return np.asarray(1 - (still_out + np.concatenate([[1.0], still_out[:-1]])) / 2)
