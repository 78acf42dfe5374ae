"""docs/real-logs.md: its loop agrees with `latfit replay`, its script runs, its verdicts are those of plain cases."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from conftest import REPO

SCRIPTS = REPO / "scripts"


@pytest.fixture
def real_logs(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from real_logs import own, page

    return own, page


@pytest.mark.parametrize(
    ("name", "column"),
    [("github-actions-runs.csv", "name"), ("k6-finance.csv.gz", "name"), ("hourly-ping.csv.gz", None),
     ("jmeter-slow.jtl", "label"), ("sge-accounting.gz", "job_name"), ("haproxy-finance.log.gz", "path")],
)  # fmt: skip
@pytest.mark.slow
def test_the_loop_agrees_with_replay(name, column, shared, run, real_logs, tmp_path):
    """Mean, submissions and what ran off, on the same groups, dense and sparse."""
    own, _ = real_logs
    run("convert", shared / name, "-o", tmp_path / "x.csv")
    rows = pd.read_csv(tmp_path / "x.csv")
    rows = own.ordered(rows.assign(group=own.groups_of(rows, column)))
    middle, late = rows.loc[rows["status"] == "completed", "latency"].quantile([0.5, 0.9], "lower")
    by = ["--by", column] if column else []
    told = json.loads(run("replay", shared / name, *by, "--at", middle, "--at", late, "--json").stdout)
    for one in told["at"]:
        found = own.follow(rows, dict.fromkeys(rows["group"], (one["timeout"],)), told["cutoff"])
        assert found.mean == pytest.approx(one["expected_duration"], rel=1e-9)
        assert found.submissions == pytest.approx(one["submissions"], rel=1e-9)
        assert found.never == pytest.approx(one["ran_off"], abs=1e-12)
    assert own.follow(rows, {}, told["cutoff"]).mean == pytest.approx(told["waiting"], rel=1e-9)


@pytest.mark.slow
def test_the_script_prints_a_table(shared):
    done = subprocess.run(
        [sys.executable, "-m", "real_logs", shared, "--only", "k6", "--only", "otel", "--only", "locust"],
        cwd=SCRIPTS, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "| `k6-finance.csv.gz` |" in done.stdout
    assert "a histogram has no rows to follow" in done.stdout


def test_without_logs_the_script_says_so(tmp_path):
    done = subprocess.run([sys.executable, "-m", "real_logs", tmp_path / "none"], cwd=SCRIPTS, capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 1
    assert "the logs are not part of this repository" in done.stderr


@pytest.mark.parametrize(
    ("slow", "gap", "t", "verdict"),
    [("chance", 10.0, 2.0, "right"), ("rows", 0.5, 2.0, "harmful"), ("none", 10.0, 2.0, "no change")],
)
def test_verdicts_of_plain_cases(slow, gap, t, verdict, real_logs):
    """One in ten takes 100 s: by chance a timeout helps; in rows of 40 it does not, and there are gaps of hours."""
    own, page = real_logs
    n = 800
    hit = {"chance": np.random.default_rng(1).random(n) < 0.1, "rows": np.arange(n) % 400 >= 360,
           "none": np.zeros(n, bool)}[slow]  # fmt: skip
    at = np.cumsum(np.where((np.arange(n) % 400 == 399) & (slow == "rows"), 5000.0, gap))
    rows = pd.DataFrame({"submitted": pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(at, unit="s"),
                         "latency": np.where(hit, 100.0, 1.0), "status": "completed", "group": "all"})  # fmt: skip
    rows = own.ordered(rows.assign(submitted=rows["submitted"].dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")))
    waiting, found = own.follow(rows, {}, 100.0), own.follow(rows, {"all": (t,)}, 100.0)
    able = waiting.jobs["done"]
    check = page.Checked(waiting.only(able), found.only(able), None, n, replayed=True)
    assert check.verdict(check.now) == verdict


def test_no_decision_of_the_page_is_harmful():
    """The last column of the table, but for the logs that are not read."""
    text = (REPO / "docs" / "real-logs.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| `", line) and "| refused |" not in line]
    assert len(lines) >= 30
    words = [re.match(r" \*\*(.*?)\*\*", line.rsplit("|", 2)[1])[1] for line in lines]
    missed = "waits, although the loop shows a gain"
    assert set(words) <= {"right", "no change", "waits rightly", "cannot be told", "perhaps a gain", missed}
    assert words.count(missed) <= 1


def test_a_schedule_ends_in_waiting(real_logs):
    """By hand: cancelled after 2 s and after 4 s more; the row submitted then is back after 1 s."""
    own, _ = real_logs
    rows = pd.DataFrame({"submitted": [f"2026-01-01T00:00:{s:02d}Z" for s in (0, 2, 4, 6)],
                         "latency": [100.0, 100.0, 100.0, 1.0], "status": "completed", "group": "all"})  # fmt: skip
    jobs = own.follow(own.ordered(rows), {"all": (2.0, 4.0, 200.0)}, 200.0, sparse=False).jobs
    assert jobs["spent"].iloc[0] == pytest.approx(2 + 4 + 1)
    assert jobs["sent"].iloc[0] == 3
