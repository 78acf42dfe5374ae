"""The `fit` command, as a user runs it."""

import json

import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main


@pytest.fixture
def call():
    return lambda *args: CliRunner().invoke(main, ["fit", *map(str, args)])


def test_json_is_ranked_and_complete(call):
    done = call(EGEE, "--cutoff", 10000, "--law", "lognormal", "--law", "lognormal-pareto", "--method", "ls",
                "--bootstrap", 19, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    fits = json.loads(done.stdout)["fits"]
    assert [f["law"] for f in fits] == ["lognormal-pareto", "lognormal"]
    assert fits[0]["sse"] < fits[1]["sse"]
    assert set(fits[0]["ks"]) == {"statistic", "d_n", "n", "p_asymptotic", "p_bootstrap", "completed"}
    assert fits[0]["rho"] == pytest.approx(53 / 2137)
    assert fits[0]["log_likelihood"] is None


def test_likelihood_text_and_a_law_that_cannot_be_fitted(call):
    done = call(EGEE, "--law", "lognormal", "--law", "discrete", "--bootstrap", 0)
    assert done.exit_code == 0
    assert done.stdout.index("Could not be fitted: discrete") < done.stdout.index("lognormal")
    assert "p known ignores that the parameters were" in done.stdout
    assert "p boot" not in done.stdout


def test_the_papers_subsample_is_seeded(call):
    args = (EGEE, "--method", "ls", "--law", "lognormal-pareto", "--subsample", 1000, "--bootstrap", 0, "--json")
    first, again, other = call(*args), call(*args), call(*args, "--seed", 5)
    assert first.stdout == again.stdout != other.stdout
    assert json.loads(first.stdout)["fits"][0]["ks"]["n"] == 1000


@pytest.mark.parametrize(("args", "code"), [(["--law", "nosuch"], 1), (["--rho", "1.5"], 2), (["--method", "x"], 2)])
def test_wrong_input(call, args, code):
    done = call(EGEE, *args)
    assert done.exit_code == code
    assert "Traceback" not in done.output
