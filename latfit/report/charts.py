"""What the figures show, as data: the page draws it as SVG, `latfit.plots` with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from latfit.analysis import Analysis
from latfit.curve import Counts
from latfit.decision import Options, prepare
from latfit.decision.decide import survey_case
from latfit.decision.schedule import choose_schedule
from latfit.errors import RestartError
from latfit.fitting import fitted_law, qq
from latfit.histograms import Guarantee
from latfit.laws import Empirical, Law
from latfit.numbers import Floats
from latfit.report.layout import LONGEST_KEY, in_one_unit, shortened
from latfit.resample import interval, resampled_curves
from latfit.restart import compare_policies, completion_cdf, expected_duration, submissions
from latfit.restart.compare import Comparison
from latfit.restart.completion import simulate
from latfit.restart.derived import coarse
from latfit.table import COMPLETED, ProbeTable
from latfit.units import seconds, times_in_words

SIMULATED_JOBS = 50_000  # where failures leave no formula for F_J
STRATEGY_STEPS = 1000  # steps of the law on which strategies are compared
SHOWN_LAWS = 3
SHOWN_CELLS = 3  # groups in the picture of why they cannot have one timeout
BAND_RESAMPLES = 99
RISKS = (0, 5, 10, 15, 20, 30, 40, 50, 75, 100)  # per cent
DEFAULT_RISK = 30


class Axis(NamedTuple):
    """One axis: its label, its ends, what its values are, and whether it is logarithmic."""

    label: str
    low: float
    high: float
    kind: Literal["time", "share", "date", "count"]
    log: bool = False


class Line(NamedTuple):
    """A line through points, named in the legend; `style` is a colour and dash of the palette, or `log`, `limit`…"""

    name: str
    x: Floats
    y: Floats
    style: str
    steps: bool = False
    dots: bool = False


class Band(NamedTuple):
    """An area between two lines."""

    name: str
    x: Floats
    low: Floats
    high: Floats
    style: str


class Mark(NamedTuple):
    """A point, or an upright line where `y` is None; `end` makes it a bar from x to there."""

    name: str
    x: float
    y: float | None
    style: str
    end: float | None = None


class Chart(NamedTuple):
    """A figure: two axes, and what is drawn on them. `label` tells those who cannot see it what it shows."""

    title: str
    label: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    bands: tuple[Band, ...] = ()
    marks: tuple[Mark, ...] = ()


class Strategies(NamedTuple):
    """Strategies beside the recommended timeout, and the law (thinned where it is `coarse`) of the comparison."""

    comparison: Comparison
    law: Law
    cost: float
    coarse: bool


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
    def strategies(self) -> Strategies | None:
        chosen = self.result.timeout
        if chosen.verdict != "finite" or not chosen.timeout or "not-identified" in self.result.decision.codes:
            return None
        thinned = self.law if self.law.failures.times.size else coarse(self.law, STRATEGY_STEPS)
        try:
            comparison = compare_policies(thinned, [f"timeout(t={chosen.timeout!r})"], cost=chosen.cost)
        except RestartError:
            return None
        return Strategies(comparison, thinned, chosen.cost, thinned is not self.law)

    @cached_property
    def risks(self) -> list[dict[str, Any]]:
        """What to set at each accepted loss; empty where that does not lead to the decision, by other options."""
        probes, retry, cost = self.result.seen, self.result.timeout.retry, self.result.timeout.cost
        if probes is None or "not-identified" in self.result.decision.codes:
            return []
        case = prepare(probes, Options(cutoff=self.cutoff, cost=cost))
        _, _, strata, pi = survey_case(case, cost)
        rows, decided = [], retry.timeouts if retry else None
        for percent in RISKS:
            choice = choose_schedule(strata, risk=percent / 100, suspicion=pi, shortest=case.sample.resolution)
            other = choice.retry if choice else None
            says = "Wait: no schedule gains enough within this loss."
            if other is not None:
                mean, waiting, worst = in_one_unit(other.expected_duration, other.waiting, other.worst_duration)
                says = f"Resubmit after {times_in_words(other.timeouts)}, then wait: {mean} a job instead of "
                says += f"{waiting} if retries are independent, {worst} at worst."
            same = (other.timeouts if other else None) == decided
            rows.append({"risk": f"{percent} %", "says": says, "chosen": same})
        nearest = sorted(zip(RISKS, rows, strict=True), key=lambda row: abs(row[0] - DEFAULT_RISK))
        chosen = next((row for _, row in nearest if row["chosen"]), None)
        return [{**row, "chosen": row is chosen} for row in rows] if chosen else []

    @cached_property
    def band(self) -> tuple[Floats, Floats]:
        """The 95 % interval of E_J at `times`, by resampling."""
        drawn = []
        for curves in resampled_curves(
            Counts.of_sample(self.sample), self.times.tolist(), np.random.default_rng(0), count=BAND_RESAMPLES
        ):
            drawn.append(np.stack([curves.E_J_at(np.full(len(curves.F), t), self.best.cost) for t in self.times]))
        low, high = interval(np.concatenate(drawn, axis=1))
        return low, high

    @cached_property
    def timeouts(self) -> Floats:
        """The times of lines, and jumps of the law: E_J is least at one."""
        jumps = self.law.jumps[self.law.jumps > 0]
        return np.union1d(self.times, jumps[:: max(1, jumps.size // (5 * self.points))])

    @cached_property
    def smallest_share(self) -> float:
        return max(1e-5, 0.3 / self.sample.n)

    def time_axis(self, label: str, low: float | None = None, high: float | None = None) -> Axis:
        return Axis(label, low or self.low, high or self.high, "time", log=True)


def jobs_done(law: Empirical, t: Floats, timeout: float, cost: float) -> Floats:
    """F_J(t): the share of jobs done by t when attempts are cancelled at `timeout` and submitted again.

    Where attempts fail visibly it has no closed form: it is that of 50 000 simulated jobs.

    >>> import latfit
    >>> law = Empirical.of(latfit.LatencySample.of([1.0, 2.0, 4.0, 8.0]))
    >>> jobs_done(law, np.array([1.0, 3.0, 4.0]), 2.0, 0.0).round(9).tolist()
    [0.25, 0.625, 0.75]
    """
    if not law.failures.times.size:
        return completion_cdf(law, t, timeout, cost=cost)
    jobs = np.sort(simulate(law, timeout, SIMULATED_JOBS, np.random.default_rng(0), cost=cost))
    return np.searchsorted(jobs, t, side="right") / SIMULATED_JOBS


def windows_of_time(seen: ProbeTable | None) -> tuple[Floats, Floats, Floats]:
    """The middles of windows, median and 95 % quantile of completions in each; empty without times or completions."""
    nothing = np.empty(0), np.empty(0), np.empty(0)
    if seen is None or seen.submitted is None:
        return nothing
    timed = np.isfinite(seen.submitted) & (seen.status == COMPLETED)
    when, latency = seen.submitted[timed], seen.latency[timed]
    if when.size < 10 or np.ptp(when) == 0:
        return nothing
    count = int(min(60, max(4, when.size // 30)))
    edges = np.linspace(when.min(), when.max(), count + 1)
    window = np.clip(np.searchsorted(edges, when, side="right") - 1, 0, count - 1)
    parts = [latency[window == i] for i in range(count)]
    levels = np.array([np.quantile(part, [0.5, 0.95]) if part.size >= 5 else [np.nan] * 2 for part in parts])
    return (edges[:-1] + edges[1:]) / 2, levels[:, 0], levels[:, 1]


def duration_chart(view: View) -> Chart | None:
    """E_J(t) with and without outliers, the optimum, its interval, the flat window and the asymptote.

    Glatard et al. 2006, Figure 11: with outliers E_J tends to E_R + ρ/(1−ρ)·t.
    """
    law, best, t = view.law, view.best, view.timeouts
    E = expected_duration(law, t, cost=best.cost)
    least = float(E[np.isfinite(E)].min(initial=math.inf))
    if not 0 < least < math.inf:
        return None
    top = least * min(4.0, max(2.2, 1.05 * float(E[-1]) / least if np.isfinite(E[-1]) else 2.2))
    lines = [Line("with outliers" if law.rho > 0 else "expected duration", t, E, "s0")]
    if law.rho > 0 and not view.sample.failed.total:
        returned = law.conditional()
        slope, E_R = law.rho / (1 - law.rho), float(returned.partial_moment(1, np.inf))
        lines.append(Line("without outliers", t, expected_duration(returned, t, cost=best.cost), "s1"))
        lines.append(Line("asymptote E_R + ρt/(1−ρ)", t, E_R + slope * (t + best.cost), "limit"))
    low, high = view.band
    bands, marks = [Band("95 % interval", view.times, low, np.minimum(high, 2 * top), "interval")], []
    if best.verdict == "finite" and best.timeout is not None and best.expected_duration is not None:
        if best.within_5pct is not None:
            ends = np.clip(np.array(best.within_5pct), view.low, view.high)
            bands.append(Band("within 5 %", ends, np.full(2, 0.9 * least), np.full(2, top), "window"))
        marks.append(Mark(f"optimum {seconds(best.timeout)}", best.timeout, best.expected_duration, "dot"))
    if view.result.timeout.retry is not None:
        marks += [Mark(f"resubmit {seconds(t)}", t, None, "set") for t in view.result.timeout.retry.timeouts]
    if (now := view.result.decision.current) is not None:
        marks.append(Mark(f"now {seconds(now.timeout)}", now.timeout, None, "change"))
    mean = least if best.expected_duration is None else best.expected_duration
    lowest = (
        f"lowest mean, {seconds(mean)}, at {seconds(best.timeout)}" if best.timeout else f"lowest mean {seconds(least)}"
    )
    title = f"If attempts were independent: {lowest}"
    if view.result.timeout.retry is not None and view.result.timeout.verdict == "finite" and best.at_cutoff is not None:
        title = f"A timeout of {seconds(best.timeout)} takes {seconds(mean)}, waiting {seconds(best.at_cutoff)}"
    label = f"Mean time of a job against the timeout; {lowest}"
    y = Axis("mean time of a job", 0.85 * least, top, "time")
    return Chart(title, label, view.time_axis("timeout"), y, tuple(lines), tuple(bands), tuple(marks))


def reason_chart(view: View) -> Chart:
    """Why the formula does not decide: the latencies of the groups that a retry stays in, or those over time."""
    evidence, probes = view.result.decision.evidence, view.result.seen
    mixing = evidence.mixing if evidence else None
    over_time = time_chart(view)
    kinds = {world.name: world.kind for world in evidence.worlds} if evidence else {}
    timed = kinds.get(evidence.binding or "" if evidence else "") in ("time", "spell")
    if probes is None or mixing is None or (timed and over_time is not None):
        return over_time or cdf_chart(view)
    column, t = mixing.column, view.times
    sizes = np.bincount(column.codes, minlength=len(column.labels))
    shown = [int(code) for code in np.argsort(-sizes)[: 4 * SHOWN_CELLS] if sizes[code]]
    parts = {code: np.sort(probes.latency[(column.codes == code) & (probes.status == COMPLETED)]) for code in shown}
    parts = {code: part for code, part in parts.items() if part.size}
    ranked = sorted(parts, key=lambda code: float(np.median(parts[code])))
    ends = ranked if len(ranked) <= SHOWN_CELLS else [ranked[0], ranked[len(ranked) // 2], ranked[-1]]
    lines = [Line("all", t, view.law.cdf(t), "log", steps=True)]
    for at, code in enumerate(ends):
        share = np.searchsorted(parts[code], t, side="right") / sizes[code]
        lines.append(Line(shortened(str(column.labels[code]), LONGEST_KEY), t, share, f"s{at}"))
    fast, slow = (seconds(float(np.median(parts[code]))) for code in (ends[0], ends[-1]))
    title = f"Latencies differ by {column.name}: medians from {fast} to {slow}"
    label = f"Share returned against time, by {column.name}"
    y = Axis("share returned", 0.0, 1.0, "share")
    return Chart(shortened(title, 90), label, view.time_axis("latency"), y, tuple(lines))


def bounds_chart(guarantee: Guarantee) -> Chart:
    """What a histogram says for certain of the mean at each edge of its buckets."""
    known, best = guarantee.bounds, guarantee.optimum
    shown = np.isfinite(known.high) & (known.high <= 6 * max(guarantee.guaranteed, 1e-12))
    x, low, high = known.edges[shown], known.low[shown], known.high[shown]
    span = (float(x[0]), float(x[-1])) if x.size else (1.0, 2.0)
    top = 1.1 * float(high.max()) if x.size else 1.0
    lines = (Line("at most", x, high, "s0", dots=True), Line("at least", x, low, "s1", dots=True))
    marks = (Mark(f"timeout {seconds(best.timeout)}", best.timeout, None, "set"),) if best and best.timeout else ()
    title = f"The mean is at most {seconds(guarantee.guaranteed)}, whatever happened inside the buckets"
    axis = Axis("timeout", span[0], max(span[1], 1.01 * span[0]), "time", log=True)
    y = Axis("mean time of a job", 0.0, top, "time")
    return Chart(title, title, axis, y, lines, (Band("possible", x, low, high, "interval"),), marks)


def frontier_chart(view: View) -> Chart | None:
    """What speed costs: E_J against the submissions per job, one point for each timeout."""
    law, best = view.law, view.best
    t = view.timeouts[law.cdf(view.timeouts) > 0]
    E, N = expected_duration(law, t, cost=best.cost), submissions(law, t)
    least = float(E.min(initial=math.inf))
    if not 0 < least < math.inf:
        return None
    shown = 2.5 * least >= E
    named = [(best.timeout, "dot", "optimum")] if best.verdict == "finite" and best.timeout else []
    marks = []
    for at, style, name in [*named, (view.cutoff, "square", "at the cutoff,")]:
        E_at = float(expected_duration(law, at, cost=best.cost))
        if E_at <= 2.5 * least:
            marks.append(Mark(f"{name} {seconds(at)}", float(submissions(law, at)), E_at, style))
    x = Axis("submissions per job", 1.0, 1.02 * float(N[shown].max()), "count")
    y = Axis("expected duration", 0.95 * least, 1.02 * float(E[shown].max()), "time")
    label = f"Expected duration against submissions per job; the least is {seconds(least)}"
    title = (
        f"The lowest mean costs {best.submissions:.2f} submissions a job" if best.submissions else "Speed against load"
    )
    return Chart(title, label, x, y, (Line("", N[shown], E[shown], "s0"),), marks=tuple(marks))


def completion_chart(view: View) -> Chart:
    """F_J with the recommended timeout against F_R without one; Glatard et al. 2006, Figures 1 and 2."""
    t, best = view.times, view.best
    lines = [Line("one submission (F_R)", t, view.law.cdf(t), "log", steps=True), *_resubmitted(view, "F_J")]
    marks = [Mark("", best.timeout, None, "chosen")] if len(lines) > 1 and best.timeout else []
    y = Axis("share of jobs done", 0.0, 1.0, "share")
    label = "Share of jobs done against time, with and without resubmission"
    return Chart(_done_title(view), label, view.time_axis("time since submission"), y, tuple(lines), marks=tuple(marks))


def _done_title(view: View) -> str:
    best = view.best
    last, waiting = (each.quantiles.get("0.95") if each else None for each in (best.figures, best.figures_at_cutoff))
    if last is None or waiting is None or best.verdict != "finite":
        return "Jobs done"
    return f"95 % of jobs are done within {seconds(last)} instead of {seconds(waiting)}"


def _resubmitted(view: View, symbol: str) -> list[Line]:
    best = view.best
    if best.verdict != "finite" or not best.timeout:
        return []
    done = jobs_done(view.law, view.times, best.timeout, best.cost)
    how = ", simulated: attempts fail" if view.law.failures.times.size else ""
    name = f"resubmitted after {seconds(best.timeout)} ({symbol}{how})"
    return [Line(name, view.times, done if symbol == "F_J" else _above(view, 1.0 - done), "s0")]


def _above(view: View, share: Floats) -> Floats:
    return np.where(share >= view.smallest_share, share, np.nan)


def tail_chart(view: View) -> Chart:
    """The share of jobs not yet done on log axes, with and without resubmission."""
    t = view.times
    lines = [Line("one submission (1 − F_R)", t, _above(view, 1.0 - view.law.cdf(t)), "log", steps=True)]
    lines += _resubmitted(view, "1 − F_J")
    return _tails(view, _done_title(view), lines, "Share of jobs not yet done against time, logarithmic")


def strategies_chart(view: View) -> Chart | None:
    """The share of jobs not yet done under the recommended timeout and under other strategies, on log axes."""
    if view.strategies is None:
        return None
    first, *others = view.strategies.comparison.rows
    lines: list[Line] = []
    for row in [first, *sorted(others, key=lambda row: row.role != "same")][:4]:
        policy = row.outcome.policy
        plan = policy.plan(view.strategies.law, view.strategies.cost)
        with suppress(RestartError):  # visible failures, on no common clock
            left = np.array([plan.survival(float(t)) for t in view.times])
            lines.append(Line(policy.sentence(seconds), view.times, _above(view, left), f"s{len(lines)}"))
    label = "Share of jobs not yet done against time under each strategy, logarithmic"
    return _tails(view, "Strategies", lines, label) if lines else None


def _tails(view: View, title: str, lines: Sequence[Line], label: str) -> Chart:
    y = Axis("share of jobs not yet done", view.smallest_share, 1.0, "share", log=True)
    return Chart(title, label, view.time_axis("time since submission"), y, tuple(lines))


def _log_and_fits(view: View, share: Literal["cdf", "still_out"]) -> list[Line]:
    t = view.times
    fits = [Line(name, t, getattr(law, share)(t), f"s{i}") for i, (name, law) in enumerate(view.fitted, 1)]
    return [Line("log", t, getattr(view.law, share)(t), "log", steps=True), *fits]


def cdf_chart(view: View) -> Chart:
    """The empirical cdf and the best fitted laws, over the logarithm of time."""
    returned = 1 - view.law.rho
    lines = [*_log_and_fits(view, "cdf"), Line("", view.times[[0, -1]], np.full(2, returned), "limit")]
    label = f"Share of probes that returned against time; {100 * returned:.1f} % within {seconds(view.high)}"
    y = Axis("share returned", 0.0, 1.0, "share")
    median = seconds(float(view.sample.completed.quantiles([0.5])[0]))
    title = f"{100 * returned:.3g} % return within {seconds(view.high)}, half within {median}"
    return Chart(title, label, view.time_axis("latency"), y, tuple(lines))


def survival_chart(view: View) -> Chart:
    """The share still out on log axes, where tails show; its floor is the outlier ratio."""
    assert view.result.decision.outliers is not None
    lines, ratio = _log_and_fits(view, "still_out"), view.result.decision.outliers.estimate
    if ratio > 0:
        lines.append(Line("outlier ratio", view.times[[0, -1]], np.full(2, ratio), "limit"))
    y = Axis("share still out", max(1e-6, 0.3 / view.sample.n, 0.4 * ratio), 1.0, "share", log=True)
    label = "Share of probes still out against time, logarithmic"
    title = f"{100 * ratio:.3g} % never return" if ratio > 0 else "All return; the tail"
    return Chart(title, label, view.time_axis("latency"), y, tuple(lines))


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
        lines.append(Line(fit.name, model[thin], observed[thin], f"s{i}", dots=True))
    x, y = view.time_axis("law", low / 3, high * 3), view.time_axis("log", low, high)
    return Chart("Laws on the diagonal fit", "Quantiles of the log against those of the laws", x, y, tuple(lines))


def ratio_chart(view: View) -> Chart | None:
    """The outlier ratio as a function of the cutoff, with its interval."""
    rows = [row for row in view.result.by_cutoff if row.cutoff > 0]
    if not rows:
        return None
    t = np.array([row.cutoff for row in rows])
    ratio, low, high = (np.array([getattr(row, name) for row in rows]) for name in ("estimate", "low", "high"))
    y = Axis("still out", 0.0, min(1.0, 1.05 * float(high.max())) or 1e-3, "share")
    label = f"Share still out against the cutoff, from {100 * ratio[0]:.3g} % to {100 * ratio[-1]:.3g} %"
    end = max(float(t.max()), view.cutoff, float(t.min()) * 1.01)
    lines, bands = (Line("still out", t, ratio, "s0", dots=True),), (Band("95 % interval", t, low, high, "interval"),)
    marks = (Mark("cutoff", view.cutoff, None, "change"),)
    title = f"{100 * ratio[-1]:.3g} % are still out at {seconds(float(t[-1]))}"
    return Chart(title, label, view.time_axis("cutoff", float(t.min()), end), y, lines, bands, marks)


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
    moments = [(change.kind, change.at.astype("datetime64[us]")) for change in changes if change.at is not None]
    places = [(kind, float(np.clip(at.astype(np.int64) / 1e6, x.low, x.high))) for kind, at in moments]
    marks = [Mark(kind, place, None, "change") for kind, place in places]
    label = f"Latency over time: median and 95 % quantile; changes found: {len(changes)}"
    y = view.time_axis("latency", float(positive.min()) / 1.3, float(positive.max()) * 1.3)
    title = f"{len(changes)} change{'s' * (len(changes) != 1)} over time" if changes else "No change over time"
    return Chart(title, label, x, y, tuple(lines), marks=tuple(marks))


CHARTS: dict[str, Callable[[View], Chart | None]] = {
    "expected-duration": duration_chart,
    "frontier": frontier_chart,
    "completion": completion_chart,
    "jobs-tail": tail_chart,
    "cdf": cdf_chart,
    "survival": survival_chart,
    "qq": qq_chart,
    "ratio": ratio_chart,
    "time": time_chart,
    "strategies": strategies_chart,
}
"""The figures of an analysis by their names; None where there is nothing to draw."""
