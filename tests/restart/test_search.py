"""The best parameters of each kind: goldens, brute force, budgets, SingleR; comparisons and loads."""

from dataclasses import dataclass

import numpy as np
import pytest

import latfit
from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import Budget, compare_policies, evaluate_policy, optimal_policy, optimal_timeout
from latfit.restart.compare import load_of
from latfit.restart.derived import coarse
from latfit.restart.policies import REGISTRY, parse_policy, register
from latfit.restart.policies.timeout import Timeout
from latfit.sample import LatencySample

L = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
TWO_MODES = Defective(parse_law("piecewise-uniform(edges=[1,2,10,11],probs=[0.6,0,0.4])"), 0.05)
SAMPLE = Empirical.of(LatencySample.of(np.round(np.random.default_rng(4).lognormal(4, 1, 150)), lost=5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "t0", "E", "N", "W"), [(L, 101.3285, 253.4812, 2.96745, 1.1004), (V, 0.0520664, 0.0970116, 2.34483, 1.1585)]
)
def test_delayed_optimum(law, t0, E, N, W):
    best = optimal_policy(law, "delayed")
    assert best.policy.t_inf == pytest.approx(2 * best.policy.t0, rel=1e-6)
    assert (best.policy.t0, best.expected_duration, best.submissions) == pytest.approx((t0, E, N), rel=1e-4)
    assert best.expected_duration == pytest.approx(E, rel=1e-6)
    assert best.job_seconds / optimal_timeout(law).expected_duration == pytest.approx(W, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "kind", "times", "E"),
    [
        (L, "delayed", {"t0": 311.556}, 301.569),
        (V, "delayed", {"t0": 0.185403}, 0.117040),
        (L, "hedge", {"d": 243.08, "t_inf": 1527.3}, 290.634),
        (V, "hedge", {"d": 0.1805, "t_inf": 0.46025}, 0.117276),
        (L, "resubmit", {"d": 306.418}, 295.773),
    ],
)
def test_the_same_number_of_submissions(law, kind, times, E):
    N = optimal_timeout(law).submissions
    best = optimal_policy(law, kind, budget=Budget("submissions", N))
    assert best.submissions <= N * (1 + 1e-6)
    assert best.expected_duration == pytest.approx(E, rel=1e-5)
    for name, value in times.items():
        assert getattr(best.policy, name) == pytest.approx(value, rel=2e-3)


def test_never_cancelling_at_the_same_number_of_submissions():
    assert evaluate_policy(V, "resubmit(d=0.185202)").submissions == pytest.approx(
        optimal_timeout(V).submissions, rel=1e-5
    )


def brute(law, kind, objective, budget, cost):
    """The least figure over a plain grid of both free times on a coarse law, and the point of it."""
    chosen, goal, rough = REGISTRY[kind], latfit.restart.objectives.Objective.parse(objective), coarse(law, 150)
    top = float(rough.jumps[-1])
    times = np.geomspace(float(rough.jumps[0]), min(top, 4 * float(law.partial_moment(1, 1e9)) + top / 50), 40)
    ratios = [1.0] if chosen.ratios is None else np.geomspace(chosen.ratios[0], min(chosen.ratios[1], 60), 14)
    best = (np.inf, 0.0, 0.0)
    for time in times:
        for ratio in ratios:
            try:
                plan = chosen.from_times(float(time), float(ratio)).plan(rough, cost)
            except RestartError:
                continue
            if budget is None or getattr(plan, budget.name) <= budget.value:
                best = min(best, (goal.of_plan(plan), float(time), float(ratio)))
    return best


@pytest.mark.parametrize("kind", ["delayed", "hedge", "copies", "luby"])
@pytest.mark.parametrize(("objective", "law"), [("mean", TWO_MODES), ("quantile:0.9", SAMPLE)], ids=["modes", "sample"])
@pytest.mark.slow
def test_optimum_against_brute_force(kind, objective, law):
    cost = 0.02 * float(law.partial_moment(1, 1e9))
    found = optimal_policy(law, kind, objective=objective, cost=cost)
    _, time, ratio = brute(law, kind, objective, None, cost)
    there = evaluate_policy(law, REGISTRY[kind].from_times(time, ratio), objective=objective, cost=cost)
    assert found.objective["value"] <= there.objective["value"] * 1.003


@pytest.mark.parametrize("name", ["submissions", "job_seconds"])
@pytest.mark.parametrize("kind", ["delayed", "hedge", "resubmit"])
@pytest.mark.parametrize("law", [L, SAMPLE], ids=["law", "sample"])
@pytest.mark.slow
def test_optimum_under_a_budget_against_brute_force(kind, name, law):
    budget = Budget(name, 1.06 * getattr(optimal_timeout(law), name))
    try:
        found = optimal_policy(law, kind, budget=budget)
    except RestartError:
        assert brute(law, kind, "mean", Budget(name, 0.995 * budget.value), 0.0)[0] == np.inf
        return
    assert getattr(found, name) <= budget.value * (1 + 1e-5)
    _, time, ratio = brute(law, kind, "mean", Budget(name, 0.995 * budget.value), 0.0)
    if time:
        there = evaluate_policy(law, REGISTRY[kind].from_times(time, ratio))
        if getattr(there, name) <= budget.value:
            assert found.expected_duration <= there.expected_duration * 1.003


@pytest.mark.parametrize(
    ("law", "level", "t", "d", "q"),
    [
        (L, 0.95, 1312.98, 942.03, 0.4480),
        (V, 0.95, 0.455715, 0.297702, 0.4798),
        (L, 0.99, 2209.43, 1676.59, 0.9715),
        (V, 0.99, 0.972962, 0.752369, 0.8988),
    ],
)
@pytest.mark.slow
def test_single_r(law, level, t, d, q):
    best = optimal_policy(law, "hedge", objective=f"quantile:{level}", budget=Budget("submissions", 1.05))
    assert best.objective["value"] == pytest.approx(t, rel=5e-6)
    assert (best.policy.d, best.policy.q) == pytest.approx((d, q), rel=3e-3)
    assert best.submissions <= 1.05 + 1e-9


def test_a_hedge_at_the_percentile_gains_nothing_at_it():
    outcome = evaluate_policy(L, "hedge(d=1718.34)")
    assert outcome.quantiles["0.95"] == pytest.approx(1718.34, rel=1e-5)


def test_single_r_on_a_sample_against_all_pairs():
    found = optimal_policy(SAMPLE, "hedge", objective="quantile:0.9", budget=Budget("submissions", 1.1))
    x, F = SAMPLE.jumps, SAMPLE.cdf(SAMPLE.jumps)
    best = np.inf
    for d, S in zip(np.append(0, x), 1 - np.append(0, F), strict=True):
        q = min(1.0, 0.1 / S)
        for t in np.union1d(x, x + d):
            if (
                float(SAMPLE.cdf(t)) + q * (1 - float(SAMPLE.cdf(t))) * (float(SAMPLE.cdf(t - d)) if t >= d else 0.0)
                >= 0.9
            ):
                best = min(best, t)
                break
    assert found.objective["value"] <= best * (1 + 1e-9)


def test_policies_that_cannot_be_optimised():
    with pytest.raises(RestartError, match="budget"):
        optimal_policy(L, "resubmit")
    with pytest.raises(RestartError, match="no parameter"):
        optimal_policy(L, "schedule")
    with pytest.raises(RestartError, match="no delayed policy with at most"):
        optimal_policy(L, "delayed", budget=Budget("submissions", 1.01))


@pytest.mark.slow
def test_compare_decides():
    table = compare_policies(L)
    assert table.decision().startswith("Hedge after 243")
    assert "22 % faster with at most 1.521 submissions a job than timeout(t=384.3)" in table.decision()
    assert table.rows[0].role == "reference"
    assert all(row.outcome.submissions <= 1.5215 for row in table.rows if row.role == "same")
    assert table.least_job_seconds == pytest.approx(374.889, abs=1e-3)
    assert all(row.outcome.job_seconds >= table.least_job_seconds * (1 - 1e-6) for row in table.rows)


@pytest.mark.slow
def test_compare_lists_given_policies_first():
    table = compare_policies(
        L, ["timeout(t=1000)", "resubmit(d=500)"], objective="quantile:0.95", same="5%", utilisation=0.7
    )
    assert [row.role for row in table.rows[:2]] == ["given", "given"]
    assert table.budget == Budget("submissions", 1.05)
    assert len(table.loads) == len(table.rows)
    assert table.loads[0].if_served == pytest.approx(0.7)
    plain = table.to_dict()
    assert {"policy", "parameters", "expected_duration", "std_duration", "quantiles", "objective", "submissions",
            "job_seconds", "parallel", "success"} <= set(plain["strategies"][0])  # fmt: skip
    with pytest.raises(RestartError, match="5%"):
        compare_policies(L, same="some")


@pytest.mark.slow
def test_compare_says_where_nothing_is_better():
    table = compare_policies(parse_law("exponential(rate=0.01)"), ["timeout(t=100)"], same="job-seconds")
    assert "nothing is clearly better" in table.decision() or "faster" in table.decision()
    failing = Empirical.of(LatencySample.of([2, 3, 3, 4, 20, 30.0], failed=[1, 1, 5.0], lost=1))
    assert "--failed" in compare_policies(failing).notes[0]


def test_safe_shares():
    now = evaluate_policy(L, "timeout(t=400)")
    three = evaluate_policy(L, "schedule(timeouts=[300,300,300])")
    load = load_of(three, now, 0.7)
    assert load.safe_share == pytest.approx((1 / 0.7 - 1) / 2)  # a (1 + φ (m − 1)) = 1
    assert load.if_served == pytest.approx(0.7 * three.submissions / now.submissions)
    assert load.if_cancelled == pytest.approx(0.7 * three.job_seconds / now.job_seconds)
    with pytest.raises(RestartError, match="utilisation"):
        load_of(three, now, 1.2)


@pytest.mark.slow
def test_a_policy_from_outside_is_one_class():
    @register
    @dataclass(frozen=True)
    class Patient(Timeout):
        """Twice the patience of a timeout."""

        name = "patient"
        example = "patient(t=100)"
        copies_at_once = None

        def plan(self, law, cost):
            return Timeout(2 * self.t).plan(law, cost)

    try:
        best = optimal_policy(V, "patient")
        assert best.policy.t == pytest.approx(0.1982536 / 2, rel=1e-3)
        assert best.expected_duration == pytest.approx(0.1270004, rel=1e-6)
        assert parse_policy("patient(t=3)").t == 3
        assert "patient" in {row.outcome.policy.name for row in compare_policies(V).rows}
    finally:
        del REGISTRY["patient"]


@pytest.mark.parametrize(
    "spec", ["exponential(rate=0.01)", "pareto(a=100,nu=0.51)", "pareto(a=100,nu=0.7)", "weibull(shape=0.4,scale=100)"]
)
@pytest.mark.slow
def test_rounding_is_not_taken_for_a_gain(spec):
    """Two copies out at most: no mean is below half of what one copy at a time takes, and job-seconds are no less."""
    law = parse_law(spec)
    found = compare_policies(law)
    assert found.least_job_seconds is not None
    for row in found.rows:
        if row.outcome.policy.name in ("delayed", "hedge", "copies"):
            assert row.outcome.expected_duration > 0.499 * found.least_job_seconds, row.outcome.policy
            assert row.outcome.job_seconds > 0.999 * found.least_job_seconds, row.outcome.policy
    smaller = any("the smaller a timeout the better" in note for note in found.notes)
    assert smaller == (optimal_timeout(law).verdict == "immediate")


def test_no_gain_is_reported_over_a_policy_that_never_ends():
    found = compare_policies(parse_law("pareto(a=100,nu=0.7)"), ["timeout()"])
    assert found.reference.expected_duration is None
    assert found.gain(found.rows[1].outcome) is None
    assert "at most 1 submission a job" in found.decision()
