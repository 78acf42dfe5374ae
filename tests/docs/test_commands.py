"""Every command on the pages is run if possible here, and otherwise parsed."""

import re
import shlex

import click
import numpy as np
import pandas as pd
import pytest

from conftest import EGEE, REPO
from latfit.cli import main

ELSEWHERE = {"ten-minutes.md"}  # run as a whole by tests/verify
PAGES = sorted(path for path in (REPO / "docs").glob("*.md") if path.name not in ELSEWHERE)
COMMANDS = sorted({(path.name, line[2:]) for path in PAGES for line in path.read_text(encoding="utf-8").splitlines()
                   if line.startswith("$ latfit ")})  # fmt: skip
NOT_HERE = re.compile(r"latfit probe |--follow")  # a cluster, a network, or no end


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files that the pages speak of."""
    rng = np.random.default_rng(6)
    when = pd.date_range("2026-01-05", periods=300, freq="30s", tz="UTC")
    latency, site = rng.lognormal(5, 0.5, 300).round(3), rng.choice(["a", "b"], 300)
    frame = pd.DataFrame({"submitted": when, "latency": latency, "status": "completed", "site": site})
    frame.to_csv(tmp_path / "probes.csv", index=False)
    frame.assign(submitted=when.astype(str)).to_json(tmp_path / "probes.jsonl", orient="records", lines=True)
    lines = [f'10.0.0.1 - - [{at:%d/%b/%Y:%H:%M:%S} +0000] "GET /{name} HTTP/1.1" 200 5 "-" "curl" rt={x / 1000:.3f}\n'
             for at, name, x in zip(when, site, latency, strict=True)]  # fmt: skip
    (tmp_path / "access.log").write_text("".join(lines))
    (tmp_path / "histogram.csv").write_text("le,count\n0.05,0\n0.1,10\n0.25,40\n0.5,30\n1,10\n+Inf,6\n")
    (tmp_path / "data").symlink_to(EGEE.parent)
    monkeypatch.chdir(tmp_path)


def test_there_are_commands_of_both_kinds():
    assert len(COMMANDS) > 15
    assert 3 < sum(bool(NOT_HERE.search(line)) for _, line in COMMANDS) < 10


@pytest.mark.slow
@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if not NOT_HERE.search(line)}))
def test_each_command_runs(line, run, folder):
    quick = ["--resamples", "0"] if line.startswith("latfit analyze") else []  # the intervals are not about the line
    done = run(*shlex.split(line)[1:], *quick)
    assert done.returncode == 0, done.stderr
    assert done.stdout or "-o " in line


@pytest.mark.parametrize("line", sorted({line for _, line in COMMANDS if NOT_HERE.search(line)}))
def test_each_command_parses(line, folder):
    command, words = main, shlex.split(line)[1:]
    while isinstance(command, click.Group):
        command, words = command.get_command(click.Context(command), words[0]), words[1:]
    assert command.make_context("latfit", words).params
