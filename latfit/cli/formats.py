"""`latfit formats`: the log formats that can be read."""

import click

from latfit.cli.common import json_option, print_json


@click.command(epilog="\b\nExample:\n  latfit formats")
@json_option
def formats(as_json: bool) -> None:
    """List the log formats that latfit reads."""
    from latfit.logs import FORMATS

    rows = [{"name": f.name, "description": f.description} for f in sorted(FORMATS.values(), key=lambda f: f.name)]
    if as_json:
        print_json({"formats": rows})
        return
    listed = click.HelpFormatter(width=80)
    listed.write_dl([(row["name"], row["description"]) for row in rows])
    click.echo(listed.getvalue())
    click.echo("Each may be compressed (gzip, bzip2, xz, zstandard, zip),\nand may come from standard input (-).")
    click.echo("The format is recognised by content.")
