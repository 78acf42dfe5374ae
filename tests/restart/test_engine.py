"""The completion time against simulations and quadratures that share no code with the engine."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import (
    Copies,
    completion_cdf,
    completion_quantile,
    evaluate_timeout,
    expected_duration,
    moments,
    schedule_cdf,
    schedule_moments,
    simulate_policy,
    std_duration,
)
from latfit.restart.plan import Plan, attempt
from latfit.sample import LatencySample

JOBS = 20_000
V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")


def play(draw, timeouts, cost, rng, jobs=JOBS):
    """Completion times and numbers of attempts, job by job in parallel; `draw(n)` gives (time, completes)."""
    clock, tries, active, k = np.zeros(jobs), np.zeros(jobs), np.arange(jobs), 0
    while active.size:
        limit = timeouts(k)
        time, success = draw(active.size)
        ok = success & (time <= limit)
        clock[active] += np.where(ok, time, np.minimum(time, limit) + cost)
        tries[active] += 1
        active, k = active[~ok], k + 1
    return clock, tries


def agrees(J, mean, std=None):
    """The mean within 4 standard errors, the variance too if asked."""
    n, m = J.size, J.mean()
    assert abs(m - mean) <= 4 * J.std() / np.sqrt(n)
    if std is not None:
        fourth = np.mean((J - m) ** 4)
        assert abs(J.var() - std**2) <= 4 * np.sqrt((fourth - J.var() ** 2) / n)


def random_law(rng):
    """A random law and the scale of its times."""
    scale = 10 ** rng.uniform(-3, 4)
    kind = rng.integers(7)
    if kind == 0:
        return parse_law(f"lognormal(mu={np.log(scale)},sigma={rng.uniform(0.3, 1.3)})")
    if kind == 1:
        return parse_law(f"weibull(shape={rng.uniform(0.6, 3)},scale={scale})")
    if kind == 2:
        return parse_law(f"exponential(rate={1 / scale})")
    if kind == 3:
        return parse_law(f"uniform(a={scale * rng.uniform(0, 0.9)},b={scale})")
    if kind == 4:
        p = rng.uniform(0.2, 0.9)
        return parse_law(f"erlang-mixture(p=[{p},{1 - p}],phases=[2,3],rates=[{20 / scale},{2 / scale}])")
    if kind == 5:
        return parse_law(f"pareto(a={scale},nu={rng.uniform(1.5, 4)})")
    values = np.sort(rng.uniform(0, scale, 5))
    probs = rng.dirichlet(np.ones(5))
    return parse_law(
        f"discrete(values=[{','.join(map(repr, map(float, values)))}],probs=[{','.join(map(repr, map(float, probs)))}])"
    )


@pytest.mark.parametrize("seed", range(36))
def test_unbounded_restarts(seed):
    rng = np.random.default_rng(seed)
    law = random_law(rng)
    rho = rng.choice([0.0, rng.uniform(0, 0.3)])
    t = float(law.ppf(rng.uniform(0.3, 0.98)))
    cost = rng.choice([0.0, t * rng.uniform(0, 1)])

    def draw(n):
        return law.sample(n, rng), rng.random(n) >= rho

    def out_for_ever(n):
        time, success = draw(n)
        return np.where(success, time, np.inf), success

    J, tries = play(out_for_ever, lambda _: t, cost, rng)
    F = Defective(law, rho)
    agrees(J, float(expected_duration(F, t, cost=cost)), float(std_duration(F, t, cost=cost)))
    agrees(tries, 1 / float(F.cdf(t)))
    x = np.quantile(J, [0.1, 0.5, 0.9])
    share = np.mean(J[:, None] <= x * (1 + 1e-12), axis=0)
    computed = completion_cdf(F, x * (1 + 1e-12), t, cost=cost)
    assert (np.abs(share - computed) <= 4 * np.sqrt(0.25 / JOBS)).all()


@pytest.mark.parametrize("seed", range(100, 118))
def test_finite_restarts(seed):
    rng = np.random.default_rng(seed)
    law = random_law(rng)
    K = int(rng.integers(1, 6))
    timeouts = law.ppf(rng.uniform(0.2, 0.95, K))
    cost = rng.choice([0.0, float(timeouts[0]) * 0.3])
    J, tries = play(
        lambda n: (law.sample(n, rng), np.ones(n, bool)), lambda k: timeouts[k] if k < K else np.inf, cost, rng
    )
    E = schedule_moments(law, timeouts, 2, cost=cost)
    heavy = law.name == "pareto" and law.nu <= 4
    agrees(J, E[1], None if heavy else np.sqrt(E[2] - E[1] ** 2))
    plan = Plan(tuple(attempt(law, t, pause=cost) for t in (*timeouts, np.inf)), repeats=False)
    agrees(tries, plan.submissions)
    for q in (0.5, 0.95, 0.99):
        x = plan.quantile(q)
        assert (
            abs(np.mean(x * (1 + 1e-12) >= J) - float(schedule_cdf(law, x * (1 + 1e-12), timeouts, cost=cost))) < 0.015
        )
        assert float(schedule_cdf(law, x * (1 + 1e-12), timeouts, cost=cost)) >= q - 1e-9
        assert float(schedule_cdf(law, x * (1 - 1e-9), timeouts, cost=cost)) < q + 1e-9


def random_sample(rng, failures=True):
    """A sample that returned, failed, or is out at the cutoff or lost."""
    n = int(rng.integers(2, 60))
    latencies = np.round(rng.lognormal(3, 1, n), int(rng.integers(0, 3)))
    failed = np.round(rng.lognormal(2.5, 1.2, int(rng.integers(1, 20))), 1) if failures else []
    return LatencySample.of(latencies, failed=failed, lost=int(rng.integers(0, 10)))


@pytest.mark.parametrize("seed", range(200, 212))
@pytest.mark.parametrize("copies", [1, 3])
def test_visible_failures(seed, copies):
    rng = np.random.default_rng(seed)
    sample = random_sample(rng)
    law = Empirical.of(sample)
    time = np.concatenate([sample.completed.expand(), sample.failed.expand(), np.full(sample.lost, np.inf)])
    success = np.arange(time.size) < sample.completed.total

    def draw(n):
        """The first copy to complete; where none does, the last to fail."""
        i = rng.integers(0, time.size, (n, copies))
        done = np.where(success[i], time[i], np.inf).min(axis=1)
        dead = np.where(success[i], np.inf, time[i]).max(axis=1)
        return np.where(success[i].any(axis=1), done, dead), success[i].any(axis=1)

    t = float(rng.choice(law.jumps)) * rng.choice([1.0, 1.03])
    cost = rng.choice([0.0, 5.0])
    # a copy that completes after t still keeps the attempt from having failed: play() cuts it at t
    J, tries = play(draw, lambda _: t, cost, rng, jobs=10_000)
    attempt = Copies(law, copies) if copies > 1 else law
    agrees(J, float(expected_duration(law, t, cost=cost, copies=copies)), float(std_duration(attempt, t, cost=cost)))
    agrees(tries * copies, copies / float(Copies(law, copies).cdf(t)))


@pytest.mark.parametrize("seed", range(300, 312))
def test_copies_and_wall_clock(seed):
    rng = np.random.default_rng(seed)
    law, rho, b = random_law(rng), rng.uniform(0, 0.3), int(rng.integers(1, 5))
    scale = float(law.ppf(0.5))
    r, u, cost = scale * rng.uniform(0, 2), float(law.ppf(rng.uniform(0.3, 0.9))), scale * rng.uniform(0, 1)

    def draw(n):
        T = np.where(rng.random((n, b)) < rho, np.inf, law.sample((n, b), rng)).min(axis=1)
        return r + T, np.isfinite(T)

    J, tries = play(draw, lambda _: r + u * (1 + 1e-12), cost, rng)
    F = Defective(law, rho)
    result = evaluate_timeout(F, r + u * (1 + 1e-12), cost=cost, wall_clock=r, copies=b)
    agrees(J, result.expected_duration, result.std_duration)
    agrees(J, float(expected_duration(F, r + u * (1 + 1e-12), cost=cost, wall_clock=r, copies=b)))
    agrees(tries * b, result.submissions)
    for q, x in result.quantiles.items():
        assert abs(np.mean(x * (1 + 1e-12) >= J) - float(q)) < 0.015 or law.name == "discrete"


@pytest.mark.slow
def test_users_simulation_agrees_too():
    rng = np.random.default_rng(5)
    sample = random_sample(rng)
    for law, t in ((Defective(V, 0.1), 0.2), (Empirical.of(sample), 30.0)):
        J = simulate_policy(law, f"timeout(t={t})", JOBS, rng, cost=0.05).durations
        agrees(J, float(expected_duration(law, t, cost=0.05)), float(std_duration(law, t, cost=0.05)))
    J = simulate_policy(V, "schedule(timeouts=[0.1,0.2,1e9])", JOBS, rng).durations
    agrees(J, schedule_moments(V, (0.1, 0.2), 1)[1])


@pytest.mark.parametrize(
    "spec",
    [
        "lognormal(mu=5.5,sigma=1)",
        "weibull(shape=0.6,scale=3)",
        "pareto(a=100,nu=2.5)",
        "gamma(shape=2.5,scale=3)",
        "log-logistic(shape=2.5,scale=10)",
        "truncated-gaussian(mu=300,sigma=100)",
        "piecewise-uniform(edges=[0,1,5],probs=[0.6,0.4])",
    ],
)
def test_mean_by_quadrature_of_the_survival_function(spec):
    """E_J = (∫₀ᵗ (1−F̃) + c (1−F̃(t)))/F̃(t), for one and for several copies."""
    law, rho, c = Defective(parse_law(spec), 0.04), 0.04, 7.0
    for p in (0.05, 0.5, 0.97):
        t = float(law.law.ppf(p))
        for b in (1, 2, 3):
            points = [x for x in law.kinks if 0 < x < t] or None
            area = quad(
                lambda u, b=b: float(1 - (1 - rho) * law.law.cdf(u)) ** b,
                0,
                t,
                epsabs=0,
                epsrel=1e-12,
                limit=200,
                points=points,
            )[0]
            out = (1 - (1 - rho) * p) ** b
            expected = (area + c * out) / (1 - out)
            assert float(expected_duration(law, t, cost=c, copies=b)) == pytest.approx(expected, rel=1e-9)


def test_moments_exactly_on_a_discrete_law():
    """E[Jⁿ] by summing the series over attempts in rational arithmetic."""
    law = parse_law("discrete(values=[1,2,7],probs=[0.25,0.25,0.5])")
    E = moments(law, 2.0, 4, cost=0.5)
    for n in range(1, 5):
        exact = sum(
            Fraction(1, 2) ** k * Fraction(1, 4) * (k * Fraction(5, 2) + value) ** n
            for k in range(400)
            for value in (1, 2)
        )
        assert E[n] == pytest.approx(float(exact), rel=1e-13)


def test_limits_of_the_timeout():
    law = parse_law("lognormal(mu=0,sigma=1)")
    E = expected_duration(law, np.array([0.0, 1e-300, np.inf]))
    assert np.isinf(E[0])
    assert np.isinf(E[1])
    assert E[2] == pytest.approx(np.exp(0.5), rel=1e-14)
    assert np.isinf(expected_duration(Defective(law, 0.1), np.inf))
    assert np.isinf(expected_duration(parse_law("uniform(a=1,b=2)"), [0.5, 1.0])).all()
    assert expected_duration(law, np.ones((2, 3))).shape == (2, 3)
    assert np.isinf(moments(parse_law("pareto(a=1,nu=1.5)"), np.inf, 2)[2])
    assert np.isfinite(moments(parse_law("pareto(a=1,nu=1.5)"), 100.0, 2)[2])  # V Corollary 1


@pytest.mark.parametrize("seed", range(12))
def test_quantile_inverts_the_cdf(seed):
    rng = np.random.default_rng(seed)
    law = Defective(random_law(rng), 0.1)
    t = float(law.law.ppf(rng.uniform(0.1, 0.9)))
    cost = rng.choice([0.0, t / 3])
    for q in (0.01, 0.5, 0.9, 0.999):
        x = float(completion_quantile(law, q, t, cost=cost))
        assert float(completion_cdf(law, x * (1 + 1e-11), t, cost=cost)) >= q * (1 - 1e-9)
        assert float(completion_cdf(law, x * (1 - 1e-9), t, cost=cost)) <= q * (1 + 1e-6)
    assert float(completion_quantile(law, 0.95, np.inf)) == np.inf
    assert np.isfinite(completion_quantile(law, 0.85, np.inf))


def test_waits_of_zero_take_no_time():
    law = Empirical.of(LatencySample.of([0, 0, 3, 5]))
    assert float(expected_duration(law, 0.0)) == 0
    assert float(expected_duration(law, 0.0, cost=2.0)) == 2.0
    assert float(completion_quantile(law, 0.99, 0.0)) == 0
    assert float(completion_cdf(law, 0.0, 0.0)) == 1
    assert float(completion_cdf(law, 1.9, 0.0, cost=2.0)) == 0.5
    assert float(completion_cdf(law, 2.0, 0.0, cost=2.0)) == 0.75


def test_distribution_exactly_on_a_decimal_clock():
    """Sums such as 0.3 + 0.3 + 0.1 reach 0.7, and levels that are attained exactly find their time."""
    law = parse_law("discrete(values=[0.1,0.2,0.3,0.9],probs=[0.2,0.3,0.1,0.4])")
    masses = {1: Fraction(2, 10), 2: Fraction(3, 10), 3: Fraction(1, 10), 9: Fraction(4, 10)}
    for t in (1, 2, 3):
        for cost in (0, 1, 2):
            p, total = [], Fraction(0)
            out = sum(mass for value, mass in masses.items() if value > t)
            for x in range(60):
                again = out * p[x - t - cost] if x >= t + cost else 0
                p.append((masses.get(x, 0) if x <= t else 0) + again)
                total += p[-1]
                assert float(completion_cdf(law, x / 10, t / 10, cost=cost / 10)) == pytest.approx(
                    float(total), abs=1e-13
                )
                if p[-1] > 1e-3:
                    assert float(completion_quantile(law, float(total), t / 10, cost=cost / 10)) == pytest.approx(
                        x / 10
                    )
                if x < 9:
                    schedule = schedule_cdf(law, x / 10, (t / 10,) * 9, cost=cost / 10)
                    assert float(schedule) == pytest.approx(float(total), abs=1e-13)


def test_orders_of_moments_and_levels_out_of_range_are_refused():
    assert moments(V, [0.1, 0.4], 0).tolist() == [[1.0, 1.0]]
    with pytest.raises(RestartError, match="order of a moment is -1"):
        moments(V, 0.4, -1)
    for q in (0.0, 1.0):
        with pytest.raises(RestartError, match="between 0 and 1"):
            completion_quantile(V, q, 0.4)
