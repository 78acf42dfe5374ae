"""Policies: the figures of published and independent work, Monte Carlo on random laws, the theorem on job-seconds."""

import numpy as np
import pytest

import latfit
from latfit.errors import RestartError
from latfit.laws import Defective, Empirical, parse_law
from latfit.restart import evaluate_policy, optimal_timeout, parse_policy, policy_names, simulate_policy
from latfit.restart.policies import REGISTRY
from latfit.restart.policies.timeout import luby_sequence
from latfit.sample import LatencySample

L = Defective(parse_law("lognormal(mu=5.5,sigma=1)"), 0.025)
V = parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")


@pytest.mark.parametrize(
    ("law", "policy", "E", "N", "W"),
    [
        (L, "timeout(t=384.272)", 374.889, 1.521425, 374.889),
        (L, "delayed(t0=300,t_inf=450)", 313.91415, 1.610443, 380.23139),
        (V, "delayed(t0=0.12,t_inf=0.2)", 0.109142212, 1.455412, 0.130352921),
        (L, "delayed(t0=101.3285,t_inf=202.657)", 253.4812, 2.96745, 1.1004 * 374.889),
        (L, "hedge(d=300,t_inf=900)", 303.37031, 1.469672, 387.48856),
        (V, "hedge(d=0.12,t_inf=0.4)", 0.10868039, 1.388027, 0.13263858),
        (L, "hedge(d=300,t_inf=900,q=0.5)", 348.19325, 1.310882, 392.39451),
        (L, "resubmit(d=306.418)", 295.773, 1.521425, None),
        (V, "resubmit(d=0.185202)", 0.116886, 1.217570, None),
        (L, "luby(unit=61.173)", 528.103, None, None),
        (V, "luby(unit=0.0125)", 0.261004, None, None),
    ],
)
def test_golden(law, policy, E, N, W):
    outcome = evaluate_policy(law, policy)
    assert outcome.expected_duration == pytest.approx(E, rel=5e-6)
    if N is not None:
        assert outcome.submissions == pytest.approx(N, rel=2e-6)
    if W is not None:
        assert outcome.job_seconds == pytest.approx(W, rel=5e-5)
        assert outcome.parallel == pytest.approx(outcome.job_seconds / outcome.expected_duration)


@pytest.mark.parametrize(
    ("law", "policy", "P", "E", "N"),
    [
        (L, "schedule(timeouts=[300,600,1200],sleeps=[10,20])", 0.99292065, 385.54244, 1.522816),
        (V, "schedule(timeouts=[1,1,1,1],sleeps=[0.1,0.2,0.4])", 0.99999728, 0.17424412, 1.042316),
    ],
)
def test_golden_schedules(law, policy, P, E, N):
    outcome = evaluate_policy(law, policy)
    assert (outcome.success, outcome.expected_duration, outcome.submissions) == pytest.approx((P, E, N), rel=1e-6)


@pytest.mark.parametrize(
    ("law", "d", "q", "t"),
    [(L, 942.03, 0.4480, 1312.98), (L, 1676.59, 0.9715, None), (V, 0.297702, 0.4798, 0.455715)],
)
def test_golden_hedges_that_are_never_cancelled(law, d, q, t):
    outcome = evaluate_policy(law, f"hedge(d={d},q={q})")
    assert outcome.submissions == pytest.approx(1.05, abs=1e-4)
    if t is not None:
        assert outcome.quantiles["0.95"] == pytest.approx(t, rel=5e-5)
    else:
        assert outcome.quantiles["0.99"] == pytest.approx(2209.43, rel=5e-5)


def random_policy(rng, s):
    """A policy of any kind, with times of the order s."""
    t = s * 10 ** rng.uniform(-0.7, 0.7, 4)
    texts = [
        f"timeout(t={t[0]})",
        f"delayed(t0={t[0]},t_inf={t[0] * rng.uniform(1, 2)})",
        f"hedge(d={t[0]},t_inf={t[0] * rng.uniform(1, 8)},q={rng.uniform()})",
        f"resubmit(d={t[0]})",
        f"copies(b={rng.integers(2, 4)},t_inf={t[0]})",
        f"luby(unit={t[0]})",
        f"schedule(timeouts=[{t[0]},{t[1]},{t[2]}],sleeps=[{t[3] / 9},{t[1] / 5}],jitter={rng.choice([0, 1])})",
        f"tenacity(timeout={t[0]},attempts=4,wait={t[1] / 20})",
    ]
    return texts[rng.integers(len(texts))]


def random_law(rng):
    s = 10 ** rng.uniform(-2, 4)
    which = rng.integers(6)
    if which < 5:
        spec = [
            f"lognormal(mu={np.log(s)},sigma={rng.uniform(0.3, 1.5)})",
            f"weibull(shape={rng.uniform(0.5, 3)},scale={s})",
            f"gamma(shape={rng.uniform(0.5, 5)},scale={s})",
            f"piecewise-uniform(edges=[{s / 10},{s},{3 * s}],probs=[0.7,0.3])",
            f"discrete(values=[{s / 3},{s},{2.5 * s}],probs=[0.5,0.3,0.2])",
        ][which]
        law = parse_law(spec)
        return s, Defective(law, float(rng.choice([0.0, rng.uniform(0.01, 0.3)])))
    sample = LatencySample.of(np.round(s * rng.lognormal(0, 1, 60), 4), lost=int(rng.integers(0, 8)))
    return s, Empirical.of(sample)


@pytest.mark.parametrize("seed", range(50))
def test_every_policy_against_monte_carlo(seed):
    rng = np.random.default_rng(seed)
    s, law = random_law(rng)
    policy = random_policy(rng, s)
    cost = float(rng.choice([0.0, 0.2 * s]))
    outcome = evaluate_policy(law, policy, cost=cost, objective=f"deadline:{2 * s}")
    if outcome.expected_duration is None or outcome.submissions > 30:
        pytest.skip("too long to draw")
    n = 10_000
    jobs = simulate_policy(law, policy, n, rng, cost=cost)
    done = np.isfinite(jobs.durations)
    assert done.mean() == pytest.approx(
        outcome.success, abs=5 * np.sqrt(outcome.success * (1 - outcome.success) / n) + 1e-9
    )
    for drawn, figure in ((jobs.submissions, outcome.submissions), (jobs.job_seconds, outcome.job_seconds)):
        assert drawn.mean() == pytest.approx(figure, abs=5 * drawn.std() / np.sqrt(n) + 1e-3 * figure)
    chance = outcome.objective["value"]
    in_time = (jobs.durations <= 2 * s * (1 + 1e-9)).mean()
    assert in_time == pytest.approx(chance, abs=5 * np.sqrt(max(chance * (1 - chance), 1e-4) / n))
    if done.all():
        J = jobs.durations
        assert J.mean() == pytest.approx(outcome.expected_duration, abs=5 * J.std() / np.sqrt(n))
        assert J.std() == pytest.approx(outcome.std_duration, rel=0.15)
    for q, x in outcome.quantiles.items():
        if x is not None:  # the share of jobs done by the quantile is its level, or more at a jump
            below, at = (jobs.durations < x * (1 - 1e-9)).mean(), (jobs.durations <= x * (1 + 1e-9)).mean()
            slack = 5 * np.sqrt(float(q) * (1 - float(q)) / n)
            assert below - slack <= float(q) <= at + slack


@pytest.mark.parametrize("block", range(2))
@pytest.mark.slow
def test_no_policy_uses_fewer_job_seconds_than_the_best_timeout(block):
    """W ≥ E_J(t*) for independent copies; a schedule that gives up pays so much for each success."""
    for seed in range(50 * block, 50 * block + 50):
        rng = np.random.default_rng(1000 + seed)
        s, law = random_law(rng)
        least = optimal_timeout(law).expected_duration
        try:
            outcome = evaluate_policy(law, random_policy(rng, s))
        except RestartError:
            continue
        if outcome.job_seconds is not None and outcome.success:
            assert outcome.job_seconds / outcome.success >= least * (1 - 1e-7), (seed, outcome)


def test_a_timeout_is_the_engine_s_own():
    for law in (L, V, Empirical.of(LatencySample.of([1, 2, 3, 10.0], failed=[0.5], lost=1))):
        t, c = (3.0, 0.5) if isinstance(law, Empirical) else (float(law.partial_moment(1, np.inf)), 0.1)
        known = latfit.evaluate_timeout(law, t, cost=c)
        outcome = evaluate_policy(law, f"timeout(t={t!r})", cost=c)
        for name in ("expected_duration", "std_duration", "submissions", "job_seconds"):
            assert getattr(outcome, name) == pytest.approx(getattr(known, name), rel=1e-9), name
        assert outcome.quantiles == pytest.approx(known.quantiles, rel=1e-9)


def test_failures_in_a_schedule_against_simulation():
    law = Empirical.of(LatencySample.of([1, 2, 3, 10.0], failed=[0.5, 0.5, 4.0], lost=1))
    outcome = evaluate_policy(law, "luby(unit=2)", cost=0.5)
    rng = np.random.default_rng(5)
    J = simulate_policy(law, "luby(unit=2)", 40_000, rng, cost=0.5).durations
    assert J.mean() == pytest.approx(outcome.expected_duration, abs=5 * J.std() / 200)
    assert outcome.std_duration == pytest.approx(J.std(), rel=0.05)
    assert outcome.quantiles["0.95"] == pytest.approx(np.quantile(J, 0.95), rel=0.05)


def test_the_wall_clock_time_shifts_the_law():
    outcome = evaluate_policy(L, "timeout(t=700)", wall_clock=300, cost=7)
    assert outcome.expected_duration == pytest.approx(latfit.expected_duration(L, 700, wall_clock=300, cost=7))
    assert outcome.quantiles["0.95"] == pytest.approx(
        latfit.evaluate_timeout(L, 700, wall_clock=300, cost=7).quantiles["0.95"]
    )
    later = evaluate_policy(parse_law("uniform(a=301,b=302)"), "hedge(d=301.2,t_inf=301.9)")
    shifted = evaluate_policy(parse_law("uniform(a=1,b=2)"), "hedge(d=301.2,t_inf=301.9)", wall_clock=300)
    assert shifted.expected_duration == pytest.approx(later.expected_duration)
    assert shifted.quantiles == pytest.approx(later.quantiles)


@pytest.mark.parametrize(
    "policy",
    ["hedge(d=3,t_inf=3)", "hedge(d=3,t_inf=8)", "delayed(t0=3,t_inf=5)", "resubmit(d=3)", "timeout(t=1)"],
)
def test_latencies_of_zero(policy):
    """A copy may complete the moment it starts."""
    law, rng = Defective(parse_law("discrete(values=[0,1,7,8],probs=[0.1,0.2,0.3,0.4])"), 0.1), np.random.default_rng(6)
    outcome = evaluate_policy(law, policy, cost=0.5)
    jobs = simulate_policy(law, policy, 40_000, rng, cost=0.5)
    for drawn, figure in (
        (jobs.durations, outcome.expected_duration),
        (jobs.submissions, outcome.submissions),
        (jobs.job_seconds, outcome.job_seconds),
    ):
        assert drawn.mean() == pytest.approx(figure, abs=5 * drawn.std() / 200)


@pytest.mark.parametrize("jitter", [0, 1])
@pytest.mark.parametrize(("out", "level"), [(1, 0.9), (2, 0.8), (4, 0.6)])
def test_a_level_that_is_just_reached(out, level, jitter):
    """Of ten attempts some never return; the others return at 2 s, and the second attempt is too short for any."""
    law = Empirical.of(LatencySample.of([2.0] * (10 - out), lost=out))
    policy = f"schedule(timeouts=[2,0.5],sleeps=[3],jitter={jitter})"
    assert evaluate_policy(law, policy, objective=f"quantile:{level}").objective["value"] == pytest.approx(2.0)


def test_the_tail_of_sleeps_that_are_drawn():
    """Only the third attempt is long enough: it completes at 7 s and two sleeps, each uniform on 0 to 3 s."""
    outcome = evaluate_policy(parse_law("discrete(values=[5],probs=[1])"),
                              "schedule(timeouts=[1,1,5],sleeps=[3,3],jitter=1)")  # fmt: skip
    for level in (0.5, 0.95, 0.99):
        want = 13 - np.sqrt(2 * 9 * (1 - level))  # P(the sleeps take more than 6 − y) = y²/18
        assert outcome.quantiles[str(level)] == pytest.approx(want, abs=0.1), level
    assert outcome.std_duration == pytest.approx(np.sqrt(2 * 9 / 12))


@pytest.mark.parametrize(("nu", "q"), [(0.8, 1), (1.1, 0), (1.1, 0.5), (1.5, 0.3), (1.5, 1), (2.2, 0.5), (5, 0.5)])
def test_a_hedge_that_is_never_cancelled_has_the_whole_of_a_power_tail(nu, q):
    """At once with probability q: a power tail nu or 2 nu, whose moments E[T] = 1/(nu−1), E[T²] = 2/((nu−1)(nu−2))."""
    outcome = evaluate_policy(parse_law(f"pareto(a=1,nu={nu})"), f"hedge(d=0,q={q})")
    parts = [(weight, power) for weight, power in ((1 - q, nu), (q, 2 * nu)) if weight]
    mean = sum(weight / (power - 1) for weight, power in parts)
    assert outcome.expected_duration == pytest.approx(mean, rel=1e-6)
    assert outcome.job_seconds == pytest.approx(sum(w / (p - 1) * (1 if p == nu else 2) for w, p in parts), rel=1e-6)
    if min(power for _, power in parts) <= 2:
        assert outcome.std_duration is None
    else:
        second = sum(weight * 2 / ((power - 1) * (power - 2)) for weight, power in parts)
        assert outcome.std_duration == pytest.approx(np.sqrt(second - mean**2), rel=1e-5)


def test_copies_of_a_constant_time():
    outcome = evaluate_policy(parse_law("discrete(values=[5],probs=[1])"), "copies(b=2)")
    assert set(outcome.quantiles.values()) == {5.0}


def test_luby_sequence():
    assert [k for k, _ in zip(luby_sequence(), range(15), strict=False)] == [
        1,
        1,
        2,
        1,
        1,
        2,
        4,
        1,
        1,
        2,
        1,
        1,
        2,
        4,
        8,
    ]


def test_presets_are_schedules():
    schedule = parse_policy("tenacity(attempts=5,timeout=10,wait=1,factor=2,max=60)").written_out
    assert schedule.timeouts == (10,) * 5
    assert schedule.sleeps == (1, 2, 4, 8)
    assert parse_policy("kubernetes(timeout=600)").written_out.sleeps == (10, 20, 40, 80, 160, 320)
    assert parse_policy("urllib3(timeout=1,total=4,factor=0.5)").written_out.sleeps == (0, 1, 2, 4)
    assert parse_policy("botocore()").written_out.timeouts == (60,) * 3
    assert parse_policy("botocore()").written_out.sleeps == pytest.approx((0.05, 0.1))
    assert parse_policy("botocore(wait=1,attempts=7)").written_out.sleeps == (1, 2, 4, 8, 16, 20)


def test_sleeps_of_grpc_are_20_per_cent_around_the_backoff():
    """gRFC A6: retry n comes after min(initialBackoff · backoffMultiplierⁿ⁻¹, maxBackoff) · random(0.8, 1.2)."""
    policy = parse_policy("grpc(timeout=1,attempts=4,wait=0.5,factor=2,max=1.5)")
    starts = [s.start for s in policy.submissions(0.0, 20_000, np.random.default_rng(1))]
    sleeps = np.diff(starts, axis=0) - 1
    for drawn, backoff in zip(sleeps, (0.5, 1, 1.5), strict=True):
        assert drawn.min() == pytest.approx(0.8 * backoff, rel=1e-3)
        assert drawn.max() == pytest.approx(1.2 * backoff, rel=1e-3)
        assert drawn.mean() == pytest.approx(backoff, rel=0.01)


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_is_written_and_read(name):
    policy = parse_policy(REGISTRY[name].example)
    assert parse_policy(policy.spec()) == policy
    assert policy.sentence()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hedge", "lacks d"),
        ("hedge(d=1,x=2)", "no parameter 'x'"),
        ("hedg(d=1)", "did you mean hedge"),
        ("hedge(d=3,t_inf=2)", "before the second request"),
        ("hedge(d=3,q=2)", "probability"),
        ("delayed(t0=1,t_inf=3)", "between t0 and 2 t0"),
        ("timeout(t=-1)", "positive"),
        ("timeout(t=__import__)", "number"),
        ("schedule(timeouts=[1,2],sleeps=[1,2])", "one less"),
        ("1+1", "cannot be read"),
    ],
)
def test_invalid_policies_are_refused(text, says):
    with pytest.raises(RestartError, match=says):
        parse_policy(text)
