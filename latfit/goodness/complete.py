"""Tests for samples of which everything returned: Cramér–von Mises and Anderson–Darling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latfit.errors import FitError
from latfit.fitting.fitted import Fit
from latfit.goodness.kolmogorov import GoodnessOfFit, block_sizes, bootstrap_p_value, tested_law
from latfit.goodness.refit import refitted_laws
from latfit.goodness.resample import Simulator
from latfit.numbers import Floats
from latfit.sample import LatencySample


def cramer_von_mises(
    sample: LatencySample, fit: Fit, *, bootstrap: int = 999, rng: np.random.Generator | None = None
) -> GoodnessOfFit:
    """W² = 1/(12n) + Σ (F(x_i) − (2i−1)/(2n))², for samples of which everything returned."""
    return _complete_test(sample, fit, _w_squared, bootstrap, rng)


def anderson_darling(
    sample: LatencySample, fit: Fit, *, bootstrap: int = 999, rng: np.random.Generator | None = None
) -> GoodnessOfFit:
    """A² = −n − Σ (2i−1)/n (log F(x_i) + log S(x_{n+1−i})), for samples of which everything returned."""
    return _complete_test(sample, fit, _a_squared, bootstrap, rng)


def _w_squared(F: Floats) -> float:
    n = F.size
    return float(1 / (12 * n) + ((F - (2 * np.arange(1, n + 1) - 1) / (2 * n)) ** 2).sum())


def _a_squared(F: Floats) -> float:
    n = F.size
    with np.errstate(divide="ignore"):
        logs = np.log(F) + np.log1p(-F[::-1])
    return float(-n - ((2 * np.arange(1, n + 1) - 1) / n * logs).sum())


def _complete_test(
    sample: LatencySample,
    fit: Fit,
    distance: Callable[[Floats], float],
    bootstrap: int,
    rng: np.random.Generator | None,
) -> GoodnessOfFit:
    """A distance that needs every latency, with the p-value that takes parameters as known where scipy has it."""
    law, generator = tested_law(fit), rng or np.random.default_rng(0)
    if sample.completed.total != sample.n:
        raise FitError(f"{sample.n - sample.completed.total} of {sample.n} probes did not return: use ks_test")
    latencies = sample.completed.expand()
    statistic = distance(law.cdf(latencies))
    from scipy.stats import cramervonmises  # slow to import, and rarely asked for

    p_known = float(cramervonmises(law.cdf(latencies), "uniform").pvalue) if distance is _w_squared else None
    p = None
    if bootstrap:
        simulator, found = Simulator.of(sample, fit), []
        for size in block_sizes(sample.n, bootstrap):
            rows = simulator.rows(size, generator)
            samples = [rows.sample(row, sample) for row in range(rows.time.shape[0])]
            for resample, fitted in zip(samples, refitted_laws(samples, fit), strict=True):
                found.append(np.nan if fitted is None else distance(fitted[0](resample.completed.expand())))
        p = bootstrap_p_value(statistic, np.array(found))
    return GoodnessOfFit(statistic, None, sample.n, p_known, p)
