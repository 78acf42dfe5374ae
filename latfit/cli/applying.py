"""`latfit settings`: a decision as the settings of a tool; `latfit verify`: prediction against measurement."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@cli.command
def settings(tool: str | None, log: str | None, as_json: bool, **parsed: Any) -> None:
    """Write a decision as the settings of a tool, to paste.

    `latfit settings` alone lists the tools. The timeout is decided from LOG, with the tool's own waits as the cost of
    a restart, or given with --timeout.
    """
    from latfit.report.answers import listed, settings_sections
    from latfit.settings import TOOLS, get_tool, settings_for

    if tool is None:
        tools = [TOOLS[name] for name in sorted(TOOLS)]
        facts = ("name", "title", "unit", "counts", "limits", "validated")
        document = {"tools": [{fact: getattr(each, fact) for fact in facts} for each in tools]}
        rows = {each.name: f"{each.title}: {each.validated}" for each in tools}
        cli.show(document, listed(rows), as_json=as_json)
        return
    with cli.wrong_usage("TOOL"):
        get_tool(tool)
    if log is None and parsed["timeout"] is None:
        raise click.UsageError("give a LOG to decide from, or a timeout with --timeout")
    result = cli.call(settings_for, tool, None if log is None else cli.load_log(log, parsed), **parsed)
    cli.show(result.to_dict(), settings_sections(result), as_json=as_json)


@cli.command
def verify(before: str, after: str, as_json: bool, **parsed: Any) -> None:
    """Did it work? Compare the prediction from BEFORE with the jobs of AFTER.

    BEFORE is the log that the decision was based on, one row a probe. AFTER is a log of jobs under that decision, one
    row an attempt, with a column that names the job. The prediction is for the schedule of BEFORE, or for its timeout,
    unless AFTER shows that others were set. Log options apply to both.
    """
    from latfit.report.answers import verify_sections
    from latfit.verify import read_attempts
    from latfit.verify import verify as compare

    earlier = cli.load_log(before, parsed)
    later = read_attempts(after, **cli.read_arguments(parsed))
    cli.notify_reading(later.facts)
    result = cli.call(compare, earlier, later, **parsed)
    if not as_json:
        cli.notify("warning", result.warnings)
    cli.show(result.to_dict(), verify_sections(result), as_json=as_json)
