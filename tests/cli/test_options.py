"""The options that commands share."""

import subprocess
import sys

import click
import pytest

import latfit
from conftest import EGEE
from latfit.cli import main
from latfit.cli.common import duration, positive_duration


def test_commands_need_no_feature_of_new_click_versions():
    """`click.ParamType` can be subscripted since click 8.4, and 8.1 is allowed."""
    code = (
        "import click; from latfit.cli import main\n"
        "click.ParamType.__class_getitem__ = None\n"
        "for name in main.modules: main.get_command(click.Context(main), name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def times(command):
    """The options of a command that are a time."""
    return [one for one in command.params if getattr(one.type, "func", None) in (duration, positive_duration)]


@pytest.mark.slow
def test_times_take_units(run):
    plain = run("timeout", "--law", "lognormal(mu=5,sigma=1)", "--rho", "0.1", "--cost", "90", "--json")
    units = run("timeout", "--law", "lognormal(mu=5,sigma=1)", "--rho", "0.1", "--cost", "1m30s", "--json")
    assert plain.returncode == 0
    assert plain.stdout == units.stdout
    assert (
        run("outliers", EGEE, "--cutoff", "1h", "--json").stdout
        == run("outliers", EGEE, "--cutoff", "3600", "--json").stdout
    )
    for wrong in ("soon", "0", "-1", "inf", "nan", "04:32", "1e999"):
        assert run("outliers", EGEE, f"--cutoff={wrong}").returncode == 2


@pytest.mark.parametrize("name", main.modules)
def test_every_option_in_seconds_takes_units(name):
    command = main.get_command(click.Context(main), name)
    for one in command.params:
        said = (getattr(one, "help", "") or "").lower()
        if isinstance(one, click.Option) and (one.metavar == "SECONDS" or said.startswith("seconds")):
            assert one in times(command), f"{name} {one.opts}"


def test_analyze_reports_conflicting_options_and_asks_for_a_folder(run, tmp_path):
    done = run("analyze", EGEE, "--json", "--markdown")
    assert (done.returncode, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr
    (tmp_path / "report").write_text("mine")
    done = run("analyze", EGEE, "--output", tmp_path / "report")
    assert (done.returncode, done.stdout) == (2, "")
    assert "this is a file; name a folder" in done.stderr
    assert (tmp_path / "report").read_text() == "mine"


def test_one_law_by_its_name():
    sample = latfit.example_log().sample(cutoff=10_000)
    assert [found.law.name for found in latfit.fit(sample, laws="lognormal")] == ["lognormal"]
