"""One answer everywhere: every field that two ways share is equal, warnings included."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import latfit
from conftest import EGEE
from latfit.cli import main
from latfit.decision import Options, decide
from latfit.evidence import Observations

SHARED = ("timeout", "verdict", "basis", "exact_timeout", "expected_duration", "expected_duration_corrected", "low",
          "high", "expected_duration_low", "expected_duration_high", "submissions", "speed_up_vs_cutoff",
          "speed_up_vs_cutoff_low", "speed_up_vs_cutoff_high")  # fmt: skip


def call(*args):
    done = CliRunner().invoke(main, [*map(str, args)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def document(*args):
    return json.loads(call(*args, "--json"))


def random_log(rng, path):
    """Failures, early censoring, ties, zeros, coarse clocks, lost probes, times and groups, in some of them."""
    n = int(rng.integers(40, 400))
    x = rng.lognormal(rng.uniform(-3, 6), rng.uniform(0.2, 1.6), n)
    step = float(rng.choice([0, 0.001, 1, 60]))
    if step:
        x = np.round(x / step) * step
    p = np.array([0.8, rng.choice([0, 0.1]), rng.choice([0, 0.1]), rng.choice([0, 0.05])])
    status = rng.choice(["completed", "failed", "censored", "lost"], n, p=p / p.sum())
    status[:10] = "completed"
    frame = pd.DataFrame({"latency": x, "status": status})
    if rng.random() < 0.7:
        frame["submitted"] = 1.7e9 + np.cumsum(rng.exponential(10, n)).round(3)
    frame["site"] = rng.choice(["a", "b"], n)
    frame.to_csv(path, index=False)


def same(a, b):
    return a == (pytest.approx(b, rel=1e-9) if isinstance(b, float) else b)


def compare(path, tmp_path, *more):
    a = document("analyze", path, "--resamples", 49, "--by", "site", *more)
    t = document("timeout", path, "--resamples", 49, *more)
    o = document("outliers", path, *more)
    f = document("fit", path, "--bootstrap", 0, *more)
    call("batch", path, "--resamples", 49, "--workers", 1, "-o", tmp_path / "all.jsonl", *more)
    row = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])
    own = a["timeout"]
    for name in SHARED:
        assert same(t[name], own[name]), name
        assert same(row[name], own[name]), name
    assert t["withheld"] == own["withheld"] == [code for code in row["withheld"].split(",") if code]
    told = [w["code"] for w in a["warnings"] if w["code"] not in ("refused", "no-outcomes")]
    assert row["warnings"].split(",") == told or (not told and row["warnings"] == "")
    tests = {"all-rejected", "rho-disagree"}  # `timeout` tests no law
    assert [w["code"] for w in t["warnings"]] == [code for code in told if code not in tests]
    assert row["best"] == a["best"] == (f["fits"][0]["law"] if f["fits"][0]["error"] is None else None)
    for mine, theirs in (("ratio", "ratio"), ("low", "ratio_low"), ("high", "ratio_high"), ("count", "count")):
        assert o[mine] == a["outliers"][mine] == row[theirs]
    assert o["cutoff"] == a["outliers"]["cutoff"] == row["cutoff"]
    best = next((fit for fit in a["fits"] if fit["law"] == a["best"] and fit["method"] == "mle"), None)
    if best is not None:
        assert row["p_bootstrap"] == best["ks"]["p_bootstrap"]
        assert json.loads(row["params"]) == pytest.approx(best["params"], rel=1e-6)
    by = tmp_path / "by.jsonl"
    call(
        "batch",
        path,
        "--workers",
        1,
        "--by",
        "site",
        "--cutoff",
        a["outliers"]["cutoff"],
        "--resamples",
        49,
        "-o",
        by,
        *more,
    )
    for line, group in zip(by.read_text().splitlines(), a["groups"], strict=True):
        own = json.loads(line)
        assert own["site"] == group["site"]
        for name in SHARED:
            assert same(own[name], group[name]), name
        assert own["warnings"] == ",".join(group["warnings"])


@pytest.mark.parametrize("seed", range(6))
def test_random_logs(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_log(rng, tmp_path / "log.csv")
    compare(tmp_path / "log.csv", tmp_path, *(["--failed", str(rng.choice(["retry", "completed", "lost"]))]))


def test_the_bundled_log(tmp_path):
    a = document("analyze", EGEE, "--resamples", 49)
    t = document("timeout", EGEE, "--resamples", 49)
    call("batch", EGEE, "--workers", 1, "--resamples", 49, "-o", tmp_path / "x.jsonl")
    row = json.loads((tmp_path / "x.jsonl").read_text())
    for name in SHARED:
        assert same(a["timeout"][name], t[name]), name
        assert same(row[name], t[name]), name
    assert row["best"] == a["best"]
    made = decide([Observations.of(latfit.read_log(EGEE))], Options(resamples=49))[0]
    assert made.timeout.timeout == row["timeout"]
    assert ",".join(made.codes) == row["warnings"]


@pytest.mark.parametrize("name", ["jmeter-slow.jtl", "hourly-ping.csv.gz", "k6-finance.csv.gz", "sge-accounting.gz"])
def test_real_logs(name, shared, tmp_path):
    more = ["--resamples", 19, "--max-refused", 1]
    a = document("analyze", shared / name, *more)
    call("batch", shared / name, "--workers", 1, "-o", tmp_path / "x.jsonl", *more)
    row, t = json.loads((tmp_path / "x.jsonl").read_text()), document("timeout", shared / name, *more)
    for field in SHARED:
        assert same(row[field], a["timeout"][field]), field
        assert same(t[field], a["timeout"][field]), field
    assert row["withheld"] == ",".join(a["timeout"]["withheld"]) == ",".join(t["withheld"])


def test_many_at_once_are_each_alone():
    rng = np.random.default_rng(5)
    samples = [latfit.LatencySample.of(np.round(rng.lognormal(3, 1, int(rng.integers(8, 200))), 1), lost=int(k % 3))
               for k in range(40)]  # fmt: skip
    options = Options(resamples=0, test=False)
    keys = [(str(k),) for k in range(40)]
    for one, key, together in zip(samples, keys, decide(samples, options, keys=keys), strict=True):
        alone = decide([one], options, keys=[key])[0]
        assert together.timeout.timeout == alone.timeout.timeout
        assert together.timeout.expected_duration == pytest.approx(alone.timeout.expected_duration, rel=1e-12)
        assert together.best.fit.name == alone.best.fit.name
        assert together.codes == alone.codes


def test_no_law_may_be_asked_for():
    rng = np.random.default_rng(6)
    samples = [latfit.LatencySample.of(rng.lognormal(3, 1, 50)) for _ in range(3)]
    for made in decide(samples, Options(laws=(), resamples=0, test=False)):
        assert made.best is None
        assert made.timeout.timeout is not None
