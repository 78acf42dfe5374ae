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
from latfit.cli.deciding import log_law, outcome_options

if TYPE_CHECKING:
    from latfit.laws import Law


@click.command(
    epilog="""\b
Examples:
  latfit agents --agent "fast=discrete(values=[5,20],probs=[0.6,0.4])" --agent "steady=uniform(a=7,b=9)" --restarts 2
  latfit agents --agent here=here.csv --agent there=there.csv --cost 3"""
)
@click.option("--agent", "agents", type=Mapped(), multiple=True, required=True, metavar="NAME=LAW|LOG",
              help="An agent and its law, written out or taken from a log; once for each agent.")  # fmt: skip
@click.option("--restarts", type=click.IntRange(0), metavar="K", help="At most K restarts (default: unbounded).")
@click.option("--cost", type=Seconds(zero=True), default=0.0, metavar="C", help="Seconds that each restart costs.")
@outcome_options
@log_options
@json_option
def agents(agents: tuple[tuple[str, str], ...], restarts: int | None, cost: float, as_json: bool, **given: Any) -> None:
    """Find whom of several agents to ask first, and how long to wait, and whom to ask then."""
    from latfit.restart import optimal_strategy

    names = [name for name, _ in agents]
    if len(set(names)) < len(names):
        raise click.BadParameter("two agents have the same name", param_hint="--agent")
    best = optimal_strategy({name: _law(text, given) for name, text in agents}, restarts=restarts, cost=cost)
    if as_json:
        print_json(best.to_dict())
        return
    click.echo(f"Expected duration {best.expected_duration:.6g} s:")
    for step, (name, timeout) in enumerate(best.steps):
        wait = "let it run" if timeout is None else f"give up after {timeout:.6g} s"
        say(f"  {'then ask' if step else 'ask'} {name}, {wait}")
    if best.unbounded and best.steps[0][1] is not None:
        click.echo("  and so on until it answers")


def _law(text: str, given: dict[str, Any]) -> Law:
    """The law that is written out, or the empirical law of the log of that name."""
    from pathlib import Path

    from latfit.laws import parse_law

    return parse_law(text) if "(" in text and not Path(text).exists() else log_law(text, given)
