"""Figures by their names, on a page or in a file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from latfit.analysis import Analysis
from latfit.files import whole_file
from latfit.plots.duration import plot_expected_duration, plot_frontier
from latfit.plots.latency import (
    plot_cdf,
    plot_completion,
    plot_jobs_tail,
    plot_qq,
    plot_ratio,
    plot_strategies,
    plot_survival,
    plot_time,
)
from latfit.plots.style import STYLE

Draw = Callable[[Analysis, Axes], Axes]
FIGURES: dict[str, Draw] = {
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
SUMMARY = tuple(FIGURES)[:9]  # a page of three by three
COLUMNS = 3


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, or `summary` for a page of nine."""
    names = SUMMARY if name == "summary" else (name,)
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        page = Figure(figsize=(15, 4.2 * rows) if columns > 1 else (6, 4), layout="constrained")
        axes = page.subplots(rows, columns, squeeze=False).ravel()
        for each, one in zip(names, axes, strict=True):
            FIGURES[each](result, one)
    return page


def save_figure(result: Analysis, name: str, path: str | Path) -> None:
    """Write a figure whole or not at all; the ending says in which format."""
    with whole_file(path) as part:
        draw_figure(result, name, part, ending=Path(path).suffix[1:])


def draw_figure(result: Analysis, name: str, path: Path, *, ending: str) -> None:
    """Write a figure straight to a file, in the format of that ending."""
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        figure(result, name).savefig(path, format=ending)
