"""Formats that take lines or objects apart: latencies, times of submission and groups of a small log of each."""

import pandas as pd
import pytest

import latfit
from conftest import DATA

# file: (latencies, the first time of submission, a column and its values)
EXPECTED = {
    "requests.squid": ([0.180, 91.7, 0.012, 0.002], "2010-10-08T11:11:48.599Z", ("url", "http://example.org/a")),
    "requests.caddy": ([0.025, 1.5, 0.25], "2025-05-19T11:07:09.9Z", ("path", "/a")),
    "requests.traefik": ([0.012345678, 2.0, 0.001], "2026-03-02T06:00:00.5Z", ("path", "/a")),
    "server.mongod": ([0.25, 0.13], "2026-03-02T06:00:01Z", ("namespace", "shop.orders")),
    "queries.mysql-slow": ([1.25, 0.5], "2026-03-02T06:00:00.25Z", ("user", "app")),
    "report.lambda": ([0.0195, 3.0, 0.007], "2026-03-02T06:00:00.0005Z", ("cold_start", "yes")),
    "worker.celery": ([0.25, 2.0], "2026-03-02T06:00:01.25Z", ("task", "app.tasks.add")),
    "router.heroku": ([0.013, 30.0, 0.005], "2026-03-02T06:00:01Z", ("path", "/a")),
    "samples.jmeter-xml": ([5.5, 30.0, 0.009], "2017-09-22T20:33:28.625Z", ("label", "Landing & more")),
    "history.condor-history": ([60.0, 300.0, 104.0], "2026-02-14T01:30:04Z", ("jobid", "7.0")),
    "workflow.wfinstances": ([3.5, 6.0], None, ("program", "a")),
    "spans.zipkin": ([0.009357, 0.004357], "2017-08-07T10:24:20.67888Z", ("service", "web")),
    "runs.github-runs": ([120.0, 30.0, 0.0], "2026-03-02T06:00:05Z", ("name", "CI")),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_latencies_times_and_groups(name):
    latencies, sent, (column, value) = EXPECTED[name]
    frame = latfit.read_log(DATA / name).frame
    assert frame["latency"].tolist() == pytest.approx(latencies)
    first = frame["submitted"].iloc[0]
    assert pd.isna(first) if sent is None else first == pd.Timestamp(sent)
    assert str(frame[column].iloc[0]) == value


def test_a_time_that_slurm_does_not_know_is_no_start():
    frame = latfit.read_log(DATA / "jobs.slurm-json").frame
    assert frame["status"].tolist() == ["completed", "censored", "censored"]
    assert frame["latency"].tolist()[:2] == [7.0, 100.0]


def test_mongod_says_how_to_log_operations(tmp_path):
    path = tmp_path / "mongod.log"
    path.write_text((DATA / "server.mongod").read_text().split("\n")[0] + "\n")
    with pytest.raises(latfit.LatfitError, match="setProfilingLevel"):
        latfit.read_log(path)


def test_jmeter_without_a_header_and_with_bars(tmp_path):
    path = tmp_path / "results.jtl"
    path.write_text(
        "1436484057951|6011|get csv|200|Users 1-2|true|243971\n1436484059459|67|get csv|500|Users 1-5|false|4\n"
    )
    log = latfit.read_log(path)
    assert log.frame["latency"].tolist() == [6.011, 0.067]
    assert (log.counts["completed"], log.counts["failed"]) == (1, 1)


def test_sacct_without_a_header_and_with_other_fields_names_the_export(tmp_path):
    path = tmp_path / "sacct.txt"
    path.write_text("48816|ada|ada|COMPLETED|slurm|16\n48816.batch|||COMPLETED|slurm|16\n")
    with pytest.raises(latfit.LatfitError, match="--format=JobID,Submit"):
        latfit.read_log(path)
