"""The report as one HTML page, and values as notebooks show them.

The page has no file beside it and makes no request. What came from the log is escaped by the template, or lies in a
block of JSON in which no tag can end; the Content-Security-Policy allows the page's own script and style by their
hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.analysis import Analysis
from latfit.curve import MIN_COMPLETIONS
from latfit.errors import printable
from latfit.laws import Empirical
from latfit.numbers import Floats, Ints, finite
from latfit.report.charts import (
    STRATEGY_STEPS,
    Chart,
    Strategies,
    View,
    cdf_chart,
    duration_chart,
    ratio_chart,
    strategies_chart,
    strategies_of,
    tail_chart,
    time_chart,
)
from latfit.report.layout import Number, Section, between, kept_together, shortened
from latfit.report.sections import advice, evidence_checks, fair_duration, groups_section, reads_as_faster, sections
from latfit.report.svg import LINE_POINTS, drawn
from latfit.restart.evaluate import PolicyOutcome
from latfit.sample import LatencySample
from latfit.settings import TOOLS, Plan
from latfit.units import seconds

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_BYTES = 150_000
SHOWN_GROUPS = (200, 100, 50, 20, 5)  # numbers of groups to try until the page is small enough
KEPT_TIMES = 800  # of the law; with five sums each they are 43 kB of the page
SHOWN_TOOLS = ("timeout", "requests", "tenacity", "aiohttp", "envoy", "nginx", "slurm")
UNDONE_SHARE = 0.001  # of the jobs, after the last attempt
MOST_SHOWN_ATTEMPTS = 20
NOTEBOOK_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
STRATEGY_ROLES = {"given": "this decision", "reference": "best timeout", "same": "same load", "free": "any load"}


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        """Every text that a template writes: no control characters, units kept beside their numbers, not too long."""
        return value if isinstance(value, Markup) else shortened(kept_together(printable(str(value))), 600)

    loader = PackageLoader("latfit.report")
    templates = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, finalize=shown, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["cut"] = lambda text, most: shortened(printable(str(text)), most)
    return templates


def to_html(result: Analysis) -> str:
    """The report as a page of at most 150 kB, whatever the log.

    >>> import latfit
    >>> page = to_html(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    >>> page.startswith("<!doctype html>"), len(page.encode()) < 150_000
    (True, True)
    """
    from markupsafe import Markup

    folder = files("latfit.report") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("model.js", "page.js"))
    content = {
        **_content(result),
        "style": Markup(style),
        "script": Markup(script),
        "script_hash": _sha256(script),
        "style_hash": _sha256(style),
        "version": version("latfit"),
    }
    template = _templates().get_template("page.html")
    for most in SHOWN_GROUPS:
        page = template.render(content, groups=groups_section(result, most) if result.groups else None)
        if len(page.encode()) < MOST_BYTES:
            break
    return page


def _sha256(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _content(result: Analysis) -> dict[str, Any]:
    """What the template shows; figures only where enough probes completed."""
    sample, decision = result.decision.sample, result.decision
    enough = sample is not None and sample.completed.total >= MIN_COMPLETIONS
    view = View(result, LINE_POINTS) if enough else None
    curve = duration_chart(view) if view else None
    strategies = strategies_of(result, view.law) if view else None
    charts = [chart(view) for chart in (cdf_chart, tail_chart, ratio_chart, time_chart)] if view else []
    return {
        "result": result,
        "advice": advice(result),
        "tiles": _tiles(result),
        "needs_cost": "not-identified" in (*decision.codes, *result.timeout.withheld),
        "evidence": Section(columns=("question", "found", "so"), rows=tuple(evidence_checks(result))),
        "curve": drawn(replace(curve, lines=curve.lines[:1]), with_legend=False) if curve else None,
        "model": _model(view, curve) if view and curve else {},
        "formula_stands": result.timeout.verdict != "withheld" and result.timeout.basis != "replay",
        "fails": view is not None and view.law.failures.times.size > 0,
        "strategies": _strategies(strategies) if strategies else None,
        "strategies_chart": _drawn(strategies_chart(view, strategies)) if view and strategies else None,
        "sections": {section.title: section for section in sections(result)},
        "charts": [(chart.title, drawn(chart)) for chart in charts if chart and len(chart.lines[0].x) > 1],
        "timed": bool(charts) and charts[-1] is not None,
        "snippets": _snippets(result, view.law) if view else None,
        "tools": len(TOOLS),
        "min_completions": MIN_COMPLETIONS,
    }


def _drawn(chart: Chart | None) -> dict[str, Any] | None:
    return drawn(chart) if chart and len(chart.lines) > 1 else None


def _tiles(result: Analysis) -> list[tuple[str, str]]:
    """The figures that matter, to be shown large: a number and what it is."""
    chosen, bounds = result.timeout, result.timeout.intervals
    if chosen.verdict != "finite" or chosen.basis == "replay" or "not-identified" in result.decision.codes:
        return []
    tiles = []
    earlier = chosen.timeout != chosen.cutoff
    if chosen.expected_duration is not None:
        interval = f" ({between(*bounds.expected_duration)})" if bounds else ""
        instead = f" instead of {seconds(chosen.at_cutoff)} at the cutoff" if earlier and chosen.at_cutoff else ""
        tiles.append((seconds(fair_duration(chosen)), f"expected duration{interval}{instead}"))
    if chosen.speed_up_vs_cutoff is not None and reads_as_faster(chosen.speed_up_vs_cutoff):
        interval = f" ({bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})" if bounds else ""
        tiles.append((f"{chosen.speed_up_vs_cutoff:.3g} ×", f"faster than waiting until the cutoff{interval}"))
    if chosen.submissions is not None:
        tiles.append((f"{chosen.submissions:.2f}", "submissions per job"))
    last, end = (each.quantiles.get("0.99") if each else None for each in (chosen.figures, chosen.figures_at_cutoff))
    if last is not None:
        instead = f" instead of {seconds(end)} at the cutoff" if earlier and end is not None else ""
        tiles.append((seconds(last), f"99 % of jobs done within it{instead}"))
    return tiles


def _strategies(strategies: Strategies) -> Section:
    """Other strategies beside the recommended timeout, at the same load and at any."""
    comparison = strategies.comparison
    decision = comparison.decision(time=seconds).replace(comparison.reference.policy.spec(4), "the decision above")
    notes = [
        "All of them assume independent attempts. Job-seconds are the time that all copies of a job occupy the system."
    ]
    if strategies.coarse:
        notes[0] += f" Computed on about {STRATEGY_STEPS} steps that stand for all latencies, so that figures may be "
        notes[0] += "off by 0.5 %."
    columns = ("strategy", "load", "expected", "50 % within", "95 %", "99 %", "submissions", "job-seconds")
    rows = [_strategy_row(STRATEGY_ROLES[row.role], row.outcome) for row in comparison.rows]
    rows = rows if len(rows) > 1 else []
    return Section("Strategies compared", (decision, *notes, *comparison.notes), columns, tuple(rows))


def _strategy_row(role: str, outcome: PolicyOutcome) -> tuple[str, ...]:
    quantiles = (outcome.quantiles.get(q) for q in ("0.5", "0.95", "0.99"))
    times = (outcome.expected_duration, *quantiles, outcome.job_seconds)
    expected, *levels, occupied = (Number("" if time is None else seconds(time), time) for time in times)
    count = outcome.submissions
    many = Number("" if count is None else f"{count:.2f}", count)
    return (outcome.policy.sentence(seconds), role, expected, *levels, many, occupied)


def _snippets(result: Analysis, law: Empirical) -> dict[str, Any] | None:
    """What to paste into a few tools: None where there is nothing to set."""
    chosen = result.timeout
    if chosen.verdict != "finite" or not chosen.timeout or "not-identified" in result.decision.codes:
        return None
    missed = 1.0 - float(law.cdf(chosen.timeout))
    if missed >= 1:
        return None
    needed = 2 if missed <= 0 else max(2, math.ceil(math.log(UNDONE_SHARE) / math.log(missed) - 1e-9))
    attempts = min(needed, MOST_SHOWN_ATTEMPTS)
    queue = result.seen is not None and result.seen.facts.queue
    snippets = []
    for name in SHOWN_TOOLS:
        if name not in TOOLS or (queue and name != "slurm"):
            continue
        tool = TOOLS[name]
        timeout = tool.rounded(chosen.timeout)
        if timeout <= tool.longest:
            plan = Plan(timeout, min(attempts, tool.cap or attempts), chosen.cost, law.failures.times.size > 0)
            snippets.append((tool, tool.snippet(plan).splitlines()))
    return {
        "timeout": seconds(chosen.timeout),
        "attempts": attempts,
        "undone": f"{100 * missed**attempts:.2g} %",
        "tools": snippets,
    }


def _model(view: View, curve: Chart) -> dict[str, Any]:
    """What the script of the page computes with."""
    law, best, result = view.law, view.best, view.result
    sums, steps = kept_sums(law, (best.timeout, best.exact_timeout, view.cutoff))
    least = max(float(law.jumps[np.searchsorted(law.completed, MIN_COMPLETIONS)]), law.resolution, view.low)
    replay = result.decision.evidence.replay if result.decision.evidence else None
    replayed = [(at.timeout, at.expected_duration) for at in replay.curve] if replay else []
    deadline = best.figures.quantiles.get("0.95") if best.figures else None
    encoded = {name: base64.b64encode(values.astype("<f8").tobytes()).decode() for name, values in sums.items()}
    return {
        "law": {**encoded, "steps": steps},
        "span": [view.low, view.high],
        "first": int(np.searchsorted(sums["t"], least)),
        "timeout": finite(best.timeout),
        "cost": best.cost,
        "cutoff": view.cutoff,
        "deadline": deadline or math.sqrt(view.low * view.high),
        "most_cost": max(2.0 * float(law.jumps[int(0.9 * law.jumps.size)]), 4.0 * best.cost, 1e-9),
        "replay": [[t, E] for t, E in replayed if np.isfinite(t) and np.isfinite(E)],
    }


def kept_sums(
    law: Empirical, always: tuple[float | None, ...] = (), *, most: int = KEPT_TIMES
) -> tuple[dict[str, Floats], bool]:
    """The cumulative sums of a law at about `most` times, and whether these are all the times there are.

    `F` is the share completed by each time `t`, `M` their times summed; `G` and `H` the same of visible failures, if
    there are any. Jumps among the times in `always` are kept.

    >>> sums, steps = kept_sums(Empirical.of(LatencySample.of([1, 2, 2, 5])))
    >>> sums["F"].tolist(), steps
    ([0.25, 0.75, 1.0], True)
    """
    t = np.union1d(law.jumps, law.failures.times)
    steps = t.size <= most
    if not steps:
        t = t[_thinned(t, law, always, most)]
    sums = {"t": t, "F": law.cdf(t), "M": law.partial_moment(1, t)}
    if law.failures.times.size:
        sums |= {"G": law.failed(t), "H": law.failed_moment(1, t)}
    return sums, steps


def _thinned(times: Floats, law: Empirical, always: tuple[float | None, ...], most: int) -> Ints:
    """Which times to keep: even levels of F̃ and its whole upper tail, times even in log t, and those in `always`."""
    share = (law.cdf(times) + law.failed(times)) / (law.completions.total + law.failures.total)
    levels = np.concatenate([np.linspace(0, 1, most // 2), 1 - np.geomspace(0.02, 1e-7, most // 8)])
    by_level = np.searchsorted(share, np.minimum(levels, share[-1]))
    positive = max(float(times[times > 0][0]), float(times[-1]) * 1e-9)
    by_time = np.searchsorted(times, np.geomspace(positive, times[-1] * (1 - 1e-12), most // 4))
    wanted = np.searchsorted(times, [float(t) for t in always if t is not None and np.isfinite(t)])
    ends = [times.size - 1, *range(min(8, times.size))]
    every = np.concatenate([by_level, by_time, wanted, ends]).astype(np.int64)
    return np.unique(np.clip(every, 0, times.size - 1))


def to_html_fragment(result: Analysis) -> str:
    """An analysis as sentences, a table and details, for a notebook.

    >>> import latfit
    >>> to_html_fragment(latfit.analyze(latfit.example_log(), resamples=0, test=False))[:40]
    '<div><b>Decision</b><p>Resubmit after 35'
    """
    return _templates().get_template("notebook.html").render(sections=sections(result)).strip()


def sample_fragment(sample: LatencySample) -> str:
    """A sample as a line of counts and the quantiles of those that completed, for a notebook.

    >>> sample_fragment(LatencySample.of([1.0, 2.0, 3.0], lost=1)).count("<td>")
    6
    """
    values = sample.completed.quantiles(NOTEBOOK_LEVELS).tolist() if sample.completed.total else []
    rows = (tuple(map(seconds, values)),) if values else ()
    shown = Section("", (repr(sample)[1:-1],), tuple(f"{100 * level:g} %" for level in NOTEBOOK_LEVELS), rows)
    return _templates().get_template("notebook.html").render(sections=[shown]).strip()
