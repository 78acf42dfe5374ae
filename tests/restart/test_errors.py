"""Wrong input to the restart engine: one clear error each."""

import numpy as np
import pytest

from latfit.errors import LatfitError, LawError, RestartError, SampleError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import (
    completion_cdf,
    completion_quantile,
    evaluate_policy,
    evaluate_timeout,
    expected_duration,
    moments,
    optimal_schedule,
    optimal_strategy,
    optimal_timeout,
    restart_helps,
    schedule_cdf,
    schedule_moments,
    simulate_policy,
)
from latfit.sample import LatencySample

LAW = parse_law("lognormal(mu=5.5,sigma=1)")
STUCK = Defective(LAW, 0.025)
FAILING = Empirical.of(LatencySample.of([1, 2, 9], failed=[1.5]))
OFF_THE_CLOCK = Empirical.of(LatencySample.of([1, 2, 9], failed=[1.5], resolution=0.7))


@pytest.mark.parametrize("rho", [-0.1, 1.0, 1.2, np.nan])
def test_rho_outside_its_range(rho):
    with pytest.raises(LawError, match="rho"):
        Defective(LAW, rho)


@pytest.mark.parametrize("cost", [-1.0, np.nan, np.inf])
def test_wrong_cost(cost):
    for call in (
        lambda: expected_duration(LAW, 300, cost=cost),
        lambda: moments(LAW, 300, cost=cost),
        lambda: optimal_timeout(LAW, cost=cost),
        lambda: optimal_timeout(LAW, wall_clock=cost),
        lambda: optimal_schedule(LAW, 2, cost=cost),
        lambda: restart_helps(LAW, 300, cost=cost),
    ):
        with pytest.raises(RestartError, match="must be a finite number of seconds"):
            call()


@pytest.mark.parametrize("t", [-1.0, np.nan, [3.0, np.nan]])
def test_wrong_timeout(t):
    for call in (expected_duration, moments, restart_helps):
        with pytest.raises(RestartError, match="timeout"):
            call(LAW, t)
    with pytest.raises(RestartError, match="timeout"):
        completion_cdf(LAW, 3.0, t)


@pytest.mark.parametrize("K", [1, 3])
def test_finite_restarts_with_outliers(K):
    for call in (lambda: optimal_schedule(STUCK, K), lambda: schedule_moments(STUCK, (300.0,) * K)):
        with pytest.raises(RestartError, match=r"0\.025 .*unbounded restarts.*deadline"):
            call()
    with pytest.raises(RestartError, match="never completes"):
        optimal_schedule(FAILING, K)


def test_finite_restarts_with_an_infinite_mean():
    with pytest.raises(RestartError, match="infinite"):
        optimal_schedule(parse_law("pareto(a=1,nu=0.8)"), 2)


@pytest.mark.parametrize("K", [0, -1, 1.5])
def test_wrong_number_of_restarts(K):
    with pytest.raises(RestartError, match="restarts"):
        optimal_schedule(LAW, K)


@pytest.mark.parametrize("copies", [0, -2, 1.5])
def test_wrong_number_of_copies(copies):
    with pytest.raises(RestartError, match="copies"):
        optimal_timeout(LAW, copies=copies)


@pytest.mark.parametrize(
    "objective",
    ["", "median", "moment", "moment:0", "moment:1.5", "moment:x", "quantile:0", "quantile:1", "quantile:nan",
     "deadline:0", "deadline:-3", "deadline:inf", "mean:2", "std:1"],
)  # fmt: skip
def test_wrong_objective(objective):
    with pytest.raises(RestartError, match="objective"):
        optimal_timeout(LAW, objective=objective)


def test_deadline_shorter_than_the_job():
    with pytest.raises(RestartError, match="wall-clock"):
        optimal_timeout(LAW, wall_clock=500, objective="deadline:400")
    with pytest.raises(RestartError, match="wall-clock"):
        evaluate_timeout(LAW, 200, wall_clock=300)


def test_questions_that_visible_failures_rule_out():
    for call in (
        lambda: completion_cdf(FAILING, 3.0, 2.0),
        lambda: completion_quantile(OFF_THE_CLOCK, 0.5, 2.0),
        lambda: schedule_cdf(FAILING, 3.0, (2.0,)),
        lambda: optimal_timeout(OFF_THE_CLOCK, objective="deadline:5"),
        lambda: optimal_timeout(OFF_THE_CLOCK, objective="quantile:0.5"),
    ):
        with pytest.raises(RestartError, match="visible failures"):
            call()


def test_other_wrong_numbers():
    with pytest.raises(RestartError, match="quantile"):
        completion_quantile(LAW, 1.0, 300)
    with pytest.raises(RestartError, match="order"):
        moments(LAW, 300, -1)
    with pytest.raises(RestartError, match="order"):
        restart_helps(LAW, 300, order=0)
    with pytest.raises(RestartError, match="allow more"):
        optimal_timeout(LAW, max_submissions=np.nan)
    with pytest.raises(RestartError, match="smallest timeout"):
        optimal_timeout(LAW, min_timeout=-1)
    with pytest.raises(RestartError, match="no job would ever end"):
        simulate_policy(parse_law("uniform(a=2,b=3)"), "timeout(t=1)", 5, np.random.default_rng(0))


def test_empty_sample():
    with pytest.raises(SampleError):
        Empirical.of(LatencySample.of([]))
    with pytest.raises(SampleError):
        Empirical.of(LatencySample.of([], lost=3))


def test_laws_that_cannot_be_read():
    for spec in ("nosuch(a=1)", "lognormal(mu=1)", "lognormal(mu=1,sigma=nan)", "lognormal(mu=1,sigma=1,x=2)"):
        with pytest.raises(LatfitError):
            parse_law(spec)


@pytest.mark.parametrize(
    "spec",
    ["truncated-gaussian(mu=-400,sigma=1e-320)", "lognormal(mu=-2,sigma=1e308)", "pareto(a=1e9,nu=1e-320)",
     "weibull(shape=1e-320,scale=1e-320)"],
)  # fmt: skip
def test_laws_beyond_floats_are_refused(spec):
    with pytest.raises(RestartError, match=r"too small, too large or too close|no attempt ever completes"):
        optimal_timeout(parse_law(spec))


def test_figures_beyond_floats_are_none():
    at = evaluate_timeout(parse_law("uniform(a=0,b=5)"), 1e-320)
    assert (at.submissions, at.verdict) == (None, "given")
    assert optimal_timeout(parse_law("gamma(shape=2,scale=1e300)"), copies=2).std_duration is None
    with pytest.raises(RestartError, match="too small, too large or too close"):
        optimal_timeout(parse_law("pareto(a=1e-9,nu=0.8)"), wall_clock=1e300, objective="moment:3")
    with pytest.raises(RestartError, match="moment:3 is infinite for every timeout"):
        optimal_timeout(parse_law("lognormal(mu=600,sigma=1)"), objective="moment:3")


def test_limits_of_what_can_be_computed():
    law = parse_law("exponential(rate=1)")
    with pytest.raises(RestartError, match="whole number from 1 to"):
        optimal_timeout(law, copies=10**400)
    with pytest.raises(RestartError, match="whole number from 1 to"):
        optimal_schedule(law, 10**20)
    with pytest.raises(RestartError, match="whole number from 0 to"):
        optimal_strategy({"a": law}, restarts=10**20)
    best = optimal_timeout(parse_law("log-logistic(shape=8,scale=0.4)"), objective="deadline:1e-300", max_submissions=1)
    assert best.timeout is None


def test_a_sleep_beyond_squares_of_numbers_leaves_the_spread_unknown():
    says = evaluate_policy(parse_law("exponential(rate=0.01)"), "schedule(timeouts=[300,3,50],sleeps=[0,1e308])")
    assert says.std_duration is None
