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
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from latfit.analysis import Analysis
from latfit.curve import MIN_COMPLETIONS
from latfit.decision import Options, prepare
from latfit.decision.decide import survey_case
from latfit.decision.schedule import choose_schedules
from latfit.errors import printable
from latfit.histograms import Guarantee
from latfit.laws import Empirical
from latfit.numbers import Floats, finite
from latfit.report.answers import compare_sections, guarantee_advice, reading_notes
from latfit.report.charts import CHARTS, STRATEGY_STEPS, Chart, View, bounds_chart, duration_chart, reason_chart
from latfit.report.layout import WORDS, Section, kept_together, number, shortened
from latfit.report.sections import (
    advice,
    evidence_checks,
    groups_section,
    retry_sentence,
    sections,
    sentence,
    shown_groups,
)
from latfit.sample import LatencySample
from latfit.settings import TOOLS, Plan
from latfit.units import seconds

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_PAGE_BYTES = 150_000
SHOWN_GROUPS = (200, 100, 50, 20, 5)  # numbers of groups to try until the page is small enough
KEPT_TIMES = 800  # of the law; with five sums each they are 43 kB of the page
CURVE_POINTS = 160
RISKS = (0, 5, 10, 15, 20, 30, 40, 50, 75, 100)  # per cent
DEFAULT_RISK = 30
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


def to_html(result: Analysis | Guarantee, *, path: str = "") -> str:
    """The report of an analysis, or of a histogram at `path`, as a page of at most 150 kB.

    >>> import latfit
    >>> page = to_html(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    >>> page.startswith("<!doctype html>"), len(page.encode()) < 150_000
    (True, True)
    """
    from markupsafe import Markup

    folder = files("latfit.report") / "templates"
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("model.js", "page.js"))
    content: dict[str, Any] = dict.fromkeys(("result", "view", "hero", "snippets", "risks", "strategies", "groups"))
    content |= {"evidence": Section(), "charts": (), "still": (), "model": {}}
    content |= _content(result) if isinstance(result, Analysis) else _histogram_content(result, path)
    content |= {"style": Markup(style), "script": Markup(script), "version": version("latfit"), "tools": len(TOOLS)}
    for name, text in (("script_hash", script), ("style_hash", style)):
        content[name] = f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
    sections = ("apply", "snippets"), ("evidence", "evidence"), ("groups", "groups"), ("alternatives", "view")
    names = [name for name, key in sections if content[key] is not None and content[key] != Section()]
    content["contents"] = [(name, name.capitalize()) for name in ("decision", *names, "statistics")]
    template = _templates().get_template("page.html")
    for most in SHOWN_GROUPS:
        groups = {} if content["groups"] is None else _groups(content["result"], most)
        page = template.render({**content, **groups})
        if len(page.encode()) < MAX_PAGE_BYTES:
            break
    return page


def _groups(result: Analysis, most: int) -> dict[str, Any]:
    """The table of groups by rising median, and what is drawn beside each: 5 %, median, 95 %, the first timeout."""
    section, dots = groups_section(result, most), []
    for group in shown_groups(result, most):
        latency, chosen = group.decision.latency, group.decision.timeout
        assert latency is not None
        retry = chosen.retry if chosen else None
        times = [
            *(latency.quantiles[level] for level in ("0.05", "0.5", "0.95")),
            *(retry.timeouts[:1] if retry else ()),
        ]
        dots.append([f"{time:.6g}" for time in times])
    order = sorted(range(len(dots)), key=lambda at: float(dots[at][1]))
    rows = (*(section.rows[at] for at in order), section.rows[-1])
    return {"groups": replace(section, rows=rows), "dots": [*(dots[at] for at in order), None]}


def _content(result: Analysis) -> dict[str, Any]:
    sample, statistics = result.decision.sample, sections(result, full=True)[2:]
    reading = Section("How the log was read", tuple(chain(*reading_notes(result.facts))), as_items=True)
    content: dict[str, Any] = {
        "result": result,
        "path": result.facts.path,
        "advice": advice(result),
        "evidence": Section(columns=("question", "finding", "verdict"), rows=tuple(evidence_checks(result))),
        "groups": result.groups or None,
        "statistics": [*(each for each in statistics if each.title not in ("By group", "Evidence")), reading],
        "method": WORDS["method"]["log"],
    }
    if sample is None or sample.completed.total < MIN_COMPLETIONS:
        return content
    view = View(result, CURVE_POINTS)
    curve = duration_chart(view, theory=False)
    names = ("cdf", "jobs-tail", "ratio", "time", "strategies")
    charts = [chart for chart in (CHARTS[name](view) for name in names) if chart and len(chart.lines[0].x) > 1]
    reason = reason_chart(view) if curve is None or result.timeout.verdict == "withheld" else None
    if reason:  # which may be one of the others, over time or as it is
        others = [each for each in charts if each.title != reason.title and not each.x.kind == reason.x.kind == "date"]
        charts = [reason, *others]
    risks, drawn = _risks(view), {"charts": list(map(_chart_data, charts))}
    return content | {
        "view": view if curve else None,
        "hero": 0 if reason else None,
        "charts": charts,
        "still": range(1 if reason else 0, len(charts)),
        "curve": curve,
        "risks": risks,
        "model": (_model(view, curve) if curve else {}) | drawn | {"risks": risks},
        "strategies": _strategies(view) if view.strategies else None,
        "snippets": _snippets(result, view.law),
    }


def _risks(view: View) -> list[dict[str, Any]]:
    """What to set at each accepted loss; empty where that does not lead to the decision, by other options."""
    probes, retry, cost = view.result.seen, view.result.timeout.retry, view.result.timeout.cost
    if probes is None or "not-identified" in view.result.decision.codes:
        return []
    _, strata = survey_case(prepare(probes, Options(cutoff=view.cutoff, cost=cost)))
    choices = {risk: choose_schedules([strata], risk=risk / 100)[0] for risk in RISKS}
    retries = {risk: choice.retry if choice else None for risk, choice in choices.items()}
    same = [risk for risk, other in retries.items() if (other and other.timeouts) == (retry and retry.timeouts)]
    chosen = min(same, key=lambda risk: abs(risk - DEFAULT_RISK), default=None)
    waiting = "Wait: no schedule saves enough time within this loss."
    says = {risk: sentence(retry_sentence(each.to_dict())) if each else waiting for risk, each in retries.items()}
    return [{"risk": f"{risk} %", "says": says[risk], "chosen": risk == chosen} for risk in RISKS] if same else []


def _histogram_content(guarantee: Guarantee, path: str) -> dict[str, Any]:
    chart, bounds = bounds_chart(guarantee), guarantee.bounds
    rows = zip(bounds.edges, bounds.counts, bounds.low, bounds.high, strict=True)
    cells = tuple((seconds(le), str(n), number(low), number(high, missing="infinite")) for le, n, low, high in rows)
    buckets = Section("Buckets", (), ("up to", "count", "mean, at least", "mean, at most"), cells)
    warnings = tuple(f"{warning.code}: {warning.message}" for warning in guarantee.warnings)
    return {
        "path": path,
        "advice": guarantee_advice(guarantee, path),
        "statistics": [buckets, Section("Warnings", warnings, as_items=True)],
        "method": WORDS["method"]["histogram"],
        "charts": [chart],
        "hero": 0,
        "model": {"charts": [_chart_data(chart)]},
    }


def _chart_data(chart: Chart) -> dict[str, Any]:
    """A chart as the page's script draws it."""

    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return [float(f"{x:.{10 if x > 1e8 else 5}g}") if np.isfinite(x) else None for x in value]  # dates: 10
        if hasattr(value, "_asdict"):
            return {name: plain(item) for name, item in value._asdict().items()}
        return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value

    data: dict[str, Any] = plain(chart)
    return data


def _strategies(view: View) -> list[Section]:
    comparison, note = view.strategies, "All of them assume independent attempts."
    assert comparison is not None
    if view.thinned is not view.law:
        note += f" Computed on about {STRATEGY_STEPS} steps that stand for all latencies: figures may be 0.5 % off."
    return [*compare_sections(comparison, in_words=True), Section("", (note,))]


def _snippets(result: Analysis, law: Empirical) -> dict[str, Any] | None:
    retry = result.timeout.retry
    if retry is None or "not-identified" in result.decision.codes:
        return None
    longest, attempts, snippets = retry.timeouts[-1], retry.attempts, []
    end = result.decision.cutoff.cutoff if result.decision.cutoff else longest
    for tool in (TOOLS[name] for name in SHOWN_TOOLS if name in TOOLS):
        if tool.rounded(longest) <= tool.longest:
            limits = tool.limits_for(retry.timeouts, end, min(attempts, tool.cap or attempts))
            plan = Plan(limits, result.timeout.cost, law.failures.times.size > 0)
            snippets.append((tool, tool.snippet(plan).splitlines()))
    undone = f"{100 * (1.0 - float(law.cdf(longest))) ** attempts:.2g} %"
    text = f"A tool with one timeout for all attempts gets the longest: {attempts} attempts of {seconds(longest)} each "
    return {"text": f"{text}leave {undone} of the jobs undone.", "tools": snippets}


def _model(view: View, curve: Chart) -> dict[str, Any]:
    """What the curve on the page is drawn from: the law's sums, and the chart but for that curve."""
    law, best = view.law, view.best
    sums, steps = kept_sums(law, (best.timeout, best.exact_timeout, view.cutoff))
    least = max(float(law.jumps[np.searchsorted(law.completed, MIN_COMPLETIONS)]), law.resolution, view.low)
    encoded = {name: base64.b64encode(values.astype("<f8").tobytes()).decode() for name, values in sums.items()}
    return {
        "law": {**encoded, "steps": steps},
        "curve": _chart_data(curve._replace(lines=curve.lines[1:])),
        "first": int(np.searchsorted(sums["t"], least)),
        "timeout": finite(best.timeout),
        "cost": best.cost,
        "cutoff": view.cutoff,
        "deadline": best.quantiles.get("0.95") or math.sqrt(view.low * view.high),
        "most_cost": max(2.0 * float(law.jumps[int(0.9 * law.jumps.size)]), 4.0 * best.cost, 1e-9),
    }


def kept_sums(
    law: Empirical, always: tuple[float | None, ...] = (), *, most: int = KEPT_TIMES
) -> tuple[dict[str, Floats], bool]:
    """The cumulative sums of a law at about `most` times, and whether these are all the times there are.

    `F` is the share completed by each time `t`, `M` their times summed; `G` and `H` the same of visible failures, if
    there are any. Jumps among the times in `always` are kept.
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
    """An analysis as sentences, a table and details, for a notebook."""
    return _templates().get_template("notebook.html").render(sections=sections(result, full=True)).strip()


def sample_fragment(sample: LatencySample) -> str:
    """A sample as a line of counts and the quantiles of those that completed, for a notebook."""
    values = sample.completed.quantiles(NOTEBOOK_LEVELS).tolist() if sample.completed.total else []
    rows = (tuple(map(seconds, values)),) if values else ()
    shown = Section("", (repr(sample)[1:-1],), tuple(f"{100 * level:g} %" for level in NOTEBOOK_LEVELS), rows)
    return _templates().get_template("notebook.html").render(sections=[shown]).strip()
