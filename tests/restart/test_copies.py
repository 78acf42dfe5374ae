"""Copies of laws that are hard near 0 or far out, against mpmath; laws without a density."""

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import lognorm

from latfit.laws import Defective, Law, parse_law
from latfit.restart import Copies, expected_duration, moments, optimal_timeout

HARD = {
    "log-logistic(shape=0.9,scale=64)": lambda t: 1 / (1 + (t / 64) ** mp.mpf("0.9")),
    "log-logistic(shape=0.04,scale=1)": lambda t: 1 / (1 + t ** mp.mpf("0.04")),
    "weibull(shape=0.3,scale=10)": lambda t: mp.exp(-((t / 10) ** mp.mpf("0.3"))),
    "gamma(shape=0.2,scale=3)": lambda t: mp.gammainc(mp.mpf("0.2"), t / 3, mp.inf, regularized=True),
    "pareto(a=3,nu=0.8)": lambda t: (3 / (3 + t)) ** mp.mpf("0.8"),
    "lognormal(mu=-1,sigma=3)": lambda t: mp.erfc((mp.log(t) + 1) / (3 * mp.sqrt(2))) / 2,
}


def test_two_copies_of_a_law_with_an_infinite_density_at_0():
    best = optimal_timeout(parse_law("log-logistic(shape=0.9,scale=64)"), copies=2, cost=5)
    assert best.timeout == pytest.approx(20.689, abs=5e-4)
    assert best.expected_duration == pytest.approx(38.253, abs=5e-4)


@pytest.mark.slow
@pytest.mark.parametrize("spec", HARD)
@pytest.mark.parametrize(("rho", "b"), [(0.0, 2), (0.1, 3)])
def test_expected_duration_of_copies_against_mpmath(spec, rho, b):
    law = parse_law(spec)
    for level in (1e-6, 0.05, 0.5, 0.999):
        t = float(law.ppf(level))

        def survival(u):
            return (rho + (1 - rho) * HARD[spec](u)) ** b if u else mp.mpf(1)

        with mp.workdps(20):
            edges = [0, *(t * mp.mpf(10) ** -k for k in (80, 40, 20, 12, 8, 5, 3, 2, 1)), t / 3, t]
            area, out = mp.quad(survival, edges), survival(mp.mpf(t))
            expected = float((area + 5 * out) / (1 - out))
        assert float(expected_duration(Defective(law, rho), t, cost=5, copies=b)) == pytest.approx(expected, rel=1e-9)


class OnlyItsCdf(Law):
    """A law that states its cdf and its partial moments, and no density."""

    name = "only-its-cdf"
    inner = parse_law("lognormal(mu=5.5,sigma=1)")

    @property
    def support(self):
        return 0.0, np.inf

    def cdf(self, t):
        return lognorm.cdf(t, 1, scale=np.exp(5.5))

    def partial_moment(self, n, t):
        return self.inner.partial_moment(n, t)


@pytest.mark.parametrize("objective", ["mean", "std", "moment:2", "quantile:0.9", "deadline:900"])
@pytest.mark.slow
def test_a_law_without_a_density_has_the_same_optimum(objective):
    bare, whole = OnlyItsCdf(), OnlyItsCdf.inner
    found, known = (optimal_timeout(law, cost=20, objective=objective) for law in (bare, whole))
    assert found.timeout == pytest.approx(known.timeout, rel=1e-5)
    assert found.objective["value"] == pytest.approx(known.objective["value"], rel=1e-9)
    assert found.within_1pct == pytest.approx(known.within_1pct, rel=1e-6)


def test_copies_of_a_law_without_a_density():
    bare, whole = Copies(OnlyItsCdf(), 3), Copies(OnlyItsCdf.inner, 3)
    t = np.array([20.0, 150.0, 900.0, np.inf])
    assert moments(bare, t, 2)[1:] == pytest.approx(moments(whole, t, 2)[1:], rel=1e-4)
