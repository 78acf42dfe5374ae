"""Sequential stopping: what the uncertainty can cost, against a plain search, and a real run that ends by it."""

import json

import numpy as np
import pytest

import latfit
from latfit.measure.run import precision, regret_within, timeouts_for_jobs


def journal(path, latencies, cutoff=10.0):
    """A log of latfit probe with these latencies; those beyond the cutoff are cut."""
    lines = [{"latfit": "probe", "run": "r", "kind": "probes", "target": "x", "arrivals": "poisson", "in_flight": 9}]
    for k, x in enumerate(latencies, start=1):
        t = round(0.25 * k, 6)
        when = np.datetime64("2026-03-01T00:00:00") + np.timedelta64(int(t * 1e6), "us")
        lines.append({"probe": k, "job": k, "attempt": 1, "submitted": f"{when}Z", "t": t})
        done = x <= cutoff
        status = "completed" if done else "censored"
        lines.append({"end": k, "status": status, "latency": min(x, cutoff), "detail": "", "t": t + min(x, cutoff)})
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.05, np.inf, rng.lognormal(-1, 1.2, n)).round(6)


def test_regret_against_a_fine_grid():
    sample = latfit.example_log().sample(cutoff=10_000)
    law = latfit.Empirical.of(sample)
    best = latfit.optimal_timeout(law)
    grid = np.linspace(250, 500, 400_001)
    want = float(np.max(latfit.expected_duration(law, grid))) / best.expected_duration - 1
    assert regret_within(sample, best.timeout, (250.0, 500.0)) == pytest.approx(want, abs=1e-4)
    at_cutoff = float(latfit.expected_duration(law, 10_000)) / best.expected_duration - 1
    assert regret_within(sample, best.timeout, (340.0, np.inf)) >= at_cutoff - 1e-12


def test_more_probes_are_more_precise(tmp_path):
    found = [precision(journal(tmp_path / str(n), drawn(n, 1)), cutoff=10.0) for n in (40, 400, 4000)]
    assert [one.probes for one in found] == [40, 400, 4000]
    assert found[0].regret > found[1].regret > found[2].regret
    assert found[2].regret < 0.05
    assert found[2].low <= found[2].timeout <= found[2].high


def test_few_probes_are_not_precise(tmp_path):
    assert precision(journal(tmp_path / "log", [np.inf] * 40), cutoff=10.0).regret == np.inf
    assert precision(journal(tmp_path / "log", [1.0, 2.0]), cutoff=10.0).regret == np.inf


def test_jobs_run_the_schedule_of_a_log(tmp_path):
    path = journal(tmp_path / "log", drawn(2000, 2))
    answer = latfit.analyze(latfit.read_log(path), laws=["exponential"], test=False, resamples=0).to_dict()["timeout"]
    timeouts, share = timeouts_for_jobs(str(path))
    assert list(timeouts) == answer["retry"]["timeouts"]
    assert share == pytest.approx(np.mean(drawn(2000, 2) <= timeouts[0]))
    assert timeouts_for_jobs(str(path), 0.5) == ((0.5,), pytest.approx(np.mean(drawn(2000, 2) <= 0.5)))


@pytest.mark.slow
def test_a_run_ends_when_it_is_precise(tmp_path, run):
    """Half of the jobs are quick, the others take 2 s: any timeout in between is right, and few probes show it."""
    done = run(
        "probe", "command", "-o", tmp_path / "log", "--until-precise", "30%", "--in-flight", 30, "--pause", "20ms",
        "--cutoff", 5, "--probes", 3000, "--seed", 1, "--json",
        "--", "sh", "-c", "case $LATFIT_JOB in *[02468]) sleep 2;; *) sleep 0.0$((LATFIT_JOB % 3 + 1));; esac",
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert told["reason"].startswith("precise"), told
    assert told["precision"]["regret"] <= 0.3
    assert told["submissions"] < 3000
    assert latfit.read_log(tmp_path / "log").counts["completed"] == told["outcomes"]["completed"]
