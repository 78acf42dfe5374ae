"""The report as text: what comes first, 80 columns whatever the names, tables for papers, cells that run nothing."""

import csv
import json
import re
import shlex
import subprocess
import textwrap
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import latfit
from conftest import EGEE
from latfit._system import inert
from latfit.cli import main
from latfit.fitting import fits_table
from latfit.logs import LogFacts
from latfit.report import to_markdown, to_text
from latfit.report.answers import reading_notes
from latfit.report.layout import NO_BREAK, Command, Section, as_text, kept_together, text_table
from latfit.report.sections import advice, sections
from pages import LOGS, analysed


@pytest.mark.parametrize("name", LOGS)
def test_the_log_and_the_decision_come_first_in_about_20_lines(name):
    text, words = to_text(analysed(name)), advice(analysed(name))
    log, decision = text.split("\n\n")[:2]
    assert str(sum(analysed(name).decision.counts.values())) in log
    assert decision.splitlines()[0] == words.headline
    assert " ".join(words.reasons) in " ".join(decision.split())
    assert len([line for line in text.split("BY GROUP")[0].splitlines() if line.strip()]) <= 22


@pytest.mark.parametrize("width", [60, 80, 140, 200])
@pytest.mark.parametrize("name", LOGS)
def test_the_terminals_width_is_used_and_kept(name, width):
    lines = to_text(analysed(name), full=True, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert max(map(len, lines)) > 0.7 * min(width, 140)


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("length", [3, 24, 200])
def test_tables_fit_80_columns_whatever_the_names(columns, length):
    rng = np.random.default_rng(columns)
    names = [f"{'c' * length}{i}" for i in range(columns)]
    frame = pd.DataFrame({"latency": rng.lognormal(9, 2, 300)})
    for name in names:
        frame[name] = rng.choice(["x" * length, "y" * length], 300)
    log = latfit.from_frame(frame, latency="latency")
    text = to_text(latfit.analyze(log, by=names, resamples=0, test=False, laws=["lognormal"]))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("xx") + text.count("yy") >= 2 or length == 3


@pytest.mark.parametrize("name", LOGS)
def test_markdown_has_no_needless_escape(name):
    text = to_markdown(analysed(name))
    assert not re.search(r"\d\\\.", text)
    assert "&lt;.001" not in text


def test_a_table_of_fits_for_a_paper(run, tmp_path):
    pd.DataFrame({"latency": np.random.default_rng(1).lognormal(3, 1, 80)}).to_csv(tmp_path / "x.csv", index=False)
    asked = ("fit", tmp_path / "x.csv", "--law", "lognormal", "--law", "exponential", "--bootstrap", 0)
    done = run(*asked, "--table", "latex")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3
    assert {row.count(" & ") for row in rows} == {6}
    assert re.search(r"\\mu = [\d.]+\\,\([\d.]+\)\$, \$\\sigma", done.stdout)
    marked = run(*asked, "--table", "markdown").stdout.splitlines()
    assert marked[1] == "| " + " | ".join(["---"] * 7) + " |"
    assert run(*asked, "--table", "latex", "--json").returncode == 2


def test_a_law_at_its_exponential_limit_is_called_so(run):
    for words in (("analyze", "--resamples", 0, "--full"), ("fit", "--table", "markdown", "--bootstrap", 0)):
        shown = run(words[0], EGEE, "--law", "truncated-gaussian", *words[1:]).stdout
        assert "= exponential(rate=0.00254" in shown
        assert "e+14" not in shown


def test_latex_special_signs_are_set_as_they_are():
    fit = latfit.fit(latfit.LatencySample.of([1.0, 2, 3, 5, 8, 13]), laws=["lognormal"])[0]
    broken = replace(fit, error="50 % of a_b & {c} < d")
    assert r"50 \% of a\_b \& \{c\} $<$ d" in fits_table([(broken, None)], "latex")


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+2", "'=1+2"), ("@x", "'@x"), ("-cmd", "'-cmd"), ("-5.5e3", "-5.5e3"), ("+7", "+7"), ("rb1", "rb1"), ("", "")],
)
def test_cells_that_a_spreadsheet_would_run(cell, safe):
    assert inert(cell) == safe


@pytest.mark.slow
def test_convert_and_batch_neutralise_formulas_when_asked(run, tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"latency": rng.lognormal(3, 1, 60), "=site": rng.choice(["=cmd|x", "-5", "plain"], 60)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    for command in (["convert"], ["batch", "--by", "=site", "--resamples", "0"]):
        out = tmp_path / f"{command[0]}.csv"
        done = run(command[0], tmp_path / "x.csv", *command[1:], "-o", out, "--spreadsheet")
        assert done.returncode == 0, done.stderr
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {row["'=site"] for row in rows} == {"'=cmd|x", "-5", "plain"}
        done = run(command[0], tmp_path / "x.csv", *command[1:], "-o", out)
        assert done.returncode == 0, done.stderr
        assert "'=" not in out.read_text()


def test_timeouts_of_fitted_laws_have_units():
    (fits,) = (one for one in sections(analysed("bundled"), full=True) if one.title.startswith("Fitted"))
    assert [row[fits.columns.index("timeout")] for row in fits.rows] == ["724 s"]


@pytest.mark.parametrize("length", ["2 h 43 min", "3 d 4 h", "358 s", "12 %"])
def test_a_duration_is_not_split_across_lines(length):
    for before in range(60, 80):
        lines = textwrap.wrap(kept_together(f"{'x' * before} {length} more"), 78)
        assert any(length in line.replace(NO_BREAK, " ") for line in lines)


@pytest.mark.slow
def test_the_output_of_other_commands_fits_80_columns(run):
    for asked in (("formats",), ("outliers", EGEE), ("drift", EGEE, "--window", "1d"), ("settings",)):
        done = run(*asked)
        assert done.returncode == 0, done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80, asked
        assert "\\n" not in done.stdout


@pytest.mark.slow
def test_the_table_of_strategies_fits_80_columns(run):
    done = run("compare", EGEE, "--policy", "schedule(timeouts=[300,600,1200],sleeps=[10,20])", "--objective", "mean")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("\n\n")[1].splitlines()
    assert table[0].split()[:3] == ["mean", "p95", "p99"]
    assert table[4].strip().startswith("now: schedule(")
    assert "done" in table[0]  # a schedule gives up
    assert max(map(len, table)) <= 80


def test_a_sample_in_a_notebook():
    sample = latfit.LatencySample.of(np.arange(1.0, 101.0), lost=3)
    shown = sample._repr_html_()
    assert "103 probes, 100 completed, 3 lost" in shown
    assert re.findall("<td>(.*?)</td>", shown.replace(NO_BREAK, " ")) == ["5 s", "25 s", "50 s", "75 s", "95 s", "99 s"]
    assert "<td>" not in latfit.LatencySample.of([], lost=3)._repr_html_()


LATE = np.random.default_rng(7).lognormal(4.6, 0.3, 770).round()


def _decision_on(sample, **options):
    result = latfit.analyze(sample, resamples=0, test=False, laws=["lognormal"], **options)
    return result, " ".join(to_text(result, full=True).split())


@pytest.mark.parametrize("cutoff", [None, LATE.max()])
def test_a_gain_of_one_is_not_called_faster(cutoff):
    """The best timeout is the longest latency, or gains nothing."""
    result, told = _decision_on(latfit.LatencySample.of([10.0, 11.0, 12.0, 13.0, 14.0] * 40, lost=40), cutoff=cutoff)
    assert "1 × faster" not in told
    assert ("× faster" in told) == (result.timeout.speed_up_vs_cutoff > 1.005)


@pytest.mark.parametrize(
    ("failed", "censored", "why"),
    [
        ([], [], ""),
        ([5.0] * 40, [], "failed"),
        ([], [5.0] * 40, "given up"),
        ([5.0] * 40, [4.0] * 20, "failed or been"),
    ],
)
def test_an_estimate_is_not_reported_as_a_count(failed, censored, why):
    """20 of 600 are not 9.83 % of them: the rest are failures that Kaplan and Meier take as censored."""
    rest = 600 - 60 - len(failed) - len(censored)
    done = np.concatenate([np.linspace(0.1, 2, rest - 20), np.linspace(6, 9, 20)])
    sample = latfit.LatencySample.of(done, failed=failed, censored=[*censored, *[30.0] * 60])
    result = latfit.analyze(sample, cutoff=30.0, resamples=0, test=False, laws=["lognormal"])
    (shown,) = (one.sentences[0] for one in sections(result, full=True) if one.title == "Outliers")
    assert why in shown
    assert ("10.00 % of 600 probes" in shown) == (not why)
    assert shown.startswith("An estimated ") == bool(why)
    assert "60 counted" in shown


def test_a_law_that_could_not_be_fitted_is_only_named():
    result = analysed("bundled")
    broken = replace(result.decision.fits[0].fit, error="no start ended at a cdf: F falls near t = 3", law=None)
    made = replace(result.decision, fits=(*result.decision.fits, replace(result.decision.fits[0], fit=broken)))
    result = replace(result, decision=made)
    assert f"Could not be fitted: {broken.name}" in " ".join(to_text(result, full=True).split())
    assert "F falls" not in to_text(result, full=True) + to_markdown(result)
    assert "F falls" in str(result.to_dict()["fits"])


@pytest.mark.parametrize("every", [20, 60])
def test_rows_without_a_latency_are_reported(every):
    frame = pd.DataFrame(
        {"submitted": pd.date_range("2026-01-01", periods=60, freq="min"), "latency": [5.0, 6, 7] * 20}
    )
    frame.loc[::every, "latency"] = np.nan
    result = latfit.analyze(latfit.from_frame(frame), resamples=0, test=False, laws=["lognormal"])
    (told,) = (one.message for one in result.warnings if one.code == "no-outcomes")
    assert result.decision.counts["lost"] == 60 // every
    assert "rows without a latency are read as lost" in told


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], None),
        (["soon"], "1 row of the log was refused (1 × unparseable latency), at line"),
        (["soon", "late"], "2 rows of the log were refused (2 × unparseable latency), the first at line"),
    ],
)
def test_one_row_was_refused_and_two_were(rows, told, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["latency", *(f"{5 + i % 7}" for i in range(60)), *rows]) + "\n")
    result = latfit.analyze(latfit.read_log(path), resamples=0, test=False, laws=["lognormal"])
    found = [one.message for one in result.warnings if one.code == "refused"]
    assert [message[: len(told)] for message in found] == ([] if told is None else [told])


@pytest.mark.parametrize(
    ("lines", "told"),
    [(["latency", "-1"], "not even the one row can be used"), (["latency", "-1", "-2"], "none of the 2")],
)
def test_an_error_counts_a_single_row_as_one(lines, told, run, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    done = run("analyze", tmp_path / "x.csv")
    assert done.returncode == 1
    assert told in done.stderr


def test_what_a_reader_skips_is_a_note():
    notes, warnings = reading_notes(LogFacts("x.txt", "text-table", skipped={"lines around the table": 1}))
    assert (notes, warnings) == (["skipped 1 line around the table"], [])


def test_a_section_without_names_of_columns_is_wrapped_beside_its_names():
    lines = text_table(("", ""), [("a", "word " * 30), ("long name", "x")], 40)
    assert max(map(len, lines)) <= 40
    assert {len(line) - len(line.lstrip()) for line in lines[1:-1]} == {len("long name") + 2}


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_long_command_can_be_pasted(width):
    step = "latfit settings TOOL '/a folder/with a long name/requests.csv' --where 'site=Hacker News' --cost 5"
    text = as_text([Section("Wait", columns=("", ""), rows=(("next", Command(step, "one group")),))], width=width)
    assert max(map(len, text.splitlines())) <= width
    pasted = text.split("next", 1)[1].replace("latfit", "printf '%s\\n' latfit", 1)
    done = subprocess.run(["sh", "-c", pasted], capture_output=True, text=True, check=True)
    words = ["latfit", "settings", "TOOL", "/a folder/with a long name/requests.csv", "--where", "site=Hacker News"]
    assert done.stdout.splitlines() == [*words, "--cost", "5"]


def test_the_next_command_reads_the_log_with_the_same_options(tmp_path):
    path = tmp_path / "took.csv"
    table = pd.DataFrame({"took": np.arange(1, 301), "zone": ["a b", "c"] * 150, "end": ["up", "down"] * 150})
    table.to_csv(path, index=False)
    options = {"columns": {"latency": "took"}, "unit": "ms", "statuses": {"up": "completed", "down": "lost"}}
    log = latfit.read_log(path, format="csv", where=["zone=a b"], **options)
    step = next(step for step, _ in advice(latfit.analyze(log, resamples=0)).steps if " analyze " in step)
    done = CliRunner().invoke(main, [*shlex.split(step.removeprefix("latfit"))[:-2], "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["log"]["completed"] == len(log.frame) == 150


@pytest.mark.parametrize(("timed", "command"), [(True, "drift"), (False, "read")])
def test_a_queue_without_times_is_not_sent_to_drift(timed, command):
    columns = {"submitted": pd.date_range("2026-01-01", periods=200, freq="min", tz="UTC")} if timed else {}
    frame = pd.DataFrame({"latency": np.random.default_rng(3).lognormal(3, 1, 200), **columns})
    table = latfit.from_frame(frame, latency="latency").table
    log = latfit.ProbeLog(replace(table, facts=replace(table.facts, queue=True)))
    words = advice(latfit.analyze(log, resamples=0, test=False, laws=[]))
    assert words.steps[0][0].startswith(f"latfit {command} ")
    assert words.reasons


def test_reading_prints_each_note_once(run, tmp_path):
    (tmp_path / "x.csv").write_text("when,elapsed_ms\n" + "2026-01-01T00:00:00Z,12\n" * 30)
    done = run("read", tmp_path / "x.csv")
    assert done.stdout.count("column 'when' is read as submitted") == 1
    assert "note:" not in done.stderr


def test_a_group_that_is_refused_is_not_called_small():
    rng = np.random.default_rng(9)
    latency = np.concatenate([rng.lognormal(0, 1, 600), rng.uniform(0.001, 0.002, 600)])
    status = np.where(np.arange(1200) % 100 == 99, "censored", "completed")
    frame = pd.DataFrame({"latency": np.where(status == "censored", 30.0, latency), "status": status})
    frame["host"] = np.repeat(["slow", "fast"], 600)
    result = latfit.analyze(latfit.from_frame(frame, status="status"), by="host", resamples=0, test=False, laws=[])
    text = " ".join(to_text(result).split())
    assert "fast: jobs would be" in text
    assert "Too few" not in text
