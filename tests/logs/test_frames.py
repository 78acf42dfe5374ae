"""Data frames, arrays and series where a log or a sample is wanted."""

import importlib
import importlib.metadata

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import latfit
import latfit.logs
from conftest import EGEE
from latfit.cli import main
from latfit.errors import LogError, MissingColumn, SampleError, TooManyRefused
from latfit.sample import LatencySample


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "t": pd.to_datetime(["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]),
            "rtt": [250, 500, 100, 9000],
            "ok": [True, True, False, True],
            "site": ["a", "b", "a", "b"],
        },
        index=[7, 7, 8, 9],
    )


def test_a_frame_is_read_as_a_file_would_be(frame):
    log = latfit.from_frame(frame, latency="rtt", unit="ms", status="ok", submitted="t")
    assert list(log.counts.values()) == [3, 1, 0, 0]
    assert log.frame["latency"].tolist() == [0.25, 0.5, 0.1, 9]
    assert log.frame["submitted"].dt.day.tolist() == [1, 2, 3, 4]
    assert set(log.samples("site")) == {("a",), ("b",)}
    chosen = latfit.from_frame(frame, latency="rtt", unit="ms", where=["site=a"], submitted="t", since="2026-03-02")
    assert chosen.frame["latency"].tolist() == [0.1]


def test_the_bundled_log_by_way_of_pandas():
    log = latfit.from_frame(pd.read_csv(EGEE))
    assert log.sample() == latfit.example_log().sample()
    assert latfit.from_frame(latfit.example_log().to_frame()).sample() == log.sample()


def test_bad_frames(frame):
    with pytest.raises(MissingColumn, match=r"no column looks like a latency.*there are: x"):
        latfit.from_frame(pd.DataFrame({"x": [1.5, 2.5]}))
    with pytest.raises(TooManyRefused, match="negative latency"):
        latfit.from_frame(pd.DataFrame({"latency": [-1, -2, 3]}))
    with pytest.raises(LogError, match="two columns have the same name"):
        latfit.from_frame(pd.DataFrame([[1, 2]], columns=["latency", "latency"]))
    with pytest.raises(LogError, match="needs a pandas DataFrame, not list"):
        latfit.from_frame([1, 2])
    for data in (frame, frame["rtt"], np.array([1.0])):
        with pytest.raises(LogError, match=r"use latfit\.from_frame"):
            latfit.read_log(data)
    with pytest.raises(LogError, match="no row"):
        latfit.from_frame(frame.iloc[:0], latency="rtt")


@pytest.mark.parametrize(
    "data",
    [
        [1.0, 2.0, 2.0], np.array([1, 2, 2]), pd.Series([2.0, 1.0, 2.0]), (1, 2, 2),
        pd.Series(pd.to_timedelta([1, 2, 2], unit="s")), LatencySample.of([1, 2, 2]),
        pd.DataFrame({"rtt_s": [1, 2, 2]}), pd.Series([1, 2, 2], dtype="Float64"),
    ],
)  # fmt: skip
def test_any_container_of_latencies_is_a_sample(data):
    sample = latfit.as_sample(data)
    assert sample.completed.expand().tolist() == [1, 2, 2]
    assert latfit.as_sample(sample) is sample
    if not isinstance(data, LatencySample):
        assert latfit.as_log(data).sample() == sample


def test_a_log_and_a_sampled_log():
    log = latfit.example_log()
    assert latfit.as_log(log) is log
    assert latfit.as_sample(log) == log.sample()
    with pytest.raises(SampleError, match="has counts and no rows"):
        latfit.as_log(log.sample())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([1.0, np.nan, 3.0], r"1 of 3 latencies .*at 1: nan.*lost"),
        ([1.0, -3.0], "negative"),
        ([1.0, np.inf], "infinite"),
        ("probes.csv", r"read a file with latfit\.read_log"),
        (EGEE, r"read a file with latfit\.read_log"),
        (["a", "b"], "must be numbers in seconds"),
        ([[1.0, 2.0]], r"the shape \(1, 2\)"),
        (None, "must be"),
        ({"a": 1}, "must be"),
        (pd.Series([1, None], dtype="Float64"), "must be|not a number"),
        (pd.Series(pd.date_range("2026-01-01", periods=3)), "must be numbers in seconds"),
        (pd.Series([True, False]), "must be numbers in seconds"),
        (pd.Series([True, None], dtype="boolean"), "must be numbers in seconds"),
        ([1 + 1j, 2], "must be numbers in seconds"),
    ],
)
def test_containers_without_latencies_are_refused(data, says):
    for turn in (latfit.as_sample, latfit.as_log):
        with pytest.raises(SampleError, match=says):
            turn(data)


@pytest.mark.parametrize("cells", [[True, False], [1j, 2], pd.date_range("2026-01-01", periods=2)])
def test_frames_refuse_latencies_that_are_no_numbers(cells):
    with pytest.raises(latfit.LogError, match=r"unparseable latency|no column looks like a latency"):
        latfit.from_frame(pd.DataFrame({"latency": cells}))


def test_an_error_names_the_options_of_python_to_python_alone(tmp_path):
    with pytest.raises(latfit.LogError) as raised:
        latfit.from_frame(pd.DataFrame({"a": ["x", "y"]}))
    assert any('latency="NAME"' in note for note in raised.value.__notes__)
    (tmp_path / "x.csv").write_text("a,b\nx,y\n")
    done = CliRunner().invoke(main, ["timeout", str(tmp_path / "x.csv")])
    assert "--column latency=NAME" in done.stderr
    assert "Python" not in done.stderr


def test_samples_refuse_values_that_are_not_seconds():
    with pytest.raises(SampleError, match=r"one is nan: probes that never came back are `lost`"):
        LatencySample.of([1.0, np.nan])


def test_short_reprs_and_tables():
    log = latfit.example_log()
    assert len(repr(log)) < 200
    assert "2137 probes" in repr(log)
    assert len(repr(log.sample(cutoff=10_000))) < 200
    assert "cutoff 10000 s" in repr(log.sample(cutoff=10_000))
    table = log.sample(cutoff=10_000).to_frame()
    assert table["count"].sum() == 2137
    assert table.groupby("status")["count"].sum().to_dict() == {"censored": 53, "completed": 2084}
    lost = LatencySample.of([1.0], lost=3).to_frame()
    assert lost["count"].tolist() == [1, 3]
    changed = log.to_frame()
    changed["latency"] = 0.0
    assert log.frame["latency"].max() > 0


def test_a_notebook_shows_what_came_from_a_log_as_text():
    frame = pd.DataFrame({"rtt <b>x</b>": [1.0], "site": ["<script>alert(1)</script>"]})
    log = latfit.from_frame(frame, latency="rtt <b>x</b>", status="", unit="s")
    shown = log._repr_html_()
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "1 probe," in shown


def test_the_version_and_the_errors_are_public():
    assert latfit.__version__ == importlib.metadata.version("latfit")
    for name in ("LatfitError", "LogError", "MissingColumn", "SampleError", "TooManyRefused", "UnknownFormat"):
        assert issubclass(getattr(latfit, name), latfit.LatfitError)
