"""Logs as newcomers have them: two endpoints, HTTP codes mixed with a word for a timeout."""

import json

import numpy as np
import pandas as pd
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


def test_replay_resubmits_into_the_same_group(run, log):
    path, _ = log
    done = run("replay", path, "--at", "60ms", "--json")
    assert "mixes different populations" in done.stderr
    told = json.loads(done.stdout)
    assert told["at"][0]["expected_duration"] > 5 * told["waiting"]


@pytest.mark.slow
def test_drift_and_batch_report_it_too(run, log, tmp_path):
    path, _ = log
    assert "groups-differ" in {each["code"] for each in json.loads(run("drift", path, "--json").stdout)["warnings"]}
    done = run("batch", path, "-o", tmp_path / "out.csv", "--resamples", 0, "--no-test")
    assert done.stderr.splitlines()[-1].endswith("1 group: 0 with a schedule, 1 wait")


def test_a_deadline_takes_a_unit():
    assert Objective.parse("deadline:20min").parameter == Objective.parse("deadline:1200").parameter == 1200


@pytest.fixture
def two_endpoints(tmp_path):
    """70 % of 2 to 5 ms and 30 % of 300 ms."""
    rng = np.random.default_rng(1)
    fast = rng.random(600) < 0.7
    x = np.where(fast, rng.uniform(0.002, 0.005, 600), rng.normal(0.3, 0.01, 600))
    frame = pd.DataFrame({"latency": x, "endpoint": np.where(fast, "/health", "/report")})
    frame.to_csv(tmp_path / "x.csv", index=False)
    return tmp_path / "x.csv"


def test_a_given_timeout_is_evaluated_with_the_evidence_against_it(two_endpoints, run):
    done = run("timeout", two_endpoints, "--at", "0.005", "--json")
    (told,) = (w for w in json.loads(done.stdout)["warnings"] if w["code"] == "withheld")
    assert "withheld (mixed)" in told["message"]
    assert (
        "warning: the decision on this log is withheld (mixed)" in run("timeout", two_endpoints, "--at", "5ms").stderr
    )
    assert "withheld" in run("timeout", two_endpoints, "--restarts", "2").stderr
    fine = run("timeout", two_endpoints, "--at", "0.005", "--where", "endpoint=/health", "--json")
    assert json.loads(fine.stdout)["warnings"] == []


def test_a_given_timeout_is_written_with_the_evidence_against_it(two_endpoints, run):
    notes = json.loads(run("settings", "tenacity", two_endpoints, "--timeout", "1", "--json").stdout)["notes"]
    assert any(note.startswith("warning: the log's own decision is withheld (mixed)") for note in notes)
    assert any(note.startswith("mixed: ") for note in notes)
    fine = json.loads(
        run("settings", "tenacity", two_endpoints, "--timeout", "1", "--where", "endpoint=/health", "--json").stdout
    )
    assert not any("withheld" in note for note in fine["notes"])


def _written(path, header, rows):
    path.write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def _times(n):
    return [f"2026-03-01T{i // 60 % 24:02d}:{i % 60:02d}:00Z" for i in range(n)]


@pytest.mark.slow
def test_answers_determined_by_the_request_are_populations(run, tmp_path):
    """A missing page is answered in 3 ms, an existing one in 300 ms; a second request gets the same answer."""
    rng, n = np.random.default_rng(2), 300
    missing = rng.random(n) < 0.4
    x = np.where(missing, 3.0, 300.0) * rng.lognormal(0, 0.4, n)
    rows = zip(_times(n), x.round(1), np.where(missing, 404, 200), strict=True)
    path = _written(tmp_path / "log.csv", "time,duration_ms,status", rows)
    done = run("analyze", path, "--resamples", 0)
    assert "Latencies depend on log_status" in " ".join(done.stdout.split())
    told = json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)
    assert (told["withheld"], told["evidence"]["mixing"]["column"]) == (["mixed"], "log_status")
    assert not json.loads(run("timeout", path, "--resamples", 0, "--json", "--where", "status=200").stdout)["withheld"]
    for words in (["timeout", path, "--where", "log_status=200"], ["analyze", path, "--by", "log_status"]):
        refused = run(*words)
        assert (refused.returncode, "known only of what completed" in refused.stderr) == (1, True)


def test_failures_are_not_a_population(run, tmp_path):
    """A server fails fast at random: the text of its answers is the outcome, not a property of the request."""
    rng, n = np.random.default_rng(3), 300
    bad = rng.random(n) < 0.3
    x = np.where(bad, 3.0, 300.0) * rng.lognormal(0, 1.0, n)
    rows = zip(_times(n), x.round(1), np.where(bad, 503, 200), np.where(bad, "Busy", "OK"), strict=True)
    path = _written(tmp_path / "log.csv", "time,duration_ms,http_status,resultCode", rows)
    told = json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)
    assert (told["verdict"], told["evidence"]["mixing"]) == ("finite", None)


@pytest.mark.slow
def test_sizes_explain_latencies_whatever_they_are_called(run, tmp_path):
    """2 s for a megabyte: with a timeout for small answers, large ones never end."""
    rng, n = np.random.default_rng(4), 300
    size = rng.lognormal(13, 1.5, n).round()
    rows = list(zip(_times(n), size, (size * 2e-6 * rng.lognormal(0, 0.3, n)).round(4), strict=True))
    for name in ("bytes", "payload_bytes", "rows", "size_mb", "sentBytes"):
        path = _written(tmp_path / f"{name}.csv", f"time,{name},duration_s", rows)
        told = json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)
        assert "mixed" in told["withheld"], name
        assert told["evidence"]["mixing"]["column"] == name


def test_endpoints_with_ids_in_their_names_are_populations(run, tmp_path):
    rng, n = np.random.default_rng(5), 200
    slow = rng.random(n) < 0.3
    x = np.where(slow, 6.0, 0.1) * rng.lognormal(0, 0.5, n)
    names = [f"/{'report' if s else 'users'}/{1000 + 7 * i}" for i, s in enumerate(slow)]
    path = _written(tmp_path / "log.csv", "time,path,duration_s", zip(_times(n), names, x.round(3), strict=True))
    done = json.loads(run("analyze", path, "--resamples", 0, "--json").stdout)
    assert done["timeout"]["withheld"] == ["mixed"]
    assert {group["path"] for group in done["groups"]} == {"/report/*", "/users/*"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("latency", "word"), [("-1", "timeout"), ("0", "timed out"), ("0.0", "DEADLINE_EXCEEDED"), ("-1", "error")]
)
def test_a_placeholder_latency_of_a_lost_probe_is_ignored(run, tmp_path, latency, word):
    rng, n = np.random.default_rng(6), 300
    out = rng.random(n) < 0.08
    x = rng.lognormal(7, 0.4, n).round()
    cells = [latency if o else f"{y:g}" for o, y in zip(out, x, strict=True)]
    path = _written(tmp_path / "log.csv", "latency_ms,status", zip(cells, np.where(out, word, "ok"), strict=True))
    told = json.loads(run("analyze", path, "--resamples", 0, "--json").stdout)
    assert (told["log"]["lost"], told["log"]["refused_count"]) == (int(out.sum()), 0)


@pytest.mark.parametrize("together", [True, False])
def test_outages_are_distinguished_from_losses(run, tmp_path, together):
    rng, n = np.random.default_rng(8), 1000
    out = (np.arange(n) // 25) % 20 == 3 if together else rng.random(n) < 0.05
    cells = [f"{5000 if o else y:.0f}" for o, y in zip(out, rng.lognormal(6, 0.5, n), strict=True)]
    path = _written(
        tmp_path / "log.csv",
        "time,latency_ms,status",
        zip(_times(n), cells, np.where(out, "timeout", "ok"), strict=True),
    )
    told = json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)
    assert ("outages" in {each["code"] for each in told["warnings"]}) == together


def test_the_log_level_is_not_a_population(run, tmp_path):
    """Slow requests are logged as warnings: the level follows the latency."""
    rng, n = np.random.default_rng(9), 600
    x = rng.lognormal(0, 1.2, n)
    level = np.where(x > 3, "warn", np.where(rng.random(n) < 0.02, "error", "info"))
    path = _written(tmp_path / "log.csv", "time,latency_s,level", zip(_times(n), x.round(3), level, strict=True))
    assert json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)["evidence"]["mixing"] is None


def test_probes_still_out_when_the_log_ends_are_not_an_outage(run, tmp_path):
    n = 600
    x, words = np.random.default_rng(3).lognormal(0, 0.5, n), ["ok"] * 585 + ["censored"] * 15
    path = _written(tmp_path / "log.csv", "time,latency_s,status", zip(_times(n), x.round(3), words, strict=True))
    told = json.loads(run("timeout", path, "--resamples", 0, "--json").stdout)
    assert "outages" not in {each["code"] for each in told["warnings"]}
