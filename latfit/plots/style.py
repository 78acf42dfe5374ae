"""What all figures share: colours, an Axes where none is given, units that fit the data, ticks that do not overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from latfit.analysis import Analysis
from latfit.decision import FittedLaw
from latfit.numbers import Floats
from latfit.outliers import OutlierRatio
from latfit.sample import LatencySample

# Okabe and Ito's colours, told apart by people with any kind of colour vision
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
POINTS = 400
SHOWN_LAWS = 3
MOST_TICKS, FEWEST_TICKS = 7, 3


@dataclass(frozen=True)
class Unit:
    """The unit that a figure's times are in: its name and its seconds."""

    name: str
    size: float

    def __call__(self, times: Any) -> Any:
        """Seconds in this unit."""
        return times / self.size

    def label(self, words: str) -> str:
        """What an axis is called."""
        return f"{words} ({self.name})"


def unit_of(result: Analysis) -> Unit:
    """Seconds, or the unit in which half of the latencies are at least 1."""
    return unit_for(sample_of(result).completed.values)


def unit_for(values: Floats) -> Unit:
    """The unit that fits times in rising order."""
    middle = float(values[values.size // 2]) if values.size else 1.0
    for name, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if middle >= size:
            return Unit(name, size)
    return Unit("ns", 1e-9) if middle > 0 else Unit("s", 1.0)


def sample_of(result: Analysis) -> LatencySample:
    """The sample of the decision."""
    assert result.decision.sample is not None
    return result.decision.sample


def ratio_of(result: Analysis) -> OutlierRatio:
    """The outlier ratio at the cutoff."""
    assert result.decision.outliers is not None
    return result.decision.outliers


def shown_fits(result: Analysis) -> list[FittedLaw]:
    """The best fits."""
    return [fitted for fitted in result.decision.fits if fitted.fit.law is not None][:SHOWN_LAWS]


def times_of(result: Analysis) -> Floats:
    """Times over the whole sample, equally spaced in the logarithm."""
    values, resolution = sample_of(result).completed.values, sample_of(result).resolution
    positive = values[values > 0]
    low = float(positive[0]) if positive.size else resolution or 1.0
    return np.geomspace(low, max(ratio_of(result).cutoff, low * 1.01), POINTS)


def axes_or_new(axes: Axes | None) -> Axes:
    """The Axes that was given, or one on a figure of its own."""
    if axes is not None:
        return axes
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        return Figure(figsize=(6, 4), layout="constrained").subplots()


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """A logarithmic axis with a few round ticks, on wide and on narrow ranges, without any between them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    rungs = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    inside = [value for value in rungs if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    if len(inside) < FEWEST_TICKS:
        step = 10.0 ** math.floor(math.log10(max((high - low) / 4, 1e-300)))
        step *= next(m for m in (1, 2, 5, 10) if (high - low) / (m * step) <= 5)
        inside = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)] or [low, high]
    inside = inside[:: math.ceil(len(inside) / MOST_TICKS)]
    axis.set_major_locator(FixedLocator(inside))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))


def percent_ticks(axes: Axes, low: float) -> None:
    """A logarithmic axis of shares from `low` to 1, in per cent."""
    powers = range(math.ceil(math.log10(low)), 1)
    axes.yaxis.set_major_locator(FixedLocator([10.0**power for power in powers]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.6g} %"))


def legend_below(axes: Axes, columns: int = 2) -> None:
    """The legend under the axis, where it covers nothing; none where nothing has a name."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=columns, fontsize="small")
