"""`latfit settings`: what to write into a tool."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from latfit.cli.common import (
    Seconds,
    cutoff_option,
    failed_option,
    json_option,
    load_log,
    log_options,
    print_json,
    say,
    wrong_usage,
)


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
@click.option("--timeout", type=Seconds(), metavar="T", help="The timeout to write, instead of the log's decision.")
@click.option("--attempts", type=click.IntRange(1), metavar="K", help="Attempts for a job (default: from --undone).")
@click.option("--undone", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.001, show_default=True,
              metavar="SHARE", help="The share of jobs that may stay undone after the last attempt.")  # fmt: skip
@click.option("--cost", type=Seconds(zero=True), default=0.0, metavar="C",
              help="Seconds between giving up an attempt and the next; written where the tool can wait.")  # fmt: skip
@cutoff_option
@failed_option
@log_options
@json_option
def settings(tool: str | None, log: str | None, as_json: bool, **given: Any) -> None:
    """Write a decision in the words of a tool: what to paste, how often it tries, and what to know.

    TOOL is one of those that `latfit settings` lists. The timeout is decided from LOG, with the tool's own waits as
    the cost of a restart, or given with --timeout.
    """
    from latfit.settings import settings_for

    if tool is None:
        _list(as_json)
        return
    _known(tool)
    if log is None and given["timeout"] is None:
        raise click.UsageError("give a LOG that decides, or the timeout to write with --timeout")
    wanted = {name: given[name] for name in ("timeout", "attempts", "undone", "cost", "cutoff", "failed")}
    found = settings_for(tool, None if log is None else load_log(log, given), **wanted)
    if as_json:
        print_json(found.to_dict())
        return
    _say_notes(found.warnings)
    if found.snippet is not None:
        if found.warnings:
            click.echo()
        for line in found.snippet.split("\n"):
            say(line)
        click.echo()
    _say_notes(found.notes[len(found.warnings) :])
    say(f"- validated: {found.validated}")


def _say_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        for line in textwrap.wrap(note, 100, initial_indent="- ", subsequent_indent="  "):
            say(line)


def _known(tool: str) -> None:
    from latfit.settings import get_tool

    with wrong_usage("TOOL"):
        get_tool(tool)


def _list(as_json: bool) -> None:
    """The tools that there are."""
    from latfit.settings import TOOLS

    known = [TOOLS[name] for name in sorted(TOOLS)]
    if as_json:
        facts = ("name", "title", "unit", "counts", "limits", "validated")
        print_json({"tools": [{fact: getattr(tool, fact) for fact in facts} for tool in known]})
        return
    listed = click.HelpFormatter(width=80)
    listed.write_dl([(tool.name, f"{tool.title}. Validated: {tool.validated}") for tool in known])
    click.echo(listed.getvalue(), nl=False)
