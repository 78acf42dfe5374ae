"""`latfit batch`: one row of results a group, over any number of logs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    ProgressLine,
    Width,
    column_names,
    log_options,
    read_arguments,
    say,
    seed_option,
    wrong_usage,
)
from latfit.cli.deciding import cost_option, outcome_options
from latfit.stopping import if_stopped

if TYPE_CHECKING:
    from latfit.batch import BatchResult

NAMED = 20  # at most this many logs or groups are named on stderr; the rows have them all


@click.command(
    epilog="""\b
Examples:
  latfit batch logs/ --by site -o sites.csv
  latfit batch 'logs/2026-*.csv.gz' --by site,queue --window 7d -o weeks.parquet
  latfit batch logs/ --by file -o logs.jsonl --resume
  latfit batch /shared/logs --by site -o sites.parquet --scheduler tcp://head:8786"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True)
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), metavar="OUT.parquet|csv|jsonl",
              help="Where to write; the ending says how.")  # fmt: skip
@click.option("--by", metavar="COL[,COL]", help="One row for each value of these columns; `file` is the log's name.")
@click.option(
    "--window",
    type=Width(whole=True),
    metavar="WIDTH",
    help="And one for each window of time: 1h, 1d, 7d; tells what drifts.",
)
@outcome_options
@cost_option
@click.option(
    "--resamples", type=click.IntRange(0), default=499, show_default=True,
    help="Bootstrap resamples for the intervals; 0 for none, which is many times faster.",
)  # fmt: skip
@click.option("--test/--no-test", default=None, help="Test the best law of each group (default: up to 200 groups).")
@seed_option
@click.option("--engine", type=click.Choice(["processes", "dask"]), help="Where to work (default: processes).")
@click.option(
    "--scheduler", metavar="ADDR", help="The address of a Dask scheduler (default: a cluster on this machine)."
)
@click.option("--workers", type=click.IntRange(1), metavar="N", help="How many processes (default: one a core).")
@click.option("--resume", is_flag=True, help="Go on with a run that was killed: OUT.journal has what it finished.")
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="Put ' before texts of the table that a spreadsheet would run as formulas (=, +, -, @).",
)
@click.option("--strict", is_flag=True, help="Exit with 1 if a log or a group could not be analysed.")
@log_options
@click.pass_context
def batch(
    ctx: click.Context,
    /,
    logs: tuple[str, ...],
    output: Path,
    resume: bool,
    strict: bool,
    spreadsheet: bool,
    engine: str | None,
    **given: Any,
) -> None:
    """Many logs to one table: a row of results for each group.

    A group's probes may be spread over many logs. A log that cannot be read or a group that is too small
    is a row that says so in `error`. What is finished is kept in OUT.journal until the table is written.
    """
    if given["scheduler"] and (engine == "processes" or given["workers"]):
        raise click.UsageError("--scheduler is for the dask engine, whose scheduler knows its workers")
    journal = output.with_name(output.name + ".journal")
    if journal.exists() and not resume:
        say(f"note: {journal} of a run that did not finish is replaced", err=True)
    by = column_names(given["by"])
    names = ("window", "cutoff", "failed", "censoring", "cost", "resamples", "test", "seed", "scheduler", "workers")
    asked = {name: given[name] for name in names}
    from latfit.batch import check_ending, check_output, run_batch, write_table

    def kept() -> str:
        return f"; what is finished is in {journal}: go on with --resume" if journal.exists() else ""

    with wrong_usage("--output"):
        check_ending(output)
    check_output(output)
    with if_stopped(kept), Working() as progress:
        result = run_batch(
            logs, by=by, engine=engine or ("dask" if given["scheduler"] else "processes"), journal=journal,
            resume=resume, leave_out=[output, journal], progress=progress, **asked, **read_arguments(given),
        )  # fmt: skip
        write_table(result, output, spreadsheet=spreadsheet)
    journal.unlink(missing_ok=True)
    _summarise(result, output)
    if strict and (result.bad_files or result.bad_groups):
        ctx.exit(1)


def _summarise(result: BatchResult, output: Path) -> None:
    """On stderr: how much there is, and what went wrong, by name."""
    for note in result.notes:
        say(f"note: {note}", err=True)
    if result.refused:
        say(f"warning: rows refused: {result.refused}", err=True)
    for what, bad in (("logs could not be read", result.bad_files), ("groups have no timeout", result.bad_groups)):
        if bad:
            say(f"warning: {what}: {len(bad)}", err=True)
        for name, reason in bad[:NAMED]:
            say(f"  {reason if name in reason else f'{name}: {reason}'}", err=True)
        if len(bad) > NAMED:
            say(f"  and {len(bad) - NAMED} more: see the rows with an error", err=True)
    groups = len(result.rows) - len(result.bad_files)
    decided = sum(row.get("timeout") is not None for row in result.rows)
    withheld = sum(row.get("verdict") == "withheld" for row in result.rows)
    told = f", withheld: {withheld}" if withheld else ""
    say(f"{output}: groups: {groups}, with a timeout: {decided}{told}", err=True)


class Working(ProgressLine):
    """How much is done, how fast, and how long it will take."""

    stage, first = "", 0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage has come."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.start, self.first = stage, now, done
        if done > self.first:
            rate = (done - self.first) / max(now - self.start, 1e-3)
            left = time.strftime("%H:%M:%S", time.gmtime((total - done) / rate))
            self.show(f"{stage}: {done} of {total}, {rate:.3g}/s, {left} left")
