"""Spans of OpenTelemetry and Jaeger."""

import json

import pandas as pd
import pytest

import latfit
from conftest import DATA


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


def span(start, length, **more):
    return {"name": "a", "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + length), **more}


def document(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def test_otel_lines():
    log = read(DATA / "spans.otel")
    assert latencies(log, "completed") == [0.25]
    assert latencies(log, "failed") == [0.01]  # status code 2
    assert latencies(log, "censored") == [30]  # 504
    assert log.facts.skipped == {"documents without spans": 1}
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    assert list(log.frame["service"][:2]) == ["shop", "shop"]
    assert list(log.frame["kind"]) == ["server", "client", "server"]
    assert list(log.frame["parent"]) == ["root", "child", "root"]
    assert any("different operations" in note for note in log.facts.notes)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("as_list", [False, True])
def test_one_document(indent, as_list, tmp_path):
    some = document(span(10**18, 1), span(10**18, 123_456_789), span(10**18, 5, status={"code": "STATUS_CODE_ERROR"}))
    (tmp_path / "x").write_text(json.dumps([some, some] if as_list else some, indent=indent))
    log = read(tmp_path / "x")
    times = 2 if as_list else 1
    assert latencies(log, "completed") == sorted([1e-9, 0.123456789] * times)  # not one nanosecond is lost
    assert latencies(log, "failed") == [5e-9] * times


def test_codes_of_http_and_grpc(tmp_path):
    def coded(key, value):
        return span(10**18, 10**9, attributes=[{"key": key, "value": {"intValue": value}}])

    some = document(
        coded("http.status_code", 404), coded("http.status_code", "429"), coded("rpc.grpc.status_code", 4),
        coded("rpc.grpc.status_code", 0), coded("http.response.status_code", 503),
    )  # fmt: skip
    (tmp_path / "x").write_text(json.dumps(some) + "\n")
    assert list(read(tmp_path / "x").counts.values()) == [2, 2, 1, 0]
    assert list(read(tmp_path / "x", statuses={"4xx": "lost"}).counts.values()) == [1, 1, 1, 2]


def test_every_span_that_is_refused_is_counted(tmp_path):
    (tmp_path / "x").write_text(json.dumps(document(span(10**18, 1), {"name": "b"}, {"name": "c"})) + "\n")
    log = read(tmp_path / "x")
    assert log.facts.refused.count == 2
    assert [refusal.line for refusal in log.facts.refused.first] == [1, 1]


def test_jaeger_in_microseconds():
    log = read(DATA / "spans.jaeger")
    assert latencies(log, "completed") == [0.0015]
    assert latencies(log, "failed") == [0.0009]
    assert list(log.frame["service"]) == ["web", "db"]
    assert log.frame["submitted"][0] == pd.Timestamp(1700000000, unit="s", tz="UTC")


def test_a_document_without_spans_is_refused(tmp_path):
    (tmp_path / "x").write_text('{"resourceSpans": []}\n')
    with pytest.raises(latfit.LogError, match="there is no span in this log"):
        read(tmp_path / "x")
    (tmp_path / "y").write_text('{"resourceSpans": [\n')
    with pytest.raises(latfit.LogError, match="line 1: unparseable line"):
        read(tmp_path / "y")
