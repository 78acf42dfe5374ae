"""`latfit batch`: one row of results a group, over any number of logs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from latfit._system import if_stopped
from latfit.cli import common as cli


def _whole_seconds(text: str) -> str:
    if cli.positive_duration(text) % 1:
        raise click.BadParameter(f"{text!r} is not a time window: use whole seconds, such as 90s, 1h or 7d")
    return text


@cli.command(
    "latfit batch logs/ --by site -o sites.csv",
    "latfit batch 'logs/2026-*.csv.gz' --by site,queue --window 7d -o weeks.parquet",
    "latfit batch logs/ --by file -o logs.jsonl --resume",
    "latfit batch logs/ --by site --window 7d --law lognormal --law weibull --method ls -o fits.parquet",
    "latfit batch /shared/logs --by site -o sites.parquet --scheduler tcp://head:8786",
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@cli.option("-o --output OUT.parquet|csv|jsonl", "Where to write; the ending says how.", required=True)
@cli.option("--by COL[,COL]", "One row for each value of these columns; `file` is the log's name.", default="")
@cli.option("--window WIDTH", "And one for each window of time: 1h, 1d, 7d; shows what drifts.", type=_whole_seconds)
@cli.option("--law NAME...", "Fit this law to each group: then a row is a group and a law.", "laws")
@cli.option("--method [mle|ls]", "How to fit it: censored likelihood, or least squares on the cdf (default: mle).")
@cli.decision_options
@cli.option("--test/--no-test", "Test the best law of each group (default: up to 200 groups).", default=None)
@cli.option("--engine [processes|dask]", "Where to work (default: processes).")
@cli.option("--scheduler ADDR", "The address of a Dask scheduler (default: a cluster on this machine).")
@cli.option("--workers N", "How many processes (default: one a core).")
@cli.option("--resume", "Go on with a run that was killed: OUT.journal has what it finished.")
@cli.spreadsheet_option
@cli.option("--strict", "Exit with 1 if a log or a group could not be analysed.")
@cli.log_options
@click.pass_context
def batch(ctx: click.Context, /, logs: tuple[str, ...], output: Path, resume: bool, **parsed: Any) -> None:
    """Many logs to one table: a row of results for each group.

    A group's probes may be spread over many logs. A log that cannot be read or a group that is too small
    is a row that says so in `error`. With --law, laws are fitted and a row is one fit. What is finished is kept in
    OUT.journal until the table is written.
    """
    from latfit.batch import check_ending, check_output, run_batch, write_table
    from latfit.report.answers import batch_summary

    engine = parsed["engine"] or ("dask" if parsed["scheduler"] else "processes")
    if parsed["scheduler"] and (engine == "processes" or parsed["workers"]):
        raise click.UsageError("--scheduler is for the dask engine, whose scheduler knows its workers")
    journal = output.with_name(output.name + ".journal")
    if journal.exists() and not resume:
        cli.notify("note", [f"{journal} of a run that did not finish is replaced"])
    with cli.wrong_usage("--output"):
        check_ending(output)
    check_output(output)
    how = cli.read_arguments(parsed)
    run = {name: value for name, value in parsed.items() if name not in ("column", "status", "spreadsheet", "strict")}
    run |= {"laws": run["laws"] or None, "method": run["method"] or ("mle" if run["laws"] else None)}
    run |= {**how, "engine": engine, "journal": journal, "resume": resume, "leave_out": [output, journal]}

    def what_is_kept() -> str:
        return f"; what is finished is in {journal}: go on with --resume" if journal.exists() else ""

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
