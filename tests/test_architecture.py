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


def test_imports_go_one_way():
    for path in MODULES:
        here = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in imports(path) if here != "__init__" else ():
            top = name.split(".")[0]
            assert ONLY_IN.get(top, here) == here, f"{path} imports {top}"
            if top == "latfit" and stage(name):
                assert ORDER.index(stage(name)) <= ORDER.index(here), f"{path} imports {name}"
                if here == "restart":
                    assert stage(name) in ("errors", "numbers", "units", "curve", "laws", "restart"), path


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


def test_decisions_import_nothing_that_they_do_not_use(tmp_path):
    """Neither scipy.stats nor what only figures, pages and tests need; the lightest commands first, in one process."""
    log = "".join((REPO / "data" / "egee-2006.csv").read_text().splitlines(keepends=True)[:400])
    (tmp_path / "log.csv").write_text(log)
    code = (
        "import sys; from latfit.cli import main\n"
        "heavy = {'scipy.stats', 'matplotlib', 'jinja2', 'statsmodels', 'distributed'}\n"
        "batch = ['batch', '--by', 'broker', '-o', 'out.csv', '--workers', '1']\n"
        "document = ['analyze', '--json', '--resamples', '0']\n"
        "for command in (['timeout'], batch, ['outliers'], ['analyze', '--law', 'gamma'], document):\n"
        "    try: main([*command, 'log.csv'])\n"
        "    except SystemExit as end: assert not end.code\n"
        "    fits = {'scipy.optimize', 'scipy.fft'} if command[0] in ('timeout', 'batch') else set()\n"
        "    assert not (heavy | fits) & set(sys.modules), (command, (heavy | fits) & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert not done.returncode, done.stderr


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
    found = {main.get_command(click.Context(main), name).callback.__module__ for name in main.modules}
    assert {f"latfit.cli.{name}" for name in modules} == found


@pytest.mark.parametrize("name", main.modules)
def test_every_command_has_help_and_an_example(name):
    command = main.get_command(click.Context(main), name)
    shown = command.get_help(click.Context(command, info_name=f"latfit {name}"))
    assert f"  latfit {name}" in shown or f"| latfit {name}" in shown
    assert not command.get_short_help_str(100).endswith("...")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{name} {parameter.opts} has no help"
