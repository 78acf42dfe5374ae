"""Access logs of web servers and proxies: which field became the latency, the outcome, the submission time."""

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import DATA
from latfit.evidence.probes import probes_of
from latfit.evidence.worlds import survey

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
    assert log.facts.skipped == {"lines without a request": 1, "requests without rt": 1}
    assert "latency is rt (field 10 of 11, such as 0.250) in s" in note(log, "latency")
    assert {"remote", "method", "path"} <= set(log.frame)
    assert "200 (1), 404 (1) completed; 502 (1) failed; 504 (1) censored" in note(log, "outcomes")
    # nginx writes the time of the answer, here in the zone +0100
    assert log.frame["submitted"][1] == pd.Timestamp("2026-02-28T23:00:01.990Z")
    assert list(log.frame["path"]) == ["/a", "/b", "/a", "/a"]
    # the outcome and the parts of the latency are no groups, but can be chosen; an error has no size of an answer
    assert not {"code", "urt"} & set(log.frame)
    assert log.frame["bytes"].notna().tolist() == [status == "completed" for status in log.frame["status"]]
    assert read(DATA / "requests.access", where=["code=404"]).counts["completed"] == 1
    assert latencies(read(DATA / "requests.access", columns={"latency": "urt"}), "failed") == [0.003]  # two servers


def test_status_option_overrides_codes():
    log = read(DATA / "requests.access", statuses={"4xx": "failed", "504": "lost"})
    assert list(log.counts.values()) == [1, 2, 0, 1]


def test_the_largest_of_several_times_is_the_request_time(tmp_path):
    log = read(written(tmp_path, ["0.250 0.100 1498697422.123", "0.300 - 1498697422.123"]))
    assert latencies(log, "completed") == [0.25, 0.3]
    assert "field10 (field 10 of 12" in note(log, "latency")


def test_the_request_time_is_there_even_where_no_server_was_asked(tmp_path):
    """As nginx's ingress writes them: parts may add up to more than the whole, by the clock's steps or by tries."""
    log = read(written(tmp_path, ["0.002 [web] 0.100, 0.004", "0.001 [web] 0.002", "0.000 [] -"]))
    assert latencies(log, "completed") == [0, 0.001, 0.002]


def test_a_line_may_begin_with_the_time(tmp_path):
    (tmp_path / "x").write_text('[01/Mar/2026:00:00:05 +0000] 0.250 10.0.0.1 "GET /a HTTP/1.1" 200 512\n')
    assert latencies(read(tmp_path / "x"), "completed") == [0.25]


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
def test_ambiguous_fields_are_not_guessed(spent, told, tmp_path):
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
    assert log.facts.skipped == {"lines without apptime": 1, "lines without labelled fields": 1}
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
    assert log.facts.skipped == {"lines without a request": 1}


def test_alb_sums_its_times_and_finds_missing_answers():
    log = read(DATA / "requests.alb")
    assert latencies(log, "completed") == [0.001178, 0.003]
    assert latencies(log, "censored") == [60]  # from its creation to the entry in the log
    assert latencies(log, "failed") == [0.01]
    assert log.frame["submitted"][0] == pd.Timestamp("2026-03-01T00:00:00.996Z")
    target = read(DATA / "requests.alb", columns={"latency": "target_processing_time"})
    assert latencies(target, "completed") == [0.001, 0.001048]
    with pytest.raises(latfit.LogError, match="there is no time 'x'"):
        read(DATA / "requests.alb", columns={"latency": "x"})


def test_a_connection_through_a_balancer_has_no_code(tmp_path):
    line = '2026-03-01T00:00:00.5Z lb 10.0.0.9:2817 10.0.0.1:80 {} - - 82 305 "- - - " "-" - -\n'
    (tmp_path / "x").write_text(line.format("0.001 0.002 0.003") * 2)
    assert latencies(read(tmp_path / "x"), "completed") == [0.006, 0.006]


def test_traefik_writes_a_dash_without_quotes(tmp_path):
    line = '10.0.0.1 - - [28/Feb/2026:17:30:33 +0000] "GET /a HTTP/2" 200 4 {} "curl" 1 "web" "http://10.0.0.2" 7ms\n'
    (tmp_path / "x").write_text(line.format("-") + line.format('"http://x/"'))
    assert latencies(read(tmp_path / "x"), "completed") == [0.007, 0.007]


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


@pytest.mark.parametrize("name", ["access", "envoy", "haproxy", "alb", "caddy", "squid"])
def test_the_size_of_the_answer_is_a_column_of_what_completed(name):
    log = read(DATA / f"requests.{name}")
    known = log.frame["bytes"].notna() == (log.frame["status"] == "completed")
    assert known.all()
    assert log.frame["bytes"].notna().any()
    with pytest.raises(latfit.LogError, match=r"there are: .*\bbytes\b(?!.*log_status)"):
        log.groups("nosuch")
    with pytest.raises(latfit.LogError, match=r"there are: .*\bbytes\b(?!.*log_status)"):
        read(DATA / f"requests.{name}", where=["nosuch=1"])


def test_sizes_that_decide_the_latency_are_a_world_and_those_of_error_messages_are_none(tmp_path):
    rng = np.random.default_rng(11)
    line = '10.0.0.1 - - [05/Jan/2026:08:{}:{:02d} +0000] "GET /x HTTP/1.1" {} {} "-" "curl" {:.3f}\n'
    size = rng.lognormal(9, 1, 900)
    for sticky in (True, False):
        spent = 0.05 * (size / 8000 if sticky else rng.lognormal(0, 0.5, 900))
        hangs = np.arange(900) % 30 == 7
        columns = np.where(hangs, 504, 200), np.where(hangs, 167, size).astype(int), np.where(hangs, 30, spent)
        rows = enumerate(zip(*columns, strict=True))
        path = tmp_path / f"{sticky}.log"
        path.write_text("".join(line.format(10 + i // 60, i % 60, *each) for i, each in rows))
        worlds = survey(probes_of(latfit.read_log(path))).worlds
        assert ("bytes" in {world.name for world in worlds}) == sticky
        assert "bytes=167" not in {world.name for world in worlds}
