"""Least squares on the cdf: the paper's criterion, its hybrid law, and the bundled log."""

import csv

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize
from scipy.stats import truncnorm

from conftest import EGEE
from latfit.errors import LawError
from latfit.fitting import DEFAULT_LAWS, SampleBatch, fit
from latfit.fitting.least_squares import Target, counted_ratio, levenberg_marquardt
from latfit.laws import Defective, Empirical, get_law, parse_law
from latfit.restart import optimal_timeout
from latfit.sample import LatencySample

HYBRID = "lognormal-pareto"


@pytest.fixture(scope="module")
def egee():
    with EGEE.open() as file:
        rows = list(csv.DictReader(file))
    completed = [float(row["latency"]) for row in rows if row["status"] == "completed"]
    return LatencySample.of(completed, censored=[10_000.0] * (len(rows) - len(completed)), cutoff=10_000.0)


def residuals(sample, law, rho):
    """The criterion as the paper writes it: one term a second."""
    x = np.sort(sample.completed.expand())
    seconds = np.arange(x[0], x[-1] + 1)
    return law.cdf(seconds) - np.searchsorted(x, seconds, side="right") / sample.n / (1 - rho)


def test_the_target_is_the_empirical_cdf_of_returned_probes():
    sample = LatencySample.of([2.0, 4.0, 4.0, 7.0], censored=[10.0], cutoff=10.0, resolution=1.0)
    goal = Target.of(sample)
    np.testing.assert_allclose(goal.t[0], [2, 3, 4, 5, 6, 7])
    np.testing.assert_allclose(goal.y[0], [0.25, 0.25, 0.75, 0.75, 0.75, 1.0])
    assert counted_ratio(sample) == pytest.approx(0.2)
    fine = Target.of(LatencySample.of([2.0, 3.0], resolution=0))
    assert fine.t.shape == (1, 10_001)


def test_failures_and_early_censoring_leave_the_risk_set():
    sample = LatencySample.of([1.0, 3.0], failed=[2.0], censored=[2.0], resolution=1.0)
    np.testing.assert_allclose(Target.of(sample, 0.0).y[0], [0.25, 0.25, 1.0])


@pytest.mark.slow
@pytest.mark.parametrize("law", DEFAULT_LAWS)
def test_against_scipy(egee, law):
    found = fit(egee, [law], method="ls")[0]
    assert found.error is None
    assert found.rho == pytest.approx(53 / 2137)
    assert found.sse == pytest.approx((residuals(egee, found.law, found.rho) ** 2).sum(), rel=1e-9)
    assert found.log_likelihood is None
    assert found.bic is None
    assert set(found.std_errors) >= {*found.params, "rho"}
    assert fit(egee, [law], method="ls", resamples=0)[0].std_errors is None
    if found.at_limit:
        return
    start = np.array(list(found.params.values()))

    def miss(factors):
        try:
            return residuals(egee, get_law(law)(*(start * factors)), found.rho)
        except LawError:
            return np.full(9687, 1e3)

    for seed in range(2):
        moved = np.exp(np.random.default_rng(seed).normal(0, 0.1, start.size))
        theirs = least_squares(miss, moved, xtol=1e-12, ftol=1e-12)
        assert found.sse <= 2 * theirs.cost * (1 + 1e-7)


def test_nested_laws_are_never_worse(egee):
    fits = {f.name: f.sse for f in fit(egee, method="ls", resamples=0)}
    for law in ("weibull", "gamma", "pareto", "truncated-gaussian"):
        assert fits[law] <= fits["exponential"]
    assert min(fits, key=fits.get) == HYBRID


@pytest.mark.parametrize(("mu", "sigma"), [(1000.0, 3.0), (1e5, 2.0), (300.0, 100.0)])
def test_narrow_truncated_gaussians_reach_their_minimum(mu, sigma):
    """Steps were at most 2 in μ/σ², however large that is: the search stopped on the way."""
    sample = LatencySample.of(np.round(np.abs(np.random.default_rng(4).normal(mu, sigma, 90)), 1))
    (found,) = fit(sample, "truncated-gaussian", method="ls", resamples=0)
    goal = Target.of(sample)

    def sse(v):
        return ((truncnorm.cdf(goal.t[0], -v[0] / v[1], np.inf, v[0], v[1]) - goal.y[0]) ** 2).sum()

    least = minimize(sse, [mu, sigma], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert found.converged
    assert found.sse <= least.fun * (1 + 1e-6)


def test_hybrid_gradient():
    model = get_law(HYBRID).kernel
    u = np.array([[-0.2, 0.1], [-0.4, 0.2], [0.3, 0.2], [-1.0, -2.0], [-0.8, 0.1], [0.4, 0.3], [30.0, 40.0]])
    t = np.linspace(0.5, 29, 40)[None]
    F, J = model.cdf(t, u)
    for i in range(5):
        step = np.zeros_like(u)
        step[i] = 1e-6
        slope = (model.cdf(t, u + step)[0] - model.cdf(t, u - step)[0]) / 2e-6
        np.testing.assert_allclose(J[i], slope, rtol=1e-5, atol=1e-9)
    law = get_law(HYBRID)(*model.to_params(u, 1.0)[0][:, 0])
    np.testing.assert_allclose(F[0], law.cdf(t[0]), rtol=1e-12)
    params = np.array(list(law.params.values()))[:, None]
    np.testing.assert_allclose(model.from_params(params, 1.0)[:, 0], u[:, 0], rtol=1e-12)


def test_hybrid_on_the_bundled_log(egee):
    """The numbers of the documentation, and no better sum of squares from 50 random restarts."""
    found = fit(egee, [HYBRID], method="ls")[0]
    assert found.params["t_min"] == 103
    assert found.params["t_max"] == 9790
    assert found.sse == pytest.approx(0.121112, abs=1e-6)
    expected = {"mu": 4.72006, "sigma": 0.701487, "a": 752.594, "nu": 2.24123, "k": 0.444642}
    for name, value in expected.items():
        assert found.params[name] == pytest.approx(value, rel=1e-4)
    kernel, batch = get_law(HYBRID).kernel, SampleBatch.of_samples([egee])
    starts = np.concatenate(kernel.starts(batch), axis=1)
    rng = np.random.default_rng(0)
    u = starts[:, rng.integers(32, size=50)]
    u[:5] += rng.normal(0, 1, (5, 50)) * np.array([[1], [0.5], [1.5], [1.5], [1]])
    goal = Target.of(egee).blocks(400).rows(np.zeros(50, dtype=int))
    tried = levenberg_marquardt(kernel, goal, u)
    best = tried.u[:, [tried.sse.argmin()]]
    polished = levenberg_marquardt(kernel, Target.of(egee), best)
    assert np.isfinite(tried.sse).sum() > 10
    assert polished.sse[0] >= 0.999 * found.sse


def test_hybrid_and_empirical_timeouts_side_by_side(egee):
    found = fit(egee, [HYBRID], method="ls")[0]
    model = optimal_timeout(Defective(found.law, found.rho))
    seen = optimal_timeout(Empirical.of(egee), min_completions=5)
    assert seen.timeout == pytest.approx(358, abs=3)
    assert model.timeout == pytest.approx(416.25, abs=0.1)
    assert model.within_1pct[0] < seen.timeout < model.within_1pct[1]
    assert model.expected_duration == pytest.approx(seen.expected_duration, rel=0.02)


def test_hybrid_finds_the_truth():
    truth = parse_law("lognormal-pareto(mu=4.8,sigma=0.7,a=700,nu=2.2,k=0.45,t_min=100,t_max=9000)")
    x = np.maximum(np.rint(truth.sample(20_000, np.random.default_rng(3))), 101)
    sample = LatencySample.of(x, cutoff=9000.0)
    found = fit(sample, [HYBRID], method="ls")[0]
    t = np.geomspace(120, 8000, 50)
    F = found.law.cdf(t) * (1 - found.rho)
    np.testing.assert_allclose(F, truth.cdf(t), atol=0.012)


def test_parameters_whose_curve_is_not_a_cdf_are_excluded():
    """Few values far apart tempt the hybrid to fall in between."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = np.concatenate([rng.normal(100, 2, 30), rng.normal(5000, 30, 10)])
        found = fit(LatencySample.of(np.rint(x)), [HYBRID], method="ls")[0]
        if found.error is None:
            t = np.linspace(found.params["t_min"], 2 * found.params["t_max"], 100_000)
            assert (np.diff(found.law.cdf(t)) >= -1e-12).all()


def test_at_least_two_values_are_needed():
    assert "two distinct" in fit(LatencySample.of([5.0, 5.0], resolution=0), ["lognormal"], method="ls")[0].error
