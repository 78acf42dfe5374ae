"""`latfit compare` as a user runs it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from conftest import EGEE, REPO
from latfit.cli import main

LAW = ["--law", "lognormal(mu=5.5,sigma=1)", "--rho", "0.025"]


def call(*args):
    return CliRunner().invoke(main, ["compare", *map(str, args)])


@pytest.mark.slow
def test_given_policies_come_first():
    done = call(*LAW, "--policy", "hedge(d=300,t_inf=900,q=1)", "--policy", "delayed(t0=300,t_inf=450)", "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    first, second = document["strategies"][:2]
    assert (first["policy"], first["parameters"]) == ("hedge(d=300,t_inf=900,q=1)", {"d": 300, "t_inf": 900, "q": 1})
    assert first["expected_duration"] == pytest.approx(303.37031, rel=1e-7)
    assert second["submissions"] == pytest.approx(1.610443, rel=1e-6)
    assert document["load"] is None
    assert document["objective"] == "mean"


@pytest.mark.slow
def test_the_bundled_log():
    done = call(EGEE, "--cutoff", 10000, "--current", 1000, "--utilisation", 0.6, "--json")
    document = json.loads(done.stdout)
    first = document["strategies"][0]
    assert (first["role"], first["policy"]) == ("given", "timeout(t=1000)")
    for row in document["strategies"][1:]:
        interval = row["interval"]
        assert interval["low"] <= row["expected_duration"] <= interval["high"]
        # the ratio to the first is known better than either: common resamples
        if row["policy"].startswith("timeout"):
            assert (
                interval["ratio_high"] - interval["ratio_low"]
                < (interval["high"] - interval["low"]) / interval["low"] * 2
            )
    assert len(document["load"]) == len(document["strategies"])
    assert "faster" in document["decision"]


@pytest.mark.slow
def test_the_recommended_schedule_is_a_row_of_its_own(tmp_path):
    """Its mean is that of `timeout.retry`, but for the few jobs that are not done at the cutoff."""
    rows = json.loads(call(EGEE, "--cutoff", 10000, "--json").stdout)["strategies"]
    assert [row["role"] for row in rows[:2]] == ["advised", "same"]
    done = CliRunner().invoke(main, ["timeout", str(EGEE), "--cutoff", "10000", "--json"])
    retry = json.loads(done.stdout)["retry"]
    assert rows[0]["parameters"]["timeouts"] == [*retry["timeouts"], 10_000.0]
    assert rows[0]["expected_duration"] == pytest.approx(retry["expected_duration"], rel=2e-3)
    assert 1 - rows[0]["success"] == pytest.approx(retry["undone"], rel=1e-6)
    assert "recommended: schedule(timeouts=[358,716,10000]" in call(EGEE, "--cutoff", 10000).output
    same = tmp_path / "same.csv"
    same.write_text("latency,status\n" + "".join(f"{1 + i % 7 / 100},completed\n" for i in range(300)))
    waiting = json.loads(call(same, "--cutoff", 60, "--json").stdout)["strategies"][0]
    assert (waiting["role"], waiting["policy"]) == ("advised", "timeout(t=60)")


@pytest.mark.slow
def test_one_failure_leaves_p95_and_p99_known(tmp_path):
    """One 502 among a thousand; the tail of every row against jobs that are drawn here, attempt by attempt."""
    rng = np.random.default_rng(2)
    x, failed = rng.lognormal(0, 1, 1000).round(6), np.arange(1000) == 5
    log = tmp_path / "log.csv"
    log.write_text("latency,status\n" + "".join(
        f"{a},{'failed' if b else 'completed'}\n" for a, b in zip(x, failed, strict=True)))  # fmt: skip
    rows = json.loads(call(log, "--cutoff", 60, "--json").stdout)["strategies"]
    assert all(None not in row["quantiles"].values() for row in rows if row["success"] in (None, 1.0))
    for row in (row for row in rows if row["policy"].startswith(("schedule(", "timeout(t="))):
        limits = row["parameters"].get("timeouts") or [row["parameters"]["t"]] * 400
        took, out = np.zeros(200_000), np.ones(200_000, dtype=bool)
        for limit in limits:
            drawn = rng.integers(0, 1000, out.sum())
            done = (x[drawn] <= limit) & ~failed[drawn]
            took[out] += np.where(done | failed[drawn], np.minimum(x[drawn], limit), limit)
            out[out] = ~done
            if not out.any():
                break
        for q in ("0.95", "0.99"):
            assert row["quantiles"][q] == pytest.approx(np.quantile(took, float(q)), rel=0.04)


@pytest.mark.slow
def test_the_first_sentence_is_the_decision():
    done = call(*LAW, "--utilisation", 0.7)
    text = " ".join(done.output.split())
    assert text.startswith("Hedge after 243")
    assert "22 % faster" in text[:200]
    for words in (
        "same load",
        "no limit",
        "job-time",
        "Does your cancel reach the server?",
        "less than 375 s a job",
    ):
        assert words in text


def written(path, x, gap, rng):
    """A log with times, a tenth of its probes lost."""
    lost, when = rng.random(x.size) < 0.1, pd.to_timedelta(np.cumsum(rng.exponential(gap, x.size)).round(3), unit="s")
    columns = {"latency": np.where(lost, 20_000, x.round(3)), "status": np.where(lost, "lost", "completed")}
    frame = pd.DataFrame({"submitted": pd.Timestamp("2026-01-05", tz="UTC") + when, **columns})
    frame.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_the_replay_is_printed_with_the_choice(tmp_path):
    rng = np.random.default_rng(8)
    log = written(tmp_path / "x.csv", rng.lognormal(5.5, 1, 3000), 30, rng)
    document = json.loads(call(log, "--json").stdout)
    found, best = document["replay"], next(row for row in document["strategies"] if row["role"] == "same")
    assert (found["policy"], found["over"][:8]) == (best["policy"], "schedule")
    assert found["stands"]
    assert found["low"] < best["expected_duration"] == found["formula"] < found["high"]
    gain = 1 - best["expected_duration"] / document["strategies"][0]["expected_duration"]
    assert 0 < found["gain_low"] < gain < found["gain_high"]
    text = call(log).stdout.split("\n\n")[0]
    assert document["withheld"] == []
    assert text.index("faster") < text.index("Replayed on the log, ") < text.index("Without that limit: ")
    assert json.loads(call(log, "--rho", 0.05, "--json").stdout)["replay"] is None


@pytest.mark.slow
def test_a_choice_that_the_log_contradicts_is_withheld(tmp_path):
    """Hours in which everything is slow: another copy is as slow, and the formula does not know it."""
    rng = np.random.default_rng(8)
    slow = np.arange(3000) // 500 % 2
    log = written(tmp_path / "x.csv", rng.lognormal(4.6 + 3 * slow, 0.3), 30, rng)
    assert json.loads(call(log, "--json").stdout)["replay"]["stands"]  # with as little load as is recommended
    assert "Without that limit" not in call(log).stdout
    document = json.loads(call(log, "--current", 139, "--json").stdout)
    assert document["withheld"] == ["replay"]
    assert not document["replay"]["stands"]
    assert document["replay"]["expected_duration"] > 2 * document["replay"]["formula"]
    text = " ".join(call(log, "--current", 139).stdout.split("\n\n")[0].split())
    assert text.startswith(document["decision"])
    advised = next(row for row in document["strategies"] if row["role"] == "advised")
    assert advised["policy"].split("(")[0] == "schedule"
    assert re.match(r"No strategy but schedule\(.*?\) can be recommended: the log, replayed", text)
    assert "where the formula says" in text
    assert "Without that limit" not in text


@pytest.mark.slow
def test_a_log_without_times_is_compared_without_replay(tmp_path):
    rng = np.random.default_rng(9)
    path = tmp_path / "x.csv"
    path.write_text("latency\n" + "\n".join(f"{x:.3f}" for x in rng.lognormal(5.5, 1, 500)))
    assert json.loads(call(path, "--unit", "s", "--json").stdout)["replay"] is None
    assert "Replayed" not in call(path, "--unit", "s").stdout


def test_wrong_usage_and_bad_input():
    assert call().exit_code == 2
    assert call(*LAW, EGEE).exit_code == 2
    assert call(*LAW, "--utilisation", 2).exit_code == 2
    for wrong in (["--policy", "hedge(x=1)"], ["--same", "x"], ["--objective", "median"]):
        done = call(*LAW, *wrong)
        assert done.exit_code == 1
        assert done.stderr.startswith("latfit: ")


@pytest.mark.slow
def test_the_page_on_strategies_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", (REPO / "docs" / "strategies.md").read_text(), flags=re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "strategies.md", "exec"), {})


@pytest.mark.slow
def test_the_load_is_that_of_the_recommendation(tmp_path):
    """Exponential latencies: nothing can be gained, and the advice is not to flood the service."""
    rng, log = np.random.default_rng(1), tmp_path / "exponential.csv"
    rows = zip(np.cumsum(rng.exponential(0.2, 3000)), 50 * rng.exponential(size=3000), strict=True)
    log.write_text("time,latency_ms,status\n" + "".join(f"{1.7676e9 + t:.3f},{x:.1f},200\n" for t, x in rows))
    document = json.loads(call(log, "--json").stdout)
    assert document["decision"].startswith("Wait: no other strategy")
    assert document["budget"]["value"] == pytest.approx(1.0, abs=1e-3)
    assert all(row["submissions"] < 1.01 for row in document["strategies"] if row["role"] == "same")
