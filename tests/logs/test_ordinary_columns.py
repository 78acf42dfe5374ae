"""Columns as people call them: outcomes, latencies and times that no canonical name announces."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.sample import Tally

N = 60
LATENCY = np.round(np.random.default_rng(3).lognormal(2, 0.8, N), 3)
WHEN = pd.Timestamp("2026-03-01 08:00:00") + pd.to_timedelta(np.arange(N) * 7, unit="s")
BAD = np.arange(N) % 12 == 5  # five of them


def read(tmp_path, kind="csv", **columns):
    table, path = pd.DataFrame(columns), tmp_path / f"log.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "jsonl":
        table.to_json(path, orient="records", lines=True, date_format="iso")
    else:
        table.to_parquet(path)
    return latfit.read_log(path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("name", "cells", "status"),
    [
        ("exit_code", np.where(BAD, 1, 0), "failed"),
        ("rc", np.where(BAD, 124, 0), "censored"),  # timeout(1)
        ("returncode", np.where(BAD, -9, 0), "failed"),
        ("error", np.where(BAD, "connection reset", ""), "failed"),
        ("error_result", np.where(BAD, "backendError", ""), "failed"),
        ("Error Message", np.where(BAD, "context deadline exceeded", ""), "censored"),
        ("timed_out", BAD, "censored"),
        ("failed", BAD.astype(int), "failed"),
        ("is_success", ~BAD, "failed"),
        ("dropped", BAD, "lost"),
        ("result", np.where(BAD, "KO", "OK"), "failed"),
        ("state", np.where(BAD, "hung", "ok"), "censored"),
        ("state", np.where(BAD, "Stuck", "done"), "censored"),
        ("health state", np.where(BAD, "UNRESPONSIVE", "OK"), "censored"),
        ("rcode", np.where(BAD, "SERVFAIL", "NOERROR"), "failed"),
        ("dns_rcode", np.where(BAD, "FORMERR", np.where(np.arange(N) % 2, "NXDOMAIN", "NOERROR")), "failed"),
        ("rcode", np.where(BAD, "REFUSED", "NXDOMAIN"), "failed"),
    ],
)
def test_outcomes_by_other_names(name, cells, status, kind, tmp_path):
    log = read(tmp_path, kind, latency=LATENCY, **{name: cells})
    assert log.counts == {"completed": 55, "failed": 0, "censored": 0, "lost": 0} | {status: 5}
    assert f"column {name!r} is read as status" in log.facts.notes


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("error", LATENCY / 100),  # what the measurement may be off by
        ("timeout", np.full(N, 30)),  # what was set
        ("dropped", np.arange(N) % 2),  # how many packets were
        ("failed", np.arange(N)),
        ("rc", np.where(BAD, "release", "beta")),
        ("passed", WHEN.strftime("%Y-%m-%d")),
    ],
)
def test_columns_that_are_not_outcomes(name, cells, tmp_path):
    assert read(tmp_path, latency=LATENCY, **{name: cells}).counts["completed"] == N


def test_one_of_two_columns_of_outcomes_is_used_and_the_other_named(tmp_path):
    log = read(tmp_path, latency=LATENCY, failed=BAD, timed_out=~BAD)
    assert log.counts["failed"] == 5
    (note,) = (note for note in log.facts.notes if "may be an outcome" in note)
    assert "--column status=timed_out" in note
    assert log.facts.outcome_columns == ("timed_out",)


@pytest.mark.parametrize("name", ["lat_sec", "time_s", "fetch (s)", "walltime", "queue_time"])
def test_latencies_by_other_names(name, tmp_path):
    log = read(tmp_path, **{name: LATENCY, "req_ts": WHEN, "host": "a"})
    assert log.sample() == latfit.LatencySample.of(LATENCY)
    assert log.frame["submitted"].notna().all()


@pytest.mark.parametrize(
    "columns",
    [
        {"since_start_s": np.cumsum(LATENCY), "fetch_ms": LATENCY},  # what merely rises is a clock
        {"limit_s": np.full(N, 30), "fetch_ms": LATENCY},  # what is always the same is a setting
    ],
)
def test_which_of_two_columns_with_a_unit(columns, tmp_path):
    assert read(tmp_path, **columns).sample().completed == Tally.of(LATENCY / 1000)


def test_two_columns_with_a_unit_cannot_be_told_apart(tmp_path):
    with pytest.raises(latfit.LatfitError, match="--column latency=fetch_ms, or --column latency=store_ms"):
        read(tmp_path, fetch_ms=LATENCY, store_ms=LATENCY[::-1])


@pytest.mark.parametrize("word", ["timeout", "Timed out", "lost", "inf"])
def test_a_word_in_place_of_a_latency(word, tmp_path):
    log = read(tmp_path, latency=np.where(BAD, word, LATENCY.astype(str)))
    assert (log.counts["lost"], log.counts["completed"]) == (5, 55)
    assert any("for a latency: they are read as lost probes" in note for note in log.facts.notes)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "head",
    [
        "# probes of the grid\n# site: a, b, c\nlatency_ms,status\n",
        "\n#\n\n# latency_ms,status\nlatency_ms,status\n",
        "# probes\n#latency_ms,status\n",  # as numpy.savetxt writes it
        "## latency_ms, status\n\n",
    ],
)
def test_comments_above_the_rows(head, end, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes((head + "250,ok\n3,timeout\nx,ok\n").replace("\n", end).encode())
    log = latfit.read_log(path, max_refused=1.0)
    assert (log.counts["completed"], log.counts["censored"]) == (1, 1)
    assert log.sample().completed == Tally.of([0.25])
    assert log.facts.refused.first[0].line == 1 + head.count("\n") + 2


def test_a_comment_above_one_column_of_numbers(tmp_path):
    for comment, seconds in (("# latency_ms", 0.25), ("# collected by me", 250.0)):
        (tmp_path / "x.csv").write_text(f"{comment}\n250\n")
        unit = {} if "_ms" in comment else {"unit": "s"}
        assert latfit.read_log(tmp_path / "x.csv", **unit).sample().completed == Tally.of([seconds])


def test_numbers_without_a_name_have_no_unit_by_name(tmp_path):
    (tmp_path / "x.csv").write_text("81\n151\n40\n188\n97\n63\n")
    with pytest.raises(latfit.LatfitError, match="--unit ms, or --unit s"):
        latfit.read_log(tmp_path / "x.csv")


@pytest.mark.parametrize("when", ["2026-03-01 08:00:12", "2026-03-01T08:00:12Z", "1772352012", "1772352012000"])
def test_rows_of_a_time_and_a_number_need_no_header(when, tmp_path):
    (tmp_path / "x.csv").write_text(f"{when},37.5\n{when},2\n")
    log = latfit.read_log(tmp_path / "x.csv", unit="s")
    assert log.sample().completed == Tally.of([37.5, 2])
    assert (log.frame["submitted"] == pd.Timestamp("2026-03-01 08:00:12Z")).all()


def test_several_numbers_without_a_header_are_not_guessed_at(tmp_path):
    (tmp_path / "x.csv").write_text("1,37.5\n2,2\n")
    with pytest.raises(latfit.LatfitError, match=r"column1 \(1\), column2 \(37.5\)"):
        latfit.read_log(tmp_path / "x.csv")


def test_a_time_of_day_without_its_date_is_not_used(tmp_path):
    log = read(tmp_path, Date=WHEN.strftime("%Y-%m-%d"), Time=WHEN.strftime("%H:%M:%S"), latency=LATENCY)
    assert log.counts["completed"] == N
    assert log.frame["submitted"].isna().all()
    assert any("times of day without a date" in note for note in log.facts.notes)


def test_keys_that_come_later_in_json_lines_change_nothing(tmp_path):
    path = tmp_path / "x.jsonl"
    lines = [f'{{"fetch_ms": {x}, "error": null}}' for x in LATENCY]
    path.write_text("\n".join([*lines, '{"fetch_ms": 3, "error": "reset", "note": "new"}']))
    assert latfit.read_log(path).counts == {"completed": N, "failed": 1, "censored": 0, "lost": 0}


def test_comments_with_nothing_below_them(tmp_path):
    (tmp_path / "x.csv").write_text("# latency\n\n")
    with pytest.raises(latfit.LatfitError):
        latfit.read_log(tmp_path / "x.csv", format="csv")


@pytest.mark.parametrize(
    ("name", "good", "bad", "status"),
    [
        ("http.response.status_code", 200, 503, "failed"),
        ("sc-status", 200, 504, "censored"),
        ("res.statusCode", 200, 500, "failed"),
        ("answer", 204, 502, "failed"),  # by its values
        ("grpc_code", "OK", "UNAVAILABLE", "failed"),
        ("job_status", "Succeeded", "Failed", "failed"),
        ("task_state", "done", "CANCELLED by 1001", "censored"),
        ("probe_success", 1, 0, "failed"),
        ("is_timeout", "false", "true", "censored"),
        ("sqlstate", "00000", "57014", "failed"),
        ("error.type", "", "ConnectTimeout", "censored"),
        ("ExitCode", "0:0", "9:0", "failed"),
        ("reply", "HTTP/1.1 200 OK", "HTTP/1.1 504 Gateway Timeout", "censored"),
        ("event", "rpc_ok", "rpc_timeout", "censored"),
        ("level", "info", "error", "failed"),
        ("level", 30, 50, "failed"),  # of pino and bunyan
        ("note", "ok", "connection reset by peer", "failed"),
    ],
)
def test_outcomes_by_the_last_words_of_a_name_or_by_values(name, good, bad, status, tmp_path):
    log = read(tmp_path, latency=LATENCY, **{name: [bad if one else good for one in BAD]})
    assert log.counts == {"completed": 55, "failed": 0, "censored": 0, "lost": 0} | {status: 5}


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("response_length", np.where(BAD, 0, 300)),  # numbers need a name
        ("rows", np.where(BAD, 404, 200 + np.arange(N))),
        ("level", np.where(BAD, "high", "low")),
        ("enabled", BAD),
        ("zone", np.where(BAD, "lost island", "main land")),
    ],
)
def test_values_that_are_not_outcomes(name, cells, tmp_path):
    assert read(tmp_path, latency=LATENCY, **{name: cells}).counts["completed"] == N


def test_a_status_without_failures_is_not_preferred(tmp_path):
    log = read(tmp_path, status="finished", http_code=np.where(BAD, 503, 200), latency=LATENCY)
    assert log.counts["failed"] == 5
    log = read(tmp_path, status=np.where(BAD, "failed", "ok"), http_code=np.where(BAD, 200, 503), latency=LATENCY)
    assert log.counts["failed"] == 5  # the name decides, and the other is named
    assert any("'http_code' may be an outcome" in note for note in log.facts.notes)


@pytest.mark.parametrize("cell", ["-", "<none>", "\\N", "NaT", "*", "Request timed out.", ""])
def test_placeholders_in_the_latency_column(cell, tmp_path):
    log = read(tmp_path, ts=WHEN, rtt_ms=np.where(BAD, cell, LATENCY.astype(str)))
    assert (log.counts["lost"], log.counts["completed"]) == (5, 55)


def test_minus_one_means_lost(tmp_path):
    log = read(tmp_path, latency_ms=np.where(BAD, -1, LATENCY))
    assert (log.counts["lost"], log.counts["completed"]) == (5, 55)
    log = latfit.from_frame(pd.DataFrame({"latency": np.where(BAD, -np.arange(N), LATENCY)}), max_refused=1)
    assert (log.counts["lost"], log.facts.refused.count) == (0, 5)


def test_a_timeout_without_a_time_is_lost(tmp_path):
    log = read(tmp_path, latency=np.where(BAD, np.nan, LATENCY), status=np.where(BAD, "timeout", "ok"))
    assert (log.counts["lost"], log.counts["completed"]) == (5, 55)
    assert "outcomes by 'status': ok (55) completed; timeout (5) lost" in log.facts.notes


def test_attempts_of_one_request_are_probes_of_their_own(tmp_path):
    log = read(tmp_path, request_id=np.arange(N) // 2, attempt=np.arange(N) % 2, latency=LATENCY, status="ok")
    assert log.counts["completed"] == N


def test_a_repeated_name_is_not_an_id(tmp_path):
    log = read(tmp_path, task_id=np.arange(N) % 3, latency=LATENCY)
    assert log.counts["completed"] == N
    assert "column 'task_id' repeats its values: it is not an id of probes" in log.facts.notes


def test_ids_that_are_lists_or_have_no_name(tmp_path):
    (tmp_path / "x.jsonl").write_text("".join(f'{{"id": [1, 2], "latency": {x}}}\n' for x in LATENCY))
    assert latfit.read_log(tmp_path / "x.jsonl").counts["completed"] == N
    (tmp_path / "x.csv").write_text(",latency\n" + "".join(f"1,{x}\n" for x in LATENCY))
    log = latfit.read_log(tmp_path / "x.csv")
    assert log.counts["completed"] == N
    assert not any("repeats" in note for note in log.facts.notes)


def test_queue_and_start_times_give_a_wait(tmp_path):
    log = read(tmp_path, queued_at=WHEN, started_at=WHEN + pd.Timedelta("5s"), wait=LATENCY)
    assert log.frame["submitted"].iloc[0] == WHEN[0].tz_localize("UTC")


@pytest.mark.parametrize("name", ["min", "p99_ms", "max_ms", "timeout_ms", "interval_s"])
def test_summaries_and_settings_are_not_latencies(name, tmp_path):
    with pytest.raises(latfit.LatfitError, match="no column looks like a latency"):
        read(tmp_path, time=WHEN, **{name: LATENCY})


@pytest.mark.parametrize(
    "text",
    [
        "latency_ms;x\n203;a\n392;b\n999;c\n1.779;d\n",  # German
        "latency_ms\tx\n203\ta\n392\tb\n999\tc\n1,779\td\n",
        'latency_ms,x\n203,a\n392,b\n999,c\n"1,779",d\n',
        "latency_ms;x\n203;a\n392;b\n999;c\n1'779;d\n",
    ],
)
def test_marks_of_thousands_are_an_error(text, tmp_path):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(latfit.LatfitError, match="mark of thousands"):
        latfit.read_log(tmp_path / "x.csv")


@pytest.mark.parametrize("first", ["203.125", "0.203", "1.203"])
def test_three_decimals_are_not_thousands_separators(first, tmp_path):
    (tmp_path / "x.csv").write_text(f"latency;x\n{first};a\n392.250;b\n999;c\n1.779;d\n")
    assert latfit.read_log(tmp_path / "x.csv", unit="s").frame["latency"].tolist() == [float(first), 392.25, 999, 1.779]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_unreadable_times_do_not_affect_latencies(kind, tmp_path):
    log = read(tmp_path, kind, date=WHEN.strftime("%a %b %d %H:%M:%S CET %Y"), latency=LATENCY)
    assert log.counts["completed"] == N
    assert any("'date' is not used: 'Sun Mar 01 08:00:00 CET 2026'" in note for note in log.facts.notes)
    path = tmp_path / f"log.{kind}"
    known = latfit.read_log(path, time_format="%a %b %d %H:%M:%S CET %Y").frame["submitted"]
    assert known.iloc[0] == WHEN[0].tz_localize("UTC")
    with pytest.raises(latfit.LatfitError, match="unparseable date"):
        latfit.read_log(path, columns={"submitted": "date"})


@pytest.mark.parametrize("pair", ["createdAt stoppedAt", "startDate stopDate", "date_created date_done", "start stop"])
def test_pairs_of_times(pair, tmp_path):
    begun, ended = pair.split()
    log = read(tmp_path, **{begun: WHEN, ended: WHEN + pd.to_timedelta(LATENCY, unit="s")})
    assert log.frame["latency"].to_numpy() == pytest.approx(LATENCY, abs=1e-6)


def test_times_without_separators(tmp_path):
    stamp = "%Y%m%d%H%M%S"
    log = read(
        tmp_path, start=WHEN.strftime(stamp), end=(WHEN + pd.to_timedelta(9 + np.arange(N) % 3, "s")).strftime(stamp)
    )
    assert set(log.frame["latency"]) == {9.0, 10.0, 11.0}
    assert log.frame["submitted"].iloc[0] == WHEN[0].tz_localize("UTC")


def test_pairs_of_times_without_an_offset_or_date_are_refused(tmp_path):
    with pytest.raises(latfit.LatfitError, match="only 'created' has an offset from UTC"):
        read(
            tmp_path,
            created=WHEN.strftime("%Y-%m-%dT%H:%M:%SZ"),
            finished=(WHEN + pd.to_timedelta(LATENCY, unit="s")).strftime("%Y-%m-%dT%H:%M:%S"),
        )
    days = 46083.25 + np.arange(N) / 1000 + 1e-5
    with pytest.raises(latfit.LatfitError, match="a day as spreadsheets count them"):
        read(tmp_path, Start=days, End=days + LATENCY / 86400)


def test_a_column_of_numbers_without_one(tmp_path):
    (tmp_path / "x.csv").write_text("submitted,latency\ninf,1\nnan,2\n")
    assert latfit.read_log(tmp_path / "x.csv", max_refused=1).counts["completed"] >= 1


def test_a_frame_with_names_of_several_levels():
    frame = pd.DataFrame({("probe", "latency_ms"): LATENCY, ("probe", "ok"): ~BAD})
    assert latfit.from_frame(frame).counts["failed"] == 5


@pytest.mark.slow
def test_quick_errors_without_outcomes_withhold_the_timeout(tmp_path, run):
    """One in five returns at once with an error that the log does not show: the formula would cancel at 4 ms."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(600) < 0.2, rng.uniform(0.003, 0.005, 600), rng.lognormal(-1, 0.5, 600))
    pd.DataFrame({"latency": x.round(6)}).to_csv(tmp_path / "x.csv", index=False)
    told = " ".join(run("analyze", tmp_path / "x.csv", "--resamples", "0").stdout.split())
    assert "State which outcomes are errors first" in told
    assert "--column status=NAME" in told
    assert "withheld" in run("timeout", tmp_path / "x.csv", "--json").stdout
    assert '"verdict": "finite"' in run("timeout", tmp_path / "x.csv", "--column", "status=", "--json").stdout


@pytest.mark.slow
def test_columns_known_only_afterwards_are_not_populations(tmp_path):
    rng = np.random.default_rng(6)
    x, out = rng.lognormal(0, 0.5, 900), rng.random(900) < 0.1
    path = tmp_path / "x.csv"
    pd.DataFrame({
        "submitted": pd.Timestamp("2026-03-01") + pd.to_timedelta(np.arange(900) * 60, unit="s"),
        "latency": np.where(out, 60.0, x), "status": np.where(out, "timeout", "ok"),
        "event": np.where(out, "call_failed", "call_ok"), "severity": np.where(out, "high", "low"),
        "queue_time": np.where(out, 59.0, x / 2), "site": rng.choice(list("abc"), 900),
    }).to_csv(path, index=False)  # fmt: skip
    assert latfit.analyze(latfit.read_log(path), resamples=0, test=False).timeout.verdict == "finite"


@pytest.mark.parametrize("name", ["jobId", "sql_state_code", "ttl", "LOG-END-OFFSET"])
def test_the_hint_names_no_id_or_code(name, tmp_path):
    with pytest.raises(latfit.LatfitError, match="Name it: --column latency=NAME"):
        read(tmp_path, **{name: LATENCY})


@pytest.mark.parametrize("word", ["killed", "failed", "aborted", "stuck", "no response", "lost"])
def test_a_submission_without_an_end_is_not_dropped_whatever_its_word(word, tmp_path):
    ended = (WHEN + pd.to_timedelta(LATENCY, unit="s")).astype(str).where(~BAD, "")
    log = read(tmp_path, start=WHEN, end=ended, state=np.where(BAD, word, "done"))
    assert (log.counts["completed"], log.counts["censored"] + log.counts["lost"]) == (55, 5)
    assert log.facts.refused.count == 0
    if word in ("killed", "failed", "aborted"):
        assert "5 rows failed at an unknown time: they are read as lost probes" in log.facts.notes


def test_failures_without_a_latency_are_lost_and_a_good_answer_without_one_is_refused(tmp_path):
    latency = np.where(BAD | (np.arange(N) == 0), np.nan, LATENCY)
    log = read(tmp_path, start=WHEN, runtime=latency, status=np.where(BAD, "FAILURE", "SUCCESS"))
    assert (log.counts["completed"], log.counts["lost"]) == (54, 5)
    assert log.facts.refused.reasons == {"no latency": 1}


@pytest.mark.parametrize(("factor", "unit"), [(1, "s"), (1e3, "ms"), (1e6, "us"), (1 / 60, "min")])
def test_a_latency_has_the_unit_in_which_it_is_the_end_minus_the_start(factor, unit, tmp_path):
    ended = WHEN + pd.to_timedelta(LATENCY, unit="s")
    log = read(tmp_path, start=WHEN, end=ended, duration=LATENCY * factor)
    assert log.frame["latency"].to_numpy() == pytest.approx(LATENCY)
    assert any(note.startswith(f"column 'duration' is read as the latency in {unit}") for note in log.facts.notes)


def test_the_latency_of_cloudwatch_is_in_milliseconds(tmp_path):
    assert read(tmp_path, **{"@timestamp": WHEN, "@duration": LATENCY}).frame["latency"].max() == LATENCY.max() / 1000


def test_tokens_and_sizes_are_not_codes_and_a_total_is_the_latency(tmp_path):
    log = read(tmp_path, ts=WHEN, ttft_ms=LATENCY / 9, total_ms=LATENCY, tokens=np.where(BAD, 0, 200))
    assert log.counts["completed"] == N
    assert log.frame["latency"].max() == LATENCY.max() / 1000


def test_a_duplicate_column_is_not_guessed(tmp_path):
    (tmp_path / "log.csv").write_text("time,time,status\n1,2,ok\n3,4,ok\n")
    with pytest.raises(latfit.LatfitError, match="two columns are called 'time'"):
        latfit.read_log(tmp_path / "log.csv", columns={"latency": "time"})


@pytest.mark.parametrize(
    ("name", "cells"), [("NODES", BAD.astype(int)), ("stddev_exec", LATENCY), ("cpus", np.arange(N) % 7)]
)
def test_impossible_latency_columns_are_not_suggested(name, cells, tmp_path):
    with pytest.raises(latfit.LatfitError, match="Name it: --column latency=NAME"):
        read(tmp_path, **{name: cells, "site": "a"})


def test_a_first_line_with_data_is_reported(tmp_path):
    (tmp_path / "log.csv").write_text("2026-03-02 06:00:33,404 INFO task 0 finished\n2026-03-02 06:00:34,404 INFO b\n")
    with pytest.raises(latfit.LatfitError, match="no header names the columns"):
        latfit.read_log(tmp_path / "log.csv")


@pytest.mark.parametrize("mark", ["", "-", "unknown"])
def test_empty_values_caused_by_outcomes_are_not_a_group(mark, tmp_path):
    rng, n = np.random.default_rng(5), 400
    bad = rng.random(n) < 0.06
    upstream = np.where(bad, mark, rng.choice(["a", "b"], n))
    log = read(tmp_path, latency=np.where(bad, 50, np.round(rng.lognormal(2, 0.8, n), 2)),
               status=np.where(bad, "timeout", "ok"), upstream=upstream)  # fmt: skip
    made = latfit.analyze(log, laws=["exponential"], resamples=0, test=False)
    assert made.decision.evidence.mixing is None
    assert made.timeout.verdict == "finite"


def test_a_group_without_completions_is_still_a_group(tmp_path):
    rng, n = np.random.default_rng(6), 400
    site = rng.choice(["a", "b", "dead"], n, p=[0.47, 0.47, 0.06])
    bad = site == "dead"
    log = read(tmp_path, latency=np.where(bad, 50, np.round(rng.lognormal(2, 0.8, n), 2)),
               status=np.where(bad, "timeout", "ok"), site=site)  # fmt: skip
    result = latfit.analyze(log, laws=["exponential"], resamples=0, test=False)
    assert result.decision.evidence.columns_used == ("site",)
    assert result.timeout.retry is None or result.timeout.retry.worst_loss <= 0.3


def test_a_latency_with_decimal_commas_is_known_by_its_unit(tmp_path):
    (tmp_path / "log.csv").write_text(
        "Zeit;Antwortzeit_ms;Status\n02.03.2026 06:00:02;139,75;OK\n02.03.2026 06:00:01;71,5;OK\n"
    )
    log = latfit.read_log(tmp_path / "log.csv")
    assert log.frame["latency"].tolist() == [0.13975, 0.0715]
    assert str(log.frame["submitted"].iloc[0]) == "2026-03-02 06:00:02+00:00"


def test_dates_of_ambiguous_order_are_reported(tmp_path):
    when = ["3/2/2026 06:00:01 AM", "3/2/2026 06:00:02 AM"]
    with pytest.raises(latfit.LatfitError, match="may have the day or the month first"):
        read(tmp_path, **{"Request Sent On": when, "latency": [1, 2]})
    known = read(tmp_path, **{"Request Sent On": ["3/2/2026 6:00:01 AM", "3/22/2026 6:00:02 PM"], "latency": [1, 2]})
    assert str(known.frame["submitted"].iloc[1]) == "2026-03-22 18:00:02+00:00"


def test_empty_values_caused_by_outcomes_are_distributed_in_any_order(tmp_path):
    """Sorted by latency, those without one come last: they are not all of the last row's site."""
    rng = np.random.default_rng(8)
    x = np.append(np.sort(rng.lognormal(2, 0.6, 400)).round(3), np.full(60, np.nan))
    site = np.append(rng.choice(["a", "b", "c"], 400), np.full(60, ""))
    log = read(tmp_path, latency=x, status=np.where(np.isnan(x), "lost", "ok"), site=site)
    made = latfit.analyze(log, laws=["exponential"], resamples=0, test=False)
    assert made.decision.evidence.mixing is None


def test_answers_without_a_time_are_refused_and_not_lost(tmp_path):
    latency = np.where(BAD, np.nan, LATENCY)
    for word in ("503", "connection refused"):
        log = read(tmp_path, latency=latency, status=np.where(BAD, word, "200"))
        assert (log.counts["lost"], log.facts.refused.reasons) == (0, {"no latency": 5})


def test_columns_without_a_name_are_named_by_their_place(tmp_path):
    """An index that pandas wrote in front, empty columns that a spreadsheet left behind."""
    path = tmp_path / "log.csv"
    path.write_text(",latency,status,,\n" + "".join(f"{i},{i + 0.5},ok,,\n" for i in range(5)))
    assert latfit.read_log(path).frame.columns.tolist()[-3:] == ["column1", "column4", "column5"]
    path.write_text("when,,queue\n2026-03-01T00:00:07Z,12ms,a\n2026-03-01T00:00:09Z,1.5s,b\n")
    assert latfit.read_log(path).frame["latency"].tolist() == [0.012, 1.5]


def test_a_key_without_a_name_has_no_role(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"": "12ms", "queue": "a"}\n{"": "3ms", "queue": "b"}\n')
    with pytest.raises(latfit.LatfitError, match="no column looks like a latency"):
        latfit.read_log(path)


@pytest.mark.parametrize("name", ["grpc_status", "grpc_code", "rpc.grpc.status_code", "grpcStatus"])
def test_codes_of_grpc_are_outcomes(name, tmp_path):
    """As numbers they mean what they mean as words: https://grpc.github.io/grpc/core/md_doc_statuscodes.html."""
    codes = np.array([0, 5, 14, 4] * 5)
    counts = {"completed": 10, "failed": 5, "censored": 5, "lost": 0}
    assert read(tmp_path, latency=np.arange(1, 21) / 64, **{name: codes}).counts == counts
    for words in (
        ["OK", "NOT_FOUND", "UNAVAILABLE", "DEADLINE_EXCEEDED"],
        ["OK", "NotFound", "Unknown", "DeadlineExceeded"],
    ):
        assert read(tmp_path, latency=np.arange(1, 21) / 64, **{name: np.array(words * 5)}).counts == counts


def test_error_counts_and_flags_are_not_outcomes(tmp_path):
    x = np.arange(1, 21)
    ok = np.array(["ok"] * 20)
    assert read(tmp_path, latency=x, status=ok, prior_errors=x % 5).counts["completed"] == 20
    assert read(tmp_path, latency=x, max_failures=np.full(20, 3)).counts["completed"] == 20
    assert read(tmp_path, latency=x, is_grpc=x % 2).counts["completed"] == 20


def test_a_separator_declared_for_excel(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("sep=;\nTime;Elapsed ms;Status\n2026-03-02 08:00:52;324;OK\n2026-03-02 08:01:52;29;ERROR\n")
    log = latfit.read_log(path)
    assert log.frame["latency"].tolist() == [0.324, 0.029]
    path.write_text("time,secs\n2026-03-02 08:00:52,0.3\n2026-03-02 08:01:52,0.5\n")
    assert latfit.read_log(path).frame["latency"].tolist() == [0.3, 0.5]


def test_placeholder_latencies_are_ignored_anywhere_in_the_log_and_in_watch(tmp_path, run):
    """A timeout of 0 s, or a failure of −1, first after thousands of rows; watched, all attempts count."""
    rows = [f"2026-03-01T{i // 3600:02d}:{i // 60 % 60:02d}:{i % 60:02d}Z,{100 + i % 700},ok" for i in range(3000)]
    rows += [f"2026-03-02T00:00:{i:02d}Z,{dummy}" for i in range(30) for dummy in ("0,timeout", "-1,failed")]
    path = tmp_path / "log.csv"
    path.write_text("time,latency_ms,status\n" + "\n".join(rows) + "\n")
    log = latfit.read_log(path)
    assert log.counts == {"completed": 3000, "failed": 0, "censored": 0, "lost": 60}
    assert json.loads(run("watch", path, "--json").stdout.splitlines()[-1])["observations"] == 3060


def test_errors_of_jobs_that_are_all_done(tmp_path):
    """BigQuery's state is DONE whatever became of a job."""
    rows = [{"start_time": str(when), "end_time": str(when + pd.Timedelta(seconds=float(x))), "state": "DONE",
             "error_result": {"reason": "backendError"} if bad else None}
            for when, x, bad in zip(WHEN, LATENCY, BAD, strict=True)]  # fmt: skip
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(rows))
    assert latfit.read_log(path).counts["failed"] == BAD.sum()


def test_durations_of_cloudwatch_are_in_milliseconds(tmp_path):
    log = read(tmp_path, **{"Date": WHEN, "@requestId": np.arange(N), "@duration": np.round(LATENCY * 1000)})
    assert log.frame["latency"].to_numpy() == pytest.approx(np.round(LATENCY * 1000) / 1e3)


def test_durations_of_the_elastic_common_schema(tmp_path):
    """`event.duration` is in nanoseconds by its definition."""
    path = tmp_path / "ecs.jsonl"
    rows = [{"@timestamp": str(when), "event": {"duration": int(x * 1e9), "outcome": "failure" if bad else "success"}}
            for when, x, bad in zip(WHEN, LATENCY, BAD, strict=True)]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = latfit.read_log(path)
    assert log.frame["latency"].to_numpy() == pytest.approx(LATENCY, rel=1e-8)
    assert log.counts["failed"] == BAD.sum()


def test_the_last_words_of_a_name_count():
    """Trying every combination of so many words would take hours."""


@pytest.mark.parametrize(
    ("start", "end"),
    [("produced_at", "consumed_at"), ("publishedAt", "consumedAt"), ("sent", "received"), ("produced", "received")],
)
def test_the_latency_of_a_message_ends_when_it_is_consumed(start, end, tmp_path):
    log = read(tmp_path, **{end: WHEN + pd.to_timedelta(LATENCY, unit="s"), "topic": "orders", start: WHEN})
    assert log.frame["latency"].to_numpy() == pytest.approx(LATENCY, abs=1e-5)
    assert f"latency is {end!r} minus {start!r}" in log.facts.notes


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_job_that_runs_has_completed_its_wait_for_a_start(kind, tmp_path):
    phase = np.where(BAD, "Pending", np.where(np.arange(N) % 2, "Running", "Succeeded"))
    scheduled = pd.Series(WHEN + pd.to_timedelta(LATENCY, unit="s")).mask(BAD)
    log = read(tmp_path, kind, pod="p", createdAt=WHEN, scheduledAt=scheduled, phase=phase)
    assert log.counts == {"completed": 55, "failed": 0, "censored": 5, "lost": 0}
    log = read(tmp_path, kind, queue_wait_s=LATENCY, state=np.where(BAD, "pending", "running"))
    assert log.counts == {"completed": 55, "failed": 0, "censored": 5, "lost": 0}
    log = read(tmp_path, kind, latency_s=LATENCY, state=np.where(BAD, "running", "ok"))  # not a wait for a start
    assert log.counts == {"completed": 55, "failed": 0, "censored": 5, "lost": 0}


@pytest.mark.parametrize(
    ("name", "values"), [("wait", -LATENCY), ("seconds", LATENCY * 10**9), ("lag", LATENCY * 10**16)]
)
def test_the_hint_names_no_numbers_that_cannot_be_latencies(name, values, tmp_path):
    with pytest.raises(latfit.LatfitError, match="Name it: --column latency=NAME"):
        read(tmp_path, host=np.arange(N) % 3, **{name: values})


def test_no_unit_makes_a_latency_last_for_centuries(tmp_path):
    with pytest.raises(latfit.LatfitError, match="may be in") as problem:
        read(tmp_path, delay=LATENCY.astype(np.int64) * 10**7 + 7)
    assert "--unit s" not in str(problem.value)


def test_no_number_of_slurm_is_a_wait_of_decades(tmp_path):
    submit = 1767225600 + np.arange(N)
    log = read(tmp_path, submit=submit, start=np.where(np.arange(N) % 10, submit + 50 + np.arange(N) % 7, 4294967294))
    assert log.counts == {"completed": N - N // 10, "failed": 0, "censored": N // 10, "lost": 0}
