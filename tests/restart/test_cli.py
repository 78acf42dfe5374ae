"""`latfit timeout`, `latfit agents` and `latfit laws` as a user runs them."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main

V = "erlang-mixture(p=[0.9,0.1],phases=[2,2],rates=[20,2])"
LOGNORMAL = "lognormal(mu=5.5,sigma=1)"
KEYS = {"verdict", "timeout", "expected_duration", "std_duration", "quantiles", "submissions", "within_1pct",
        "within_5pct", "conservative_timeout", "speed_up", "rho", "law", "cost", "objective", "warnings",
        "job_seconds", "parallel", "success"}  # fmt: skip


@pytest.fixture
def run():
    """The command in this process, which spares the imports."""

    def call(*args):
        done = CliRunner().invoke(main, [str(arg) for arg in args])
        assert done.exception is None or isinstance(done.exception, SystemExit)
        return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    return call


@pytest.fixture
def js(run):
    def call(*args):
        done = run(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout, parse_constant=lambda c: pytest.fail(f"{c} is not JSON"))

    return call


def test_law(js):
    best = js("timeout", "--law", V)
    assert set(best) == KEYS
    assert best["verdict"] == "finite"
    assert best["timeout"] == pytest.approx(0.1982536, abs=1e-7)
    assert best["law"] == V
    assert best["objective"] == {"name": "mean", "value": pytest.approx(best["expected_duration"], rel=1e-14)}


@pytest.mark.parametrize(("rho", "verdict"), [(0, "any"), (0.03, "immediate")])
def test_fields_that_are_null_for_a_verdict(js, rho, verdict):
    best = js("timeout", "--law", "exponential(rate=0.01)", "--rho", rho)
    assert best["verdict"] == verdict
    assert best["submissions"] is None
    assert best["timeout"] == (None if verdict == "any" else 0)
    assert best["within_1pct"][1 if verdict == "any" else 0] == (None if verdict == "any" else 0)
    assert js("timeout", "--law", "uniform(a=1,b=2)")["within_1pct"][1] is None


def test_schedule(js):
    best = js("timeout", "--law", V, "--restarts", 3)
    assert best["schedule"] == pytest.approx([0.200177, 0.208712, 0.249463], abs=1e-6)
    assert best["timeout"] == best["schedule"][0]
    assert best["expected_duration"] == pytest.approx(0.127282, abs=1e-6)
    assert js("timeout", "--law", "exponential(rate=1)", "--restarts", 2)["schedule"] == [None, None]


def test_wall_clock_copies_objective_and_budget(js):
    law = ("timeout", "--law", LOGNORMAL, "--rho", 0.025)
    assert js(*law, "--wall-clock", 300)["expected_duration"] == pytest.approx(737, abs=0.5)
    assert js(*law, "--copies", 2)["submissions"] == pytest.approx(2.198, abs=1e-3)
    assert js(*law, "--objective", "deadline:1200")["objective"]["value"] == pytest.approx(0.9646, abs=1e-4)
    assert js(*law, "--max-submissions", 1.2)["submissions"] == pytest.approx(1.2)
    given = js(*law, "--at", 300)
    assert (given["verdict"], given["timeout"]) == ("given", 300)
    assert given["expected_duration"] > js(*law)["expected_duration"]


def test_log(js):
    best = js("timeout", EGEE, "--cutoff", 10000)
    assert best["law"] == "empirical"
    assert best["timeout"] == pytest.approx(358, abs=3)
    assert best["expected_duration"] == pytest.approx(300, abs=1)
    without = js("timeout", EGEE, "--cutoff", 10000, "--rho", 0)
    assert without["timeout"] == pytest.approx(360, abs=3)
    assert without["speed_up"] == pytest.approx(1.36, abs=0.006)
    fitted = js("timeout", EGEE, "--cutoff", 10000, "--law", "lognormal")
    assert fitted["law"].startswith("lognormal(mu=")
    assert fitted["rho"] == pytest.approx(0.025, abs=0.005)


def write(path, latencies):
    path.write_text("latency,status\n" + "".join(f"{x},completed\n" for x in latencies))
    return path


def test_few_completions(run, js, tmp_path):
    log = write(tmp_path / "few.csv", [3, 4, 5, 100])
    best = js("timeout", log)
    assert best["timeout"] is None
    assert set(best) >= KEYS
    assert [w["code"] for w in best["warnings"]] == ["few-completions"]
    human = run("timeout", log)
    assert human.returncode == 0
    assert "only 4 of 4 probes completed" in human.stderr


def test_not_identified(js, tmp_path):
    log = write(tmp_path / "zeros.csv", [0] * 30 + [60 * i for i in range(1, 60)])
    best = js("timeout", log)
    assert best["timeout"] is None or best["timeout"] >= 60
    unclear = [w["message"] for w in best["warnings"] if w["code"] == "not-identified"]
    assert "--cost" in unclear[0]
    assert "not-identified" not in [w["code"] for w in js("timeout", log, "--cost", 600)["warnings"]]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--law", LOGNORMAL, "--rho", 0.025, "--restarts", 3],
        ["--law", "lognormal(mu=1)"],
        ["--law", "nosuch(a=1)"],
        ["--law", "lognormal(mu=1,sigma=-2)"],
        ["--law", LOGNORMAL, "--rho", 1.2],
        ["--law", LOGNORMAL, "--rho", -0.1],
        ["--law", LOGNORMAL, "--rho", "nan"],
        ["--law", LOGNORMAL, "--max-submissions", 0.5],
        ["--law", LOGNORMAL, "--wall-clock", 500, "--objective", "deadline:100"],
        ["no-such-file.csv"],
        [EGEE, "--law", "nosuch"],
    ],
)
def test_bad_input_is_1_and_one_line(run, arguments):
    done = run("timeout", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("latfit: ")


def test_finite_restarts_with_outliers_says_what_to_do(run):
    message = run("timeout", "--law", LOGNORMAL, "--rho", 0.025, "--restarts", 3).stderr
    assert "unbounded" in message
    assert "deadline" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["timeout"],
        ["timeout", "--law", LOGNORMAL, "--cost", -1],
        ["timeout", "--law", LOGNORMAL, "--cost", "nan"],
        ["timeout", "--law", LOGNORMAL, "--copies", 0],
        ["timeout", "--law", LOGNORMAL, "--objective", "median"],
        ["timeout", "--law", LOGNORMAL, "--restarts", 0],
        ["timeout", "--law", LOGNORMAL, "--restarts", 2, "--copies", 2],
        ["timeout", "--percentiles", "p50=2,p40=3"],
        ["timeout", "--percentiles", "p50=2", "--jobs", 3],
        ["timeout", "--law", LOGNORMAL, "--at", 3, "--max-submissions", 2],
        ["timeout", EGEE, "--law", LOGNORMAL],
        ["agents"],
        ["agents", "--agent", "nameless"],
        ["agents", "--agent", "a=uniform(a=1,b=2)", "--agent", "a=uniform(a=1,b=3)"],
    ],
)
def test_wrong_usage_is_2(run, arguments):
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_human_output(run):
    text = run("timeout", EGEE, "--cutoff", 10000).stdout
    for words in ("To set: resubmit after 358 s and 716 s", "mean duration", "submissions a job", "317 to 402 s"):
        assert words in text
    assert "let it run" in run("timeout", "--law", V, "--restarts", 2).stdout
    assert "no timeout helps" in run("timeout", "--law", "uniform(a=1,b=2)").stdout
    assert "tends to 0" in run("timeout", "--law", "pareto(a=1,nu=2)").stdout
    assert "Any timeout" in run("timeout", "--law", "exponential(rate=1)").stdout
    assert "in time" in run("timeout", "--law", V, "--objective", "deadline:0.5").stdout
    assert "With a timeout of 3 s" in run("timeout", "--law", V, "--at", 3).stdout


INTRO = "site=discrete(values=[5,20],probs=[0.6,0.4])"


def test_agents(js, run, tmp_path):
    for restarts, E, n in ((0, 11, 1), (1, 9.4, 2), (2, 8.76, 3)):
        best = js("agents", "--agent", INTRO, "--restarts", restarts)
        assert best["expected_duration"] == pytest.approx(E)
        assert [step["timeout"] for step in best["strategy"]] == [5] * (n - 1) + [None]
    alone = js("agents", "--agent", INTRO)
    assert alone["expected_duration"] == pytest.approx(25 / 3)
    assert alone["strategy"] == [{"agent": "site", "timeout": 5}]
    assert (alone["submissions"], alone["success"]) == (pytest.approx(1 / 0.6), 1)
    assert alone["quantiles"]["0.95"] == 20
    log = write(tmp_path / "here.csv", [2, 2, 2, 400] * 2)
    best = js("agents", "--agent", INTRO, "--agent", f"here={log}", "--restarts", 1)
    assert best["strategy"] == [{"agent": "here", "timeout": 2}, {"agent": "site", "timeout": None}]
    assert (
        "then ask site, let it run" in run("agents", "--agent", INTRO, "--agent", f"here={log}", "--restarts", 1).stdout
    )
    dear = js("agents", "--agent", INTRO, "--restarts", 1, "--cost", 30)
    assert dear["strategy"] == [{"agent": "site", "timeout": None}]
    done = run("agents", "--agent", "a=pareto(a=1,nu=0.9)", "--restarts", 1)
    assert done.returncode == 1
    assert "unbounded" in done.stderr


def test_laws(js, run):
    rows = js("laws")["laws"]
    assert {"lognormal", "lognormal-pareto", "empirical", "discrete"} <= {row["name"] for row in rows}
    text = run("laws").stdout
    assert all(row["name"] in text and row["formula"] in text for row in rows)
    for row in rows:
        if row["example"]:
            assert js("timeout", "--law", row["example"])["law"].startswith(row["name"])


def test_a_timeout_before_the_first_completion_is_reported_as_useless(run):
    done = run("timeout", EGEE, "--at", 0)
    assert done.returncode == 0
    assert "no job would ever end: no attempt completes by then" in " ".join(done.stdout.split())
    assert json.loads(run("timeout", EGEE, "--at", 0, "--json").stdout)["expected_duration"] is None


def test_a_timeout_that_tends_to_0_has_the_spread_of_an_exponential(run, tmp_path):
    path = tmp_path / "log.csv"
    x = 100 * (np.random.default_rng(2).random(400) ** (-1 / 0.7) - 1)
    path.write_text("latency\n" + "".join(f"{value:.6f}\n" for value in x))
    told = json.loads(run("timeout", path, "--law", "pareto", "--resamples", "0", "--json").stdout)
    assert told["verdict"] == "immediate"
    assert told["std_duration"] == pytest.approx(told["expected_duration"])
    assert told["quantiles"]["0.5"] == pytest.approx(np.log(2) * told["expected_duration"])
