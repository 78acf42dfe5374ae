"""Results of the three papers that no other test checks: closed forms as printed, limits, theorems; docs/papers.md."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from scipy.integrate import fixed_quad
from scipy.special import ndtr

from latfit import (
    Defective,
    completion_cdf,
    expected_duration,
    moments,
    optimal_schedule,
    optimal_strategy,
    optimal_timeout,
    parse_law,
    restart_helps,
)
from latfit.restart import schedule_moments

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
TIMES = np.geomspace(0.02, 6, 60)


def normal_pdf(z):
    return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


@pytest.mark.slow
def test_prototypical_laws():
    """V §2.1: a hyper-exponential law always profits, an Erlang and a hypo-exponential law never."""
    hyper = parse_law("erlang-mixture(p=[0.3,0.7],phases=[1,1],rates=[5,0.5])")
    assert restart_helps(hyper, TIMES).all()
    assert optimal_timeout(hyper).verdict == "immediate"
    for erlang in ("erlang-mixture(p=[1.0],phases=[3],rates=[2])", "gamma(shape=1.7,scale=0.4)"):
        assert not restart_helps(parse_law(erlang), TIMES).any()
        assert optimal_timeout(parse_law(erlang)).verdict == "never"


@pytest.mark.parametrize("spec", ["exponential(rate=0.4)", "pareto(a=3,nu=1.5)", "truncated-gaussian(mu=1,sigma=2)"])
def test_limit_of_a_restart_at_once(spec):
    """V §3: E → 1/f(0) for τ → 0; for the running example, where f(0) = 0, it grows beyond all bounds."""
    law = parse_law(spec)
    assert expected_duration(law, 1e-9) == pytest.approx(1 / law.pdf(0.0), rel=1e-6)
    assert expected_duration(V, 1e-6) > 1e3


@pytest.mark.slow
@pytest.mark.parametrize("law", [parse_law("pareto(a=1,nu=0.8)"), Defective(V, 0.3)], ids=["pareto", "lost"])
def test_restarts_make_every_moment_finite(law):
    """V, Corollary 1, against quadrature of n t^(n−1) P(J > t)."""
    assert np.isinf(moments(law, np.inf, 1)[1])
    tau, cost = 0.7, 0.1
    E = moments(law, tau, 4, cost=cost)
    assert np.isfinite(E).all()
    ends = [k * (tau + cost) + part for k in range(250) for part in (0, tau)]
    for n in (1, 2, 4):
        integral = sum(
            fixed_quad(lambda t, n=n: n * t ** (n - 1) * (1 - completion_cdf(law, t, tau, cost=cost)), a, b, n=12)[0]
            for a, b in pairwise(ends)
        )
        assert E[n] == pytest.approx(integral, rel=1e-6)


def test_distribution_at_multiples_of_the_timeout():
    """G eqs. 1 and 3: P(J > n t) = qⁿ with q = 1 − (1−ρ)F(t); the distribution is continuous there."""
    rho, t, n = 0.1, 250.0, np.arange(1, 9)
    law = parse_law("lognormal(mu=5.5,sigma=1)")
    q = 1 - (1 - rho) * ndtr((np.log(t) - 5.5) / 1)
    for at in (n * t, np.nextafter(n * t, 0)):
        assert np.allclose(1 - completion_cdf(Defective(law, rho), at, t), q**n, rtol=1e-9)


CLOSED_FORMS = {
    "uniform(a=100,b=500)": (
        lambda t, r: (t + 100) / 2 + t * (500 - t + r * (t - 100)) / ((t - 100) * (1 - r)),
        (101, 500),
    ),
    "truncated-gaussian(mu=300,sigma=120)": (
        lambda t, r: (
            300
            + 120 * (normal_pdf(2.5) - normal_pdf((300 - t) / 120)) / (ndtr(2.5) - ndtr((300 - t) / 120))
            + t / (1 - r) * (ndtr((300 - t) / 120) / (ndtr(2.5) - ndtr((300 - t) / 120)) + r)
        ),
        (50, 1500),
    ),
    "exponential(rate=0.01)": (lambda t, r: 100 + r * t / ((1 - r) * -np.expm1(-t / 100)), (1, 2000)),
    "lognormal(mu=5,sigma=1.3)": (
        lambda t, r: (
            np.exp(5 + 1.3**2 / 2)
            * (
                ndtr((np.log(t) - 5) / 1.3 - 1.3) / ndtr((np.log(t) - 5) / 1.3)
                + np.exp(np.log(t) - 5 - 1.3**2 / 2) * (1 / ((1 - r) * ndtr((np.log(t) - 5) / 1.3)) - 1)
            )
        ),
        (20, 9000),
    ),
    "pareto(a=450,nu=2.5)": (
        lambda t, r: (
            (450 + 2.5 * t - 450 * (1 + t / 450) ** 2.5) / (-1.5 * ((1 + t / 450) ** 2.5 - 1))
            + t / ((1 - r) * ((1 + t / 450) ** 2.5 - 1))
            + r / (1 - r) * t
        ),
        (1, 5000),
    ),
}


@pytest.mark.parametrize("rho", [0.0, 0.025, 0.3])
@pytest.mark.parametrize("spec", CLOSED_FORMS)
def test_closed_forms_of_glatard(spec, rho):
    """G eq. 10, appendix E, §3.3, eq. 12 and §3.6, as printed."""
    printed, (low, high) = CLOSED_FORMS[spec]
    t = np.geomspace(low, high, 80)
    assert np.allclose(expected_duration(Defective(parse_law(spec), rho), t), printed(t, rho), rtol=1e-9)


def test_only_the_exponential_law_is_indifferent():
    """G, appendix C: among laws with k = 1 and its neighbours only the exponential law does not mind the timeout."""
    verdicts = {k: optimal_timeout(parse_law(f"weibull(shape={k},scale=10)")).verdict for k in (0.98, 1.0, 1.02)}
    assert verdicts == {0.98: "immediate", 1.0: "any", 1.02: "never"}
    t = np.geomspace(0.01, 100, 30)
    assert np.ptp(expected_duration(parse_law("exponential(rate=0.1)"), t)) < 1e-12


@pytest.mark.parametrize(("shape", "sign"), [(0.6, 1), (1.8, -1)])
def test_weibull_jobs_against_latencies(shape, sign):
    """G, appendix D: beyond the timeout F_J > F_R for k < 1, F_J < F_R for k > 1; the smaller the timeout, the more."""
    law, x = parse_law(f"weibull(shape={shape},scale=10)"), np.linspace(6, 40, 200)
    jobs = [completion_cdf(law, x, t) for t in (2.0, 5.0)]
    assert (sign * (jobs[1] - law.cdf(x)) > 0).all()
    assert (sign * (jobs[0] - jobs[1]) > 0).all()
    n = np.floor(x / 5)
    printed = -np.expm1(-(n * 0.5**shape + ((x - 5 * n) / 10) ** shape))
    assert np.allclose(jobs[1], printed, rtol=1e-12)


def test_what_outliers_add():
    """G §3.8: bρ/(1−ρ) for the uniform law, a factor 1/(1−ρ) for the exponential and the Pareto law."""
    rho = 0.2
    best = optimal_timeout(Defective(parse_law("uniform(a=100,b=500)"), rho))
    assert best.expected_duration == pytest.approx(300 + 500 * rho / (1 - rho), rel=1e-12)
    for spec in ("exponential(rate=0.01)", "pareto(a=100,nu=2.5)"):
        without, with_outliers = (optimal_timeout(Defective(parse_law(spec), r)) for r in (0.0, rho))
        assert with_outliers.expected_duration == pytest.approx(without.expected_duration / (1 - rho), rel=1e-9)


@pytest.mark.parametrize(("mean", "rho", "falls"), [(-2, 0.147, True), (-2, 0.177, False), (0, 0.9, True)])
def test_the_entry_of_table_1_that_fails_for_a_negative_mean(mean, rho, falls):
    """G, Table 1: with outliers E_J falls at first, but not for λ = −2 and ρ > 0.15726; by quadrature."""

    def F(u):
        return (1 - rho) * (mpmath.ncdf(u - mean) - mpmath.ncdf(-mean)) / mpmath.ncdf(mean)

    times = [1e-4, 1e-2, 0.05, 0.1, 0.3, 1, 2]
    with mpmath.workdps(30):
        printed = [float(mpmath.quad(lambda u: 1 - F(u), [0, t]) / F(t)) for t in times]
    law = Defective(parse_law(f"truncated-gaussian(mu={mean},sigma=1)"), rho)
    assert np.allclose(expected_duration(law, times), printed, rtol=1e-7)
    assert (min(printed[1:]) < printed[0]) == falls
    assert optimal_timeout(law).verdict == ("finite" if falls else "immediate")


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["gamma(shape=0.7,scale=3)", "discrete(values=[1,4,9],probs=[0.5,0.3,0.2])"])
def test_one_restart_of_chalasani(spec):
    """C eq. 5 by simulation: X where X ≤ b, else b + X′."""
    law, rng = parse_law(spec), np.random.default_rng(4)
    first, second = law.sample(200_000, rng), law.sample(200_000, rng)
    for b in (1.0, 4.0):
        drawn = np.where(first <= b, first, b + second)
        assert abs(schedule_moments(law, (b,), 1)[1] - drawn.mean()) < 4.5 * drawn.std() / np.sqrt(drawn.size)


def test_a_restart_at_another_agent():
    """C eq. 6 with X′ of another agent: the query moves on if and only if E[X − b | X > b] > EX′ for some b."""
    first, values, probs = "discrete(values=[1,6],probs=[0.5,0.5])", np.array([1.0, 6.0]), np.array([0.5, 0.5])
    left = (values[1] - values[0]) * probs[1] / probs[1]  # what is left after b = 1
    for mean in (3.6, 4.9, 5.1):
        agents = {"first": parse_law(first), "second": parse_law(f"discrete(values=[{mean}],probs=[1])")}
        plan = optimal_strategy(agents, restarts=1)
        moves = plan.steps == (("first", 1.0), ("second", None))
        by_hand = {"first": 3.5, "second": mean, "moved": 0.5 * 1 + 0.5 * (1 + mean), "again": 0.5 + 0.5 * (1 + 3.5)}
        assert plan.expected_duration == pytest.approx(min(by_hand.values()))
        assert moves == (min(by_hand, key=by_hand.get) == "moved")
        assert (by_hand["moved"] < by_hand["first"]) == (left > mean)


def test_theorem_2_of_chalasani():
    """C, Theorem 2: F + µf = 1, f′ < −(1−F)/µ² at the best single restart; µF > (1−F) b where a restart helps."""
    b, mu = optimal_schedule(V, restarts=1).timeouts[0], V.mean()
    slope = float(np.diff(V.pdf([b - 1e-6, b + 1e-6]))[0] / 2e-6)
    assert V.cdf(b) + mu * V.pdf(b) == pytest.approx(1, abs=1e-9)
    assert slope < -(1 - V.cdf(b)) / mu**2
    helped = TIMES[restart_helps(V, TIMES)]
    assert helped.size
    assert (mu * V.cdf(helped) > (1 - V.cdf(helped)) * helped).all()
    uniform, inside = parse_law("uniform(a=0,b=3)"), np.linspace(0.1, 2.9, 50)  # necessary, not sufficient
    assert (uniform.mean() * uniform.cdf(inside) > (1 - uniform.cdf(inside)) * inside).any()
    assert not restart_helps(uniform, inside).any()
