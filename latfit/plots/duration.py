"""Figures of what a timeout brings: E_J against the timeout, and against the submissions that it makes."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from latfit.analysis import Analysis
from latfit.decision import Recommendation
from latfit.laws import Empirical
from latfit.numbers import Floats
from latfit.plots.style import (
    COLOURS,
    Unit,
    axes_or_new,
    legend_below,
    log_ticks,
    ratio_of,
    sample_of,
    times_of,
    unit_of,
)
from latfit.restart import expected_duration, submissions
from latfit.units import seconds

SHOWN = 2.5  # times the least E_J: what the frontier shows


def plot_expected_duration(result: Analysis, axes: Axes | None = None) -> Axes:
    """E_J(t) with and without outliers, the optimum, its interval, the flat window and the asymptote.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.
    """
    axes, unit = axes_or_new(axes), unit_of(result)
    law, best = Empirical.of(sample_of(result)), result.timeout.formula
    t = np.union1d(times_of(result), law.jumps[law.jumps > 0][:: max(1, law.jumps.size // 2000)])
    E = expected_duration(law, t, cost=best.cost)
    axes.plot(unit(t), unit(E), color=COLOURS[0], label="with outliers" if law.rho > 0 else "expected duration ($E_J$)")
    if law.rho > 0 and not sample_of(result).failed.total:
        _without_outliers(axes, law, t, best.cost, unit)
    _optimum(axes, best, t, unit)
    finite = E[np.isfinite(E)]
    least = float(finite.min())
    top = max(2.2 * least, float(E[-1]) if np.isfinite(E[-1]) else 0.0)
    title = "What a timeout brings" if result.timeout.verdict != "withheld" else "If attempts were independent"
    axes.set(xscale="log", xlabel=unit.label("timeout"), ylabel=unit.label("expected duration $E_J$"), title=title)
    axes.set_ylim(unit(0.85 * least) if least else 0, unit(min(1.1 * top, 4 * least)) if least else 1)
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    legend_below(axes, 3)
    return axes


def _without_outliers(axes: Axes, law: Empirical, t: Floats, cost: float, unit: Unit) -> None:
    """E_J of those that returned, and the asymptote that the outliers make."""
    returned = law.conditional()
    E = expected_duration(returned, t, cost=cost)
    axes.plot(unit(t), unit(E), color=COLOURS[1], label="without outliers")
    slope = law.rho / (1 - law.rho)
    E_R = float(returned.partial_moment(1, np.inf))
    axes.plot(unit(t), unit(E_R + slope * (t + cost)), ":", color="grey", label="asymptote $E_R + \\rho t/(1-\\rho)$")


def _optimum(axes: Axes, best: Recommendation, t: Floats, unit: Unit) -> None:
    """The 5 % window, the interval of the optimum with ends taller than its dot, and the dot."""
    if best.verdict != "finite" or best.timeout is None or best.expected_duration is None:
        return
    if best.within_5pct is not None:
        low, high = best.within_5pct
        axes.axvspan(unit(low), unit(min(high, t[-1])), color=COLOURS[2], alpha=0.12, label="within 5 %")
    if best.intervals is not None:
        low, high = best.intervals.timeout
        ends, level = unit(np.array([low, min(high, t[-1])])), [unit(best.expected_duration)] * 2
        axes.plot(ends, level, "|-", color="black", linewidth=1.2, markersize=13, label="95 % interval", zorder=4)
    axes.plot(unit(best.timeout), unit(best.expected_duration), "o", color="black", markersize=4.5, zorder=5,
              label=f"optimum {seconds(best.timeout)}")  # fmt: skip


def plot_frontier(result: Analysis, axes: Axes | None = None) -> Axes:
    """What speed costs: E_J against the submissions per job, one point for each timeout."""
    axes, unit = axes_or_new(axes), unit_of(result)
    law, best = Empirical.of(sample_of(result)), result.timeout.formula
    t = np.union1d(times_of(result), law.jumps[law.jumps > 0][:: max(1, law.jumps.size // 2000)])
    t = t[law.cdf(t) > 0]
    E, N = expected_duration(law, t, cost=best.cost), submissions(law, t)
    least = float(E.min())
    near = SHOWN * least >= E
    axes.plot(N[near], unit(E[near]), color=COLOURS[0])
    cutoff = ratio_of(result).cutoff
    marked = [(cutoff, "s", f"at the cutoff, {seconds(cutoff)}")]
    if best.verdict == "finite" and best.timeout:
        marked.insert(0, (best.timeout, "o", f"optimum {seconds(best.timeout)}"))
    for at, mark, label in marked:
        there = float(expected_duration(law, at, cost=best.cost))
        if there <= SHOWN * least:
            axes.plot(float(submissions(law, at)), unit(there), mark, color="black", markersize=5, label=label)
    axes.set(xlabel="submissions per job", ylabel=unit.label("expected duration $E_J$"), title="Speed against load")
    legend_below(axes)
    return axes
