"""Small charts as SVG text: scales with ticks that people read, lines, bands and a frame; no library, no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

from latfit.errors import printable
from latfit.numbers import Bools, Floats
from latfit.report.sentences import kept_together
from latfit.units import seconds

WIDTH, HEIGHT = 460, 270
LEFT, RIGHT, TOP, BOTTOM = 76, 18, 12, 46
MOST_TICKS = 6
POINTS = 160  # of a line
DAY = 86_400.0
CLOCK = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 3 * 3600.0,
         6 * 3600.0, 12 * 3600.0, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 182 * DAY, 365 * DAY,
         2 * 365 * DAY, 5 * 365 * DAY, 10 * 365 * DAY)  # fmt: skip


def shown(text: object, most: int = 600) -> str:
    """Text as HTML takes it: no control characters, nothing that could be a tag, not longer than `most`."""
    plain = kept_together(printable(str(text)))
    return escape(plain if len(plain) <= most else plain[: most - 1] + "…")


@dataclass(frozen=True)
class Scale:
    """Where a value lies between two pixels; `log` for equal ratios; ticks are (value, text)."""

    low: float
    high: float
    ends: tuple[float, float]
    ticks: tuple[tuple[float, str], ...]
    label: str
    log: bool = False

    def __call__(self, values: ArrayLike) -> Floats:
        """The pixels of values."""
        x = np.asarray(values, dtype=np.float64)
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = ((np.log(x) if self.log else x) - low) / ((high - low) or 1.0)
        return self.ends[0] + share * (self.ends[1] - self.ends[0])


def horizontal(low: float, high: float, label: str, ticks: Sequence[tuple[float, str]], *, log: bool) -> Scale:
    """A scale along the bottom of a chart."""
    return Scale(low, high, (LEFT, WIDTH - RIGHT), tuple(ticks), label, log)


def vertical(low: float, high: float, label: str, ticks: Sequence[tuple[float, str]], *, log: bool = False) -> Scale:
    """A scale up the left of a chart."""
    return Scale(low, high, (HEIGHT - BOTTOM, TOP), tuple(ticks), label, log)


def duration_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round durations on a logarithmic scale: 1, 2, 5 … of the unit that people read."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    rungs = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    large = [3600.0 * hours for hours in (1, 2, 5, 12)] + [DAY * d * 10**p for p in range(5) for d in (1, 2, 5)]
    inside = [v for v in [r for r in rungs if r < 3600] + large if low <= v <= high]
    return [(v, seconds(v)) for v in _fewer(inside)]


def _fewer(values: list[float]) -> list[float]:
    """At most six of them, evenly left out."""
    return values[:: math.ceil(len(values) / MOST_TICKS)] if len(values) > MOST_TICKS else values


def round_ticks(low: float, high: float, write: Callable[[float], str]) -> list[tuple[float, str]]:
    """Round values on a linear scale."""
    span = (high - low) or abs(high) or 1.0
    raw = span / 5
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 5, 10) if m * size >= raw * (1 - 1e-9))
    values = np.arange(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1) * step
    return [(float(v), write(float(v))) for v in values]


def share_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Shares as per cent on a logarithmic scale."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    rungs = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    inside = [v for v in rungs if low <= v <= high * 1.001]
    if len(inside) > MOST_TICKS:
        inside = _fewer([v for v in inside if f"{v:e}".startswith("1")])
    return [(v, f"{100 * v:.3g} %") for v in inside]


def date_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Times of the calendar (UTC), seconds since 1970, with as much of the date as the step needs."""
    most = [MOST_TICKS if s >= DAY else MOST_TICKS - 2 for s in CLOCK]  # an hour is written with its day: a long text
    step = next((s for s, few in zip(CLOCK, most, strict=True) if (high - low) / s <= few), CLOCK[-1])
    values = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    unit, start = ("m", 5) if step < DAY else ("D", 5 if high - low < 300 * DAY else 0)
    texts = [str(np.datetime64(round(float(v)), "s").astype(f"datetime64[{'s' if step < 60 else unit}]"))[start:]
             for v in values]  # fmt: skip
    return [(float(v), text.replace("T", " ")) for v, text in zip(values, texts, strict=True)]


def line(x: Scale, y: Scale, at: ArrayLike, values: ArrayLike, style: str, *, steps: bool = False) -> str:
    """A line through points, broken where a value is not finite or off the scale."""
    px, py = x(at), y(values)
    keep = np.isfinite(px) & np.isfinite(py)
    return f'<path class="{style}" d="{_path(px, np.clip(py, TOP - 2, HEIGHT - BOTTOM), keep, steps)}"/>'


def _path(px: Floats, py: Floats, keep: Bools, steps: bool) -> str:
    parts, pen = [], False
    for a, b, here in zip(px.tolist(), py.tolist(), keep.tolist(), strict=True):
        if here:
            parts.append(f"M{a:.1f} {b:.1f}" if not pen else f"H{a:.1f}V{b:.1f}" if steps else f"L{a:.1f} {b:.1f}")
        pen = here
    return "".join(parts)


def band(x: Scale, y: Scale, at: ArrayLike, low: ArrayLike, high: ArrayLike, style: str) -> str:
    """The area between two lines."""
    px = x(at)
    there = zip(px.tolist(), np.clip(y(high), TOP, HEIGHT - BOTTOM).tolist(), strict=True)
    back = zip(px.tolist()[::-1], np.clip(y(low), TOP, HEIGHT - BOTTOM).tolist()[::-1], strict=True)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in [*there, *back])
    return f'<polygon class="{style}" points="{points}"/>'


def upright(x: Scale, value: float, style: str, text: str = "") -> str:
    """A vertical line, with a word at its top."""
    px = float(x(value))
    right = px < (LEFT + WIDTH) / 2
    word = (f'<text class="mark" x="{px + (4 if right else -4):.1f}" y="{TOP + 9}" '
            f'text-anchor="{"start" if right else "end"}">{shown(text, 40)}</text>')  # fmt: skip
    return (
        f'<line class="{style}" x1="{px:.1f}" x2="{px:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>{word if text else ""}'
    )


def dot(x: Scale, y: Scale, at: float, value: float, style: str = "dot") -> str:
    """A point."""
    return f'<circle class="{style}" cx="{float(x(at)):.1f}" cy="{float(y(value)):.1f}" r="4"/>'


def chart(x: Scale, y: Scale, marks: Sequence[str], label: str) -> str:
    """A chart with its frame, grid and ticks; `label` is what a screen reader says of it."""
    grid = [f'<line class="grid" x1="{p:.1f}" x2="{p:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{p:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{shown(text)}</text>'
            for p, text in ((float(x(v)), text) for v, text in x.ticks)]  # fmt: skip
    grid += [f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{p:.1f}" y2="{p:.1f}"/>'
             f'<text x="{LEFT - 6}" y="{p + 4:.1f}" text-anchor="end">{shown(text)}</text>'
             for p, text in ((float(y(v)), text) for v, text in y.ticks)]  # fmt: skip
    middle = (TOP + HEIGHT - BOTTOM) / 2
    names = (f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
             f'{shown(x.label)}</text><text class="axis" transform="translate(12 {middle}) rotate(-90)" '
             f'text-anchor="middle">{shown(y.label)}</text>')  # fmt: skip
    return (f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{shown(label)}">'
            f"{''.join(grid)}{names}{''.join(marks)}</svg>")  # fmt: skip


def legend(entries: Sequence[tuple[str, str]]) -> str:
    """What the lines are: (style, name)."""
    items = "".join(f'<li><svg width="28" height="10" aria-hidden="true"><line class="{style}" x1="1" x2="27" y1="5" '
                    f'y2="5"/></svg>{shown(name)}</li>' for style, name in entries)  # fmt: skip
    return f'<ul class="legend">{items}</ul>'
