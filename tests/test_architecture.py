"""The shape of the package: imports go one way, start-up is light, everything public is documented."""

import ast
import inspect
import subprocess
import sys

import click
import pytest

import latfit
from conftest import REPO
from latfit.cli import main

ORDER = [
    "errors", "numbers", "units", "_system", "sample", "curve", "table", "buckets", "logs", "outliers",
    "resample", "laws", "fitting", "restart", "evidence", "decision", "histograms", "tracking", "analysis",
    "batch", "measure", "verify", "settings", "retrying",
    "report", "plots", "cli", "__main__",
]  # fmt: skip
PACKAGE = REPO / "latfit"
MODULES = sorted(PACKAGE.rglob("*.py"))
ONLY_IN = {"click": "cli", "matplotlib": "plots", "dask": "batch", "distributed": "batch"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def stage(name):
    return name.split(".")[1] if "." in name else None


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if here == "__init__":
        return
    for name in imports(path):
        top = name.split(".")[0]
        assert ONLY_IN.get(top, here) == here, f"{here} imports {top}"
        if top == "latfit" and stage(name):
            assert ORDER.index(stage(name)) <= ORDER.index(here), f"{here} imports {name}"
            if here == "restart":
                assert stage(name) in ("errors", "numbers", "units", "curve", "laws", "restart")


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["outliers", "--help"], ["convert", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys; from latfit.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'scipy', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["timeout"], {"scipy.optimize", "scipy.fft"}),
        (["outliers"], set()),
        (["analyze"], set()),
        (["analyze", "--json"], set()),
        (["batch", "--by", "broker", "-o", "{folder}/out.csv"], {"scipy.optimize", "scipy.fft"}),
    ],
)
def test_decisions_import_nothing_that_they_do_not_use(arguments, absent, tmp_path):
    """Neither scipy.stats nor what only figures, pages and tests need."""
    command, *others = (word.format(folder=tmp_path) for word in arguments)
    code = (
        f"import sys; sys.argv = ['latfit', {command!r}, 'data/egee-2006.csv', *{others!r}]\n"
        "from latfit.__main__ import run\n"
        "try: run()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'scipy.stats', 'matplotlib', 'jinja2', 'statsmodels', 'distributed'} | set("
        f"{sorted(absent)!r})\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=REPO)


def test_import_latfit_is_light():
    code = "import latfit, sys; assert not {'numpy', 'scipy', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_exist_and_are_documented():
    assert sorted(latfit.__all__) == latfit.__all__ == dir(latfit)
    for name in latfit.__all__:
        assert inspect.getdoc(getattr(latfit, name)), f"{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = latfit.nonsense


def test_every_module_of_a_command_is_listed():
    modules = {path.stem for path in (PACKAGE / "cli").glob("*.py")} - {"__init__", "common"}
    found = {main.get_command(click.Context(main), name).callback.__module__ for name in main.summaries}
    assert {f"latfit.cli.{name}" for name in modules} == found


@pytest.mark.parametrize("name", main.summaries)
def test_every_command_has_help_and_an_example(name):
    command = main.get_command(click.Context(main), name)
    shown = command.get_help(click.Context(command, info_name=f"latfit {name}"))
    assert f"  latfit {name}" in shown or f"| latfit {name}" in shown
    first = command.help.split("\n\n")[0].replace("\n", " ")
    assert first.startswith(main.summaries[name].rstrip("."))
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts} has no help"
