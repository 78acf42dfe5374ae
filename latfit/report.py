"""Results for people: the same sections as plain text or as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from latfit.checks import SMALL_GAIN
from latfit.decision import Analysis, FittedLaw, Group, Recommendation
from latfit.errors import printable

WIDTH = 80
MAX_KEY = 24  # characters of a group's name in a table
NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class Section:
    """A heading, some sentences, and perhaps a table with its columns' names."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    is_list: bool = False


def seconds(value: float | None) -> str:
    """A time as people say it."""
    if value is None or value == float("inf"):
        return "no limit"
    if value >= 20_000:
        return f"{value:.0f} s ({value / 3600:.3g} h)"
    return f"{value:.0f} s" if value >= 999.5 else f"{value:.3g} s"


def between(low: float | None, high: float | None) -> str:
    """A range of times; ∞ to ∞ is no timeout."""
    if low == float("inf"):
        return "none"
    if high is None or high == float("inf"):
        return f"{seconds(low)} to no limit"
    return f"{seconds(low).removesuffix(' s')} to {seconds(high)}"


def percent(share: float) -> str:
    """A share with two decimals."""
    return f"{100 * share:.2f} %"


def sections(result: Analysis) -> list[Section]:
    """The report, the decision first."""
    found = [_decision(result), _outliers(result), _latency(result), _fits(result.fits, result.best)]
    if result.groups:
        found.append(_groups(result))
    if result.warnings:
        told = tuple(f"{warning.code}: {warning.message}" for warning in result.warnings)
        found.append(Section("Mind", told, is_list=True))
    return found


def _decision(result: Analysis) -> Section:
    best = result.timeout.optimum
    if best is None:
        return Section("Decision", ("No timeout can be recommended: too few probes completed.",))
    set_it = {
        "finite": f"Set the timeout to {seconds(best.timeout)}{_window(best.within_1pct)}.",
        "never": "Set no timeout: cancelling and resubmitting does not help.",
        "any": "Any timeout will do: it does not change how long jobs take.",
        "immediate": "The shorter the timeout the better; what a restart costs decides (give --cost).",
        "given": "",
    }[best.verdict]
    gain = result.timeout.speed_up_vs_cutoff
    if best.verdict == "finite" and gain is not None and gain < SMALL_GAIN:
        worth = f"gains {100 * (gain - 1):.1f} % over waiting until the cutoff"
        set_it = f"A timeout hardly helps: the best, {seconds(best.timeout)}, {worth}."
    if best.verdict == "finite" and any(w.code == "not-identified" for w in result.warnings):
        free = f"if restarts were free, {seconds(best.timeout)}"
        set_it = f"The log alone does not tell what to set ({free}): give --cost, the seconds that a restart costs."
    sentences = [set_it, _gain(result.timeout), _load(result.timeout)]
    if result.timeout.intervals and best.verdict == "finite":
        bounds = result.timeout.intervals
        told = between(*bounds.timeout).replace(" to ", " and ")
        sentences.append(f"The best timeout lies between {told} (95 %).")
        if bounds.smoothed_timeout:
            sentences.append(f"Smoothing the data first gives {seconds(bounds.smoothed_timeout)}.")
    if best.verdict == "finite" and best.within_5pct is not None:
        later = best.within_5pct[1]
        told = "any later timeout" if later == float("inf") else f"waiting up to {seconds(later)}"
        sentences.append(f"Too late is safer than too early: {told} costs at most 5 % more.")
    if result.current is not None:
        now = result.current
        told = "jobs would never end"
        if now.expected_duration is not None and now.regret is not None:
            told = f"jobs take {seconds(now.expected_duration)}, {100 * now.regret:.1f} % longer than with the best"
        sentences.append(f"Your current timeout of {seconds(now.timeout)}: {told}.")
    return Section("Decision", tuple(sentence for sentence in sentences if sentence))


def _window(window: tuple[float, float] | None) -> str:
    return "" if window is None else f" (anything from {between(*window)} is within 1 %)"


def _gain(recommended: Recommendation) -> str:
    best, end, bounds = recommended.optimum, recommended.at_cutoff, recommended.intervals
    assert best is not None
    text = f"Expected duration {seconds(best.expected_duration)}"
    if bounds:
        text += f" (95 % interval {between(*bounds.expected_duration)})"
    factor = recommended.speed_up_vs_cutoff
    if end is None or factor is None or best.verdict != "finite":
        return text + "."
    text += f" instead of {seconds(end.expected_duration)} when waiting until the cutoff: {factor:.3g} × faster"
    return text + (f" ({bounds.speed_up[0]:.3g} to {bounds.speed_up[1]:.3g})." if bounds else ".")


def _load(recommended: Recommendation) -> str:
    best, end = recommended.optimum, recommended.at_cutoff
    assert best is not None
    parts = []
    if best.submissions is not None and best.verdict == "finite":
        parts.append(f"{best.submissions:.2f} submissions per job")
    last = best.quantiles.get("0.99")
    if last is not None:
        now = end.quantiles.get("0.99") if end else None
        parts.append(f"99 % of jobs done within {seconds(last)}" + (f" ({seconds(now)} at the cutoff)" if now else ""))
    return "; ".join(parts) + "." if parts else ""


def _outliers(result: Analysis) -> Section:
    ratio, joint = result.outliers, result.joint
    sentences = [
        f"{percent(ratio.estimate)} of {ratio.n} probes were still out at the cutoff of {seconds(ratio.cutoff)} "
        f"(95 % interval {100 * ratio.low:.2f} to {percent(ratio.high)}, {ratio.method}; "
        f"{ratio.count} seen to be out).",
        f"The cutoff: {result.cutoff.reason}.",
    ]
    if joint:
        sentences.append(
            f"Estimated together with the law {joint.law}: {percent(joint.estimate)} "
            f"({100 * joint.low:.2f} to {percent(joint.high)})."
        )
    return Section("Outliers", tuple(sentences))


def _latency(result: Analysis) -> Section:
    x = result.latency
    log = result.facts
    quantiles = ", ".join(f"{100 * float(q):g} % {seconds(value)}" for q, value in x.quantiles.items())
    counts = ", ".join(f"{count} {status}" for status, count in result.counts.items() if count)
    clock = f"clock {seconds(result.sample.resolution)}" if result.sample.resolution else "a fine clock"
    return Section(
        "Latency",
        (
            f"{log.path} ({log.format}): {counts}; {clock}.",
            f"Those that returned: mean {seconds(x.mean)}, standard deviation {seconds(x.std)}, "
            f"from {between(x.min, x.max)}. Quantiles: {quantiles}.",
        ),
    )


def _fits(fits: Sequence[FittedLaw], best: str | None) -> Section:
    columns = ("law", "parameters", "rho %", "BIC−", "KS", "p known", "p boot", "timeout", "regret")
    least = min((f.fit.bic for f in fits if f.fit.bic is not None), default=0.0)
    rows = tuple(_fit_row(fitted, least) for fitted in fits if fitted.fit.error is None)
    failed = tuple(f"{f.fit.name}: {f.fit.error}" for f in fits if f.fit.error is not None)
    explained = (
        "BIC− is the distance from the best; p known takes the parameters as known (as the paper does), p boot fits "
        "again on every resample and is the honest one; regret is what the law's timeout costs on the data.",
    )
    return Section("Fitted laws, best first", explained + failed, columns, rows)


def _fit_row(fitted: FittedLaw, least: float) -> tuple[str, ...]:
    one, ks, optimum = fitted.fit, fitted.ks, fitted.optimum
    parameters = " ".join(f"{name}={value:.3g}" for name, value in one.params.items())
    timeout = {"never": "none", "any": "any", "immediate": "0"}.get(optimum.verdict, "") if optimum else ""
    if optimum and optimum.timeout and not timeout:
        timeout = f"{optimum.timeout:.4g}"
    regret = "" if fitted.regret is None else _percent_more(fitted.regret)
    return (
        one.name if one.method == "mle" else f"{one.name} {one.method}",
        parameters,
        f"{100 * (one.rho or 0):.2f}",
        "" if one.bic is None else f"{one.bic - least:.0f}",
        f"{ks.statistic:.3f}" if ks else "",
        _p(ks.p_asymptotic if ks else None),
        _p(ks.p_bootstrap if ks else None),
        timeout,
        regret,
    )


def _percent_more(share: float) -> str:
    return "∞" if share == float("inf") else f"{100 * share:.1f} %"


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "<.001"


def _groups(result: Analysis) -> Section:
    groups = result.groups
    columns = (*map(printable, groups[0].key), "probes", "out %", "timeout", "95 % interval", "E_J", "pooled costs", "")
    rows = [(*map(_short_key, group.key.values()), *_group_row(group)) for group in groups]
    names = ("all", *("" for _ in list(groups[0].key)[1:]))
    probes = str(sum(group.probes for group in groups))
    whole = (*names, probes, f"{100 * result.outliers.estimate:.2f}", *_short(result.timeout), "", "")
    told = "* marks groups whose interval and the pooled one have nothing in common: they need a timeout of their own."
    return Section("By group", (told,), columns, (*rows, whole))


def _short_key(key: str) -> str:
    key = printable(key)
    return key if len(key) <= MAX_KEY else key[: MAX_KEY - 1] + "…"


def _group_row(group: Group) -> tuple[str, ...]:
    own = group.recommendation
    timeout, interval, E = _short(own)
    costs = "" if group.pooled_regret is None else _percent_more(group.pooled_regret)
    return (
        str(group.probes),
        f"{100 * group.ratio.estimate:.2f}",
        timeout,
        interval,
        E,
        costs,
        "*" if group.differs else "",
    )


def _short(own: Recommendation) -> tuple[str, str, str]:
    best = own.optimum
    if best is None:
        return "too few", "", ""
    timeout = seconds(best.timeout) if best.verdict == "finite" else best.verdict
    return timeout, between(*own.intervals.timeout) if own.intervals else "", seconds(best.expected_duration)


def to_text(result: Analysis, *, width: int = WIDTH) -> str:
    """The report as plain text, of which a terminal takes nothing as a command."""
    blocks = []
    for section in sections(result):
        lines = [section.title.upper()]
        for sentence in map(_kept_together, section.sentences):
            mark = "- " if section.is_list else ""
            lines += textwrap.wrap(
                mark + sentence, width - 2, initial_indent="  ", subsequent_indent="  " + " " * len(mark)
            )
        if section.rows:
            lines += ["", *("  " + line for line in _text_table(section, width - 2))]
        blocks.append("\n".join(map(printable, lines)))
    return "\n\n".join(blocks).replace(NO_BREAK, " ") + "\n"


def _kept_together(sentence: str) -> str:
    """Numbers that are not torn from their units at the end of a line."""
    return re.sub(r"(?<=\d) (?=(?:s|h|%|×)(?:\W|$))", NO_BREAK, sentence)


def _text_table(section: Section, width: int) -> list[str]:
    """Columns padded; a column of parameters goes to a line of its own where the table would be too wide."""
    columns, rows = section.columns, section.rows
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    below = columns.index("parameters") if "parameters" in columns and sum(widths) + 2 * len(widths) > width else None
    kept = [i for i in range(len(columns)) if i != below]

    def line(row: Sequence[str]) -> str:
        return "  ".join(row[i].ljust(widths[i]) if i == 0 else row[i].rjust(widths[i]) for i in kept).rstrip()

    lines = [line(columns), "  ".join("-" * widths[i] for i in kept)]
    for row in rows:
        lines.append(line(row))
        if below is not None:
            lines += textwrap.wrap(row[below], width - 4, initial_indent="    ", subsequent_indent="    ")
    return lines


def to_markdown(result: Analysis, *, figures: Sequence[str] = ()) -> str:
    """The report as Markdown; what came from the log is escaped."""
    blocks = [f"# latfit: {_escaped(result.facts.path)}"]
    for section in sections(result):
        blocks.append(f"## {section.title}")
        mark = "- " if section.is_list else ""
        blocks.append("\n".join(mark + _escaped(sentence) for sentence in section.sentences))
        if section.rows:
            head = [section.columns, tuple("---" for _ in section.columns)]
            blocks.append("\n".join("| " + " | ".join(map(_escaped, row)) + " |" for row in (*head, *section.rows)))
    blocks += [f"![{name}]({name})" for name in figures]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _escaped(text: str) -> str:
    """Text that Markdown and HTML take as it is."""
    if text == "---":
        return text
    text = re.sub(r"([\\`*_\[\]|#!~$@]|:(?=//)|(?<=www)\.|^[-+=])", r"\\\1", printable(re.sub(r"\s+", " ", text)))
    text = re.sub(r"^(\d+)([.)])", r"\1\\\2", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
