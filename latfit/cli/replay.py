"""`latfit replay`: what the log itself says a timeout, or another policy, would have brought."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import Seconds, json_option, load_log, log_argument, log_options, print_json, say, seed_option
from latfit.cli.deciding import asked, cost_option, outcome_options

if TYPE_CHECKING:
    from latfit.evidence import Replay, Replayed, ReplayedPolicy


@click.command(
    epilog="""\b
Examples:
  latfit replay probes.csv
  latfit replay probes.csv --at 60 --at 5m --cost 2
  latfit replay probes.csv --policy "hedge(d=300,t_inf=900)" --policy "delayed(t0=300,t_inf=450)"
  latfit replay jobs.swf.gz --by queue --json"""
)
@log_argument
@click.option("--at", "at", type=Seconds(), multiple=True, metavar="T", help="A timeout to replay; may be repeated.")
@click.option("--policy", "policies", multiple=True, metavar="SPEC",
              help="A policy to replay, written as for compare; may be repeated.")  # fmt: skip
@cost_option
@click.option("--by", metavar="COL", help="Resubmit a job into its own group of this column.")
@outcome_options
@seed_option
@log_options
@json_option
def replay(
    log: str, at: tuple[float, ...], policies: tuple[str, ...], by: str | None, as_json: bool, **given: Any
) -> None:
    """Replay timeouts on the log itself: no formula, no independence.

    A job whose probe is not back in time is resubmitted, and takes the latency of the next probe that the
    log shows submitted from then on; so does every copy of a hedge or of another policy. Drift and dependence are
    in it, because they are in the log.
    """
    from latfit.decision import prepare
    from latfit.evidence import Observations, mixing, replay_policies, require_times
    from latfit.evidence import replay as replayed
    from latfit.evidence.observations import group_column
    from latfit.restart.policies import parse_policy

    asked_for = [parse_policy(policy) for policy in policies]
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
    found_policies = replay_policies(result, asked_for)
    if as_json:
        print_json({**result.to_dict(), "policies": [one.to_dict() for one in found_policies]})
    else:
        _print(result, found_policies)


def _print(result: Replay, policies: tuple[ReplayedPolicy, ...]) -> None:
    """The best timeout, then a table."""
    from latfit.units import seconds

    best, waiting = result.best, result.waiting
    if best.gain_low > 0 and best.timeout != waiting.timeout:
        told = f"{seconds(best.expected_duration)} instead of {seconds(waiting.expected_duration)} by waiting"
        click.echo(f"On this log a timeout of {seconds(best.timeout)} would have done best: {told}.")
    else:
        click.echo(f"On this log no timeout would clearly have beaten waiting ({seconds(waiting.expected_duration)}).")
    click.echo(f"\n  {'timeout':<10}  {'duration':<10} {'95 % interval':<22} {'p95':>10}  submits  not done")
    for one in (*result.at, best, waiting):
        name = "waiting" if one is waiting else seconds(one.timeout)
        click.echo(f"  {name:<10}  {_figures(one, one.ran_off)}")
    for policy in policies:
        click.echo(f"  {policy.policy.spec(4)}\n{'':14}{_figures(policy, policy.ran_off + policy.undone)}")


def _figures(one: Replayed | ReplayedPolicy, not_done: float) -> str:
    """Duration, interval, tail and submissions, in columns."""
    from latfit.units import seconds

    duration, p95 = (
        "infinite" if x is None or x == float("inf") else seconds(x)
        for x in (one.expected_duration, one.quantiles.get("0.95"))
    )
    interval = "" if one.high == float("inf") else f"{seconds(one.low)} to {seconds(one.high)}"
    return f"{duration:<10} {interval:<22} {p95:>10}  {one.submissions:>7.3g}  {not_done:>8.1%}"
