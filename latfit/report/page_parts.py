"""The parts of the page beside its figures: tiles, warnings, evidence, strategies, groups, fits, settings, method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from latfit.analysis import Analysis, Group
from latfit.errors import counted, printable
from latfit.laws import Empirical
from latfit.report.curves import CELLS, strategies_of
from latfit.report.headline import evidence_checks
from latfit.report.layout import Section, sections
from latfit.report.page_charts import strategies_chart
from latfit.report.sentences import between, is_faster, told_duration, undecided
from latfit.report.svg import shown
from latfit.restart.evaluate import PolicyOutcome
from latfit.settings import TOOLS, Plan
from latfit.units import seconds

PASTED = ("timeout", "requests", "tenacity", "aiohttp", "envoy", "nginx", "slurm")
UNDONE = 0.001
LONG = 24  # characters of a cell that may take several lines
MOST_ATTEMPTS = 20
ROLES = {"given": "this decision", "reference": "best timeout", "same": "same load", "free": "any load"}


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | tuple[str, float | None]]],
    *,
    style: str = "",
    label: str,
) -> str:
    """A table; a cell is a text, or a text with the number that it sorts by."""
    head = "".join(f'<th scope="col">{shown(name, 60)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    kind = f' class="{style}"' if style else ""
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="{shown(label)}"><table{kind}>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")  # fmt: skip


def _cell(cell: str | tuple[str, float | None]) -> str:
    if isinstance(cell, str):
        kind = ' class="text"' if len(cell) > LONG else ""
        return f"<td{kind}>{shown(cell, 200)}</td>"
    text, value = cell
    number = "" if value is None or math.isnan(value) else "1e999" if value == math.inf else f"{value:.6g}"
    return f'<td data-v="{number}">{shown(text, 60)}</td>'


def tiles(result: Analysis) -> str:
    """The four figures that matter, large."""
    own, bounds = result.timeout, result.timeout.intervals
    if own.verdict != "finite" or own.basis == "replay" or "not-identified" in result.decision.codes:
        return ""
    found = []
    if own.expected_duration is not None:
        sure = f" ({between(*bounds.expected_duration)})" if bounds else ""
        differs = own.at_cutoff is not None and own.timeout != own.cutoff
        instead = f" instead of {seconds(own.at_cutoff)} at the cutoff" if differs else ""
        found.append((seconds(told_duration(own)), f"expected duration{sure}{instead}"))
    if own.speed_up_vs_cutoff is not None and is_faster(own.speed_up_vs_cutoff):
        sure = f" ({bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})" if bounds else ""
        found.append((f"{own.speed_up_vs_cutoff:.3g} ×", f"faster than waiting until the cutoff{sure}"))
    if own.submissions is not None:
        found.append((f"{own.submissions:.2f}", "submissions per job"))
    last, end = (each.quantiles.get("0.99") if each else None for each in (own.figures, own.figures_at_cutoff))
    if last is not None:
        instead = f" instead of {seconds(end)} at the cutoff" if end is not None and own.timeout != own.cutoff else ""
        found.append((seconds(last), f"99 % of jobs done within it{instead}"))
    return f'<ul class="tiles">{"".join(f"<li><b>{shown(a)}</b><span>{shown(b)}</span></li>" for a, b in found)}</ul>'


def warnings(result: Analysis) -> str:
    """The warnings by their codes."""
    if not result.warnings:
        return ""
    lines = "".join(f"<li><b>{shown(w.code)}</b>: {shown(w.message)}</li>" for w in result.warnings)
    return f'<section><h2>Warnings</h2><ul class="warnings">{lines}</ul></section>'


def evidence(result: Analysis) -> str:
    """One row a check: what was looked at, what was found, what it means for the formula."""
    rows = evidence_checks(result)
    if not rows:
        return ""
    told = "The formula assumes that attempts are independent and alike. What the log itself says on that:"
    shape = table(("question", "found", "so"), rows, style="words", label="Evidence")
    return f"<section><h2>Evidence</h2><p>{told}</p>{shape}</section>"


def strategies(result: Analysis, law: Empirical) -> str:
    """Other strategies beside the recommended timeout, at the same load and at any."""
    compared = strategies_of(result, law)
    if compared is None:
        return ""
    found = compared.found
    columns = ("strategy", "load", "expected", "50 % within", "95 %", "99 %", "submissions", "job-seconds")
    rows = [_strategy(row.role, row.outcome) for row in found.rows] if len(found.rows) > 1 else []
    shown_rows = table(columns, rows, style="sorts", label="Strategies compared") if rows else ""
    drawn = strategies_chart(result, law, compared)
    figure = f'<figure class="card half"><h3>Jobs not yet done, by strategy</h3>{drawn}</figure>' if drawn else ""
    told = (
        "All of them assume independent attempts. Job-seconds are the time that all copies of a job occupy the system."
    )
    if compared.coarse:
        told += f" Computed on about {CELLS} steps that stand for all latencies, so that figures may be off by 0.5 %."
    notes = "".join(f'<p class="soft">{shown(note)}</p>' for note in (told, *found.notes))
    decided = shown(found.decision(time=seconds).replace(found.reference.policy.spec(4), "the decision above"))
    return f"<section><h2>Strategies compared</h2><p>{decided}</p>{shown_rows}{notes}{figure}</section>"


def _strategy(role: str, outcome: PolicyOutcome) -> list[str | tuple[str, float | None]]:
    def time(value: float | None) -> tuple[str, float | None]:
        return ("" if value is None else seconds(value), value)

    levels = [time(outcome.quantiles.get(q)) for q in ("0.5", "0.95", "0.99")]
    many = outcome.submissions
    return [outcome.policy.sentence(seconds), ROLES[role], time(outcome.expected_duration), *levels,
            ("" if many is None else f"{many:.2f}", many), time(outcome.job_seconds)]  # fmt: skip


def groups(result: Analysis, most: int) -> str:
    """The decision of each group, the largest first where there are too many to show."""
    if not result.groups:
        return ""
    by_size = sorted(result.groups, key=lambda one: -sum(one.decision.counts.values()))[:most]
    kept = [group for group in result.groups if any(group is one for one in by_size)]
    rows = [_group(group) for group in kept]
    mixed = "mixed" in result.timeout.withheld
    columns = (*result.groups[0].key, "probes", "still out", "timeout", "95 % interval", "expected", "pooled costs",
               *(() if mixed else ("needs its own",)))  # fmt: skip
    rows = [row[: len(columns)] for row in rows]
    left = len(result.groups) - len(kept)
    smaller = counted(left, "smaller group", "is", "are")
    more = f'<p class="soft">{smaller} in results.json.</p>' if left else ""
    own = sum(group.differs for group in result.groups)
    need, its = ("needs", "its") if own == 1 else ("need", "their")
    told = (f"{own} of {counted(len(result.groups), 'group')} {need} a timeout of {its} own: {its} interval and the "
            "pooled one have nothing in common." if own else "No group needs a timeout of its own.")  # fmt: skip
    if mixed:
        found = result.decision.evidence
        afterwards = found is not None and found.mixing is not None and found.mixing.known_afterwards
        own_one = "decide for the group that you wait for" if afterwards else "set each group's own"
        if undecided(result):
            own_one = "and no group has a decision of its own"
        told = f"One timeout for all would be wrong here; {own_one}."
    told += " Pooled costs: how much longer than with its own timeout a group takes under one for all."
    return (f"<section><h2>By group</h2><p>{shown(told)}</p>"
            f'{table(columns, rows, style="sorts", label="Decisions by group")}{more}</section>')  # fmt: skip


def _group(group: Group) -> list[str | tuple[str, float | None]]:
    made, own = group.decision, group.decision.timeout
    out = made.outliers.estimate if made.outliers else None
    probes = sum(made.counts.values())
    cells: list[str | tuple[str, float | None]] = [
        *(_short(value) for value in group.key.values()),
        (str(probes), probes),
    ]
    cells.append(("" if out is None else f"{100 * out:.2f} %", out))
    if own is None or own.verdict == "withheld":
        few = own is None or "few-completions" in own.withheld
        words = "too few" if few else f"withheld: {', '.join(own.withheld)}" if own else ""
        cells += [(words, None), "", ("", None)]
    else:
        duration = own.replayed if own.basis == "replay" else own.expected_duration
        cells += [(seconds(own.timeout) if own.verdict == "finite" else own.verdict, own.timeout),
                  between(*own.intervals.timeout) if own.intervals else "", (seconds(duration), duration)]  # fmt: skip
    regret = group.pooled_regret
    told = "" if regret is None else "never ends" if regret == math.inf else f"{100 * regret:.1f} %"
    return [*cells, (told, regret), "yes" if group.differs else ""]


def _short(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def fits(result: Analysis) -> str:
    """The fitted laws, best first."""
    found = next((one for one in sections(result) if one.title.startswith("Fitted")), None)
    return "" if found is None else _section(found)


def _section(found: Section) -> str:
    told = "".join(f"<p>{shown(line)}</p>" for line in found.sentences)
    return (f"<section><h2>{shown(found.title)}</h2>{table(found.columns, found.rows, label=found.title)}{told}"
            "</section>")  # fmt: skip


def words(result: Analysis, title: str) -> str:
    """The sentences of a section of the report."""
    found = next(one for one in sections(result) if one.title == title)
    return "".join(f"<p>{shown(line)}</p>" for line in found.sentences)


def apply(result: Analysis, law: Empirical) -> str:
    """What to paste into a few tools, or why there is nothing to paste."""
    own = result.timeout
    if own.verdict != "finite" or not own.timeout or "not-identified" in result.decision.codes:
        return ""
    missed = 1.0 - float(law.cdf(own.timeout))
    if missed >= 1:
        return ""
    needed = 2 if missed <= 0 else max(2, math.ceil(math.log(UNDONE) / math.log(missed) - 1e-9))
    attempts = min(needed, MOST_ATTEMPTS)
    told = (f"{attempts} attempts of {seconds(own.timeout)} each leave {100 * missed**attempts:.2g} % of the jobs "
            "undone. Resubmit only what may safely run twice.")  # fmt: skip
    queue = result.seen is not None and result.seen.queue
    names = [name for name in PASTED if name in TOOLS and (name == "slurm" or not queue)]
    blocks = [_snippet(name, own.timeout, attempts, own.cost, law.failures.times.size > 0) for name in names]
    return (f"<section><h2>How to apply it</h2><p>{shown(told)}</p>{''.join(blocks)}<p class=\"soft\">"
            f"{len(TOOLS)} tools are known: <code>latfit settings</code> lists them, and <code>latfit settings TOOL "
            "LOG</code> counts a tool's own waits as the cost of a restart.</p></section>")  # fmt: skip


def _snippet(name: str, timeout: float, attempts: int, cost: float, failures: bool) -> str:
    tool = TOOLS[name]
    rounded = tool.rounded(timeout)
    if rounded > tool.longest:
        return ""
    count = min(attempts, tool.cap or attempts)
    text = tool.snippet(Plan(rounded, count, cost, failures))
    code = "\n".join(escape(printable(line)) for line in text.splitlines())
    notes = f"It limits {tool.limits}. Validated: {tool.validated}."
    return (f"<details><summary>{shown(tool.title)}</summary><pre tabindex=\"0\">{code}</pre>"
            f'<p class="soft">{shown(notes)}</p></details>')  # fmt: skip
