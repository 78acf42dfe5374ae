"""Columns as people call them: outcomes, latencies and times that no canonical name announces."""

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
        ("Error Message", np.where(BAD, "context deadline exceeded", ""), "censored"),
        ("timed_out", BAD, "censored"),
        ("failed", BAD.astype(int), "failed"),
        ("is_success", ~BAD, "failed"),
        ("dropped", BAD, "lost"),
        ("result", np.where(BAD, "KO", "OK"), "failed"),
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
def test_what_tells_no_outcome(name, cells, tmp_path):
    assert read(tmp_path, latency=LATENCY, **{name: cells}).counts["completed"] == N


def test_one_of_two_columns_of_outcomes_is_used_and_the_other_named(tmp_path):
    log = read(tmp_path, latency=LATENCY, failed=BAD, timed_out=~BAD)
    assert log.counts["failed"] == 5
    assert any("timed_out may tell what became of a probe" in note for note in log.facts.notes)


@pytest.mark.parametrize("name", ["lat_sec", "time_s", "fetch (s)", "walltime", "queue_time"])
def test_latencies_by_other_names(name, tmp_path):
    log = read(tmp_path, **{name: LATENCY, "req_ts": WHEN, "host": "a"})
    assert log.sample() == latfit.LatencySample.of(LATENCY)
    assert log.frame["submitted"].notna().all()


@pytest.mark.parametrize(
    "columns",
    [
        {"wait_s": np.arange(N), "lat_ms": LATENCY},  # by its name
        {"since_start_s": np.cumsum(LATENCY), "fetch_ms": LATENCY},  # what merely rises is a clock
        {"limit_s": np.full(N, 30), "fetch_ms": LATENCY},  # what is always the same is a setting
    ],
)
def test_which_of_two_columns_with_a_unit(columns, tmp_path):
    values = np.arange(N) if "wait_s" in columns else LATENCY / 1000
    assert read(tmp_path, **columns).sample().completed == Tally.of(values)


def test_two_columns_with_a_unit_cannot_be_told_apart(tmp_path):
    with pytest.raises(latfit.LatfitError, match="no column looks like a latency"):
        read(tmp_path, fetch_ms=LATENCY, parse_ms=LATENCY[::-1])


@pytest.mark.parametrize("word", ["timeout", "Timed out", "lost", "inf"])
def test_a_word_in_place_of_a_latency(word, tmp_path):
    log = read(tmp_path, latency=np.where(BAD, word, LATENCY.astype(str)))
    assert (log.counts["lost"], log.counts["completed"]) == (5, 55)
    assert any("for a latency: they are lost probes" in note for note in log.facts.notes)


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
        assert latfit.read_log(tmp_path / "x.csv").sample().completed == Tally.of([seconds])


@pytest.mark.parametrize("when", ["2026-03-01 08:00:12", "2026-03-01T08:00:12Z", "1772352012", "1772352012000"])
def test_rows_of_a_time_and_a_number_need_no_header(when, tmp_path):
    (tmp_path / "x.csv").write_text(f"{when},37.5\n{when},2\n")
    log = latfit.read_log(tmp_path / "x.csv")
    assert log.sample().completed == Tally.of([37.5, 2])
    assert (log.frame["submitted"] == pd.Timestamp("2026-03-01 08:00:12Z")).all()


def test_several_numbers_without_a_header_are_not_guessed_at(tmp_path):
    (tmp_path / "x.csv").write_text("1,37.5\n2,2\n")
    with pytest.raises(latfit.LatfitError, match="column1, column2"):
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
