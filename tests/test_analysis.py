"""The whole pipeline: the paper's figures, the contract, the warnings, the report and the figures."""

import json

import numpy as np
import pandas as pd
import pytest

import latfit
from conftest import DATA, EGEE
from latfit import analyze
from latfit.plots import FIGURES, figure
from latfit.report import to_markdown, to_text

QUICK = ["lognormal", "weibull", "exponential"]


def table(tmp_path, latency, *, status=None, submitted=None, **columns):
    frame = pd.DataFrame({"latency": latency, **columns})
    if status is not None:
        frame["status"] = status
    if submitted is not None:
        frame["submitted"] = submitted
    frame.to_csv(tmp_path / "log.csv", index=False)
    return latfit.read_log(tmp_path / "log.csv", unit="s")


def codes(result):
    return {warning.code for warning in result.warnings}


@pytest.fixture(scope="module")
def egee():
    return analyze(latfit.example_log(), by="broker", current=1000, resamples=199)


@pytest.mark.slow
def test_the_papers_figures_through_the_shell(run):
    """Glatard et al. 2006, §4: 2.5 %, 393 s, 792 s; 360 s / 289 s / 1.36; 358 s / 300 s."""
    done = run("analyze", EGEE, "--json", "--resamples", 99)
    assert done.returncode == 0
    document = json.loads(done.stdout, parse_constant=lambda c: pytest.fail(f"{c} in the JSON"))
    assert document["outliers"]["ratio"] == pytest.approx(0.025, abs=0.0005)
    assert document["latency"]["mean"] == pytest.approx(393, abs=1)
    assert document["latency"]["std"] == pytest.approx(792, abs=3)
    counted, ignored = document["timeout"], document["timeout_without_outliers"]
    assert (counted["timeout"], counted["expected_duration"]) == (pytest.approx(358, abs=3), pytest.approx(300, abs=1))
    assert (ignored["timeout"], ignored["expected_duration"]) == (pytest.approx(360, abs=3), pytest.approx(289, abs=1))
    assert ignored["speed_up"] == pytest.approx(1.36, abs=0.006)
    hybrid = next(f for f in document["fits"] if f["law"] == "lognormal-pareto" and f["method"] == "ls")
    assert hybrid["ks"]["d_n"] == pytest.approx(1.35, abs=0.1)


@pytest.mark.slow
def test_python_and_the_shell_agree(run, egee):
    shell = json.loads(run("analyze", EGEE, "--json", "--resamples", 199, "--by", "broker", "--current", 1000).stdout)
    from latfit.cli.common import json_values

    here = json_values(egee.to_dict())
    here["log"]["path"] = shell["log"]["path"]
    assert shell == here


def test_the_document_of_the_bundled_log(egee):
    document = egee.to_dict()
    assert document["log"]["probes"] == 2137
    assert [g["broker"] for g in document["groups"]] == ["rb1", "rb2", "rb3"]
    assert sum(g["probes"] for g in document["groups"]) == 2137
    assert document["current"]["expected_duration"] == pytest.approx(333.7, abs=0.5)
    assert document["current"]["regret"] == pytest.approx(0.112, abs=0.002)
    assert document["best"] == document["fits"][0]["law"]
    bics = [f["bic"] for f in document["fits"] if f["bic"] is not None]
    assert bics == sorted(bics)
    best = document["timeout"]
    assert best["low"] <= best["timeout"] <= best["high"]
    assert best["expected_duration_low"] <= best["expected_duration"] <= best["expected_duration_high"]
    assert best["speed_up_vs_cutoff"] == pytest.approx(647.3 / 300.0, rel=1e-3)
    assert codes(egee) == {"ratio-falling", "all-rejected"}


def test_summary_quantiles_against_numpy(egee):
    x = np.repeat(egee.decision.sample.completed.values, egee.decision.sample.completed.counts)
    for q, value in egee.decision.latency.quantiles.items():
        assert value == np.quantile(x, float(q), method="inverted_cdf")


def test_a_named_law_is_recommended(egee):
    result = analyze(latfit.example_log(), law="lognormal", laws=QUICK, test=False, resamples=0)
    assert result.timeout.law.startswith("lognormal(mu=")
    assert result.timeout.timeout == pytest.approx(723.8, abs=1)
    with pytest.raises(latfit.LawError, match="nosuch"):
        analyze(latfit.example_log(), law="nosuch", laws=QUICK)


def test_scaling_time_scales_the_answer(tmp_path):
    rng = np.random.default_rng(4)
    x = np.round(rng.lognormal(5, 1, 800)) + 1
    status = np.where(rng.random(800) < 0.03, "lost", "completed")
    slow = analyze(table(tmp_path, x, status=status), laws=QUICK, resamples=49).to_dict()
    fast = analyze(table(tmp_path, x / 1000, status=status), laws=QUICK, resamples=49).to_dict()
    for key in ("timeout", "expected_duration", "low", "high", "std_duration"):
        assert fast["timeout"][key] * 1000 == pytest.approx(slow["timeout"][key], rel=1e-6)
    assert fast["timeout"]["speed_up_vs_cutoff"] == pytest.approx(slow["timeout"]["speed_up_vs_cutoff"], rel=1e-9)
    assert fast["best"] == slow["best"]


def test_drift_and_dependence_are_reported(tmp_path):
    rng = np.random.default_rng(6)
    when = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(600), unit="min")
    level = np.where(np.arange(600) < 300, 1.0, 2.0)
    drifting = analyze(table(tmp_path, level * rng.lognormal(5, 0.5, 600), submitted=when), laws=QUICK, test=False)
    assert {"drift", "dependence"} <= codes(drifting)
    steady = analyze(table(tmp_path, rng.lognormal(5, 0.5, 600), submitted=when), laws=QUICK, test=False)
    assert not {"drift", "dependence"} & codes(steady)


def test_too_few_completions(tmp_path):
    result = analyze(table(tmp_path, [5, 6, 7]), laws=QUICK)
    assert "few-completions" in codes(result)
    assert result.timeout.withheld == ("few-completions",)
    assert result.to_dict()["timeout"]["timeout"] is None
    assert "a timeout needs 5 or more" in " ".join(to_text(result).split())


def test_a_flat_curve_and_an_unidentified_optimum(tmp_path):
    rng = np.random.default_rng(8)
    flat = analyze(table(tmp_path, rng.exponential(100, 2000)), laws=QUICK, test=False)
    assert "flat" in codes(flat)
    zeros = analyze(table(tmp_path, np.floor(rng.lognormal(0, 2, 2000))), laws=QUICK, test=False)
    assert "not-identified" in codes(zeros)


def test_an_existing_timeout_is_warned_of(tmp_path):
    rng = np.random.default_rng(9)
    x = rng.lognormal(5.5, 1, 3000)
    seen = np.where(rng.random(3000) < 0.5, rng.uniform(100, 200, 3000), 5000.0)
    status = np.where(x <= seen, "completed", "censored")
    result = analyze(table(tmp_path, np.minimum(x, seen), status=status), laws=QUICK, test=False)
    assert "beyond-timeout" in codes(result)


def test_groups_that_really_differ_are_marked(tmp_path):
    rng = np.random.default_rng(10)
    x = np.concatenate([rng.lognormal(5, 1, 1500), rng.lognormal(6.5, 1, 300)])
    site = ["a"] * 1500 + ["b"] * 300
    result = analyze(table(tmp_path, x, site=site), by="site", laws=QUICK, test=False)
    marked = {group.key["site"]: group.differs for group in result.groups}
    assert marked["b"]
    assert result.groups[1].pooled_regret > 0.05
    assert not marked["a"]
    assert "*" not in to_text(result)  # both are to wait
    x = np.concatenate([rng.lognormal(3, 0.5, 1500), rng.lognormal(5, 0.5, 300)])
    x = np.where(rng.random(1800) < 0.1, 5000.0, x)
    result = analyze(table(tmp_path, x, site=site), by="site", laws=QUICK, test=False)
    rows = {line.split()[0]: line for line in to_text(result).splitlines() if line.startswith(("  a  ", "  b  "))}
    assert rows["b"].endswith("*")
    assert not rows["a"].endswith("*")


def test_failures_end_an_attempt(tmp_path):
    rng = np.random.default_rng(11)
    x = np.round(rng.lognormal(5, 1, 900), 1)
    status = np.where(rng.random(900) < 0.2, "failed", "completed")
    log = table(tmp_path, x, status=status)
    retry = analyze(log, laws=QUICK, test=False)
    lost = analyze(log, laws=QUICK, test=False, failed="lost")
    assert retry.timeout.expected_duration < lost.timeout.expected_duration
    assert retry.decision.outliers.estimate == 0
    assert lost.decision.outliers.estimate == pytest.approx((status == "failed").mean())


@pytest.mark.parametrize("name", ["probes.csv", "jobs.gwf", "sacct-header.txt", "results.jtl", "yearless.log"])
def test_tiny_logs_give_a_report(name, run):
    done = run("analyze", DATA / name, "--max-refused", 1, "--resamples", 19)
    assert done.returncode == 0, done.stderr
    assert "a timeout needs 5 or more" in " ".join(done.stdout.split())


def test_the_report_fits_80_columns_and_puts_the_decision_first(egee):
    text = to_text(egee)
    assert max(map(len, text.splitlines())) <= 80
    assert "\n\nResubmit after 358 s and 716 s, then wait\n" in text
    assert "647 s → 309 s a job" in text
    assert "1.26 submissions a job" in to_text(egee, full=True)


def test_markdown_escapes_what_came_from_the_log(tmp_path):
    site = ["<script>|`x`", "[a](b)"] * 20
    result = analyze(table(tmp_path, np.arange(1, 41), site=site), by="site", laws=QUICK, test=False)
    text = to_markdown(result)
    assert "<script>" not in text
    assert r"&lt;script&gt;\|\`x\`" in text
    rows = [line for line in text.splitlines() if line.startswith("| &lt;")]
    assert len(rows) == 1


@pytest.mark.slow
def test_output_folder_holds_everything(run, tmp_path):
    done = run("analyze", EGEE, "--output", tmp_path / "out", "--resamples", 19, "--figures", "svg", "--json")
    assert done.returncode == 0, done.stderr
    files = {p.name for p in (tmp_path / "out").iterdir()}
    figures = {f"{name}.svg" for name in (*FIGURES, "overview", "summary")}
    assert files == {"report.html", "report.md", "results.json", *figures}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == json.loads(done.stdout)
    assert "![cdf.svg](cdf.svg)" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_their_numbers(egee, name):
    page = figure(egee, name)
    axes = page.axes[0]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    shown = [line.get_ydata() for line in axes.lines] + [c.get_offsets() for c in axes.collections]
    assert any(np.isfinite(np.asarray(y, dtype=float)).any() for y in shown)
    if name == "expected-duration":
        points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
        assert points == [(358.0, pytest.approx(300, abs=0.1))]


@pytest.mark.slow
def test_plot_command(run, tmp_path):
    for ending in ("png", "svg", "pdf"):
        done = run("plot", EGEE, "-o", tmp_path / f"x.{ending}", "--figure", "cdf")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / f"x.{ending}").stat().st_size > 5000
    assert run("plot", EGEE, "-o", tmp_path / "x.gif").returncode == 2


def test_regret_is_against_what_is_recommended(tmp_path):
    rng = np.random.default_rng(12)
    log = table(tmp_path, [*np.round(rng.lognormal(5.5, 1, 199)), 0.1])
    result = analyze(log, laws=QUICK, test=False, resamples=0)
    assert result.timeout.timeout > 10  # not the one lucky probe
    assert all(f.regret < 1 for f in result.decision.fits if f.fit.name == "lognormal")


def test_the_current_timeout_is_judged_by_the_law_that_is_recommended():
    result = analyze(latfit.example_log(), law="lognormal", laws=QUICK, test=False, resamples=0, current=357)
    E = float(
        latfit.expected_duration(
            latfit.Defective(result.decision.fits[0].fit.law, result.decision.fits[0].fit.rho), 357
        )
    )
    assert result.decision.current.expected_duration == pytest.approx(E)
    assert result.decision.current.regret == pytest.approx(E / result.timeout.expected_duration - 1)


def test_lost_and_cut_off_probes_give_the_same_intervals(tmp_path):
    rng = np.random.default_rng(13)
    x = np.round(rng.lognormal(5.5, 1, 970))
    mixed = rng.permutation(1000)  # in no order: probes lost one after the other would be a spell
    lost = table(tmp_path, np.array([*x, *[5] * 30])[mixed], status=np.repeat(["completed", "lost"], [970, 30])[mixed])
    status = np.repeat(["completed", "censored"], [970, 30])[mixed]
    out = table(tmp_path, np.array([*x, *[100_000] * 30])[mixed], status=status)
    intervals = [analyze(log, cutoff=100_000, laws=QUICK, test=False).timeout.intervals for log in (lost, out)]
    assert intervals[0].speed_up == pytest.approx(intervals[1].speed_up, rel=0.15)
    assert intervals[0].speed_up[1] > 1.4 * intervals[0].speed_up[0]


def test_intervals_contain_their_estimates(tmp_path):
    mixed = np.random.default_rng(0).permutation(30)
    status = np.repeat(["completed", "censored"], [20, 10])[mixed]
    result = analyze(table(tmp_path, np.arange(1, 31)[mixed], status=status), laws=QUICK, test=False)
    best, found = result.timeout, result.timeout.intervals
    assert found.timeout[0] <= (best.timeout or np.inf) <= found.timeout[1]
    assert 0 < found.speed_up[0] <= result.timeout.speed_up_vs_cutoff <= found.speed_up[1]


def test_all_zero_groups_and_logs(tmp_path):
    log = table(tmp_path, [0] * 30 + list(range(1, 31)), site=["a"] * 30 + ["b"] * 30)
    result = analyze(log, by="site", laws=QUICK, test=False)
    assert [g.decision.timeout.intervals is None for g in result.groups] == [True, False]
    assert "no-interval" in result.groups[0].decision.codes
    assert "no-interval" in codes(analyze(table(tmp_path, [0] * 30), laws=QUICK, test=False))


def test_group_columns_may_have_any_name(tmp_path):
    log = table(tmp_path, np.arange(1, 61), law=["x", "y"] * 30)
    document = analyze(log, by="law", laws=QUICK, test=False).to_dict()
    assert [g["group"] for g in document["groups"]] == [{"law": "x"}, {"law": "y"}]


def test_the_pooled_row_counts_outliers_as_the_groups_do(tmp_path):
    log = table(tmp_path, np.arange(1, 61), status=["completed", "failed"] * 30, site=["a", "a", "b", "b"] * 15)
    text = to_text(analyze(log, by="site", laws=QUICK, test=False))
    rows = [line.split() for line in text.splitlines() if line.startswith(("  a ", "  b ", "  all "))]
    assert [row[2] for row in rows] == ["0.00", "0.00", "0.00"]


def test_a_sample_has_no_columns_to_group_by():
    with pytest.raises(latfit.SampleError, match="no column 'site' to group by"):
        analyze(latfit.LatencySample.of([1.0, 2, 3, 4, 5, 6]), by="site", laws=(), resamples=0, test=False)
