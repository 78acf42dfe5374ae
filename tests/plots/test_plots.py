"""Figures: faults that were seen, and the numbers that they show."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import latfit
from latfit.cli.logs import plot
from latfit.plots import (
    FIGURES,
    figure,
    plot_cdf,
    plot_drift,
    plot_ecdf,
    plot_expected_duration,
    plot_frontier,
    plot_jobs_tail,
    plot_ratio,
)
from latfit.restart import completion_quantile, simulate_policy
from latfit.tracking.drift import drift


@pytest.fixture(scope="module")
def bundled():
    return latfit.analyze(latfit.example_log(), resamples=49, test=False, laws=["lognormal"])


@pytest.fixture(scope="module")
def fast():
    rng = np.random.default_rng(4)
    return latfit.analyze(rng.uniform(0.0050, 0.0058, 300), resamples=0, test=False, laws=["lognormal"])


@pytest.fixture(scope="module")
def failing():
    rng = np.random.default_rng(5)
    sample = latfit.LatencySample.of(rng.lognormal(0, 1, 800), failed=rng.lognormal(0, 1, 200), lost=30)
    return latfit.analyze(sample, resamples=0, test=False, laws=["lognormal"])


def boxes(labels):
    return [label.get_window_extent() for label in labels if label.get_text()]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("which", ["fast", "failing"])
def test_ticks_do_not_overlap(name, which, request):
    page = figure(request.getfixturevalue(which), name)
    page.draw_without_rendering()
    for axes in page.axes:
        for along, labels in ((0, axes.get_xticklabels(which="both")), (1, axes.get_yticklabels(which="both"))):
            low, high = ((axes.bbox.x0, axes.bbox.x1), (axes.bbox.y0, axes.bbox.y1))[along]
            spans = [(b.x0, b.x1) if along == 0 else (b.y0, b.y1) for b in boxes(labels)]
            inside = sorted(span for span in spans if low - 1 <= sum(span) / 2 <= high + 1)
            assert all(a[1] <= b[0] + 1 for a, b in pairwise(inside)), (name, inside)


def test_the_legend_does_not_cover_the_curve(bundled):
    page = figure(bundled, "expected-duration")
    page.draw_without_rendering()
    axes = page.axes[0]
    assert axes.get_legend().get_window_extent().y1 < axes.bbox.y0


def test_the_curve_has_its_interval_and_its_optimum_a_label(bundled):
    axes = plot_expected_duration(bundled)
    band = next(band for band in axes.collections if band.get_label() == "95 % interval")
    low, high = np.ptp(band.get_paths()[0].vertices, axis=0)
    assert low > 1000
    assert high > 100
    assert any(text.get_text() == "optimum 358 s" for text in axes.texts)


def test_milliseconds_where_they_fit(fast):
    axes = plot_ratio(fast)
    axes.figure.draw_without_rendering()
    texts = [label.get_text() for label in axes.get_xticklabels()]
    assert texts
    assert all(text.endswith("ms") for text in texts)
    assert axes.lines[0].get_xdata()[-1] == pytest.approx(0.0058, abs=1e-5)


def test_drift_in_milliseconds(tmp_path):
    rng = np.random.default_rng(6)
    when = pd.date_range("2026-01-01", periods=400, freq="min", tz="UTC")
    log = latfit.from_frame(pd.DataFrame({"submitted": when, "latency": rng.lognormal(-5, 0.5, 400)}))
    axes = plot_drift(log, drift(log))
    axes.figure.draw_without_rendering()
    assert any(label.get_text().endswith("ms") for label in axes.get_yticklabels())
    dots = next(line for line in axes.lines if line.get_label() == "completed")
    assert np.median(dots.get_ydata()) == pytest.approx(np.median(log.frame["latency"]), rel=1e-9)


def test_jobs_with_failures_are_drawn(failing):
    axes = plot_jobs_tail(failing)
    (line,) = (line for line in axes.lines if "simulated" in str(line.get_label()))
    law = latfit.Empirical.of(failing.decision.sample)
    timeout = f"timeout(t={failing.timeout.timeout!r})"
    jobs = simulate_policy(law, timeout, 50_000, np.random.default_rng(9)).durations
    x, y = line.get_xdata(), line.get_ydata()
    for at in (100, 250):
        assert y[at] == pytest.approx((jobs > x[at]).mean(), abs=0.01)


def test_the_99_percent_quantile_can_be_read(bundled):
    axes = plot_jobs_tail(bundled)
    (line,) = (line for line in axes.lines if "resubmitted" in str(line.get_label()))
    law = latfit.Empirical.of(bundled.decision.sample)
    crossing = line.get_xdata()[np.flatnonzero(line.get_ydata() <= 0.01)[0]]
    assert crossing == pytest.approx(float(completion_quantile(law, 0.99, 358.0)), rel=0.02)


def test_the_frontier_has_the_optimum_at_its_bottom(bundled):
    axes = plot_frontier(bundled)
    curve, dot = axes.lines[0], axes.lines[1]
    assert dot.get_ydata()[0] == pytest.approx(curve.get_ydata().min(), rel=1e-6)
    assert dot.get_xdata()[0] == pytest.approx(1.2563, abs=1e-3)


def test_the_command_knows_every_figure():
    (choices,) = (option.type.choices for option in plot.params if option.name == "figure")
    assert set(choices) == {"overview", "summary", *FIGURES}


def test_the_page_on_figures_shows_every_figure():
    text = (Path(__file__).parents[2] / "docs" / "howto-figure.md").read_text()
    assert all(f"--figure {name}" in text for name in FIGURES)


FEW = {
    "three completions": [(27, 404), (117, 500), (143, 429), (216, 500), (202, 504), (330, 504), (158, 404), (36, 404)],
    "one": [(399, 200)],
    "zeros": [(0, 200), (0, 200), (0, 200)],
    "only failures": [(30, 500), (40, 500), (50, 500)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FEW)
def test_few_probes_are_drawn_without_matplotlib_warnings(name, run, tmp_path):
    log = tmp_path / "few.json"
    told = [{"sent": 1772323209 + 9 * k, "elapsed_ms": ms, "code": code} for k, (ms, code) in enumerate(FEW[name])]
    log.write_text(json.dumps(told))
    done = run("plot", log, "-o", tmp_path / "few.png")
    assert done.returncode in (0, 1)
    assert "Warning" not in done.stderr
    assert "Traceback" not in done.stderr


def test_fits_and_samples_are_drawn():
    sample = latfit.example_log().sample(cutoff=10_000)
    fits = latfit.fit(sample, ["lognormal", "weibull"])
    axes = plot_cdf(fits)
    assert [line.get_label() for line in axes.get_lines()] == ["log", "lognormal", "weibull"]
    curve = axes.get_lines()[1]
    t, share = np.asarray(curve.get_xdata()), np.asarray(curve.get_ydata())
    assert share == pytest.approx(
        (1 - fits[0].rho) * stats.lognorm(fits[0].params["sigma"], scale=np.exp(fits[0].params["mu"])).cdf(t)
    )
    assert plot_cdf(fits[0], axes) is axes
    steps = plot_ecdf(sample.completed.expand()).get_lines()[0]
    assert steps.get_ydata()[-1] == pytest.approx(1.0)
    with pytest.raises(latfit.FitError, match="needs an analysis, or fits"):
        plot_cdf([1.0, 2.0])


def test_the_expected_duration_of_a_law_or_a_fit():
    axes = plot_expected_duration(latfit.fit(latfit.example_log().sample(cutoff=10_000), "lognormal")[0])
    assert "Lowest mean" in axes.get_title()
    with pytest.raises(latfit.FitError, match="needs an analysis"):
        latfit.plots.plot_jobs_tail([1.0, 2.0])
