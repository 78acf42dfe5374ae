"""Charts in pixels: scales, ticks that people read, and paths, for the template of the page to draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latfit.numbers import Floats
from latfit.report.charts import Axis, Chart
from latfit.units import seconds

WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 76, 18, 12, 46
MOST_TICKS = 6
LINE_POINTS = 160
DAY = 86_400.0
CALENDAR_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200] + [
    DAY * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1825, 3650)
]


def drawn(chart: Chart, *, with_legend: bool = True) -> dict[str, Any]:
    """A chart as the template draws it: ticks, areas, paths and marks in pixels, and the legend."""
    x, y = _scale(chart.x, LEFT, WIDTH - RIGHT), _scale(chart.y, HEIGHT - BOTTOM, TOP)
    shapes: list[tuple[str, str, Any]] = [
        ("polygon", band.style, _outline(x(band.x), y(band.low), y(band.high))) for band in chart.bands
    ]
    for line in sorted(chart.lines, key=lambda line: line.style == "log"):  # the data on top of the laws
        values = np.where(line.y <= chart.y.high * (1 + 1e-9), line.y, np.nan)
        shapes.append(("path", line.style, _path(x(line.x), y(values), line.steps)))
        if line.dots:
            shapes += [("small", "small", point) for point in zip(x(line.x), y(values), strict=True)]
    for mark in chart.marks:
        at = float(x(mark.x))
        if mark.y is None:
            shapes.append(("upright", mark.style, (at, mark.name, at < (LEFT + WIDTH) / 2)))
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
        "size": (WIDTH, HEIGHT),
        "inside": {"left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM},
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
    """A line through points, broken where one is not finite."""
    parts, drawing = [], False
    finite = np.isfinite(x) & np.isfinite(y)
    for a, b, known in zip(x.tolist(), np.clip(y, TOP - 2, HEIGHT - BOTTOM).tolist(), finite.tolist(), strict=True):
        if known:
            parts.append(f"M{a:.1f} {b:.1f}" if not drawing else f"H{a:.1f}V{b:.1f}" if steps else f"L{a:.1f} {b:.1f}")
        drawing = known
    return "".join(parts)


def _outline(x: Floats, low: Floats, high: Floats) -> str:
    there = zip(x.tolist(), np.clip(high, TOP, HEIGHT - BOTTOM).tolist(), strict=True)
    back = zip(x.tolist()[::-1], np.clip(low, TOP, HEIGHT - BOTTOM).tolist()[::-1], strict=True)
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in [*there, *back])


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """A few round values of an axis and how to write them."""
    if axis.kind == "date":
        return _date_ticks(axis.low, axis.high)
    write = seconds if axis.kind == "time" else lambda value: f"{100 * value:.3g} %"
    if not axis.log:
        step = round_step((axis.high - axis.low) or abs(axis.high) or 1.0)
        first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
        values = [k * step for k in range(first, last + 1)]
    else:
        values = [
            v for v in rungs(axis.low, axis.high, times=axis.kind == "time") if axis.low <= v <= axis.high * 1.001
        ]
        if axis.kind == "share" and len(values) > MOST_TICKS:
            values = [v for v in values if f"{v:e}".startswith("1")]
        values = values[:: math.ceil(len(values) / MOST_TICKS)] if values else []
    texts = {write(value): value for value in reversed(values)}  # one of those that read alike
    return [(value, text) for text, value in reversed(texts.items())]


def round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, at least a fifth of a span."""
    raw = span / 5
    size = 10.0 ** math.floor(math.log10(raw))
    return next(digit * size for digit in (1, 2, 5, 10) if digit * size >= raw * (1 - 1e-9))


def rungs(low: float, high: float, *, times: bool = False) -> list[float]:
    """1, 2 and 5 times powers of ten around a range; `times` of an hour and more in hours and days."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
    if not times:
        return values
    hours = [3600.0 * hours for hours in (1, 2, 5, 12)]
    return [value for value in values if value < 3600] + hours + [DAY * d * 10**p for p in range(5) for d in (1, 2, 5)]


def _date_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Times of the calendar (UTC), seconds since 1970, with as much of the date as the step needs."""
    fits = [s for s in CALENDAR_STEPS if (high - low) / s <= (MOST_TICKS if s >= DAY else MOST_TICKS - 2)]
    step = fits[0] if fits else CALENDAR_STEPS[-1]
    values = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    unit = "s" if step < 60 else "m" if step < DAY else "D"
    start = 0 if unit == "D" and high - low >= 300 * DAY else 5  # with or without the year
    dates = [str(np.datetime64(round(float(value)), "s").astype(f"datetime64[{unit}]")) for value in values]
    return [(float(value), date[start:].replace("T", " ")) for value, date in zip(values, dates, strict=True)]
