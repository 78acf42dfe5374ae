"""Damaged histograms: answered or refused in one line; scripts/fuzz --kind runs more of them."""

import random

import pytest
from click.testing import CliRunner

from fuzzing.cases import make_case
from fuzzing.histograms import MAKERS
from fuzzing.rule import broken
from latfit.cli import main


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_damaged_histograms(kind, tmp_path):
    told = {seed: broken(make_case(seed, kind), tmp_path) for seed in range(25)}
    assert {seed: wrong for seed, wrong in told.items() if wrong} == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_most_undamaged_histograms_get_an_answer(kind, tmp_path):
    if kind == "hdr":
        pytest.importorskip("hdrh", reason="the package hdrhistogram is not installed")
    path, answered = tmp_path / "log", 0
    for seed in range(5):
        path.write_text("\n".join(MAKERS[kind](random.Random(seed), 8).lines()) + "\n")
        where = ["--where", "name=rpc_seconds"] if kind == "prometheus" else []
        done = CliRunner().invoke(main, ["timeout", str(path), *where])
        assert done.exit_code in (0, 1), done.output
        answered += done.exit_code == 0
    assert answered >= 3
