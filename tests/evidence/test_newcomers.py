"""Logs as a newcomer has them: two endpoints, HTTP codes with a word for a timeout among them."""

import json

import numpy as np
import pytest

from latfit.restart.objectives import Objective


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A fast and a slow endpoint, 3 % without an answer after 5 s."""
    rng, n = np.random.default_rng(7), 1200
    slow = rng.random(n) < 0.4
    x = np.where(slow, 600.0, 40.0) * rng.lognormal(0, 0.5, n)
    out = rng.random(n) < 0.03
    rows = [
        f"2026-03-01T00:{i // 60 % 60:02d}:{i % 60:02d}Z,{'/export' if s else '/search'},{5000 if o else y:.1f},"
        f"{'timeout' if o else 200}\n"
        for i, (s, y, o) in enumerate(zip(slow, x, out, strict=True))
    ]
    path = tmp_path_factory.mktemp("newcomer") / "http.csv"
    path.write_text("time,endpoint,duration_ms,code\n" + "".join(rows))
    return path, int(out.sum())


def test_words_among_http_codes_are_outcomes(run, log):
    path, out = log
    done = run("outliers", path, "--cutoff", "5s", "--json")
    assert json.loads(done.stdout)["count"] == out
    assert f"timeout ({out}) censored" in done.stderr


def test_replay_resubmits_into_the_own_group(run, log):
    path, _ = log
    done = run("replay", path, "--at", "60ms", "--json")
    assert "mixes different populations" in done.stderr
    told = json.loads(done.stdout)
    assert told["at"][0]["expected_duration"] > 5 * told["waiting"]


def test_drift_and_batch_say_it_too(run, log, tmp_path):
    path, _ = log
    assert "groups-differ" in {each["code"] for each in json.loads(run("drift", path, "--json").stdout)["warnings"]}
    done = run("batch", path, "-o", tmp_path / "out.csv", "--resamples", 0, "--no-test")
    assert done.stderr.splitlines()[-1].endswith("groups: 1, with a timeout: 0, withheld: 1")


def test_a_deadline_takes_a_unit():
    assert Objective.parse("deadline:20min").parameter == Objective.parse("deadline:1200").parameter == 1200
