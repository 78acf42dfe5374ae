"""Damaged logs, laws and options: answered or refused, never a traceback, never a row unaccounted for.

scripts/fuzz runs the same cases by the thousand; a seed that fails there fails here with `broken(make_case(seed), …)`.
"""

import gzip
import json
import math
import random

import pytest

import latfit
from conftest import DATA
from fuzzing.agree import disagreements, few_laws
from fuzzing.cases import KINDS, LOG, MAKERS, Case, make_case, taken_apart
from fuzzing.count import count_rows
from fuzzing.logs import MAKERS as PLAIN
from fuzzing.page import wrong_page
from fuzzing.rule import broken, broken_in_a_shell
from fuzzing.states import LOG as LOG_OF_60
from fuzzing.states import batch_rows, tracker_state
from latfit.batch.run import _line
from latfit.laws import parse_law
from latfit.logs.formats import FORMATS
from latfit.measure.journal import open_journal
from latfit.measure.targets.http import Http
from latfit.report import to_html
from latfit.restart.policies import parse_policy

CHUNK = 25
SHORT = ("convert", "batch", "fit", "probe", "settings", "watch", "laws")
ROW_OF = latfit.batch.rows.row_of


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(CHUNK, 150, CHUNK))]
)
def test_150_cases(first, tmp_path):
    told = {seed: broken(make_case(seed), tmp_path) for seed in range(first, first + CHUNK)}
    assert {seed: wrong for seed, wrong in told.items() if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1004))
def test_4_cases_through_the_shell(seed, tmp_path):
    cases = (make_case(seed + 20 * k) for k in range(100))
    case = next(case for case in cases if case.arguments and case.arguments[0] in SHORT)
    assert broken_in_a_shell(case, tmp_path) == []


@pytest.mark.slow
def test_a_seed_is_always_the_same_case():
    assert [make_case(seed) for seed in range(50)] == [make_case(seed) for seed in range(50)]
    assert {make_case(seed).kind for seed in range(1500)} == set(KINDS)


def test_every_format_is_damaged():
    """A new format needs a maker of valid logs: fuzzing/logs.py, requests.py, histograms.py or probes.py."""
    made = {maker(random.Random(0), 3).format for maker in MAKERS.values()}
    assert made | {"parquet"} == set(FORMATS)


def test_a_stray_quote_below_a_record_of_two_lines(tmp_path):
    """Seed 3005722 of version 0.1.0: a stray quote below a record of two lines cost that record too."""
    content = (
        b"timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,failureMessage\n"
        b'1767225600123,351,Login,200,OK,t1,"true",\n1767225601123,59,"two\nlines",200,OK,t1,shut",\n'
        b",true,OK,200,1767225602123,t1,Login,85,N/A\n"
    )
    case = Case(0, "jmeter", (), ("timeout", LOG, "--max-refused", "1", "--json"), content, "jmeter", 3)
    assert broken(case, tmp_path) == []


def test_a_disagreement_between_the_four_ways_is_found(tmp_path, monkeypatch):
    """The differential check can fail: it notices a batch that is off by a millisecond."""
    path = tmp_path / "log"
    path.write_text(LOG_OF_60)
    with few_laws():
        assert disagreements(path, tmp_path) == []
        monkeypatch.setattr(latfit.batch.rows, "row_of", lambda made: {**ROW_OF(made), "timeout": 1.001})
        assert any(told.startswith("timeout: ") for told in disagreements(path, tmp_path))


@pytest.mark.slow
def test_a_page_that_is_not_inert_is_found():
    page = to_html(latfit.analyze([1.0, 2, 3, 4, 5, 6, 7], laws=["exponential"], test=False, resamples=0))
    assert wrong_page(page) == []
    for evil in ("<img src=x>", "<a href=//evil>", "<b onclick=x>", "<script>x</script>", "<!-- x -->", "\x1b"):
        assert wrong_page(page.replace("<h1>", f"<h1>{evil}"))
    assert wrong_page(page.replace("default-src 'none'", "default-src *"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN)
def test_logs_without_damage_are_read_whole(kind, tmp_path):
    """Every row of a valid log is usable: the cases begin with logs that latfit can read."""
    for seed in range(5):
        log = PLAIN[kind](random.Random(seed), 20)
        content = "\n".join(log.lines()).encode() + b"\n"
        case = Case(seed, kind, (), ("timeout", LOG, "--json"), content, log.format, count_rows(log, content))
        assert case.rows == (20 if kind != "htcondor" else case.rows)
        assert broken(case, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [("probes.csv", 6), ("pairs.tsv", 5), ("requests.jsonl", 5), ("jobs.swf", 8), ("jobs.gwf", 3), ("results.jtl", 6),
     ("sacct.txt", 2), ("sacct-header.txt", 8), ("yearless.log", 4), ("iso.log", 2)],
)  # fmt: skip
def test_the_independent_counter_counts(name, rows, tmp_path):
    content = (DATA / name).read_bytes()
    log = taken_apart(content.decode(), name)
    assert count_rows(log, content) == rows
    case = Case(0, "fixture", (), ("timeout", LOG, "--json"), content, log.format, rows)
    assert broken(case, tmp_path) == []
    wrong = Case(0, "fixture", (), ("timeout", LOG, "--json"), content, log.format, rows + 1)
    assert any("accounted for" in told for told in broken(wrong, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "fill"),
    [(b"latency\n", b"x"), (b"latency\n", b"\n"), (b"latency,site\n1,a\n", b'"'), (b'{"latency": 1}\n', b"["),
     (b"latency\n" + b"1\n" * 50_000, b"\0"), (b"PAR1", b"\0")],
)  # fmt: skip
@pytest.mark.parametrize("pack", [bytes, lambda data: gzip.compress(data, 1)], ids=["plain", "gzip"])
def test_64_mib_of_zeros_take_bounded_memory(head, fill, pack, tmp_path):
    case = Case(0, "csv", (), ("timeout", LOG), pack(head + fill * (1 << 26)))
    assert broken_in_a_shell(case, tmp_path) == []


# what the fuzzer found, by hand


def test_a_watch_that_knows_too_little_says_so_in_json(tmp_path, run):
    (tmp_path / "log").write_text("latency\n1\n2\n")
    done = run("watch", tmp_path / "log", "--cutoff", 60, "--json")
    expected = {"retry": None, "timeout": None, "observations": 2, "withheld": ["few-completions"]}
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("spec", ["stamina(attempts=1e9,timeout=3)", "kubernetes(limit=1e6,timeout=3)",
                                  "resilience4j(attempts=99,timeout=1,wait=1,factor=1e9)"])  # fmt: skip
def test_schedules_without_end_are_refused(spec):
    with pytest.raises(latfit.RestartError, match=r"1000 attempts|finite"):
        parse_policy(spec).plan(parse_law("exponential(rate=1)"), 0.0)


STATE = json.loads(tracker_state())


@pytest.mark.parametrize(
    "changed",
    [
        {"t": 0}, {"t": "1"}, {"t": math.nan}, {"seen": -1}, {"stale": 2**70}, {"latencies": [1.0]}, {"statuses": "x"},
        {"guard": {**STATE["guard"], "run": [1, 2]}}, {"guard": {**STATE["guard"], "back": [3.0]}},
        {"memories": {**STATE["memories"], "lost": [math.inf] * 5}}, {"found": {"timeout": 1}}, {"found": []},
        {"memories": {**STATE["memories"], "whole": [0.0] * 5}}, {"random": {"bit_generator": "MT19937"}},
    ],
    ids=str,
)  # fmt: skip
def test_a_state_with_a_wrong_value_is_refused(changed):
    assert latfit.Tracker.from_json(json.dumps(STATE)).to_json() == tracker_state()
    with pytest.raises(latfit.RestartError, match="not the state of a tracker"):
        latfit.Tracker.from_json(json.dumps({**STATE, **changed}))


def test_endless_nesting_is_refused(tmp_path):
    deep = "[" * 200_000
    with pytest.raises(latfit.RestartError):
        latfit.Tracker.from_json(deep)
    path = tmp_path / "log"
    header = '{"latfit": "probe", "run": "r1", "kind": "probes", "target": "command"}\n'
    path.write_text(header + deep + "\n" + '{"probe": 1, "job": 1e999, "attempt": 1, "submitted": "x", "t": 0}\n')
    with open_journal(path, "r2", resume=True) as (_, earlier):
        assert earlier.unfinished == {"r1": {}}
    with pytest.raises(latfit.LogError, match="none of the 2 rows can be used"):
        latfit.read_log(path)


def test_runs_and_probes_of_a_log_are_words_and_numbers(tmp_path):
    """Values of a journal become arguments of the commands that clean up after a killed run."""
    path = tmp_path / "log"
    probe = '{"probe": 1, "job": 1, "attempt": 1, "submitted": "2026-03-01T00:00:00Z", "t": 0}\n'
    for run in ("a b", "x,y", "--help", "*", "a;b", "", "x" * 99, "../x"):
        header = json.dumps({"latfit": "probe", "run": run, "kind": "probes", "target": "command"}) + "\n"
        path.write_text(header + probe)
        with open_journal(path, "r2", resume=True) as (_, earlier):
            assert earlier.unfinished == {}
    path.write_text(header.replace("../x", "r1") + probe.replace('"probe": 1', '"probe": "1; id"'))
    with open_journal(path, "r2", resume=True) as (_, earlier):
        assert earlier.left == []


def test_a_forged_journal_of_a_batch_is_not_believed(tmp_path):
    """A checksum is not a signature: invalid rows are computed again."""
    (tmp_path / "log").write_text(LOG_OF_60)
    whole = batch_rows(tmp_path, resume=False)
    header = (tmp_path / "journal").read_bytes().splitlines(keepends=True)[0]
    for rows in ("[]", "{}", "[1, 2, 3]", "[" * 10_000, json.dumps([[{**row, "timeout": "=1+1"}] for row in whole])):
        for chunk in (0, 7):
            (tmp_path / "journal").write_bytes(header + _line(chunk, rows))
            assert batch_rows(tmp_path, resume=True) == whole


@pytest.mark.parametrize("url", ["http://", "http:///x:secret@h/", "//me:secret@h", "http://h:99999/?k=secret",
                                 "http://[me:secret", "ftp://me:secret@h/", "http://m/e:secret@h/",
                                 "http://me://secret@h/"])  # fmt: skip
def test_a_wrong_url_is_not_shown(url):
    with pytest.raises(latfit.LatfitError) as told:
        Http(url)
    assert "secret" not in str(told.value)


def test_a_probe_log_with_only_a_header_is_reported(tmp_path):
    """Seed 120011590: a header, and blank lines below it."""
    (tmp_path / "log").write_text(
        '{"latfit": "probe", "run": "a-b", "target": "command", "kind": "probes"}\n' + "\n" * 90
    )
    with pytest.raises(latfit.LatfitError, match="contains no probes"):
        latfit.read_log(tmp_path / "log").sample()
