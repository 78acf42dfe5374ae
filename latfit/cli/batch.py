"""`latfit batch`: one row of results a group, over any number of logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from latfit._system import if_stopped
from latfit.cli import common as cli


@cli.command
@click.pass_context
def batch(ctx: click.Context, /, logs: tuple[str, ...], output: Path, resume: bool, **parsed: Any) -> None:
    """Many logs to one table: a row of results for each group.

    A group's probes may be spread over many logs. A log that cannot be read, or a group that is too small, is a row
    with the reason in `error`. With --law, laws are fitted and a row is one fit. Finished rows are kept in OUT.journal
    until the table is written.
    """
    from latfit.batch import check_ending, check_output, run_batch, write_table
    from latfit.report.answers import batch_summary

    engine = parsed["engine"] or ("dask" if parsed["scheduler"] else "processes")
    if parsed["scheduler"] and (engine == "processes" or parsed["workers"]):
        raise click.UsageError("--scheduler is for the dask engine, which has its own workers")
    journal = output.with_name(output.name + ".journal")
    if journal.exists() and not resume:
        cli.notify("note", [f"{journal} of an unfinished run is replaced"])
    with cli.wrong_usage("--output"):
        check_ending(output)
    check_output(output)
    how = cli.read_arguments(parsed)
    run = {name: value for name, value in parsed.items() if name not in ("column", "status", "spreadsheet", "strict")}
    run |= {"by": parsed["by"] or (), "laws": parsed["laws"] or None}
    run |= {"method": parsed["method"] or ("mle" if parsed["laws"] else None)}
    run |= {**how, "engine": engine, "journal": journal, "resume": resume, "leave_out": [output, journal]}

    def what_is_kept() -> str:
        return f"; finished rows are in {journal}: continue with --resume" if journal.exists() else ""

    with if_stopped(what_is_kept), cli.progress.reports(_progress_text()) as report:
        result = run_batch(logs, progress=report, **run)
        write_table(result, output, spreadsheet=parsed["spreadsheet"])
    journal.unlink(missing_ok=True)
    warnings, summary = batch_summary(result)
    cli.notify("note", result.notes)
    cli.notify("warning", warnings)
    cli.say(f"{output}: {summary}", err=True)
    if parsed["strict"] and (result.bad_files or result.bad_groups):
        ctx.exit(1)


def _progress_text() -> Callable[[str, int, int], str]:
    starts: dict[str, tuple[float, int]] = {}

    def text(stage: str, done: int, total: int) -> str:
        start, first = starts.setdefault(stage, (time.monotonic(), done))
        rate = (done - first) / max(time.monotonic() - start, 1e-3)
        left = f", {rate:.3g}/s, {time.strftime('%H:%M:%S', time.gmtime((total - done) / rate))} left" if rate else ""
        return f"{stage}: {done} of {total}{left}"

    return text
