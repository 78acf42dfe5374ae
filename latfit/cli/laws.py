"""`latfit laws`: the laws that are known."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli.common import json_option, print_json


@click.command(
    epilog="""\b
Examples:
  latfit laws
  latfit laws --json"""
)
@json_option
def laws(as_json: bool) -> None:
    """List the latency laws, their parameters and their formulas."""
    from latfit.laws import ParametricLaw, get_law, law_names

    known = {name: get_law(name) for name in law_names()}
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "parameters": [parameter.name for parameter in law.parameters],
            "formula": law.formula,
            "example": law.examples[0],
        }
        if issubclass(law, ParametricLaw)
        else {"name": name, "parameters": [], "formula": "the Kaplan-Meier law of a log", "example": None}
        for name, law in known.items()
    ]
    if as_json:
        print_json({"laws": rows})
        return
    for row in rows:
        click.echo(f"{row['name']}\n    {row['formula']}")
        if row["example"]:
            click.echo(f"    {row['example']}")
