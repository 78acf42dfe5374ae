"""The drift report: on a log that changed, on one that did not, and on logs that contradict it."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import EGEE
from latfit.errors import LogError
from latfit.evidence import probes_of
from latfit.tracking.drift import backtest, drift, edges_of


def log_of(tmp_path, x, *, gap=600.0, cutoff=np.inf, site=None):
    frame = pd.DataFrame({"submitted": 1.7e9 + np.arange(x.size) * gap, "latency": np.minimum(x, cutoff)})
    frame["status"] = np.where(x <= cutoff, "completed", "censored")
    if site is not None:
        frame["site"] = site
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    return latfit.read_log(path)


@pytest.mark.slow
def test_a_slow_down_is_found_costed_and_followed(tmp_path):
    """A truncated Gaussian that becomes three times slower: the old timeout nearly never completes."""
    rng = np.random.default_rng(1)
    x = np.abs(rng.normal(300, 60, 4000)) * np.where(np.arange(4000) < 2000, 1, 3)
    x = np.where(rng.random(4000) < 0.03, np.inf, x)
    found = drift(log_of(tmp_path, x, cutoff=10_000.0), cutoff=10_000.0, current=500.0)
    (change,) = found.changes.changes
    assert abs(change.index - 2000) < 100
    assert change.kind == "scale"
    before, after = found.windows
    assert after.timeout == pytest.approx(3 * before.timeout, rel=0.3)
    assert before.low <= before.timeout <= before.high
    assert before.kept_regret is None
    assert after.kept_regret > 3
    assert after.current_regret > before.current_regret
    scores = {score.policy: score.expected_duration for score in found.backtest.scores}
    assert scores["tracked"] < 0.5 * scores["fixed"]
    assert scores["tracked"] < 1.1 * min(scores["hindsight"], scores["waiting"])
    assert set(scores) == {"fixed", "pooled", "tracked", "current", "waiting", "hindsight"}
    assert not found.warnings


@pytest.mark.slow
def test_the_bundled_log_did_not_change(run):
    document = json.loads(run("drift", EGEE, "--json").stdout)
    assert document["changes"] == []
    assert {"from", "to", "probes", "ratio", "timeout", "low", "high", "expected_duration", "kept_regret"} <= set(
        document["windows"][0]
    )
    scores = {score["policy"]: score["expected_duration"] for score in document["backtest"]}
    assert scores["tracked"] == pytest.approx(scores["hindsight"], rel=0.02)


def test_replay_is_that_of_a_loop(tmp_path):
    """One job after the other, by the definition, under a timeout that never changes."""
    rng = np.random.default_rng(2)
    x = rng.lognormal(5, 1, 600)
    seen = probes_of(log_of(tmp_path, x, gap=20.0, cutoff=2000.0))
    found = {score.policy: score for score in backtest(seen, 2000.0, cost=7.0, current=150.0).scores}
    known = np.sort(seen.submitted + np.minimum(x, 2000.0))
    start = int(np.searchsorted(seen.submitted, known[59]))
    spent, submissions, done = 0.0, 0, 0
    for job in range(start, 600):
        at, clock = job, seen.submitted[job]
        while at < 600:
            submissions += 1
            if x[at] <= 150:
                spent, done = spent + x[at], done + 1
                break
            spent, clock = spent + 157, clock + 157
            at = next((i for i in range(at, 600) if seen.submitted[i] >= clock), 600)
    assert found["current"].expected_duration == pytest.approx(spent / done, rel=1e-3)
    assert found["current"].submissions == pytest.approx(submissions / done)
    assert found["current"].ran_off == pytest.approx(1 - done / (600 - start))


@pytest.mark.slow
def test_the_backtest_does_not_use_the_future(tmp_path):
    """What was submitted before a change, but came back after it, must not have set the timeout before it."""
    rng = np.random.default_rng(3)
    x = rng.lognormal(4, 0.3, 2000)
    changed = x.copy()
    changed[1500:] *= 50
    one, other = (backtest(probes_of(log_of(tmp_path, y, gap=60.0, cutoff=9000.0)), 9000.0) for y in (x, changed))
    until = 1.7e9 + 1500 * 60.0
    assert np.array_equal(one.tracked[one.when <= until], other.tracked[other.when <= until])
    assert one.tracked[-1] != other.tracked[-1]


@pytest.mark.slow
def test_dependence_withholds_the_timeouts(tmp_path):
    """Slow spells of hours: an attempt that is resubmitted meets the same spell."""
    rng = np.random.default_rng(4)
    z = np.empty(3000)
    z[0] = 0
    for i, e in enumerate(rng.standard_normal(2999) * np.sqrt(1 - 0.998**2)):
        z[i + 1] = 0.998 * z[i] + e
    found = drift(log_of(tmp_path, np.exp(4 + 2.5 * z), gap=30.0), window="1d")
    assert {"dependence", "dependent"} <= {warned.code for warned in found.warnings}
    assert all(window.timeout is None for window in found.windows)


@pytest.mark.slow
def test_groups_and_the_figure(tmp_path, run):
    rng = np.random.default_rng(5)
    site = np.where(np.arange(1200) % 2, "near", "far")
    x = rng.lognormal(3, 0.5, 1200) * np.where(site == "far", 10, 1)
    log = log_of(tmp_path, x, site=site)
    found = drift(log, by="site")
    assert [group.key for group in found.groups] == [{"site": "far"}, {"site": "near"}]
    assert all(group.probes == 600 for group in found.groups)
    figure = tmp_path / "drift.png"
    done = run("drift", tmp_path / "log.csv", "--by", "site", "-o", figure, "--json")
    assert done.returncode == 0, done.stderr
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [group["site"] for group in json.loads(done.stdout)["groups"]] == ["far", "near"]
    assert run("drift", tmp_path / "log.csv", "-o", "drift.txt").returncode == 2
    for window in ("1x", "0"):
        done = run("drift", tmp_path / "log.csv", "--window", window)
        assert (done.returncode, "--window" in done.stderr) == (2, True)


def test_windows():
    when = 4 * 86_400.0 + np.array([0.5, 1.2, 9.9]) * 86_400
    assert np.diff(edges_of(when, "7d", [])).tolist() == [7 * 86_400.0] * 2
    assert edges_of(when, "7d", [])[0] == 4 * 86_400.0  # a Monday
    assert edges_of(when, None, [float(when[1])])[:2].tolist() == when[:2].tolist()
    with pytest.raises(LogError, match="at most 1000"):
        edges_of(when, "1s", [])


def test_a_log_without_times_says_so(tmp_path, run):
    (tmp_path / "log.csv").write_text("latency\n" + "1\n2\n" * 100)
    done = run("drift", tmp_path / "log.csv")
    assert done.returncode == 1
    assert "submitted" in done.stderr


@pytest.mark.slow
def test_real_logs(shared):
    """KTH is a queue whose waits depend on each other: its timeouts are withheld."""
    found = drift(latfit.read_log(shared / "kth-sp2.swf.gz"), cost=60.0, window="28d")
    assert {"queue", "dependent"} <= {warned.code for warned in found.warnings}
    scores = {score.policy: score.expected_duration for score in found.backtest.scores}
    assert scores["hindsight"] < scores["tracked"] < scores["fixed"] < scores["waiting"]
    # prototypes, in which jobs waited through the gaps of the log: 5215, 5249, 4185, 2573
    assert scores["tracked"] == pytest.approx(0.9 * 4185, rel=0.05)
    assert scores["hindsight"] == pytest.approx(0.9 * 2573, rel=0.05)


@pytest.mark.parametrize("status", ["failed", "censored", "completed"])
def test_a_log_in_which_nothing_completes_in_time_has_no_backtest(tmp_path, status):
    x = np.random.default_rng(9).lognormal(1, 0.3, 300)
    log = latfit.from_frame(latfit_frame(x, status), status="status", unit="s")
    found = drift(log, cutoff=0.1 if status == "completed" else 100.0, window="1d")
    assert found.backtest is None
    assert all(window.timeout is None for window in found.windows)
    assert "no-backtest" in {warned.code for warned in found.warnings}


def latfit_frame(x, status):
    when = pd.date_range("2026-01-01", periods=x.size, freq="min", tz="UTC")
    return pd.DataFrame({"submitted": when, "latency": x, "status": status})


def test_windows_are_described_where_analyze_finds_the_gain_implausible():
    """Microseconds beside a cutoff of ten minutes: `analyze` asks to check the unit, `drift` has nothing to decide."""
    rng = np.random.default_rng(9)
    when = pd.date_range("2026-01-01", periods=300, freq="min", tz="UTC")
    status = np.where(rng.random(300) < 0.05, "lost", "completed")
    latency = np.where(status == "lost", np.nan, rng.lognormal(-12, 0.3, 300))
    log = latfit.from_frame(pd.DataFrame({"submitted": when, "latency": latency, "status": status}), unit="s")
    with pytest.raises(latfit.SampleError, match="not plausible"):
        latfit.analyze(log, cutoff=600.0, laws=(), test=False, resamples=0)
    found = drift(log, cutoff=600.0, window="1d")
    assert found.windows[0].timeout < 1e-4
    scores = {score.policy: score.expected_duration for score in found.backtest.scores}
    assert scores["fixed"] < scores["waiting"] / 100


def test_a_window_in_which_nothing_completed_has_no_timeout():
    rng = np.random.default_rng(8)
    when = pd.date_range("2026-01-01", periods=600, freq="min", tz="UTC")
    late = pd.DatetimeIndex([pd.Timestamp("2026-01-03T12:00", tz="UTC")])
    status = np.append(np.full(600, "completed"), "censored")
    frame = pd.DataFrame({"submitted": when.append(late), "latency": np.append(rng.lognormal(3, 1, 600), 900.0)})
    result = drift(latfit.from_frame(frame.assign(status=status), status="status"), window="1d", current=60.0)
    assert [window.timeout is None for window in result.windows] == [False, True]
    assert result.windows[1].kept_regret is None
