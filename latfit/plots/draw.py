"""Charts drawn with matplotlib, with the page's colours and dashes, and times as people read them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from latfit.report.charts import Axis as ChartAxis
from latfit.report.charts import Chart, Line
from latfit.units import UNITS, seconds

# Okabe and Ito's hues, which people with any kind of colour vision can tell apart, as dark as text needs to be
COLOURS = ("#005F99", "#B34700", "#00704F", "#8A4F79", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (7, 3)), (0, (2, 3)), (0, (8, 3, 2, 3)))  # lines differ in grey too
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
    **{f"s{i}": {"color": COLOURS[i], "linestyle": DASHES[i]} for i in range(4)},
    "set": {"color": COLOURS[2], "linewidth": 1.6},
    "log": {"color": "black"},
    "limit": {"color": "grey", "linestyle": ":", "linewidth": 1.0},
    "chosen": {"color": COLOURS[0], "linestyle": "--", "linewidth": 0.8},
    "change": {"color": "grey", "linestyle": "--", "linewidth": 0.8},
    "window": {"color": COLOURS[2], "alpha": 0.12},
    "interval": {"color": COLOURS[0], "alpha": 0.2},
    "dot": {"color": "black", "marker": "o", "markersize": 4.5, "zorder": 5},
    "square": {"color": "black", "marker": "s", "markersize": 5},
}
MAX_TICKS = 6
TITLE_WIDTH = 72  # characters


def draw_chart(chart: Chart | None, axes: Axes | None = None, *, missing: str = "nothing to draw") -> Axes:
    """Draw a chart on the Axes, or on a figure of its own; without a chart, the words for its absence."""
    if axes is None:
        with mpl.rc_context(STYLE):  # type: ignore[arg-type]
            axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    if chart is None:
        axes.text(0.5, 0.5, missing, ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return axes
    x: Callable[[Any], Any] = as_dates if chart.x.kind == "date" else np.asarray
    for band in chart.bands:
        axes.fill_between(x(band.x), band.low, band.high, linewidth=0, label=band.name, **LINES[band.style])
    for line in chart.lines:
        _draw_line(axes, line, x(line.x))
    for row, mark in enumerate(chart.marks):
        place: dict[str, Any] = {"xy": (x(mark.x), mark.y), "xytext": (5, -11)}
        if mark.y is None:
            axes.axvline(x(mark.x), **LINES[mark.style])
            place = {"xy": (x(mark.x), 1 - 0.06 * (row % 4)), "xycoords": ("data", "axes fraction"), "xytext": (3, -8)}
        else:
            axes.plot(x(mark.x), mark.y, **LINES[mark.style])
        box = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5}
        axes.annotate(mark.name, **place, textcoords="offset points", fontsize="x-small", bbox=box)
    axes.set_title(textwrap.fill(chart.title, TITLE_WIDTH))
    _set_axis(axes, "x", chart.x)
    _set_axis(axes, "y", chart.y)
    handles, labels = axes.get_legend_handles_labels()
    legend = dict(zip(labels, handles, strict=True))
    if legend:
        longest = max(map(len, legend))
        columns = 1 if longest > 40 else 2 if longest > 24 or len(legend) > 3 else 3
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.17), "ncols": columns, "fontsize": "small"}
        axes.legend(list(legend.values()), list(legend), **place)
    return axes


def _draw_line(axes: Axes, line: Line, x: Any) -> None:
    style, name = LINES[line.style], line.name or None
    if line.steps:
        axes.step(x, line.y, where="post", label=name, **style)
    elif line.dots == "alone":
        axes.plot(x, line.y, "o", markersize=1.5, label=name, color=style["color"])
    else:
        axes.plot(x, line.y, label=name, **{**style, **({"marker": "o", "markersize": 4} if line.dots else {})})


def as_dates(values: Any) -> Any:
    """Times in seconds since 1970 as matplotlib takes them."""
    return (np.asarray(values) * 1e6).astype("datetime64[us]")


def _set_axis(axes: Axes, side: str, axis: ChartAxis) -> None:
    mpl_axis: Axis = getattr(axes, f"{side}axis")
    mpl_axis.set_label_text(axis.label)
    if axis.kind == "date":
        mpl_axis.set_major_formatter(ConciseDateFormatter(mpl_axis.get_major_locator()))  # type: ignore[no-untyped-call]
        return
    low, high = axis.low, axis.high
    room = (high / low) ** 0.03 if axis.log else 0.02 * (high - low)
    limits = (low / room, high * room) if axis.log else (low, high + room)
    getattr(axes, f"set_{side}lim")(*limits)  # before the scale: a logarithm needs positive limits
    if axis.log:
        getattr(axes, f"set_{side}scale")("log")
        mpl_axis.set_minor_locator(NullLocator())
    times = axis.kind == "time"
    mpl_axis.set_major_locator(FixedLocator(round_values(low, high, log=axis.log, times=times) or [low, high]))
    writers: dict[str, Callable[[float], str]] = {"time": seconds, "share": lambda value: f"{100 * value:.6g} %"}
    write = writers.get(axis.kind, "{:.6g}".format)
    mpl_axis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))


def round_values(low: float, high: float, *, log: bool, times: bool = False) -> list[float]:
    """A few round values in a range: 1, 2 and 5 times powers of ten; `times` of an hour and more in hours and days.

    >>> round_values(3, 2000, log=True)
    [10.0, 100.0, 1000.0]
    """
    values: list[float] = []
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        if times:
            values = [value for value in values if value < 3600] + [3600.0 * hours for hours in (1, 2, 5, 12)]
            values += [UNITS["d"] * digit * 10**power for power in range(5) for digit in (1, 2, 5)]
        values = [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    if len(values) < 3:  # a linear axis, or a narrow logarithmic one
        raw = ((high - low) or abs(high) or 1.0) / 5
        size = 10.0 ** math.floor(math.log10(raw))
        step = next(digit * size for digit in (1, 2, 5, 10) if digit * size >= raw * (1 - 1e-9))
        return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    tens = [value for value in values if f"{value:e}".startswith("1.000000")]
    if len(values) > MAX_TICKS and len(tens) >= 3 and not times:
        values = tens
    return values[:: math.ceil(len(values) / MAX_TICKS)]
