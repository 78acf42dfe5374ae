"""`latfit drift`: did the log change, and what does the timeout of last week cost today?"""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit drift probes.csv
  latfit drift probes.csv --window 7d --current 60
  latfit drift probes.csv --by site --cost 5 --json
  latfit drift probes.csv -o drift.png"""
)
@cli.log_argument
@cli.option(
    "--window WIDTH", "Windows such as 1h, 1d or 7d (default: between the change points).", type=cli.window_width
)
@cli.by_option("Each group on its own too, by these columns of the log.")
@cli.cost_option
@cli.current_option
@cli.figure_option("Draw it over time too.", required=False)
@cli.cutoff_option
@cli.failed_option
@cli.seed_option
@cli.log_options
@cli.json_option
def drift(log: str, as_json: bool, output: str | None, **parsed: Any) -> None:
    """Say when a log changed and in what, and what following the change would have brought.

    Change points with their kind (scale, shape, outliers, failures) and significance, the daily and the weekly
    cycle, the timeout of each window with what keeping that of the window before costs, and a backtest in which
    every policy knows only what was known at the time.
    """
    from latfit.report.answers import drift_sections
    from latfit.tracking.drift import drift as find_drift

    table = cli.load_log(log, parsed)
    names = ("by", "window", "cost", "current", "cutoff", "failed", "seed")
    result = find_drift(table, **{name: parsed[name] for name in names})
    if output is not None:
        from latfit.plots import save_drift

        save_drift(table, result, output)
        cli.notify("note", [f"drew {output}"])
    cli.show(result.to_dict(), drift_sections(result), as_json=as_json)
    if not as_json:
        cli.notify("note", [f"{name}: {why}" for name, why in result.refused.items()])
