"""Rows chosen by columns and by time, in every format; the number left out is reported."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import DATA, EGEE
from latfit.errors import LogError, MissingColumn
from latfit.logs import read_log
from latfit.logs.formats import Condition


@pytest.fixture
def frame():
    """60 probes, one a minute, of three sites; every tenth without a site; the last is the latest."""
    when = pd.date_range("2026-03-01T00:00:00Z", periods=60, freq="min")
    site = np.array(["ce1", "ce2", "web"] * 20, dtype=object)
    site[::10] = None
    return pd.DataFrame({"submitted": when, "latency": np.arange(60) + 1.0, "status": "ok", "site": site, "procs": 1})


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def log(frame, request, tmp_path):
    path = tmp_path / f"x.{request.param}"
    if request.param == "csv":
        frame.to_csv(path, index=False)
    elif request.param == "jsonl":
        frame.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"where": ["site=ce1"]}, lambda f: f["site"] == "ce1"),
        ({"where": ["site!=ce1"]}, lambda f: f["site"] != "ce1"),
        ({"where": ["site~^ce"]}, lambda f: f["site"].fillna("").str.startswith("ce")),
        ({"where": ["site="]}, lambda f: f["site"].isna()),
        ({"where": ["site!="]}, lambda f: f["site"].notna()),
        ({"where": ["site~^ce", "site!=ce2"]}, lambda f: f["site"] == "ce1"),
        ({"where": ["procs=1", "status=ok"]}, lambda f: f["procs"] == 1),
        ({"since": "2026-03-01T00:30:00Z"}, lambda f: f.index >= 30),
        ({"until": "2026-03-01T01:30:00+01:00"}, lambda f: f.index < 30),
        ({"since": "2026-03-01T01:30", "timezone": "Europe/Paris"}, lambda f: f.index >= 30),
        # the log ends when the last probe returns, 60 s after it was submitted
        ({"since": "10m"}, lambda f: f.index >= 50),
        ({"since": "0.5h", "until": "10m", "where": ["site=web"]},
         lambda f: (f.index >= 30) & (f.index < 50) & (f["site"] == "web")),
    ],
)  # fmt: skip
def test_the_rows_that_pandas_would_choose(log, frame, options, rows):
    expected = frame.loc[rows(frame), "latency"].tolist()
    found = read_log(log, **options)
    assert found.frame["latency"].tolist() == expected
    assert found.facts.unchosen == 60 - len(expected)


def test_rows_that_are_not_chosen_are_not_refused(tmp_path):
    (tmp_path / "x.csv").write_text("id,latency,site\n1,5,a\n1,6,b\n2,-5,b\n3,oops,b\n4,7,a\n")
    log = read_log(tmp_path / "x.csv", where=["site=a"])
    assert (log.frame["latency"].tolist(), log.facts.refused.count, log.facts.unchosen) == ([5, 7], 0, 3)


def test_impossible_selections_are_refused(tmp_path):
    with pytest.raises(MissingColumn, match=r"no column 'site' for --where; there are: .*broker"):
        read_log(EGEE, where=["site=x"])
    with pytest.raises(LogError, match=r"no row matches --where/--since/--until \(2137 rows read\)"):
        read_log(EGEE, where=["broker=none of these"])
    with pytest.raises(LogError, match="is not a condition"):
        read_log(EGEE, where=["broker"])
    with pytest.raises(LogError, match="not a regular expression"):
        read_log(EGEE, where=["broker~("])
    for text in ("yesterday", "2026", "2026-13-01", "now"):
        with pytest.raises(LogError, match=r"is neither a time|is not a time"):
            read_log(EGEE, since=text)
    (tmp_path / "x.csv").write_text("latency\n1\n2\n")
    for text in ("1d", "2026-03-01"):
        with pytest.raises(LogError, match="does not say when its probes were submitted"):
            read_log(tmp_path / "x.csv", since=text)


def test_a_key_may_be_missing_in_some_objects(tmp_path):
    rows = [{"latency": 1, "pad": "x" * 99} for _ in range(3000)] + [{"latency": 2, "late": "yes"}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_log(tmp_path / "x.jsonl", where=["late=yes"]).frame["latency"].tolist() == [2]


@pytest.mark.parametrize(
    ("name", "condition", "n"),
    [("jobs.swf", "status=5", 1), ("sacct-header.txt", "status=censored", 2), ("results.jtl", "label=Login", 2)],
)
def test_other_formats(name, condition, n):
    assert len(read_log(DATA / name, where=[condition], max_refused=1).frame) == n


@pytest.mark.slow
def test_commands_choose_and_say_so(run, tmp_path):
    done = run("outliers", EGEE, "--where", "broker~.", "--since", "1d", "--json")
    assert done.returncode == 0, done.stderr
    assert "note: --where, --since and --until leave out " in done.stderr
    assert run("outliers", EGEE, "--where", "broker").returncode == 2
    piped = run("outliers", "-", "--since", "1d", stdin=EGEE.read_text())
    assert piped.returncode == 1
    assert "can be read only once" in piped.stderr
    brokers = latfit.read_log(EGEE).frame["broker"]
    done = run("convert", EGEE, "-o", tmp_path / "x.csv", "--where", f"broker={brokers[0]}", "--json")
    assert json.loads(done.stdout)["probes"] == int((brokers == brokers[0]).sum())


@pytest.mark.parametrize("pattern", ["a~[a&&b]x", "a~[[a]"])
def test_a_pattern_with_a_future_warning_is_accepted_silently(pattern):
    assert Condition.parse(pattern).operator == "~"


@pytest.mark.parametrize("pattern", ["a~(", "a~x{99999999999999999999}", "a~" + "(" * 5000])
def test_an_invalid_pattern_is_reported(pattern):
    with pytest.raises(latfit.LatfitError, match="is not a regular expression"):
        Condition.parse(pattern)
