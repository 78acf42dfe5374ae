"""A log as arrays: reinterpreted statuses, columns as groups, rows in order; expected values by hand."""

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.evidence.probes import as_groups, as_logged, evenly, group_column, probes_of
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, Column, Groups, LogFacts, ProbeTable

START = pd.Timestamp("2026-01-05", tz="UTC")


def frame(latency, seconds=None, **columns):
    made = pd.DataFrame({"latency": latency, **columns})
    if seconds is not None:
        made["submitted"] = START + pd.to_timedelta(seconds, unit="s")
    return latfit.from_frame(made, unit="s")


def seen():
    return ProbeTable(
        latency=np.array([1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 5.0]),
        status=np.array([COMPLETED, CENSORED, CENSORED, COMPLETED, CENSORED, FAILED, LOST]),
    )


def groups_of(name, values):
    return as_groups(Column.of(name, pd.Series(values)))


def table_of(frame, status=COMPLETED):
    columns = {name: Column.of(name, frame[name]) for name in frame}
    return ProbeTable(np.ones(len(frame)), np.broadcast_to(status, len(frame)), columns=columns)


def test_statuses_can_be_reinterpreted():
    some = seen()
    assert some.with_status(some.latency < 3, LOST).status.tolist() == [3, 3, 2, 0, 2, 1, 3]
    assert some.with_failed("retry").status.tolist() == some.status.tolist()
    assert some.with_failed("completed").status[5] == COMPLETED
    assert some.with_failed("lost").status[5] == LOST
    assert some.lost.tolist() == [False, True, True, False, True, False, True]
    assert some.ranks.tolist() == [1.0, 5.0, 5.0, 2.0, 5.0, 5.0, 5.0]
    assert (some.sample.completed.total, some.sample.failed.total, some.sample.censored.total) == (2, 1, 3)
    assert (some.sample.lost, some.n) == (1, 7)


def test_some_of_the_probes():
    whole = ProbeTable(np.arange(4.0), np.zeros(4, int), np.arange(4.0) * 10,
                         {"site": Column("site", np.array([0, 1, 0, 1]), pd.Index(["a", "b"]))},
                         job=np.array([0, 0, 1, 1]), attempt=np.array([1, 2, 1, 2]))  # fmt: skip
    part = whole.take(np.array([1, 3]))
    assert (part.latency.tolist(), part.submitted.tolist()) == ([1.0, 3.0], [10.0, 30.0])
    assert (part.columns["site"].codes.tolist(), part.job.tolist(), part.attempt.tolist()) == ([1, 1], [0, 1], [2, 2])
    assert whole.take(slice(2)).latency.base is whole.latency


def test_the_order_of_submission():
    log = frame([1.0, 2.0, 3.0, 4.0], [30.0, np.nan, 10.0, 20.0], site=["a", "b", "a", "b"])
    found = probes_of(log)
    assert found.latency.tolist() == [3.0, 4.0, 1.0, 2.0]
    assert found.submitted[:3].tolist() == [START.timestamp() + s for s in (10, 20, 30)]
    assert found.columns["site"].codes.tolist() == [0, 1, 0, 1]
    assert group_column(log, "site").tolist() == [0, 1, 0, 1]
    assert group_column(frame([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], site=["b", "b", "a"]), "site").tolist() == [0, 1, 1]
    assert as_logged(log).latency.tolist() == [1.0, 2.0, 3.0, 4.0]
    rising = ProbeTable(np.ones(3), np.zeros(3, int), np.arange(3.0))
    assert rising.ordered() is rising
    assert ProbeTable(np.ones(2), np.zeros(2, int), np.full(2, np.nan)).ordered().submitted is None
    assert probes_of(frame([1.0, 2.0], [5.0, 5.0])).submitted is None  # one moment for all is no time


def test_tables_of_several_logs_can_be_joined():
    first = ProbeTable(np.array([1.0, 2.0]), np.array([0, 1]), np.array([5.0, 6.0]),
                         {"site": Column("site", np.array([1, 0]), pd.Index(["a", "b"])),
                          "kind": Column("kind", np.array([0, 0]), pd.Index(["x"]))},
                         facts=LogFacts("a", "csv", queue=True), clock=1.0)  # fmt: skip
    third = Column("site", np.array([1]), pd.Index(["c", "a"]))
    second = ProbeTable(np.array([3.0]), np.array([3]), None, {"site": third},
                          facts=LogFacts("b", "csv", has_outcomes=False), clock=0.001)  # fmt: skip
    both = ProbeTable.concat([first, second])
    assert both.latency.tolist() == [1.0, 2.0, 3.0]
    assert both.status.tolist() == [0, 1, 3]
    assert both.submitted[:2].tolist() == [5.0, 6.0]
    assert np.isnan(both.submitted[2])
    site = both.columns["site"].distinct()
    assert (site.labels.tolist(), site.codes.tolist()) == (["a", "b", "c"], [1, 0, 0])
    assert both.columns["kind"].cells().isna().tolist() == [False, False, True]
    assert (both.facts.queue, both.facts.has_outcomes, both.facts.path, both.resolution) == (True, False, "a, b", 0.001)
    assert ProbeTable.concat([second, second]).submitted is None
    assert ProbeTable.concat([first]) is first


def test_groups_are_offsets():
    groups = Groups.of_codes(np.array([2, 0, 2, 0, 0]), [("a",), ("b",), ("c",), ("d",)])
    assert [rows.tolist() for rows in groups] == [[1, 3, 4], [], [0, 2], []]
    table = frame([1.0, 2.0, 3.0, 4.0, 5.0], site=["b", "a", "b", "a", "c"], kind=["x", "x", "y", "x", "x"]).table
    groups = table.group_by(["site", "kind"])
    assert groups.keys == [("a", "x"), ("b", "x"), ("b", "y"), ("c", "x")]
    assert [rows.tolist() for rows in groups] == [[1, 3], [0], [2], [4]]
    assert [part.latency.tolist() for part in table.parts(groups)] == [[2, 4], [1], [3], [5]]
    groups = table.group_by([])
    assert (groups.keys, [rows.tolist() for rows in groups]) == ([()], [[0, 1, 2, 3, 4]])


@pytest.mark.parametrize(("n", "most"), [(10, 10), (11, 10), (1000, 7)])
def test_rows_are_drawn_evenly_from_a_long_log(n, most):
    rows = evenly(n, most)
    edges = [k * n // most for k in range(most + 1)]
    assert rows.size == most
    assert all(a <= row < b for row, a, b in zip(rows.tolist(), edges[:-1], edges[1:], strict=True))
    assert evenly(9, 10).tolist() == list(range(9))


def test_a_word_among_the_numbers_makes_them_categories():
    numbers = np.random.default_rng(1).permutation(np.repeat(np.arange(40), 2))
    words = pd.Series([*map(str, numbers), "big"])
    assert set(groups_of("size", words).labels) == {*map(str, range(40)), "big"}


def test_a_counter_is_not_a_group():
    rng = np.random.default_rng(2)
    assert groups_of("serial", pd.Series(np.arange(200.0))) is None
    assert groups_of("serial", pd.Series(np.arange(200.0)[::-1])) is None
    assert groups_of("serial", pd.Series(np.arange(200.0) + rng.normal(0, 100, 200))) is not None


def test_text_and_categorical_columns_are_treated_alike():
    text = pd.Series(["b", "a", None, "b"])
    plain, made = groups_of("kind", pd.Series([*text, "a", "a"])), pd.Series([*text, "a", "a"], dtype="category")
    made = groups_of("kind", made.cat.add_categories(["zz"]))
    for column in (plain, made):
        assert [column.labels[code] for code in column.codes] == ["b", "a", "unknown", "b", "a", "a"]
        assert column.labels.tolist() == ["a", "b", "unknown"]


def test_names_with_embedded_ids_are_merged():
    paths = [f"/report/{k}" if k % 3 else f"/users/{k}?page={k}" for k in range(100, 160)]
    for values in (paths, [f"a3{k}ff00-11d3-9a0c {path.split('/')[1]}" for k, path in enumerate(paths)]):
        column = groups_of("path", pd.Series(values))
        assert len(column.labels) == 2
        assert [column.codes[k] == column.codes[1] for k in range(60)] == [path.startswith("/report") for path in paths]
    assert groups_of("id", pd.Series([f"req-{k}" for k in range(60)])) is None
    clocks = [f"01/17/2026 {k % 12 + 1:02d}:{k % 60:02d}:19 {'AM' if k < 40 else 'PM'}" for k in range(60)]
    assert groups_of("local_time", pd.Series(clocks)) is None


@pytest.mark.parametrize(
    ("start", "seconds", "text"),
    [
        ("2026-01-05T09:00:00", 3000, "50 minutes on a Monday morning (UTC)"),
        ("2026-01-05T09:00:00", 5 * 3600, "5 hours on a Monday (UTC)"),
        ("2026-01-05T23:59:00", 90, "90 seconds from a Monday to a Tuesday (UTC)"),
        ("1970-01-01T00:00:00", 86400 * 40, "40 days"),
    ],
)
def test_the_period_of_a_log_in_words(start, seconds, text):
    when = pd.Timestamp(start, tz="UTC") + pd.to_timedelta(np.linspace(0, seconds, 60), unit="s")
    log = latfit.from_frame(pd.DataFrame({"submitted": when, "latency": np.arange(60) + 1.0}))
    assert latfit.analyze(log, resamples=0, test=False, laws=()).to_dict()["log"]["period"]["text"] == text


def test_times_that_count_from_zero_have_a_length_only():
    table = pd.DataFrame({"submitted": np.arange(60.0), "latency": np.arange(60) + 1.0, "status": "completed"})
    log = latfit.from_frame(table)
    period = latfit.analyze(log, resamples=0, test=False, laws=()).to_dict()["log"]["period"]
    assert period == {"start": None, "end": None, "text": "59 seconds"}


def test_a_list_of_numbers_has_no_period():
    assert latfit.analyze(np.arange(60) + 1.0, resamples=0, test=False, laws=()).to_dict()["log"]["period"] is None


def test_paths_that_repeat_stay_apart_and_ids_are_merged():
    n = 60
    paths = [f"/{at % 3}" for at in range(n)]
    log = frame(np.arange(n) + 1.5, path=paths, link=[f"/users/{at}/x?page={at}" for at in range(n)])
    assert list(probes_of(log).columns["path"].labels) == ["/0", "/1", "/2"]
    assert log.table.group_by(["path"]).keys == [("/0",), ("/1",), ("/2",)]
    assert log.table.group_by(["link"]).keys == [("/users/*/x",)]
