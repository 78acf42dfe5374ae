"""What the figures show, as data: the page draws it as SVG, `latfit.plots` with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from latfit.analysis import Analysis
from latfit.curve import Counts
from latfit.errors import RestartError, counted
from latfit.evidence.changes import Change
from latfit.fitting import fitted_law, qq
from latfit.histograms import Guarantee
from latfit.laws import Empirical, Law
from latfit.numbers import Floats
from latfit.report.layout import shortened
from latfit.resample import interval, resampled_curves
from latfit.restart import compare_policies, completion_cdf, expected_duration, optimal_timeout, simulate_policy
from latfit.restart.compare import Comparison
from latfit.restart.derived import coarse
from latfit.restart.policies.timeout import Timeout
from latfit.sample import LatencySample
from latfit.table import CENSORED, COMPLETED, FAILED, STATUSES, ProbeTable
from latfit.tracking.drift import Drift
from latfit.units import seconds

SIMULATED_JOBS = 50_000  # where failures leave no formula for F_J
STRATEGY_STEPS = 1000  # steps of the law on which strategies are compared
SHOWN_LAWS = 3
SHOWN_PROBES = 20_000  # dots of each status in the figure of a drift report
SHOWN_CELLS = 3  # groups in the picture of why they cannot have one timeout
BAND_RESAMPLES = 99
LONGEST_LABEL = 24  # characters of a group's name in a legend
NOT_DONE = "share of jobs not yet done"


class Axis(NamedTuple):
    """One axis: its label, its ends, what its values are, and whether it is logarithmic."""

    label: str
    low: float
    high: float
    kind: Literal["time", "share", "date", "count"]
    log: bool = False


class Line(NamedTuple):
    """A line through points, or the points alone, named in the legend; `style` is a colour and dash of the palette."""

    name: str
    x: Floats
    y: Floats
    style: str
    steps: bool = False
    dots: Literal["", "joined", "alone"] = ""


class Band(NamedTuple):
    """An area between two lines."""

    name: str
    x: Floats
    low: Floats
    high: Floats
    style: str


class Mark(NamedTuple):
    """A point, or an upright line where `y` is None."""

    name: str
    x: float
    y: float | None
    style: str


class Chart(NamedTuple):
    """A figure: a title, two axes, and the shapes on them."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    marks: Sequence[Mark] = ()


class View:
    """An analysis as its figures see it: the law of the data, its fits, and the times of a line's `points`."""

    def __init__(self, result: Analysis, points: int) -> None:
        assert result.decision.sample is not None
        assert result.decision.outliers is not None
        self.result, self.sample, self.points = result, result.decision.sample, points
        self.law = Empirical.of(self.sample)
        self.best = result.timeout.formula
        self.cutoff = float(result.decision.outliers.cutoff)
        positive = self.law.jumps[self.law.jumps > 0]
        self.low = float(positive[0]) if positive.size else self.law.resolution or 1.0
        self.high = max(self.cutoff, self.low * 1.5)
        self.times = np.geomspace(self.low, self.high, points)
        self.fits = [each.fit for each in result.decision.fits if each.fit.law is not None][:SHOWN_LAWS]

    @cached_property
    def fitted(self) -> list[tuple[str, Law]]:
        return [(fit.name, fitted_law(self.sample, fit)) for fit in self.fits]

    @cached_property
    def thinned(self) -> Law:
        """The law on which strategies are compared."""
        return self.law if self.law.failures.times.size else coarse(self.law, STRATEGY_STEPS)

    @cached_property
    def strategies(self) -> Comparison | None:
        """Strategies beside the recommended timeout."""
        chosen = self.result.timeout
        if chosen.verdict != "finite" or not chosen.timeout or "not-identified" in self.result.decision.codes:
            return None
        with suppress(RestartError):
            return compare_policies(self.thinned, [f"timeout(t={chosen.timeout!r})"], cost=chosen.cost)
        return None

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        """The 95 % interval of E_J at `times`, by resampling."""
        counts, cost, drawn = Counts.of_sample(self.sample), self.best.cost, []
        for curves in resampled_curves(counts, self.times.tolist(), np.random.default_rng(0), count=BAND_RESAMPLES):
            drawn.append(np.stack([curves.E_J_at(np.full(len(curves.F), t), cost) for t in self.times]))
        low, high = interval(np.concatenate(drawn, axis=1))
        return low, high

    @cached_property
    def timeouts(self) -> Floats:
        """The times of lines, and jumps of the law: E_J is least at one."""
        jumps = self.law.jumps[self.law.jumps > 0]
        return np.union1d(self.times, jumps[:: max(1, jumps.size // (5 * self.points))])

    def time_axis(self, label: str, low: float | None = None, high: float | None = None) -> Axis:
        return Axis(label, low or self.low, high or self.high, "time", log=True)


def jobs_left(law: Empirical, t: Floats, timeout: float, cost: float) -> Floats:
    """1 − F_J(t): the share of jobs not done by t when attempts are cancelled at `timeout` and submitted again.

    Where attempts fail visibly it has no closed form: it is that of 50 000 simulated jobs.
    """
    if not law.failures.times.size:
        return 1.0 - completion_cdf(law, t, timeout, cost=cost)
    policy = Timeout(timeout if math.isfinite(timeout) else None)
    jobs = np.sort(simulate_policy(law, policy, SIMULATED_JOBS, np.random.default_rng(0), cost=cost).durations)
    return 1.0 - np.searchsorted(jobs, t, side="right") / SIMULATED_JOBS


def windows_of_time(probes: ProbeTable | None) -> tuple[Floats, Floats, Floats]:
    """The middles of windows, median and 95 % quantile of completions in each; empty without times or completions."""
    nothing = np.empty(0), np.empty(0), np.empty(0)
    if probes is None or probes.submitted is None:
        return nothing
    timed = np.isfinite(probes.submitted) & (probes.status == COMPLETED)
    when, latency = probes.submitted[timed], probes.latency[timed]
    if when.size < 10 or np.ptp(when) == 0:
        return nothing
    count = int(min(60, max(4, when.size // 30)))
    edges = np.linspace(when.min(), when.max(), count + 1)
    window = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, count - 1)
    parts = [latency[window == i] for i in range(count)]
    levels = np.array([np.quantile(part, [0.5, 0.95]) if part.size >= 5 else [np.nan] * 2 for part in parts])
    return (edges[:-1] + edges[1:]) / 2, levels[:, 0], levels[:, 1]


def duration_chart(view: View, *, theory: bool = True) -> Chart | None:
    """E_J(t) with its interval, the flat window, the replay, and what to set; with `theory`, its asymptote too.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.
    """
    law, best, result, t = view.law, view.best, view.result, view.timeouts
    E = expected_duration(law, t, cost=best.cost)
    least = float(E[np.isfinite(E)].min(initial=math.inf))
    if not 0 < least < math.inf:
        return None
    top = least * min(4.0, max(2.2, 1.05 * float(E[-1]) / least if np.isfinite(E[-1]) else 2.2))
    lines = [Line("if attempts are independent", t, E, "s0")]
    replay = result.decision.evidence.replay if result.decision.evidence else None
    if replay is not None and replay.curve:
        replayed = np.array([(at.timeout, at.expected_duration) for at in replay.curve])
        replayed = replayed[np.isfinite(replayed).all(axis=1)]
        lines.append(Line("replayed on the log", replayed[:, 0], replayed[:, 1], "s2"))
    if best.at_cutoff is not None and best.at_cutoff <= top:
        lines.append(Line(f"waiting: {seconds(best.at_cutoff)}", t[[0, -1]], np.full(2, best.at_cutoff), "limit"))
    if theory and law.rho > 0 and not view.sample.failed.total:
        returned = law.conditional()
        slope, E_R = law.rho / (1 - law.rho), float(returned.partial_moment(1, np.inf))
        lines.append(Line("without outliers", t, expected_duration(returned, t, cost=best.cost), "s1"))
        lines.append(Line("asymptote E_R + ρt/(1−ρ)", t, E_R + slope * (t + best.cost), "s3"))
    low, high = view.band
    bands, marks = [Band("95 % interval", view.times, low, np.minimum(high, 2 * top), "interval")], []
    mean, title = least, f"If attempts were independent: lowest mean {seconds(least)}"
    if best.verdict == "finite" and best.timeout is not None and best.expected_duration is not None:
        mean = best.expected_duration
        title = f"If attempts were independent: lowest mean, {seconds(mean)}, at {seconds(best.timeout)}"
        if best.within_5pct is not None:
            ends = np.clip(np.array(best.within_5pct), view.low, view.high)
            bands.append(Band("at most 5 % above the lowest", ends, np.full(2, 0.9 * least), np.full(2, top), "window"))
        marks.append(Mark(f"optimum {seconds(best.timeout)}", best.timeout, mean, "dot"))
    if retry := result.timeout.retry:
        marks += [
            Mark(f"{'then' if i else 'resubmit'} {seconds(t)}", t, None, "set") for i, t in enumerate(retry.timeouts)
        ]
        if result.timeout.verdict == "finite" and best.timeout is not None and best.at_cutoff is not None:
            title = f"One timeout of {seconds(best.timeout)}, repeated, takes {seconds(mean)} a job; "
            title += f"waiting takes {seconds(best.at_cutoff)}"
    if (now := result.decision.current) is not None:
        marks.append(Mark(f"now {seconds(now.timeout)}", now.timeout, None, "change"))
    y = Axis("mean time of a job", 0.85 * least, top, "time")
    return Chart(title, view.time_axis("timeout"), y, lines, bands, marks)


def law_duration_chart(law: Law, points: int) -> Chart:
    """E_J(t) of a law, with its optimum and the flat window."""
    best = optimal_timeout(law)
    ends = law.ppf(float(law.cdf(np.inf)) * np.array([0.01, 0.99])) * np.array([1.0, 2.0])
    t = np.geomspace(max(float(ends[0]), 1e-6 * float(ends[1])), float(ends[1]), points)
    E = expected_duration(law, t)
    least = float(E[np.isfinite(E)].min(initial=math.inf))
    title, bands, marks = f"Lowest mean {seconds(least)}", list[Band](), list[Mark]()
    if best.verdict == "finite" and best.timeout is not None and best.expected_duration is not None:
        least = best.expected_duration
        title = f"Lowest mean, {seconds(least)}, at {seconds(best.timeout)}"
        marks.append(Mark(f"optimum {seconds(best.timeout)}", best.timeout, least, "dot"))
        window = np.clip(np.array(best.within_5pct), t[0], t[-1])
        bands.append(Band("within 5 %", window, np.full(2, 0.9 * least), np.full(2, 2.2 * least), "window"))
    x = Axis("timeout", float(t[0]), float(t[-1]), "time", log=True)
    y = Axis("mean time of a job", 0.85 * least, 2.2 * least, "time")
    return Chart(title, x, y, [Line("expected duration", t, E, "s0")], bands, marks)


def reason_chart(view: View) -> Chart:
    """Why the formula does not decide: the latencies of the groups that a retry stays in, or those over time."""
    evidence, probes = view.result.decision.evidence, view.result.seen
    mixing, world = (evidence.mixing, evidence.binding_world) if evidence else (None, None)
    over_time = world is not None and world.kind in ("time", "spell")
    if probes is None or probes.facts.queue or probes.facts.work:
        return cdf_chart(view)
    if mixing is None or over_time:
        chart = time_chart(view) or cdf_chart(view)
        return chart._replace(title="Slow probes come together in time") if over_time else chart
    column, t = mixing.column, view.times
    sizes = np.bincount(column.codes, minlength=len(column.labels))
    shown = [int(code) for code in np.argsort(-sizes)[: 4 * SHOWN_CELLS] if sizes[code]]
    parts = {code: np.sort(probes.latency[(column.codes == code) & (probes.status == COMPLETED)]) for code in shown}
    returned = [code for code in shown if 2 * parts[code].size >= sizes[code]]
    ranked = sorted(returned, key=lambda code: float(np.median(parts[code])))
    if not ranked:
        return cdf_chart(view)
    ends = ranked if len(ranked) <= SHOWN_CELLS else [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
    lines = [Line("all", t, view.law.cdf(t), "log", steps=True)]
    for at, code in enumerate(ends):
        share = np.searchsorted(parts[code], t, side="right") / sizes[code]
        lines.append(Line(shortened(f"{column.name} {column.labels[code]}", LONGEST_LABEL), t, share, f"s{at}"))
    fast, slow = (seconds(float(np.median(parts[code]))) for code in (ends[0], ends[-1]))
    return _shares(view, shortened(f"Latencies differ by {column.name}: medians from {fast} to {slow}", 90), lines)


def bounds_chart(guarantee: Guarantee) -> Chart:
    """The bounds of the mean at each edge of a histogram's buckets."""
    bounds, best = guarantee.bounds, guarantee.optimum
    shown = np.isfinite(bounds.high) & (bounds.high <= 6 * max(guarantee.guaranteed, 1e-12))
    x, low, high = bounds.edges[shown], bounds.low[shown], bounds.high[shown]
    first, last, top = (float(x[0]), float(x[-1]), 1.1 * float(high.max())) if x.size else (1.0, 2.0, 1.0)
    lines = Line("at most", x, high, "s0", dots="joined"), Line("at least", x, low, "s1", dots="joined")
    marks = [Mark(f"timeout {seconds(best.timeout)}", best.timeout, None, "set")] if best and best.timeout else []
    title = f"The mean is at most {seconds(guarantee.guaranteed)}, whatever happened inside the buckets"
    axis = Axis("timeout", first, max(last, 1.01 * first), "time", log=True)
    y = Axis("mean time of a job", 0.0, top, "time")
    return Chart(title, axis, y, lines, [Band("possible", x, low, high, "interval")], marks)


def _of_formula(view: View, title: str) -> str:
    """A title about the formula's timeout, which is not the decision if that is withheld."""
    if view.result.timeout.verdict != "withheld":
        return title
    return f"If attempts were independent: {title[0].lower()}{title[1:]}"


def frontier_chart(view: View) -> Chart | None:
    """What speed costs: E_J against the submissions per job, one point for each timeout."""
    law, best = view.law, view.best
    t = view.timeouts[law.cdf(view.timeouts) > 0]
    E, N = expected_duration(law, t, cost=best.cost), 1 / law.cdf(t)
    least = float(E.min(initial=math.inf))
    if not 0 < least < math.inf:
        return None
    shown = 2.5 * least >= E
    named = [(best.timeout, "dot", "optimum")] if best.verdict == "finite" and best.timeout else []
    marks = []
    for at, style, name in [*named, (view.cutoff, "square", "waiting until")]:
        E_at = float(expected_duration(law, at, cost=best.cost))
        if E_at <= 2.5 * least:
            marks.append(Mark(f"{name} {seconds(at)}", 1 / float(law.cdf(at)), E_at, style))
    x = Axis("submissions per job", 1.0, 1.02 * float(N[shown].max()), "count")
    y = Axis("expected duration", 0.85 * least, 1.02 * float(E[shown].max()), "time")
    load = best.submissions
    title = f"The lowest mean costs {load:.2f} submissions a job" if load else "Speed against load"
    return Chart(_of_formula(view, title), x, y, [Line("", N[shown], E[shown], "s0")], marks=marks)


def tail_chart(view: View) -> Chart:
    """The share of jobs not yet done on log axes, with resubmission (F_J) and without (F_R)."""
    law, best, t = view.law, view.best, view.times
    lines = [Line("one submission (1 − F_R)", t, 1.0 - law.cdf(t), "log", steps=True)]
    title = "Jobs not yet done"
    if best.verdict == "finite" and best.timeout:
        how = ", simulated: attempts fail" if law.failures.times.size else ""
        left = jobs_left(law, t, best.timeout, best.cost)
        lines.append(Line(f"resubmitted after {seconds(best.timeout)} (1 − F_J{how})", t, left, "s0"))
        last, waiting = (each.quantiles.get("0.95") if each else None for each in (best, best.waiting))
        if last is not None and waiting is not None:
            title = _of_formula(view, f"95 % of jobs are done within {seconds(last)} instead of {seconds(waiting)}")
    return _shares(view, title, lines, NOT_DONE)


def strategies_chart(view: View) -> Chart | None:
    """The share of jobs not yet done under the recommended timeout and under other strategies, on log axes."""
    if view.strategies is None:
        return None
    first, *others = view.strategies.rows
    lines: list[Line] = []
    for row in [first, *sorted(others, key=lambda row: row.role != "same")][:4]:
        policy = row.outcome.policy
        plan = policy.plan(view.thinned, view.result.timeout.cost)
        with suppress(RestartError):  # visible failures, on no common clock
            left = np.array([plan.survival(float(t)) for t in view.times])
            lines.append(Line(policy.sentence(seconds), view.times, left, f"s{len(lines)}"))
    within = [row.outcome.quantiles.get("0.99") or math.inf for row in view.strategies.rows[: len(lines)]]
    least = min(within, default=math.inf)
    title = f"99 % of jobs are done within {seconds(least)} at best" if least < math.inf else "Jobs not yet done"
    return _shares(view, title, lines, NOT_DONE) if lines else None


def _shares(view: View, title: str, lines: Sequence[Line], y: str = "share returned") -> Chart:
    """Shares of probes against the logarithm of time; those of jobs not yet done on a logarithmic axis too."""
    jobs = y == NOT_DONE
    lowest = max(1e-5, 0.3 / view.sample.n) if jobs else 0.0
    x = view.time_axis("time since submission" if jobs else "latency")
    return Chart(title, x, Axis(y, lowest, 1.0, "share", log=jobs), lines)


def laws_chart(
    sample: LatencySample, laws: Sequence[tuple[str, Law]], points: int, *, high: float = 0.0, title: str = "Latency"
) -> Chart:
    """The cdf of a sample and of laws, over the logarithm of time."""
    data = Empirical.of(sample)
    low = float(data.jumps[data.jumps > 0].min(initial=math.inf))
    low = low if low < math.inf else data.resolution or 1.0
    t = np.geomspace(low, max(high or float(data.jumps[-1]), 1.5 * low), points)
    fits = [Line(name, t, law.cdf(t), f"s{1 + i % 3}") for i, (name, law) in enumerate(laws)]
    x, y = Axis("latency", low, float(t[-1]), "time", log=True), Axis("share returned", 0.0, 1.0, "share")
    return Chart(title, x, y, [Line("log", t, data.cdf(t), "log", steps=True), *fits])


def cdf_chart(view: View) -> Chart:
    """The empirical cdf and the best fitted laws, over the logarithm of time."""
    half = seconds(float(view.sample.completed.quantiles([0.5])[0]))
    title = f"{100 * (1 - view.law.rho):.3g} % return within {seconds(view.high)}, half within {half}"
    return laws_chart(view.sample, view.fitted, view.points, high=view.high, title=title)


def qq_chart(view: View) -> Chart | None:
    """Quantiles of the log against those of the best laws; a law that fits lies on the diagonal."""
    positive = view.sample.completed.values[view.sample.completed.values > 0]
    if not positive.size:
        return None
    low, high = float(positive[0]), max(float(positive[-1]), 1.01 * float(positive[0]))
    lines = [Line("", np.array([low, high]), np.array([low, high]), "limit")]
    for i, fit in enumerate(view.fits, 1):
        model, observed = qq(view.sample, fit)
        thin = slice(None, None, max(1, observed.size // 500))
        lines.append(Line(fit.name, model[thin], observed[thin], f"s{i}", dots="alone"))
    x, y = view.time_axis("law", low / 3, high * 3), view.time_axis("log", low, high)
    title = f"{view.fits[0].name} is closest to the log" if view.fits else "The log against itself"
    return Chart(title, x, y, lines)


def ratio_chart(view: View) -> Chart | None:
    """The outlier ratio as a function of the cutoff, with its interval."""
    rows = [row for row in view.result.by_cutoff if row.cutoff > 0]
    if not rows:
        return None
    names = "cutoff", "estimate", "low", "high"
    t, ratio, low, high = (np.array([getattr(row, name) for row in rows]) for name in names)
    x = view.time_axis("cutoff", float(t.min()), max(float(t.max()), view.cutoff, float(t.min()) * 1.01))
    y = Axis("still out", 0.0, min(1.0, 1.05 * float(high.max())) or 1e-3, "share")
    lines, bands = [Line("still out", t, ratio, "s0", dots="joined")], [Band("95 % interval", t, low, high, "interval")]
    title = f"{100 * ratio[-1]:.3g} % are still out at {seconds(float(t[-1]))}"
    return Chart(title, x, y, lines, bands, [Mark("cutoff", view.cutoff, None, "change")])


def time_chart(view: View) -> Chart | None:
    """Median and 95 % quantile of those that completed over the calendar, the timeout, and the change points."""
    when, median, high = windows_of_time(view.result.seen)
    timeout, evidence = view.result.timeout.timeout, view.result.decision.evidence
    levels = np.concatenate([median, high, [timeout or np.nan]])
    positive = levels[np.isfinite(levels) & (levels > 0)]
    if when.size < 2 or not np.isfinite(median).any() or not positive.size:
        return None
    x = Axis("submitted (UTC)", float(when[0]), float(when[-1]), "date")
    lines = [Line("median", when, median, "s0"), Line("95 % quantile", when, high, "s1")]
    if timeout:
        lines.append(Line(f"timeout {seconds(timeout)}", when[[0, -1]], np.full(2, timeout), "chosen"))
    changes = evidence.drift.changes if evidence and evidence.drift else ()
    title = f"{counted(len(changes), 'change')} over time" if changes else "No change over time"
    y = view.time_axis("latency", float(positive.min()) / 1.3, float(positive.max()) * 1.3)
    return Chart(title, x, y, lines, marks=_change_marks(changes, x))


def _change_marks(changes: Sequence[Change], x: Axis) -> list[Mark]:
    dated = [(change.kind, change.at.astype("datetime64[us]").astype(float) / 1e6) for change in changes if change.at]
    return [Mark(kind, float(np.clip(at, x.low, x.high)), None, "change") for kind, at in dated]


def drift_chart(probes: ProbeTable, drift: Drift) -> Chart:
    """Latencies over time, change points, the timeout of each window and the tracked one."""
    assert probes.submitted is not None
    timed = np.isfinite(probes.submitted) & (probes.latency > 0)
    when, latency, lines = probes.submitted[timed], probes.latency[timed], []
    for status, style in ((COMPLETED, "s0"), (FAILED, "s3"), (CENSORED, "s1")):
        rows = np.flatnonzero(timed & (probes.status == status))
        rows = rows[:: max(1, rows.size // SHOWN_PROBES)]
        if rows.size:
            lines.append(Line(STATUSES[status], probes.submitted[rows], probes.latency[rows], style, dots="alone"))
    for window in (window for window in drift.windows if window.timeout is not None):
        ends = np.clip([window.start, window.end], when.min(), when.max())
        lines.append(Line("timeout by window", ends, np.full(2, window.timeout), "log"))
    if drift.backtest is not None:
        lines.append(Line("tracked timeout", drift.backtest.when, drift.backtest.tracked, "s2"))
    x = Axis("submitted (UTC)", float(when.min()), float(when.max()), "date")
    y = Axis("latency", float(latency.min()), float(latency.max()), "time", log=True)
    found = counted(len(drift.changes.changes), "change") if drift.changes.changes else "No change"
    title = f"{found} in {counted(drift.probes, 'probe')}"
    title = f"{', '.join(drift.key.values())}: {title}" if drift.key else title
    return Chart(title, x, y, lines, marks=_change_marks(drift.changes.changes, x))


CHARTS: dict[str, Callable[[View], Chart | None]] = {
    "expected-duration": duration_chart,
    "frontier": frontier_chart,
    "jobs-tail": tail_chart,
    "cdf": cdf_chart,
    "qq": qq_chart,
    "ratio": ratio_chart,
    "time": time_chart,
    "strategies": strategies_chart,
}
"""The figures of an analysis by their names; None where there is nothing to draw."""
