"""`latfit settings`: what to write into a tool."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit settings
  latfit settings haproxy probes.csv
  latfit settings curl probes.csv --undone 0.01
  latfit settings nginx --timeout 350ms --attempts 3
  latfit settings tenacity probes.csv --cost 1 --json"""
)
@click.argument("tool", metavar="[TOOL]", required=False)
@click.argument("log", metavar="[LOG]", required=False)
@cli.option("--timeout T", "The timeout to write, instead of the log's decision.")
@cli.option("--attempts K", "Attempts for a job (default: from --undone).")
@cli.option(
    "--undone SHARE",
    "The share of jobs that may stay undone after the last attempt.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.001,
)
@cli.option(
    "--cost C",
    "Seconds between giving up an attempt and the next; written where the tool can wait.",
    default=0.0,
)
@cli.cutoff_option
@cli.failed_option
@cli.log_options
@cli.json_option
def settings(tool: str | None, log: str | None, as_json: bool, **parsed: Any) -> None:
    """Write a decision in the words of a tool: what to paste, how often it tries, and what to know.

    TOOL is one of those that `latfit settings` lists. The timeout is decided from LOG, with the tool's own waits as
    the cost of a restart, or given with --timeout.
    """
    from latfit.report.answers import settings_sections, tools_section
    from latfit.settings import TOOLS, get_tool, settings_for

    if tool is None:
        tools = [TOOLS[name] for name in sorted(TOOLS)]
        facts = ("name", "title", "unit", "counts", "limits", "validated")
        document = {"tools": [{fact: getattr(each, fact) for fact in facts} for each in tools]}
        cli.show(document, [tools_section(tools)], as_json=as_json)
        return
    with cli.wrong_usage("TOOL"):
        get_tool(tool)
    if log is None and parsed["timeout"] is None:
        raise click.UsageError("give a LOG that decides, or the timeout to write with --timeout")
    names = ("timeout", "attempts", "undone", "cost", "cutoff", "failed")
    table = None if log is None else cli.load_log(log, parsed)
    result = settings_for(tool, table, **{name: parsed[name] for name in names})
    cli.show(result.to_dict(), settings_sections(result), as_json=as_json)
