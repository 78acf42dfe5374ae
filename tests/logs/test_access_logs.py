"""Access logs of web servers and proxies: which field became the latency, the outcome, the submission time."""

import pandas as pd
import pytest

import latfit
from conftest import DATA

LINE = '10.0.0.1 - - [01/Mar/2026:00:00:0{second} +0000] "GET /a HTTP/1.1" {code} 512 "-" "curl" {spent}\n'


def read(path, **options):
    return latfit.read_log(path, max_refused=1, **options)


def latencies(log, status):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


def written(tmp_path, spent, codes=("200",) * 9):
    path = tmp_path / "access.log"
    path.write_text("".join(LINE.format(second=at, code=codes[at], spent=each) for at, each in enumerate(spent)))
    return path


def note(log, beginning):
    return next(note for note in log.facts.notes if note.startswith(beginning))


def test_nginx_with_named_times():
    log = read(DATA / "requests.access")
    assert latencies(log, "completed") == [0.01, 0.25]
    assert latencies(log, "failed") == [0.005]
    assert latencies(log, "censored") == [60]
    assert log.facts.skipped == {"lines that are not requests": 1, "requests without rt": 1}
    assert "latency is rt (field 10 of 11, such as 0.250) in s" in note(log, "latency")
    assert "columns to group by: remote" in note(log, "latency")
    assert "200 (1), 404 (1) completed; 502 (1) failed; 504 (1) censored" in note(log, "outcomes")
    # nginx writes the time of the answer, here in the zone +0100
    assert log.frame["submitted"][1] == pd.Timestamp("2026-02-28T23:00:01.990Z")
    assert list(log.frame["path"]) == ["/a", "/b", "/a", "/a"]
    # what is known only with the answer is no group, but can be chosen
    assert not {"code", "bytes", "urt"} & set(log.frame)
    assert read(DATA / "requests.access", where=["code=404"]).counts["completed"] == 1
    assert latencies(read(DATA / "requests.access", columns={"latency": "urt"}), "failed") == [0.003]  # two servers


def test_codes_by_the_users_word():
    log = read(DATA / "requests.access", statuses={"4xx": "failed", "504": "lost"})
    assert list(log.counts.values()) == [1, 2, 0, 1]


def test_the_largest_of_several_times_is_the_request_time(tmp_path):
    log = read(written(tmp_path, ["0.250 0.100 1498697422.123", "0.300 - 1498697422.123"]))
    assert latencies(log, "completed") == [0.25, 0.3]
    assert "field10 (field 10 of 12" in note(log, "latency")


def test_apache_microseconds_and_both(tmp_path):
    log = read(written(tmp_path, ["12345", "2012345"]))
    assert latencies(log, "completed") == [0.012345, 2.012345]
    assert log.frame["submitted"][1] == pd.Timestamp("2026-03-01T00:00:01Z")  # Apache writes the start
    assert latencies(read(written(tmp_path, ["0/12345", "2/2012345"])), "completed") == [0.012345, 2.012345]


@pytest.mark.parametrize(
    ("spent", "told"),
    [
        (["3", "12"], "give --unit us"),  # s, ms or µs: nothing tells
        (["300 12345", "12 23456"], "several whole numbers"),  # %I %O, perhaps
        (["", ""], "has no request time; add one"),
        (['"-"', '"-"'], "has no request time; add one"),
    ],
)
def test_what_cannot_be_told_is_not_guessed(spent, told, tmp_path):
    with pytest.raises(latfit.LogError, match=told):
        read(written(tmp_path, spent))


def test_the_users_unit_and_field(tmp_path):
    assert latencies(read(written(tmp_path, ["3", "12"]), unit="ms"), "completed") == [0.003, 0.012]
    path = written(tmp_path, ["300 12345", "12 23456"])
    assert latencies(read(path, columns={"latency": "field10"}, unit="ms"), "completed") == [0.012, 0.3]
    with pytest.raises(latfit.LogError, match="there is no 'nope'"):
        read(path, columns={"latency": "nope"})


def test_ltsv_without_a_backend_is_skipped():
    log = read(DATA / "requests.ltsv")
    assert latencies(log, "completed") == [0.057]
    assert latencies(log, "failed") == [0.1]
    assert latencies(log, "censored") == [60]
    assert log.facts.skipped == {"lines without apptime": 1, "lines that are not labelled fields": 1}
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00Z")
    assert list(log.frame["via"].fillna("")) == ["", "", "x"]


def test_ltsv_units_by_label(tmp_path):
    (tmp_path / "x").write_text("time:2026-03-01T00:00:00Z\tstatus:200\treqtime_microsec:2500\tapptime:-\n")
    assert latencies(read(tmp_path / "x"), "completed") == [0.0025]
    with pytest.raises(latfit.LogError, match="'took'"):
        read(tmp_path / "x", columns={"latency": "took"})
    (tmp_path / "y").write_text("a:1\tb:2\tc:3\n")
    with pytest.raises(latfit.LogError, match="no column looks like a latency"):
        read(tmp_path / "y")


def test_envoy_text_json_and_flags():
    log = read(DATA / "requests.envoy")
    assert latencies(log, "completed") == [0.099, 0.226]  # a connection without a code, too
    assert latencies(log, "failed") == [0.003]
    assert latencies(log, "censored") == [0.812, 15]  # the client went away; Envoy's timeout
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.310Z")
    assert list(log.frame["authority"][:2]) == ["locations", "httpbin:8000"]
    assert log.facts.skipped == {"lines that are not requests": 1}


def test_alb_sums_its_times_and_finds_those_that_never_came():
    log = read(DATA / "requests.alb")
    assert latencies(log, "completed") == [0.001178, 0.003]
    assert latencies(log, "censored") == [60]  # from its creation to the entry in the log
    assert latencies(log, "failed") == [0.01]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.996Z")
    target = read(DATA / "requests.alb", columns={"latency": "target_processing_time"})
    assert latencies(target, "completed") == [0.001, 0.001048]
    with pytest.raises(latfit.LogError, match="there is no time 'x'"):
        read(DATA / "requests.alb", columns={"latency": "x"})


def test_w3c_of_iis_and_cloudfront(tmp_path):
    log = read(DATA / "requests.w3c")
    assert latencies(log, "completed") == [0.25]
    assert latencies(log, "censored") == [30]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.750Z")
    (tmp_path / "x").write_text(
        "#Version: 1.0\n#Fields: date time x-edge-location sc-status time-taken\n"
        "2026-03-01\t00:00:01\tLHR\t200\t0.082\n"
    )
    assert latencies(read(tmp_path / "x"), "completed") == [0.082]
    (tmp_path / "y").write_text("#Fields: date time sc-status\n2026-03-01 00:00:01 200\n")
    with pytest.raises(latfit.LogError, match="has no time-taken"):
        read(tmp_path / "y")


@pytest.mark.parametrize("name", ["requests.access", "requests.haproxy", "requests.envoy", "requests.alb"])
def test_small_blocks_give_the_same_log(name, monkeypatch):
    whole = read(DATA / name)
    monkeypatch.setattr("latfit.logs.source.HEAD_BYTES", 1000)
    monkeypatch.setitem(latfit.logs.source.Source.blocks.__kwdefaults__, "size", 100)
    parts = read(DATA / name)
    pd.testing.assert_frame_equal(parts.frame, whole.frame)
    assert parts.facts.notes == whole.facts.notes
    assert parts.facts.skipped == whole.facts.skipped
