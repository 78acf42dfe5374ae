"""Charts drawn with matplotlib: colours, units that fit the data, ticks that do not overlap."""

from __future__ import annotations

from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from latfit.numbers import Floats
from latfit.report.charts import Axis as ChartAxis
from latfit.report.charts import Chart, Line
from latfit.report.svg import round_values

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "text.usetex": False,  # labels are written for matplotlib's own text, whatever its configuration says
    "savefig.dpi": 150,
}
LINES: dict[str, dict[str, Any]] = {
    **{f"s{i}": {"color": COLOURS[i]} for i in range(4)},
    "log": {"color": "black"},
    "limit": {"color": "grey", "linestyle": ":", "linewidth": 1.0},
    "chosen": {"color": COLOURS[0], "linestyle": "--", "linewidth": 0.8},
    "change": {"color": "grey", "linestyle": "--", "linewidth": 0.8},
    "window": {"color": COLOURS[2], "alpha": 0.12},
    "interval": {"color": COLOURS[0], "alpha": 0.2},
    "dot": {"color": "black", "marker": "o", "markersize": 4.5, "zorder": 5},
    "square": {"color": "black", "marker": "s", "markersize": 5},
    "bar": {"color": "black", "marker": "|", "markersize": 13, "linewidth": 1.2, "zorder": 4},
}


class Unit(NamedTuple):
    """The unit that a figure's times are in: its name and its seconds."""

    name: str
    size: float


def unit_for(values: Floats) -> Unit:
    """The unit in which half of some times in rising order are at least 1; seconds at the most."""
    middle = float(values[values.size // 2]) if values.size else 1.0
    units = [Unit("s", 1.0), Unit("ms", 1e-3), Unit("µs", 1e-6), Unit("ns", 1e-9)]
    return next((unit for unit in units if middle >= unit.size), units[-1 if middle > 0 else 0])


def axes_or_new(axes: Axes | None) -> Axes:
    """The Axes, or one on a figure of its own."""
    if axes is not None:
        return axes
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        return Figure(figsize=(6, 4), layout="constrained").subplots()


def draw_chart(chart: Chart | None, unit: Unit, axes: Axes | None, *, missing: str) -> Axes:
    """Draw a chart, or the words for its absence; times are in `unit`."""
    axes = axes_or_new(axes)
    if chart is None:
        axes.text(0.5, 0.5, missing, ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return axes
    x, y = _scale(chart.x, unit), _scale(chart.y, unit)
    for band in chart.bands:
        axes.fill_between(x(band.x), y(band.low), y(band.high), linewidth=0, label=band.name, **LINES[band.style])
    for line in chart.lines:
        _draw_line(axes, line, x(line.x), y(line.y))
    for mark in chart.marks:
        name = mark.name or None
        if mark.y is None:
            axes.axvline(x(mark.x), label=name if chart.x.kind != "date" else None, **LINES[mark.style])
        else:
            ends = [mark.x] if mark.end is None else [mark.x, mark.end]
            axes.plot(x(np.array(ends)), y(np.full(len(ends), mark.y)), label=name, **LINES[mark.style])
    axes.set_title(chart.title)
    _set_axis(axes, "x", chart.x, unit)
    _set_axis(axes, "y", chart.y, unit)
    if axes.get_legend_handles_labels()[0]:
        columns = 1 if max(len(line.name) for line in chart.lines) > 40 else 3 if len(chart.lines) < 4 else 2
        columns = 2 if any(len(line.name) > 24 for line in chart.lines) and columns == 3 else columns
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, fontsize="small")
    return axes


def _draw_line(axes: Axes, line: Line, x: Any, y: Any) -> None:
    style, name = LINES[line.style], line.name or None
    if line.steps:
        axes.step(x, y, where="post", label=name, **style)
    elif line.dots and line.style != "s0":
        axes.plot(x, y, ".", markersize=3, label=name, color=style["color"])
    else:
        axes.plot(x, y, label=name, **{**style, **({"marker": "o", "markersize": 4} if line.dots else {})})


def _scale(axis: ChartAxis, unit: Unit) -> Any:
    if axis.kind == "date":
        return lambda values: (np.asarray(values) * 1e6).astype("datetime64[us]")
    return lambda values: values / unit.size if axis.kind == "time" else values


def _set_axis(axes: Axes, side: str, axis: ChartAxis, unit: Unit) -> None:
    mpl_axis: Axis = getattr(axes, f"{side}axis")
    mpl_axis.set_label_text(f"{axis.label} ({unit.name})" if axis.kind == "time" else axis.label)
    if axis.kind == "date":
        mpl_axis.set_major_formatter(ConciseDateFormatter(mpl_axis.get_major_locator()))  # type: ignore[no-untyped-call]
        return
    size = unit.size if axis.kind == "time" else 1.0
    low, high = axis.low / size, axis.high / size
    room = (high / low) ** 0.03 if axis.log else 0.02 * (high - low)
    limits = (low / room, high * room) if axis.log else (low, high + room)
    getattr(axes, f"set_{side}lim")(*limits)  # before the scale: a logarithm needs positive limits
    if axis.log:
        getattr(axes, f"set_{side}scale")("log")
        mpl_axis.set_major_locator(FixedLocator(round_values(low, high, log=True) or [low, high]))
        mpl_axis.set_minor_locator(NullLocator())
        mpl_axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    if axis.kind == "share":
        mpl_axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))
