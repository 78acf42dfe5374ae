"""The figure of a drift report: latencies over time, change points, the timeout of each window and the tracked one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

from latfit._system import whole_file
from latfit.logs import ProbeLog
from latfit.numbers import Floats
from latfit.plots.draw import COLOURS, STYLE, axes_or_new, unit_for
from latfit.tracking.drift import Drift


def plot_drift(log: ProbeLog, result: Drift, axes: Axes | None = None) -> Axes:
    """Latencies over time, change points, the timeout of each window and the tracked one."""
    axes = axes_or_new(axes)
    frame = log.frame.dropna(subset=["submitted"])
    unit = unit_for(np.sort(frame["latency"][frame["status"] == "completed"].to_numpy()))
    for status, colour in (("completed", COLOURS[0]), ("failed", COLOURS[3]), ("censored", COLOURS[1])):
        part = frame[(frame["status"] == status) & (frame["latency"] > 0)]
        part = part.iloc[:: max(1, len(part) // 20_000)]
        if len(part):
            when = part["submitted"].dt.tz_localize(None).to_numpy()
            axes.plot(
                when, part["latency"].to_numpy() / unit.size, ".", color=colour, markersize=1.5, alpha=0.5, label=status
            )
    for change in result.changes.changes:
        if change.at is not None:
            axes.axvline(change.at, color="grey", linewidth=0.8, linestyle="--")  # type: ignore[arg-type]
    for window in result.windows:
        if window.timeout is not None:
            ends = _dates(np.array([window.start, window.end]))
            axes.plot(ends, [window.timeout / unit.size] * 2, color="black", linewidth=2)
    if result.backtest is not None:
        axes.plot(
            _dates(result.backtest.when), result.backtest.tracked / unit.size, color=COLOURS[2], label="tracked timeout"
        )
    axes.plot([], [], color="black", linewidth=2, label="timeout by window")
    axes.set(yscale="log", ylabel=f"latency ({unit.name})", title="Latencies, changes and timeouts")
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    axes.legend(loc="upper left")
    return axes


def _dates(seconds: Floats) -> Any:
    """Seconds since 1970 as times."""
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
