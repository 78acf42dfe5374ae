"""Finite schedules against brute force and Monte Carlo in both worlds, and the goldens of the bundled log."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import latfit
from latfit.decision.schedule import Strata, choose_schedules, curves_of
from latfit.restart.retry import Attempt, ScheduleGrid, best_retry, evaluate_retry

CUTOFF = 10_000.0


@pytest.fixture(scope="module")
def bundled() -> latfit.Empirical:
    return latfit.Empirical.of(latfit.example_log().sample(cutoff=CUTOFF))


@pytest.mark.parametrize(
    ("suspicion", "risk", "timeouts", "duration", "loss"),
    [
        (0.1, 0.3, (358.0, 716.0), 309.311, 0.213),
        (0.1, 0.2, (579.0, 579.0), 311.653, 0.199),
        (0.1, 0.1, (618.0,), 344.340, 0.0987),
        (0.3, 0.3, (565.0, 565.0), 311.257, 0.200),
    ],
)
def test_goldens_of_the_bundled_log(bundled, suspicion, risk, timeouts, duration, loss):
    retry = best_retry(bundled, cutoff=CUTOFF, risk=risk, suspicion=suspicion)
    assert retry is not None
    assert retry.timeouts == timeouts
    assert retry.expected_duration == pytest.approx(duration, abs=5e-4)
    assert retry.worst_loss == pytest.approx(loss, abs=5e-4)
    assert retry.waiting == pytest.approx(647.321, abs=5e-4)


def test_nothing_within_five_percent(bundled):
    assert best_retry(bundled, cutoff=CUTOFF, risk=0.05) is None


def simulate(rng, draw, timeouts, cutoff, cost, *, identical, jobs=200_000):
    """Mean duration, submissions and share undone; `draw(n)` gives time of completion and of visible failure."""
    spent, submissions, alive = np.zeros(jobs), np.zeros(jobs), np.arange(jobs)
    undone, done_at, fails_at = 0.0, *draw(jobs)
    for attempt in range(400):
        limit = timeouts[attempt] if attempt < len(timeouts) else cutoff
        submissions[alive] += 1
        ends = np.minimum(done_at, fails_at)
        completed = (done_at <= limit) & (done_at <= fails_at)
        cancelled = ends > limit
        spent[alive] += np.where(completed, done_at, np.minimum(ends, limit) + cost)
        if attempt == len(timeouts):
            undone = float((~completed).sum()) / jobs
        keep = ~completed
        alive = alive[keep]
        if not alive.size:
            break
        new_done, new_fails = draw(alive.size)
        stays = cancelled[keep] & (identical and attempt < len(timeouts))
        done_at, fails_at = np.where(stays, done_at[keep], new_done), np.where(stays, fails_at[keep], new_fails)
    return spent.mean(), submissions.mean(), undone


@pytest.mark.parametrize("cost", [0.0, 0.7])
@pytest.mark.parametrize("timeouts", [(1.5,), (1.0, 2.0), (2.0, 2.0, 4.0)])
def test_monte_carlo_in_both_worlds(timeouts, cost):
    law = latfit.Defective(latfit.parse_law("lognormal(mu=0.5,sigma=1)"), 0.05)
    retry = evaluate_retry(law, timeouts, cutoff=30.0, cost=cost)
    rng = np.random.default_rng(5)

    def draw(n):
        return np.where(rng.random(n) < 0.05, np.inf, rng.lognormal(0.5, 1, n)), np.full(n, np.inf)

    duration, submissions, undone = simulate(rng, draw, timeouts, 30.0, cost, identical=False)
    assert retry.expected_duration == pytest.approx(duration, rel=0.015)
    assert retry.submissions == pytest.approx(submissions, rel=0.01)
    assert retry.undone == pytest.approx(undone, rel=0.1)
    worst, _, _ = simulate(rng, draw, timeouts, 30.0, cost, identical=True)
    assert retry.worst_duration == pytest.approx(worst, rel=0.015)


def test_monte_carlo_with_visible_failures_in_both_worlds():
    rng = np.random.default_rng(6)
    done, fails = rng.lognormal(0, 1, 3000), np.where(rng.random(3000) < 0.2, rng.uniform(0, 1, 3000), np.inf)
    completed = done <= fails
    sample = latfit.LatencySample.of(done[completed], failed=fails[~completed]).cut(20.0)
    timeouts = (1.0, 1.5, 2.25)
    retry = evaluate_retry(latfit.Empirical.of(sample), timeouts, cutoff=20.0, cost=0.3)

    def draw(n):
        rows = rng.integers(0, 3000, n)
        return np.where(completed, done, np.inf)[rows], np.where(completed, np.inf, fails)[rows]

    assert retry.expected_duration == pytest.approx(
        simulate(rng, draw, timeouts, 20.0, 0.3, identical=False)[0], rel=0.01
    )
    assert retry.worst_duration == pytest.approx(simulate(rng, draw, timeouts, 20.0, 0.3, identical=True)[0], rel=0.01)


@pytest.mark.parametrize("count", [1, 2])
def test_brute_force_over_all_combinations_of_latencies(count):
    """For K = 1, 2: enumerate the latencies of all attempts instead of using the formula."""
    rng = np.random.default_rng(count)
    x = np.round(rng.lognormal(1, 1.2, 12), 2)
    law = latfit.Empirical.of(latfit.LatencySample.of(x))
    for timeouts in product(np.sort(x)[2:], repeat=count):
        if list(timeouts) != sorted(timeouts):
            continue
        total = 0.0
        for fates in product(x, repeat=count + 1):
            for fate, limit in zip(fates, (*timeouts, np.inf), strict=True):
                total += min(fate, limit)
                if fate <= limit:
                    break
        retry = evaluate_retry(law, timeouts)
        assert retry.expected_duration == pytest.approx(total / x.size ** (count + 1))
        repeated = [sum(t for t in timeouts if fate > t) + fate for fate in x]
        assert retry.worst_duration == pytest.approx(np.mean(repeated))


def test_grid_agrees_with_single_schedules(bundled):
    first, cutoffs, costs = np.array([[200.0, 358.0, 900.0], [100.0, 500.0, 500.0]]), [CUTOFF, 5000.0], [3.0, 0.0]
    grid = ScheduleGrid(first, np.array(cutoffs))
    attempt = Attempt(*map(np.stack, zip(*(Attempt.of(bundled, times) for times in grid.times), strict=True)))
    waiting, rows, never = attempt.waiting(np.array(costs)), np.arange(2), np.full(2, np.inf)
    durations = grid.durations(attempt, waiting, np.array(costs), log=rows, pool=rows, span=never)
    losses, load, _ = grid.worst_case(attempt, waiting, np.array(costs))
    for log, growth, at, count in np.ndindex(durations.shape):
        timeouts = grid.limits[log, growth, at, : count + 1]
        retry = evaluate_retry(bundled, timeouts, cutoff=cutoffs[log], cost=costs[log])
        place = log, growth, at, count
        assert durations[place] == pytest.approx(retry.expected_duration)
        assert losses[place] == pytest.approx(retry.worst_loss)
        assert load[place] == pytest.approx(bundled.still_out(timeouts).sum())


def test_without_limits_a_continuous_law_gives_the_finite_schedule_of_van_moorsel_and_wolter():
    law = latfit.parse_law("erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])")
    retry = best_retry(law, risk=np.inf, suspicion=0.0)
    assert retry is not None
    assert retry.expected_duration == pytest.approx(0.1270004, abs=2e-6)  # unbounded restarts; seven come close


@pytest.mark.parametrize("suspicion", [0.02, 0.1])
def test_choice_minimises_the_objective_over_every_schedule(suspicion):
    """Against a plain loop over every observed first timeout."""
    rng = np.random.default_rng(9)
    x = np.round(rng.lognormal(0, 1.3, 150), 3)
    strata = replace(Strata.of(x, np.zeros(150), 1000.0), suspicion=suspicion)
    (choice,) = choose_schedules([strata], risk=0.3)
    law = latfit.Empirical.of(latfit.LatencySample.of(x))
    least = np.inf
    for first in np.sort(x)[18:]:  # at least one in eight completes
        for growth, count in product((1.0, 1.5, 2.0), range(1, 8)):
            timeouts = [first * growth**j for j in range(count)]
            retry = evaluate_retry(law, timeouts, cutoff=1000.0)
            if retry.worst_loss <= 0.3 and sum((x > t).mean() for t in timeouts) <= 1:  # at most twice the load
                suspected = retry.worst_loss + sum(timeouts) / 150 / retry.waiting
                unseen = suspected - retry.worst_loss  # one attempt more repeats its fate
                least = min(least, (1 - suspicion) * (1 - retry.gain + unseen) + suspicion * (1 + suspected))
    assert choice is not None
    assert choice.value == pytest.approx(least, rel=2e-3)


def test_weights_of_what_ended_are_those_of_kaplan_meier():
    rng = np.random.default_rng(3)
    x, given_up = rng.lognormal(0, 1, 300), rng.exponential(3, 300)
    censored, failed = given_up < x, rng.random(300) < 0.1
    latency = np.minimum(x, given_up)
    completed, failed = ~censored & ~failed, ~censored & failed
    strata = Strata.of(latency, np.where(censored, 2, np.where(failed, 1, 0)), 50.0)
    sample = latfit.LatencySample.of(latency[completed], failed=latency[failed], censored=latency[censored])
    law = latfit.Empirical.of(sample.cut(50.0))
    times = np.array([0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 50.0])
    curves = curves_of([strata], times[None])
    inside = times < latency.max()
    expected = Attempt.of(law, times)
    for ours, theirs in zip(curves, expected, strict=True):
        np.testing.assert_allclose(ours[0][inside], theirs[inside], atol=1e-12)


def test_bounds_of_a_histogram_hold_for_every_law_within_the_buckets():
    """Durations rise with latencies, so laws at the lower and upper ends of buckets bound those between."""
    rng = np.random.default_rng(4)
    x = rng.lognormal(0, 1, 2000)
    edges = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 64.0])
    bucket = np.searchsorted(edges, x)
    for timeouts in ((1.0,), (2.0, 3.0), (0.7, 1.4, 2.8)):
        low, high, inside = (
            evaluate_retry(latfit.Empirical.of(latfit.LatencySample.of(values)), timeouts, cutoff=64.0)
            for values in (edges[bucket - 1] + 1e-12, edges[bucket], x)
        )
        assert low.expected_duration <= inside.expected_duration <= high.expected_duration
        assert low.worst_duration <= inside.worst_duration <= high.worst_duration


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rho"), [(0.5, 0.03), (1.2, 0.0)])
def test_intervals_of_gain_and_loss_cover_the_truth(sigma, rho):
    """95 % intervals of 80 logs; fewer than 85 % inside would have a chance of 4e-4."""
    rng, cutoff = np.random.default_rng(3), 100.0
    law = latfit.Defective(latfit.parse_law(f"lognormal(mu=0,sigma={sigma})"), rho)
    inside = np.zeros(2)
    count = 0
    for _ in range(80):
        x = np.where(rng.random(400) < rho, np.inf, rng.lognormal(0, sigma, 400))
        sample = latfit.LatencySample.of(x[x <= cutoff], lost=int((x > cutoff).sum()))
        options = latfit.Options(cutoff=cutoff, laws=(), test=False)
        retry = latfit.decide([sample], options)[0].timeout.retry
        if retry is None:
            continue
        truth = evaluate_retry(law, retry.timeouts, cutoff=cutoff)
        figures = ((truth.gain, retry.gain_interval), (truth.worst_loss, retry.loss_interval))
        inside += [low <= figure <= high for figure, (low, high) in figures]
        count += 1
    assert count >= 50
    assert (inside / count).min() >= 0.85
