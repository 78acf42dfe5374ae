"""`latfit laws`: the laws that are known."""

from __future__ import annotations

from typing import Any

import click

from latfit.cli import common as cli


@click.command(
    epilog="""\b
Examples:
  latfit laws
  latfit laws --json"""
)
@cli.json_option
def laws(as_json: bool) -> None:
    """List the latency laws, their parameters and their formulas."""
    from latfit.laws import ParametricLaw, get_law, law_names
    from latfit.report import Section

    laws: list[dict[str, Any]] = []
    lines: list[str] = []
    for name in law_names():
        law = get_law(name)
        known: dict[str, Any] = {
            "name": name,
            "parameters": [],
            "formula": "the Kaplan-Meier law of a log",
            "example": None,
        }
        if issubclass(law, ParametricLaw):
            names = [parameter.name for parameter in law.parameters]
            known |= {"parameters": names, "formula": law.formula, "example": law.examples[0]}
        laws.append(known)
        lines += [name, f"    {known['formula']}", *([f"    {known['example']}"] if known["example"] else [])]
    cli.show({"laws": laws}, [Section(literal=tuple(lines))], as_json=as_json)
