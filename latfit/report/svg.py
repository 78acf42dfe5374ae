"""Charts in pixels: scales, ticks that people read, and paths, for the template of the page to draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.numbers import Floats
from latfit.report.charts import Axis, Chart
from latfit.units import UNITS, seconds

SIZE = (460, 270)
INSIDE = {"left": 76, "right": 442, "top": 12, "bottom": 224}  # pixels between the axes
MAX_TICKS = 6
CALENDAR_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200] + [
    UNITS["d"] * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1825, 3650)
]


def drawn(chart: Chart, *, with_legend: bool = True) -> dict[str, Any]:
    """A chart as the template draws it: ticks, areas, paths and marks in pixels, and the legend."""
    x = _scale(chart.x, INSIDE["left"], INSIDE["right"])
    y = _scale(chart.y, INSIDE["bottom"], INSIDE["top"])
    shapes: list[tuple[str, str, Any]] = []
    for band in chart.bands:
        edges = np.concatenate([y(band.high), y(band.low)[::-1]]).clip(INSIDE["top"], INSIDE["bottom"])
        points = zip(np.concatenate([x(band.x), x(band.x)[::-1]]), edges, strict=True)
        shapes.append(("polygon", band.style, " ".join(f"{a:.1f},{b:.1f}" for a, b in points)))
    for line in sorted(chart.lines, key=lambda line: line.style == "log"):  # the data on top of the laws
        values = np.where(line.y <= chart.y.high * (1 + 1e-9), line.y, np.nan)
        shapes.append(("path", line.style, _path(x(line.x), y(values), line.steps)))
        if line.dots:
            shapes += [("small", "small", point) for point in zip(x(line.x), y(values), strict=True)]
    for mark in chart.marks:
        at = float(x(mark.x))
        if mark.y is None:
            shapes.append(("upright", mark.style, (at, mark.name, at < (INSIDE["left"] + SIZE[0]) / 2)))
        elif mark.end is None:
            shapes.append(("dot", mark.style, (at, float(y(mark.y)))))
    named = {line.name: line.style for line in chart.lines} | {band.name: band.style for band in chart.bands}
    return {
        "label": chart.label,
        "x_label": chart.x.label + (" (logarithmic)" if chart.x.log else ""),
        "y_label": chart.y.label + (" (logarithmic)" if chart.y.log and chart.y.kind == "time" else ""),
        "x_ticks": [(float(x(value)), text) for value, text in ticks(chart.x)],
        "y_ticks": [(float(y(value)), text) for value, text in ticks(chart.y)],
        "shapes": shapes,
        "legend": [(style, name) for name, style in named.items() if name] if with_legend else [],
        "size": SIZE,
        "inside": INSIDE,
    }


def _scale(axis: Axis, start: float, end: float) -> Callable[[ArrayLike], Floats]:
    low, high = (math.log(axis.low), math.log(axis.high)) if axis.log else (axis.low, axis.high)

    def pixels(values: ArrayLike) -> Floats:
        numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = ((np.log(numbers) if axis.log else numbers) - low) / ((high - low) or 1.0)
        return start + share * (end - start)

    return pixels


def _path(x: Floats, y: Floats, steps: bool) -> str:
    parts, drawing = [], False
    finite = np.isfinite(x) & np.isfinite(y)
    y = np.clip(y, INSIDE["top"] - 2, INSIDE["bottom"])
    for a, b, known in zip(x, y, finite, strict=True):
        if known:
            parts.append(f"M{a:.1f} {b:.1f}" if not drawing else f"H{a:.1f}V{b:.1f}" if steps else f"L{a:.1f} {b:.1f}")
        drawing = known
    return "".join(parts)


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """A few round values of an axis and how to write them."""
    if axis.kind == "date":
        return _date_ticks(axis.low, axis.high)
    write = seconds if axis.kind == "time" else lambda value: f"{100 * value:.3g} %"
    values = round_values(axis.low, axis.high, log=axis.log, times=axis.kind == "time")
    texts = {write(value): value for value in reversed(values)}  # one of those that read alike
    return [(value, text) for text, value in reversed(texts.items())]


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


def _date_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Times of the calendar (UTC), seconds since 1970, with as much of the date as the step needs."""
    day = UNITS["d"]
    fitting = [s for s in CALENDAR_STEPS if (high - low) / s <= (MAX_TICKS if s >= day else MAX_TICKS - 2)]
    step = fitting[0] if fitting else CALENDAR_STEPS[-1]
    values = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    unit = "s" if step < 60 else "m" if step < day else "D"
    start = 0 if unit == "D" and high - low >= 300 * day else 5  # with or without the year
    dates = [str(np.datetime64(round(float(value)), "s").astype(f"datetime64[{unit}]")) for value in values]
    return [(float(value), date[start:].replace("T", " ")) for value, date in zip(values, dates, strict=True)]
