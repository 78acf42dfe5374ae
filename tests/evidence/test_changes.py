"""Change points: found where something changed, silent where nothing did; cycles likewise."""

import doctest
from itertools import pairwise

import numpy as np
import pytest

import latfit.evidence.changes as module
from latfit.evidence.changes import find_changes

CUTOFF = 10_000.0


def probes(rng, n, *, rho=0.02, sigma=1.0, scale=1.0, failed=0.0):
    x = scale * rng.lognormal(5.5, sigma, n)
    out = (rng.random(n) < rho) | (x > CUTOFF)
    status = np.where(out, 2, np.where(rng.random(n) < failed, 1, 0)).astype(np.int8)
    return np.where(out, CUTOFF, x), status


def joined(*parts):
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))


@pytest.mark.parametrize("n", [60, 300, 2000])
@pytest.mark.parametrize("rho", [0.0, 0.2])
def test_false_alarms_are_rare(n, rho):
    rng = np.random.default_rng(n)
    alarms = [bool(find_changes(None, *probes(rng, n, rho=rho), CUTOFF).changes) for _ in range(100)]
    assert np.mean(alarms) <= 0.05


def test_short_dependence_is_no_change():
    rng, alarms = np.random.default_rng(1), 0
    for _ in range(40):
        z = np.empty(2000)
        z[0] = rng.standard_normal()
        for i, e in enumerate(rng.standard_normal(1999) * np.sqrt(1 - 0.7**2)):
            z[i + 1] = 0.7 * z[i] + e
        alarms += bool(find_changes(None, np.exp(5.5 + z), np.zeros(2000, np.int8)).changes)
    assert alarms <= 3


@pytest.mark.parametrize(
    ("kind", "after"),
    [("scale", {"scale": 1.5}), ("shape", {"sigma": 0.6}), ("outliers", {"rho": 0.1}), ("failures", {"failed": 0.1})],
)
def test_what_changed_is_found_when_it_did(kind, after):
    rng = np.random.default_rng(2)
    for _ in range(10):
        found = find_changes(None, *joined(probes(rng, 1000), probes(rng, 1000, **after)), CUTOFF).changes
        nearest = min(found, key=lambda change: abs(change.index - 1000))
        assert abs(nearest.index - 1000) <= 200
        assert nearest.kind == kind
        assert nearest.p_value < 0.01


def test_segments_are_the_cheapest_ones():
    """Dynamic programming against every pair of cuts, on a small table."""
    rng = np.random.default_rng(3)
    table = module._Blocks.of(rng.standard_normal((4, 150)) * [[1], [1], [0], [0]] + (np.arange(150) > 70))
    penalty = table.penalty

    def total(cuts):
        ends = [0, *cuts, table.n]
        return sum(table.costs(a, b).sum() for a, b in pairwise(ends)) + penalty * len(cuts)

    pairs = [(a, b) for a in range(1, table.n) for b in range(a + 1, table.n)]
    every = [(), *((a,) for a in range(1, table.n)), *pairs]
    assert total(table.segments()) <= min(map(total, every)) + 1e-9


def test_censoring_that_changes_is_not_a_change_of_the_law():
    """A client's timeout of 300 s for a while: those attempts say nothing of what lies beyond."""
    rng, alarms = np.random.default_rng(4), 0
    for _ in range(20):
        x, status = probes(rng, 2000)
        cut = (np.arange(2000) > 1000) & (x > 300)
        alarms += bool(
            find_changes(None, np.where(cut, 300.0, x), np.where(cut, 2, status).astype(np.int8), CUTOFF).changes
        )
    assert alarms <= 2


def test_order_is_that_of_submission_and_unknown_times_are_left_out():
    rng = np.random.default_rng(5)
    x, status = joined(probes(rng, 800), probes(rng, 800, scale=4))
    when = np.datetime64("2024-01-01", "us") + np.arange(1600) * np.timedelta64(60, "s")
    mixed = rng.permutation(1600)
    when = when[mixed]
    when[mixed < 100] = np.datetime64("NaT")
    found = find_changes(when, x[mixed], status[mixed], CUTOFF)
    assert found.probes == 1500
    (change,) = found.changes
    assert abs(change.at - (np.datetime64("2024-01-01") + np.timedelta64(800, "m"))) < np.timedelta64(45, "m")
    assert change.median[1] / change.median[0] == pytest.approx(4, rel=0.2)


def times(days, per_day):
    return np.datetime64("2024-01-01", "us") + (np.arange(days * per_day) * (86_400e6 / per_day)).astype(
        "timedelta64[us]"
    )


def test_a_daily_cycle_is_found_and_is_no_change():
    rng, when = np.random.default_rng(6), times(21, 96)
    hour = (when - when.astype("datetime64[D]")) / np.timedelta64(1, "h")
    x = rng.lognormal(5, 0.5, when.size) * np.exp(np.log(3) / 2 * np.sin(hour / 24 * 2 * np.pi))
    found = find_changes(when, x, np.zeros(when.size, np.int8))
    assert found.daily_cycle == pytest.approx(3, rel=0.25)
    assert found.weekly_cycle is None
    assert not found.changes


def test_a_weekly_cycle_is_found():
    rng, when = np.random.default_rng(7), times(10 * 7, 48)
    day = (when.astype("datetime64[D]").astype(int) + 3) % 7
    x = rng.lognormal(5, 0.5, when.size) * np.where(day >= 5, 0.5, 1)
    found = find_changes(when, x, np.zeros(when.size, np.int8))
    assert found.weekly_cycle == pytest.approx(2, rel=0.25)
    assert found.daily_cycle is None


def test_no_cycle_where_days_only_differ():
    rng, alarms, when = np.random.default_rng(8), 0, times(14, 96)
    for _ in range(40):
        levels = np.repeat(rng.normal(0, 0.5, 14 * 4), 24)  # a level for every six hours
        found = find_changes(
            when, np.exp(5 + levels + 0.5 * rng.standard_normal(when.size)), np.zeros(when.size, np.int8)
        )
        alarms += found.daily_cycle is not None
    assert alarms <= 2


@pytest.mark.parametrize("n", [0, 5, 39, 45])
def test_little_or_nothing(n):
    found = find_changes(None, np.ones(n), np.zeros(n, np.int8))
    assert found.changes == ()
    lost = find_changes(None, np.full(n, np.nan), np.full(n, 3, np.int8), 10.0)
    assert lost.changes == ()


def test_the_example_runs():
    assert doctest.testmod(module).failed == 0
