"""The command line as a user runs it: outputs, exit codes, pipes."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from conftest import DATA, EGEE
from latfit.cli import common as cli


def test_version(run):
    assert run("--version").stdout == f"latfit {version('latfit')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["outliers"],
        ["outliers", EGEE, "--cutoff", "-5"],
        ["outliers", EGEE, "--cutoff", "nan"],
        ["outliers", EGEE, "--unit", "days"],
        ["outliers", EGEE, "--column", "latency"],
        ["outliers", EGEE, "--status", "fine=ok"],
        ["outliers", EGEE, "--max-refused", "2"],
        ["convert", EGEE],
    ],
)
def test_wrong_usage_is_2(run, arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "Error" in done.stderr


def test_formats(run):
    names = [row["name"] for row in json.loads(run("formats", "--json").stdout)["formats"]]
    assert {"csv", "gwf", "htcondor", "jmeter", "json", "jsonl", "parquet", "sacct", "swf"} <= set(names)
    assert names == sorted(names)
    text = run("formats").stdout
    assert all(name in text for name in names)


def test_convert_reports_what_it_did(run, tmp_path):
    done = run("convert", DATA / "sacct-header.txt", "-o", tmp_path / "x.csv", "--max-refused", 1, "--json")
    document = json.loads(done.stdout)
    assert (document["probes"], document["completed"], document["censored"]) == (4, 2, 2)
    assert document["refused_count"] == 2
    assert document["refused"][0]["line"] == 8
    assert "skipped 2 steps of jobs" in done.stderr
    assert "rows refused: 2 (1 × end before start, 1 × duplicate id)" in done.stderr
    assert (tmp_path / "x.csv").read_text().startswith("submitted,latency,status,jobid")


def test_options_reach_the_reader(run, tmp_path):
    (tmp_path / "x.csv").write_text("wert;zustand\n" + "100;gut\n" * 9 + "5000;weg\n")
    done = run("outliers", tmp_path / "x.csv", "--column", "latency=wert", "--column", "status=zustand",
               "--status", "completed=gut", "--status", "lost=weg,fort", "--unit", "ms", "--json")  # fmt: skip
    document = json.loads(done.stdout)
    assert (document["ratio"], document["cutoff"]) == (0.1, 0.1)


@pytest.mark.slow
def test_failures_by_option(run):
    ratio = {
        how: json.loads(run("outliers", DATA / "probes.csv", "--cutoff", 100, "--failed", how, "--json").stdout)[
            "ratio"
        ]
        for how in ("retry", "completed", "lost")
    }
    # completed at 12.5 and 17 s, failed at 30 s, two still out: Kaplan–Meier has 4/5 · 3/4 before the failure is seen
    assert ratio == pytest.approx({"retry": 0.6, "completed": 0.4, "lost": 0.6})


def test_standard_input(run):
    done = run("outliers", "-", "--json", stdin=EGEE.read_bytes())
    assert json.loads(done.stdout)["count"] == 53


@pytest.mark.slow
def test_a_closed_pipe_ends_quietly():
    latfit = Path(sys.executable).parent / "latfit"
    done = subprocess.run(
        f"{latfit} outliers {EGEE} --json | head -c 1", shell=True, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "{"
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.slow
def test_a_locale_that_is_not_utf_8(run):
    done = run("outliers", EGEE, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", HOME="/nonexistent")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("law", ["exponential(rate=1e308)", "pareto(a=1e-300,nu=0.8)", "lognormal(mu=900,sigma=1)"])
def test_a_law_without_plausible_latencies_is_refused(run, law):
    done = run("timeout", "--law", law, "--copies", 2, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "check the parameters" in done.stderr


@pytest.mark.parametrize("given", ["1e308", "1e-320"])
def test_an_out_of_range_time_is_refused(run, given):
    done = run("timeout", "--law", "exponential(rate=1)", "--at", given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is out of range" in done.stderr


def test_a_timeout_that_tends_to_0_is_printed(run):
    done = run("timeout", EGEE, "--law", "weibull", "--resamples", 0)
    assert done.returncode == 0, done.stderr
    assert "the sooner the better" in done.stdout.lower()


def test_the_progress_line_is_cleared_before_anything_is_printed(capsys):
    cli.progress.width = 12
    cli.say("done")
    out, err = capsys.readouterr()
    assert (out, err) == ("done\n", f"\r{' ' * 12}\r")


def test_read_shows_a_log_that_other_commands_refuse(run, tmp_path):
    calls = [
        {"ts": 1_770_000_000 + k, "level": "error" if k % 9 == 0 else "info", "elapsed": f"{k}.5ms"} for k in range(20)
    ]
    others = [{"ts": 1_770_000_100 + k, "level": "debug", "msg": "cache refreshed"} for k in range(10)]
    (tmp_path / "app.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*calls, *others)))
    done = run("analyze", tmp_path / "app.jsonl")
    assert done.returncode == 1
    assert "choose rows with --where" in done.stderr
    done = run("read", tmp_path / "app.jsonl", "--json")
    assert json.loads(done.stdout)["refused_count"] == 10
