"""The JSON of every command over one log of each kind and format, compared with stored documents at 1e-9.

`LATFIT_GOLDEN=write pytest tests/contract` stores them anew. What is prose is not compared, only that it is there:
sentences may be improved. Intervals are left out by asking for no resamples; their coverage is tested elsewhere.
"""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import golden_logs
from conftest import DATA, EGEE, SHARED
from latfit.cli import main

STORED = Path(__file__).parent / "golden"
WRITE = os.environ.get("LATFIT_GOLDEN") == "write"
PROSE = {"message", "notes", "reason", "snippet", "path", "says", "description", "formula", "title", "why", "error"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
QUICK = ("--resamples", "0")
COMMANDS = {
    "analyze": ("analyze", "{log}", *QUICK),
    "outliers": ("outliers", "{log}"),
    "fit": ("fit", "{log}", "--bootstrap", "0"),
    "fit-ls": ("fit", "{log}", "--law", "lognormal", "--law", "weibull", "--method", "ls", "--bootstrap", "0"),
    "timeout": ("timeout", "{log}", *QUICK),
    "timeout-cost": ("timeout", "{log}", "--cost", "1", *QUICK),
    "timeout-quantile": ("timeout", "{log}", "--objective", "quantile:0.9", *QUICK),
    "replay": ("replay", "{log}"),
    "compare": ("compare", "{log}"),
    "drift": ("drift", "{log}", "--window", "1d"),
    "settings": ("settings", "curl", "{log}"),
    "watch": ("watch", "{log}"),
    "agents": ("agents", "--agent", "log={log}", "--agent", "law=lognormal(mu=1,sigma=1)"),
}
WITHOUT_LOG = {
    "laws": ("laws",),
    "formats": ("formats",),
    "settings-list": ("settings",),
    "timeout-law": ("timeout", "--law", "lognormal(mu=5.5,sigma=1)", "--rho", "0.025"),
    "timeout-restarts": (
        "timeout",
        "--law",
        "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])",
        "--restarts",
        "3",
    ),
    "timeout-copies": ("timeout", "--law", "lognormal(mu=5.5,sigma=1)", "--rho", "0.025", "--copies", "2"),
    "timeout-deadline": ("timeout", "--law", "lognormal(mu=5.5,sigma=1)", "--objective", "deadline:1200"),
    "compare-law": ("compare", "--law", "lognormal(mu=5.5,sigma=1)", "--rho", "0.025"),
}
REAL = (
    "jmeter-slow.jtl",
    "hourly-ping.csv.gz",
    "aws-alb.log",
    "nginx-request-time.log",
    "htcondor-mesa.log",
    "nextflow-trace.txt.gz",
    "otel-spans.jsonl.gz",
    "pbs-accounting.log",
    "github-actions-runs.csv",
    "jhiccup.hlog",
)
FORMATS = sorted(path.name for path in DATA.iterdir())


def run(words):
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code in (0, 1, 2), f"{words}: {done.exception!r}"
    return json.loads(done.stdout) if done.exit_code == 0 else {"exit": done.exit_code}


def converted(log, folder):
    """The canonical table as `convert` writes it."""
    out = folder / "canonical.csv"
    done = CliRunner().invoke(main, ["convert", str(log), "-o", str(out)])
    return out.read_text().splitlines() if done.exit_code == 0 else {"exit": done.exit_code}


def batched(log, folder, *options):
    out = folder / "rows.jsonl"
    done = CliRunner().invoke(main, ["batch", str(log), "-o", str(out), "--workers", "1", *QUICK, *options])
    return (
        [json.loads(line) for line in out.read_text().splitlines()] if done.exit_code == 0 else {"exit": done.exit_code}
    )


def on_a_ridge(document):
    """Whether a hybrid's Pareto tail is exponential: a and ν grow without end, and where they stop varies."""
    params = document.get("params")
    return isinstance(params, dict) and params.get("nu", 0.0) > 1e6


def differences(stored, now, where="", *, tolerance=1e-9):
    """Where two documents differ; keys that only the new one has are additions."""
    if isinstance(stored, dict) and isinstance(now, dict) and on_a_ridge(stored):
        keys = ("law", "method", "sse", "log_likelihood", "rho")
        same = ({key: document.get(key) for key in keys} for document in (stored, now))
        yield from differences(*same, where, tolerance=1e-4)
    elif isinstance(stored, dict) and isinstance(now, dict):
        for key, value in stored.items():
            if key in PROSE:
                continue
            if key not in now:
                yield f"{where}.{key} is missing"
            else:
                yield from differences(value, now[key], f"{where}.{key}", tolerance=tolerance)
    elif isinstance(stored, list) and isinstance(now, list):
        if len(stored) != len(now):
            yield f"{where}: {len(now)} entries, stored {len(stored)}"
        else:
            for at, (a, b) in enumerate(zip(stored, now, strict=True)):
                yield from differences(a, b, f"{where}[{at}]", tolerance=tolerance)
    elif isinstance(stored, float) and isinstance(now, (int, float)) and not isinstance(now, bool):
        if not math.isclose(stored, now, rel_tol=tolerance, abs_tol=1e-12):
            yield f"{where}: {now!r}, stored {stored!r}"
    elif isinstance(stored, str) and isinstance(now, str):  # the last digits of numbers in a text vary with the machine
        if NUMBER.sub("#", stored) != NUMBER.sub("#", now) or any(
            differences(_numbers(stored), _numbers(now), tolerance=tolerance)
        ):
            yield f"{where}: {now!r}, stored {stored!r}"
    elif stored != now:
        yield f"{where}: {now!r}, stored {stored!r}"


def _numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


def without_prose(document):
    if isinstance(document, dict):
        return {key: without_prose(value) for key, value in document.items() if key not in PROSE}
    return [without_prose(each) for each in document] if isinstance(document, list) else document


def check(log, what, document):
    """Compare a document with the stored one of the same log, or store it."""
    path = STORED / f"{log}.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    if WRITE:
        stored[what] = without_prose(document)
        lines = (json.dumps({key: stored[key]}, sort_keys=True, ensure_ascii=False)[1:-1] for key in sorted(stored))
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    # a searched minimum is known only to the square root of the machine's precision
    tolerance = 1e-6 if what.startswith("compare") else 1e-9
    wrong = list(differences(stored[what], json.loads(json.dumps(document)), tolerance=tolerance))
    assert not wrong, f"{log} {what}: {len(wrong)} differences\n" + "\n".join(wrong[:20])


@pytest.fixture(scope="session")
def logs(tmp_path_factory):
    return golden_logs.write(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", [*golden_logs.LOGS, "buckets", "requests"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.slow
def test_commands_on_kinds_of_logs(name, command, logs):
    check(name, command, run([word.format(log=logs[name]) for word in COMMANDS[command]]))


@pytest.mark.parametrize("name", ["independent", "mixed", "failing", "zeros", "requests"])
def test_batch(name, logs, tmp_path):
    by = {"independent": "broker", "mixed": "endpoint", "zeros": "queue", "requests": "path"}.get(name)
    check(name, "batch", batched(logs[name], tmp_path, *(("--by", by) if by else ())))


LONG = {"compare", "drift"}


@pytest.mark.parametrize("command", [pytest.param(c, marks=pytest.mark.slow) if c in LONG else c for c in COMMANDS])
def test_bundled_log(command):
    check("egee-2006", command, run([word.format(log=EGEE) for word in COMMANDS[command]]))


@pytest.mark.parametrize("name", WITHOUT_LOG)
def test_without_a_log(name):
    check("laws-and-lists", name, run(WITHOUT_LOG[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_formats(name, tmp_path):
    log = DATA / name
    documents = {
        command: run([word.format(log=log) for word in COMMANDS[command]]) for command in ("outliers", "timeout")
    }
    check("formats", name, {**documents, "convert": converted(log, tmp_path)})


@pytest.mark.parametrize("name", REAL)
@pytest.mark.slow
def test_real_logs(name, shared):
    commands = ("analyze", "outliers", "timeout")
    check(
        "real-logs", name, {each: run([word.format(log=SHARED / name) for word in COMMANDS[each]]) for each in commands}
    )
