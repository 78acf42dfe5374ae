"""The figures of an analysis and of a drift report: each takes a result and an Axes (or makes one) and returns it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latfit._system import whole_file
from latfit.analysis import Analysis
from latfit.errors import FitError, printable
from latfit.fitting import Fit
from latfit.laws.empirical import as_law
from latfit.logs import ProbeLog, as_sample
from latfit.plots.draw import COLOURS, STYLE, draw_chart
from latfit.report.charts import (
    CHARTS,
    Chart,
    View,
    drift_chart,
    duration_chart,
    law_duration_chart,
    laws_chart,
    reason_chart,
)
from latfit.report.sections import advice
from latfit.tracking.drift import Drift

__all__ = [
    "COLOURS",
    "FIGURES",
    "STYLE",
    "figure",
    "plot_cdf",
    "plot_drift",
    "plot_ecdf",
    "plot_expected_duration",
    "plot_frontier",
    "plot_jobs_tail",
    "plot_qq",
    "plot_ratio",
    "plot_strategies",
    "plot_time",
    "save_drift",
    "save_figure",
]

POINTS = 400  # of a line
MISSING = {
    "time": "the log has no submission times, or too few completions",
    "strategies": "no timeout of the formula to compare with, or attempts fail visibly",
}


def _plot_function(name: str, chart: Callable[[View], Chart | None]) -> Callable[..., Axes]:
    def plot(result: Analysis, axes: Axes | None = None) -> Axes:
        if not isinstance(result, Analysis):
            raise FitError(
                f"{plot.__name__} needs an analysis, as latfit.analyze gives it, not {type(result).__name__}"
            )
        return draw_chart(chart(View(result, POINTS)), axes, missing=MISSING.get(name, "nothing to draw"))

    plot.__name__ = plot.__qualname__ = f"plot_{name.replace('-', '_')}"
    plot.__doc__ = chart.__doc__
    return plot


FIGURES = {name: _plot_function(name, chart) for name, chart in CHARTS.items()}
"""The figures of an analysis by their names."""
plot_frontier = FIGURES["frontier"]
plot_jobs_tail = FIGURES["jobs-tail"]
plot_qq = FIGURES["qq"]
plot_ratio = FIGURES["ratio"]
plot_time = FIGURES["time"]
plot_strategies = FIGURES["strategies"]


def plot_expected_duration(result: Any, axes: Axes | None = None) -> Axes:
    """E_J(t) with and without outliers, the optimum, its interval, the flat window and the asymptote.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.

    Parameters
    ----------
    result : an analysis; or a fit, a law or data, of whose law E_J(t), the optimum and the window are drawn.
    axes : where to draw (default: a new figure).

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import latfit
    >>> result = latfit.analyze(latfit.example_log(), resamples=0, test=False)
    >>> latfit.plot_expected_duration(result).get_title()
    'One timeout of 358 s, repeated, takes 300 s a job; waiting takes 647 s'
    """
    if isinstance(result, Analysis):
        return FIGURES["expected-duration"](result, axes)
    return draw_chart(law_duration_chart(as_law(result), POINTS), axes)


def plot_cdf(result: Any, axes: Axes | None = None) -> Axes:
    """The cdf of an analysis, or of fits, beside that of the data; times are on a logarithmic axis.

    Parameters
    ----------
    result : an analysis, a fit, or a list of fits.
    axes : where to draw (default: a new figure).

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import latfit
    >>> axes = latfit.plot_cdf(latfit.fit(latfit.example_log().sample(cutoff=10_000), "lognormal"))
    >>> [line.get_label() for line in axes.lines]
    ['log', 'lognormal']
    """
    if isinstance(result, Analysis):
        return FIGURES["cdf"](result, axes)
    fits = [each for each in (result if isinstance(result, list) else [result]) if isinstance(each, Fit)]
    if not fits or fits[0].sample is None:
        raise FitError(f"plot_cdf needs an analysis, or fits of latfit.fit, not {type(result).__name__}")
    laws = [(fit.name, fit.as_law()) for fit in fits if fit.law is not None]
    return draw_chart(laws_chart(fits[0].sample, laws, POINTS, title="Latency and fitted laws"), axes)


def plot_ecdf(sample: Any, axes: Axes | None = None) -> Axes:
    """The share of probes that returned by each time.

    Parameters
    ----------
    sample : a `LatencySample`, a log, or an array, Series or DataFrame of latencies in seconds.
    axes : where to draw (default: a new figure).

    Returns
    -------
    The Axes.

    Examples
    --------
    >>> import latfit
    >>> latfit.plot_ecdf([120.0, 250.0, 900.0]).get_ylabel()
    'share returned'
    """
    return draw_chart(laws_chart(as_sample(sample), [], POINTS), axes)


def plot_drift(log: ProbeLog, result: Drift, axes: Axes | None = None) -> Axes:
    """Latencies over time, change points, the timeout of each window and the tracked one."""
    return draw_chart(drift_chart(log.table, result), axes)


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, `overview` for a slide, or `summary` for a page of all."""
    if name == "overview":
        return _overview(result)
    names = list(FIGURES) if name == "summary" else [name]
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        page = Figure(figsize=(5 * columns, 4.2 * rows) if columns > 1 else (6, 4), layout="constrained")
        for each, axes in zip(names, page.subplots(rows, columns, squeeze=False).ravel(), strict=True):
            FIGURES[each](result, axes)
    return page


def _overview(result: Analysis) -> Figure:
    """The decision, what it brings, and the two figures that show it, 16 to 9."""
    words, style = advice(result), {**STYLE, "font.size": 12, "axes.titlesize": 13}
    decided = result.decision.sample is not None and result.timeout.formula.timeout is not None
    withheld = result.timeout.verdict == "withheld"
    with mpl.rc_context(style):  # type: ignore[arg-type]
        page = Figure(figsize=(13.33, 7.5), layout="constrained")
        left, right = page.subplots(1, 2)
        chart = None
        if decided:
            view = View(result, POINTS)
            chart = reason_chart(view) if withheld else duration_chart(view, theory=False)
        draw_chart(chart, left, missing="too few completions for a curve")
        FIGURES["jobs-tail" if decided and not withheld else "time"](result, right)
        page.suptitle(words.headline, fontsize=24, fontweight="bold", x=0.02, ha="left")
        shown = [f"{key}: {text}" for key, text in words.figures]
        lines = [printable(line) for line in (words.log, *words.reasons, *shown)][:5]
        page.supxlabel("\n".join(textwrap.fill(line, 150) for line in lines), fontsize=11, x=0.02, ha="left")
    return page


def save_figure(result: Analysis, name: str, path: str | Path) -> None:
    """Write a figure whole or not at all; the ending says in which format."""
    with whole_file(path) as part:
        draw_figure(result, name, part, ending=Path(path).suffix[1:])


def draw_figure(result: Analysis, name: str, path: Path, *, ending: str) -> None:
    """Write a figure straight to a file, in the format of that ending."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure(result, name).savefig(path, format=ending)


def save_drift(log: ProbeLog, result: Drift, path: str | Path) -> None:
    """Write the figure of a drift report whole or not at all; groups have a panel each."""
    logs = log.groups(list(result.groups[0].key)) if result.groups else {}
    parts = [(logs[tuple(each.key.values())], each) for each in result.groups] or [(log, result)]
    with mpl.rc_context(STYLE), whole_file(path) as file:  # type: ignore[arg-type]
        page = Figure(figsize=(9, 3.8 * len(parts)), layout="constrained")
        for (rows, each), axes in zip(parts, page.subplots(len(parts), squeeze=False).ravel(), strict=True):
            plot_drift(rows, each, axes)
        page.savefig(file, format=Path(path).suffix[1:])
