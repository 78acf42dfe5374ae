"""Results for people: the same sections as plain text or as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from latfit.analysis import Analysis, Group
from latfit.decision import FittedLaw, Recommendation
from latfit.errors import printable
from latfit.report.headline import basis, headline
from latfit.report.sentences import NO_BREAK, between, decision, evidence, kept_together, percent, still_out
from latfit.units import seconds

WIDTH = 80
MAX_KEY, MIN_KEY = 24, 6  # characters of a group's name in a table


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and perhaps a table with its columns' names."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_list: bool = False


def sections(result: Analysis) -> list[Section]:
    """The report, the decision first."""
    told = decision(result)
    first = 1  # what to do, then what it rests on
    if told[0].startswith("No timeout can"):
        told[0], first = f"{headline(result)[0]}. {told[0]}", 2
    found = [Section("Decision", (*told[:first], basis(result), *told[first:]))]
    if told := evidence(result):
        found.append(Section("Evidence", tuple(told)))
    if result.groups:
        found.append(_groups(result))
    if result.warnings:
        warned = tuple(f"{warning.code}: {warning.message}" for warning in result.warnings)
        found.append(Section("Warnings", warned, is_list=True))
    found += [_outliers(result), _latency(result)]
    if result.decision.fits:
        found.append(_fits(result.decision.fits))
    return found


def _outliers(result: Analysis) -> Section:
    ratio, joint, cutoff = result.decision.outliers, result.decision.joint, result.decision.cutoff
    assert ratio is not None
    assert cutoff is not None
    assert result.decision.sample is not None
    sure = f"95 % interval {100 * ratio.low:.2f} to {percent(ratio.high)}, {ratio.method}"
    out, count = still_out(ratio, result.decision.sample, f"the cutoff of {seconds(ratio.cutoff)}")
    sentences = [f"{out} ({sure}; {count}).", f"The cutoff: {cutoff.reason}."]
    if joint:
        sentences.append(
            f"Estimated together with the law {joint.law}: {percent(joint.estimate)} "
            f"({100 * joint.low:.2f} to {percent(joint.high)})."
        )
    return Section("Outliers", tuple(sentences))


def _latency(result: Analysis) -> Section:
    x, log, made = result.decision.latency, result.facts, result.decision
    counts = ", ".join(f"{count} {status}" for status, count in made.counts.items() if count)
    clock = f"clock {seconds(made.whole.resolution)}" if made.whole.resolution else "a fine clock"
    if x is None:
        return Section("Latency", (f"{log.path} ({log.format}): {counts}; {clock}.",))
    quantiles = ", ".join(f"{100 * float(q):g} % {seconds(value)}" for q, value in x.quantiles.items())
    return Section(
        "Latency",
        (
            f"{log.path} ({log.format}): {counts}; {clock}.",
            f"Those that returned: mean {seconds(x.mean)}, standard deviation {seconds(x.std)}, "
            f"from {between(x.min, x.max)}. Quantiles: {quantiles}.",
        ),
    )


def _fits(fits: Sequence[FittedLaw]) -> Section:
    columns = ("law", "parameters", "rho %", "BIC−", "KS", "p known", "p boot", "timeout", "regret")
    least = min((f.fit.bic for f in fits if f.fit.bic is not None), default=0.0)
    rows = tuple(_fit_row(fitted, least) for fitted in fits if fitted.fit.error is None)
    failed = tuple(_named(fitted) for fitted in fits if fitted.fit.error is not None)
    missing = (f"Could not be fitted: {', '.join(failed)} (--json says why).",) if failed else ()
    explained = (
        "BIC− is the distance from the best; p known takes the parameters as known (as the paper does), p boot fits "
        "again on every resample and is the honest one; regret is what the law's timeout costs on the data.",
    )
    return Section("Fitted laws, best first", explained + missing, columns, rows)


def _fit_row(fitted: FittedLaw, least: float) -> tuple[str, ...]:
    one, ks, optimum = fitted.fit, fitted.ks, fitted.optimum
    timeout = {"never": "none", "any": "any", "immediate": "0"}.get(optimum.verdict, "") if optimum else ""
    if optimum and optimum.timeout and not timeout:
        timeout = seconds(optimum.timeout)
    regret = "" if fitted.regret is None else _percent_more(fitted.regret)
    return (
        _named(fitted),
        one.describe(3, " "),
        f"{100 * (one.rho or 0):.2f}",
        "" if one.bic is None else f"{one.bic - least:.0f}",
        f"{ks.statistic:.3f}" if ks else "",
        _p(ks.p_asymptotic if ks else None),
        _p(ks.p_bootstrap if ks else None),
        timeout,
        regret,
    )


def _named(fitted: FittedLaw) -> str:
    one = fitted.fit
    return one.name if one.method == "mle" else f"{one.name} {one.method}"


def _percent_more(share: float) -> str:
    return "∞" if share == float("inf") else f"{100 * share:.1f} %"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "<.001"


def _groups(result: Analysis) -> Section:
    groups, ratio = result.groups, result.decision.outliers
    assert ratio is not None
    columns = (*map(_short_key, groups[0].key), "probes", "out %", "timeout", "95 % interval", "E_J", "pooled costs",
               "own")  # fmt: skip
    rows = [(*map(_short_key, group.key.values()), *_group_row(group)) for group in groups]
    names = ("all", *("" for _ in list(groups[0].key)[1:]))
    probes = str(sum(sum(group.decision.counts.values()) for group in groups))
    whole = (*names, probes, f"{100 * ratio.estimate:.2f}", *_short(result.timeout), "", "")
    told = "own *: its interval and the pooled one have nothing in common, so that it needs a timeout of its own."
    return Section("By group", (told,), columns, (*rows, whole))


def _short_key(key: str) -> str:
    return _cut(printable(key), MAX_KEY)


def _group_row(group: Group) -> tuple[str, ...]:
    made = group.decision
    timeout, interval, E = _short(made.timeout)
    costs = "" if group.pooled_regret is None else _percent_more(group.pooled_regret)
    out = "" if made.outliers is None else f"{100 * made.outliers.estimate:.2f}"
    return (str(sum(made.counts.values())), out, timeout, interval, E, costs, "*" if group.differs else "")


def _short(own: Recommendation | None) -> tuple[str, str, str]:
    if own is None:
        return "too few", "", ""
    if own.verdict == "withheld":
        return ("too few" if "few-completions" in own.withheld else "withheld"), "", ""
    timeout = seconds(own.timeout) if own.verdict == "finite" else own.verdict
    E = own.replayed if own.basis == "replay" else own.expected_duration
    return timeout, between(*own.intervals.timeout) if own.intervals else "", seconds(E)


def to_text(result: Analysis, *, width: int = WIDTH) -> str:
    """The report as plain text, of which a terminal takes nothing as a command."""
    blocks = []
    for section in sections(result):
        lines = [section.title.upper()]
        for sentence in map(kept_together, section.sentences):
            mark = "- " if section.is_list else ""
            lines += textwrap.wrap(
                mark + sentence, width - 2, initial_indent="  ", subsequent_indent="  " + " " * len(mark)
            )
        if section.rows:
            lines += ["", *("  " + line for line in text_table(section.columns, section.rows, width - 2))]
        blocks.append("\n".join(map(printable, lines)))
    return "\n\n".join(blocks).replace(NO_BREAK, " ") + "\n"


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int = WIDTH - 2) -> list[str]:
    """The lines of a table that fits the width: parameters go below their row, then names are cut, then rows are told.

    >>> for line in text_table(("site", "timeout"), [("a", "358 s"), ("b", "5.6 ms")]):
    ...     print(line)
    site  timeout
    ----  -------
    a       358 s
    b      5.6 ms
    """
    below = columns.index("parameters") if "parameters" in columns and _wide(columns, rows) > width else None
    kept = [i for i in range(len(columns)) if i != below]
    names = columns.index("probes") if "probes" in columns else 1
    head, cut = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
    for most in range(MAX_KEY, MIN_KEY - 1, -2):
        shown = [[_cut(cell, most) if i < names else cell for i, cell in enumerate(row)] for row in (head, *cut)]
        if _wide(shown[0], shown[1:]) <= width:
            break
    else:
        return _records(columns, rows, width)
    widths = [max(len(row[i]) for row in shown) for i in range(len(kept))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(c.ljust(widths[i]) if i == 0 else c.rjust(widths[i]) for i, c in enumerate(row)).rstrip()

    lines = [line(shown[0]), "  ".join("-" * one for one in widths)]
    for row, whole in zip(shown[1:], rows, strict=True):
        lines.append(line(row))
        if below is not None:
            lines += textwrap.wrap(whole[below], width - 4, initial_indent="    ", subsequent_indent="    ")
    return lines


def _wide(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How many characters a table takes."""
    return sum(max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))) + 2 * (len(columns) - 1)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Each row as a sentence of its own."""
    lines = []
    for row in rows:
        cells = "; ".join(f"{name} {cell}" for name, cell in zip(columns, row, strict=True) if cell)
        lines += textwrap.wrap(kept_together(cells), width, subsequent_indent="    ")
    return lines


def to_markdown(result: Analysis, *, figures: Sequence[str] = ()) -> str:
    """The report as Markdown; what came from the log is escaped."""
    blocks = [f"# latfit: {_escaped(result.facts.path)}"]
    for section in sections(result):
        blocks.append(f"## {section.title}")
        told = [_escaped(sentence) for sentence in section.sentences]
        blocks += ["\n".join(f"- {line}" for line in told)] if section.is_list else told  # a paragraph each, or a list
        if section.rows:
            head = [section.columns, tuple("---" for _ in section.columns)]
            blocks.append("\n".join("| " + " | ".join(map(_escaped, row)) + " |" for row in (*head, *section.rows)))
    blocks += [f"![{name}]({name})" for name in figures]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _escaped(text: str) -> str:
    """Text that Markdown and HTML take as it is; plain numbers need no escape."""
    if text == "---":
        return text
    text = printable(re.sub(r"\s+", " ", text))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") if _tagged(text) else text
    text = re.sub(r"([\\`*\[\]|#!~$@]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.|^[-+=](?!\d))", r"\\\1", text)
    return re.sub(r"^(\d+)([.)])(?=\s)", r"\1\\\2", text)


def _tagged(text: str) -> bool:
    """Whether HTML could see a tag or an entity in it; `<.001` is neither."""
    return bool(re.search(r"<(?![.\d\s])|&|>", text))
