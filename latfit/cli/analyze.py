"""`latfit analyze`: the main job, from a log to a decision."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    Seconds,
    column_names,
    document_text,
    json_option,
    load_log,
    log_argument,
    log_options,
    print_json,
    say,
    seed_option,
    wrong_usage,
)
from latfit.cli.deciding import cost_option, outcome_options
from latfit.cli.histograms import check_histogram_options, histogram_options, load_histogram, show_guarantee
from latfit.errors import HistogramFound

if TYPE_CHECKING:
    from latfit.analysis import Analysis


@click.command(
    epilog="""\b
Examples:
  latfit analyze probes.csv
  latfit analyze probes.csv --by site --current 60
  latfit analyze jobs.swf.gz --cost 30 --output report/
  latfit analyze probes.csv --json | jq .timeout.timeout"""
)
@log_argument
@outcome_options
@click.option(
    "--law", metavar="NAME", help="Recommend the timeout of this fitted law (default: of the data themselves)."
)
@cost_option
@click.option("--current", type=Seconds(), metavar="T", help="The timeout in use now, to see what it costs.")
@click.option("--by", metavar="COL[,COL]", help="One row for each value of these columns of the log.")
@click.option(
    "--resamples", type=click.IntRange(0), default=499, show_default=True, help="Bootstrap resamples; 0 for none."
)
@click.option("--markdown", is_flag=True, help="Print the report as Markdown.")
@click.option("-o", "--output", type=click.Path(), metavar="DIR",
              help="Write report.html, report.md, results.json and the figures into this folder.")  # fmt: skip
@click.option(
    "--figures", type=click.Choice(["png", "svg"]), default="png", show_default=True, help="How to draw them."
)
@seed_option
@histogram_options
@log_options
@json_option
def analyze(log: str, as_json: bool, markdown: bool, output: str | None, figures: str, **given: Any) -> None:
    """From a log to a decision: how long to wait, and how much faster that is.

    Reads the log, estimates the share of probes that never return, fits and tests latency laws, and
    recommends a timeout with its uncertainty, what it brings, and what to be careful about.
    """
    from latfit.analysis import analyze as analyse

    if as_json and markdown:
        raise click.UsageError("--json and --markdown exclude each other: one of them is printed")
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise click.BadParameter(f"{output}: this is a file; name a folder", param_hint="--output")
    if given["law"] is not None:
        _check_law(given["law"])
    by = column_names(given["by"])
    names = ("cutoff", "failed", "censoring", "law", "cost", "current", "resamples", "seed")
    asked = {name: given[name] for name in names}
    try:
        table = load_log(log, given)
        check_histogram_options(given)
    except HistogramFound as found:
        _refuse_for_histograms(given, markdown, output)
        show_guarantee(load_histogram(log, found, given), given["cost"], as_json, inside="timeout")
        return
    result = analyse(table, by=by, **asked)
    if output is not None:
        _write(result, output, figures)
    if as_json:
        print_json(result.to_dict())
    elif markdown:
        from latfit.report import to_markdown

        click.echo(to_markdown(result), nl=False)
    else:
        _print(result)


def _refuse_for_histograms(given: dict[str, Any], markdown: bool, output: str | None) -> None:
    """Options that would be ignored."""
    asked = {"--law": given["law"], "--current": given["current"], "--by": given["by"], "--cutoff": given["cutoff"],
             "--markdown": markdown, "--output": output}  # fmt: skip
    for name, value in asked.items():
        if value:
            raise click.UsageError(f"{name} needs a log of probes; it does not apply to a histogram")


def _check_law(name: str) -> None:
    from latfit.decision.recommend import law_named

    with wrong_usage("--law"):
        law_named(name)


def _print(result: Analysis) -> None:
    """The report; headings stand out on a terminal."""
    from latfit.report import to_text

    for line in to_text(result).splitlines():
        click.secho(line, bold=line.isupper() and not line.startswith(" "))


def _write(result: Analysis, output: str, ending: str) -> None:
    """Every file is written before the first one takes its place, and they do so together."""
    from pathlib import Path

    from latfit.files import whole_files
    from latfit.plots import FIGURES, draw_figure
    from latfit.report import to_html, to_markdown

    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    names = {f"{name}.{ending}": name for name in (*FIGURES, "summary")}
    texts = {
        "report.html": to_html(result),
        "report.md": to_markdown(result, figures=list(names)),
        "results.json": document_text(result.to_dict()) + "\n",
    }
    with whole_files([folder / name for name in (*names, *texts)]) as parts:
        for part, name in zip(parts, names.values(), strict=False):
            draw_figure(result, name, part, ending=ending)
        for part, text in zip(parts[len(names) :], texts.values(), strict=True):
            part.write_text(text, encoding="utf-8")
    say(f"note: wrote report.html, report.md, results.json and {len(names)} figures into {folder}", err=True)
