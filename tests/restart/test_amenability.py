"""The condition under which a restart helps, against the mean it leads to and against mpmath."""

import mpmath
import numpy as np
import pytest

from latfit.laws import Defective, parse_law
from latfit.restart import expected_duration, moments, optimal_timeout, restart_helps, schedule_moments

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")


@pytest.mark.parametrize("cost", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_condition_is_the_moment_after_one_restart(cost, order):
    for tau in np.geomspace(0.01, 2, 40):
        restarted = schedule_moments(V, (tau,), order, cost=cost)[order]
        assert bool(restart_helps(V, tau, cost=cost, order=order)) == (restarted < V.moment(order))


def test_for_the_mean_one_restart_is_as_good_a_test_as_all():
    tau = np.geomspace(0.01, 2, 200)
    helps = restart_helps(V, tau)
    assert (helps == (expected_duration(V, tau) < 0.19)).all()
    assert helps.any()
    assert not helps.all()


def test_for_higher_moments_it_is_not():
    """V, Fig. 10: at some τ one restart lowers the second moment and restarts for ever raise it."""
    tau = np.linspace(0.005, 0.06, 400)
    assert (restart_helps(V, tau, order=2) & (moments(V, tau, 2)[2] > V.moment(2))).any()


def test_equality_of_the_exponential_law():
    law = parse_law("exponential(rate=0.7)")
    tau = np.geomspace(1e-3, 60, 50)
    assert not restart_helps(law, tau).any()
    assert not restart_helps(law, tau, cost=0.01).any()


@pytest.mark.parametrize("z", [3.0, 6.0, 9.0, 14.0])
@pytest.mark.parametrize("sigma", [0.2, 0.45])
def test_far_tail_of_the_lognormal_law(sigma, z):
    """Where 1 − F is below rounding the answer is still that of E[T] + c against the mean residual life."""
    mpmath.mp.dps = 60
    tau, mean = mpmath.exp(sigma * z), mpmath.exp(mpmath.mpf(sigma) ** 2 / 2)
    late = mean * mpmath.ncdf(sigma - mpmath.mpf(z)) / mpmath.ncdf(-mpmath.mpf(z)) - tau
    law = parse_law(f"lognormal(mu=0,sigma={sigma})")
    for factor in (0.99, 1.01):
        cost = float((late - mean) * factor)
        if cost > 0:
            assert bool(restart_helps(law, float(tau), cost=cost)) == (factor < 1)
    assert bool(restart_helps(law, float(tau))) == (late > mean)


def test_infinite_moments():
    assert restart_helps(Defective(V, 0.1), 0.2)
    assert restart_helps(parse_law("pareto(a=1,nu=0.9)"), 3.0)
    assert not restart_helps(parse_law("uniform(a=1,b=2)"), [0.5, 1.5, 2.5]).any()


def slope(law, t, cost=0.0):
    """The sign of dE_J/dt: S(t) − f̃(t) (E_J(t) + c). van Moorsel & Wolter 2004, Theorem 2."""
    return law.still_out(t) - law.pdf(t) * (expected_duration(law, t, cost=cost) + cost)


@pytest.mark.slow
def test_the_slope_changes_sign_at_the_optimum():
    for law, cost in ((V, 0.0), (V, 0.1), (Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025), 30.0)):
        t = optimal_timeout(law, cost=cost).timeout
        residual = slope(law, np.array([t * 0.99, t, t * 1.01]), cost=cost)
        assert residual[0] < 0 < residual[2]
        assert abs(residual[1]) < 1e-9 * residual[2]


def test_the_slope_does_not_vanish_at_a_kink():
    law = Defective(parse_law("uniform(a=100,b=500)"), 0.03)
    assert optimal_timeout(law).timeout == 500
    assert slope(law, 499.999) < -0.1
