"""`latfit formats`: the log formats that can be read."""

import click

from latfit.cli import common as cli


@click.command(epilog="\b\nExample:\n  latfit formats")
@cli.json_option
def formats(as_json: bool) -> None:
    """List the log formats that latfit reads."""
    from latfit.logs import FORMATS
    from latfit.report import Section

    rows = [(name, FORMATS[name].description) for name in sorted(FORMATS)]
    notes = (
        "Each may be compressed (gzip, bzip2, xz, zstandard, zip), and may come from standard input (-). The format is "
        "recognised by content.",
    )
    document = {"formats": [{"name": name, "description": description} for name, description in rows]}
    cli.show(document, [Section(columns=("", ""), rows=tuple(rows)), Section("", notes)], as_json=as_json)
