"""What a notebook shows: sentences, tables and details, which survive where it is not trusted."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from latfit.analysis import Analysis
from latfit.errors import printable
from latfit.report.layout import sections
from latfit.sample import LatencySample
from latfit.units import seconds

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
OPEN = ("Decision", "Evidence", "By group")


def _shown(text: str) -> str:
    return escape(printable(text))


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{_shown(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_shown(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def to_html_fragment(result: Analysis) -> str:
    """An analysis as sentences, a table and details.

    >>> import latfit
    >>> to_html_fragment(latfit.analyze(latfit.example_log(), resamples=0, test=False))[:40]
    '<div><b>Decision</b><p>Set the timeout t'
    """
    blocks = []
    for section in sections(result):
        lines = "".join(f"<li>{_shown(line)}</li>" if section.is_list else f"<p>{_shown(line)}</p>"
                        for line in section.sentences)  # fmt: skip
        body = f"<ul>{lines}</ul>" if section.is_list else lines
        if section.rows:
            body += _table(section.columns, section.rows)
        title = f"<b>{_shown(section.title)}</b>"
        open_ = section.title in OPEN
        blocks.append(f"{title}{body}" if open_ else f"<details><summary>{title}</summary>{body}</details>")
    return f"<div>{''.join(blocks)}</div>"


def sample_fragment(sample: LatencySample) -> str:
    """A sample as a line of counts and the quantiles of those that completed.

    >>> sample_fragment(LatencySample.of([1.0, 2.0, 3.0], lost=1)).count("<td>")
    6
    """
    told = f"<p>{_shown(repr(sample)[1:-1])}</p>"
    if not sample.completed.total:
        return told
    found = sample.completed.quantiles(LEVELS)
    return told + _table([f"{100 * level:g} %" for level in LEVELS], [[seconds(float(value)) for value in found]])
