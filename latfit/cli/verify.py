"""`latfit verify`: predicted against measured."""

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
    read_arguments,
    say,
    seed_option,
    tell,
)


@click.command(
    epilog="""\b
Examples:
  latfit verify before.csv after.csv
  latfit verify before.csv after.csv --timeout 350ms
  latfit verify probes.jtl jobs.jtl --job request_id
  latfit verify before.txt after.txt --format sacct --job jobname --json"""
)
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option("--timeout", type=Seconds(), metavar="T", help="The timeout that was set (default: BEFORE's decision).")
@click.option(
    "--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that a restart was taken to cost."
)
@click.option("--job", metavar="COLUMN", help="AFTER's column that names the job (default: by its name).")
@click.option("--attempt", metavar="COLUMN", help="AFTER's column with the number of the attempt (default: by name).")
@cutoff_option
@failed_option
@log_options
@seed_option
@json_option
def verify(before: str, after: str, as_json: bool, **given: Any) -> None:
    """Did it work? What was predicted from BEFORE against what the jobs of AFTER took.

    BEFORE is the log that decided, one row a probe. AFTER is a log of jobs under that decision, one row an attempt,
    with a column that names the job. The options of a log are those of both.
    """
    from latfit.verify import read_attempts
    from latfit.verify import verify as compare

    earlier = load_log(before, given)
    later = read_attempts(after, **read_arguments(given))
    tell(later.facts)
    names = ("timeout", "cost", "job", "attempt", "cutoff", "failed", "seed")
    found = compare(earlier, later, **{name: given[name] for name in names})
    if as_json:
        print_json(found.to_dict())
        return
    for warning in found.warnings:
        say(f"warning: {warning}", err=True)
    for line in textwrap.wrap(found.sentence, 100):
        say(line)
    click.echo()
    for line in _table(found.to_dict()):
        say(line)


def _table(found: dict[str, Any]) -> list[str]:
    """Predicted, measured and before, side by side."""
    columns = [name for name in ("before", "predicted", "measured") if found[name]]
    lines = [f"{'':<24}" + "".join(f"{name:>14}" for name in columns)]
    cut = {"predicted": found["timeout"], "measured": next(iter(found["measured"]["cuts"]), None)}
    lines.append(f"{'timeout, s':<24}" + "".join(f"{_figure(cut.get(name)):>14}" for name in columns))
    rows = [("expected duration, s", "expected_duration"), ("  from", "low"), ("  to", "high")]
    rows += [("submissions per job", "submissions"), ("share undone", "undone")]
    for title, key in rows:
        lines.append(f"{title:<24}" + "".join(f"{_figure(found[name].get(key)):>14}" for name in columns))
    for q in ("0.5", "0.95", "0.99"):
        cells = "".join(f"{_quantile(found[name], q):>14}" for name in columns)
        lines.append(f"{float(q):.0%} of jobs within, s".ljust(24) + cells)
    return lines


def _quantile(part: dict[str, Any], q: str) -> str:
    return "not reached" if float(q) > 1 - (part["undone"] or 0.0) else _figure(part["quantiles"].get(q))


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
