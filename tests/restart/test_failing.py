"""Copies that overlap under visible failures: formulas against copies drawn one by one, and against the plain case."""

import numpy as np
import pytest
from scipy.integrate import quad

from latfit.errors import RestartError
from latfit.laws import Competing, Empirical, parse_law
from latfit.restart import compare_policies, evaluate_policy, optimal_policy, simulate_policy, std_duration
from latfit.restart.derived import coarse
from latfit.sample import LatencySample

STEPS = Empirical.of(LatencySample.of([1, 2, 3, 3, 4, 6, 9, 14.0], failed=[0.5, 0.5, 2.5, 4.0], lost=1))
SMOOTH = Competing.of(parse_law("lognormal(mu=1,sigma=1)"), [0.3, 1.0, 2.5, 6.0], [0.1, 0.2, 0.1, 0.1])
POLICIES = ["hedge(d=1.5,t_inf=5)", "hedge(d=2.5,t_inf=8,q=0.4)", "hedge(d=0,t_inf=4)", "hedge(d=6,t_inf=6.2)",
            "delayed(t0=2,t_inf=3)", "delayed(t0=3,t_inf=6)", "delayed(t0=1.5,t_inf=1.5)", "delayed(t0=20,t_inf=30)",
            "copies(b=2,t_inf=5)", "copies(b=3,t_inf=4)", "timeout(t=4)"]  # fmt: skip


@pytest.mark.parametrize(("law", "cost"), [(STEPS, 0.0), (SMOOTH, 0.7)], ids=["steps", "smooth"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.slow
def test_against_copies_drawn_one_by_one(policy, law, cost):
    n = 60_000
    jobs = simulate_policy(law, policy, n, np.random.default_rng(3), cost=cost)
    says = evaluate_policy(law, policy, cost=cost)
    for drawn, figure in (
        (jobs.durations, says.expected_duration),
        (jobs.submissions, says.submissions),
        (jobs.job_seconds, says.job_seconds),
    ):
        assert abs(drawn.mean() - figure) < 4.5 * drawn.std() / np.sqrt(n), figure
    assert jobs.durations.std() == pytest.approx(says.std_duration, rel=0.03)
    assert says.success == pytest.approx(1)


@pytest.mark.parametrize("cost", [0.0, 0.7])
@pytest.mark.parametrize("policy", ["hedge(d=2)", "hedge(d=2,q=0.4)", "hedge(d=0)", "copies(b=2)", "copies(b=3)"])
def test_rounds_that_only_failures_end(policy, cost):
    """Nothing is cancelled and nothing lost: a round ends when a copy completes or all of them have failed."""
    law = Empirical.of(LatencySample.of(np.arange(1, 40) ** 1.3, failed=np.linspace(0.3, 5, 30)))
    test_against_copies_drawn_one_by_one(policy, law, cost)


@pytest.mark.slow
def test_two_copies_of_a_smooth_law_that_are_never_cancelled():
    """The same as a hedge at once; no clock, and so no lattice: quantiles are those of drawn jobs."""
    copies, hedge = (evaluate_policy(SMOOTH, policy) for policy in ("copies(b=2)", "hedge(d=0)"))
    for name in ("expected_duration", "std_duration", "submissions", "job_seconds"):
        assert getattr(copies, name) == pytest.approx(getattr(hedge, name), rel=1e-5), name
    for level, value in copies.quantiles.items():
        assert value == pytest.approx(hedge.quantiles[level], rel=0.1), level
    with pytest.raises(RestartError, match="steps of one clock"):
        evaluate_policy(SMOOTH, "copies(b=2)", objective="quantile:0.9")


@pytest.mark.slow
@pytest.mark.parametrize("nu", [1.2, 1.5, 2.2])
def test_a_power_tail_beside_failures(nu):
    """A hedge that is never sent is one attempt, whose moments are known without quadrature."""
    law = Competing.of(parse_law(f"pareto(a=1,nu={nu})"), [0.3, 1.0, 2.5], [0.1, 0.2, 0.1])
    hedge, one = (evaluate_policy(law, policy, cost=0.7) for policy in ("hedge(d=1,q=0)", "copies(b=1)"))
    assert hedge.expected_duration == pytest.approx(one.expected_duration, rel=1e-5)
    assert (hedge.std_duration is None) == (one.std_duration is None) == (nu < 2)
    if nu > 2:
        assert hedge.std_duration == pytest.approx(one.std_duration, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "b"), [(0.6, 2), (1.5, 3), (2.3, 2), (3.0, 3)])
def test_copies_that_are_never_cancelled_under_a_power_tail_and_failures(nu, b):
    """All that are left may be one copy beside failed ones: the mean is infinite for ν < 1, and the spread for ν < 2.

    A copy fails at τ = ½ with probability 0.3 if it is still out; all have failed by then with probability r = G̃ᵇ.
    """

    def out(t):
        S, G = (1 + t) ** -nu * (1 if t < 0.5 else 0.7), 0.0 if t < 0.5 else 0.3 * 1.5**-nu
        return S * sum((S + G) ** k * G ** (b - 1 - k) for k in range(b))

    def moment(n):
        early = quad(lambda t: n * t ** (n - 1) * out(t), 0, 0.5)[0]
        return early + quad(lambda y: n * np.exp(n * y) * out(np.exp(y)), np.log(0.5), 160, limit=1000)[0]

    says = evaluate_policy(Competing.of(parse_law(f"pareto(a=1,nu={nu})"), [0.5], [0.3]), f"copies(b={b})")
    assert ((says.expected_duration is None), (says.std_duration is None)) == (nu < 1, nu < 2)
    if nu > 1:
        r = (0.3 * 1.5**-nu) ** b
        mean = moment(1) / (1 - r)
        assert says.expected_duration == pytest.approx(mean, rel=1e-7)
        if nu > 2:
            variance = (moment(2) + 2 * r * 0.5 * mean) / (1 - r) - mean**2
            assert says.std_duration == pytest.approx(np.sqrt(variance), rel=1e-6)


def test_attempts_that_never_end_are_out_in_both_models():
    law = Empirical.of(LatencySample.of([1.0, 2.0], failed=[1.5], lost=1))
    assert evaluate_policy(law, "hedge(d=3)").expected_duration is None
    assert np.isinf(simulate_policy(law, "hedge(d=3)", 1000, np.random.default_rng(3)).durations).any()


@pytest.mark.parametrize("policy", ["delayed(t0=3,t_inf=5)", "delayed(t0=3,t_inf=6)"])
def test_copies_that_are_all_cancelled_before_one_can_complete(policy):
    """Nothing happens before 3 s and nothing completes before 20 s: each attempt is cancelled or fails, forever."""
    says = evaluate_policy(Empirical.of(LatencySample.of([20.0, 30.0], failed=[4.0, 25.0])), policy)
    assert (says.expected_duration, says.std_duration, says.submissions, says.job_seconds) == (None,) * 4
    assert says.success == 0


def test_the_tail_of_copies_on_a_clock():
    law = Empirical.of(LatencySample.of([1, 2, 3, 3, 4, 6, 9, 14.0], failed=[1.0, 2.0, 4.0], lost=1))
    says = evaluate_policy(law, "copies(b=2,t_inf=4)", cost=1.0)
    jobs = simulate_policy(law, "copies(b=2,t_inf=4)", 60_000, np.random.default_rng(8), cost=1.0)
    for level in (0.5, 0.95, 0.99):
        at = says.quantiles[str(level)]
        assert (jobs.durations < at).mean() < level + 0.004
        assert (jobs.durations <= at).mean() > level - 0.004


def test_a_plain_job_by_hand():
    """An attempt takes 1 s, fails at 2 s or takes 10 s: the hedge at 3 s sees only those that take 10 s."""
    law = Empirical.of(LatencySample.of([1.0, 10.0], failed=[2.0]))
    # first: done at 1, over at 2, or out at 3; then the second: done at 4, failed at 5, or both done at 10 and 13
    once = (1 + 2 + (4 + 10 + 10) / 3) / 3
    assert evaluate_policy(law, "hedge(d=3,t_inf=20)").expected_duration == pytest.approx(once / (2 / 3))


@pytest.mark.slow
def test_without_failures_it_is_the_plain_formula():
    plain = Empirical.of(LatencySample.of([1, 2, 3, 5, 8.0] * 400, lost=100))
    rare = Empirical.of(LatencySample.of([1, 2, 3, 5, 8.0] * 400_000, failed=[0.5], lost=100_000))
    for policy in POLICIES:
        for name in ("expected_duration", "std_duration", "submissions", "job_seconds"):
            a, b = (getattr(evaluate_policy(law, policy, cost=0.3), name) for law in (plain, rare))
            assert a == pytest.approx(b, rel=1e-5), (policy, name)


def test_refusals_say_why_and_what_to_do():
    with pytest.raises(RestartError, match=r"which of any number of copies are still out.*--failed"):
        evaluate_policy(STEPS, "resubmit(d=2)")
    with pytest.raises(RestartError, match="--failed"):
        evaluate_policy(STEPS, "hedge(d=1,t_inf=3)", objective="quantile:0.9")


@pytest.mark.parametrize("kind", ["hedge", "delayed"])
@pytest.mark.slow
def test_the_best_one_against_a_grid(kind):
    rng = np.random.default_rng(4)
    law = Empirical.of(LatencySample.of(rng.lognormal(1, 1, 150), failed=rng.uniform(0, 4, 30), lost=7))
    best = optimal_policy(law, kind)
    first, second = ("d", "t_inf") if kind == "hedge" else ("t0", "t_inf")
    grid = [
        evaluate_policy(law, f"{kind}({first}={a},{second}={a * r})").expected_duration
        for a in np.geomspace(0.2, 10, 6)
        for r in np.linspace(1.05, 2.0 if kind == "delayed" else 12, 3)
    ]
    assert best.expected_duration <= min(grid) * 1.003


def test_a_coarse_law_keeps_its_failures():
    rng = np.random.default_rng(5)
    law = Empirical.of(LatencySample.of(rng.lognormal(1, 1, 20_000), failed=rng.uniform(0, 4, 5000), lost=100))
    rough = coarse(law, 300)
    assert rough.jumps.size < 500
    for policy in POLICIES[:6]:
        a, b = (evaluate_policy(each, policy).expected_duration for each in (law, rough))
        assert a == pytest.approx(b, rel=0.01), policy


@pytest.mark.slow
def test_a_comparison_has_hedges_under_failures():
    rng = np.random.default_rng(6)
    law = Empirical.of(LatencySample.of(rng.lognormal(5.5, 1, 2000), failed=rng.uniform(0, 300, 100), lost=50))
    table = compare_policies(law)
    assert {"hedge", "delayed", "copies"} <= {row.outcome.policy.name for row in table.rows}
    assert any("resubmit is left out" in note for note in table.notes)
    assert table.gain(table.chosen()) > 0.1


def test_a_cost_beyond_squares_of_numbers_leaves_the_spread_unknown():
    with np.errstate(over="ignore"):
        assert not np.isfinite(std_duration(STEPS, 4.0, cost=1e300))
        assert std_duration(STEPS, 4.0, cost=1e100) > 1e99
