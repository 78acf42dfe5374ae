"""`latfit schema`: the JSON Schemas of what commands print, from the one description in schema.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import click

from latfit.cli import common as cli
from latfit.errors import hint


@cli.command
def schema(command: str | None) -> None:
    """Print the JSON Schema of a command's output, or of all commands."""
    known = schemas()
    if command is None:
        click.echo(cli.document_text({name: schema_of(name) for name in known}))
        return
    if command not in known:
        why = f"{command!r} prints no document{hint(command, known)} (known: {', '.join(known)})"
        raise click.BadParameter(why, param_hint="COMMAND")
    click.echo(cli.document_text(schema_of(command)))


@cache
def _description() -> dict[str, dict[str, dict[str, str]]]:
    return tomllib.loads((files("latfit.cli") / "schema.toml").read_text(encoding="utf-8"))


def schemas() -> list[str]:
    """The commands whose output is described."""
    return list(_description()["commands"])


def schema_of(command: str) -> dict[str, Any]:
    """The schema of the document that a command prints; documents may have more fields than it names."""
    types = {name: _object(fields) for name, fields in _description()["types"].items()}
    fields = dict(_description()["commands"][command])
    shared = _description()["types"][fields.pop("extends")] if "extends" in fields else {}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": f"latfit {command} --json", **_object({**shared, **fields}), "$defs": types}


def _object(fields: dict[str, str]) -> dict[str, Any]:
    properties = {}
    for name, text in fields.items():
        kind, _, meaning = text.partition(" ")
        properties[name.removesuffix("?")] = {**_type(kind), **({"description": meaning} if meaning else {})}
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in fields if not name.endswith("?")],
    }


def _type(kind: str) -> dict[str, Any]:
    if kind.endswith("?"):
        return {"anyOf": [_type(kind[:-1]), {"type": "null"}]}
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind[1:-1])}
    return {"$ref": f"#/$defs/{kind}"} if kind in _description()["types"] else {"type": kind}
