"""`latfit agents`: whom to ask, how long to wait, and whom to ask then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from latfit.cli import common as cli

if TYPE_CHECKING:
    from latfit.laws import Law

OPTIONS_OF_ONE_AGENT = ("format", "unit", "time_format", "timezone", "failed", "cutoff")


@click.command(
    epilog="""\b
Examples:
  latfit agents --agent "fast=discrete(values=[5,20],probs=[0.6,0.4])" --agent "steady=uniform(a=7,b=9)" --restarts 2
  latfit agents --agent here=here.csv --agent there=there.csv --cost 3
  latfit agents --agent here=here.csv --agent there=there.jtl --read "there:format=jmeter" """
)
@cli.option(
    "--agent NAME=LAW|LOG",
    "An agent and its law, written out or taken from a log; once for each agent.",
    "agents",
    type=cli.name_and_value,
    multiple=True,
    required=True,
)
@cli.option("--restarts K", "At most K restarts (default: unbounded).", type=click.IntRange(0))
@cli.cost_option
@cli.option(
    "--read NAME:OPTION=VALUE",
    "How one agent's log is read: format, unit, time_format, timezone, failed, cutoff.",
    "readings",
    multiple=True,
)
@cli.outcome_options
@cli.log_options
@cli.json_option
def agents(agents: tuple[tuple[str, str], ...], restarts: int | None, as_json: bool, **parsed: Any) -> None:
    """Find whom of several agents to ask first, and how long to wait, and whom to ask then."""
    from latfit.report.answers import agents_sections
    from latfit.restart import earliest_timeout, optimal_strategy

    names = [name for name, _ in agents]
    if len(set(names)) < len(names):
        raise click.BadParameter("two agents have the same name", param_hint="--agent")
    readings = _readings(names, parsed["readings"])
    laws = {name: _law(text, {**parsed, **readings.get(name, {})}) for name, text in agents}
    least = {name: earliest_timeout(law) for name, law in laws.items()}
    strategy = optimal_strategy(laws, restarts=restarts, cost=parsed["cost"], min_timeouts=least)
    cli.show(strategy.to_dict(), agents_sections(strategy), as_json=as_json)


def _law(text: str, parsed: dict[str, Any]) -> Law:
    """The law that is written out, or the empirical law of the log of that name."""
    if "(" in text and not Path(text).exists():
        return cli.written_law(text)
    from latfit.laws import Empirical

    return Empirical.of(cli.prepared(text, parsed).sample)


def _readings(names: list[str], texts: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The reading options that are meant for one agent only."""
    readings: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, _, rest = text.partition(":")
        key, equals, value = rest.partition("=")
        if name not in names or not equals or key not in OPTIONS_OF_ONE_AGENT:
            form = f"NAME:OPTION=VALUE with the name of an agent and one of {', '.join(OPTIONS_OF_ONE_AGENT)}"
            raise click.BadParameter(f"{text!r} is not of the form {form}", param_hint="--read")
        readings.setdefault(name, {})[key] = cli.Seconds().convert(value, None, None) if key == "cutoff" else value
    return readings
