"""Figures of the latencies: the cdf, the tail, jobs done, quantiles, the outlier ratio, the course of time."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter

from latfit.analysis import Analysis
from latfit.goodness import qq
from latfit.laws import Empirical
from latfit.numbers import Floats
from latfit.plots.style import (
    COLOURS,
    SHOWN_LAWS,
    axes_or_new,
    legend_below,
    log_ticks,
    percent_ticks,
    ratio_of,
    sample_of,
    shown_fits,
    times_of,
    unit_of,
)
from latfit.report.curves import jobs_done, laws_of, strategies_of, windows_of_time
from latfit.units import seconds

LEVELS = ((0.5, "50 %"), (0.05, "95 %"), (0.01, "99 %"))


def plot_cdf(result: Analysis, axes: Axes | None = None) -> Axes:
    """The empirical cdf and the best fitted laws, over the logarithm of time."""
    axes, unit, t = axes_or_new(axes), unit_of(result), times_of(result)
    seen = Empirical.of(sample_of(result))
    axes.step(unit(t), seen.cdf(t), where="post", color="black", label="log")
    for (name, law), colour in zip(laws_of(result, SHOWN_LAWS), COLOURS, strict=False):
        axes.plot(unit(t), law.cdf(t), color=colour, label=name)
    axes.axhline(1 - seen.rho, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", xlabel=unit.label("latency"), ylabel="share returned", ylim=(0, 1.02),
             title="Latency and fitted laws")  # fmt: skip
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    axes.legend(loc="lower right")
    return axes


def plot_survival(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share still out on log axes, where tails show; its floor is the outlier ratio."""
    axes, unit, t = axes_or_new(axes), unit_of(result), times_of(result)
    axes.step(unit(t), Empirical.of(sample_of(result)).still_out(t), where="post", color="black", label="log")
    for (name, law), colour in zip(laws_of(result, SHOWN_LAWS), COLOURS, strict=False):
        axes.plot(unit(t), law.still_out(t), color=colour, label=name)
    if ratio_of(result).estimate > 0:
        axes.axhline(ratio_of(result).estimate, color="grey", linewidth=0.8, linestyle=":", label="outlier ratio")
    floor = max(1e-6, 0.3 / sample_of(result).n, 0.4 * ratio_of(result).estimate)
    axes.set_ylim(floor, 1.3)  # before the scale: of a single probe there is no share to be scaled by
    axes.set(xscale="log", yscale="log", xlabel=unit.label("latency"), ylabel="share still out", title="The tail")
    percent_ticks(axes, floor)
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    axes.legend(loc="lower left")
    return axes


def _done(result: Analysis, t: Floats) -> tuple[Floats | None, str]:
    """F_J at the timeout of the formula and what to call it; None where there is no such timeout."""
    law, best = Empirical.of(sample_of(result)), result.timeout.formula
    if best.verdict != "finite" or not best.timeout:
        return None, ""
    how = ", simulated: attempts fail)" if law.failures.times.size else ")"
    return jobs_done(law, t, best.timeout, best.cost), f"resubmitted after {seconds(best.timeout)} ($F_J${how}"


def plot_completion(result: Analysis, axes: Axes | None = None) -> Axes:
    """F_J with the recommended timeout against F_R without one; Glatard et al. 2006, Figures 1 and 2.

    Where attempts fail visibly F_J has no closed form: it is that of 50 000 simulated jobs.
    """
    axes, unit, t = axes_or_new(axes), unit_of(result), times_of(result)
    law, best = Empirical.of(sample_of(result)), result.timeout.formula
    axes.step(unit(t), law.cdf(t), where="post", color="black", label="one submission ($F_R$)")
    F_J, name = _done(result, t)
    if F_J is not None and best.timeout is not None:
        axes.plot(unit(t), F_J, color=COLOURS[0], label=name)
        axes.axvline(unit(best.timeout), color=COLOURS[0], linewidth=0.8, linestyle="--")
    axes.set(xscale="log", xlabel=unit.label("time since submission"), ylabel="share of jobs done", ylim=(0, 1.02),
             title="Jobs done")  # fmt: skip
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    legend_below(axes)
    return axes


def plot_jobs_tail(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share of jobs not yet done on log axes, with the median, the 95 % and the 99 % quantile marked."""
    axes, unit, t = axes_or_new(axes), unit_of(result), times_of(result)
    floor = max(1e-5, 0.3 / sample_of(result).n)
    curves = [(1 - Empirical.of(sample_of(result)).cdf(t), "one submission (1 − $F_R$)", "black")]
    F_J, name = _done(result, t)
    if F_J is not None:
        curves.append((1 - F_J, name.replace("$F_J$", "1 − $F_J$"), COLOURS[0]))
    for left, label, colour in curves:
        axes.step(unit(t), np.where(left >= floor, left, np.nan), where="post", color=colour, label=label)
    for level, words in LEVELS:
        axes.axhline(level, color="grey", linewidth=0.8, linestyle=":")
        axes.annotate(f"{words} done", (0.005, level), xycoords=("axes fraction", "data"), ha="left", va="bottom",
                      color="dimgrey", fontsize="small")  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel=unit.label("time since submission"), ylabel="share not yet done",
             title="Jobs not yet done", ylim=(floor, 1.3))  # fmt: skip
    percent_ticks(axes, floor)
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    legend_below(axes)
    return axes


def plot_strategies(result: Analysis, axes: Axes | None = None) -> Axes:
    """The share of jobs not yet done under the recommended timeout and under other strategies, on log axes."""
    axes, unit, t = axes_or_new(axes), unit_of(result), times_of(result)
    compared = strategies_of(result, Empirical.of(sample_of(result)))
    floor = max(1e-5, 0.3 / sample_of(result).n)
    axes.set(title="Strategies", xlabel=unit.label("time since submission"), ylabel="share of jobs not yet done")
    drawn = [] if compared is None else compared.tails(t)
    if not drawn:
        told = (
            "no timeout of the formula to compare with" if compared is None else "not computed: attempts fail visibly"
        )
        axes.text(0.5, 0.5, told, ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return axes
    for (name, left), colour, style in zip(drawn, COLOURS, ("-", "--", ":", "-."), strict=False):
        axes.plot(unit(t), np.where(left >= floor, left, np.nan), style, color=colour, label=name)
    axes.set(xscale="log", yscale="log", ylim=(floor, 1.3))
    percent_ticks(axes, floor)
    log_ticks(axes.xaxis, unit(t[0]), unit(t[-1]))
    legend_below(axes, 1)
    return axes


def plot_qq(result: Analysis, axes: Axes | None = None) -> Axes:
    """Quantiles of the log against those of the best laws; a law that fits lies on the diagonal."""
    axes, unit = axes_or_new(axes), unit_of(result)
    for fitted, colour in zip(shown_fits(result), COLOURS, strict=False):
        points = qq(sample_of(result), fitted.fit)
        thin = slice(None, None, max(1, points.observed.size // 500))
        model, observed = unit(points.model[thin]), unit(points.observed[thin])
        axes.plot(model, observed, ".", markersize=3, color=colour, label=fitted.fit.name)
    positive = sample_of(result).completed.values[sample_of(result).completed.values > 0]
    low, high = (unit(positive[0]), unit(positive[-1])) if positive.size else (1e-3, 1.0)
    axes.plot((low, high), (low, high), color="grey", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel=unit.label("law"), ylabel=unit.label("log"), title="Quantiles")
    axes.set_xlim(low / 3, high * 3)
    log_ticks(axes.xaxis, low / 3, high * 3)
    log_ticks(axes.yaxis, low, high * 1.001)
    if shown_fits(result):
        axes.legend(loc="upper left")
    return axes


def plot_ratio(result: Analysis, axes: Axes | None = None) -> Axes:
    """The outlier ratio as a function of the cutoff, with its interval."""
    axes, unit = axes_or_new(axes), unit_of(result)
    t = unit(np.array([r.cutoff for r in result.by_cutoff]))
    ratio = np.array([r.estimate for r in result.by_cutoff])
    low, high = (np.array([getattr(r, side) for r in result.by_cutoff]) for side in ("low", "high"))
    axes.fill_between(t, 100 * low, 100 * high, color=COLOURS[0], alpha=0.2, label="95 % interval", linewidth=0)
    axes.plot(t, 100 * ratio, "o-", color=COLOURS[0], markersize=4)
    axes.axvline(unit(ratio_of(result).cutoff), color="grey", linewidth=0.8, linestyle="--", label="cutoff")
    axes.set(xscale="log", xlabel=unit.label("cutoff"), ylabel="still out (%)", title="Outlier ratio", ylim=(0, None))
    ends = np.append(t, unit(ratio_of(result).cutoff))
    log_ticks(axes.xaxis, float(ends[ends > 0].min()), float(ends.max()))
    axes.legend()
    return axes


def plot_time(result: Analysis, axes: Axes | None = None) -> Axes:
    """Median and 95 % quantile of those that completed over the calendar, the timeout, and the change points."""
    axes, unit = axes_or_new(axes), unit_of(result)
    axes.set(title="Over time", xlabel="submitted (UTC)", ylabel=unit.label("latency"))
    when, median, high = windows_of_time(result.seen)
    if when.size < 2:
        axes.text(0.5, 0.5, "the log has no submission times", ha="center", transform=axes.transAxes)
        return axes
    shown = np.concatenate([median, high, [result.timeout.timeout or np.nan]])
    shown = shown[np.isfinite(shown) & (shown > 0)]
    if not shown.size:
        axes.text(0.5, 0.5, "nothing took a time that can be shown", ha="center", transform=axes.transAxes)
        return axes
    dates = (when * 1e6).astype("datetime64[us]")
    axes.plot(dates, unit(median), ".-", color=COLOURS[0], label="median")
    axes.plot(dates, unit(high), ".--", color=COLOURS[1], label="95 % quantile")
    if result.timeout.timeout:
        axes.axhline(unit(result.timeout.timeout), color="black", linewidth=0.8, linestyle=":", label="timeout")
    found = result.decision.evidence.drift if result.decision.evidence else None
    for change in found.changes if found else ():
        if change.at is not None:
            axes.axvline(change.at, color="grey", linewidth=0.8, linestyle="--")  # type: ignore[arg-type]
    axes.set_yscale("log")
    log_ticks(axes.yaxis, unit(float(shown.min())) / 1.1, unit(float(shown.max())) * 1.1)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    legend_below(axes, 3)
    return axes
