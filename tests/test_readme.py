"""Every command and every line of Python in the README does what it says."""

import re
import shlex

import pytest

from conftest import EGEE, REPO

README = (REPO / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line[2:] for kind, block in BLOCKS if kind == "console" for line in block.splitlines() if line.startswith("$ ")
]


@pytest.mark.slow
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("latfit")])
def test_commands(command, run_anew, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(EGEE.parent)
    done = run_anew(*shlex.split(command, comments=True)[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout or any(path.name != "data" for path in tmp_path.iterdir())


@pytest.mark.slow
def test_the_decision_shown_is_the_decision_made(run, monkeypatch):
    monkeypatch.chdir(REPO)
    shown = next(block for kind, block in BLOCKS if kind == "console").split("$ latfit analyze data/egee-2006.csv\n")[1]
    assert run("analyze", "data/egee-2006.csv").stdout.startswith(shown)


def test_the_scripts_named_exist():
    for command in COMMANDS:
        if command.startswith("scripts/"):
            assert (REPO / command.split()[0]).stat().st_mode & 0o111


def test_python():
    (code,) = (block for kind, block in BLOCKS if kind == "python")
    names = {}
    exec(code.replace("latfit.analyze(log)", "latfit.analyze(log, resamples=19, test=False)"), names)
    assert names["best"].timeout == pytest.approx(416, abs=5)
    assert names["rho"].estimate == pytest.approx(0.0248, abs=1e-4)
    assert names["result"].timeout.timeout == 358


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (REPO / target).exists(), target
