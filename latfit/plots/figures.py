"""The figures of an analysis: each takes a result and an Axes (or makes one), draws, and returns the Axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latfit._system import whole_file
from latfit.analysis import Analysis
from latfit.plots.draw import STYLE, draw_chart, unit_for
from latfit.report.charts import CHARTS, View

LINE_POINTS = 400
SUMMARY_COLUMNS = 3
MISSING = {
    "time": "the log has no submission times, or too few completions",
    "strategies": "no timeout of the formula to compare with, or attempts fail visibly",
}


def _draw(name: str, result: Analysis, axes: Axes | None) -> Axes:
    view = View(result, LINE_POINTS)
    unit = unit_for(view.sample.completed.values)
    return draw_chart(CHARTS[name](view), unit, axes, missing=MISSING.get(name, "nothing to draw"))


def plot_expected_duration(result: Analysis, axes: Axes | None = None) -> Axes:
    """E_J(t) with and without outliers, the optimum, its interval, the flat window and the asymptote.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.
    """
    return _draw("expected-duration", result, axes)


def plot_frontier(result: Analysis, axes: Axes | None = None) -> Axes:
    """What speed costs: E_J against the submissions per job, one point for each timeout."""
    return _draw("frontier", result, axes)


def plot_completion(result: Analysis, axes: Axes | None = None) -> Axes:
    """F_J with the recommended timeout against F_R without one; Glatard et al. 2006, Figures 1 and 2.

    Where attempts fail visibly F_J has no closed form: it is that of 50 000 simulated jobs.
    """
    return _draw("completion", result, axes)


def plot_jobs_tail(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share of jobs not yet done on log axes, where the 95 % and the 99 % quantile can be read."""
    return _draw("jobs-tail", result, axes)


def plot_cdf(result: Analysis, axes: Axes | None = None) -> Axes:
    """The empirical cdf and the best fitted laws, over the logarithm of time."""
    return _draw("cdf", result, axes)


def plot_survival(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share still out on log axes, where tails show; its floor is the outlier ratio."""
    return _draw("survival", result, axes)


def plot_qq(result: Analysis, axes: Axes | None = None) -> Axes:
    """Quantiles of the log against those of the best laws; a law that fits lies on the diagonal."""
    return _draw("qq", result, axes)


def plot_ratio(result: Analysis, axes: Axes | None = None) -> Axes:
    """The outlier ratio as a function of the cutoff, with its interval."""
    return _draw("ratio", result, axes)


def plot_time(result: Analysis, axes: Axes | None = None) -> Axes:
    """Median and 95 % quantile of those that completed over the calendar, the timeout, and the change points."""
    return _draw("time", result, axes)


def plot_strategies(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share of jobs not yet done under the recommended timeout and under other strategies, on log axes."""
    return _draw("strategies", result, axes)


FIGURES: dict[str, Callable[[Analysis, Axes], Axes]] = {
    "expected-duration": plot_expected_duration,
    "frontier": plot_frontier,
    "completion": plot_completion,
    "jobs-tail": plot_jobs_tail,
    "cdf": plot_cdf,
    "survival": plot_survival,
    "qq": plot_qq,
    "ratio": plot_ratio,
    "time": plot_time,
    "strategies": plot_strategies,
}


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, or `summary` for a page of nine."""
    names = list(FIGURES)[:9] if name == "summary" else [name]
    columns = min(SUMMARY_COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        page = Figure(figsize=(15, 4.2 * rows) if columns > 1 else (6, 4), layout="constrained")
        for each, axes in zip(names, page.subplots(rows, columns, squeeze=False).ravel(), strict=True):
            FIGURES[each](result, axes)
    return page


def save_figure(result: Analysis, name: str, path: str | Path) -> None:
    """Write a figure whole or not at all; the ending says in which format."""
    with whole_file(path) as part:
        draw_figure(result, name, part, ending=Path(path).suffix[1:])


def draw_figure(result: Analysis, name: str, path: Path, *, ending: str) -> None:
    """Write a figure straight to a file, in the format of that ending."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure(result, name).savefig(path, format=ending)
