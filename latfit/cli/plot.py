"""`latfit plot`: the figures of an analysis."""

from __future__ import annotations

import os
from typing import Any

import click

from latfit.cli.common import (
    Seconds,
    cutoff_option,
    failed_option,
    load_log,
    log_argument,
    log_options,
    say,
    seed_option,
)

FIGURES = ("summary", "expected-duration", "frontier", "completion", "jobs-tail", "cdf", "survival", "qq", "ratio",
           "time", "strategies")  # fmt: skip
ENDINGS = (".png", ".svg", ".pdf")


@click.command(
    epilog="""\b
Examples:
  latfit plot probes.csv -o summary.png
  latfit plot probes.csv --figure expected-duration -o figure11.pdf"""
)
@log_argument
@click.option("-o", "--output", required=True, type=click.Path(), metavar="FILE.png|svg|pdf",
              help="Where to draw; the ending says how.")  # fmt: skip
@click.option(
    "--figure", "name", type=click.Choice(FIGURES), default="summary", show_default=True, help="Which figure."
)
@cutoff_option
@failed_option
@click.option("--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that each restart costs.")
@seed_option
@log_options
def plot(log: str, output: str, name: str, **given: Any) -> None:
    """Draw the figures of an analysis.

    They are E_J against the timeout and against the load, jobs done and not yet done, the cdf, the tail, quantiles,
    the outlier ratio, the latencies over the calendar, and jobs not yet done under other strategies.
    """
    from latfit.analysis import analyze
    from latfit.plots import save_figure

    if os.path.splitext(output)[1] not in ENDINGS:  # noqa: PTH122
        raise click.BadParameter(f"{output}: the ending must be one of {', '.join(ENDINGS)}", param_hint="-o")
    asked = {key: given[key] for key in ("cutoff", "failed", "cost", "seed")}
    save_figure(analyze(load_log(log, given), test=False, **asked), name, output)
    say(f"{output}: {name}")
