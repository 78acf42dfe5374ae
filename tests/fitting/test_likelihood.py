"""The batched likelihood: its value against scipy's laws, its derivatives against differences of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from latfit.fitting import SampleBatch
from latfit.fitting.estimate import law_class
from latfit.fitting.likelihood import log_likelihood, profile_rho
from latfit.laws import get_law, law_names

LAWS = [name for name in law_names() if (kernel := getattr(get_law(name), "kernel", None)) and not kernel.held]
POINTS = {
    "exponential": [[0.1, 0.2, -0.3]],
    "lognormal": [[0.1, 0.0, -0.1], [0.0, 0.1, -0.2]],
    "weibull": [[0.1, 0.0, -0.1], [0.0, 0.1, -0.2]],
    "log-logistic": [[0.1, 0.0, -0.1], [0.0, 0.1, -0.2]],
    "gamma": [[0.1, 0.0, -0.1], [0.0, 0.1, -0.2]],
    "pareto": [[0.1, 0.0, -0.1], [0.0, 0.1, -0.2]],
    "truncated-gaussian": [[0.5, -1.0, 10.0], [1.0, 0.5, 0.002]],
}

SCIPY = {
    "exponential": lambda rate: stats.expon(scale=1 / rate),
    "lognormal": lambda mu, sigma: stats.lognorm(sigma, scale=np.exp(mu)),
    "weibull": lambda shape, scale: stats.weibull_min(shape, scale=scale),
    "log-logistic": lambda shape, scale: stats.fisk(shape, scale=scale),
    "gamma": lambda shape, scale: stats.gamma(shape, scale=scale),
    "pareto": lambda a, nu: stats.lomax(nu, scale=a),
    "truncated-gaussian": lambda mu, sigma: stats.truncnorm(-mu / sigma, np.inf, loc=mu, scale=sigma),
}


def batch(cell=0.0, lost=0):
    x = np.random.default_rng(0).lognormal(0, 1, (3, 50))
    several = SampleBatch.of_rows(x, cutoff=3.0)
    c = np.array([[0.4, 1.1, 3.0]])
    weights = np.array([[2.0, 1.0, 4.0], [0.0, 3.0, 2.0], [1.0, 0.0, 5.0]])
    return replace(several, c=c, c_weights=weights, cell=cell, lost=np.full(3, float(lost)))


def exact(law, sample, rho, row):
    """The likelihood as the formula reads, one term at a time."""
    x, w = sample.x[row], sample.weights[row]
    if sample.cell:
        low, high = np.maximum(x - sample.cell / 2, 0), x + sample.cell / 2
        log_f = np.log((law.cdf(high) - law.cdf(low)) / (high - low))
    else:
        log_f = law.logpdf(x)
    out = np.log(rho + (1 - rho) * law.sf(sample.c[0])) @ sample.c_weights[row]
    lost = sample.lost[row] * np.log(rho) if sample.lost[row] else 0.0
    return (log_f + np.log(1 - rho)) @ w + out + lost


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("cell", [0.0, 0.3])
def test_the_value_is_that_of_the_formula(name, cell):
    sample, u = batch(cell, lost=2), np.array(POINTS[name])
    at = log_likelihood(law_class(name).kernel, sample.given(0.07), u)
    for row, params in enumerate(law_class(name).kernel.to_params(u, 1.0)[0].T):
        assert at.value[row] == pytest.approx(
            exact(SCIPY[name](*params), sample, 0.07, row), rel=1e-7 if cell else 1e-10
        )


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("rho", [None, 0.05, 0.0])
@pytest.mark.parametrize("cell", [0.0, 0.3])
def test_derivatives(name, rho, cell):
    kernel, sample, u = law_class(name).kernel, batch(cell).given(rho), np.array(POINTS[name])
    at = log_likelihood(kernel, sample, u)
    for i in range(u.shape[0]):
        step = np.zeros_like(u)
        step[i] = 1e-5 * kernel.curvature_scale(u)[i]
        above, below = (log_likelihood(kernel, sample, u + sign * step) for sign in (1, -1))
        slope = (above.value - below.value) / (2 * step[i])
        curve = (above.grad - below.grad) / (2 * step[i])
        np.testing.assert_allclose(at.grad[i], slope, rtol=1e-6, atol=1e-7 * np.abs(slope).max() + 1e-7)
        np.testing.assert_allclose(at.hess[i], curve, rtol=1e-5, atol=1e-5 * np.abs(curve).max())


@pytest.mark.parametrize("name", LAWS)
def test_parameters_survive_a_round_trip(name):
    kernel = law_class(name).kernel
    u = np.array(POINTS.get(name, [[0.2, 0.1, 0.3], [0.1, 0.5, -0.2]]))
    params, jacobian = kernel.to_params(u, 60.0)
    np.testing.assert_allclose(kernel.from_params(params, 60.0), u, rtol=1e-12, atol=1e-14)
    for j in range(u.shape[0]):
        step = np.zeros_like(u)
        step[j] = 1e-6 * np.abs(u[j]).max()
        slope = (kernel.to_params(u + step, 60.0)[0] - kernel.to_params(u - step, 60.0)[0]) / (2 * step[j])
        np.testing.assert_allclose(jacobian[:, j], slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("name", LAWS)
def test_kernel_agrees_with_the_law(name):
    """The fitter and the law must mean the same by a parameter."""
    kernel = law_class(name).kernel
    u = np.array(POINTS.get(name, [[0.2], [0.5]]))[:, :1]
    law = law_class(name)(*kernel.to_params(u, 60.0)[0][:, 0])
    t = np.geomspace(0.3, 4.0, 7)
    np.testing.assert_allclose(kernel.probability(t[None], u)[0], law.cdf(60 * t), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(kernel.cdf(t[None], u)[0][0], law.cdf(60 * t), rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("lost", [0, 3])
def test_profiled_ratio_is_the_best(lost):
    sample = batch(lost=lost)
    log_s = np.log(np.array([[0.7, 0.5, 0.1], [0.9, 0.2, 0.01], [0.5, 0.4, 0.3]]))
    rho = profile_rho(sample, log_s)

    def value(r):
        S = np.exp(log_s)
        out = (sample.c_weights * np.log(r[:, None] + (1 - r[:, None]) * S)).sum(axis=1)
        return sample.n * np.log1p(-r) + out + (lost * np.log(r) if lost else 0.0)

    for shift in (1e-4, -1e-4):
        moved = rho + shift
        fine = moved > 0
        assert (value(np.maximum(rho, 1e-300))[fine] >= value(moved)[fine]).all()


@pytest.mark.parametrize(("out", "lost"), [(0, 4), (9, 4), (9, 0), (60, 1), (3, 50)])
@pytest.mark.parametrize("S", [0.9, 0.3, 0.02, 1e-9])
def test_ratio_with_one_time_of_censoring_by_a_search(out, lost, S):
    """The root of the score, between 0 and the share that did not return, by bisection."""
    n, F = 40.0, 1 - S
    cut = SampleBatch(np.ones((2, 1)), np.full((2, 1), n), np.ones((1, 1)), np.full((2, 1), float(out)),
                      np.array([lost, 1.0]))  # fmt: skip

    def score(r, gone):
        return out * F / (r + (1 - r) * S) + gone / r - n / (1 - r)

    for rho, gone in zip(profile_rho(cut, np.full((2, 1), np.log(S))), (lost, 1), strict=True):
        low, high = 1e-13, 1 - 1e-13
        if score(low, gone) <= 0:
            assert rho == 0
            continue
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if score(middle, gone) > 0 else (low, middle)
        assert rho == pytest.approx(low, rel=1e-9)


def test_normaliser_of_the_truncated_gaussian_near_its_limit():
    """By mpmath, on both sides of the switch to the asymptotic series."""
    from mpmath import mp

    from latfit.laws.truncated_gaussian import log_normaliser

    mp.dps = 40

    def log_z(r, c):
        z = r / mp.sqrt(c)
        return mp.log(mp.sqrt(mp.pi / (2 * c)) * mp.erfc(z / mp.sqrt(2)) * mp.exp(z * z / 2))

    quadrature = mp.quad(lambda x: mp.exp(-x - mp.mpf(0.3) * x * x / 2), [0, 1, 5, 20, mp.inf])
    assert mp.almosteq(mp.exp(log_z(1, mp.mpf(0.3))), quadrature, rel_eps=1e-20)
    for c in (0.3, 1 / 29.9**2, 1 / 30.1**2, 1e-6):
        jet = log_normaliser(np.array([1.0]), np.array([c]))
        exact_c = mp.mpf(c)
        assert jet.value[0] == pytest.approx(float(log_z(1, exact_c)), rel=1e-9, abs=1e-14)
        slope = mp.diff(lambda v: log_z(1, v), exact_c, h=exact_c * mp.mpf("1e-10"))
        assert jet.grad[1, 0] == pytest.approx(float(slope), rel=1e-9)
        curve = mp.diff(lambda v: log_z(1, v), exact_c, 2, h=exact_c * mp.mpf("1e-8"))
        assert jet.hess[1, 1, 0] == pytest.approx(float(curve), rel=1e-4)
