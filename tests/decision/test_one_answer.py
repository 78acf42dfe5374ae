"""One answer everywhere: every field that two ways share is equal, warnings included."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import latfit
from conftest import EGEE
from latfit.cli import main
from latfit.cli.common import document_text, json_values
from latfit.decision import Options, decide
from latfit.evidence import probes_of
from latfit.units import seconds

REST = {"resamples": 19}
BATCH = {  # a column of a batch, and where `analyze` has it
    "probes": "log.probes", "completed": "log.completed", "failed": "log.failed", "censored": "log.censored",
    "lost": "log.lost", "cutoff": "outliers.cutoff", "count": "outliers.count", "ratio": "outliers.ratio",
    "ratio_low": "outliers.low", "ratio_high": "outliers.high", "mean": "latency.mean", "std": "latency.std",
    "median": "latency.quantiles.0_5", "best": "best", "verdict": "timeout.verdict", "basis": "timeout.basis",
    "timeout": "timeout.timeout", "low": "timeout.low", "high": "timeout.high",
    "exact_timeout": "timeout.exact_timeout", "expected_duration": "timeout.expected_duration",
    "expected_duration_corrected": "timeout.expected_duration_corrected",
    "expected_duration_low": "timeout.expected_duration_low",
    "expected_duration_high": "timeout.expected_duration_high", "submissions": "timeout.submissions",
    "speed_up_vs_cutoff": "timeout.speed_up_vs_cutoff", "speed_up_vs_cutoff_low": "timeout.speed_up_vs_cutoff_low",
    "speed_up_vs_cutoff_high": "timeout.speed_up_vs_cutoff_high", "mixing": "evidence.mixing.column",
    "mixing_share": "evidence.mixing.share", "lag1": "evidence.dependence.lag1",
    "replay": "evidence.replay.expected_duration", "replay_waiting": "evidence.replay.waiting",
}  # fmt: skip
OTHERWISE = {  # compared below
    "params", "joint_ratio", "p_bootstrap", "withheld", "changes", "warnings", "error",
    "retry_timeouts", "retry_expected_duration", "retry_worst_loss",
}  # fmt: skip
ELSEWHERE = {"guaranteed", "least", "worst_regret", "likely_regret", "file"}  # of histograms, and of many files
OF_A_LOG = {"refused", "no-outcomes"}  # warnings about reading, which a batch counts for all logs together
OF_A_TEST = {"all-rejected", "rho-disagree"}  # `timeout` tests no law


def call(*args):
    done = CliRunner().invoke(main, [*map(str, args)])
    assert done.exit_code == 0, done.stderr
    return done.stdout


def document(*args):
    return json.loads(call(*args, "--json"))


def rows(path, *args):
    call("batch", *args, "--workers", 1, "-o", path)
    return [json.loads(line) for line in path.read_text().splitlines()]


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


def at(document, path):
    """What a document has at a path, None where a part of the way is null."""
    for name in path.split("."):
        document = document and document[name.replace("_", ".") if name == "0_5" else name]
    return document


def unequal(one, two, path=""):
    """Where two documents differ, over the names that both have."""
    if isinstance(one, dict) and isinstance(two, dict):
        return [found for name in one.keys() & two.keys() for found in unequal(one[name], two[name], f"{path}.{name}")]
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [found for k, pair in enumerate(zip(one, two, strict=True)) for found in unequal(*pair, f"{path}[{k}]")]
    numbers = isinstance(one, float) and isinstance(two, float)
    return [] if one == (pytest.approx(two, rel=1e-9, abs=1e-300) if numbers else two) else [(path, one, two)]


def codes(warnings):
    return [warned["code"] for warned in warnings]


def compare_row(row, a):
    """A row of a batch against `analyze`, every column of it."""
    assert set(row) <= {*BATCH, *OTHERWISE, *ELSEWHERE}, "a new column: say here where `analyze` has it"
    assert [(name, row[name], at(a, path)) for name, path in BATCH.items() if unequal(row[name], at(a, path))] == []
    assert row["withheld"] == ",".join(a["timeout"]["withheld"])
    assert row["warnings"] == ",".join(code for code in codes(a["warnings"]) if code not in OF_A_LOG)
    retry = a["timeout"]["retry"] or {}
    assert row["retry_timeouts"] == (json.dumps(retry["timeouts"]) if retry else None)
    for name in ("expected_duration", "worst_loss"):
        assert not unequal(row[f"retry_{name}"], retry.get(name))
    drift = a["evidence"]["drift"]
    assert row["changes"] == (None if drift is None else len(drift["changes"]))
    best = next((fit for fit in a["fits"] if fit["law"] == a["best"] and fit["method"] == "mle"), None)
    if best is None:
        assert row["params"] is row["p_bootstrap"] is None
        return
    assert row["p_bootstrap"] == best["ks"]["p_bootstrap"]
    assert json.loads(row["params"]) == pytest.approx(best["params"], rel=1e-9)
    joint = a["outliers"]["joint_ratio"]
    assert row["joint_ratio"] == pytest.approx(best["rho"] if joint is None else joint, rel=1e-9)


def compare_commands(path, a, *more):
    """`timeout`, `outliers`, `fit` and `agents` against `analyze`, every name that they share."""
    told = document("timeout", path, "--resamples", REST["resamples"], *more)
    assert len(told.keys() & a["timeout"].keys()) > 25
    assert unequal(told, {**a["timeout"], "evidence": a["evidence"]}) == []
    seen = [code for code in codes(a["warnings"]) if code not in OF_A_LOG | OF_A_TEST]
    assert [code for code in codes(told["warnings"]) if code not in OF_A_LOG] == seen
    assert unequal(document("outliers", path, *more), a["outliers"]) == []
    fits = document("fit", path, "--bootstrap", 0, *more)["fits"]
    known = {(fit["law"], fit["method"]): fit for fit in a["fits"]}
    for fit in fits:
        own = known[fit["law"], fit["method"]]
        assert unequal({**fit, "ks": {**fit["ks"], "p_bootstrap": own["ks"]["p_bootstrap"]}}, own) == []
    assert a["best"] == (fits[0]["law"] if fits[0]["error"] is None else None)
    asked = document("agents", "--agent", f"x={path}", *more)
    formula = a["timeout"]["if_independent"] or a["timeout"]
    if formula["verdict"] != "withheld":
        assert asked["strategy"] == [{"agent": "x", "timeout": formula["exact_timeout"]}]
        if formula["exact_timeout"] == formula["timeout"]:
            assert unequal(asked, formula) == []


def compare_groups(path, a, tmp_path, *more):
    """The groups of `analyze` against the rows of a batch with the same cutoff, every name that they share."""
    by = rows(tmp_path / "by.jsonl", path, "--by", "site", "--cutoff", a["outliers"]["cutoff"], "--resamples",
              REST["resamples"], *more)  # fmt: skip
    for row, group in zip(by, a["groups"], strict=True):
        assert len(row.keys() & group.keys()) > 20
        mine = {**group, "warnings": ",".join(group["warnings"]), "withheld": ",".join(group.get("withheld", ()))}
        few = "few-completions" in mine["withheld"]
        assert unequal({name: row[name] for name in row if not (few and name == "error")}, mine) == []


def compare_python(path, a, *, by=(), **options):
    """`latfit.analyze` and `decide` against the command."""
    log = latfit.read_log(path)
    result = latfit.analyze(log, by=by, **REST, **options)
    assert json.loads(document_text(result.to_dict())) == {**a, "log": {**a["log"], "path": str(path)}}
    made = decide([probes_of(log)], Options(**REST, **options), detail=True)[0]
    assert unequal(json_values(made.timeout.to_dict()), a["timeout"]) == []
    assert list(made.codes) == [code for code in codes(a["warnings"]) if code not in OF_A_LOG]
    sample = log.sample()
    if made.evidence.censoring.common_time is None and made.evidence.censoring.cut_at is None:
        assert latfit.outlier_ratio(sample.cut(a["outliers"]["cutoff"])).n == a["log"]["probes"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
def test_random_logs(seed, tmp_path):
    rng, path = np.random.default_rng(seed), tmp_path / "log.csv"
    random_log(rng, path)
    failed = str(rng.choice(["retry", "completed", "lost"]))
    more = ["--failed", failed]
    a = document("analyze", path, "--resamples", REST["resamples"], "--by", "site", *more)
    assert {group["site"] for group in a["groups"]} == {"a", "b"}
    (row,) = rows(tmp_path / "all.jsonl", path, "--resamples", REST["resamples"], *more)
    compare_row(row, a)
    compare_commands(path, a, *more)
    compare_groups(path, a, tmp_path, *more)
    compare_python(path, a, by=("site",), failed=failed)


@pytest.mark.slow
def test_the_bundled_log(tmp_path):
    a = document("analyze", EGEE, "--resamples", REST["resamples"])
    (row,) = rows(tmp_path / "x.jsonl", EGEE, "--resamples", REST["resamples"])
    compare_row(row, a)
    compare_commands(EGEE, a)
    compare_python(EGEE, a)


@pytest.mark.parametrize("name", ["jmeter-slow.jtl", "hourly-ping.csv.gz", "k6-finance.csv.gz", "sge-accounting.gz"])
@pytest.mark.slow
def test_real_logs(name, shared, tmp_path):
    more = ["--resamples", 19, "--max-refused", 1]
    a = document("analyze", shared / name, *more)
    (row,) = rows(tmp_path / "x.jsonl", shared / name, *more)
    compare_row(row, a)
    told = document("timeout", shared / name, *more)
    assert unequal(told, {**a["timeout"], "evidence": a["evidence"]}) == []
    assert unequal(document("outliers", shared / name, "--max-refused", 1), a["outliers"]) == []


@pytest.mark.slow
def test_deciding_many_at_once_equals_deciding_each_alone():
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


@pytest.mark.slow
def test_testing_many_at_once_equals_testing_each_alone():
    """Two bumps, so that the laws of many parameters are tried in the batch too."""
    rng = np.random.default_rng(7)
    samples = []
    for k in range(2, 4):
        x = np.where(rng.random(300) < 0.2 * (k % 3), rng.lognormal(6, 0.2, 300), rng.lognormal(3, 0.5, 300))
        samples.append(latfit.LatencySample.of(np.round(x, 2), lost=4 * (k % 2)))
    options = Options(resamples=20)
    keys = [(str(k),) for k in range(2)]
    every = decide(samples, options, keys=keys)
    for one, key, together in zip(samples, keys, every, strict=True):
        alone = decide([one], options, keys=[key])[0]
        assert [f.fit.name for f in together.fits] == [f.fit.name for f in alone.fits]
        for a, b in zip(together.fits, alone.fits, strict=True):
            assert (a.fit.error is None) == (b.fit.error is None)
            assert a.fit.params == (pytest.approx(b.fit.params, rel=1e-6) if b.fit.params else b.fit.params)
            assert (a.ks and a.ks.p_bootstrap) == (b.ks and b.ks.p_bootstrap)
        assert together.codes == alone.codes
    assert any(f.fit.name == "lognormal-pareto" for made in every for f in made.fits)


def test_an_empty_list_of_laws_is_allowed():
    rng = np.random.default_rng(6)
    samples = [latfit.LatencySample.of(rng.lognormal(3, 1, 50)) for _ in range(3)]
    for made in decide(samples, Options(laws=(), resamples=0, test=False)):
        assert made.best is None
        assert made.timeout.timeout is not None


def told(*args):
    return " ".join(call(*args).split())


def failing(path):
    """Half of those that do not complete fail visibly."""
    rng = np.random.default_rng(6)
    status = rng.choice(["completed", "failed", "lost"], 300, p=[0.8, 0.1, 0.1])
    latency = np.where(status == "lost", np.nan, np.where(status == "failed", 3.0, rng.lognormal(1, 1, 300)))
    pd.DataFrame({"latency": latency, "status": status}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("more", [(), ("--at", 20), ("--law", "lognormal")])
def test_visible_failures_are_not_reported_as_rho(more, tmp_path):
    log = failing(tmp_path / "x.csv")
    share = document("timeout", log, "--resamples", 0, *more)["rho"]
    text = told("timeout", log, "--resamples", 0, *more)
    assert f"{100 * share:.4g} % of attempts do not complete" in text
    assert "rho = " not in text
    assert "rho = " in told("timeout", log, "--resamples", 0, "--failed", "lost", *more)


@pytest.mark.slow
def test_timeout_and_analyze_report_the_same_duration(tmp_path):
    """Without the optimism of having chosen the least."""
    log = failing(tmp_path / "x.csv")
    made = document("timeout", log)
    E, fair = made["expected_duration"], made["expected_duration_corrected"]
    assert abs(fair / E - 1) > 0.01
    for text in (told("timeout", log), told("analyze", log, "--full")):
        assert f"mean duration {seconds(fair)} a job" in text
        assert f"The data alone give {seconds(E)}" in text
