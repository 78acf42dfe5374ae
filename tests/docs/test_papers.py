"""docs/papers.md: every row names an existing function or command and an existing test, or a reason."""

import ast
import re
import shlex
from functools import cache
from importlib import import_module

import click
import pytest

from conftest import REPO
from latfit.cli import main

PAGE = (REPO / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    tuple(cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| where "))
]
QUOTED = [(row, quoted) for row in ROWS for quoted in re.findall(r"`([^`]+)`", row[2] + row[3])]
COMMANDS = sorted({quoted for _, quoted in QUOTED if quoted.startswith("latfit ")})
NAMES = sorted({quoted for _, quoted in QUOTED if quoted.startswith("latfit.")})
TESTS = sorted({quoted for _, quoted in QUOTED if quoted.startswith("tests/")})


@cache
def names_in(path):
    """The tests of a file, as pytest names them."""
    names = set()
    for node in ast.parse((REPO / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


def test_every_row_is_complete():
    assert len(ROWS) > 70
    for where, says, provided, checked in ROWS:
        assert where, says
        assert says, where
        if provided.startswith("not provided: "):
            assert len(provided) > 30, where
            continue
        assert re.search(r"`latfit[ .]", provided), where
        assert "`tests/" in checked or checked.startswith("not checked: "), where


@pytest.mark.parametrize(
    ("paper", "numbered"),
    [("V", {"eq": 15, "Theorem": 4, "Algorithm": 3, "Figure": 10, "Table": 1, "Corollary": 1}),
     ("G", {"eq": 14, "Figure": 12, "Table": 1}),
     ("C", {"eq": 6, "Theorem": 2, "Figure": 3})],
)  # fmt: skip
def test_every_numbered_result_has_a_row(paper, numbered):
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    rows = next(part for part in section if part.startswith(f"{paper}:"))
    places = " ".join(re.findall(r"^\| ([^|]+) \|", rows, flags=re.MULTILINE))
    for kind, count in numbered.items():
        there = set()
        for numbers in re.findall(rf"\b{kind}s?\.? (\d+(?:(?:–|, | and )\d+)*)", places):
            for part in re.split(r", | and ", numbers):
                low, _, high = part.partition("–")
                there |= set(range(int(low), int(high or low) + 1))
        assert there == set(range(1, count + 1)), (paper, kind)


def test_every_erratum_has_a_row():
    errata = (REPO / "docs" / "errata.md").read_text(encoding="utf-8")
    for number in re.findall(r"^### ([VGC]\d+)\.", errata, flags=re.MULTILINE):
        assert any(re.search(rf"\b{number}\b", says) for _, says, _, _ in ROWS), number


@pytest.mark.parametrize("name", NAMES)
def test_each_function_exists(name):
    parts = name.split(".")
    value = import_module("latfit")
    for part in parts[1:]:
        if not hasattr(value, part) and hasattr(value, "__dataclass_fields__"):
            assert part in value.__dataclass_fields__, name
            return
        value = getattr(value, part) if hasattr(value, part) else import_module(f"{value.__name__}.{part}")


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_parses(line, monkeypatch):
    monkeypatch.chdir(REPO)
    command, words = main, shlex.split(line)[1:]
    while isinstance(command, click.Group):
        command, words = command.get_command(click.Context(command), words[0]), words[1:]
    with command.make_context("latfit", words):
        pass


@pytest.mark.parametrize("test", TESTS)
def test_each_test_exists(test):
    path, _, name = test.partition("::")
    assert name in names_in(path)


def test_each_script_exists():
    for _, quoted in QUOTED:
        if quoted.startswith("scripts/"):
            assert (REPO / quoted).exists()
