"""Every example in a docstring and in the pages of the documentation is run."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import latfit
from conftest import EGEE, REPO

MODULES = sorted(m.name for m in pkgutil.walk_packages(latfit.__path__, "latfit.") if not m.name.endswith("__main__"))
SECONDS_LONG = ("latfit.report.page", "latfit.report.sections", "latfit.restart.compare", "latfit.tracking.drift")
PAGES = ("start.md", "howto-figure.md", pytest.param("howto-research.md", marks=pytest.mark.slow))


def with_examples():
    """The modules whose source has an example."""
    for name in MODULES:
        path = REPO / (name.replace(".", "/") + ".py")
        path = path if path.exists() else REPO / name.replace(".", "/") / "__init__.py"
        if ">>> " in path.read_text(encoding="utf-8"):
            yield pytest.param(name, marks=pytest.mark.slow) if name in SECONDS_LONG else name


@pytest.mark.parametrize("name", list(with_examples()))
def test_docstrings(name):
    done = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted
    assert not done.failed


def described(name):
    """The docstring of a public name."""
    return inspect.getdoc(getattr(latfit, name)) or ""


@pytest.mark.parametrize("name", latfit.__all__)
def test_a_public_name_has_an_example(name):
    assert ">>> " in described(name)


@pytest.mark.parametrize("name", [name for name in latfit.__all__ if inspect.isfunction(getattr(latfit, name))])
def test_a_public_function_says_what_it_takes_and_returns(name):
    text = described(name)
    assert "eturns" in text
    for parameter in inspect.signature(getattr(latfit, name)).parameters:
        assert re.search(rf"(`|\b){parameter}(`|\b)", text), parameter


@pytest.mark.parametrize("page", PAGES)
def test_pages(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(EGEE.parent)
    blocks = re.findall(r"```python\n(.*?)```", (REPO / "docs" / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for code in blocks:
        exec(code, {})


def test_commands_of_the_pages_exist():
    from latfit.cli import main

    for path in (REPO / "docs").glob("*.md"):
        for name in re.findall(r"^\$ latfit (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert name in main.modules, (path.name, name)


def test_links_between_pages_lead_somewhere():
    for path in (REPO / "docs").glob("*.md"):
        for target in re.findall(r"\]\(([^):#]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), (path.name, target)


def test_the_study_in_ten_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(EGEE.parent)
    page = (REPO / "docs" / "howto-research.md").read_text(encoding="utf-8")
    script = re.search(r"ten lines.*?```python\n(.*?)```", page, re.DOTALL)[1]
    assert sum(bool(line) for line in script.splitlines()) == 10
    exec(script, {})
    printed = capsys.readouterr().out
    assert "timeout: law 416 s, data 358 s; 2.16 times faster" in printed
    assert r"\mu = 4.72\,(0.03)" in printed
    assert (tmp_path / "latency.pdf").read_bytes().startswith(b"%PDF")
