"""The worlds that a log supports, and the schedules that follow."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.decision.schedule import Strata, choose_schedules
from latfit.evidence.probes import probes_of
from latfit.evidence.worlds import World, choose_columns, find_worlds, ranks, survey
from latfit.table import COMPLETED, LOST, ProbeTable


def strata_of(x, worlds, cutoff=1000.0):
    return Strata.of(np.minimum(x, cutoff), np.where(x <= cutoff, 0, 3), cutoff, worlds)


def choose(strata, risk=0.3, **options):
    (choice,) = choose_schedules([replace(strata, **options)], risk=risk)
    return choice


def ranks_of(x):
    """The ranks of latencies, ∞ for what did not complete."""
    done = np.isfinite(x)
    return ranks(ProbeTable(x, np.where(done, COMPLETED, LOST)), done, np.zeros(x.size, dtype=bool))


def decide(x, columns=None, submitted=None, job=None, **options):
    rank = ranks_of(x)
    worlds = find_worlds(rank, columns or {}, job=job, submitted=submitted)
    return choose(strata_of(x, worlds), **options), worlds


def test_false_alarms_are_rare_whatever_the_number_of_cells():
    rng = np.random.default_rng(0)
    alarms = dict.fromkeys((2, 5, 40, 150), 0)
    for _ in range(300):
        rank = ranks_of(rng.random(300))
        for cells in alarms:
            alarms[cells] += bool(find_worlds(rank, {"c": rng.integers(0, cells, 300)}))
    assert all(count <= 14 for count in alarms.values()), alarms  # 2 tests at 0.6 %: 3.7 expected


def test_false_alarms_in_time_are_rare():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        rank = ranks_of(rng.random(400))
        alarms += bool(find_worlds(rank, {}, submitted=np.sort(rng.uniform(0, 4000, 400))))
    assert alarms <= 30  # 9 tests at about 0.6 to 1.5 %


@pytest.mark.parametrize("n", [400, 1500])
def test_pure_interaction_is_a_pair_and_waits(n):
    rng = np.random.default_rng(n)
    method, path = rng.integers(0, 2, n), rng.integers(0, 2, n)
    x = rng.lognormal(0, 0.5, n) * np.where((method + path) % 2, 20.0, 1.0)
    choice, worlds = decide(x, {"method": method, "path": path})
    assert any(world.kind == "pair" for world in worlds)
    assert choice is not None
    assert choice.retry is None
    assert "×" in choice.binding


def test_rare_slow_cell_binds():
    rng = np.random.default_rng(2)
    path = np.where(rng.random(2000) < 0.01, 19, rng.integers(0, 19, 2000))
    x = rng.lognormal(0, 0.6, 2000) * np.where(path == 19, 100.0, 1.0)
    choice, worlds = decide(x, {"path": path})
    cells = [world for world in worlds if world.kind == "cell"]
    assert [world.name for world in cells] == ["path=19"]
    assert choice is not None
    assert choice.retry is None or choice.ratios[1 + worlds.index(cells[0])] < 1


def test_many_small_cells_count_although_each_has_few_probes():
    rng = np.random.default_rng(3)
    path = rng.integers(0, 90, 120)
    x = rng.lognormal(0, 0.5, 120) * np.exp(rng.standard_normal(90))[path]
    choice, worlds = decide(x, {"path": path})
    assert any(world.shared > 0.4 for world in worlds)
    assert choice is not None
    assert choice.retry is None


def test_slow_hours_are_a_world_of_time_and_wait():
    rng = np.random.default_rng(4)
    when = np.sort(rng.uniform(0, 40_000, 800))
    x = rng.lognormal(0, 0.5, 800) * np.where((when // 2000) % 8 == 3, 30.0, 1.0)
    choice, worlds = decide(x, submitted=when)
    assert {"time", "spell"} <= {world.kind for world in worlds}
    assert choice is not None
    assert choice.retry is None


def test_sticky_jobs_are_a_world():
    rng = np.random.default_rng(5)
    job = rng.integers(0, 100, 400)
    x = rng.lognormal(0, 0.5, 400) * np.exp(rng.standard_normal(100))[job]
    choice, worlds = decide(x, job=job)
    assert [world.kind for world in worlds] == ["job"]
    assert choice is not None
    assert choice.retry is None


def test_shares_of_slow_answers_differ_and_cancelling_still_helps():
    rng = np.random.default_rng(6)
    path = rng.integers(0, 40, 1500)
    slow = rng.random(1500) < rng.uniform(0, 0.39, 40)[path]
    choice, _ = decide(rng.lognormal(0, 0.4, 1500) * np.where(slow, 20.0, 1.0), {"path": path})
    assert choice is not None
    assert choice.retry is not None
    assert max(choice.ratios) < 0.6


def test_a_world_of_identical_strata_is_the_independent_world():
    rng = np.random.default_rng(7)
    x = np.repeat(rng.lognormal(0, 1.2, 200), 2)
    world = World("halves", "column", np.tile([0, 1], 200), 9.0)
    choice = choose(strata_of(x, [world]))
    assert choice is not None
    assert choice.ratios[1] == pytest.approx(choice.ratios[0])


def test_single_attempts_as_strata_are_the_worst_case():
    """If every attempt is its own stratum, E_w is the duration with identical retries, but for the shrinkage."""
    rng = np.random.default_rng(8)
    x = np.repeat(rng.lognormal(0, 1.0, 60), 50)
    world = World("same", "column", np.repeat(np.arange(60), 50), 9.0)
    choice = choose(strata_of(x, [world]), suspicion=0.0)
    assert choice is not None
    assert choice.ratios[1] == pytest.approx(1 + choice.judged.worst_loss, rel=0.03)


def test_only_columns_that_are_the_latency_or_the_outcome_are_left_out():
    rng = np.random.default_rng(9)
    n = 500
    latency, size = rng.lognormal(0, 1, n), rng.lognormal(0, 1, n)
    failed, words = rng.random(n) < 0.1, rng.integers(0, 2, n)

    def in_eighths(values):
        return np.searchsorted(np.quantile(values, np.arange(1, 8) / 8), values)

    columns = {
        "elapsed_ms": in_eighths(1000 * latency),
        "size": in_eighths(size),
        "code": np.where(failed, rng.integers(1, 4, n), 0),
        "message": np.where(failed, rng.integers(2, 5, n), words),
        "path": rng.integers(0, 5, n),
        "id": np.arange(n),
        "version": np.zeros(n, dtype=np.int64),
    }
    used, left_out = choose_columns(columns, ranks_of(latency), ~failed, words)
    assert set(used) == {"size", "path"}
    assert left_out == {
        "elapsed_ms": "is the latency",
        "code": "is the outcome",
        "message": "is the outcome",
        "id": "differs in every row",
        "version": "has one value",
    }


@pytest.mark.parametrize("column", ["err", "path"])
def test_an_error_column_is_an_outcome_and_an_endpoint_is_not(column, tmp_path):
    """Of 1000 requests 10 % fail at once and 2 % hang for 30 s: `err="timeout"` says the same as their code, 504."""
    rng = np.random.default_rng(10)
    kinds = rng.choice([200, 503, 504], 1000, p=[0.88, 0.1, 0.02])
    spent = np.select([kinds == 503, kinds == 504], [4.0, 30_000.0], np.round(80 * rng.lognormal(0, 0.4, 1000), 1))
    rows = [f"status={kind} duration={ms}ms" for kind, ms in zip(kinds, spent, strict=True)]
    plain, named = tmp_path / "plain", tmp_path / "named"
    plain.write_text("\n".join(rows))
    named.write_text("\n".join(row + f' {column}="timeout"' * ("=504" in row) for row in rows))
    surveys = [survey(probes_of(latfit.read_log(path, format="logfmt"))) for path in (plain, named)]
    assert surveys[0].worlds == []
    if column == "err":
        assert surveys[1].worlds == []
        assert surveys[1].left_out[column] == "is the outcome"
    else:
        assert {world.name for world in surveys[1].worlds} == {"path", "path=timeout"}


def test_a_file_sorted_by_latency_has_no_neighbours_in_time():
    rank = ranks_of(np.sort(np.random.default_rng(0).random(300)))
    assert find_worlds(rank, {}, in_file_order=True) == []


def test_one_slow_attempt_in_a_small_cell_proves_no_gain():
    """Cancelling at 45 s would help one attempt of 400; in the system itself the cell never ends sooner."""
    rng = np.random.default_rng(3)
    x = rng.lognormal(0, 0.6, 400)
    path = rng.integers(1, 20, 400)
    path[:4], x[:4] = 0, [38.0, 38.0, 45.0, 222.0]
    choice, _ = decide(x, {"path": path})
    assert choice is not None
    assert choice.retry is None or max(choice.retry.timeouts) < 38


def test_names_that_mostly_occur_once_are_still_a_column():
    """3000 pages with fixed latencies: 400 rows contain 26 pairs of the same page, which is enough."""
    rng = np.random.default_rng(4)
    page = rng.integers(0, 3000, 400)
    latency = np.exp(rng.standard_normal(3000))[page] * rng.lognormal(0, 0.3, 400)
    when = pd.Timestamp("2026-01-05", tz="UTC") + pd.to_timedelta(10 * np.arange(400), unit="s")
    frame = pd.DataFrame({"latency": latency, "submitted": when, "path": np.char.add("/", page.astype(str))})
    result = latfit.analyze(latfit.from_frame(frame), resamples=0, test=False, laws=())
    assert result.timeout.retry is None
    assert result.decision.evidence.binding == "path"


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 17])
def test_logs_of_a_few_attempts_have_no_neighbours(n):
    rank = np.random.default_rng(n).permutation(n) / n
    assert all(world.strata.size == n for world in find_worlds(rank, {}, submitted=np.arange(n) * 1.0))
