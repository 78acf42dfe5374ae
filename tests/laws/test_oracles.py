"""Laws against 60-digit arithmetic at extreme parameters, against scipy.stats, and against the papers' numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.testing import assert_allclose
from scipy import stats

import laws_oracle
from latfit.laws import Defective, parse_law
from latfit.laws.discrete import Discrete
from latfit.laws.gamma import ErlangMixture
from latfit.laws.piecewise_uniform import PiecewiseUniform

EXTREME = {
    "exponential(rate=1e-9)": 1e-13,
    "weibull(shape=0.05,scale=300)": 1e-11,
    "weibull(shape=0.01,scale=3)": 1e-11,
    "weibull(shape=200,scale=300)": 1e-12,
    "gamma(shape=0.01,scale=100)": 1e-12,
    "gamma(shape=5000,scale=100)": 1e-11,
    "lognormal(mu=5.5,sigma=0.001)": 1e-11,
    "lognormal(mu=-3,sigma=12)": 1e-12,
    "pareto(a=100,nu=1)": 1e-12,
    "pareto(a=100,nu=2)": 1e-12,
    "pareto(a=100,nu=2.0000000001)": 1e-12,
    "pareto(a=100,nu=1.9999999999)": 1e-12,
    "pareto(a=100,nu=0.05)": 1e-12,
    "pareto(a=100,nu=3000)": 1e-12,
    "pareto(a=1e9,nu=1e9)": 1e-12,
    "log-logistic(shape=1,scale=200)": 1e-12,
    "log-logistic(shape=2,scale=200)": 1e-12,
    "log-logistic(shape=2.0000001,scale=200)": 1e-12,
    "log-logistic(shape=0.2,scale=200)": 1e-12,
    "log-logistic(shape=100,scale=200)": 1e-12,
    "truncated-gaussian(mu=300,sigma=1)": 1e-12,
    "truncated-gaussian(mu=1,sigma=1)": 1e-12,
    "truncated-gaussian(mu=-1,sigma=1)": 1e-12,
    "truncated-gaussian(mu=-40,sigma=1)": 1e-12,
    "truncated-gaussian(mu=-4000,sigma=1)": 1e-12,
    "uniform(a=1000000,b=1000000.1)": 1e-14,
    "erlang-mixture(p=[0.9,0.1],phases=[2,300],rates=[20,200])": 1e-12,
    "piecewise-uniform(edges=[0,1e-9,1,1e9],probs=[0.1,0.8,0.1])": 1e-14,
    "discrete(values=[1e-9,1,1e9],probs=[0.1,0.8,0.1])": 1e-14,
}


@pytest.mark.slow
@pytest.mark.parametrize("spec", EXTREME)
def test_partial_moments_against_mpmath(spec):
    law = parse_law(spec)
    inside = law.ppf([1e-30, 1e-9, 0.01, 0.3, 0.9, 1 - 1e-9])
    t = np.concatenate([inside, law.ppf(0.5) * np.array([1e-9, 0.1, 0.5, 3, 1e6, 1e15])])
    compared = 0
    for n in (0, 1, 2, 5):
        for u, ours in zip(t, law.partial_moment(n, t), strict=True):
            theirs = laws_oracle.partial_moment(law, n, u)
            if 1e-290 < theirs < 1e300:
                compared += 1
                assert abs((mpf(float(ours)) - theirs) / theirs) < EXTREME[spec], (n, u, ours, float(theirs))
    assert compared > 12


@st.composite
def laws_with_lists(draw):
    size = draw(st.integers(1, 6))
    weights = np.array(draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))) + 1e-3
    steps = draw(st.lists(st.floats(1e-3, 1e3), min_size=size, max_size=size))
    probs, times = weights / weights.sum(), np.cumsum(steps)
    kind = draw(st.sampled_from([Discrete, PiecewiseUniform, ErlangMixture]))
    if kind is ErlangMixture:
        return kind(probs, draw(st.lists(st.integers(1, 40), min_size=size, max_size=size)), 1 / np.array(steps))
    return kind(times, probs) if kind is Discrete else kind([0.0, *times], probs)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(laws_with_lists(), st.floats(0, 1.2), st.integers(0, 4))
def test_laws_with_lists_against_mpmath(law, level, n):
    t = float(law.ppf(min(level, 0.999))) * max(level, 1.0)
    assert_allclose(law.partial_moment(n, t), float(laws_oracle.partial_moment(law, n, t)), rtol=1e-11)
    whole = float(laws_oracle.partial_moment(law, n, 1e9))
    assert_allclose(law.moment(n), whole, rtol=1e-11)


@pytest.mark.parametrize(
    ("spec", "exact"),
    [
        ("exponential(rate=2)", lambda t: -2 * t),
        ("weibull(shape=3,scale=2)", lambda t: -((t / 2) ** 3)),
        ("lognormal(mu=0,sigma=0.1)", lambda t: mp.log(mp.erfc(mp.log(t) / mpf(0.1) / mp.sqrt(2)) / 2)),
        ("gamma(shape=3.5,scale=2)", lambda t: mp.log(mp.gammainc(3.5, t / 2, regularized=True))),
        ("gamma(shape=900,scale=2)", lambda t: mp.log(mp.gammainc(900, t / 2, regularized=True))),
        (
            "erlang-mixture(p=[0.5,0.5],phases=[3,2],rates=[0.5,0.4])",
            lambda t: mp.log(
                (mp.gammainc(3, t / 2, regularized=True) + mp.gammainc(2, t * mpf(0.4), regularized=True)) / 2
            ),
        ),
        ("truncated-gaussian(mu=1,sigma=2)", lambda t: mp.log(mp.ncdf((1 - t) / 2) / mp.ncdf(mpf(0.5)))),
        ("truncated-gaussian(mu=-60,sigma=2)", lambda t: mp.log(mp.ncdf((-60 - t) / 2) / mp.ncdf(-30))),
        ("pareto(a=2,nu=90)", lambda t: -90 * mp.log1p(t / 2)),
        ("log-logistic(shape=90,scale=2)", lambda t: -mp.log1p((t / 2) ** 90)),
    ],
)
def test_log_survival_far_in_the_tail(spec, exact):
    """Also where S itself is below the smallest float."""
    law = parse_law(spec)
    t = law.ppf(0.999) * np.array([1.0, 3.0, 10.0, 100.0, 1000.0])
    assert_allclose(law.logsf(t), [float(exact(mpf(float(u)))) for u in t], rtol=1e-12)
    assert law.logsf(np.inf) == -np.inf


@pytest.mark.parametrize(
    ("spec", "theirs"),
    [
        ("exponential(rate=0.01)", stats.expon(scale=100)),
        ("weibull(shape=0.7,scale=300)", stats.weibull_min(0.7, scale=300)),
        ("weibull(shape=12.5,scale=300)", stats.weibull_min(12.5, scale=300)),
        ("lognormal(mu=5.5,sigma=1)", stats.lognorm(1, scale=np.exp(5.5))),
        ("pareto(a=100,nu=2.5)", stats.lomax(2.5, scale=100)),
        ("gamma(shape=0.4,scale=10)", stats.gamma(0.4, scale=10)),
        ("log-logistic(shape=3,scale=200)", stats.fisk(3, scale=200)),
        ("uniform(a=100,b=500)", stats.uniform(100, 400)),
        ("truncated-gaussian(mu=300,sigma=100)", stats.truncnorm(-3, np.inf, 300, 100)),
        ("truncated-gaussian(mu=-40,sigma=10)", stats.truncnorm(4, np.inf, -40, 10)),
    ],
)
def test_against_scipy_stats(spec, theirs):
    law = parse_law(spec)
    q = np.array([0.01, 0.2, 0.5, 0.8, 0.99])
    t = theirs.ppf(q)
    assert_allclose(law.ppf(q), t, rtol=1e-10)
    for name in ("cdf", "sf", "pdf", "logpdf", "logsf"):
        assert_allclose(getattr(law, name)(t), getattr(theirs, name)(t), rtol=1e-10, err_msg=name)
    assert_allclose([law.mean(), law.std()], [theirs.mean(), theirs.std()], rtol=1e-9)


def test_standard_deviations_do_not_cancel():
    """Narrow laws, where E[T²] − E[T]² would lose every digit."""
    assert_allclose(parse_law("uniform(a=1e9,b=1000000001)").std(), 1 / np.sqrt(12), rtol=1e-12)
    assert_allclose(parse_law("truncated-gaussian(mu=1e9,sigma=1)").std(), 1, rtol=1e-12)
    assert_allclose(parse_law("gamma(shape=1e12,scale=1)").std(), 1e6, rtol=1e-12)
    assert_allclose(parse_law("lognormal(mu=0,sigma=1e-9)").std(), 1e-9, rtol=1e-9)
    for shape in (10.5, 1e3, 1e7):
        x = 1 / mpf(shape)
        exact = mp.sqrt(mp.gamma(1 + 2 * x) - mp.gamma(1 + x) ** 2)
        assert_allclose(parse_law(f"weibull(shape={shape},scale=1)").std(), float(exact), rtol=1e-11)
    wide = parse_law("log-logistic(shape=1e6,scale=1)")
    assert_allclose(wide.std(), np.pi / np.sqrt(3) / 1e6, rtol=1e-5)


def test_far_below_0_a_truncated_gaussian_is_exponential():
    """mu/sigma = −1/x: rate (1 + x² + …) |mu|/sigma², from the asymptotic series of the normal tail."""
    for x in (1e-2, 1e-4, 1e-8):
        law = parse_law(f"truncated-gaussian(mu={-1 / x!r},sigma=1)")
        assert_allclose(law.mean(), x * (1 - 2 * x**2 + 10 * x**4), rtol=1e-9)
        assert_allclose(law.std(), x * (1 - 3 * x**2), rtol=1e-6)
        assert_allclose(law.ppf(0.5), np.log(2) * x, rtol=2 * x**2 + 1e-12)


def test_running_example_of_van_moorsel_and_wolter():
    law = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
    assert_allclose(law.mean(), 0.190, rtol=1e-14)
    assert_allclose(law.moment(2), 0.1635, rtol=1e-14)
    assert_allclose(law.std() / law.mean(), 1.8786, atol=5e-5)


def test_lognormal_of_glatard_and_the_erratum_of_equation_11():
    """Eq. 11 calls (exp(σ²) − 1) exp(2μ + σ²) the standard deviation; it is the variance."""
    law = parse_law("lognormal(mu=5.5,sigma=1)")
    printed = (np.exp(1) - 1) * np.exp(2 * 5.5 + 1)
    assert_allclose(law.mean(), 403.43, atol=5e-3)
    assert_allclose(law.std() ** 2, printed, rtol=1e-13)
    sample = law.sample(400_000, np.random.default_rng(5))
    assert abs(sample.std() / law.std() - 1) < 0.1
    assert printed / sample.std() > 100


def test_laws_of_glatard():
    assert_allclose(parse_law("pareto(a=100,nu=2.5)").mean(), 100 / 1.5, rtol=1e-14)
    nu, a = 2.5, 100
    variance = nu * a**2 / ((nu - 2) * (nu - 1) ** 2)  # §3.8
    assert_allclose(parse_law("pareto(a=100,nu=2.5)").std() ** 2, variance, rtol=1e-14)
    assert parse_law("pareto(a=100,nu=1)").mean() == np.inf
    assert parse_law("pareto(a=100,nu=2)").std() == np.inf
    # §2.2 prints P(outlier at t) → 1; what is still out tends to rho
    assert Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025).still_out(np.inf) == 0.025


def test_laws_of_chalasani():
    step = parse_law("piecewise-uniform(edges=[0,1,5],probs=[0.6666666666666666,0.3333333333333333])")
    assert_allclose(step.mean(), 4 / 3, rtol=1e-14)
    assert_allclose(step.pdf([0.5, 3.0]), [8 / 12, 1 / 12], rtol=1e-14)
    two = parse_law("discrete(values=[1,6],probs=[0.5,0.5])")
    assert (two.mean(), two.std()) == (3.5, 2.5)
    assert parse_law("discrete(values=[5,20],probs=[0.6,0.4])").mean() == 11


def test_infinite_moments_are_infinite_and_the_others_finite():
    for spec, order in (("pareto(a=3,nu=1.5)", 1.5), ("log-logistic(shape=2.5,scale=1)", 2.5)):
        law = parse_law(spec)
        for n in (1, 2, 3, 4):
            assert np.isfinite(law.moment(n)) == (n < order)
            assert np.isfinite(law.partial_moment(n, 1e9))
    hybrid = parse_law("lognormal-pareto(mu=5,sigma=0.7,a=200,nu=1.4,k=0.4,t_min=50,t_max=9000)")
    assert np.isfinite(hybrid.mean())
    assert hybrid.moment(2) == hybrid.std() == np.inf
