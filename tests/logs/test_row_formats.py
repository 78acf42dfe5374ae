"""Formats that take lines or objects apart: latencies, times of submission and groups of a small log of each."""

import json

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


def test_an_unknown_slurm_time_is_not_a_start():
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


def test_relative_times_of_a_workload_are_times(tmp_path):
    path = tmp_path / "jobs.swf"
    path.write_text(
        "; no UnixStartTime\n"
        + "".join(f"{k} {60 * k} {5 * k} 100 1 -1 -1 1 100 -1 1 1 1 -1 2 -1 -1 -1\n" for k in range(1, 4))
    )
    seconds = (latfit.read_log(path).frame["submitted"] - pd.Timestamp("1970-01-01", tz="UTC")).dt.total_seconds()
    assert seconds.tolist() == [60, 120, 180]


def test_runs_as_gh_lists_them(tmp_path):
    path = tmp_path / "runs.json"
    path.write_text(
        json.dumps(
            [
                {
                    "conclusion": "success",
                    "createdAt": "2026-03-02T06:00:00Z",
                    "databaseId": 1,
                    "updatedAt": "2026-03-02T06:02:00Z",
                },
                {
                    "conclusion": "cancelled",
                    "createdAt": "2026-03-02T06:10:00Z",
                    "databaseId": 2,
                    "updatedAt": "2026-03-02T06:11:00Z",
                },
                {
                    "conclusion": "",
                    "createdAt": "2026-03-02T06:10:30Z",
                    "databaseId": 3,
                    "updatedAt": "2026-03-02T06:10:40Z",
                },
            ]
        )
    )
    log = latfit.read_log(path)
    assert log.facts.format == "github-runs"
    assert log.frame["latency"].tolist() == [120, 60, 30]
    assert log.frame["status"].tolist() == ["completed", "censored", "censored"]


def test_a_caddy_request_without_a_code(tmp_path):
    """No handler took the first; of the second the client went away."""
    path = tmp_path / "access.log"
    request = {"method": "GET", "uri": "/a", "host": "h", "proto": "HTTP/2.0"}
    rows = [
        {"ts": 1772431200.5, "msg": message, "request": request, "duration": spent, "status": code}
        for message, spent, code in [("NOP", 1e-5, 0), ("handled request", 3.0, 0), ("handled request", 0.1, 200)]
    ]
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    log = latfit.read_log(path)
    assert log.frame["status"].tolist() == ["censored", "completed"]
    assert log.frame["latency"].tolist() == [3.0, 0.1]


def test_the_submission_time_of_a_classic_balancer(tmp_path):
    """It writes when the request came; one of applications, when it was answered."""
    rest = 'lb 10.0.0.9:2817 10.0.0.1:80 0.5 1 0.5 200 200 0 29 "GET http://x:80/ HTTP/1.1" "curl" - -'
    path = tmp_path / "elb.log"
    path.write_text(f"2026-03-01T00:02:00.000000Z {rest}\nhttp 2026-03-01T00:02:00.000000Z {rest}\n")
    sent = latfit.read_log(path).frame["submitted"]
    assert sent.tolist() == [pd.Timestamp("2026-03-01T00:02:00Z"), pd.Timestamp("2026-03-01T00:01:58Z")]


def test_times_of_old_mysql_and_a_router_behind_syslog(tmp_path):
    path = tmp_path / "slow.log"
    path.write_text(
        "# Time: 140507  8:14:18\n# User@Host: a[a] @  [127.0.0.1]\n"
        "# Query_time: 2.5  Lock_time: 0.000050 Rows_sent: 251  Rows_examined: 9773\nSELECT 1;\n"
    )
    assert latfit.read_log(path).frame["submitted"].tolist() == [pd.Timestamp("2014-05-07T08:14:15.5Z")]
    path.write_text(
        'Apr 30 05:56:35 app heroku/router: at=info method=GET path="/" host=h dyno=web.1 connect=1ms '
        "service=12ms status=200 bytes=358\n"
    )
    assert latfit.read_log(path).frame["latency"].tolist() == [0.013]


@pytest.mark.parametrize(("content", "hint"), [
    (b" ID     OWNER          SUBMITTED   RUN_TIME     ST COMPLETED   CMD\n 12.0   ada  1/15\n", "-json"),
    (b'Cmd = "/bin/a"\nQDate = 1700000000\nJobStatus = 4\n\n', "-json"),
    (b"\x7f\xff\x03\x01\x01\x06Result\x01\x00\x06Attack\x01\x0c\x00\x09Timestamp\x01\xff\x84\x00", "vegeta encode"),
])  # fmt: skip
def test_unreadable_files_say_how_to_convert_them(tmp_path, content, hint):
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(latfit.LatfitError, match=hint):
        latfit.read_log(path)


def test_traefiks_common_log(tmp_path):
    path = tmp_path / "access.log"
    line = '10.0.0.1 - - [02/Mar/2026:06:00:00 +0100] "GET /a?b HTTP/1.1" {} 5 "-" "curl" 7 "web" "http://b" {}ms\n'
    path.write_text(line.format(200, 12) + line.format(499, 3000) + line.format(502, 1))
    frame = latfit.read_log(path).frame
    assert frame["latency"].tolist() == [0.012, 3.0, 0.001]
    assert frame["status"].tolist() == ["completed", "censored", "failed"]
    assert frame["submitted"].iloc[0] == pd.Timestamp("2026-03-02T05:00:00Z")
    assert set(frame["path"]) == {"/a"}


def test_times_without_an_offset_are_of_the_users_zone():
    """Celery's worker writes local times, when a task ends."""
    sent = latfit.read_log(DATA / "worker.celery", timezone="Europe/Paris").frame["submitted"].iloc[0]
    assert sent == pd.Timestamp("2026-03-02T05:00:01.25Z")


def test_a_task_of_celery_5_that_raised_took_the_time_since_it_was_received(tmp_path):
    task = "Task app.add[3e92c1d4-0000-4000-8000-00000000000{}]"
    (tmp_path / "x").write_text(
        f"[2026-03-01 10:00:00,000: INFO/MainProcess] {task.format(1)} received\n"
        f"[2026-03-01 10:00:00,200: INFO/ForkPoolWorker-2] {task.format(1)} succeeded in 0.165s: None\n"
        f"[2026-03-01 10:00:01,000: INFO/MainProcess] {task.format(2)} received\n"
        f"[2026-03-01 10:00:03,000: ERROR/ForkPoolWorker-2] {task.format(2)} raised unexpected: ValueError()\n"
    )
    frame = latfit.read_log(tmp_path / "x").frame
    assert list(zip(frame["latency"], frame["status"], strict=True)) == [(0.165, "completed"), (2.0, "failed")]


def test_many_elements_of_one_line_that_are_not_objects_are_refused_together(tmp_path):
    path = tmp_path / "spans.json"
    span = '{"traceId": "5982", "timestamp": 1502101460678880, "duration": 9357, "localEndpoint": {"serviceName": "a"}}'
    path.write_text(f"[{span}," + '"",' * 300_000 + f"{span}]")
    log = latfit.read_log(path, max_refused=1)
    assert (log.facts.format, log.counts["completed"], log.facts.refused.count) == ("zipkin", 2, 300_000)


def test_an_empty_object_among_requests_is_not_a_request(tmp_path):
    path = tmp_path / "caddy.log"
    path.write_text((DATA / "requests.caddy").read_text() + "{}\n")
    plain = latfit.read_log(DATA / "requests.caddy", max_refused=1)
    log = latfit.read_log(path, max_refused=1)
    assert log.counts == plain.counts
    assert sum(log.facts.skipped.values()) == 1 + sum(plain.facts.skipped.values())
