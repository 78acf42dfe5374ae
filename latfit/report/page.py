"""The report as one HTML page, and values as notebooks show them.

The page has no file beside it and makes no request. What came from the log is escaped by the template, or lies in a
block of JSON in which no tag can end; the Content-Security-Policy allows the page's own script and style by their
hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.analysis import Analysis
from latfit.curve import MIN_COMPLETIONS
from latfit.errors import printable
from latfit.laws import Empirical
from latfit.numbers import Floats, finite
from latfit.report.answers import compared_table
from latfit.report.charts import CHARTS, STRATEGY_STEPS, Strategies, View, strategies_chart
from latfit.report.layout import Section, kept_together, shortened
from latfit.report.sections import advice, evidence_checks, groups_section, sections
from latfit.report.svg import drawn
from latfit.sample import LatencySample
from latfit.settings import TOOLS, Plan
from latfit.units import seconds

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_PAGE_BYTES = 150_000
SHOWN_GROUPS = (200, 100, 50, 20, 5)  # numbers of groups to try until the page is small enough
KEPT_TIMES = 800  # of the law; with five sums each they are 43 kB of the page
CURVE_POINTS = 160
SHOWN_TOOLS = ("timeout", "requests", "tenacity", "aiohttp", "envoy", "nginx", "slurm")
NOTEBOOK_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return value if isinstance(value, Markup) else shortened(kept_together(printable(str(value))), 600)

    how: dict[str, Any] = {"undefined": StrictUndefined, "finalize": shown, "trim_blocks": True, "lstrip_blocks": True}
    templates = Environment(loader=PackageLoader("latfit.report"), autoescape=True, **how)
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
        if len(page.encode()) < MAX_PAGE_BYTES:
            break
    return page


def _sha256(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _content(result: Analysis) -> dict[str, Any]:
    sample, codes = result.decision.sample, (*result.decision.codes, *result.timeout.withheld)
    content: dict[str, Any] = {
        "result": result,
        "advice": advice(result),
        "needs_cost": "not-identified" in codes,
        "evidence": Section(columns=("question", "found", "so"), rows=tuple(evidence_checks(result))),
        "sections": {section.title: section for section in sections(result, full=True)},
        "tools": len(TOOLS),
        "min_completions": MIN_COMPLETIONS,
        "view": None,
    }
    if sample is None or sample.completed.total < MIN_COMPLETIONS:
        return content
    view = View(result, CURVE_POINTS)
    curve, strategies = CHARTS["expected-duration"](view), view.strategies
    tails = strategies_chart(view) if strategies else None
    charts = [CHARTS[name](view) for name in ("cdf", "jobs-tail", "ratio", "time")]
    return content | {
        "view": view,
        "curve": drawn(curve._replace(lines=curve.lines[:1]), with_legend=False) if curve else None,
        "model": _model(view) if curve else {},
        "strategies": _strategies_section(strategies) if strategies else None,
        "strategies_chart": drawn(tails) if tails and len(tails.lines) > 1 else None,
        "charts": [(chart.title, drawn(chart)) for chart in charts if chart and len(chart.lines[0].x) > 1],
        "timed": charts[-1] is not None,
        "snippets": None if "not-identified" in codes else _snippets(result, view.law),
    }


def _strategies_section(strategies: Strategies) -> Section:
    comparison = strategies.comparison
    decision = comparison.decision(time=seconds).replace(comparison.reference.policy.spec(4), "the decision above")
    note = "All of them assume independent attempts. Job-time is the time that all copies of a job occupy the system."
    if strategies.coarse:
        note += f" Computed on about {STRATEGY_STEPS} steps that stand for all latencies, so that figures may be "
        note += "off by 0.5 %."
    columns, rows = compared_table(comparison, in_words=True)
    shown = tuple((row[-1], *row[:-1]) for row in rows) if len(rows) > 1 else ()
    sentences = (decision, note, *comparison.notes)
    return Section("Strategies compared", sentences, (columns[-1], *columns[:-1]), shown)


def _snippets(result: Analysis, law: Empirical) -> dict[str, Any] | None:
    retry = result.timeout.retry
    if retry is None:
        return None
    longest, attempts, snippets = retry.timeouts[-1], retry.attempts, []
    for tool in (TOOLS[name] for name in SHOWN_TOOLS if name in TOOLS):
        timeout = tool.rounded(longest)
        if timeout <= tool.longest:
            limits = tool.limits_for(
                retry.timeouts, result.timeout.cutoff or longest, min(attempts, tool.cap or attempts)
            )
            plan = Plan(limits, result.timeout.cost, law.failures.times.size > 0)
            snippets.append((tool, tool.snippet(plan).splitlines()))
    undone = f"{100 * (1.0 - float(law.cdf(longest))) ** attempts:.2g} %"
    return {"timeout": seconds(longest), "attempts": attempts, "undone": undone, "tools": snippets}


def _model(view: View) -> dict[str, Any]:
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
    if not steps:  # even levels of F̃ and its whole upper tail, times even in log t, both ends, and those in `always`
        share = (law.cdf(t) + law.failed(t)) / (law.completions.total + law.failures.total)
        levels = np.concatenate([np.linspace(0, 1, most // 2), 1 - np.geomspace(0.02, 1e-7, most // 8)])
        first = max(float(t[t > 0][0]), float(t[-1]) * 1e-9)
        times = [*np.geomspace(first, t[-1] * (1 - 1e-12), most // 4), *(x for x in always if x and np.isfinite(x))]
        kept = [np.searchsorted(share, np.minimum(levels, share[-1])), np.searchsorted(t, times), np.arange(8)]
        t = t[np.unique(np.clip(np.concatenate([*kept, [t.size - 1]]), 0, t.size - 1))]
    sums = {"t": t, "F": law.cdf(t), "M": law.partial_moment(1, t)}
    if law.failures.times.size:
        sums |= {"G": law.failed(t), "H": law.failed_moment(1, t)}
    return sums, steps


def to_html_fragment(result: Analysis) -> str:
    """An analysis as sentences, a table and details, for a notebook.

    >>> import latfit
    >>> to_html_fragment(latfit.analyze(latfit.example_log(), resamples=0, test=False))[:40]
    '<div><p>bundled'
    """
    return _templates().get_template("notebook.html").render(sections=sections(result, full=True)).strip()


def sample_fragment(sample: LatencySample) -> str:
    """A sample as a line of counts and the quantiles of those that completed, for a notebook.

    >>> sample_fragment(LatencySample.of([1.0, 2.0, 3.0], lost=1)).count("<td>")
    6
    """
    values = sample.completed.quantiles(NOTEBOOK_LEVELS).tolist() if sample.completed.total else []
    rows = (tuple(map(seconds, values)),) if values else ()
    shown = Section("", (repr(sample)[1:-1],), tuple(f"{100 * level:g} %" for level in NOTEBOOK_LEVELS), rows)
    return _templates().get_template("notebook.html").render(sections=[shown]).strip()
