"""`latfit analyze`: the main job, from a log to a decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

import latfit
from latfit.cli import common as cli
from latfit.cli.timeout import check_histogram_options, show_guarantee


@cli.command
def analyze(log: str, as_json: bool, full: bool, output: str | None, figures: str, **parsed: Any) -> None:
    """From a log to a decision: how long to wait, and how much faster that is.

    Reads the log, estimates the share of probes that never return, and recommends a schedule with its
    uncertainty, what it brings, and what to be careful about. --full, --json, --markdown and --output
    also fit and test latency laws.
    """
    from latfit.decision.recommend import law_named
    from latfit.logs import HistogramLog
    from latfit.report.sections import BRIEF_GROUPS, MAX_GROUPS, sections, to_markdown

    if as_json and parsed["markdown"]:
        raise click.UsageError("--json and --markdown exclude each other")
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise click.BadParameter(f"{output}: this is a file; name a folder", param_hint="--output")
    if parsed["law"] is not None:
        with cli.wrong_usage("--law"):
            law_named(parsed["law"])
    probes = cli.open_log(log, parsed)
    if isinstance(probes, HistogramLog):
        for name in ("law", "current", "by", "cutoff", "markdown"):
            if parsed[name]:
                raise click.UsageError(f"--{name} needs a log of probes; it does not apply to a histogram")
        show_guarantee(probes, parsed, as_json, output=output, inside="timeout")
        return
    check_histogram_options(parsed)
    if not (full or as_json or parsed["markdown"] or output):
        parsed["laws"] = ()  # the short text names no law
    result = latfit.analyze(probes, by=parsed["by"] or (), **vars(cli.call(latfit.Options, **parsed)))
    if output is not None:
        _write_report(result, Path(output), figures)
    if parsed["markdown"]:
        click.echo(to_markdown(result), nl=False)
    else:
        shown = sections(result, full=full, groups=MAX_GROUPS if parsed["by"] else BRIEF_GROUPS)
        cli.show(result.to_dict() if as_json else {}, shown, as_json=as_json)


def _write_report(result: latfit.Analysis, folder: Path, ending: str) -> None:
    from latfit.plots import FIGURES, draw_figure
    from latfit.report.page import to_html
    from latfit.report.sections import to_markdown

    names = {f"{name}.{ending}": name for name in (*FIGURES, "overview", "summary")}
    files: dict[str, str | Callable[[Path], None]] = {
        "report.html": to_html(result),
        "report.md": to_markdown(result, figures=tuple(names)),
        "results.json": cli.document_text(result.to_dict()) + "\n",
    }
    files |= {file: partial(draw_figure, result, name, ending=ending) for file, name in names.items()}
    cli.write_together(folder, files)
