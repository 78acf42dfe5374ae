"""docs/architecture.md names files and functions that exist."""

import ast
import re

import pytest

from conftest import REPO

PAGE = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([a-z_/]+\.py)(?:: ([\w, ]+))?`", PAGE)))


def defined(path):
    """The functions and classes of a module."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize(("file", "names"), NAMED, ids=str)
def test_what_the_page_names_exists(file, names):
    paths = [*REPO.glob(f"latfit/**/{file}"), *REPO.glob(file)]
    assert paths
    for name in filter(None, names.split(", ")):
        assert any(name in defined(path) for path in paths), (file, name)


def test_the_page_names_most_stages():
    assert len(NAMED) > 25
