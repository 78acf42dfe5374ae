"""`latfit read`: what a log was taken for."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(epilog="\b\nExample:\n  latfit read requests.csv")
@cli.log_argument
@cli.log_options
@cli.json_option
def read(log: str, as_json: bool, **parsed: Any) -> None:
    """Show what each column of a log was taken for, its unit, why, and the option that changes it."""
    from latfit.report.answers import reading_document, reading_sections

    table = cli.load_log(log, parsed)
    document = reading_document(table)
    cli.show(document, reading_sections(document), as_json=as_json)
