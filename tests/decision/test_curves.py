"""The step engine: many samples in one array give what the law of each gives alone."""

import numpy as np
import pytest

from latfit.decision.curves import curves_of
from latfit.laws import Empirical
from latfit.restart import expected_duration, optimal_timeout
from latfit.restart.steps import StepCurves
from latfit.restart.windows import flat_windows
from latfit.sample import LatencySample


def random_sample(rng, k):
    """Ties, zeros, failures, early censoring, lost probes and a cutoff, each in some of them."""
    n = int(rng.integers(12, 120))
    x = rng.lognormal(3, rng.uniform(0.2, 1.5), n)
    x = np.floor(x) if k % 3 == 0 else x
    kind = rng.choice(4, n, p=[0.75, 0.1 * (k % 2), 0.1 * (k % 4 > 1), 0.25 - 0.1 * (k % 2) - 0.1 * (k % 4 > 1)])
    kind[:8] = 0
    lost = int(rng.integers(4)) if k % 5 else 0
    sample = LatencySample.of(x[(kind == 0) | (kind == 3)], failed=x[kind == 1], censored=x[kind == 2], lost=lost)
    return sample.cut(float(np.quantile(x, 0.9)) + 1) if k % 2 else sample


@pytest.mark.parametrize("cost", [0.0, 5.0])
def test_rows_are_the_laws_of_their_samples(cost):
    rng = np.random.default_rng(1)
    samples = [random_sample(rng, k) for k in range(80)]
    curves = curves_of(samples)
    allowed = curves.allowed(np.array([s.resolution for s in samples]))
    best, least = curves.exact(cost, allowed)
    for row, sample in enumerate(samples):
        law = Empirical.of(sample)
        k = np.union1d(law.jumps, sample.failed.values).size
        t = curves.times[row, :k]
        np.testing.assert_allclose(curves.F[row, :k], law.cdf(t), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(curves.S[row, :k], law.still_out(t), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(curves.E_J(cost)[row, :k], expected_duration(law, t, cost=cost), rtol=1e-9)
        limits = {"min_completions": 5, "min_timeout": sample.resolution}
        want = optimal_timeout(law, cost=cost, **limits)
        if want.timeout is not None:
            assert curves.times[row, best[row]] == want.timeout
            assert least[row] == pytest.approx(want.expected_duration, rel=1e-10)
            window = tuple(float(end[row]) for end in curves.windows(best, [1.05 * least], cost)[0])
            near = [
                flat_windows(law, want.timeout, [1.05 * least[row] * f], cost=cost)[0] for f in (1 - 1e-9, 1 + 1e-9)
            ]
            assert any(window == pytest.approx((max(w[0], 0), w[1]), rel=1e-6) for w in near)
        at = rng.uniform(t[0], t[-1] * 1.5, 5)
        for each in at:
            got = StepCurves.E_J_at(curves, np.full(80, each), cost)[row]
            assert got == pytest.approx(float(expected_duration(law, each, cost=cost)), rel=1e-9)


def test_rescaling_the_outliers_is_that_of_the_law():
    rng = np.random.default_rng(2)
    sample = LatencySample.of(rng.lognormal(3, 1, 300), lost=6)
    law = Empirical.of(sample)
    scaled = curves_of([sample]).with_outliers(np.array([0.1]), exactly=True)
    want = expected_duration(law.rescaled(0.1), scaled.times[0])
    np.testing.assert_allclose(scaled.E_J()[0], want, rtol=1e-9)
    floored = curves_of([sample]).with_outliers(np.array([0.001]))
    np.testing.assert_allclose(floored.F, curves_of([sample]).F)


def test_the_careful_rule_is_its_formula():
    rng = np.random.default_rng(3)
    for k in range(30):
        x = np.sort(rng.lognormal(4, 0.3 + 0.06 * k, 60))
        n, i = x.size, np.arange(1, x.size + 1)
        rho = 0.5 / (n + 1)
        F = (1 - rho) * i / n
        W = np.array([np.trapezoid(1 - (1 - rho) * np.searchsorted(x, g := np.linspace(0, t, 20001)[:-1] + t / 40000,
                                                                   side="right") / n, g) for t in x])  # fmt: skip
        log_E, s = np.log(W / F), np.sqrt((1 - F) / (n * F))
        k = 5 + int((log_E + s)[5:].argmin())  # at most ten submissions: the sixth of sixty
        waits = log_E[k] + 1.5 * s[k] >= log_E[-1]
        want = 2 * x[-1] if waits or k == n - 1 else x[k]
        curves = curves_of([LatencySample.of(x, resolution=0)])
        assert curves.careful(0.0, curves.allowed(0.0))[1][0] == pytest.approx(want)
