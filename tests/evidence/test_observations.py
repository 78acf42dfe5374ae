"""A log as arrays: statuses read anew, columns as groups, rows in order; expected values by hand."""

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.evidence.observations import (
    Column,
    Observations,
    as_groups,
    evenly,
    explaining,
    group_column,
    group_rows,
    rows_by,
)
from latfit.logs.table import CENSORED, COMPLETED, FAILED, LOST

START = pd.Timestamp("2026-01-05", tz="UTC")


def frame(latency, seconds=None, **columns):
    made = pd.DataFrame({"latency": latency, **columns})
    if seconds is not None:
        made["submitted"] = START + pd.to_timedelta(seconds, unit="s")
    return latfit.from_frame(made)


def seen():
    return Observations(
        latency=np.array([1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0]),
        status=np.array([COMPLETED, CENSORED, CENSORED, COMPLETED, CENSORED, FAILED, LOST]),
    )


def test_statuses_are_read_anew():
    some = seen()
    assert some.failing_at(2.0, 3.0).status.tolist() == [COMPLETED, FAILED, FAILED, COMPLETED, CENSORED, FAILED, LOST]
    assert some.failing_at(2.5, 9.0).status.tolist() == [COMPLETED, CENSORED, FAILED, COMPLETED, FAILED, FAILED, LOST]
    assert some.losing().status.tolist() == [COMPLETED, LOST, LOST, COMPLETED, LOST, FAILED, LOST]
    assert some.cut_at(3.0).status.tolist() == [COMPLETED, CENSORED, CENSORED, CENSORED, CENSORED, FAILED, LOST]
    assert some.with_failed("retry").status.tolist() == some.status.tolist()
    assert some.with_failed("completed").status[5] == COMPLETED
    assert some.with_failed("lost").status[5] == LOST
    assert some.lost.tolist() == [False, True, True, False, True, False, True]
    assert some.times_to_completion().tolist() == [1.0, np.inf, np.inf, 3.0, np.inf, np.inf, np.inf]
    assert some.ranks.tolist() == [1.0, 5.0, 5.0, 2.0, 5.0, 5.0, 5.0]
    assert (some.sample.completed.total, some.sample.failed.total, some.sample.censored.total) == (2, 1, 3)
    assert (some.sample.lost, some.n) == (1, 7)


def test_some_of_the_probes():
    whole = Observations(np.arange(4.0), np.zeros(4, int), np.arange(4.0) * 10,
                         {"site": Column("site", np.array([0, 1, 0, 1]), ("a", "b"))},
                         job=np.array([0, 0, 1, 1]), attempt=np.array([1, 2, 1, 2]))  # fmt: skip
    part = whole.take(np.array([1, 3]))
    assert (part.latency.tolist(), part.submitted.tolist()) == ([1.0, 3.0], [10.0, 30.0])
    assert (part.columns["site"].codes.tolist(), part.job.tolist(), part.attempt.tolist()) == ([1, 1], [0, 1], [2, 2])
    assert whole.thinned() is whole


def test_the_order_of_submission():
    log = frame([1.0, 2.0, 3.0, 4.0], [30.0, np.nan, 10.0, 20.0], site=["a", "b", "a", "b"])
    found = Observations.of(log)
    assert found.latency.tolist() == [3.0, 4.0, 1.0, 2.0]
    assert found.submitted[:3].tolist() == [START.timestamp() + s for s in (10, 20, 30)]
    assert found.columns["site"].codes.tolist() == [0, 1, 0, 1]
    assert group_column(log, "site").tolist() == [0, 1, 0, 1]
    assert group_column(frame([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], site=["b", "b", "a"]), "site").tolist() == [0, 1, 1]
    assert Observations.as_logged(log).latency.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert Observations.as_logged(log, columns=False).columns == {}
    rising = Observations(np.ones(3), np.zeros(3, int), np.arange(3.0))
    assert rising.ordered() is rising
    assert Observations(np.ones(2), np.zeros(2, int), np.full(2, np.nan)).ordered().submitted is None
    assert Observations.of(frame([1.0, 2.0], [5.0, 5.0])).submitted is None  # one moment for all is no time


def test_logs_together():
    first = Observations(np.array([1.0, 2.0]), np.array([0, 1]), np.array([5.0, 6.0]),
                         {"site": Column("site", np.array([1, 0]), ("a", "b")),
                          "kind": Column("kind", np.array([0, 0]), ("x",))},
                         queue=True, resolution=1.0)  # fmt: skip
    second = Observations(np.array([3.0]), np.array([3]), None, {"site": Column("site", np.array([1]), ("c", "a"))},
                          has_outcomes=False, resolution=0.001)  # fmt: skip
    both = Observations.concat([first, second])
    assert both.latency.tolist() == [1.0, 2.0, 3.0]
    assert both.status.tolist() == [0, 1, 3]
    assert both.submitted[:2].tolist() == [5.0, 6.0]
    assert np.isnan(both.submitted[2])
    assert list(both.columns) == ["site"]
    assert [both.columns["site"].labels[code] for code in both.columns["site"].codes] == ["b", "a", "a"]
    assert (both.queue, both.has_outcomes, both.resolution) == (True, False, 0.001)
    assert Observations.concat([second, second]).submitted is None
    assert Observations.concat([first]) is first


def test_rows_by_code():
    assert [rows.tolist() for rows in rows_by(np.array([2, 0, 2, 0, 0]), 4)] == [[1, 3, 4], [], [0, 2], []]
    log = frame([1.0] * 5, site=["b", "a", "b", "a", "c"], kind=["x", "x", "y", "x", "x"])
    keys, rows = group_rows(log, ["site", "kind"])
    assert keys == [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")]
    assert [mine.tolist() for mine in rows] == [[1, 3], [0], [2], [4]]
    keys, rows = group_rows(log, [])
    assert (keys, [mine.tolist() for mine in rows]) == ([()], [[0, 1, 2, 3, 4]])


@pytest.mark.parametrize(("n", "most"), [(10, 10), (11, 10), (1000, 7)])
def test_one_row_of_each_stretch(n, most):
    rows = evenly(n, most)
    edges = [k * n // most for k in range(most + 1)]
    assert rows.size == most
    assert all(a <= row < b for row, a, b in zip(rows.tolist(), edges[:-1], edges[1:], strict=True))
    assert evenly(9, 10).tolist() == list(range(9))


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        (["a", "b", "a", "b", "a"], 2),
        (["a"] * 5, 0),  # constant
        (["a", "b", "c", "a", "a"], 3),  # three values of five rows
        (["a", "b", "c", "d", "a"], 0),  # nearly all different
        ([True, False, True, False, True], 2),
        (pd.to_datetime(["2026-01-01", "2026-01-02"] * 3), 0),
        ([1.5, 2.5, 1.5, 2.5, 2.5], 2),  # few numbers are categories
        ([None, "a", "a", None, "b"], 3),  # what is missing is a group of its own
    ],
)
def test_what_has_groups(values, groups):
    column = as_groups("kind", pd.Series(values))
    assert (len(set(column.codes)) if column else 0) == groups


def test_numbers_are_binned_by_their_quantiles():
    """More than twelve distinct numbers: eight bins of the same size, and one for what is unknown."""
    rng = np.random.default_rng(1)
    numbers = rng.permutation(np.arange(80.0))
    column = as_groups("size", pd.Series(np.append(numbers, [np.nan] * 3)))
    edges = [79 * k / 8 for k in range(1, 8)]
    assert column.codes[:80].tolist() == [sum(edge < value for edge in edges) for value in numbers]
    assert column.labels[:2] == ("… to 9.875", "9.875 to 19.75")
    assert column.labels[column.codes[-1]] == "unknown"
    assert len(column.labels) == 9
    words = as_groups("size", pd.Series([f"{value:g}" for value in numbers]))
    assert words.codes.tolist() == column.codes[:80].tolist()
    twelve = np.repeat(rng.permutation(np.arange(12.0)), 5)
    assert len(as_groups("size", pd.Series(twelve)).labels) == 12
    thirteen = np.repeat(rng.permutation(np.arange(13.0)), 5)
    assert len(as_groups("size", pd.Series(thirteen)).labels) < 12
    assert len(as_groups("name", pd.Series(thirteen)).labels) == 13  # what was asked for keeps its values


def test_a_word_among_the_numbers_makes_them_categories():
    numbers = np.random.default_rng(1).permutation(np.repeat(np.arange(40), 2))
    words = pd.Series([*map(str, numbers), "big"])
    assert set(as_groups("size", words).labels) == {*map(str, range(40)), "big"}


def test_a_counter_tells_the_time_and_no_group():
    rng = np.random.default_rng(2)
    assert as_groups("serial", pd.Series(np.arange(200.0))) is None
    assert as_groups("serial", pd.Series(np.arange(200.0)[::-1])) is None
    assert as_groups("serial", pd.Series(np.arange(200.0) + rng.normal(0, 100, 200))) is not None


def test_a_column_of_text_and_categories_alike():
    text = pd.Series(["b", "a", None, "b"])
    plain, made = as_groups("kind", pd.Series([*text, "a", "a"])), pd.Series([*text, "a", "a"], dtype="category")
    made = as_groups("kind", made.cat.add_categories(["zz"]))
    for column in (plain, made):
        assert [column.labels[code] for code in column.codes] == ["b", "a", "unknown", "b", "a", "a"]
        assert column.labels == ("a", "b", "unknown")


def test_what_the_same_request_brings_again_explains_the_completed():
    """Sizes and the log's own words: those of what did not complete are dealt out."""
    status = pd.Categorical(["completed"] * 8 + ["failed", "censored"])
    sizes = [5, 900] * 4 + [0, 0]
    table = pd.DataFrame({"bytes": sizes, "log_status": ["200", "404"] * 4 + [None, None], "status": status})
    for name, column in explaining(table).items():
        assert {column.labels[code] for code in column.codes} == {str(value) for value in table[name][:2]}, name


def test_names_with_ids_of_their_own_are_alike_without_them():
    paths = [f"/report/{k}" if k % 3 else f"/users/{k}?page={k}" for k in range(100, 160)]
    for values in (paths, [f"a3{k}ff00-11d3-9a0c {path.split('/')[1]}" for k, path in enumerate(paths)]):
        column = as_groups("path", pd.Series(values))
        assert len(column.labels) == 2
        assert [column.codes[k] == column.codes[1] for k in range(60)] == [path.startswith("/report") for path in paths]
    assert as_groups("id", pd.Series([f"req-{k}" for k in range(60)])) is None
    clocks = [f"01/17/2026 {k % 12 + 1:02d}:{k % 60:02d}:19 {'AM' if k < 40 else 'PM'}" for k in range(60)]
    assert as_groups("local_time", pd.Series(clocks)) is None


def test_what_is_known_only_afterwards_explains_nothing():
    names = ["site", "endpoint", "status_code", "elapsed_ms", "resultCode", "sent_at", "zone", "request"]
    table = pd.DataFrame({name: ["a", "b"] * 5 for name in names})
    assert list(explaining(table)) == ["site", "endpoint", "zone", "request"]
    many = pd.DataFrame({f"c{k}": ["a", "b"] * 5 for k in range(50)})
    assert list(explaining(many)) == [f"c{k}" for k in range(40)]
    odd = pd.DataFrame({f"c{k}": (["a"] if k < 160 else ["a", "b"]) * (10 if k < 160 else 5) for k in range(162)})
    assert explaining(odd) == {}
    assert list(explaining(odd.iloc[:, 1:])) == ["c160"]


def test_one_word_of_an_outcome_among_the_groups_is_enough():
    table = pd.DataFrame({name: ["fine", "time_out", "slow"] * 4 for name in ("kind", "endpoint")})
    assert list(explaining(table)) == ["endpoint"]  # a name that somebody gave may be any word
    assert list(explaining(table.replace("time_out", "small"))) == ["kind", "endpoint"]
