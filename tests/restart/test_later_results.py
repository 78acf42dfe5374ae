"""Results of the papers and later ones, each against code that shares nothing with the package's."""

import json

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import latfit
from conftest import EGEE
from latfit.restart import Budget

V = "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])"
L = latfit.Defective(latfit.parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)


def v_cdf(t):
    t = np.maximum(t, 0.0)
    return 1 - 0.9 * (1 + 20 * t) * np.exp(-20 * t) - 0.1 * (1 + 2 * t) * np.exp(-2 * t)


def v_draws(size, rng):
    return rng.gamma(2, np.where(rng.random(size) < 0.9, 1 / 20, 1 / 2))


def played(draws, t, cost, jobs, rng):
    """Jobs restarted by hand: each attempt cut at t, then the cost, until one completes."""
    done, waiting = np.zeros(jobs), np.arange(jobs)
    while waiting.size:
        latency = draws(waiting.size, rng)
        done[waiting] += np.where(latency <= t, latency, t + cost)
        waiting = waiting[latency > t]
    return done


@pytest.mark.parametrize(("t", "cost"), [(0.1, 0.02), (0.2, 0.0), (np.inf, 0.0)])
def test_density_of_the_completion_time(t, cost):
    x = np.linspace(0.003, 0.9, 400) + 1e-4 / 3
    difference = (
        latfit.completion_cdf(V, x + 1e-6, t, cost=cost) - latfit.completion_cdf(V, x - 1e-6, t, cost=cost)
    ) / 2e-6
    assert latfit.completion_pdf(V, x, t, cost=cost) == pytest.approx(difference, abs=1e-5)
    if np.isfinite(t):
        density = latfit.completion_pdf(V, [t + cost / 2, t + cost + 0.01], t, cost=cost)
        ahead = optimize.approx_fprime([0.01], lambda u: v_cdf(u[0]), 1e-7)[0]
        assert density[1] == pytest.approx((1 - v_cdf(t)) * ahead, rel=1e-4)
        if cost:
            assert density[0] == 0  # while the restart is under way


@pytest.mark.parametrize(("t", "cost"), [(0.08, 0.0), (0.2, 0.05), (0.6, 0.01)])
def test_geometric_bounds_of_all_moments(t, cost):
    k = np.arange(3000)
    weights = (1 - v_cdf(t)) ** k * v_cdf(t)
    low, high = latfit.moment_bounds(V, t, 4, cost=cost)
    E = latfit.moments(V, t, 4, cost=cost)
    for n in range(5):
        assert low[n] == pytest.approx((weights * (k * (t + cost)) ** n).sum(), rel=1e-9)
        assert high[n] == pytest.approx((weights * (k * (t + cost) + t) ** n).sum(), rel=1e-9)
        assert low[n] <= E[n] * (1 + 1e-12) <= high[n] * (1 + 1e-9)
    # the mean's upper bound is least at .08996, and its lower bound has a local minimum at .31105
    grid = np.linspace(0.01, 0.6, 60_001)
    low, high = latfit.moment_bounds(V, grid, 1)
    assert grid[high[1].argmin()] == pytest.approx(0.08996, abs=2e-5)
    inner = grid > 0.1
    assert grid[inner][low[1][inner][:40_000].argmin()] == pytest.approx(0.31105, abs=2e-5)


def v_partial(n, t):
    return integrate.quad(
        lambda u: u**n * (0.9 * 400 * u * np.exp(-20 * u) + 0.1 * 4 * u * np.exp(-2 * u)), 0, t, limit=200
    )[0]


def second_moment(timeouts, cost=0.0):
    first, second = 0.19, 0.1635  # without a restart: 0.9 · 6/400 + 0.1 · 6/4
    for tau in reversed(timeouts):
        q, step = 1 - v_cdf(tau), tau + cost
        first, second = (
            v_partial(1, tau) + q * (step + first),
            v_partial(2, tau) + q * (step**2 + 2 * step * first + second),
        )
    return first, second


@pytest.mark.parametrize("restarts", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_schedules_for_other_objectives(restarts):
    best = latfit.optimal_schedule(V, restarts, objective="moment:2")
    start = [0.2, 0.3][:restarts]
    other = optimize.minimize(
        lambda x: second_moment(x)[1], start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-12}
    )
    assert best.timeouts == pytest.approx(other.x, abs=2e-4)
    assert best.objective == {"name": "moment:2", "value": pytest.approx(other.fun, rel=1e-7)}
    steady = latfit.optimal_schedule(V, restarts, objective="std")
    assert steady.std_duration <= best.std_duration
    first, second = second_moment(steady.timeouts)
    assert steady.objective["value"] == pytest.approx(np.sqrt(second - first**2), rel=1e-7)


@pytest.mark.slow
def test_a_quantile_with_few_restarts():
    taus = np.linspace(0.02, 0.5, 1001)
    # P(J > x) = S(τ) S(x − τ) for x > τ: the least x with 5 % left, for each τ
    quantiles = [
        optimize.brentq(lambda x, tau=tau: (1 - v_cdf(min(x, tau))) * (1 - v_cdf(x - tau)) - 0.05, tau, 5.0)
        for tau in taus
        if 1 - v_cdf(tau) > 0.05
    ]
    one = latfit.optimal_schedule(V, 1, objective="quantile:0.95")
    assert one.objective["value"] == pytest.approx(min(quantiles), rel=1e-4)
    values = [latfit.optimal_schedule(V, k, objective="quantile:0.99").objective["value"] for k in (1, 2, 3)]
    assert values == sorted(values, reverse=True)  # another restart is never worse
    lost = latfit.optimal_schedule(L, 2, objective="quantile:0.9")  # finite although a job may never end
    assert lost.expected_duration is None
    assert lost.objective["value"] <= latfit.optimal_schedule(L, 1, objective="quantile:0.9").objective["value"]
    with pytest.raises(latfit.RestartError, match="every moment is infinite"):
        latfit.optimal_schedule(L, 2, objective="std")


def test_the_last_of_many_jobs():
    assert latfit.expected_maximum("exponential", 50, rate=2.0) == pytest.approx(
        (1 / np.arange(1, 51)).sum() / 2, rel=1e-9
    )
    assert latfit.expected_maximum("exponential", 50, 0.3, rate=2.0) == pytest.approx(
        (1 / np.arange(1, 51)).sum() / 2, rel=1e-9
    )
    assert latfit.expected_maximum(L, 3) == np.inf
    rng = np.random.default_rng(4)
    jobs = played(v_draws, 0.2, 0.05, 40 * 20_000, rng).reshape(-1, 40).max(axis=1)
    assert latfit.expected_maximum(V, 40, 0.2, cost=0.05) == pytest.approx(
        jobs.mean(), abs=4 * jobs.std() / np.sqrt(jobs.size)
    )
    data = rng.integers(1, 30, 60).astype(float)
    resampled = played(lambda n, rng: rng.choice(data, n), 12.0, 1.0, 5 * 40_000, rng).reshape(-1, 5).max(axis=1)
    ours = latfit.expected_maximum(data, 5, 12.0, cost=1.0)
    assert ours == pytest.approx(resampled.mean(), abs=4 * resampled.std() / np.sqrt(resampled.size))


@pytest.mark.slow
def test_grouping_of_jobs_into_submissions():
    best = latfit.optimal_grouping(L, 60, wall_clock=90.0, cost=5.0)
    rng = np.random.default_rng(1)

    def simulated(size):
        r = 90.0 * size
        t = latfit.optimal_timeout(L, wall_clock=r, cost=5.0).timeout
        submissions, rounds = -(-60 // size), 4000

        def draws(n, rng):
            return r + np.where(rng.random(n) < 0.025, np.inf, rng.lognormal(5.5, 1, n))

        done = played(draws, t, 5.0, rounds * submissions, rng).reshape(rounds, -1).max(axis=1)
        return done.mean(), done.std() / np.sqrt(rounds)

    means = {size: simulated(size) for size in sorted({1, best.size, 4, 8, 20})}
    assert abs(best.expected_duration - means[best.size][0]) < 4 * means[best.size][1]
    assert abs(best.ungrouped - means[1][0]) < 4 * means[1][1]
    assert all(best.expected_duration < mean + 4 * error for mean, error in means.values())
    assert best.submissions == -(-60 // best.size)
    assert latfit.optimal_grouping(L, 60, wall_clock=1.0).size > best.size  # short jobs go together
    assert latfit.optimal_grouping(L, 60, wall_clock=90.0, copies=2).expected_duration < best.expected_duration


@pytest.mark.slow
@pytest.mark.parametrize(
    "frozen", [stats.lognorm(1.1), stats.gamma(0.4), stats.gamma(2.0), stats.weibull_min(0.7), stats.weibull_min(1.6)]
)
def test_variation_above_one_means_that_a_restart_helps(frozen):
    cv = latfit.variation(frozen)
    assert cv == pytest.approx(frozen.std() / frozen.mean(), rel=1e-6)
    if cv > 1:
        t = np.geomspace(1e-4, 50, 4000)
        mean = np.array([integrate.quad(frozen.sf, 0, x)[0] / frozen.cdf(x) for x in t[::100]])
        assert mean.min() < frozen.mean()
        assert latfit.optimal_timeout(frozen).verdict in ("finite", "immediate")


def test_rates_of_tails():
    for t, cost in ((0.1, 0.0), (0.3, 0.05)):
        rate = latfit.tail_rate(V, t, cost=cost)
        x = 6 * (t + cost)
        assert rate == pytest.approx(-np.log(1 - latfit.completion_cdf(V, x, t, cost=cost)) / x, rel=1e-9)
        assert rate == pytest.approx(-np.log(1 - v_cdf(t)) / (t + cost), rel=1e-9)
    assert latfit.tail_rate("gamma", shape=3.0, scale=0.5) == pytest.approx(2.0, rel=1e-3)
    assert latfit.tail_rate(V) == pytest.approx(2.0, rel=1e-3)  # its slowest phase
    assert latfit.tail_rate("exponential", rate=0.7) == pytest.approx(0.7)
    assert latfit.tail_rate("pareto", a=1.0, nu=3.0) == latfit.tail_rate(L) == 0
    assert latfit.tail_rate("uniform", a=1.0, b=2.0) == latfit.tail_rate("weibull", shape=2.0, scale=1.0) == np.inf


def test_bounds_from_quantiles_hold_for_every_law_and_are_sharp():
    rng = np.random.default_rng(6)
    for _ in range(200):
        values = np.sort(rng.lognormal(0, 1.5, 40))
        levels = np.sort(rng.choice(np.arange(1, 40), 3, replace=False)) / 40
        known = {float(q): float(values[int(np.ceil(q * 40 - 1e-9)) - 1]) for q in levels}
        cost = float(rng.choice([0.0, 0.5]))
        bound = latfit.quantile_bound(known, cost=cost)
        below = values <= bound.timeout
        F = below.mean()
        E = (values[below].sum() + (~below).sum() * (bound.timeout + cost)) / 40 / F
        assert bound.expected_duration * (1 + 1e-9) >= E
        assert bound.waiting <= values.mean() * (1 + 1e-9)
        assert bound.submissions * (1 + 1e-9) >= 1 / F
        assert bound.least <= bound.expected_duration
    # all latencies at their quantiles: the mean is the bound
    t, q = np.array([0.12, 0.4, 2.0]), np.array([0.5, 0.95, 0.99])
    bound = latfit.quantile_bound(dict(zip(q.tolist(), t.tolist(), strict=True)))
    sharp = latfit.parse_law("discrete", values=[*t, 90.0], probs=[0.5, 0.45, 0.04, 0.01])
    assert latfit.expected_duration(sharp, bound.timeout) == pytest.approx(bound.expected_duration, rel=1e-12)
    for wrong in ({}, {0.5: 2.0, 0.9: 1.0}, {50: 1.0}, {0.5: -1.0}):
        with pytest.raises(latfit.RestartError, match="quantiles"):
            latfit.quantile_bound(wrong)


@pytest.mark.slow
def test_a_decision_comes_with_the_variation_and_warns_of_the_tail(run):
    done = run("analyze", EGEE, "--cutoff", 10_000, "--json")
    latency = json.loads(done.stdout)["latency"]
    assert latency["variation"] == pytest.approx(latency["std"] / latency["mean"])
    low, high = latency["variation_interval"]
    assert 1 < low < latency["variation"] < high
    assert "tail" not in [warning["code"] for warning in json.loads(done.stdout)["warnings"]]
    # half take 1 s and half 6 s: restarting at 1 s lowers the mean, and one job in a hundred needs seven attempts
    rng = np.random.default_rng(0)
    halves = np.where(rng.random(4000) < 0.5, 1.0, 6.0) + rng.uniform(0, 0.1, 4000)
    result = latfit.analyze(latfit.as_log(halves), resamples=0)
    assert result.timeout.expected_duration < halves.mean()
    assert "tail" in result.decision.codes
    assert np.quantile(played(lambda n, rng: rng.choice(halves, n), 1.1, 0.0, 40_000, rng), 0.99) > np.quantile(
        halves, 0.99
    )


@pytest.mark.slow
def test_more_copies_if_the_budget_allows_them():
    best = latfit.optimal_policy(L, "copies", budget=Budget("submissions", 4.2), max_copies=8)
    E = {b: latfit.optimal_timeout(L, copies=b, max_submissions=4.2).expected_duration for b in (2, 3, 4)}
    assert best.policy.b == min(E, key=E.get)
    assert best.expected_duration == pytest.approx(min(E.values()), rel=1e-9)
    assert best.submissions <= 4.2 * (1 + 1e-6)
