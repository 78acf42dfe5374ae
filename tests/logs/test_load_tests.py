"""Results of load generators, and the summaries that are no results."""

import pandas as pd
import pytest

import latfit
from conftest import DATA


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


def test_k6_takes_one_metric():
    log = read(DATA / "results.k6")
    assert latencies(log, "completed") == [0.007, 0.2505]  # a 404 is an answer
    assert latencies(log, "failed") == [0.005, 0.012]  # a 200 that the test did not expect
    assert latencies(log, "censored") == [60]
    assert sum(log.facts.skipped.values()) == 3  # the header, and points of two other metrics
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.749500Z")
    assert read(DATA / "results.k6", columns={"latency": "http_reqs"}).counts["completed"] == 1
    with pytest.raises(latfit.LogError, match="no point of the metric"):
        read(DATA / "results.k6", columns={"latency": "http_req_waiting"})
    strict = read(DATA / "results.k6", statuses={"4xx": "failed", "200": "completed"})
    assert latencies(strict, "completed") == [0.005, 0.2505]


def test_k6_json_lines():
    log = read(DATA / "results.k6-json")
    assert latencies(log, "completed") == [0.2505]
    assert latencies(log, "censored") == [60]
    assert latencies(log, "failed") == [0.003]  # error code 1212: connection refused
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:01.249500Z")


def test_gatling_of_two_versions():
    log = read(DATA / "simulation.gatling")
    assert latencies(log, "completed") == [0.25]
    assert latencies(log, "censored") == [60]
    assert latencies(log, "failed") == [0.03]
    assert list(log.frame["name"]) == ["home", "home", "buy"]
    assert list(log.frame["groups"]) == ["", "g", "g"]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.100Z")


def test_hey_notes_what_is_missing():
    log = read(DATA / "results.hey")
    assert latencies(log, "completed") == [0.0123]
    assert latencies(log, "failed") == [0.5]
    assert any("hey leaves requests without an answer out" in note for note in log.facts.notes)
    assert log.frame["submitted"].isna().all()


def test_vegeta_csv_and_json(tmp_path):
    log = read(DATA / "results.vegeta")
    assert latencies(log, "completed") == [0.0394]
    assert latencies(log, "censored") == [30]
    assert latencies(log, "failed") == [0.001]
    (tmp_path / "x").write_text(
        '{"attack":"","seq":0,"code":500,"timestamp":"2026-03-01T01:00:03.5+01:00","latency":2000000,"error":"500"}\n'
    )
    log = read(tmp_path / "x")
    assert log.facts.format == "vegeta"
    assert latencies(log, "failed") == [0.002]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:03.5Z")


LOCUST = "Type,Name,Request Count,Failure Count,Median Response Time,50%,95%\nGET,/a,240,236,3,3,7\n"
HISTORY = "Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%\n1772323200,1,GET,/a,2,0,3\n"
WRK = "Running 30s test @ http://127.0.0.1:8080/\n  12 threads and 400 connections\n"


@pytest.mark.parametrize(
    ("text", "told"), [(LOCUST, "events.request"), (HISTORY, "events.request"), (WRK, "hey -o csv")]
)
def test_percentiles_are_refused_with_the_way_out(text, told, tmp_path):
    (tmp_path / "x").write_text(text)
    with pytest.raises(latfit.LogError, match=told):
        read(tmp_path / "x")


def test_the_way_out_of_locust_is_read(tmp_path):
    (tmp_path / "x").write_text(
        "start_time,name,response_time_ms,status\n1772323200.5,/a,12.5,completed\n1772323201,/a,3,failed\n"
    )
    log = read(tmp_path / "x")
    assert latencies(log, "completed") == [0.0125]
    assert latencies(log, "failed") == [0.003]


def test_jmeter_with_a_row_that_does_not_say_whether_it_succeeded(tmp_path):
    rows = "timeStamp,elapsed,label,responseCode,success\n1772359200000,120,a,200,true\n1772359201000,130,a,,\n"
    (tmp_path / "x").write_text(rows)
    log = latfit.read_log(tmp_path / "x")
    assert latencies(log, "completed") == [0.12]
    assert [refusal.line for refusal in log.facts.refused.first] == [3]
