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
from latfit.report.charts import CHARTS, Chart, View

MISSING = {
    "time": "the log has no submission times, or too few completions",
    "strategies": "no timeout of the formula to compare with, or attempts fail visibly",
}


def _plot_function(name: str, chart: Callable[[View], Chart | None]) -> Callable[..., Axes]:
    """The function that draws a chart, with its documentation."""

    def plot(result: Analysis, axes: Axes | None = None) -> Axes:
        view = View(result, 400)
        missing = MISSING.get(name, "nothing to draw")
        return draw_chart(chart(view), unit_for(view.sample.completed.values), axes, missing=missing)

    plot.__name__ = plot.__qualname__ = f"plot_{name.replace('-', '_')}"
    plot.__doc__ = chart.__doc__
    return plot


FIGURES = {name: _plot_function(name, chart) for name, chart in CHARTS.items()}
"""The figures of an analysis by their names."""
plot_expected_duration = FIGURES["expected-duration"]
plot_frontier = FIGURES["frontier"]
plot_completion = FIGURES["completion"]
plot_jobs_tail = FIGURES["jobs-tail"]
plot_cdf = FIGURES["cdf"]
plot_survival = FIGURES["survival"]
plot_qq = FIGURES["qq"]
plot_ratio = FIGURES["ratio"]
plot_time = FIGURES["time"]
plot_strategies = FIGURES["strategies"]


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, or `summary` for a page of nine."""
    names = list(FIGURES)[:9] if name == "summary" else [name]
    columns = min(3, len(names))
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
