"""Small commands: `plot`, `read` and `convert` a log, list the `laws` and the `formats`."""

from __future__ import annotations

from typing import Any

import click

import latfit
from latfit.cli import common as cli
from latfit.errors import counted


@cli.command
def plot(log: str, output: str, figure: str, **parsed: Any) -> None:
    """Draw the figures of an analysis.

    They show E_J against the timeout and against the load, jobs not yet done, the cdf, quantiles, the outlier ratio,
    the latencies over time, and jobs not yet done under other strategies.
    """
    from latfit.plots import save_figure

    save_figure(cli.call(latfit.analyze, cli.load_log(log, parsed), test=False, **parsed), figure, output)
    cli.say(f"{output}: {figure}")


@cli.command
def read(log: str, as_json: bool, **parsed: Any) -> None:
    """Show how each column of a log was read, its unit, why, and the option that changes it."""
    from latfit.report.answers import reading_document, reading_sections

    parsed["max_refused"] = 1.0  # refused rows are what one looks for here
    document = reading_document(cli.load_log(log, parsed, quiet=True))
    cli.show(document, reading_sections(document), as_json=as_json)


@cli.command
def convert(log: str, output: str, spreadsheet: bool, as_json: bool, **parsed: Any) -> None:
    """Write a log as the canonical table: submitted (UTC), latency (s), status, and the log's own columns."""
    from latfit.logs.frames import WRITERS
    from latfit.report.layout import Section

    if not output.endswith(tuple(WRITERS)):
        raise click.BadParameter(f"the ending of {output!r} must be one of {', '.join(WRITERS)}", param_hint="-o")
    how = cli.read_arguments(parsed)
    with cli.progress.reports(cli.bytes_read) as report:
        facts, counts = latfit.convert_log(log, output, spreadsheet=spreadsheet, progress=report, **how)
    cli.notify_reading(facts)
    probes, refused = sum(counts.values()), facts.refused
    document = {"output": output, "format": facts.format, "probes": probes, **counts}
    document |= {"refused": refused.to_list(), "refused_count": refused.count}
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items())
    sentence = f"{output}: {counted(probes, 'probe')} ({statuses}) from {facts.path} ({facts.format})"
    cli.show(document, [Section("", (sentence,))], as_json=as_json)


@cli.command
def laws(as_json: bool) -> None:
    """List the latency laws, their parameters and their formulas."""
    from latfit.laws import ParametricLaw, get_law, law_names
    from latfit.report.answers import laws_sections

    rows: list[dict[str, Any]] = []
    for name in law_names():
        law = get_law(name)
        facts: tuple[list[str], str, str | None] = [], "the Kaplan-Meier law of a log", None
        if issubclass(law, ParametricLaw):
            facts = [parameter.name for parameter in law.parameters], law.formula, law.examples[0]
        rows.append({"name": name, **dict(zip(("parameters", "formula", "example"), facts, strict=True))})
    cli.show({"laws": rows}, laws_sections(rows), as_json=as_json)


@cli.command
def formats(as_json: bool) -> None:
    """List the log formats that latfit reads."""
    from latfit.logs import FORMATS
    from latfit.report.answers import listed

    rows = {name: FORMATS[name].description for name in sorted(FORMATS)}
    document = {"formats": [{"name": name, "description": text} for name, text in rows.items()]}
    note = "Each may be compressed (gzip, bzip2, xz, zstandard, zip), and may come from standard input (-). The format "
    cli.show(document, listed(rows, f"{note}is recognised by content."), as_json=as_json)
