"""`latfit compare` as a user runs it."""

import json
import re

import pytest
from click.testing import CliRunner

from conftest import EGEE, REPO
from latfit.cli import main

LAW = ["--law", "lognormal(mu=5.5,sigma=1)", "--rho", "0.025"]


def call(*args):
    return CliRunner().invoke(main, ["compare", *map(str, args)])


def test_given_policies_come_first():
    done = call(*LAW, "--policy", "hedge(d=300,t_inf=900,q=1)", "--policy", "delayed(t0=300,t_inf=450)", "--json")
    assert done.exit_code == 0
    document = json.loads(done.stdout)
    first, second = document["strategies"][:2]
    assert (first["policy"], first["parameters"]) == ("hedge(d=300,t_inf=900,q=1)", {"d": 300, "t_inf": 900, "q": 1})
    assert first["expected_duration"] == pytest.approx(303.37031, rel=1e-7)
    assert second["submissions"] == pytest.approx(1.610443, rel=1e-6)
    assert document["load"] is None
    assert document["objective"] == "mean"


def test_the_bundled_log():
    done = call(EGEE, "--cutoff", 10000, "--current", 1000, "--utilisation", 0.6, "--json")
    document = json.loads(done.stdout)
    first = document["strategies"][0]
    assert (first["role"], first["policy"]) == ("given", "timeout(t=1000)")
    for row in document["strategies"][1:]:
        interval = row["interval"]
        assert interval["low"] <= row["expected_duration"] <= interval["high"]
        # the ratio to the first is known better than either: common resamples
        if row["policy"].startswith("timeout"):
            assert (
                interval["ratio_high"] - interval["ratio_low"]
                < (interval["high"] - interval["low"]) / interval["low"] * 2
            )
    assert len(document["load"]) == len(document["strategies"])
    assert "faster" in document["decision"]


def test_text_decides_in_its_first_sentence():
    done = call(*LAW, "--utilisation", 0.7)
    first, *rest = done.output.splitlines()
    assert first.startswith("Hedge after 243")
    assert "22 % faster" in first
    text = "\n".join(rest)
    for words in (
        "same load",
        "no limit",
        "job-seconds",
        "Does your cancel reach the server?",
        "less than 375 s a job",
    ):
        assert words in text


def test_wrong_usage_and_bad_input():
    assert call().exit_code == 2
    assert call(*LAW, EGEE).exit_code == 2
    assert call(*LAW, "--utilisation", 2).exit_code == 2
    for wrong in (["--policy", "hedge(x=1)"], ["--same", "x"], ["--objective", "median"]):
        done = call(*LAW, *wrong)
        assert done.exit_code == 1
        assert done.stderr.startswith("latfit: ")


def test_the_page_on_strategies_runs():
    blocks = re.findall(r"^```python\n(.*?)^```", (REPO / "docs" / "strategies.md").read_text(), flags=re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "strategies.md", "exec"), {})
