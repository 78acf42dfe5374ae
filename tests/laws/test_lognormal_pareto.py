"""The log-normal–Pareto law of Glatard et al., eq. 14, and when it is none."""

import re
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from latfit.errors import LawError
from latfit.laws import parse_law
from latfit.laws.pareto import LogNormalPareto

FITTED = LogNormalPareto(mu=5, sigma=0.7, a=200, nu=1.4, k=0.4, t_min=50, t_max=9000)
SMALL = LogNormalPareto(mu=0, sigma=1, a=1, nu=3.5, k=1, t_min=0, t_max=10)


def eq_14(t, mu, sigma, a, nu, k, t_min, t_max):
    """Glatard et al. 2006, eq. 14, as printed."""
    alpha = ((t - t_min) / (t_max - t_min)) ** k
    return (1 - alpha) * stats.norm.cdf((np.log(t - t_min) - mu) / sigma) + alpha * (1 - (a / (a + t)) ** nu)


@pytest.mark.parametrize("law", [FITTED, SMALL])
def test_the_equation_up_to_t_max_and_pareto_beyond(law):
    t = np.linspace(law.t_min, law.t_max, 1001)[1:]
    assert_allclose(law.cdf(t), eq_14(t, **law.params), rtol=1e-13)
    assert law.cdf(law.t_max) < 1  # eq. 14 alone is not proper
    late = law.t_max * np.array([1.0, 2.0, 1e3, 1e9])
    assert_allclose(law.sf(late), (law.a / (law.a + late)) ** law.nu, rtol=1e-13)
    assert_allclose(law.logsf(late), law.nu * np.log(law.a / (law.a + late)), rtol=1e-13)
    assert (law.cdf(np.linspace(0, law.t_min, 7)) == 0).all()


def exact_cdf(law, v):
    """F(t_min + v) in 60 digits."""
    p = {name: mpf(value) for name, value in law.items()}
    t = p["t_min"] + v
    alpha = (v / (p["t_max"] - p["t_min"])) ** p["k"]
    body = mp.ncdf((mp.log(v) - p["mu"]) / p["sigma"])
    return (1 - alpha) * body + alpha * (1 - (p["a"] / (p["a"] + t)) ** p["nu"])


@pytest.mark.slow
@pytest.mark.parametrize("law", [FITTED, SMALL])
def test_partial_moments_against_mpmath(law):
    """M_n(t) = tⁿF(t) − n∫ uⁿ⁻¹ F(u) du in 60 digits: the density is not used."""
    t_min, t_max = mpf(law.t_min), mpf(law.t_max)
    cuts = [mpf(0), *(t_max * mpf(10) ** j for j in (-12, -8, -6, -5, -4, -3, -2, -1)), t_max - t_min]
    for n in (1, 2, 3):
        below = mpf(0)
        for a, b in pairwise(cuts):
            below += mp.quad(lambda v, n=n: (t_min + v) ** (n - 1) * exact_cdf(law.params, v), [a, (a + b) / 2, b])
            t = t_min + b
            exact = t**n * exact_cdf(law.params, b) - n * below
            if b > t_max / 1000:
                assert_allclose(float(law.partial_moment(n, float(t))), float(exact), rtol=1e-9)


@pytest.mark.parametrize("law", [FITTED, SMALL])
def test_moments_beyond_t_max_are_those_of_the_pareto_law(law):
    pareto = parse_law(f"pareto(a={law.a},nu={law.nu})")
    late = law.t_max * np.array([1.5, 10.0, 1e4, np.inf])
    for n in (1, 2, 3):
        ours = law.partial_moment(n, late) - law.partial_moment(n, law.t_max)
        assert_allclose(ours, pareto.partial_moment(n, late) - pareto.partial_moment(n, law.t_max), rtol=1e-9)


def random_parameters(rng):
    t_min = float(rng.choice([0.0, 30.0]))
    return {
        "mu": rng.uniform(3, 7),
        "sigma": np.exp(rng.uniform(-3, 1)),
        "a": np.exp(rng.uniform(2, 8)),
        "nu": np.exp(rng.uniform(-1, 3)),
        "k": np.exp(rng.uniform(-2.5, 2)),
        "t_min": t_min,
        "t_max": float(rng.choice([300.0, 3000.0, 10_000.0])),
    }


@pytest.mark.slow
def test_refused_parameters_give_a_falling_cdf_and_accepted_ones_do_not():
    """Against F itself: on a fine grid if accepted, in 60 digits at the place that the error names if refused."""
    rng = np.random.default_rng(14)
    accepted = refused = 0
    for _ in range(60):
        params = random_parameters(rng)
        span = params["t_max"] - params["t_min"]
        v = np.unique(np.concatenate([np.linspace(0, span, 20_001), span * np.geomspace(1e-9, 1, 20_001)]))
        try:
            law = LogNormalPareto(**params)
        except LawError as error:
            refused += 1
            t = mpf(float(re.search(r"F falls near t = (\S+)$", str(error))[1]))
            steps = [t * (1 + mpf(j) / 10**6) - mpf(params["t_min"]) for j in range(-60, 61)]
            values = [exact_cdf(params, step) for step in steps if 0 < step <= span]
            assert any(later < earlier for earlier, later in pairwise(values)), params
        else:
            accepted += 1
            assert np.diff(law.cdf(params["t_min"] + v)).min() > -1e-14, params
            assert (law.pdf(params["t_min"] + v) >= 0).all()
    assert accepted > 10
    assert refused > 10


def test_a_narrow_dip_between_grid_points_is_found():
    """k far from 1 and a narrow body: F rises on any coarse grid, but falls just before t_max."""
    with pytest.raises(LawError, match="not a cdf: F falls near t = "):
        LogNormalPareto(mu=2, sigma=0.01, a=1, nu=2, k=200, t_min=0, t_max=1000)


@pytest.mark.parametrize("sigma", [1e-300, 1e-3, 1e4, 1e300])
@pytest.mark.parametrize("k", [1e-300, 0.4, 1e300])
@pytest.mark.parametrize("t_max", [1e-305, 1e4, 1e300])
def test_extreme_parameters_are_checked_in_little_memory(sigma, k, t_max):
    tracemalloc.start()
    try:
        law = LogNormalPareto(mu=5, sigma=sigma, a=200, nu=1.4, k=k, t_min=0, t_max=t_max)
        assert np.isfinite(law.cdf(t_max))
    except LawError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize(
    "spec",
    [  # fits of ordinary small logs: a weight that hardly falls towards t_min, a tail whose t/a overflows
        "lognormal-pareto(mu=5.553,sigma=0.311,a=53.17,nu=1.511,k=0.0169,t_min=0.74,t_max=3049.54)",
        "lognormal-pareto(mu=4.602,sigma=0.834,a=1.3e-85,nu=0.0197,k=0.794,t_min=31,t_max=403)",
    ],
)
def test_partial_moments_of_extreme_fits_are_those_of_the_cdf(spec):
    """By parts: M_1(t) = t F(t) − ∫ F, and M_2 likewise, with scipy's quadrature of the cdf."""
    law = parse_law(spec)
    for t in (law.t_min + 1.0, 200.0, 390.0):
        # in log(u − t_min), where F is smooth
        first, second = (
            quad(
                lambda x, n=n: n * (law.t_min + np.exp(x)) ** (n - 1) * law.cdf(law.t_min + np.exp(x)) * np.exp(x),
                -30,
                np.log(t - law.t_min),
                epsabs=1e-11,
                epsrel=1e-11,
                limit=500,
            )[0]
            for n in (1, 2)
        )
        assert_allclose(law.partial_moment(1, t), t * law.cdf(t) - first, rtol=1e-8)
        assert_allclose(law.partial_moment(2, t), t**2 * law.cdf(t) - second, rtol=1e-8)


def test_a_pareto_tail_has_no_end_in_floating_point():
    law = parse_law("pareto(a=1e-85,nu=0.02)")
    assert_allclose(law.sf(1e300), np.exp(-0.02 * 385 * np.log(10)), rtol=1e-12)
