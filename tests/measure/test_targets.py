"""The contract of targets: one file each, with options, help and an example; one more can come from outside."""

import asyncio
import contextlib
import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import latfit
from latfit.cli import main
from latfit.cli.probe import probe
from latfit.measure import TARGETS, Attempt, Outcome, Target
from latfit.measure.targets import argument, option, register
from latfit.measure.targets.command import Command
from latfit.measure.targets.http import Http
from latfit.measure.targets.slurm import Slurm

SECRET = "hunter2"


def test_every_target_has_help_and_an_example():
    for name, kind in TARGETS.items():
        command = probe.get_command(click.Context(probe), name)
        shown = command.get_help(click.Context(command, info_name=f"latfit probe {name}"))
        assert f"latfit probe {name}" in kind.example
        assert " ".join(kind.summary.split()) in " ".join(shown.split())
        assert kind.__doc__
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts} has no help"
        command.make_context("x", kind.example.split()[3:])  # the example can be parsed


@pytest.mark.parametrize(
    "target",
    [
        Command(("curl", f"--user=me:{SECRET}", "http://127.0.0.1"), cancel=f"kill {SECRET}"),
        Http(f"http://me:{SECRET}@127.0.0.1:1/path?key={SECRET}#{SECRET}"),
        Slurm((f"--comment={SECRET}",), job=f"echo {SECRET}"),
    ],
)
def test_public_fields_contain_no_secret(target):
    assert SECRET not in json.dumps(target.public())
    assert dataclasses.is_dataclass(target)
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.name_of_nothing = 1
    assert target.shown(Attempt("r", 1, 1, 1))


def test_placeholders_are_filled_in_and_other_braces_stay():
    attempt = Attempt("r", probe=7, job=3, attempt=2)
    assert attempt.fill("{job}/{attempt}/{run}/{probe} {x} {}") == "3/2/r/latfit-r-7 {x} {}"
    assert attempt.environment["LATFIT_PROBE"] == "latfit-r-7"


@pytest.fixture
def naps():
    """A target that is not part of the package."""

    @register
    @dataclass(frozen=True)
    class Nap(Target):
        """Takes a nap of the length that is written on the command line, every third one fails."""

        name = "nap"
        summary = "Take a nap."
        example = "latfit probe nap 0.1 -o naps.jsonl"
        pause = 0.0
        length: str = argument("LENGTH")
        extra: float = option(0.0, "More seconds.", kind="seconds")
        loud: bool = option(False, "Whether it snores.", kind="flag")

        @contextlib.asynccontextmanager
        async def open(self, run):
            length = float(self.length) + self.extra

            async def probe(attempt):
                start = time.monotonic()
                await asyncio.sleep(length)
                status = "completed" if attempt.job % 3 else "failed"
                return Outcome(status, time.monotonic() - start, "woke up")

            yield probe

        def shown(self, attempt):
            return f"nap {self.length}"

        def public(self):
            return {"length": self.length}

    yield Nap
    del TARGETS["nap"]


def test_a_new_target_is_one_class(naps, tmp_path):
    log = str(tmp_path / "log")
    words = ["probe", "nap", "0.01", "-o", log, "--extra", "20ms", "--no-loud", "--probes", "9", "--json"]
    main(words, standalone_mode=False)
    found = latfit.read_log(log)
    assert found.counts == {"completed": 6, "failed": 3, "censored": 0, "lost": 0}
    assert (found.frame["latency"] >= 0.03).all()
    assert json.loads(Path(log).read_text().splitlines()[0])["length"] == "0.01"
