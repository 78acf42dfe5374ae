"""Lines of free text, taken apart by a pattern of the user's."""

import json
import re

import pytest
from click.testing import CliRunner

import latfit
from latfit.cli import main
from latfit.errors import LogError, UnknownFormat

LINES = """\
starting 5 tasks
2026-03-02 06:00:01.250 INFO w1: task 0 finished in 23.5s
2026-03-02 06:00:03.000 INFO w2: task 1 finished in 850ms
2026-03-02 06:00:05.500 WARN w1: task 2 lost

2026-03-02 06:00:06.000 ERROR w2: task 3 failed in 12s
2026-03-02 06:00:09.000 INFO w1: task 4 finished in soon
done
"""
TASK = (
    r"^(?P<submitted>\S+ \S+) \w+ (?P<worker>\w+): task (?P<id>\d+) (?P<status>finished|failed|lost)"
    r"(?: in (?P<latency>\S+))?"
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "app.log"
    path.write_text(LINES)
    return path


def test_groups_are_columns(log):
    read = latfit.read_log(log, pattern=TASK, max_refused=1)
    assert read.facts.format == "pattern"
    assert read.counts == {"completed": 2, "failed": 1, "censored": 0, "lost": 1}
    assert read.frame["latency"].dropna().tolist() == [23.5, 0.85, 12.0]
    assert read.frame["worker"].tolist() == ["w1", "w2", "w1", "w2"]
    assert str(read.frame["submitted"].iloc[0]) == "2026-03-02 06:00:01.250000+00:00"
    assert [refusal.line for refusal in read.facts.refused.first] == [7]
    assert read.facts.skipped == {"lines without a match of --pattern": 2}


def test_a_long_line_is_refused_and_a_blank_one_skipped(log):
    log.write_text(LINES + " " * 200_000 + "\n" + "x" * 200_000 + "\n")
    read = latfit.read_log(log, pattern=TASK, max_refused=1)
    assert read.facts.refused.reasons["line too long"] == 1
    assert read.facts.skipped == {"lines without a match of --pattern": 2}


def test_lost_probes_are_dropped_only_if_the_pattern_excludes_them(log):
    read = latfit.read_log(log, pattern=r"finished in (?P<latency>\d\S*)")
    assert read.counts == {"completed": 2, "failed": 0, "censored": 0, "lost": 0}
    assert read.facts.skipped == {"lines without a match of --pattern": 5}


def test_a_group_must_be_called_latency_so_its_name_says_no_unit(log):
    log.write_text("".join(f"task {i} took {30 + i * 7 % 20} and was ok\n" for i in range(60)))
    took = r"took (?P<latency>\d+)"
    with pytest.raises(LogError, match="'latency' may be in ms or s"):
        latfit.read_log(log, pattern=took)
    assert latfit.read_log(log, pattern=took, unit="ms").frame["latency"].max() == 0.049


@pytest.mark.slow
def test_every_command_takes_it(log, tmp_path):
    how = ["--pattern", TASK, "--max-refused", "1"]
    table = tmp_path / "table.csv"
    done = CliRunner().invoke(main, ["convert", str(log), "-o", str(table), *how])
    assert done.exit_code == 0
    assert "skipped 2 lines without a match of --pattern" in done.stderr
    assert latfit.read_log(table).counts == latfit.read_log(log, pattern=TASK, max_refused=1).counts
    for command in (["outliers"], ["watch", "--cutoff", "60"], ["timeout", "--resamples", "0"]):
        assert CliRunner().invoke(main, [command[0], str(log), *command[1:], *how, "--json"]).exit_code == 0, command


def test_lines_that_are_appended_are_followed(log, tmp_path):
    how = ["--pattern", TASK, "--max-refused", "1", "--cutoff", "60", "--state", str(tmp_path / "state"), "--json"]
    first = CliRunner().invoke(main, ["watch", str(log), *how])
    with log.open("a") as file:
        file.write("2026-03-02 06:01:00.000 INFO w1: task 9 finished in 3s\n")
    second = CliRunner().invoke(main, ["watch", str(log), *how])
    seen = [json.loads(each.stdout.splitlines()[-1])["observations"] for each in (first, second)]
    assert seen == [4, 5]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("took (", "not a regular expression"), (r"took (\d+)", "names no column"), ("(?P<a>x)(?P<a>y)", "redefinition")],
)
def test_a_wrong_pattern_is_wrong_usage(log, pattern, said):
    with pytest.raises(LogError, match=said):
        latfit.read_log(log, pattern=pattern)
    done = CliRunner().invoke(main, ["timeout", str(log), "--pattern", pattern])
    assert done.exit_code == 2
    assert said in " ".join(re.sub("[│╭╮╰╯─]", " ", done.stderr).split())


def test_errors_of_a_pattern_say_what_is_missing(log):
    with pytest.raises(LogError, match="no line matches --pattern"):
        latfit.read_log(log, pattern="took (?P<latency>.*)")
    with pytest.raises(LogError, match="describe its lines"):
        latfit.read_log(log, format="pattern")
    with pytest.raises(LogError, match="--pattern does not apply to csv"):
        latfit.read_log(log, format="csv", pattern=TASK)
    with pytest.raises(UnknownFormat, match="--pattern"):
        latfit.read_log(log)


@pytest.mark.parametrize(
    ("line", "latencies"),
    [
        ("06:00 worker-1 processed order 7 in {}ms", [0.012, 0.34]),
        ("06:00 conn3 find reslen:15 {}ms", [0.012, 0.34]),
        ("06:00 LOG:  duration: {} ms  statement: select 1", [0.012, 0.34]),
        ("06:00 sleeping 30s\n06:00 call returned after {} milliseconds", [0.012, 0.34]),
        ("06:00 job done; elapsed: 1m{}s exit 0", [72, 400]),
    ],
)
def test_a_suggested_pattern_reads_the_log(line, latencies, log):
    log.write_text("".join(line.format(spent) + "\n" for spent in (12, 340)))
    with pytest.raises(LogError) as refused:
        latfit.read_log(log)
    option = re.search(r"--pattern '(.*)'$", str(refused.value))
    assert sorted(latfit.read_log(log, pattern=option[1]).frame["latency"]) == latencies


def test_a_number_without_a_unit_is_not_taken_for_seconds(log):
    log.write_text("".join(f"06:00 query {at} took {37 + at * 13 % 60}\n" for at in range(20)))
    with pytest.raises(LogError) as refused:
        latfit.read_log(log)
    option = re.search(r"--pattern '(.*)'$", str(refused.value))
    with pytest.raises(LogError, match="--unit ms"):
        latfit.read_log(log, pattern=option[1])
    assert latfit.read_log(log, pattern=option[1], unit="ms").frame["latency"].min() == 0.037


def test_averages_and_limits_are_not_suggested(tmp_path):
    (tmp_path / "log").write_text("".join(f"Minimum = {10 + i}ms, Average = {i + 14}ms\n" for i in range(9)))
    with pytest.raises(LogError) as raised:
        latfit.read_log(tmp_path / "log")
    assert "Minimum\\W" not in str(raised.value)
    assert "Average\\W" not in str(raised.value)
