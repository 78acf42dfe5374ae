"""HAProxy: timers of −1, and termination states, which show who gave up."""

import pandas as pd
import pytest

import latfit
from conftest import DATA

STATES = {
    "----": "completed", "LD--": "completed", "sC--": "censored", "sH--": "censored", "sD--": "censored",
    "sQ--": "censored", "cD--": "censored", "CH--": "censored", "CD--": "censored", "SC--": "failed",
    "SH--": "failed", "SD--": "failed", "PH--": "failed", "DC--": "failed", "RC--": "failed", "IH--": "failed",
}  # fmt: skip


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


@pytest.mark.parametrize("state", STATES)
def test_the_termination_state_shows_who_gave_up(state, tmp_path):
    line = (
        f"10.0.0.1:5001 [01/Mar/2026:00:00:01.100] web app/s1 0/0/1/20/25 200 9 - - {state} 1/1/0/0/0 0/0 "
        '"GET / HTTP/1.1"\n'
    )
    (tmp_path / "x").write_text(line)
    assert latencies(read(tmp_path / "x"), STATES[state]) == [0.025]


def test_http_and_tcp_lines():
    log = read(DATA / "requests.haproxy")
    assert latencies(log, "completed") == [0.025, 0.035, 0.15]
    assert latencies(log, "failed") == [0.003]
    assert latencies(log, "censored") == [0.9, 1.5, 5.001, 30.001]
    assert sum(log.facts.skipped.values()) == 2
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:01.100Z")
    assert list(log.frame["server"]) == ["s1", "s2", "s1", "s1", "s1", "s1", "s3", "s3"]
    assert list(log.frame["path"][:2]) == ["/a", "/b"]
    assert read(DATA / "requests.haproxy", timezone="Europe/Paris").frame["submitted"][0] == pd.Timestamp(
        "2026-02-28T23:00:01.100Z"
    )


def test_the_time_to_the_headers_as_latency():
    """Tr: a request whose headers came is no longer out, whoever ended it later; −1 was over at Tt."""
    log = read(DATA / "requests.haproxy", columns={"latency": "Tr"})
    assert latencies(log, "completed") == [0.02, 0.03, 0.04]
    assert latencies(log, "censored") == [5.001, 30.001]
    assert latencies(log, "failed") == [0.003]
    assert log.facts.refused.reasons["no latency"] == 2  # connections have no Tr
    with pytest.raises(latfit.LogError, match="there is no 'Tx'"):
        read(DATA / "requests.haproxy", columns={"latency": "Tx"})


def test_custom_fields_may_precede_the_timers(tmp_path):
    line = (
        "Jun 22 12:02:53 lb haproxy[23034]: -:47625 [22/Jun/2026:12:02:53.473] www~ app/s1 www.example.org 0/0/1/17/18 "
        '302 291 - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1"\n'
    )
    (tmp_path / "x").write_text(line)
    assert latencies(read(tmp_path / "x"), "completed") == [0.018]
