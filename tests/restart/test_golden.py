"""Every number of the three papers that the restart engine reproduces."""

import numpy as np
import pytest

from latfit.laws import Defective, parse_law
from latfit.restart import (
    completion_cdf,
    expected_duration,
    moments,
    optimal_schedule,
    optimal_strategy,
    optimal_timeout,
    restart_helps,
    schedule_moments,
    std_duration,
)

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
LOGNORMAL = parse_law("lognormal(mu=5.5,sigma=1)")
TWO_VALUED = parse_law("discrete(values=[1,6],probs=[0.5,0.5])")
INTRO = parse_law("discrete(values=[5,20],probs=[0.6,0.4])")
STEP = parse_law("piecewise-uniform(edges=[0,1,5],probs=[0.6666666666666666,0.3333333333333333])")


def test_running_example_without_restart():
    E = moments(V, np.inf, 2)
    assert E[1] == pytest.approx(0.190, abs=1e-12)
    assert E[2] == pytest.approx(0.1635, abs=1e-12)
    assert np.sqrt(E[2] - E[1] ** 2) / E[1] == pytest.approx(1.8786, abs=5e-5)


def test_running_example_unbounded():
    best = optimal_timeout(V)
    assert best.verdict == "finite"
    assert best.timeout == pytest.approx(0.1982536, abs=5e-8)
    assert best.expected_duration == pytest.approx(0.1270004, abs=5e-8)
    assert best.speed_up == pytest.approx(1.4961, abs=5e-5)
    assert best.within_1pct == pytest.approx((0.160, 0.247), abs=5e-4)
    assert best.within_5pct == pytest.approx((0.124, 0.329), abs=5e-4)
    assert best.conservative_timeout == best.within_5pct[1]
    assert V.hazard(best.timeout) * best.expected_duration == pytest.approx(1, abs=1e-12)  # Theorem 2


@pytest.mark.slow
def test_running_example_finite_schedules():
    table_1 = [0.249463, 0.208712, 0.200177, 0.198599, 0.198315, 0.1982646, 0.1982556, 0.1982539]
    best = optimal_schedule(V, 8)
    tolerance = [5e-7] * 5 + [5e-8] * 3
    assert all(abs(a - b) <= e for a, b, e in zip(best.timeouts[::-1], table_1, tolerance, strict=True))
    for K, E in ((1, 0.136260), (2, 0.128588), (3, 0.127282)):
        assert optimal_schedule(V, K).expected_duration == pytest.approx(E, abs=5e-7)


@pytest.mark.slow
def test_many_restarts_are_as_good_as_unbounded():
    many, unbounded = optimal_schedule(V, 300), optimal_timeout(V)
    assert len(many.timeouts) == 300
    assert many.timeouts[0] == pytest.approx(unbounded.timeout, rel=1e-6)
    assert many.expected_duration == pytest.approx(unbounded.expected_duration, rel=1e-12)
    assert many.submissions == pytest.approx(unbounded.submissions, rel=1e-6)


@pytest.mark.slow
def test_running_example_other_moments():
    optima = {"moment:2": 0.192159, "std": 0.188474, "moment:3": 0.188038}
    for objective, timeout in optima.items():
        assert optimal_timeout(V, objective=objective).timeout == pytest.approx(timeout, abs=5e-7)
    none = moments(V, np.inf, 3)
    for n, gain in ((1, 33.2), (2, 82.4), (3, 96.7)):
        best = optimal_timeout(V, objective=f"moment:{n}")
        assert 100 * (1 - best.objective["value"] / none[n]) == pytest.approx(gain, abs=0.05)


def test_running_example_bounds():
    t = np.arange(0.05, 0.5, 1e-6)
    lower = t * (1 / V.cdf(t) - 1)
    assert t[(lower + t).argmin()] == pytest.approx(0.08996, abs=5e-6)
    assert t[lower.argmin()] == pytest.approx(0.31105, abs=5e-6)


def test_running_example_all_curves_cross():
    tau = 0.0501084
    E_T = 0.190
    assert expected_duration(V, tau) == pytest.approx(E_T, abs=1e-6)
    for K in (1, 2, 5):
        assert schedule_moments(V, (tau,) * K, 1)[1] == pytest.approx(E_T, abs=1e-6)
    assert restart_helps(V, tau + 1e-6)
    assert not restart_helps(V, tau - 1e-6)


def test_running_example_with_cost():
    best = optimal_timeout(V, cost=0.02)
    assert best.timeout == pytest.approx(0.222388, abs=5e-7)
    assert best.expected_duration == pytest.approx(0.130884, abs=5e-7)
    assert optimal_timeout(V, cost=0.1).timeout == pytest.approx(0.275172, abs=5e-7)


TABLE_1 = [
    ("uniform(a=100,b=500)", "never", "finite"),
    ("truncated-gaussian(mu=300,sigma=100)", "never", "finite"),
    ("weibull(shape=2,scale=300)", "never", "finite"),
    ("exponential(rate=0.01)", "any", "immediate"),
    ("weibull(shape=0.7,scale=300)", "immediate", "immediate"),
    ("lognormal(mu=5,sigma=0.8)", "finite", "finite"),
    ("pareto(a=100,nu=2.5)", "immediate", "immediate"),
]


@pytest.mark.parametrize(("spec", "without", "with_outliers"), TABLE_1)
def test_glatard_table_1(spec, without, with_outliers):
    law = parse_law(spec)
    for rho, verdict in ((0.0, without), (0.03, with_outliers)):
        best = optimal_timeout(Defective(law, rho))
        assert best.verdict == verdict
        assert (best.timeout is None) == (verdict in ("never", "any"))
        if verdict in ("never", "any"):
            assert best.expected_duration == pytest.approx(law.mean(), rel=1e-12)
            assert best.speed_up == pytest.approx(1)
            assert best.submissions == (None if verdict == "any" else 1)
            assert best.within_1pct[1] == np.inf
        if verdict == "immediate":
            assert best.timeout == 0
            assert best.within_1pct[0] == 0
            assert best.submissions is None


def test_glatard_limits():
    rho = 0.03
    assert optimal_timeout(Defective(parse_law("uniform(a=100,b=500)"), rho)).timeout == 500
    exponential = optimal_timeout(Defective(parse_law("exponential(rate=0.01)"), rho))
    assert exponential.expected_duration == pytest.approx(100 / (1 - rho), rel=1e-12)
    pareto = parse_law("pareto(a=100,nu=2.5)")
    assert optimal_timeout(Defective(pareto, rho)).expected_duration == pytest.approx(40 / (1 - rho), rel=1e-12)
    assert optimal_timeout(pareto).expected_duration == pytest.approx(40, rel=1e-12)
    assert optimal_timeout(pareto).speed_up == pytest.approx(2.5 / 1.5, rel=1e-12)
    for r in (0.0, rho):
        assert optimal_timeout(Defective(parse_law("weibull(shape=0.7,scale=300)"), r)).expected_duration == 0


@pytest.mark.parametrize(("rho", "timeout"), [(0.01, 606.5), (0.025, 575.2), (0.1, 521.6)])
def test_glatard_truncated_gaussian(rho, timeout):
    law = parse_law("truncated-gaussian(mu=300,sigma=100)")
    assert optimal_timeout(Defective(law, rho)).timeout == pytest.approx(timeout, abs=0.05)


@pytest.mark.parametrize(
    ("sigma", "rho", "K"),
    [
        (1, 0, 1.7316),
        (1, 0.01, 1.6578),
        (1, 0.025, 1.5704),
        (1, 0.05, 1.4619),
        (1, 0.1, 1.3162),
        (1.5, 0, 0.3489),
        (2, 0, 0.0512),
    ],
)
def test_glatard_lognormal_k(sigma, rho, K):
    for mu in (0.0, 5.5):
        best = optimal_timeout(Defective(parse_law(f"lognormal(mu={mu},sigma={sigma})"), rho))
        assert best.timeout / np.exp(mu) == pytest.approx(K, abs=5e-5)


@pytest.mark.parametrize(("sigma", "speed_up"), [(1, 1.1208), (1.5, 2.4191), (2, 10.2465)])
def test_glatard_lognormal_speed_up(sigma, speed_up):
    assert optimal_timeout(parse_law(f"lognormal(mu=0,sigma={sigma})")).speed_up == pytest.approx(speed_up, abs=5e-5)


def test_glatard_lognormal_at_its_median():
    for sigma, helps in ((0.9311492, False), (0.9311494, True)):
        law = parse_law(f"lognormal(mu=0,sigma={sigma})")
        assert (expected_duration(law, 1.0) < law.mean()) == helps
    assert float(expected_duration(LOGNORMAL, np.inf)) == pytest.approx(403.43, abs=5e-3)
    assert float(expected_duration(LOGNORMAL, 300)) == pytest.approx(364.52, abs=5e-3)
    assert optimal_timeout(LOGNORMAL).timeout == pytest.approx(423.72, abs=5e-3)


def test_lognormal_with_little_spread_needs_no_timeout():
    for sigma in (0.2, 0.3, 0.4):
        best = optimal_timeout(parse_law(f"lognormal(mu=3,sigma={sigma})"))
        assert (best.verdict, best.timeout, best.submissions, best.speed_up) == ("never", None, 1, 1)


def test_chalasani_two_valued():
    thresholds = {"mean": 3.0, "variance": 3.828}
    assert thresholds["mean"] == 1 + 1 / 0.5
    assert pytest.approx(thresholds["variance"], abs=5e-4) == 1 + 0.5**-1.5
    for k, mean, sd in ((0, 3.5, 2.5), (1, 2.75, 2.4875), (5, 2.047, 1.634)):
        E = schedule_moments(TWO_VALUED, (1.0,) * k, 2)
        assert E[1] == pytest.approx(mean, abs=5e-4)
        assert np.sqrt(E[2] - E[1] ** 2) == pytest.approx(sd, abs=5e-4)
    best = optimal_timeout(TWO_VALUED)
    assert (best.timeout, best.expected_duration) == (1, pytest.approx(2))
    assert best.std_duration == pytest.approx(1.414, abs=5e-4)


@pytest.mark.parametrize("c", [2.0, 2.9, 3.1, 3.5, 3.8, 3.9, 6.0])
def test_chalasani_theorem_1(c):
    p = q = 0.5
    law = parse_law(f"discrete(values=[1,{c}],probs=[0.5,0.5])")
    for k in (0, 1, 2, 7):
        E = schedule_moments(law, (1.0,) * k, 2)
        d = c - 1 - 1 / p
        variance = (
            q / p**2
            + q ** (k + 1) * (c * c + 1 / p - 1 - 2 * c / p)
            + 2 * k * q ** (k + 1) * d
            - q ** (2 * k + 2) * d * d
        )
        assert E[1] == pytest.approx(1 / p + q ** (k + 1) * d, rel=1e-13)
        assert E[2] - E[1] ** 2 == pytest.approx(variance, rel=1e-12)
    assert (optimal_timeout(law).verdict == "finite") == (c > 3)
    late = schedule_moments(law, (1.0,) * 60, 2)
    none = schedule_moments(law, (), 2)
    if c > 3:
        assert (late[2] - late[1] ** 2 < none[2] - none[1] ** 2) == (c > 3.828)


def test_chalasani_intro():
    for restarts, E in ((0, 11.0), (1, 9.4), (2, 8.76), (None, 25 / 3)):
        assert optimal_strategy({"site": INTRO}, restarts=restarts).expected_duration == pytest.approx(E, rel=1e-14)


def test_chalasani_step_density():
    assert STEP.mean() == pytest.approx(4 / 3)
    assert schedule_moments(STEP, (1.0,), 1)[1] == pytest.approx(10 / 9)
    once, unbounded = optimal_schedule(STEP, 1), optimal_timeout(STEP)
    assert once.timeouts == (1.0,)
    assert once.expected_duration == pytest.approx(10 / 9)
    assert (unbounded.verdict, unbounded.timeout) == ("finite", 1)
    assert unbounded.expected_duration == pytest.approx(1.0)


def test_chalasani_laws_that_no_single_restart_helps():
    half_normal = "truncated-gaussian(mu=0,sigma=1)"
    for spec in ("uniform(a=0,b=3)", "exponential(rate=2)", half_normal):
        law = parse_law(spec)
        assert not restart_helps(law, np.linspace(0.01, 2.99, 50), cost=1e-9).any()
        best = optimal_schedule(law, 1)
        assert best.timeouts == (np.inf,)
        assert best.expected_duration == pytest.approx(law.mean())


@pytest.mark.parametrize(
    ("b", "timeout", "E", "submissions"),
    [(1, 384.27, 374.89, 1.521), (2, 435.45, 198.35, 2.198), (3, 494.20, 140.98, 3.054)],
)
def test_copies(b, timeout, E, submissions):
    best = optimal_timeout(Defective(LOGNORMAL, 0.025), copies=b)
    assert best.timeout == pytest.approx(timeout, abs=5.1e-3)
    assert best.expected_duration == pytest.approx(E, abs=5.1e-3)
    assert best.submissions == pytest.approx(submissions, abs=5e-4)


def test_wall_clock():
    best = optimal_timeout(Defective(LOGNORMAL, 0.025), wall_clock=300)
    assert best.timeout == pytest.approx(1337, abs=0.5)
    assert best.expected_duration == pytest.approx(737, abs=0.5)


def test_deadline():
    law = Defective(LOGNORMAL, 0.025)
    best = optimal_timeout(law, objective="deadline:1200")
    assert best.objective == {"name": "deadline:1200", "value": pytest.approx(0.9646, abs=5e-5)}
    assert best.timeout == pytest.approx(300, abs=1)
    assert float(completion_cdf(law, 1200, best.timeout)) == pytest.approx(best.objective["value"], rel=1e-12)
    assert float(law.cdf(1200)) == pytest.approx(0.9205, abs=5e-5)


def test_experiment_of_glatard_in_figures():
    """ρ = 2.5 %, t* = 358 s, E_J = 300 s: F_R(358) ≈ .834 follows if the mean below t is consistent."""
    rho, t, E_J, F_R = 0.025, 358.0, 300.0, 0.834
    F = (1 - rho) * F_R
    below = E_J - (1 - F) / F * t
    law = Defective(parse_law(f"discrete(values=[{below},10000],probs=[{F_R},{1 - F_R}])"), rho)
    assert float(expected_duration(law, t)) == pytest.approx(E_J)
    assert 0 < below < t


def test_std_is_the_second_moment():
    t = np.array([0.1, 0.2, 1.0])
    E = moments(V, t, 2, cost=0.05)
    assert std_duration(V, t, cost=0.05) == pytest.approx(np.sqrt(E[2] - E[1] ** 2), rel=1e-12)
