"""The figures of an analysis and of a drift report: each takes a result and an Axes (or makes one) and returns it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from latfit._system import whole_file
from latfit.analysis import Analysis
from latfit.errors import FitError
from latfit.fitting import Fit
from latfit.laws import Empirical
from latfit.logs import ProbeLog, as_sample
from latfit.numbers import Floats
from latfit.plots.draw import COLOURS, STYLE, axes_or_new, draw_chart
from latfit.report.charts import CHARTS, Chart, Line, View, reason_chart
from latfit.report.charts import Axis as ChartAxis
from latfit.report.sections import advice
from latfit.sample import LatencySample
from latfit.tracking.drift import Drift
from latfit.units import seconds

MISSING = {
    "time": "the log has no submission times, or too few completions",
    "strategies": "no timeout of the formula to compare with, or attempts fail visibly",
}


def _plot_function(name: str, chart: Callable[[View], Chart | None]) -> Callable[..., Axes]:
    def plot(result: Analysis, axes: Axes | None = None) -> Axes:
        view = View(result, 400)
        missing = MISSING.get(name, "nothing to draw")
        return draw_chart(chart(view), axes, missing=missing)

    plot.__name__ = plot.__qualname__ = f"plot_{name.replace('-', '_')}"
    plot.__doc__ = chart.__doc__
    return plot


FIGURES = {name: _plot_function(name, chart) for name, chart in CHARTS.items()}
"""The figures of an analysis by their names."""
plot_expected_duration = FIGURES["expected-duration"]
plot_frontier = FIGURES["frontier"]
plot_completion = FIGURES["completion"]
plot_jobs_tail = FIGURES["jobs-tail"]
plot_survival = FIGURES["survival"]
plot_qq = FIGURES["qq"]
plot_ratio = FIGURES["ratio"]
plot_time = FIGURES["time"]
plot_strategies = FIGURES["strategies"]


def plot_cdf(result: Any, axes: Axes | None = None) -> Axes:
    """The cdf of an analysis, or of one or several fits, beside that of the data; times are on a logarithmic axis."""
    if isinstance(result, Analysis):
        return FIGURES["cdf"](result, axes)
    fits = [each for each in (result if isinstance(result, list) else [result]) if isinstance(each, Fit)]
    if not fits or fits[0].sample is None:
        raise FitError(f"plot_cdf needs an analysis, or fits of latfit.fit, not {type(result).__name__}")
    return _draw_cdf(fits[0].sample, fits, "Latency and fitted laws", axes)


def plot_ecdf(sample: Any, axes: Axes | None = None) -> Axes:
    """The share of probes that returned by each time: of a sample, a log, a DataFrame, a Series or an array."""
    return _draw_cdf(as_sample(sample), [], "Latency", axes)


def _draw_cdf(sample: LatencySample, fits: Sequence[Fit], title: str, axes: Axes | None) -> Axes:
    data = Empirical.of(sample)
    low = float(data.jumps[data.jumps > 0].min(initial=np.inf))
    low = low if np.isfinite(low) else data.resolution or 1.0
    times = np.geomspace(low, max(float(data.jumps[-1]), 1.5 * low), 400)
    laws = [(fit.name, fit.as_law()) for fit in fits if fit.law is not None]
    curves = [Line(name, times, law.cdf(times), f"s{i % 4}") for i, (name, law) in enumerate(laws)]
    lines = (
        Line("log", np.union1d(times, data.jumps), data.cdf(np.union1d(times, data.jumps)), "log", steps=True),
        *curves,
    )
    x, y = ChartAxis("latency", low, float(times[-1]), "time", log=True), ChartAxis("share returned", 0.0, 1.0, "share")
    chart = Chart(title, "Share of probes that returned against time", x, y, lines)
    return draw_chart(chart, axes, missing="nothing to draw")


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, `overview` for a slide, or `summary` for a page of nine."""
    if name == "overview":
        return _overview(result)
    names = list(FIGURES)[:9] if name == "summary" else [name]
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        page = Figure(figsize=(15, 4.2 * rows) if columns > 1 else (6, 4), layout="constrained")
        for each, axes in zip(names, page.subplots(rows, columns, squeeze=False).ravel(), strict=True):
            FIGURES[each](result, axes)
    return page


def _overview(result: Analysis) -> Figure:
    """The decision, what it brings, and the two figures that show it, 16 to 9."""
    words, style = advice(result), {**STYLE, "font.size": 12, "axes.titlesize": 13}
    with mpl.rc_context(style):  # type: ignore[arg-type]
        page = Figure(figsize=(13.33, 7.5), layout="constrained")
        decided = result.decision.sample is not None and result.timeout.formula.timeout is not None
        withheld = result.timeout.verdict == "withheld"
        left, right = page.subplots(1, 2)
        draw_chart(
            (reason_chart if withheld else CHARTS["expected-duration"])(View(result, 400)) if decided else None,
            left,
            missing="too few completions for a curve",
        )
        FIGURES["jobs-tail" if decided and not withheld else "time"](result, right)
        page.suptitle(words.headline, fontsize=24, fontweight="bold", x=0.02, ha="left")
        lines = [*words.reasons, *(f"{key}: {text}" for key, text in words.figures)]
        page.supxlabel("\n".join(textwrap.fill(line, 150) for line in lines[:4]), fontsize=11, x=0.02, ha="left")
    return page


def save_figure(result: Analysis, name: str, path: str | Path) -> None:
    """Write a figure whole or not at all; the ending says in which format."""
    with whole_file(path) as part:
        draw_figure(result, name, part, ending=Path(path).suffix[1:])


def draw_figure(result: Analysis, name: str, path: Path, *, ending: str) -> None:
    """Write a figure straight to a file, in the format of that ending."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure(result, name).savefig(path, format=ending)


def plot_drift(log: ProbeLog, result: Drift, axes: Axes | None = None) -> Axes:
    """Latencies over time, change points, the timeout of each window and the tracked one."""
    axes = axes_or_new(axes)
    frame = log.frame.dropna(subset=["submitted"])
    for status, colour in (("completed", COLOURS[0]), ("failed", COLOURS[3]), ("censored", COLOURS[1])):
        part = frame[(frame["status"] == status) & (frame["latency"] > 0)]
        part = part.iloc[:: max(1, len(part) // 20_000)]
        if len(part):
            when, latency = part["submitted"].dt.tz_localize(None).to_numpy(), part["latency"].to_numpy()
            axes.plot(when, latency, ".", color=colour, markersize=1.5, alpha=0.5, label=status)
    for change in result.changes.changes:
        if change.at is not None:
            axes.axvline(change.at, color="grey", linewidth=0.8, linestyle="--")  # type: ignore[arg-type]
    for window in result.windows:
        if window.timeout is not None:
            ends = _dates(np.array([window.start, window.end]))
            axes.plot(ends, [window.timeout] * 2, color="black", linewidth=2)
    if result.backtest is not None:
        axes.plot(_dates(result.backtest.when), result.backtest.tracked, color=COLOURS[2], label="tracked timeout")
    axes.plot([], [], color="black", linewidth=2, label="timeout by window")
    axes.set(yscale="log", ylabel="latency", title="Latencies, changes and timeouts")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value)))
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    axes.legend(loc="upper left")
    return axes


def _dates(seconds: Floats) -> Any:
    return (seconds * 1e6).astype("datetime64[us]")


def save_drift(log: ProbeLog, result: Drift, path: str | Path) -> None:
    """Write the figure of a drift report whole or not at all; groups have a panel each."""
    parts = [(log, result, "")]
    if result.groups:
        logs = log.groups(list(result.groups[0].key))
        parts = [(logs[tuple(each.key.values())], each, ", ".join(each.key.values())) for each in result.groups]
    with mpl.rc_context(STYLE), whole_file(path) as file:  # type: ignore[arg-type]
        page = Figure(figsize=(9, 3.5 * len(parts)), layout="constrained")
        for (rows, each, title), axes in zip(parts, page.subplots(len(parts), squeeze=False).ravel(), strict=True):
            plot_drift(rows, each, axes)
            if title:
                axes.set_title(title)
        page.savefig(file, format=Path(path).suffix[1:])
