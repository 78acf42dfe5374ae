"""`latfit drift`: did the log change, and what does the timeout of last week cost today?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    Seconds,
    Width,
    column_names,
    cutoff_option,
    failed_option,
    json_option,
    load_log,
    log_argument,
    log_options,
    print_json,
    say,
    seed_option,
)
from latfit.errors import counted
from latfit.units import seconds

if TYPE_CHECKING:
    from latfit.evidence.changes import Change
    from latfit.tracking.drift import Drift
    from latfit.tracking.windows import Window

ENDINGS = (".png", ".svg", ".pdf")
POLICIES = {
    "fixed": "set once, at the start", "pooled": "from all that was known", "tracked": "followed",
    "current": "the one in use", "waiting": "none, until the cutoff", "hindsight": "the best one, in hindsight",
}  # fmt: skip
WINDOW = ("from (UTC)", "probes", "still out", "timeout", "95 % interval", "E_J", "last kept")
SHOWN = 30  # windows and changes in the text; all are in the JSON


@click.command(
    epilog="""\b
Examples:
  latfit drift probes.csv
  latfit drift probes.csv --window 7d --current 60
  latfit drift probes.csv --by site --cost 5 --json
  latfit drift probes.csv -o drift.png"""
)
@log_argument
@click.option(
    "--window", type=Width(), metavar="WIDTH", help="Windows such as 1h, 1d or 7d (default: between the change points)."
)
@click.option("--by", metavar="COL[,COL]", help="Each group on its own too, by these columns of the log.")
@click.option("--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that each restart costs.")
@click.option("--current", type=Seconds(), metavar="T", help="The timeout in use now, to see what it costs.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE.png|svg|pdf", help="Draw it over time too.")
@cutoff_option
@failed_option
@seed_option
@log_options
@json_option
def drift(log: str, as_json: bool, output: str | None, **given: Any) -> None:
    """Say when a log changed and in what, and what following the change would have brought.

    Change points with their kind (scale, shape, outliers, failures) and significance, the daily and the weekly
    cycle, the timeout of each window with what keeping that of the window before costs, and a backtest in which
    every policy knows only what was known at the time.
    """
    from latfit.tracking.drift import drift as find

    if output is not None and os.path.splitext(output)[1] not in ENDINGS:  # noqa: PTH122
        raise click.BadParameter(f"{output}: the ending must be one of {', '.join(ENDINGS)}", param_hint="-o")
    by = column_names(given["by"])
    asked = {key: given[key] for key in ("window", "cost", "current", "cutoff", "failed", "seed")}
    table = load_log(log, given)
    found = find(table, by=by, **asked)
    if output is not None:
        from latfit.plots import save_drift

        save_drift(table, found, output)
        say(f"note: drew {output}", err=True)
    if as_json:
        print_json(found.to_dict())
        return
    _print(found)
    for group in found.groups:
        click.echo()
        say(f"{', '.join(f'{name} {value}' for name, value in group.key.items())}")
        _print(group)
    for name, why in found.refused.items():
        say(f"note: {name}: {why}", err=True)


def _print(found: Drift) -> None:
    """What changed, the windows, the backtest, and what to be careful about."""
    from latfit.report import text_table

    changes = found.changes.changes
    if not changes:
        say(f"Nothing changed: no change point in {counted(found.probes, 'probe')}.")
    else:
        say(f"{counted(len(changes), 'change')} in {counted(found.probes, 'probe')}:")
    for change in changes[:SHOWN]:
        say(f"  {_change(change)}")
    for name, cycle in (("hour of the day", found.changes.daily), ("day of the week", found.changes.weekly)):
        if cycle is not None:
            say(f"The slowest {name} is {cycle.ratio:.2g} times slower than the fastest (p = {cycle.p_value:.2g}).")
    click.echo()
    for line in text_table(WINDOW, [_window(window) for window in found.windows[-SHOWN:]]):
        say(f"  {line}")
    if any(window.kept_regret is not None for window in found.windows):
        say("  last kept: what keeping the timeout of the window before costs")
    if len(found.windows) > SHOWN:
        say(f"  the last {SHOWN} of {len(found.windows)} windows; all are in --json")
    if found.backtest is not None:
        click.echo()
        say("Backtest, each with only what was known at the time:")
        for score in found.backtest.scores:
            about = f"{seconds(score.expected_duration):>12} a job, {score.submissions:.2f} submissions"
            say(f"  {score.policy:<10} {about}   ({POLICIES[score.policy]})")
    for warned in found.warnings:
        say(f"warning: {warned.message}")


def _change(change: Change) -> str:
    from latfit.tracking.windows import iso

    before, after = change.median
    when = f"after {counted(change.index, 'probe')}" if change.at is None else iso(change.at)
    told = f"{when}  {change.kind:<9} "
    told += f"p = {change.p_value:.1g}"
    if before is not None and after is not None:
        told += f"; median {seconds(before)} → {seconds(after)}"
    return f"{told}; not completed {change.ratio[0]:.1%} → {change.ratio[1]:.1%}"


def _short(time: str) -> str:
    """The day, or where a window begins within one, month, day and minute."""
    return time[:10] if time[11:19] == "00:00:00" else f"{time[5:10]} {time[11:16]}"


def _window(window: Window) -> tuple[str, ...]:
    from latfit.report.sentences import between, percent
    from latfit.tracking.windows import iso

    return (
        _short(iso(window.start)),
        str(window.probes),
        percent(window.ratio),
        "none" if window.timeout is None else seconds(window.timeout),
        "" if window.low is None else between(window.low, window.high),
        "" if window.expected_duration is None else seconds(window.expected_duration),
        "" if window.kept_regret is None else f"{100 * window.kept_regret:+.1f} %",
    )
