"""`latfit agents`: whom to ask, how long to wait, and whom to ask then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from latfit.cli.common import (
    Mapped,
    Seconds,
    json_option,
    log_options,
    print_json,
    say,
)
from latfit.cli.deciding import cost_option, log_law, outcome_options, written_law

if TYPE_CHECKING:
    from latfit.laws import Law

OWN = ("format", "unit", "time_format", "timezone", "failed", "cutoff")


@click.command(
    epilog="""\b
Examples:
  latfit agents --agent "fast=discrete(values=[5,20],probs=[0.6,0.4])" --agent "steady=uniform(a=7,b=9)" --restarts 2
  latfit agents --agent here=here.csv --agent there=there.csv --cost 3
  latfit agents --agent here=here.csv --agent there=there.csv --hedge --objective quantile:0.99
  latfit agents --agent here=here.csv --agent there=there.jtl --read "there:format=jmeter" """
)
@click.option("--agent", "agents", type=Mapped(), multiple=True, required=True, metavar="NAME=LAW|LOG",
              help="An agent and its law, written out or taken from a log; once for each agent.")  # fmt: skip
@click.option("--restarts", type=click.IntRange(0), metavar="K", help="At most K restarts (default: unbounded).")
@cost_option
@click.option("--hedge", is_flag=True, help="Ask a second agent while the first goes on: the best pair, and when.")
@click.option("--objective", default="mean", show_default=True, metavar="mean|std|quantile:q|deadline:D",
              help="What a hedge is to minimise.")  # fmt: skip
@click.option("--read", "reading", multiple=True, metavar="NAME:OPTION=VALUE",
              help="How one agent's log is read: format, unit, time_format, timezone, failed, cutoff.")  # fmt: skip
@outcome_options
@log_options
@json_option
def agents(agents: tuple[tuple[str, str], ...], restarts: int | None, cost: float, as_json: bool, **given: Any) -> None:
    """Find whom of several agents to ask first, and how long to wait, and whom to ask then."""
    from latfit.restart import earliest_timeout, optimal_strategy

    names = [name for name, _ in agents]
    if len(set(names)) < len(names):
        raise click.BadParameter("two agents have the same name", param_hint="--agent")
    if given["objective"] != "mean" and not given["hedge"]:
        raise click.UsageError("--objective goes with --hedge; a row of attempts minimises the mean")
    if given["hedge"] and restarts is not None:
        raise click.UsageError("--hedge begins again for ever; it does not go with --restarts")
    own = _own_readings(names, given)
    laws = {name: _law(text, {**given, **own.get(name, {})}) for name, text in agents}
    least = {name: earliest_timeout(law) for name, law in laws.items()}
    if given["hedge"]:
        _hedged(laws, cost, given["objective"], least, as_json)
        return
    best = optimal_strategy(laws, restarts=restarts, cost=cost, min_timeouts=least)
    if as_json:
        print_json(best.to_dict())
        return
    click.echo(f"Expected duration {best.expected_duration:.6g} s:")
    for step, (name, timeout) in enumerate(best.steps):
        wait = "let it run" if timeout is None else f"give up after {timeout:.6g} s" if timeout else "give up at once"
        say(f"  {'then ask' if step else 'ask'} {name}, {wait}")
    if best.unbounded and best.steps[0][1] is not None:
        click.echo("  and so on until it answers")


def _law(text: str, given: dict[str, Any]) -> Law:
    """The law that is written out, or the empirical law of the log of that name."""
    from pathlib import Path

    return written_law(text) if "(" in text and not Path(text).exists() else log_law(text, given)


def _own_readings(names: list[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The reading options that are meant for one agent only."""
    found: dict[str, dict[str, Any]] = {}
    for text in given["reading"]:
        name, _, rest = text.partition(":")
        option, equals, value = rest.partition("=")
        if name not in names or not equals or option not in OWN:
            raise click.BadParameter(
                f"{text!r} is not of the form NAME:OPTION=VALUE with the name of an agent and one of {', '.join(OWN)}",
                param_hint="--read",
            )
        found.setdefault(name, {})[option] = Seconds().convert(value, None, None) if option == "cutoff" else value
    return found


def _hedged(laws: dict[str, Law], cost: float, objective: str, least: dict[str, float], as_json: bool) -> None:
    from latfit.restart import optimal_hedge
    from latfit.restart.objectives import Objective
    from latfit.units import seconds

    pair = optimal_hedge(laws, cost=cost, objective=objective, min_timeouts=least)
    if as_json:
        print_json(pair.to_dict())
        return
    again = "again" if pair.second == pair.first else f"{pair.second} as well"
    when = "at once" if pair.d == 0 else f"after {seconds(pair.d)}"
    end = "" if pair.t_inf is None else f"; give both up after {seconds(pair.t_inf)} and begin again"
    say(f"Ask {pair.first}, and {again} {when}{end}.")
    if objective != "mean":
        value = pair.objective["value"]
        say(f"  {objective:<20} {'infinite' if value is None else Objective.parse(objective).text(value)}")
    say(f"  expected duration    {seconds(pair.expected_duration)}")
    for q, x in pair.quantiles.items():
        say(f"  {float(q):.0%} within           {seconds(x)}")
    say(f"  requests per job     {pair.submissions:.4g}")
