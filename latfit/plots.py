"""Results as figures: each function takes a result and an Axes, draws, and returns the Axes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

from latfit.analysis import Analysis
from latfit.decision import FittedLaw, Recommendation
from latfit.files import whole_file
from latfit.goodness import qq
from latfit.laws import Defective, Empirical
from latfit.logs import ProbeLog
from latfit.numbers import Floats
from latfit.outliers import OutlierRatio
from latfit.restart import completion_cdf, expected_duration
from latfit.sample import LatencySample
from latfit.tracking.drift import Drift

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
SHOWN_PROBES = 20_000

Draw = Callable[[Analysis, Axes], Axes]


def _sample(result: Analysis) -> LatencySample:
    assert result.decision.sample is not None
    return result.decision.sample


def _ratio(result: Analysis) -> OutlierRatio:
    assert result.decision.outliers is not None
    return result.decision.outliers


def _set(result: Analysis) -> Recommendation:
    """The timeout that is drawn: what the formula gives, withheld or not."""
    return result.timeout.if_independent or result.timeout


def _law(fitted: FittedLaw) -> Defective:
    assert fitted.fit.law is not None
    return Defective(fitted.fit.law, fitted.fit.rho or 0.0)


def _shown(result: Analysis) -> list[FittedLaw]:
    return [fitted for fitted in result.decision.fits if fitted.fit.law is not None][:SHOWN_LAWS]


def _times(result: Analysis, *, first: float | None = None) -> Any:
    """Times over the whole sample, equally spaced in the logarithm."""
    positive = _sample(result).completed.values[_sample(result).completed.values > 0]
    low = first or (positive[0] if positive.size else _sample(result).resolution or 1.0)
    return np.geomspace(low, max(_ratio(result).cutoff, low * 1.01), POINTS)


def plot_cdf(result: Analysis, axes: Axes) -> Axes:
    """The empirical cdf and the best fitted laws, over the logarithm of time."""
    t = _times(result)
    empirical = Empirical.of(_sample(result))
    axes.step(t, empirical.cdf(t), where="post", color="black", label="log")
    for fitted, colour in zip(_shown(result), COLOURS, strict=False):
        axes.plot(t, _law(fitted).cdf(t), color=colour, label=fitted.fit.name)
    axes.axhline(1 - _ratio(result).estimate, color="grey", linewidth=0.8, linestyle=":")
    axes.set(
        xscale="log", xlabel="latency (s)", ylabel="share returned", ylim=(0, 1.02), title="Latency and fitted laws"
    )
    axes.legend(loc="lower right")
    return axes


def plot_survival(result: Analysis, axes: Axes) -> Axes:
    """The share still out on log axes, where tails show; its floor is the outlier ratio."""
    t = _times(result)
    axes.step(t, Empirical.of(_sample(result)).still_out(t), where="post", color="black", label="log")
    for fitted, colour in zip(_shown(result), COLOURS, strict=False):
        axes.plot(t, _law(fitted).still_out(t), color=colour, label=fitted.fit.name)
    if _ratio(result).estimate > 0:
        axes.axhline(_ratio(result).estimate, color="grey", linewidth=0.8, linestyle=":", label="outlier ratio")
    axes.set(xscale="log", yscale="log", xlabel="latency (s)", ylabel="share still out", title="The tail")
    axes.set_ylim(max(1e-6, 0.3 / _sample(result).n, 0.4 * _ratio(result).estimate), 1.3)
    axes.legend(loc="lower left")
    return axes


def plot_completion(result: Analysis, axes: Axes) -> Axes:
    """F_J with the recommended timeout against F_R without one; Glatard et al. 2006, Figures 1 and 2."""
    law = Empirical.of(_sample(result))
    best = _set(result)
    t = _times(result)
    axes.step(t, law.cdf(t), where="post", color="black", label="one submission, $F_R$")
    if best.verdict == "finite" and best.timeout and not _sample(result).failed.total:
        F_J = completion_cdf(law, t, best.timeout, cost=best.cost)
        axes.plot(t, F_J, color=COLOURS[0], label=f"resubmitted after {best.timeout:.4g} s, $F_J$")
        axes.axvline(best.timeout, color=COLOURS[0], linewidth=0.8, linestyle="--")
    axes.set(
        xscale="log", xlabel="time since submission (s)", ylabel="share of jobs done", ylim=(0, 1.02), title="Jobs done"
    )
    axes.legend(loc="lower right")
    return axes


def plot_expected_duration(result: Analysis, axes: Axes) -> Axes:
    """E_J(t) with and without outliers, the optimum, its interval, the flat window and the asymptote.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.
    """
    law, best = Empirical.of(_sample(result)), _set(result)
    cost = best.cost
    t = np.union1d(_times(result), law.jumps[law.jumps > 0][:: max(1, law.jumps.size // 2000)])
    E = expected_duration(law, t, cost=cost)
    axes.plot(t, E, color=COLOURS[0], label="with outliers" if law.rho > 0 else "$E_J(t)$")
    if law.rho > 0 and not _sample(result).failed.total:
        returned = law.conditional()
        axes.plot(t, expected_duration(returned, t, cost=cost), color=COLOURS[1], label="without outliers")
        slope = law.rho / (1 - law.rho)
        E_R = float(returned.partial_moment(1, np.inf))
        axes.plot(t, E_R + slope * (t + cost), ":", color="grey", label="asymptote $E_R + \\rho t/(1-\\rho)$")
    if best.verdict == "finite" and best.timeout is not None and best.expected_duration is not None:
        if best.within_5pct is not None:
            low, high = best.within_5pct
            axes.axvspan(low, min(high, t[-1]), color=COLOURS[2], alpha=0.12, label="within 5 %")
        if best.intervals is not None:
            low, high = best.intervals.timeout
            ends, level = [low, min(high, t[-1])], [best.expected_duration] * 2
            axes.plot(ends, level, color="black", linewidth=3, solid_capstyle="butt", label="95 % interval")
        axes.plot(best.timeout, best.expected_duration, "o", color="black", label=f"optimum {best.timeout:.4g} s")
    finite = E[np.isfinite(E)]
    least = float(finite.min())
    top = max(2.2 * least, float(E[-1]) if np.isfinite(E[-1]) else 0.0)
    axes.set(xscale="log", xlabel="timeout (s)", ylabel="expected duration (s)", title="What a timeout brings")
    axes.set_ylim(0.85 * least if least else 0, min(1.1 * top, 4 * least) if least else 1)
    axes.legend(loc="upper center")
    return axes


def plot_qq(result: Analysis, axes: Axes) -> Axes:
    """Quantiles of the log against those of the best laws; a law that fits lies on the diagonal."""
    for fitted, colour in zip(_shown(result), COLOURS, strict=False):
        points = qq(_sample(result), fitted.fit)
        thin = slice(None, None, max(1, points.observed.size // 500))
        axes.plot(points.model[thin], points.observed[thin], ".", markersize=3, color=colour, label=fitted.fit.name)
    positive = _sample(result).completed.values[_sample(result).completed.values > 0]
    ends = (positive[0], positive[-1]) if positive.size else (1e-3, 1.0)
    axes.plot(ends, ends, color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="law (s)", ylabel="log (s)", title="Quantiles")
    axes.set_xlim(ends[0] / 3, ends[1] * 3)
    axes.legend(loc="upper left")
    return axes


def plot_ratio(result: Analysis, axes: Axes) -> Axes:
    """The outlier ratio as a function of the cutoff, with its interval."""
    t = [r.cutoff for r in result.by_cutoff]
    ratio = np.array([r.estimate for r in result.by_cutoff])
    low, high = (np.array([getattr(r, side) for r in result.by_cutoff]) for side in ("low", "high"))
    axes.fill_between(t, 100 * low, 100 * high, color=COLOURS[0], alpha=0.2, label="95 % interval", linewidth=0)
    axes.plot(t, 100 * ratio, "o-", color=COLOURS[0], markersize=4)
    axes.axvline(_ratio(result).cutoff, color="grey", linewidth=0.8, linestyle="--", label="cutoff")
    axes.set(xscale="log", xlabel="cutoff (s)", ylabel="still out (%)", title="Outlier ratio", ylim=(0, None))
    axes.legend()
    return axes


FIGURES: dict[str, Draw] = {
    "cdf": plot_cdf,
    "survival": plot_survival,
    "completion": plot_completion,
    "expected-duration": plot_expected_duration,
    "qq": plot_qq,
    "ratio": plot_ratio,
}


def figure(result: Analysis, name: str) -> Figure:
    """One figure by its name, or `summary` for all of them on a page."""
    names = list(FIGURES) if name == "summary" else [name]
    columns = 2 if len(names) > 1 else 1
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]
        page = Figure(figsize=(10, 12) if columns == 2 else (6, 4), layout="constrained")
        axes = page.subplots(len(names) // columns, columns, squeeze=False).ravel()
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


def plot_drift(log: ProbeLog, result: Drift, axes: Axes) -> Axes:
    """Latencies over time, change points, the timeout of each window and the tracked one."""
    frame = log.frame.dropna(subset=["submitted"])
    for status, colour in (("completed", COLOURS[0]), ("failed", COLOURS[3]), ("censored", COLOURS[1])):
        part = frame[(frame["status"] == status) & (frame["latency"] > 0)]
        part = part.iloc[:: max(1, len(part) // SHOWN_PROBES)]
        if len(part):
            when = part["submitted"].dt.tz_localize(None).to_numpy()
            axes.plot(when, part["latency"].to_numpy(), ".", color=colour, markersize=1.5, alpha=0.5, label=status)
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
    axes.set(yscale="log", ylabel="latency (s)", title="Latencies, changes and timeouts")
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
