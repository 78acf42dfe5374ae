"""Where a paper's printed number or claim is wrong: it is shown false, and ours true."""

import numpy as np
import pytest
from scipy.special import ndtr

from latfit.laws import Defective, parse_law
from latfit.restart import (
    completion_cdf,
    expected_duration,
    optimal_strategy,
    optimal_timeout,
    restart_helps,
    schedule_cdf,
    schedule_moments,
)

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
LOGNORMAL = parse_law("lognormal(mu=5.5,sigma=1)")
INTRO = parse_law("discrete(values=[5,20],probs=[0.6,0.4])")


def test_v_figure_1_unbounded_optimum_is_not_019():
    best = optimal_timeout(V)
    assert round(best.timeout, 2) == 0.20
    assert float(expected_duration(V, 0.19)) > best.expected_duration * (1 + 1e-4)


def test_v_section_5_condition_for_higher_moments():
    """Printed E[(T+c)²] < E[(T−τ)² | T>τ]; with values 1 and 3.6, restart at 1, it says no where one restart helps."""
    for value in (3.4, 3.6, 3.8):
        law = parse_law(f"discrete(values=[1,{value}],probs=[0.5,0.5])")
        E_T2 = (1 + value**2) / 2
        printed = (value - 1) ** 2 > E_T2
        restarted = (1 + (4 + (value + 1) ** 2) / 2) / 2  # E[J²] by hand: 1, or 1 + T
        assert schedule_moments(law, (1.0,), 2)[2] == pytest.approx(restarted)
        assert bool(restart_helps(law, 1.0, order=2)) == (restarted < E_T2)
        assert (printed == (restarted < E_T2)) == (value != 3.6)


def test_v_equation_10_second_branch():
    """While attempt k is being replaced the product must include attempt k itself."""
    schedule, cost = (0.2, 0.3), 0.1
    x = 0.25  # the first attempt is over at 0.2, the second starts at 0.3
    F = float(V.cdf(0.2))
    ours = float(schedule_cdf(V, x, schedule, cost=cost))
    printed = 1 - 1.0  # the empty product over i > K
    assert ours == pytest.approx(F, rel=1e-12)
    assert printed < float(schedule_cdf(V, 0.19, schedule, cost=cost))  # a cdf that falls
    assert float(completion_cdf(V, x, 0.2, cost=cost)) == pytest.approx(F, rel=1e-12)


def test_v_lower_bound_has_no_global_minimum():
    t = np.array([0.31105, 8.0])
    lower = t * (1 / V.cdf(t) - 1)
    assert lower[1] < lower[0]
    assert (lower <= expected_duration(V, t)).all()


def test_g_equation_11_prints_the_variance():
    mu, sigma = 1.0, 0.5
    law = parse_law(f"lognormal(mu={mu},sigma={sigma})")
    printed = (np.exp(sigma**2) - 1) * np.exp(2 * mu + sigma**2)
    assert law.std() == pytest.approx(np.sqrt(printed), rel=1e-12)
    assert abs(law.std() - printed) > 0.1


def test_g_section_2_probability_to_meet_an_outlier_tends_to_rho():
    """For t → ∞ an attempt is cancelled with probability ρ, not 1; E_J diverges all the same."""
    law = Defective(LOGNORMAL, 0.025)
    assert float(law.still_out(1e12)) == pytest.approx(0.025, rel=1e-9)
    t = 1e9
    assert float(expected_duration(law, t)) == pytest.approx(LOGNORMAL.mean() + 0.025 / 0.975 * t, rel=1e-9)


def test_g_section_3_4_derivative_at_0():
    """dE_J/dt → −λ^k (k−1)/((1−ρ) t^k), where t^(k−1) is printed."""
    k, scale, rho, t = 2.0, 3.0, 0.05, 1e-5
    law = Defective(parse_law(f"weibull(shape={k},scale={scale})"), rho)
    h = t * 1e-4
    E = expected_duration(law, np.array([t - h, t + h]))
    slope = (E[1] - E[0]) / (2 * h)
    ours = -(scale**k) * (k - 1) / ((1 - rho) * t**k)
    assert slope == pytest.approx(ours, rel=1e-3)
    assert abs(slope / (ours * t) - 1) > 100


def test_g_section_3_5_finite_minimum_is_straightforward_only_with_outliers():
    """What is "not straight-forward" is ρ = 0: there E_J(∞) is finite, with ρ > 0 it is not."""
    assert np.isfinite(expected_duration(LOGNORMAL, np.inf))
    assert np.isinf(expected_duration(Defective(LOGNORMAL, 0.01), np.inf))
    assert optimal_timeout(LOGNORMAL).verdict == "finite"


def test_g_section_3_7_light_tail_does_not_mean_that_timeouts_penalise():
    """Chalasani's step density is bounded, so lighter than any exponential, and a timeout helps."""
    step = parse_law("piecewise-uniform(edges=[0,1,5],probs=[0.6666666666666666,0.3333333333333333])")
    assert optimal_timeout(step).speed_up == pytest.approx(4 / 3)


def test_g_section_3_7_conjectures_hold():
    for sigma in (0.45, 0.5, 0.6):
        law = parse_law(f"lognormal(mu=0,sigma={sigma})")
        tau = np.exp(sigma * np.array([4.0, 6.0, 8.0]))
        assert restart_helps(law, tau[-1])
    for k in (1.2, 3.0):
        assert optimal_timeout(Defective(parse_law(f"weibull(shape={k},scale=10)"), 0.01)).verdict == "finite"
    assert optimal_timeout(Defective(parse_law("weibull(shape=0.8,scale=10)"), 0.01)).verdict == "immediate"


def test_g_section_3_8_pareto_speed_up_diverges():
    gains = [optimal_timeout(parse_law(f"pareto(a=1,nu={nu})")).speed_up for nu in (2.0, 1.1, 1.01)]
    assert gains == pytest.approx([2.0, 11.0, 101.0], rel=1e-9)


def test_g_k_is_not_decreasing_in_sigma():
    K = [optimal_timeout(Defective(parse_law(f"lognormal(mu=0,sigma={s})"), 0.01)).timeout for s in (0.5, 0.6, 1.0)]
    assert K[:2] == pytest.approx([3.167, 3.363], abs=5e-4)
    assert K[0] < K[1] > K[2]


def test_g_appendix_f_limit():
    """f⁽¹⁾ = (1−ρ)(Φ(λ)−Φ(v))²/σ · dE_J/dv tends to −ρΦ(λ)² for v → −∞, v = (μ−t)/σ; −ρΦ(λ) is printed."""
    lam, sigma, rho, v = 0.5, 100.0, 0.025, -40.0
    law = Defective(parse_law(f"truncated-gaussian(mu={lam * sigma},sigma={sigma})"), rho)
    E = expected_duration(law, sigma * (lam - np.array([v - 1, v + 1])))
    f1 = (1 - rho) * (ndtr(lam) - ndtr(v)) ** 2 / sigma * (E[1] - E[0]) / 2
    assert f1 == pytest.approx(-rho * ndtr(lam) ** 2, rel=1e-9)
    assert abs(f1 + rho * ndtr(lam)) > 0.1 * abs(f1)


def test_g_appendix_h_polynomial():
    """B = Z^(ν+1) − (ν+1)Z + ν in dE_J/dZ of the Pareto law, Z = (a+t)/a; the last term is printed νZ."""
    a, nu, rho, t, h = 3.0, 1.7, 0.1, 2.0, 1e-5
    E = expected_duration(Defective(parse_law(f"pareto(a={a},nu={nu})"), rho), np.array([t - h, t + h]))
    Z = (a + t) / a
    left = (Z**nu - 1) ** 2 * (E[1] - E[0]) / (2 * h)
    A = (1 - nu) * Z**nu + nu * Z ** (nu - 1) - 1
    right = [A / (1 - nu) + rho / (1 - rho) * Z ** (nu - 1) * (Z ** (nu + 1) - (nu + 1) * Z + x) for x in (nu, nu * Z)]
    assert left == pytest.approx(right[0], rel=1e-8)
    assert left != pytest.approx(right[1], rel=1e-2)


def test_g_wall_clock_is_not_a_mere_shift():
    law, r = Defective(LOGNORMAL, 0.025), 300.0
    shifted = optimal_timeout(law)
    assert shifted.timeout + r == pytest.approx(684, abs=0.5)
    assert shifted.expected_duration + r == pytest.approx(675, abs=0.5)
    best = optimal_timeout(law, wall_clock=r)
    at_shifted = float(expected_duration(law, shifted.timeout + r, wall_clock=r))
    assert best.expected_duration < at_shifted * 0.95
    assert at_shifted > shifted.expected_duration + r + 50


def test_c_introduction():
    """0.4 · 11 forgets the 5 s already waited: 7.4 and 5.96 are printed."""
    printed = 0.6 * 5 + 0.4 * 11, 0.6 * 5 + 0.4 * 7.4
    assert printed == pytest.approx((7.4, 5.96))
    ours = [schedule_moments(INTRO, (5.0,) * K, 1)[1] for K in (1, 2)]
    assert ours == pytest.approx([9.4, 8.76])
    rng = np.random.default_rng(3)
    draws = rng.choice([5.0, 20.0], p=[0.6, 0.4], size=(3, 400_000))
    once = np.where(draws[0] == 5, 5, 5 + draws[1])
    twice = np.where(draws[0] == 5, 5, np.where(draws[1] == 5, 10, 10 + draws[2]))
    assert once.mean() == pytest.approx(9.4, abs=0.05)
    assert twice.mean() == pytest.approx(8.76, abs=0.05)


def test_c_arithmetic_of_the_example():
    assert (
        pytest.approx(schedule_moments(parse_law("discrete(values=[1,6],probs=[0.5,0.5])"), (1.0,), 1)[1])
        == 2 + (6 - 3) / 4
    )
    assert pytest.approx(2.75) != 10 + (30 - 15) / 4


def printed_programme(values, probs, k):
    """Equations 3–4 as they are printed, without the time already waited."""
    F, M = np.cumsum(probs), np.cumsum(np.multiply(values, probs))
    E = M[-1]
    for _ in range(k):
        E = min(M + (1 - F) * E)
    return E


def test_c_dynamic_programme_as_printed_forgets_the_waiting():
    assert printed_programme([5, 20], [0.6, 0.4], 60) == pytest.approx(5.0)
    assert optimal_strategy({"site": INTRO}, restarts=60).expected_duration == pytest.approx(25 / 3)
    # p = .5, c = 2: no restart helps, yet the printed programme restarts
    law = parse_law("discrete(values=[1,2],probs=[0.5,0.5])")
    assert printed_programme([1, 2], [0.5, 0.5], 1) < law.mean()
    best = optimal_strategy({"site": law}, restarts=1)
    assert best.steps == (("site", None),)
    assert best.expected_duration == pytest.approx(1.5)
    assert schedule_moments(law, (1.0,), 1)[1] > law.mean()
