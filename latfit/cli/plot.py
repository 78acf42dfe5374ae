"""`latfit plot`: the figures of an analysis."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli

FIGURE_NAMES = ["summary", "expected-duration", "frontier", "completion", "jobs-tail", "cdf", "survival", "qq"]
FIGURE_NAMES += ["ratio", "time", "strategies"]


@click.command(
    epilog="""\b
Examples:
  latfit plot probes.csv -o summary.png
  latfit plot probes.csv --figure expected-duration -o figure11.pdf"""
)
@cli.log_argument
@cli.figure_option("Where to draw; the ending says how.", required=True)
@cli.option(f"--figure [{'|'.join(FIGURE_NAMES)}]", "Which figure.", "name", default="summary")
@cli.cutoff_option
@cli.failed_option
@cli.cost_option
@cli.seed_option
@cli.log_options
def plot(log: str, output: str, name: str, **parsed: Any) -> None:
    """Draw the figures of an analysis.

    They are E_J against the timeout and against the load, jobs done and not yet done, the cdf, the tail, quantiles,
    the outlier ratio, the latencies over the calendar, and jobs not yet done under other strategies.
    """
    from latfit.analysis import analyze
    from latfit.plots import save_figure

    options = {key: parsed[key] for key in ("cutoff", "failed", "cost", "seed")}
    save_figure(analyze(cli.load_log(log, parsed), test=False, **options), name, output)
    cli.say(f"{output}: {name}")
