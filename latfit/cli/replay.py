"""`latfit replay`: what the log itself says a timeout would have brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import Seconds, json_option, load_log, log_argument, log_options, print_json, say, seed_option
from latfit.cli.deciding import asked, cost_option, outcome_options

if TYPE_CHECKING:
    from latfit.evidence import Replay


@click.command(
    epilog="""\b
Examples:
  latfit replay probes.csv
  latfit replay probes.csv --at 60 --at 5m --cost 2
  latfit replay jobs.swf.gz --by queue --json"""
)
@log_argument
@click.option("--at", "at", type=Seconds(), multiple=True, metavar="T", help="A timeout to replay; may be repeated.")
@cost_option
@click.option("--by", metavar="COL", help="Resubmit a job into its own group of this column.")
@outcome_options
@seed_option
@log_options
@json_option
def replay(log: str, at: tuple[float, ...], by: str | None, as_json: bool, **given: Any) -> None:
    """Replay timeouts on the log itself: no formula, no independence.

    A job whose probe is not back in time is resubmitted, and takes the latency of the next probe that the
    log shows submitted from then on. Drift and dependence are in it, because they are in the log.
    """
    from latfit.decision import prepare
    from latfit.evidence import Observations, mixing, require_times
    from latfit.evidence import replay as replayed
    from latfit.evidence.observations import group_column

    table = load_log(log, given)
    found = prepare(Observations.of(table), asked(given))
    assert found.seen is not None
    require_times(found.seen)
    groups = None if by is None else group_column(table, by)
    if groups is None and (mixed := mixing(found.seen)) is not None:
        groups, name = mixed.column.codes, mixed.column.name
        say(f"warning: the log mixes different populations: a job is resubmitted into its own {name} (--by {name}), "
            "and one timeout for all may not suit each; see latfit analyze", err=True)  # fmt: skip
    result = replayed(found.seen, found.cutoff.cutoff, at=at, cost=given["cost"], groups=groups, seed=given["seed"])
    assert result is not None
    if as_json:
        print_json(result.to_dict())
    else:
        _print(result)


def _print(result: Replay) -> None:
    """The best, then a table."""
    from latfit.units import seconds

    best, waiting = result.best, result.waiting
    if best.gain_low > 0 and best.timeout != waiting.timeout:
        told = f"{seconds(best.expected_duration)} instead of {seconds(waiting.expected_duration)} by waiting"
        click.echo(f"On this log a timeout of {seconds(best.timeout)} would have done best: {told}.")
    else:
        click.echo(f"On this log no timeout would clearly have beaten waiting ({seconds(waiting.expected_duration)}).")
    click.echo("\n  timeout     duration    95 % interval          submissions  not done")
    for one in (*result.at, best, waiting):
        name = "waiting" if one is waiting else seconds(one.timeout)
        interval = f"{seconds(one.low)} to {seconds(one.high)}"
        click.echo(f"  {name:<10}  {seconds(one.expected_duration):<10}  {interval:<22} {one.submissions:>11.2f}"
                   f"  {one.ran_off:>8.1%}")  # fmt: skip
