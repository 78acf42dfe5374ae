"""`latfit convert`: any log as the canonical table."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit convert jobs.swf.gz -o jobs.parquet
  sacct --parsable2 ... | latfit convert - -o jobs.csv"""
)
@cli.log_argument
@cli.option("-o --output FILE.csv|parquet|jsonl", "Where to write; the ending says how.", required=True)
@cli.spreadsheet_option
@cli.log_options
@cli.json_option
def convert(log: str, output: str, spreadsheet: bool, as_json: bool, **parsed: Any) -> None:
    """Write a log as the canonical table.

    Its columns are submitted (UTC), latency (s), status, and the log's own.
    """
    from latfit.logs.convert import WRITERS, convert_log
    from latfit.report.answers import converted_section

    if not output.endswith(tuple(WRITERS)):
        raise click.BadParameter(f"the ending of {output!r} must be one of {', '.join(WRITERS)}", param_hint="-o")
    with cli.Reading() as progress:
        facts, counts = convert_log(
            log, output, spreadsheet=spreadsheet, progress=progress, **cli.read_arguments(parsed)
        )
    cli.notify_reading(facts)
    refused = {"refused": facts.refused.to_list(), "refused_count": facts.refused.count}
    document = {"output": output, "format": facts.format, "probes": sum(counts.values()), **counts, **refused}
    cli.show(document, [converted_section(output, facts, counts)], as_json=as_json)
