"""Histograms from the shell: the contract of `timeout` and `analyze`."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from conftest import EGEE
from latfit.cli import main

CSV = "le,count\n.05,0\n.1,10\n.25,40\n.5,30\n1,10\n+Inf,6\n"
SCRAPE = (
    "# TYPE rpc_seconds histogram\n"
    + "".join(
        f'rpc_seconds_bucket{{site="{site}",le="{le}"}} {n}\n'
        for site in "ab"
        for le, n in (("0.05", 0), ("0.1", 10), ("0.25", 50), ("0.5", 80), ("1", 90), ("+Inf", 96))
    )
    + "# TYPE timeouts counter\ntimeouts_total 8\n"
)


@pytest.fixture
def call():
    """The command in this process, which is much faster than starting it."""

    def call(*args, stdin=None):
        done = CliRunner().invoke(main, [*map(str, args)], input=stdin)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return SimpleNamespace(returncode=done.exit_code, stdout=done.stdout, stderr=done.stderr)

    return call


@pytest.fixture
def golden(tmp_path):
    path = tmp_path / "h.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def scrape(tmp_path):
    path = tmp_path / "m.prom"
    path.write_text(SCRAPE)
    return path


def document(finished):
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


def test_contract(run, call, golden):
    found = document(run("timeout", golden, "--lost", 4, "--json"))
    assert (found["timeout"], found["verdict"]) == (0.5, "finite")
    assert found["guaranteed"] == pytest.approx(0.45, rel=1e-9)
    assert found["least"] == pytest.approx(0.19, rel=1e-9)
    assert found["worst_regret"] == pytest.approx(0.9407894736842106)
    assert found["buckets"][0] == {"le": 0.05, "count": 0, "low": None, "high": None}
    assert found["buckets"][3] == {"le": 0.5, "count": 30, "low": 0.275, "high": 0.45}
    assert {"expected_duration", "submissions", "quantiles", "within_1pct", "objective"} <= set(found)
    assert found["likely"]["law"].startswith("lognormal(")
    with_sum = document(call("timeout", golden, "--lost", 4, "--sum", 26, "--json"))
    assert with_sum["guaranteed"] == pytest.approx(0.3125, rel=1e-9)


def test_the_text_begins_with_the_decision(call, golden):
    finished = call("timeout", golden, "--lost", "4")
    log, decision = finished.stdout.split("\n\n")
    assert "4 lost" in log
    headline, *figures = decision.splitlines()
    assert "500 ms" in headline
    for fact in ("450 ms", "190 ms", "94.1 %", "0.5 %"):  # the guarantee, the least, the worst and the likely regret
        assert fact in " ".join(figures)


def test_analyze_gives_the_same_answer(call, golden):
    assert call("analyze", golden, "--lost", "4").stdout == call("timeout", golden, "--lost", "4").stdout
    inside = document(call("analyze", golden, "--lost", "4", "--cost", "0.1", "--json"))
    plain = document(call("timeout", golden, "--lost", "4", "--cost", "0.1", "--json"))
    assert inside["warnings"] == plain.pop("warnings")
    assert inside["timeout"] == plain


def test_standard_input_counters_and_labels(run, call, scrape):
    found = document(run("timeout", "-", "--lost", "timeouts_total", "--json", stdin=SCRAPE))
    assert found["counts"] == {"in_buckets": 180, "beyond": 12, "failed": 0, "lost": 8}
    assert found["guaranteed"] == pytest.approx(0.45, rel=1e-9)
    one = document(call("timeout", scrape, "--where", "site=a", "--lost", "4", "--json"))
    assert one["guaranteed"] == pytest.approx(0.45, rel=1e-9)
    told = call("timeout", scrape).stderr
    assert "2 series are added up (site differ)" in told


def test_before(call, scrape, tmp_path):
    later = tmp_path / "later.prom"
    later.write_text(SCRAPE.replace('"+Inf"} 96', '"+Inf"} 99').replace("_total 8", "_total 9"))
    found = document(call("timeout", later, "--before", scrape, "--lost", "timeouts", "--json"))
    assert found["counts"] == {"in_buckets": 0, "beyond": 6, "failed": 0, "lost": 1}
    assert (found["timeout"], found["warnings"][0]["code"]) == (None, "few-completions")


def test_failures_widen_the_bounds(call, golden):
    lost = document(call("timeout", golden, "--lost", "4", "--json"))
    failed = document(call("timeout", golden, "--failures", "4", "--json"))
    assert failed["guaranteed"] == lost["guaranteed"]
    assert failed["least"] < lost["least"]
    assert failed["worst_regret"] > lost["worst_regret"]


def test_other_questions_get_a_likely_answer_that_says_so(call, golden):
    found = document(call("timeout", golden, "--lost", "4", "--copies", "2", "--json"))
    assert found["warnings"][0]["code"] == "spread"
    fitted = document(call("timeout", golden, "--lost", "4", "--law", "lognormal", "--json"))
    assert fitted["timeout"] == pytest.approx(0.6007, rel=1e-3)
    assert fitted["rho"] == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("arguments", "code", "match"),
    [
        (("fit", "{golden}"), 1, "this is a histogram (histogram-csv), not a log of probes"),
        (("timeout", "{golden}", "--lost", "nothing_total"), 1, "there is no counter 'nothing_total'"),
        (("timeout", "{golden}", "--lost", "-4"), 2, "neither a count nor the name of a counter"),
        (("timeout", "{golden}", "--sum", "1000"), 0, ""),
        (("timeout", "{golden}", "--sum", "1"), 1, "in another unit"),
        (("timeout", "{golden}", "--column", "latency=le"), 1, "--column latency=… does not apply"),
        (("timeout", "{golden}", "--law", "piecewise-uniform"), 1, "could not be fitted"),
        (("analyze", "{golden}", "--current", "3"), 2, "--current needs a log of probes"),
        (("timeout", "{egee}", "--lost", "4"), 2, "--lost is for histograms"),
        (("timeout", "{golden}", "--since", "2026-03-01"), 2, "--since needs the times of probes"),
    ],
)  # fmt: skip
def test_errors_are_one_clear_line(call, golden, arguments, code, match):
    finished = call(*(word.format(golden=golden, egee=EGEE) for word in arguments))
    assert finished.returncode == code, finished.stderr
    assert match in finished.stderr
    assert "Traceback" not in finished.stderr
