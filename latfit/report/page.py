"""The report as one HTML page: no file beside it, no request to anywhere, a script only of its own.

What came from the log is escaped, or lies in a block of JSON in which no tag can end; the Content-Security-Policy
allows the page's own script and style by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import numpy as np

from latfit.analysis import Analysis
from latfit.errors import counted
from latfit.laws import Empirical
from latfit.numbers import finite
from latfit.report import page_charts as charts
from latfit.report import page_parts as parts
from latfit.report.headline import basis, headline
from latfit.report.page_model import KEPT, kept
from latfit.report.sentences import decision
from latfit.report.svg import shown
from latfit.restart.steps import MIN_COMPLETIONS

LARGEST = 150_000  # bytes of a page
GROUPS = (200, 100, 50, 20, 5)  # rows of groups to try until the page is small enough
FIELDS = (("t", "Timeout"), ("c", "What a restart costs"), ("rho", "Share that never returns"), ("D", "Deadline"))
ROWS = (("t", "timeout"), ("E", "expected duration"), ("q50", "half of the jobs done in"), ("q95", "95 % done in"),
        ("q99", "99 % done in"), ("N", "submissions per job"), ("D", "done by the deadline"))  # fmt: skip


def to_html(result: Analysis) -> str:
    """The report as a page of at most 150 kB, whatever the log.

    >>> import latfit
    >>> page = to_html(latfit.analyze(latfit.example_log(), resamples=0, test=False))
    >>> page.startswith("<!doctype html>"), len(page.encode()) < 150_000
    (True, True)
    """
    law = _law(result)
    strategies = "" if law is None else parts.strategies(result, law)
    for most in GROUPS:
        page = _page(result, law, strategies, most)
        if len(page.encode()) < LARGEST:
            break
    return page


def _law(result: Analysis) -> Empirical | None:
    sample = result.decision.sample
    return Empirical.of(sample) if sample is not None and sample.completed.total >= MIN_COMPLETIONS else None


def _page(result: Analysis, law: Empirical | None, strategies: str, most: int) -> str:
    folder = files("latfit.report")
    style = (folder / "page.css").read_text(encoding="utf-8")
    script = "\n".join((folder / name).read_text(encoding="utf-8") for name in ("model.js", "page.js"))
    policy = (f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
              "form-action 'none'")  # fmt: skip
    words, time = headline(result)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{shown(f'{words} {time}'.strip(), 80)} · latfit</title><style>{style}</style></head>\n<body><main>\n"
        f"{_body(result, law, strategies, most)}\n</main>\n"
        f'<script type="application/json" id="data">{_json(_data(result, law))}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _json(document: dict[str, Any]) -> str:
    """JSON in which nothing can end the block that it stands in."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _data(result: Analysis, law: Empirical | None) -> dict[str, Any]:
    """What the script computes with; an empty document where there is no curve."""
    outliers, best = result.decision.outliers, result.timeout.formula
    if law is None or outliers is None or not charts.duration_chart(result, law):
        return {}
    sums = kept(law, (best.timeout, best.exact_timeout, outliers.cutoff), most=KEPT)
    low, high = charts.span(law, outliers.cutoff)
    least = max(float(law.jumps[np.searchsorted(law.completed, MIN_COMPLETIONS)]), law.resolution, low)
    found = result.decision.evidence.replay if result.decision.evidence else None
    figures = best.figures
    deadline = figures.quantiles.get("0.95") if figures else None
    curve = [(one.timeout, one.expected_duration) for one in found.curve] if found else []
    return {
        "law": sums.to_dict(),
        "span": [low, high],
        "first": int(np.searchsorted(sums.t, least)),
        "timeout": finite(best.timeout),
        "cost": best.cost,
        "cutoff": float(outliers.cutoff),
        "deadline": deadline or float(np.sqrt(low * high)),
        "most_cost": max(2.0 * float(law.jumps[int(0.9 * law.jumps.size)]), 4.0 * best.cost, 1e-9),
        "replay": [[t, E] for t, E in curve if np.isfinite(t) and np.isfinite(E)],
    }


def _body(result: Analysis, law: Empirical | None, strategies: str, most: int) -> str:
    words, time = headline(result)
    told = decision(result)
    if told[0].startswith("No timeout can"):  # what to do instead comes first
        told = [" ".join(told[:2]), *told[2:]]
    tiles = parts.tiles(result)
    said = ("Basis:", *(("Expected duration ", f"{result.timeout.submissions or 0:.2f} submissions") if tiles else ()))
    lines = "".join(f"<li>{shown(line)}</li>" for line in told[1:] if not line.startswith(said) or "optimistic" in line)
    first = [
        f"<header><h1>{shown(words, 80)}{f' <b>{shown(time, 60)}</b>' if time else ''}</h1>",
        f'<p class="lead">{shown(_lead(told[0], f"{words} {time}"))}</p>',
        f'<p class="soft">{shown(basis(result))}</p></header>',
        tiles,
        f"<ul>{lines}</ul>" if lines else "",
        parts.warnings(result),
    ]
    mixed = "mixed" in result.timeout.withheld
    groups = parts.groups(result, most)
    middle = [groups if mixed else "", parts.evidence(result)]
    if law is not None:
        middle += [_try(result, law), strategies, _figures(result, law)]
    last = [
        "" if mixed else groups,
        parts.fits(result),
        "" if law is None else parts.apply(result, law),
        _method(result),
    ]
    return "\n".join(block for block in (*first, *middle, *last) if block)


def _lead(sentence: str, headline: str) -> str:
    """The first sentence, without what the headline has said already."""
    if "give --cost" in sentence:
        return f"{sentence} Or move the slider “What a restart costs” below."
    said = re.fullmatch(re.escape(headline) + r" \((a)(.*) is within 1 %\)\.", sentence)
    return f"A{said[2]} takes at most 1 % longer." if said else sentence


def _try(result: Analysis, law: Empirical) -> str:
    """The curve and its controls; without script the curve stands alone."""
    figure = charts.duration_chart(result, law)
    if not figure:
        return ""
    title = "Try another timeout"
    told = "Shaded: at most 5 % above the lowest point. Drag the line, or use the sliders and the arrow keys."
    if result.timeout.verdict == "withheld" or result.timeout.basis == "replay":
        title = "What the formula says if attempts were independent"
        told += " The evidence above is against it: this curve is not the decision."
    found = result.decision.evidence.replay if result.decision.evidence else None
    if found and found.curve:
        told += " Dotted: the same replayed on the log itself."
    fields = "".join(f'<div class="field"><label for="s-{key}">{name}</label>'
                     f'<output id="o-{key}" for="s-{key}"></output>'
                     f'<input type="range" id="s-{key}" min="0" max="1000" step="any" value="0"></div>'
                     for key, name in FIELDS)  # fmt: skip
    columns = (("yours", "here"), ("least", "fastest"), ("cutoff", "at the cutoff"))
    head = '<th scope="col">figure</th>' + "".join(f'<th scope="col">{name}</th>' for _, name in columns)
    rows = "".join(f'<tr><th scope="row">{name}</th>'
                   + "".join(f'<td id="{column}-{key}"></td>' for column, _ in columns)
                   + "</tr>" for key, name in ROWS)  # fmt: skip
    rough = "" if not law.failures.times.size else (
        '<p class="soft">With visible failures, quantiles and the deadline are rounded to a lattice.</p>')  # fmt: skip
    return (
        f'<section><h2>{title}</h2><div class="try"><figure class="card" id="curve">{figure}<figcaption>{told}'
        f'</figcaption></figure><div class="card" id="controls" hidden><div class="fields">{fields}</div>'
        '<div class="buttons"><button type="button" id="to-best">Go to the fastest</button> '
        '<button type="button" id="as-logged">As in the log</button></div>'
        '</div><div class="card wide" id="numbers" hidden>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{rough}'
        '<p class="hidden" role="status" id="said"></p></div></div>'
        '<noscript><p class="soft">Without script the figures stand still.</p></noscript></section>'
    )


def _figures(result: Analysis, law: Empirical) -> str:
    """Latency, tail, outliers and time, with the sentences that belong to them."""
    drawn = (
        ("Latency and fitted laws", charts.latency_chart(result, law)),
        ("Jobs not yet done", charts.tail_chart(result, law)),
        ("Outliers against the cutoff", charts.ratio_chart(result)),
        ("Over time", charts.time_chart(result)),
    )
    cards = "".join(f'<figure class="card"><h3>{title}</h3>{chart}</figure>' for title, chart in drawn if chart)
    missing = '<p class="soft">The log has no submission times: nothing can be drawn over time.</p>'
    untimed = missing if not drawn[-1][1] else ""
    return (f"<section><h2>Latency and outliers</h2>{parts.words(result, 'Outliers')}{parts.words(result, 'Latency')}"
            f'<div class="grid2">{cards}</div>{untimed}</section>')  # fmt: skip


def _method(result: Analysis) -> str:
    """How it was computed, for whoever wants to check it."""
    own, refused = result.timeout, result.facts.refused.count
    resamples = "with 95 % intervals by a block bootstrap" if own.intervals else "without intervals"
    lines = (
        f"Written by latfit {version('latfit')} from {result.facts.path} ({result.facts.format}); "
        f"{counted(refused, 'row', 'was', 'were')} refused. results.json beside this page has every number.",
        "A job whose attempts are cancelled after t and submitted again, c seconds later, takes on average E_J(t) = "
        "(∫₀ᵗ u dF(u) + ∫₀ᵗ (u + c) dG(u) + S(t) (t + c)) / F(t): F is the share completed by t, G the share that "
        "failed visibly, S the share still out; all by Kaplan and Meier's estimate from the log, censoring included.",
        f"A restart costs {own.cost:g} s here. The recommended timeout is the least of that curve {resamples}; it "
        f"needs at least {MIN_COMPLETIONS} completions at or below it.",
        "Attempts are taken to be independent and alike, which the section on the evidence checks. Resubmissions are "
        "load too: if everybody cuts the timeout, the latencies change.",
    )
    return f"<section><h2>How it was computed</h2>{''.join(f'<p>{shown(line)}</p>' for line in lines)}</section>"
