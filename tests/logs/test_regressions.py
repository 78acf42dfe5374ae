"""Logs that were once read wrongly: each a case found by review or by use."""

import gzip
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import latfit
from conftest import DATA
from latfit.curve import kaplan_meier
from latfit.errors import LogError
from latfit.outliers import cutoff_verdict, default_cutoff, outlier_ratio
from latfit.sample import LatencySample


def read(tmp_path, text, **options):
    (tmp_path / "log").write_text(text, encoding="utf-8")
    return latfit.read_log(tmp_path / "log", max_refused=1, **options)


def latencies(log, status="completed"):
    return sorted(log.frame.loc[log.frame["status"] == status, "latency"])


def test_rows_without_a_group_are_a_group(tmp_path):
    log = read(tmp_path, "latency,site\n1,NA\n2,EU\n3,\n4,NA\n")
    assert {key: sample.n for key, sample in log.samples("site").items()} == {("EU",): 1, ("NA",): 2, ("unknown",): 1}


def test_words_for_missing_are_missing_where_a_value_is_needed(tmp_path):
    log = read(
        tmp_path, "submitted,ended,site\n2026-03-01 00:00:00,NA,None\n2026-03-01 00:00:00,2026-03-01 00:00:09,x\n"
    )
    assert latencies(log) == [9]
    assert latencies(log, "censored") == [9]
    assert list(log.frame["site"]) == ["x", "None"]


def test_a_key_that_comes_late_is_not_ignored(tmp_path):
    lines = [json.dumps({"latency": i, "padding": "x" * 4500}) for i in range(2000)]  # more than a block
    lines += [json.dumps({"latency": i, "status": "lost"}) for i in range(1000)]
    with pytest.raises(LogError, match=r"status first appears in line 2001; .* --column status=, or"):
        read(tmp_path, "\n".join(lines), unit="s")
    assert read(tmp_path, "\n".join(lines), columns={"status": "status"}, unit="s").counts["lost"] == 1000
    with pytest.raises(LogError, match="there is no column 'state' for status"):
        read(tmp_path, "\n".join(lines), columns={"status": "state"}, unit="s")


def test_a_key_that_comes_late_and_changes_nothing_is_noted(tmp_path):
    answer = {"time": "2026-01-05T08:00:00Z", "level": "info", "method": "GET", "status": 200, "duration_ms": 91.9}
    late = {**answer, "status": 504, "duration_ms": 30000, "error": "deadline exceeded"}
    log = read(tmp_path, "\n".join(map(json.dumps, [*[answer] * 1000, *[late, answer] * 40])))
    assert (log.counts["completed"], log.counts["censored"]) == (1040, 40)
    assert any("'error' may be an outcome" in note for note in log.facts.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start_ms,end_ms\n0,250\n1000,1500\n", [0.25, 0.5]),
        ("start,end\n1700000000,1700000010\n", [10]),
        ("start,end\n1700000000,1700000010000\n", [10]),
        ("start,end\n2026-03-01 00:00:00+01,2026-03-01 01:00:10+02\n", [10]),
        ("start,end\n\n2026-03-01T00:00:00Z,2026-03-01T00:00:10Z\n", [10]),
        ("\n\nlatency\n\n7\n\n8\n", [7, 8]),
        ('"latency"\n7\n', [7]),
        ("response time (s)\n7\n", [7]),
    ],
)
def test_times_and_headers_as_people_write_them(tmp_path, text, expected):
    log = read(tmp_path, text)
    assert latencies(log) == expected
    assert log.facts.refused.count == 0


def test_completed_without_an_end_is_refused(tmp_path):
    log = read(
        tmp_path, "start,end,status\n2026-03-01T00:00:00Z,,completed\n2026-03-01T00:00:00Z,2026-03-01T00:00:05Z,ok\n"
    )
    assert [r.reason for r in log.facts.refused.first] == ["no latency"]


def test_ids_are_text_and_may_be_missing(tmp_path):
    assert len(read(tmp_path, "id,latency\n1,5\n01,5\n001,5\n,5\n,5\n").frame) == 5


def test_a_stray_quote_among_quoted_records(tmp_path):
    rows = ['a,1,"two\nlines"' for _ in range(500)]
    rows[250] = 'a,1,5" disk'
    log = read(tmp_path, "site,latency,text\n" + "\n".join(rows) + "\n")
    assert len(log.frame) + log.facts.refused.count >= 500
    assert log.facts.refused.count <= 1


def test_codes_as_statuses(tmp_path):
    lines = [json.dumps({"latency": 1, "status": code}) for code in (200, 200, None)]
    log = read(tmp_path, "\n".join(lines), statuses={"200": "completed"})
    assert log.counts["completed"] == 2


CONDOR = "{} ({}.000.000) {} Job\n...\n"


def condor(*events):
    return "".join(CONDOR.format(code, job, when) for code, job, when in events)


def test_condor_over_two_months_and_out_of_order(tmp_path):
    text = condor(("000", 1, "11/30 00:00:00"), ("001", 1, "01/02 00:00:00"))
    assert latencies(read(tmp_path, text, year=2021)) == [33 * 86400]
    late = condor(("000", 1, "12/31 23:59:50"), ("001", 2, "01/01 00:00:01"), ("000", 3, "12/31 23:59:59"),
                  ("001", 1, "01/01 00:00:10"), ("001", 3, "01/01 00:00:11"))  # fmt: skip
    assert latencies(read(tmp_path, late)) == [12, 20]


def test_condor_on_a_leap_day(tmp_path):
    log = read(tmp_path, condor(("000", 1, "02/29 23:50:00"), ("001", 1, "03/01 00:10:00")))
    assert latencies(log) == [1200]
    assert log.frame["submitted"][0].strftime("%m-%d") == "02-29"


def test_reused_condor_ids_are_other_jobs(tmp_path):
    twice = [
        ("000", 1, "03/01 00:00:00"),
        ("001", 1, "03/01 00:00:05"),
        ("000", 1, "03/02 00:00:00"),
        ("001", 1, "03/02 00:00:09"),
    ]
    assert latencies(read(tmp_path, condor(*twice))) == [5, 9]


def test_sacct_with_the_fewest_fields(tmp_path):
    text = (
        "JobID|Submit|Start|End|State\n1|2026-03-01T00:00:00|2026-03-01T00:01:00|2026-03-01T00:01:00|CANCELLED by 5\n"
    )
    assert latencies(read(tmp_path, text), "censored") == [60]


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("results.jtl", {"columns": {"status": "success"}}, "--column status=… does not apply"),
        ("jobs.swf", {"unit": "ms"}, "--unit does not apply to swf logs"),
        ("sacct.txt", {"columns": {"latency": "nosuch"}}, "--column latency=… does not apply"),
        ("probes.csv", {"year": 2020}, "--year does not apply to csv logs"),
    ],
)
def test_options_are_honoured_or_refused(name, options, says):
    from conftest import DATA

    with pytest.raises(LogError, match=says):
        latfit.read_log(DATA / name, max_refused=1, **options)


def test_jmeter_can_measure_another_column(shared):
    log = latfit.read_log(shared / "jmeter-slow.jtl", columns={"latency": "Connect"})
    assert log.frame["latency"].median() < 0.1


def test_converting_mixed_json_keeps_every_value(tmp_path):
    lines = [{"latency": 0.1 + 0.2, "code": 200}, {"latency": 2, "code": "x"}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    latfit.convert_log(tmp_path / "x.jsonl", tmp_path / "y.jsonl")
    written = [json.loads(line) for line in (tmp_path / "y.jsonl").read_text().splitlines()]
    assert [row["latency"] for row in written] == [0.1 + 0.2, 2]
    assert [row["code"] for row in written] == ["200", "x"]


def test_converting_text_with_nul_in_it(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"latency": 1, "site": "a\\u0000b"}\n')
    latfit.convert_log(tmp_path / "x.jsonl", tmp_path / "y.csv")
    assert list(latfit.read_log(tmp_path / "y.csv").frame["site"]) == ["a\ufffdb"]


def test_columns_that_come_only_in_a_later_file_are_not_dropped(tmp_path):
    (tmp_path / "a.csv").write_text("latency,site\n1,x\n")
    (tmp_path / "b.csv").write_text("latency,host\n1,x\n")
    latfit.convert_log([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "out.csv")
    assert {"site", "host"} <= set(latfit.read_log(tmp_path / "out.csv").frame.columns)


def test_merging_with_nothing_keeps_the_clock():
    minutes = LatencySample.of([60.0 * i for i in range(1, 30)])
    assert (minutes + LatencySample(lost=3)).resolution == 60


def test_cutoffs_and_verdicts_of_odd_samples():
    zeros = LatencySample.of([0] * 20 + [5, 6, 7], censored=[3, 4])
    assert default_cutoff(zeros).cutoff > 0
    lost = LatencySample.of([float(i) for i in range(1, 900)], lost=100)
    assert cutoff_verdict(lost, outlier_ratio(lost)) == "stable"
    nothing = outlier_ratio(LatencySample.of([], censored=[3] * 99 + [10]), cutoff=10)
    assert nothing.low < 0.5


def test_daylight_saving(tmp_path):
    text = "submitted,latency\n2026-10-25T02:30:00,5\n2026-10-25T12:00:00,6\n"
    log = read(tmp_path, text, timezone="Europe/Paris")
    assert log.frame["submitted"].tolist() == [pd.Timestamp("2026-10-25T11:00:00Z")]
    assert log.facts.refused.count == 1


@pytest.mark.parametrize(
    ("text", "taken", "refused"),
    [
        ("latency,status,site\n1,ok,a\n,,,,\n2,ok,b\n", 2, 1),  # a row of too many empty fields
        ("latency\tstatus\n1\tok\n\t\n2\tok\n", 2, 1),  # and of just as many, whatever else the log holds
        ("latency\tstatus\n1\tok\n\t\nx\tok\n", 1, 2),
        ("\xa0\nlatency,status\n1,ok\n", 1, 0),  # white space above the header
        ("\u2028\nlatency;status\n1;ok\n", 1, 0),
        ("\n" * 60_000 + "latency\n1\n", 1, 0),
        ('latency,site\n1,shut"\n2,"two\nlines"\n3,"more\nlines"\r', 3, 0),  # a stray quote and records of two lines
        ('{"latency": 1, "site": "\\ud800"}\n{"latency": 2, "site": "é"}\n', 2, 0),  # half a surrogate pair
        ('{}\nnull\n{"latency": 1}\n', 1, 2),
        ('{"latency": 1}\nnull\n{"latency": 2}null\n', 1, 2),
        ('{"latency": 1}\n' + '{"a":' * 100_000 + "\n", 1, 1),
        (f"; UnixStartTime: {'1' * 5000}\n1 0 10 100 1 -1 -1 1 100 -1 1 1 1 -1 2 -1 -1 -1\n", 1, 0),
        ("start,end\nnow,2026-03-01T00:00:00\n2026-03-01T00:00:00,2026-03-01T00:00:09\n", 1, 1),
        ("start,end\n2026-03-01T00:00:00,today\n2026-03-01T00:00:00,2026-03-01T00:00:09\n", 1, 1),
        ("time,latency\n1e308,1\n1e308,2\n1700000000,3\n", 1, 2),
    ],
)
def test_rows_in_are_rows_taken_and_refused(tmp_path, text, taken, refused):
    log = read(tmp_path, text)
    assert (len(log.frame), log.facts.refused.count) == (taken, refused)


def test_latencies_near_the_largest_float(tmp_path):
    with pytest.raises(latfit.LatfitError, match="none of the 16 rows can be used; line 2: implausible latency"):
        read(tmp_path, "latency_s\n" + "\n".join(f"{i}.{i}e307" for i in range(1, 16)) + "\n1e-300\n")


def test_parquet_with_columns_of_bytes(tmp_path):
    table = pa.table({"latency": [1.0, 2.0, 3.0], "status": [b"ok", b"lost", b"\xff"], "site": [b"a", None, b"\xe9"]})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    log = latfit.read_log(tmp_path / "x.parquet")
    assert (log.counts["completed"], log.counts["lost"], log.facts.refused.count) == (1, 1, 1)
    assert log.frame["site"][0] == "a"


def test_parquet_groups_by_half_floats(tmp_path):
    table = pa.table({"latency": [1.0, 2.0], "site": pa.array(np.array([1, 2], np.float16))})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    assert len(latfit.read_log(tmp_path / "x.parquet").samples("site")) == 2


def test_parquet_in_a_pipe_or_in_gzip(tmp_path, monkeypatch):
    monkeypatch.setattr("latfit.logs.source.MAX_IN_MEMORY", 100)  # so that it goes to a file
    pa.parquet.write_table(pa.table({"latency": [1.0, 2.0, 3.0]}), tmp_path / "x.parquet")
    (tmp_path / "x.gz").write_bytes(gzip.compress((tmp_path / "x.parquet").read_bytes()))
    assert len(latfit.read_log(tmp_path / "x.gz").frame) == 3


def test_implausible_options_are_refused(tmp_path):
    with pytest.raises(LogError, match="'%d%d' is not a time format"):
        read(tmp_path, "start,latency\n1 2,3\n", time_format="%d%d")
    over_new_year = condor(("000", 1, "12/31 00:00:00"), ("001", 1, "01/01 00:00:05"))
    with pytest.raises(LogError, match="run on from 9999 to 10000"):
        read(tmp_path, over_new_year, year=9999)


def test_many_refused_lines_keep_their_reasons(tmp_path):
    log = read(tmp_path, '{"latency": 1}\n' + "[1]\n" * 3000 + "{\n" * 3000)
    assert dict(log.facts.refused.reasons) == {"not an object": 3000, "unparseable line": 3000}
    assert log.facts.refused.first[0].reason == "not an object: '[1]'"


def test_the_share_that_completed_never_rounds_to_more_than_1():
    rng = np.random.default_rng(1)
    for _ in range(50):
        sample = LatencySample.of(rng.random(30), censored=0.9 * rng.random(5))
        assert kaplan_meier(sample).completed.max() <= 1


def test_json_that_crashes_pyarrow(tmp_path):
    (tmp_path / "log").write_text('null\n{"latency": 1}\n{"latency": 2}\n')
    log = latfit.read_log(tmp_path / "log", format="jsonl")
    assert (len(log.frame), log.facts.refused.first[0].reason) == (2, "not an object: 'null'")


def test_null_characters_of_json_do_not_make_a_binary_csv(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"latency": 1, "a\\u0000": "b\\u0000"}\n{"latency": 2, "a\\u0000": "c"}\n')
    latfit.convert_log(tmp_path / "x.jsonl", tmp_path / "y.csv")
    log = latfit.read_log(tmp_path / "y.csv")
    assert log.counts["completed"] == 2
    assert list(log.frame["a\ufffd"]) == ["b\ufffd", "c"]


def test_the_first_refused_line_keeps_its_reason_among_many(tmp_path):
    rows = ["5,weird", *["abc,completed"] * 1500, *["1,completed"] * 20_000]
    (tmp_path / "x.csv").write_text("latency,status\n" + "\n".join(rows) + "\n")
    refused = latfit.read_log(tmp_path / "x.csv").facts.refused
    assert refused.count == 1501
    assert "'weird'" in refused.earliest.reason


def test_the_unit_of_epochs_is_settled_by_the_first_rows_that_have_one(tmp_path):
    """Of a log whose later blocks alone would be read as seconds."""
    rows = (
        [",1"] * 20_000
        + [f"{1767225600000 + k},1" for k in range(120_000)]
        + ["0,1", "0,1", "1767225600000,1"] * 90_000
    )
    (tmp_path / "x.csv").write_text("submitted,latency\n" + "\n".join(rows) + "\n")
    log = latfit.read_log(tmp_path / "x.csv")
    assert (log.table.n, log.facts.refused.count) == (410_000, 0)


def test_times_beyond_the_calendar_are_refused(tmp_path):
    (tmp_path / "x.csv").write_text(
        "submitted,latency\n" + "2026-03-01T00:00:00Z,1\n" * 9 + "12026-03-01T00:00:00Z,1\n"
    )
    facts, counts = latfit.convert_log(tmp_path / "x.csv", tmp_path / "y.jsonl")
    assert (counts["completed"], facts.refused.count) == (9, 1)


def test_a_bare_quote_beside_a_record_of_two_lines(tmp_path):
    (tmp_path / "x.csv").write_text('latency,site,note\n1,"two\nlines",shut"\n2,a,b\n3,a,b,too many\n')
    log = latfit.read_log(tmp_path / "x.csv", max_refused=1.0)
    assert list(log.frame["latency"]) == [1, 2]
    assert [refusal.line for refusal in log.facts.refused.first] == [5]


@pytest.mark.slow
def test_brackets_nested_in_their_thousands_end_in_a_line(tmp_path, run):
    deep = '{"latency": 1, "x": ' + "[" * 20_000 + "]" * 20_000 + "}\n"
    objects = '{"latency": 1, "x": ' + '{"a":' * 20_000 + "1" + "}" * 20_001 + "\n"
    for text in (deep, objects, f"[{deep.strip()}]", f'{{"latency": 2}}\n{deep}{{"latency": 3}}\n'):
        (tmp_path / "x.jsonl").write_text(text)
        done = run("outliers", tmp_path / "x.jsonl")
        assert done.returncode in (0, 1)
        assert "Traceback" not in done.stderr
    assert read(tmp_path, f'{{"latency": 2}}\n{deep}{{"latency": 3}}\n').facts.refused.count == 1


def test_a_column_renamed_does_not_take_the_place_of_another(tmp_path):
    log = read(tmp_path, "rtt,log_latency,latency\n1,2,3\n", columns={"latency": "rtt"}, unit="s")
    assert log.frame.drop(columns=["submitted", "status"]).iloc[0].astype(float).to_dict() == {
        "latency": 1, "log_latency": 2, "log_log_latency": 3,
    }  # fmt: skip


NEVER = ["0", "-1", "4294967294", "4294967295", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
NEVER += ["1970-01-01 01:00:00", "0000-00-00 00:00:00", "Unknown"]  # midnight of another zone, MySQL, Slurm


@pytest.mark.parametrize("never", NEVER)
def test_an_end_of_another_age_is_missing(tmp_path, never):
    end = "1700000030" if never[-1] in "0123456789" and ":" not in never else "2023-11-14T22:13:50Z"
    end = end.removesuffix("Z" if " " in never else "").replace("T", " " if " " in never else "T")
    text = f"submit,start\n1700000000,{never}\n1700000010,{end}\n1700000020,{end}\n"
    log = read(tmp_path, text, columns={"submitted": "submit", "ended": "start"})
    assert latencies(log) == [10, 20]
    assert latencies(log, "censored") == [30]
    log = read(tmp_path, "start,end\n0,1700000030\n1700000010,1700000030\n")
    assert (latencies(log), log.facts.refused.reasons) == ([20], {"no latency": 1})
    log = read(tmp_path, "start,latency\n0,1\n1700000010,2\n")
    assert log.frame["submitted"].isna().tolist() == [True, False]
    assert latencies(read(tmp_path, "start,end\n0,7\n100,109\n")) == [7, 9]  # a clock of its own begins at 0


def test_duplicate_ids_suggest_the_fix(tmp_path):
    (tmp_path / "x.csv").write_text("jobid,latency\n" + "".join(f"{job},5\n" for job in (1, 1, 2, 2, 3, 3, 4, 4, 5, 6)))
    with pytest.raises(
        LogError, match=r"more than 10%\. --column id= takes rows that repeat an id \(column 'jobid'\)"
    ) as e:
        latfit.read_log(tmp_path / "x.csv")
    assert "--max-refused" not in str(e.value)


def test_no_hint_names_a_column_without_evidence(tmp_path, run):
    rows = "".join(f"{i},{1700000000 + i},{3.7 * (i * 7 % 5) + 1},x{i},{i % 2},text\n" for i in range(9))
    (tmp_path / "x.csv").write_text("n,when,build,host,flag,comment\n" + rows)
    with pytest.raises(LogError, match=r"--column latency=NAME"):
        latfit.read_log(tmp_path / "x.csv")
    pd.read_csv(tmp_path / "x.csv").to_parquet(tmp_path / "x.parquet")
    pd.read_csv(tmp_path / "x.csv").to_json(tmp_path / "x.jsonl", orient="records", lines=True)
    for name in ("x.parquet", "x.jsonl"):
        with pytest.raises(LogError, match=r"--column latency=NAME"):
            latfit.read_log(tmp_path / name)


def test_a_format_says_that_it_is_a_queue(tmp_path):
    queues = {name for name, kind in latfit.logs.FORMATS.items() if kind.queue}
    assert {"swf", "gwf", "sacct", "htcondor"} <= queues
    assert not {"csv", "jsonl", "parquet", "jmeter"} & queues
    facts = latfit.read_log(DATA / "jobs.swf", max_refused=1).facts
    assert (facts.kind, facts.queue) == ("jobs", True)
    facts = latfit.read_log([DATA / "probes.csv", DATA / "jobs.swf"], max_refused=1).facts
    assert (facts.kind, facts.queue) == ("jobs", True)
    facts = latfit.read_log(DATA / "probes.csv", max_refused=1).facts
    assert (facts.kind, facts.queue) == ("probes", False)


@pytest.mark.parametrize("value", ['"\\ud800"', "9" * 400, '"' + "9" * 400 + '"'])
def test_json_arrays_with_unrepresentable_values(tmp_path, value):
    text = f'[{{"latency": 1, "x": {value}}}, {{"latency": {value}, "x": 2}}, {{"latency": 3, "x": "\\ud800y"}}]'
    log = read(tmp_path, text)
    assert latencies(log)[:2] == [1, 3]
    with pytest.raises(LogError, match="no column looks like a latency"):
        read(tmp_path, text.replace("latency", "measured"))


def test_a_probe_whose_number_of_a_job_no_column_holds_is_refused(tmp_path):
    lines = ['{"latfit": "probe", "run": "r", "target": "command", "kind": "jobs"}']
    for number, job in enumerate((1, 49223372036854775808, 3)):
        lines.append(f'{{"probe": {number}, "job": {job}, "attempt": 1, "submitted": "2026-03-01T00:00:00Z", "t": 0}}')
        lines.append(f'{{"end": {number}, "status": "completed", "latency": {number + 1}, "t": 5}}')
    (tmp_path / "log").write_text("\n".join(lines))
    log = latfit.read_log(tmp_path / "log", max_refused=1)
    assert latencies(log) == [1, 3]
    assert log.frame["job"].tolist() == [1, 3]
    assert [one.line for one in log.facts.refused.first] == [4, 5]


def test_a_time_beyond_the_calendar_of_python_is_refused_in_words(tmp_path):
    """One far beyond the years that Python can write, among times that Arrow reads at once."""
    path = tmp_path / "log.csv"
    path.write_text("time,latency\n2026-03-01T00:00:00Z,1\n29250-01-01T00:00:00Z,2\n-9999-01-01T00:00:00Z,3\n")
    log = latfit.read_log(path, max_refused=1)
    assert log.counts["completed"] + log.facts.refused.count == 3


def test_a_submission_before_every_calendar_is_refused(tmp_path):
    """The end of year 1 less a latency of a day."""
    path = tmp_path / "log.csv"
    path.write_text(
        "metric_name,timestamp,metric_value,status\n"
        "http_req_duration,0001-03-01T00:00:00Z,5,200\nhttp_req_duration,0001-01-01T00:00:00Z,86400000,200\n"
    )
    log = latfit.read_log(path, max_refused=1)
    assert (log.counts["completed"], log.facts.refused.count) == (1, 1)


@pytest.mark.slow
def test_integers_beyond_all_floats_are_not_latencies(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"latency": {k}, "serial": {10**400 + k}}}\n' for k in range(1, 20)))
    assert "serial" not in latfit.analyze(latfit.read_log(path), resamples=0, test=False).seen.columns


ROUND_TRIPS = {
    "no times, and a column of the same name": "Latency,elapsed_ms,state\n35,40,ok\n61,70,failed\n48,50,ok\n",
    "no status": "started,duration_s\n2026-03-02T06:00:00.25Z,1.5\n2026-03-02T06:00:01Z,0.1\n2026-03-02T06:00:02Z,3\n",
    "lost and censored": "t,rtt_ms,result\n1772431200123,40,ok\n1772431201123,,lost\n1772431202123,900,timeout\n",
    "job and bytes": "job,wait_s,finish_code,read_bytes\na,10.25,0,472648400\nb,40,1,472648401\nc,31,0,472648402\n",
}


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
@pytest.mark.parametrize("text", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_a_converted_log_is_read_as_it_was(tmp_path, text, ending):
    (tmp_path / "x.csv").write_text(text)
    options = {"columns": {"latency": "Latency"}, "unit": "ms"} if text.startswith("Latency") else {}
    latfit.convert_log(tmp_path / "x.csv", tmp_path / f"y{ending}", **options)
    before = latfit.read_log(tmp_path / "x.csv", **options).frame
    after = latfit.read_log(tmp_path / f"y{ending}").frame
    assert list(after.columns) == list(before.columns)
    for name in before.columns:
        assert after[name].astype(str).tolist() == before[name].astype(str).tolist()


def test_commands_without_groups_skip_the_logs_extra_columns(tmp_path):
    text = "id,site,latency,status\n" + "".join(f"{i},s{i % 3},{i + 0.5},completed\n" for i in range(30))
    (tmp_path / "x.csv").write_text(text + "7,s1,9,completed\n")
    whole = latfit.read_log(tmp_path / "x.csv", where=["site=s1"])
    bare = latfit.read_log(tmp_path / "x.csv", where=["site=s1"], own_columns=False)
    assert list(bare.frame.columns) == ["submitted", "latency", "status", "site"]
    assert bare.frame["latency"].tolist() == whole.frame["latency"].tolist()
    assert bare.facts.refused.reasons == whole.facts.refused.reasons == {"duplicate id": 1}


def test_a_log_of_other_centuries_has_a_period(tmp_path, run):
    rows = "".join(f"1{600 + i}-03-02T06:00:00Z,{1 + i % 7}.5,completed\n" for i in range(40))
    (tmp_path / "x.csv").write_text(f"submitted,latency,status\n{rows}")
    document = json.loads(run("analyze", tmp_path / "x.csv", "--json", "--resamples", "0").stdout)["log"]
    assert document["period"]["start"] == "1600-03-02T06:00:00Z"
