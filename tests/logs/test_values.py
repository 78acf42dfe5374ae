"""Values, names and outcomes as people write them in tables."""

import json

import pytest

import latfit
from latfit.errors import LogError, MissingColumn, TooManyRefused


def read(tmp_path, text, name="log", **options):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return latfit.read_log(tmp_path / name, **{"max_refused": 1, **options})


def latencies(log, status="completed"):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("latency\n1m 20s\n00:04:32\n272.5 s\n272450ms\n7\n", [7, 80, 272, 272.45, 272.5]),
        ("latency_ms\n1s\n250\n", [0.25, 1]),
        ("site;latency\nx;1,5\ny;2\n", [1.5, 2]),
        ("site;latency\nx;1,5\ny;2,5 s\nz;3,25\n", [1.5, 2.5, 3.25]),
        ("site\tlatency\nx\t0,5\n", [0.5]),
        ("latency(ms)\n250\n", [0.25]),
        ("latency [ms]\n250\n", [0.25]),
        ("took_ms\n250\n", [0.25]),
        ("rtt (µs)\n250000\n", [0.25]),
        ("rtt (μs)\n250000\n", [0.25]),
        ("latency_in_ms\n250\n", [0.25]),
        ("latencyms\n250\n", [0.25]),
        ("responseTimeMs\n250\n", [0.25]),
        ("duration_ns\n250000000\n", [0.25]),
        ("request_time\n0.25\n", [0.25]),
        ("time_total\n0.25\n", [0.25]),
        ("upstream_response_time\n0.25\n", [0.25]),
        ("ttfb\n0.25\n", [0.25]),
        ("latency_seconds\n0.25\n", [0.25]),
        ("startTimeUnixNano,endTimeUnixNano\n1700000000000000000,1700000000250000000\n", [0.25]),
    ],
)
def test_latencies(tmp_path, text, expected):
    log = read(tmp_path, text)
    assert latencies(log) == expected
    assert log.facts.refused.count == 0


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["01/02/2026 10:00:00", "13/02/2026 10:00:00"], ["2026-02-01T10:00", "2026-02-13T10:00"]),
        (["01/02/2026 10:00:00", "02/13/2026 10:00:00"], ["2026-01-02T10:00", "2026-02-13T10:00"]),
        (["1.2.2026 9:05", "2.2.2026 10:00"], ["2026-02-01T09:05", "2026-02-02T10:00"]),
        (["31-12-2026, 10:00:00", "1-1-2026, 10:00:00"], ["2026-12-31T10:00", "2026-01-01T10:00"]),
        (["2026-02-01 10:00:00 UTC", "2026-02-01 10:00:00 UTC"], ["2026-02-01T10:00"] * 2),
        (["2026-02-01 10:00:00 +0100 CET", "2026-02-01 10:00:00 +0100 CET"], ["2026-02-01T09:00"] * 2),
    ],
)
def test_dates_whose_order_the_file_proves(tmp_path, dates, expected):
    rows = "".join(f'"{date}",1\n' for date in dates)
    log = read(tmp_path, "time,latency\n" + rows)
    assert log.facts.refused.count == 0
    assert list(log.frame["submitted"].dt.strftime("%Y-%m-%dT%H:%M")) == expected


def test_dates_of_ambiguous_order(tmp_path):
    text = "time,latency\n01/02/2026 10:00:00,1\n03/04/2026 10:00:00,2\n"
    with pytest.raises(LogError, match=r"Choose one: --time-format day-first.*--column submitted="):
        read(tmp_path, text)
    assert read(tmp_path, text, time_format="day-first").frame["submitted"][0].month == 2
    assert read(tmp_path, text, time_format="month-first").frame["submitted"][0].month == 1
    assert read(tmp_path, text, columns={"submitted": ""}).frame["submitted"].isna().all()
    with pytest.raises(LogError, match=r"with the day first.*and with the month first"):
        read(tmp_path, "time,latency\n13/02/2026 10:00:00,1\n03/14/2026 10:00:00,2\n")


def test_nested_json_by_path(tmp_path):
    rows = [{"data": {"value": i + 0.5, "host": {"name": f"h{i % 2}"}, "tags": [1]}, "data.value": 9} for i in range(3)]
    del rows[0]["data.value"], rows[1]["data.value"]
    for text in ("\n".join(map(json.dumps, rows[:2])), "\n".join(map(json.dumps, rows[:2])) + "\n\n"):
        log = read(tmp_path, text, columns={"latency": "data.value"}, unit="s")
        assert latencies(log) == [0.5, 1.5]
        assert set(log.samples("data.host.name")) == {("h0",), ("h1",)}
    with pytest.raises(MissingColumn, match=r"there are: data\.value, data\.host\.name"):
        read(tmp_path, json.dumps(rows[0]))
    both = "\n".join([json.dumps(rows[2])] * 2)
    for text in (both, both + "\n\n"):
        assert latencies(read(tmp_path, text, columns={"latency": "data.value"}, unit="s")) == [9, 9]


def test_json_arrays(tmp_path):
    rows = [{"latency": i + 0.5, "site": {"name": "x"}} for i in range(5)]
    for text in (json.dumps(rows), json.dumps(rows, indent=2), "\n" + json.dumps(rows)):
        log = read(tmp_path, text)
        assert latencies(log) == [0.5, 1.5, 2.5, 3.5, 4.5]
        assert list(log.frame["site.name"]) == ["x"] * 5
        assert log.facts.format == "json"
    pretty = json.dumps(rows, indent=2)
    log = read(tmp_path, pretty.replace("2.5", '"soon"'))
    assert [(r.line, r.reason) for r in log.facts.refused.first] == [(14, "unparseable latency: 'soon'")]
    for broken, says in (
        (pretty[:-60], "cut short"),
        ("[]", "no line holds a JSON object"),
    ):
        with pytest.raises(LogError, match=says):
            read(tmp_path, broken)


def test_a_blank_latency_beside_a_time_is_a_lost_probe(tmp_path):
    text = "timestamp,latency(ms)\n2026-03-01T00:00:00,20\n2026-03-01T01:00:00,\n2026-03-01T02:00:00,30\n,40\n,\n"
    log = read(tmp_path, text)
    assert list(log.counts.values()) == [3, 0, 0, 1]
    assert [r.reason for r in log.facts.refused.first] == ["no latency"]
    assert any(note.startswith("1 row has a time of submission and no latency: it is read") for note in log.facts.notes)
    with_status = "timestamp,latency,status\n2026-03-01T00:00:00,,ok\n2026-03-01T00:00:00,1,ok\n"
    assert read(tmp_path, with_status).counts["lost"] == 0
    assert read(tmp_path, text, columns={"submitted": ""}).counts["lost"] == 0


@pytest.mark.parametrize("name", ["status", "status_code", "code", "http_status", "response_code"])
def test_http_codes(tmp_path, name):
    codes = [200, 204, 404, 429, 500, 503, 504, 408, 0]
    text = f"latency,{name}\n" + "".join(f"1,{code}\n" for code in codes)
    log = read(tmp_path, text)
    assert list(log.counts.values()) == [3, 4, 2, 0]
    assert any("200 (1), 204 (1), 404 (1) completed" in note and "504 (1) censored" in note for note in log.facts.notes)
    log = read(tmp_path, text, statuses={"4xx": "failed", "408": "lost", "0": "censored"})
    assert list(log.counts.values()) == [2, 4, 2, 1]
    rows = "\n".join(json.dumps({"latency": 1, name: code}) for code in codes)
    assert list(read(tmp_path, rows).counts.values()) == [3, 4, 2, 0]


def test_classes_of_codes(tmp_path):
    assert list(read(tmp_path, "latency,status\n1,2xx\n1,5xx\n1,4XX\n").counts.values()) == [2, 1, 0, 0]


def test_numbers_that_are_not_http_codes(tmp_path):
    for codes in ((0, 137, 255), (0, 1, 2), (1, 200)):  # exit codes and signals; a number that is no code
        with pytest.raises(TooManyRefused, match="unknown status"):
            read(tmp_path, "latency,status\n" + "".join(f"1,{code}\n" for code in codes), max_refused=0.1)
    log = read(tmp_path, "latency,code\n1,DE\n2,200\n")
    assert log.counts["completed"] == 2  # a column called code that holds others is not an outcome


def test_yes_and_no_where_a_column_is_called_success(tmp_path):
    assert list(read(tmp_path, "latency,success\n1,1\n2,0\n3,yes\n").counts.values()) == [2, 1, 0, 0]
    with pytest.raises(TooManyRefused):
        read(tmp_path, "latency,state\n1,1\n2,0\n3,1\n", max_refused=0.1)


def test_the_conclusion_takes_precedence_over_the_status(tmp_path):
    text = "status,conclusion,duration_seconds\ncompleted,success,30\ncompleted,failure,40\ncompleted,cancelled,50\n"
    assert list(read(tmp_path, text).counts.values()) == [1, 1, 1, 0]


def test_unknown_words_are_listed_at_once(tmp_path):
    text = "latency,status\n" + "1,up\n" * 5 + "2,down\n" * 3 + "3,odd\n"
    with pytest.raises(TooManyRefused) as error:
        read(tmp_path, text, max_refused=0.1)
    told = str(error.value)
    assert "'up' (5), 'down' (3), 'odd' (1)" in told
    assert "--status completed=up --status lost=down --status completed|failed|censored|lost=odd" in told
    assert "--max-refused" not in told


def test_an_empty_word_means_blank(tmp_path):
    text = "latency,status\n1,up\n,\n2,up\n"
    log = read(tmp_path, text, statuses={"up": "completed", "": "lost"})
    assert list(log.counts.values()) == [2, 0, 0, 1]
    rows = '{"latency":1,"status":"up"}\n{"latency":null,"status":null}\n'
    assert read(tmp_path, rows, statuses={"up": "completed", "": "lost"}).counts["lost"] == 1


def test_a_number_too_large_for_its_unit_is_refused_and_not_lost(tmp_path):
    log = read(tmp_path, "latency\n1e308\n1\n", unit="h")
    assert (list(log.counts.values()), log.facts.refused.reasons) == ([1, 0, 0, 0], {"too large latency": 1})


@pytest.mark.parametrize(
    ("written", "meant"),
    [("Mon Mar  2 06:00:04 2026", "2026-03-02 06:00:04"), ("Mon Mar 2 06:00:04 UTC 2026", "2026-03-02 06:00:04"),
     ("02/Mar/2026:06:00:04 +0130", "2026-03-02 04:30:04"), ("Mon, 02 Mar 2026 06:00:04 GMT", "2026-03-02 06:00:04"),
     ("2-Mar-2026 06:00", "2026-03-02 06:00:00"), ("Mar 2, 2026 12:00:04 AM", "2026-03-02 00:00:04"),
     ("March 2, 2026 1:05 pm", "2026-03-02 13:05:00"), ("Mar 2, 2026 @ 06:00:04.250", "2026-03-02 06:00:04.250000"),
     ("2026-03-02 06:00:04,250", "2026-03-02 06:00:04.250000"),
     ("2026-03-02T06:00:04+01:00[Europe/Paris]", "2026-03-02 05:00:04")],
)  # fmt: skip
def test_dates_as_programs_write_them(written, meant, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("when;latency\n" + f"{written};3\n" * 2)
    assert [str(when) for when in latfit.read_log(path).frame["submitted"]] == [f"{meant}+00:00"] * 2


@pytest.mark.parametrize(("written", "hour"), [("3/31/2026 6:00:04.250 AM", 6), ("03/31/2026 12:00:04.250 PM", 12)])
def test_halves_of_the_day(written, hour, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("start,latency\n" + f"{written},3\n" * 2)
    assert str(latfit.read_log(path).frame["submitted"].iloc[0]) == f"2026-03-31 {hour:02d}:00:04.250000+00:00"


@pytest.mark.parametrize("written", ["Mon Mar 2 06:00:04 CET 2026", "Mar  2 06:00:04"])
def test_dates_without_a_known_zone_or_year_are_not_used(written, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("when;latency\n" + f"{written};3\n" * 2)
    log = latfit.read_log(path)
    assert log.frame["submitted"].isna().all()
    assert any("is not a time that can be read" in note for note in log.facts.notes)


def test_an_impossible_date_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("when;latency\n" + "2 Mar 2026 06:00:04;3\n" * 9 + "31 Feb 2026 06:00:04;3\n")
    log = latfit.read_log(path)
    assert log.facts.refused.reasons == {"unparseable when": 1}
