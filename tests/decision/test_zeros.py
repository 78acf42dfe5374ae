"""If the clock shows 0 for every latency, nothing is recommended."""

import json

import pytest


@pytest.fixture
def zeros(tmp_path):
    path = tmp_path / "zeros.csv"
    path.write_text("latency,status\n" + "0,ok\n" * 60 + ",lost\n" * 5)
    return str(path)


@pytest.mark.parametrize("options", [[], ["--cost", "1"], ["--objective", "quantile:0.9"]])
def test_the_timeout_is_not_zero(run, zeros, options):
    told = json.loads(run("timeout", zeros, "--json", *options).stdout)
    assert (told["verdict"], told["timeout"], told["withheld"]) == ("withheld", None, ["not-identified"])


def test_analyze_asks_for_finer_records(run, zeros):
    assert "record finer" in run("analyze", zeros, "--resamples", "0").stdout


def test_strategies_cannot_be_compared(run, zeros):
    done = run("compare", zeros)
    assert done.returncode == 1
    assert "takes 0 s" in done.stderr.splitlines()[-1]
