"""Windows, speed-up and the safe timeout follow the objective; a deadline is not passed; failures on the lattice."""

from dataclasses import dataclass

import numpy as np
import pytest

from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import completion_cdf, completion_quantile, evaluate_timeout, optimal_timeout, simulate_policy
from latfit.restart.objectives import REGISTRY, Objective, register
from latfit.sample import LatencySample

V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
L = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
SAMPLE = Empirical.of(LatencySample.of(np.round(np.random.default_rng(3).lognormal(3, 1, 80)), lost=3))
GOALS = ["mean", "std", "moment:3", "quantile:0.99", "quantile:0.5"]


def figure(law, t, objective, cost):
    return evaluate_timeout(law, float(t), objective=objective, cost=cost).objective["value"]


@pytest.mark.parametrize("law", [V, L, SAMPLE], ids=["smooth", "outliers", "sample"])
@pytest.mark.parametrize("objective", GOALS)
@pytest.mark.slow
def test_windows_are_those_of_the_objective(law, objective):
    cost = 0.1 * float(law.partial_moment(1, 1e9))
    best = optimal_timeout(law, objective=objective, cost=cost)
    assert best.verdict == "finite"
    least = best.objective["value"]
    for share, (low, high) in ((0.01, best.within_1pct), (0.05, best.within_5pct)):
        assert low <= best.timeout <= high
        inside = np.linspace(low, min(high, 50 * best.timeout), 40)[:-1]
        assert all(figure(law, t, objective, cost) <= least * (1 + share) * (1 + 1e-6) for t in inside)
        outside = [low * 0.999] + ([high * 1.001] if np.isfinite(high) else [])
        if law is not SAMPLE or low > law.jumps[0]:
            assert any((figure(law, t, objective, cost) or np.inf) > least * (1 + share) for t in outside)
    assert best.conservative_timeout == (best.within_5pct[1] if np.isfinite(best.within_5pct[1]) else None)
    untimed = figure(law, np.inf, objective, cost)
    if untimed is None:
        assert best.speed_up is None
    else:
        assert best.speed_up == pytest.approx(untimed / least)


@pytest.mark.parametrize("D", [0.2, *(pytest.param(D, marks=pytest.mark.slow) for D in (0.05, 1.0))])
def test_a_deadline_recommends_nothing_beyond_itself(D):
    for law in (V, Defective(V, 0.1)):
        best = optimal_timeout(law, objective=f"deadline:{D}")
        assert best.timeout is None or best.timeout <= D
        grid = np.concatenate([D / np.arange(1, 30), np.linspace(D / 100, D, 300)])
        chances = [float(completion_cdf(law, D, t)) for t in grid]
        assert best.objective["value"] >= max(chances) - 1e-9
        if best.timeout is not None:
            assert best.within_5pct[1] <= D
            missed = 1 - best.objective["value"]
            for t in np.linspace(*best.within_5pct, 20):
                assert 1 - float(completion_cdf(law, D, t)) <= 1.05 * missed * (1 + 1e-6)


def test_a_window_ends_at_a_narrow_peak():
    """The quantile has one below each timeout with which one attempt less is enough."""
    law = Defective(parse_law("lognormal(mu=1.46,sigma=1.94)"), 0.05)
    best = optimal_timeout(law, objective="quantile:0.9", cost=0.57)
    low, high = best.within_5pct
    most = max(completion_quantile(law, 0.9, np.linspace(low, high, 20_000), cost=0.57))
    assert most <= 1.05 * best.objective["value"] * (1 + 1e-9)


def test_a_deadline_that_no_job_can_meet():
    best = optimal_timeout(Empirical.of(LatencySample.of([5, 6, 7.0], lost=1)), objective="deadline:2")
    assert (best.verdict, best.timeout, best.objective["value"]) == ("never", None, 0.0)


FAILING = Empirical.of(LatencySample.of([2, 3, 3, 4, 20, 30.0], failed=[1, 1, 5.0], lost=1))


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["quantile:0.9", "deadline:12"])
def test_tails_with_failures_use_the_lattice(objective):
    best = optimal_timeout(FAILING, objective=objective, cost=1)
    rng = np.random.default_rng(8)
    drawn = {}
    for t in FAILING.jumps:
        J = simulate_policy(FAILING, f"timeout(t={t})", 100_000, rng, cost=1).durations
        drawn[t] = np.quantile(J, 0.9, method="inverted_cdf") if "quantile" in objective else -(J <= 12).mean()
    least = min(drawn.values())
    assert drawn[best.timeout] <= least + 0.01 * abs(least)
    assert best.objective["value"] == pytest.approx(abs(drawn[best.timeout]), rel=0.02)
    assert best.quantiles["0.95"] is not None


@pytest.mark.slow
def test_an_objective_from_outside_is_one_class():
    @register
    @dataclass(frozen=True)
    class Twice(Objective):
        name = "twice-the-mean"
        usage = "twice-the-mean"
        takes_parameter = False

        def value(self, law, t, cost):
            return 2 * REGISTRY["mean"]().value(law, t, cost)

        def of_plan(self, plan):
            return 2 * plan.mean

    try:
        best = optimal_timeout(V, objective="twice-the-mean")
        assert best.timeout == pytest.approx(0.1982536, rel=1e-5)
        assert best.objective["value"] == pytest.approx(2 * 0.1270004, rel=1e-6)
        assert "twice-the-mean" in REGISTRY
    finally:
        del REGISTRY["twice-the-mean"]
    with pytest.raises(RestartError, match="deadline:D"):
        optimal_timeout(V, objective="twice-the-mean")
