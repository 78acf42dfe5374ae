"""`latfit verify`: predicted against measured."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit verify before.csv after.csv
  latfit verify before.csv after.csv --timeout 350ms
  latfit verify probes.jtl jobs.jtl --job request_id
  latfit verify before.txt after.txt --format sacct --job jobname --json"""
)
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@cli.option("--timeout T", "The timeout that was set (default: BEFORE's decision).")
@cli.option("--cost C", "Seconds that a restart was taken to cost.", default=0.0)
@cli.option("--job COLUMN", "AFTER's column that names the job (default: by its name).")
@cli.option("--attempt COLUMN", "AFTER's column with the number of the attempt (default: by name).")
@cli.cutoff_option
@cli.failed_option
@cli.log_options
@cli.seed_option
@cli.json_option
def verify(before: str, after: str, as_json: bool, **parsed: Any) -> None:
    """Did it work? What was predicted from BEFORE against what the jobs of AFTER took.

    BEFORE is the log that decided, one row a probe. AFTER is a log of jobs under that decision, one row an attempt,
    with a column that names the job. The options of a log are those of both.
    """
    from latfit.report.answers import verify_sections
    from latfit.verify import read_attempts
    from latfit.verify import verify as compare

    earlier = cli.load_log(before, parsed)
    later = read_attempts(after, **cli.read_arguments(parsed))
    cli.notify_reading(later.facts)
    names = ("timeout", "cost", "job", "attempt", "cutoff", "failed", "seed")
    result = compare(earlier, later, **{name: parsed[name] for name in names})
    cli.show(result.to_dict(), verify_sections(result), as_json=as_json, warnings=result.warnings)
