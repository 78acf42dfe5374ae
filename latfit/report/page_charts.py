"""The figures of the page, drawn without script: E_J, latency, tail, outliers against the cutoff, over time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from latfit.analysis import Analysis
from latfit.laws import Empirical, Law
from latfit.numbers import Floats
from latfit.report import svg
from latfit.report.curves import Strategies, jobs_done, laws_of, windows_of_time
from latfit.restart import expected_duration
from latfit.units import seconds

LAWS = 3
STYLES = ("s1", "s2", "s3")


def span(law: Empirical, cutoff: float) -> tuple[float, float]:
    """The first and the last time that a chart shows."""
    positive = law.jumps[law.jumps > 0]
    low = float(positive[0]) if positive.size else law.resolution or 1.0
    return low, max(cutoff, low * 1.5)


def _times(low: float, high: float) -> Floats:
    return np.geomspace(low, high, svg.POINTS)


def duration_chart(result: Analysis, law: Empirical) -> str:
    """E_J against the timeout, its optimum and the 5 % window; what is replayed on the log beside it."""
    best, cutoff = result.timeout.formula, _cutoff(result)
    low, high = span(law, cutoff)
    t = np.union1d(_times(low, high), law.jumps[law.jumps > 0][:: max(1, law.jumps.size // 150)])
    E = expected_duration(law, t, cost=best.cost)
    least = float(E[np.isfinite(E)].min(initial=math.inf))
    if not (0 < least < math.inf):
        return ""
    top = least * min(4.0, max(2.2, 1.05 * float(E[-1]) / least if np.isfinite(E[-1]) else 2.2))
    x = svg.horizontal(low, high, "timeout (logarithmic)", svg.duration_ticks(low, high), log=True)
    y = svg.vertical(0.9 * least, top, "expected duration", svg.round_ticks(0.9 * least, top, seconds))
    marks = []
    if best.verdict == "finite" and best.within_5pct:
        a, b = best.within_5pct
        marks.append(svg.band(x, y, [max(a, low), min(b, high)], [0.9 * least] * 2, [top] * 2, "window"))
    marks.append(svg.line(x, y, t, np.where(top >= E, E, np.nan), "s0"))
    if best.timeout and best.expected_duration:
        marks += [svg.upright(x, best.timeout, "chosen", seconds(best.timeout)),
                  svg.dot(x, y, best.timeout, best.expected_duration)]  # fmt: skip
    told = f"Expected duration against the timeout; the least is {seconds(least)}"
    return svg.chart(x, y, marks, told + (f" at {seconds(best.timeout)}" if best.timeout else ""))


def _cutoff(result: Analysis) -> float:
    assert result.decision.outliers is not None
    return float(result.decision.outliers.cutoff)


def _laws(result: Analysis) -> list[tuple[str, str, Law]]:
    """Style, name and law of the best fits."""
    return [(style, name, law) for style, (name, law) in zip(STYLES, laws_of(result, LAWS), strict=False)]


def latency_chart(result: Analysis, law: Empirical) -> str:
    """The share returned against time, with the best fitted laws."""
    low, high = span(law, _cutoff(result))
    t = _times(low, high)
    x = svg.horizontal(low, high, "latency (logarithmic)", svg.duration_ticks(low, high), log=True)
    y = svg.vertical(0.0, 1.0, "share returned", svg.round_ticks(0, 1, lambda v: f"{100 * v:.0f} %"))
    fitted = _laws(result)
    marks = [svg.line(x, y, t, one.cdf(t), style) for style, _, one in fitted]
    marks.append(svg.line(x, y, t, law.cdf(t), "log", steps=True))
    told = f"Share of probes that returned against time; {100 * (1 - law.rho):.1f} % within {seconds(high)}"
    return svg.chart(x, y, marks, told) + svg.legend([("log", "log"), *((s, name) for s, name, _ in fitted)])


def tail_chart(result: Analysis, law: Empirical) -> str:
    """The share of jobs not yet done, with and without resubmission, on logarithmic axes where the tail shows."""
    best, (low, high) = result.timeout, span(law, _cutoff(result))
    t = _times(low, high)
    drawn = [("log", "one submission", 1.0 - law.cdf(t))]
    drawn += [(style, name, one.still_out(t)) for style, name, one in _laws(result)[:1] if not law.failures.times.size]
    if best.timeout and best.verdict == "finite":
        left = 1.0 - jobs_done(law, t, best.timeout, best.cost)
        drawn.append(("s0", f"resubmitted after {seconds(best.timeout)}", left))
    return _tails(result, t, drawn, "Share of jobs not yet done against time, logarithmic")


def strategies_chart(result: Analysis, law: Empirical, compared: Strategies) -> str:
    """The share of jobs not yet done under each strategy; empty where there is only one."""
    t = _times(*span(law, _cutoff(result)))
    drawn = [(style, name, left) for style, (name, left) in zip(("s0", *STYLES), compared.tails(t), strict=False)]
    told = "Share of jobs not yet done against time under each strategy, logarithmic"
    return _tails(result, t, drawn, told) if len(drawn) > 1 else ""


def _tails(result: Analysis, t: Floats, drawn: Sequence[tuple[str, str, Floats]], told: str) -> str:
    assert result.decision.sample is not None
    floor = max(1e-5, 0.3 / result.decision.sample.n)
    x = svg.horizontal(t[0], t[-1], "time since submission (logarithmic)", svg.duration_ticks(t[0], t[-1]), log=True)
    y = svg.vertical(floor, 1.0, "share not yet done", svg.share_ticks(floor, 1.0), log=True)
    marks = [svg.line(x, y, t, np.where(left >= floor, left, np.nan), style, steps=style == "log")
             for style, _, left in drawn]  # fmt: skip
    return svg.chart(x, y, marks, told) + svg.legend([(style, name) for style, name, _ in drawn])


def ratio_chart(result: Analysis) -> str:
    """The outlier ratio against the cutoff, with its interval."""
    rows = [row for row in result.by_cutoff if row.cutoff > 0]
    if len(rows) < 2:
        return ""
    t = np.array([row.cutoff for row in rows])
    ratio, below, above = (np.array([getattr(row, name) for row in rows]) for name in ("estimate", "low", "high"))
    top = min(1.0, 1.05 * float(above.max())) or 1e-3
    low, high = float(t.min()), max(float(t.max()), float(t.min()) * 1.01)
    x = svg.horizontal(low, high, "cutoff (logarithmic)", svg.duration_ticks(low, high), log=True)
    y = svg.vertical(0.0, top, "still out", svg.round_ticks(0.0, top, lambda v: f"{100 * v:.3g} %"))
    marks = [svg.band(x, y, t, below, above, "interval"), svg.line(x, y, t, ratio, "s0")]
    marks += [svg.dot(x, y, float(a), float(b), "small") for a, b in zip(t, ratio, strict=True)]
    told = f"Share still out against the cutoff, from {100 * ratio[0]:.3g} % to {100 * ratio[-1]:.3g} %"
    return svg.chart(x, y, marks, told) + svg.legend([("s0", "still out"), ("interval-key", "95 % interval")])


def time_chart(result: Analysis) -> str:
    """Median and 95 % quantile of those that completed over the calendar, and where the log changed."""
    when, median, high = windows_of_time(result.seen)
    if when.size < 2 or not np.isfinite(median).any():
        return ""
    values = np.concatenate([median, high])
    positive = values[np.isfinite(values) & (values > 0)]
    if not positive.size:
        return ""
    best = result.timeout.timeout
    ends = [*positive.tolist(), *([best] if best else [])]
    low, top = min(ends) / 1.3, max(ends) * 1.3
    x = svg.horizontal(when[0], when[-1], "submitted (UTC)", svg.date_ticks(when[0], when[-1]), log=False)
    y = svg.vertical(low, top, "latency (logarithmic)", svg.duration_ticks(low, top), log=True)
    marks = [svg.line(x, y, when, median, "s0"), svg.line(x, y, when, high, "s1")]
    named = [("s0", "median"), ("s1", "95 % quantile")]
    if best:
        marks.append(svg.line(x, y, [when[0], when[-1]], [best, best], "chosen"))
        named.append(("chosen", f"timeout {seconds(best)}"))
    evidence = result.decision.evidence
    changes = evidence.drift.changes if evidence and evidence.drift else ()
    for change in changes:
        if change.at is not None:
            moment = float(change.at.astype("datetime64[us]").astype(np.int64)) / 1e6
            marks.append(svg.upright(x, min(max(moment, when[0]), when[-1]), "change", change.kind))
    if changes:
        named.append(("change", "the log changes"))
    told = f"Latency over time: median and 95 % quantile; changes found: {len(changes)}"
    return svg.chart(x, y, marks, told) + svg.legend(named)
