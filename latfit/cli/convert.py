"""`latfit convert`: any log as the canonical table."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli.common import Reading, json_option, log_argument, log_options, print_json, read_arguments, say, tell
from latfit.errors import counted


@click.command(
    epilog="""\b
Examples:
  latfit convert jobs.swf.gz -o jobs.parquet
  sacct --parsable2 ... | latfit convert - -o jobs.csv"""
)
@log_argument
@click.option("-o", "--output", required=True, type=click.Path(), metavar="FILE.csv|parquet|jsonl",
              help="Where to write; the ending says how.")  # fmt: skip
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="Put ' before texts of the table that a spreadsheet would run as formulas (=, +, -, @).",
)
@log_options
@json_option
def convert(log: str, output: str, spreadsheet: bool, as_json: bool, **given: Any) -> None:
    """Write a log as the canonical table.

    Its columns are submitted (UTC), latency (s), status, and the log's own.
    """
    from latfit.logs.convert import WRITERS, convert_log

    if not output.endswith(tuple(WRITERS)):
        raise click.BadParameter(f"the ending of {output!r} must be one of {', '.join(WRITERS)}", param_hint="-o")
    with Reading() as progress:
        facts, counts = convert_log(log, output, spreadsheet=spreadsheet, progress=progress, **read_arguments(given))
    tell(facts)
    if as_json:
        print_json({"output": output, "format": facts.format, "probes": sum(counts.values()), **counts,
                    "refused": facts.refused.to_list(), "refused_count": facts.refused.count})  # fmt: skip
        return
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    say(f"{output}: {counted(sum(counts.values()), 'probe')} ({told}) from {facts.path} ({facts.format})")
