"""Change points and cycles: found if there are any, and not otherwise."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

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


def test_short_range_dependence_is_not_a_change():
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
def test_a_change_is_found_at_its_time(kind, after):
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
    table = module._Blocks.of(rng.standard_normal((4, 150)) * [[1], [1], [0], [0]] + (np.arange(150) > 70), 12)

    def total(cuts):
        ends = [0, *cuts, table.n]
        return sum(table.costs(a, b).sum() for a, b in pairwise(ends)) + table.penalty * len(cuts)

    pairs = [(a, b) for a in range(1, table.n) for b in range(a + 1, table.n)]
    every = [(), *((a,) for a in range(1, table.n)), *pairs]
    assert total(table.cuts()) <= min(map(total, every)) + 1e-9


def test_censoring_that_changes_is_not_a_change_of_the_law():
    """A client's timeout of 300 s for a while: those attempts show nothing beyond it."""
    rng, alarms = np.random.default_rng(4), 0
    for _ in range(20):
        x, status = probes(rng, 2000)
        cut = (np.arange(2000) > 1000) & (x > 300)
        alarms += bool(
            find_changes(None, np.where(cut, 300.0, x), np.where(cut, 2, status).astype(np.int8), CUTOFF).changes
        )
    assert alarms <= 2


def test_probes_are_ordered_by_submission_and_unknown_times_are_left_out():
    rng = np.random.default_rng(5)
    x, status = joined(probes(rng, 800), probes(rng, 800, scale=4))
    when = np.datetime64("2024-01-01", "us") + np.arange(1600) * np.timedelta64(60, "s")
    mixed = rng.permutation(1600)
    when = when[mixed]
    when[mixed < 100] = np.datetime64("NaT")
    found = find_changes(since_1970(when), x[mixed], status[mixed], CUTOFF)
    assert found.probes == 1500
    (change,) = found.changes
    assert abs(change.at - (np.datetime64("2024-01-01") + np.timedelta64(800, "m"))) < np.timedelta64(45, "m")
    assert change.median[1] / change.median[0] == pytest.approx(4, rel=0.2)


def since_1970(when):
    return (when - np.datetime64(0, "us")) / np.timedelta64(1, "s")


def times(days, per_day):
    return np.datetime64("2024-01-01", "us") + (np.arange(days * per_day) * (86_400e6 / per_day)).astype(
        "timedelta64[us]"
    )


def test_a_daily_cycle_is_found_and_is_not_a_change():
    rng, when = np.random.default_rng(6), times(21, 96)
    hour = (when - when.astype("datetime64[D]")) / np.timedelta64(1, "h")
    x = rng.lognormal(5, 0.5, when.size) * np.exp(np.log(3) / 2 * np.sin(hour / 24 * 2 * np.pi))
    found = find_changes(since_1970(when), x, np.zeros(when.size, np.int8))
    assert found.daily_cycle == pytest.approx(3, rel=0.25)
    assert found.weekly_cycle is None
    assert not found.changes


def test_a_weekly_cycle_is_found():
    rng, when = np.random.default_rng(7), times(10 * 7, 48)
    day = (when.astype("datetime64[D]").astype(int) + 3) % 7
    x = rng.lognormal(5, 0.5, when.size) * np.where(day >= 5, 0.5, 1)
    found = find_changes(since_1970(when), x, np.zeros(when.size, np.int8))
    assert found.weekly_cycle == pytest.approx(2, rel=0.25)
    assert found.daily_cycle is None


def test_days_that_merely_differ_are_not_a_cycle():
    rng, alarms, when = np.random.default_rng(8), 0, times(14, 96)
    for _ in range(40):
        levels = np.repeat(rng.normal(0, 0.5, 14 * 4), 24)  # a level for every six hours
        found = find_changes(
            since_1970(when), np.exp(5 + levels + 0.5 * rng.standard_normal(when.size)), np.zeros(when.size, np.int8)
        )
        alarms += found.daily_cycle is not None
    assert alarms <= 2


@pytest.mark.parametrize("n", [0, 5, 39, 45])
def test_few_probes_or_none_have_no_changes(n):
    found = find_changes(None, np.ones(n), np.zeros(n, np.int8))
    assert found.changes == ()
    lost = find_changes(None, np.full(n, np.nan), np.full(n, 3, np.int8), 10.0)
    assert lost.changes == ()


@pytest.mark.parametrize(("n", "runs"), [(150, 1), (150, 12), (90, 1), (900, 25)])
def test_costs_by_loops(n, runs):
    """Sums over noise for scale and shape, binomial deviances over their dispersion for outliers and failures."""
    rng = np.random.default_rng(n + runs)
    scores = rng.normal(0, [[1.0], [3.0], [0], [0]], (4, n)).cumsum(axis=1) * 0.3 + rng.normal(size=(4, n))
    scores[2] = np.repeat(rng.random(n) < 0.3, runs)[:n]
    scores[3] = rng.random(n) < 0.2
    blocks = n // max(5, int(n**0.5))
    table = module._Blocks.of(scores, blocks)
    starts = [round(k * n / blocks) for k in range(blocks + 1)]
    assert table.n == blocks
    assert table.edges.tolist() == starts
    noise = []
    for row in scores.tolist():
        means = [sum(row[a:b]) / (b - a) for a, b in pairwise(starts)]
        tried = [sum((b - a) ** 2 for a, b in pairwise(row)) / (n - 1) / 2]
        for lag in (1, 2, 4):
            apart = [(b - a) ** 2 for a, b in zip(means, means[lag:], strict=False)]
            tried += [n / blocks * sum(apart) / len(apart) / 2] if blocks > 4 * lag else []
        noise.append(max(tried))
    dispersion = [max(1.0, v / (row.mean() * (1 - row.mean()))) for v, row in zip(noise[2:], scores[2:], strict=True)]
    assert runs == 1 or dispersion[0] > 1.5
    for first, last in ((0, blocks), (1, 4), (blocks - 1, blocks)):
        part = scores[:, starts[first] : starts[last]]
        size = part.shape[1]
        want = [-(part[k].sum() ** 2) / size / noise[k] for k in (0, 1)]
        for hits, spread in zip(part[2:].mean(axis=1), dispersion, strict=True):
            want.append(2 * size * stats.entropy([hits, 1 - hits]) / spread)
        assert table.costs(first, last) == pytest.approx(want, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("outliers", "failures", "d"), [(0, 0, 2), (1, 0, 3), (1, 1, 4)])
@pytest.mark.parametrize("n", [45, 2000])
def test_what_a_change_costs(n, outliers, failures, d):
    """2d + 3.5 ln(blocks), and no less than what is significant at 1 % over all blocks."""
    scores = np.random.default_rng(1).normal(size=(4, n))
    scores[2], scores[3] = outliers * (np.arange(n) % 9 == 0), failures * (np.arange(n) % 7 == 0)
    blocks = n // max(5, int(n**0.5))
    least = stats.chi2.isf(0.01 / blocks, d)
    assert module._Blocks.of(scores, blocks).penalty == pytest.approx(max(2 * d + 3.5 * np.log(blocks), least))


def test_a_change_is_described():
    """Medians of what completed, shares of what did not; the chance of so large a change by the chi-squared law."""
    rng = np.random.default_rng(12)
    x, status = joined(probes(rng, 600, rho=0.05), probes(rng, 900, rho=0.05, scale=3, failed=0.02))
    found = find_changes(None, x, status, CUTOFF)
    (change,) = found.changes
    assert (found.probes, found.blocks, change.kind, change.at) == (1500, 1500 // 38, "scale", None)
    assert change.index == pytest.approx(600, abs=40)
    for side, median, ratio in zip((slice(0, change.index), slice(change.index, 1500)), change.median, change.ratio,
                                   strict=True):  # fmt: skip
        assert median == np.median(x[side][status[side] == 0])
        assert ratio == pytest.approx(np.mean(status[side] != 0))
    assert 0 < change.p_value < 1e-20


@pytest.mark.parametrize("zeros", [0, 40])
def test_a_change_is_found_beside_a_daily_cycle(zeros):
    """Three times slower at noon, and twice as slow from the eleventh day on; some latencies below the clock's step."""
    rng, when = np.random.default_rng(13), times(21, 96)
    hour = (when - when.astype("datetime64[D]")) / np.timedelta64(1, "h")
    x = rng.lognormal(5, 0.3, when.size) * np.exp(np.log(3) / 2 * np.sin(hour / 24 * 2 * np.pi))
    x[960:] *= 2
    x[rng.choice(when.size, zeros, replace=False)] = 0.0
    found = find_changes(since_1970(when), x, np.zeros(when.size, np.int8))
    (change,) = found.changes
    assert change.kind == "scale"
    assert abs(change.index - 960) <= 45
    assert change.at == when[change.index]
    assert found.daily_cycle == pytest.approx(3, rel=0.25)
    assert found.to_dict()["changes"][0]["at"] == str(when[change.index].astype("datetime64[s]")) + "Z"


def test_simultaneous_probes_have_no_cycle():
    when = times(21, 96)
    assert find_changes(since_1970(when), np.zeros(when.size), np.zeros(when.size, np.int8), 1.0).daily_cycle is None


def test_at_least_forty_probes_and_ten_completions_are_needed():
    x, done = np.random.default_rng(14).lognormal(0, 1, 60), np.zeros(60, np.int8)
    assert [find_changes(None, x[:n], done[:n]).blocks for n in (39, 40)] == [0, 6]
    for completed, blocks in ((9, 0), (10, 8)):
        status = np.where(np.arange(60) % 6 == 0, 0, 1).astype(np.int8)
        status[np.flatnonzero(status == 0)[completed:]] = 1
        assert find_changes(None, x, status).blocks == blocks
