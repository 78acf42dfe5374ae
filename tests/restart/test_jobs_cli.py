"""Batches of jobs, percentiles and other objectives on the command line: the numbers of Python."""

import json

import pytest

import latfit
from conftest import EGEE

LAW = ("--law", "lognormal(mu=5.5,sigma=1)")


def asked(run, *arguments):
    done = run("timeout", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_jobs_and_their_groups(run):
    law = latfit.Defective(latfit.parse_law("lognormal", mu=5.5, sigma=1), 0.025)
    best = asked(run, *LAW, "--rho", 0.025, "--jobs", 30, "--wall-clock", "2m")
    assert best["jobs"]["expected_maximum"] == latfit.expected_maximum(law, 30, best["timeout"], wall_clock=120.0)
    assert best["jobs"]["grouping"] == latfit.optimal_grouping(law, 30, wall_clock=120.0).to_dict()
    assert asked(run, *LAW, "--jobs", 30)["jobs"]["grouping"] is None
    log = asked(run, EGEE, "--jobs", 30, "--resamples", 0)
    data = latfit.Empirical.of(latfit.example_log().sample(cutoff=10_000))
    assert log["jobs"]["expected_maximum"] == pytest.approx(latfit.expected_maximum(data, 30, log["timeout"]), rel=1e-9)
    assert "The last of 30 jobs" in run("timeout", *LAW, "--jobs", 30).stdout


def test_percentiles_alone(run):
    bound = asked(run, "--percentiles", "p50=120ms,p95=0.4,p99=2s", "--cost", "10ms")
    ours = latfit.quantile_bound({0.5: 0.12, 0.95: 0.4, 0.99: 2.0}, cost=0.01)
    assert (bound["timeout"], bound["guaranteed"]) == (ours.timeout, ours.expected_duration)
    assert "at most" in run("timeout", "--percentiles", "p50=120ms,p99=2s").stdout


def test_restarts_with_an_objective(run):
    ours = latfit.optimal_schedule("lognormal", 2, objective="moment:2", mu=5.5, sigma=1)
    assert asked(run, *LAW, "--restarts", 2, "--objective", "moment:2")["schedule"] == pytest.approx(
        ours.timeouts, rel=1e-9
    )
