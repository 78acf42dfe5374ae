"""The report as text: what comes first, 80 columns whatever the names, tables for papers, cells that run nothing."""

import csv
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.files import inert
from latfit.report import to_markdown, to_text
from latfit.report.headline import basis, headline
from pages import LOGS, analysed


@pytest.mark.parametrize("name", LOGS)
def test_decision_and_basis_come_first(name):
    lines = to_text(analysed(name)).split("\n\n")[0].splitlines()
    assert lines[0] == "DECISION"
    sentences = re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(line.strip() for line in lines[1:]))
    assert any(sentence.startswith("Basis:") for sentence in sentences[:4])
    assert basis(analysed(name)).startswith("Basis: ")
    assert headline(analysed(name))[0]


@pytest.mark.parametrize("columns", [1, 2, 4])
@pytest.mark.parametrize("length", [3, 24, 200])
def test_tables_fit_80_columns_whatever_the_names(columns, length):
    rng = np.random.default_rng(columns)
    names = [f"{'c' * length}{i}" for i in range(columns)]
    frame = pd.DataFrame({"latency": rng.lognormal(9, 2, 300)})
    for name in names:
        frame[name] = rng.choice(["x" * length, "y" * length], 300)
    log = latfit.from_frame(frame, latency="latency")
    text = to_text(latfit.analyze(log, by=names, resamples=0, test=False, laws=["lognormal"]))
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("xx") + text.count("yy") >= 2 or length == 3


@pytest.mark.parametrize("name", LOGS)
def test_markdown_has_no_needless_escape(name):
    text = to_markdown(analysed(name))
    assert not re.search(r"\d\\\.", text)
    assert "&lt;.001" not in text


def test_a_table_of_fits_for_a_paper(run, tmp_path):
    pd.DataFrame({"latency": np.random.default_rng(1).lognormal(3, 1, 80)}).to_csv(tmp_path / "x.csv", index=False)
    asked = ("fit", tmp_path / "x.csv", "--law", "lognormal", "--law", "exponential", "--bootstrap", 0)
    done = run(*asked, "--table", "latex")
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 3
    assert {row.count(" & ") for row in rows} == {6}
    assert re.search(r"mu = [\d.]+ \([\d.]+\), sigma", done.stdout)
    marked = run(*asked, "--table", "markdown").stdout.splitlines()
    assert marked[1] == "| " + " | ".join(["---"] * 7) + " |"
    assert run(*asked, "--table", "latex", "--json").returncode == 2


def test_latex_special_signs_are_set_as_they_are():
    from latfit.report.tables import fits_table

    fit = latfit.fit(latfit.LatencySample.of([1.0, 2, 3, 5, 8, 13]), laws=["lognormal"])[0]
    broken = replace(fit, error="50 % of a_b & {c} < d")
    assert r"50 \% of a\_b \& \{c\} $<$ d" in fits_table([(broken, None)], "latex")


@pytest.mark.parametrize(
    ("cell", "safe"),
    [("=1+2", "'=1+2"), ("@x", "'@x"), ("-cmd", "'-cmd"), ("-5.5e3", "-5.5e3"), ("+7", "+7"), ("rb1", "rb1"), ("", "")],
)
def test_cells_that_a_spreadsheet_would_run(cell, safe):
    assert inert(cell) == safe


def test_convert_and_batch_neutralise_formulas_when_asked(run, tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"latency": rng.lognormal(3, 1, 60), "=site": rng.choice(["=cmd|x", "-5", "plain"], 60)})
    frame.to_csv(tmp_path / "x.csv", index=False)
    for command in (["convert"], ["batch", "--by", "=site", "--resamples", "0"]):
        out = tmp_path / f"{command[0]}.csv"
        done = run(command[0], tmp_path / "x.csv", *command[1:], "-o", out, "--spreadsheet")
        assert done.returncode == 0, done.stderr
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert {row["'=site"] for row in rows} == {"'=cmd|x", "-5", "plain"}
        done = run(command[0], tmp_path / "x.csv", *command[1:], "-o", out)
        assert done.returncode == 0, done.stderr
        assert "'=" not in out.read_text()
