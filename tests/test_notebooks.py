"""The notebooks run from scratch, state what they compute and are stored without output; so are the pages on theory."""

import ast
import functools
import os
import re
import warnings
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from scipy.special import ndtr

import latfit
from conftest import REPO

NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
ERRATA, METHOD = REPO / "docs" / "errata.md", REPO / "docs" / "method.md"


def by_name(path):
    return path.stem


def cells(path, kind):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


@functools.cache
def session(number):
    """What the code of a notebook has computed, all cells run in one namespace as a kernel would."""
    names = {"__name__": "__main__"}
    home = Path.cwd()
    with mpl.rc_context({"backend": "Agg"}), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            for cell in cells(NOTEBOOKS[number - 1], "code"):
                exec(compile(cell.source, f"notebook {number}, {cell.id}", "exec"), names)
        finally:
            plt.close("all")
            if home != Path.cwd():
                os.chdir(home)
    return names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_is_committed_without_output(path):
    nbformat.validate(nbformat.read(path, as_version=4))
    for cell in cells(path, "code"):
        assert not cell.outputs
        assert cell.execution_count is None
    assert not re.search(r"/home/|/root/|/work/|/Users/", path.read_text())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_question_and_answer_come_first_and_the_setup_is_collapsed(path):
    first, code = cells(path, "markdown")[0].source, cells(path, "code")
    assert re.match(r"# .+\n\n\*\*Question\.\*\* [^?]+\?\s+\*\*Answer\.\*\* ", first)
    assert "hide-input" in code[0].metadata.tags
    for cell in code:
        body = ast.parse(cell.source)
        assert not [node for node in ast.walk(body) if isinstance(node, ast.Assert)], cell.source
        imports = [node for node in body.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert not imports or cell is code[0], "imports belong to the setup"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_figures_have_one_palette_and_labels_in_words(path):
    source = "\n".join(cell.source for cell in cells(path, "code"))
    assert not re.search(r"""(color|colour)s?=["'](red|green|blue|orange|tab:\w+|C\d)["']""", source)
    labels = re.findall(r'[xy]label(?:=|\()r?"([^"]*)"', source)
    assert len(labels) >= 2
    for label in labels:
        assert re.search(r"[a-z]{3}", re.sub(r"\$[^$]*\$", "", label)), label


def test_there_are_seven_and_they_are_small():
    assert [path.name[0] for path in NOTEBOOKS] == list("1234567")
    assert sum(path.stat().st_size for path in NOTEBOOKS) < 400_000


@pytest.mark.slow
class TestGlatard:
    """What notebook 1 says of Glatard, Montagnat and Pennec."""

    @pytest.fixture
    def names(self):
        return session(1)

    def test_formulas_and_simulation(self, names):
        assert len(names["deviation"]) == 10
        assert max(names["deviation"].values()) < 1e-11
        jobs, mean = names["jobs"], float(names["equation_6"])
        assert abs(jobs.mean() - mean) < 4 * jobs.std() / np.sqrt(jobs.size)
        assert np.allclose(names["f_1_by_differences"], names["f_1"][names["v"] < 0.9], atol=1e-8)
        assert np.isclose(names["f_1"][0], -0.1 * ndtr(1) ** 2, rtol=1e-4)
        for g in (names["f_1"], names["g_2"], names["g_3"]):
            assert np.count_nonzero(np.diff(np.sign(g[:-1]))) == 1

    def test_figures(self, names):
        harms, helps, crosses = names["ahead"]
        assert harms <= {-1, 0}
        assert helps == {1}
        assert crosses == {-1, 1}
        means = float(latfit.expected_duration(names["law"], 300)), names["law"].mean()
        assert [round(mean, 1) for mean in means] == [364.5, 403.4]
        assert np.allclose(names["gaussian_optima"], [606.5, 575.2, 521.6], atol=0.05)
        assert (np.diff(names["K_table"], axis=0) < 0).all()
        assert (np.diff(names["K_table"], axis=1) < 0).all()
        assert [round(names["K"](sigma, 0.01), 3) for sigma in (0.5, 0.6)] == [3.167, 3.363]
        assert (names["with_cost"].verdict, round(names["with_cost"].timeout)) == ("finite", 107)
        speed_up = np.interp([1, 1.5, 2], np.linspace(0.5, 2, 31), names["speed_up"])
        assert [round(value, 2) for value in speed_up] == [1.12, 2.42, 10.25]
        for sigma, helps_at_the_median in ((0.9311492, False), (0.9311494, True)):
            law = latfit.parse_law(f"lognormal(mu=0,sigma={sigma})")
            assert (latfit.expected_duration(law, 1) < law.mean()) == helps_at_the_median

    def test_table_1(self, names):
        table = names["table_1"]
        assert [entry[:2] for entry in table["ρ = 0, latfit"]] == ["+∞", "+∞", "+∞", "an", "0", "48", "0"]
        assert [entry[:2] for entry in table["ρ = 0.025, latfit"]] == ["50", "57", "65", "0", "0", "36", "0"]
        assert [best.verdict for best in names["G13"].values()] == ["finite", "finite", "immediate", "immediate"]

    def test_the_experiment(self, names):
        best, ratio, latency = names["best"], names["ratio"], names["latency"]
        assert (best.timeout, round(best.expected_duration)) == (358, 300)
        assert round(best.expected_duration * best.speed_up_vs_cutoff) == 647
        assert (ratio.n, ratio.count, round(100 * ratio.estimate, 1)) == (2137, 53, 2.5)
        assert (round(latency.mean), round(latency.std)) == (393, 792)
        assert np.allclose([*best.within_1pct, *best.within_5pct], [317, 402, 279, 708], atol=0.5)
        assert best.intervals.timeout[0] <= 358 <= best.intervals.timeout[1]
        assert names["hybrid"].sse < 0.2
        assert names["D"].min() < 1.35 < names["D"].max()
        assert names["honest"].p_bootstrap < 0.02 < names["honest"].p_asymptotic
        assert all(each.ks.p_bootstrap < 0.02 for each in names["result"].decision.fits)
        assert {"ratio-falling", "all-rejected"} <= {warning.code for warning in names["result"].warnings}
        assert names["summary"]["deviation"].abs().max() <= 1

    def test_beyond_the_paper(self, names):
        verdicts = ["never", "never", "finite", "finite", "finite", "immediate", "immediate", "finite", "finite"]
        assert list(names["conjectures"]["verdict"]) == verdicts
        assert all(names["conjectures"]["a restart helps somewhere"][:5])
        assert np.isclose(latfit.optimal_timeout(names["step"]).speed_up, 4 / 3)
        shifted, right = names["shifted"], names["right"]
        assert [round(x) for x in (shifted.timeout + 300, shifted.expected_duration + 300)] == [684, 675]
        assert [round(x) for x in (right.timeout, right.expected_duration, names["with_shifted"])] == [1337, 737, 831]


@pytest.mark.slow
class TestVanMoorsel:
    """What notebook 2 says of van Moorsel and Wolter."""

    @pytest.fixture
    def names(self):
        return session(2)

    def test_the_running_example(self, names):
        best, once = names["best"], names["once"]
        assert [round(x, 3) for x in (names["E_T"], once.expected_duration, best.expected_duration)] == [
            0.19,
            0.136,
            0.127,
        ]
        assert (round(best.timeout, 6), round(once.timeouts[0], 2)) == (0.198254, 0.25)
        assert [round(gain, 1) for gain in names["gains"].values()] == [33.2, 82.4, 96.7]
        assert np.allclose([*best.within_1pct, *best.within_5pct], [0.160, 0.247, 0.124, 0.329], atol=5e-4)
        assert np.isclose(names["inverse_hazard"], best.expected_duration, rtol=1e-9)
        assert [round(at, 3) for at in names["optima"].values()] == [0.198, 0.192, 0.188]

    def test_distributions(self, names):
        assert np.abs(names["simulated_cdf"] - names["F_tau"]).max() < 0.012
        draws, three = names["scheduled"], names["three"]
        assert abs(draws.mean() - three.expected_duration) < 4 * draws.std() / np.sqrt(draws.size)

    def test_bounds_and_restarts(self, names):
        assert ((names["lower"] <= names["exact"]) & (names["exact"] <= names["upper"])).all()
        assert np.allclose([names["early"], names["late"]], [0.08996, 0.31105], atol=5e-6)
        assert names["geometric_bounds"](8.0)[0] < 1e-5
        assert np.isclose(names["crossing"], 0.0501084, atol=1e-6)
        for a, b in zip(names["order"][:-1], names["order"][1:], strict=True):
            assert (a <= b)[names["helps"]].all()
            assert (a >= b)[~names["helps"]].all()
        assert [round(names["meets"][K], 4) for K in (1, 2, np.inf)] == [0.0160, 0.0164, 0.0263]
        assert not names["as_printed"]
        assert names["restarted"] < names["none"]

    def test_every_printed_number(self, names):
        digits = [3, 3, 3, 3, 4, 6, 6, 6, 6]
        table = names["table_1"]
        assert [round(x, d) for x, d in zip(table["latfit"], digits, strict=True)] == list(table["paper"])
        for _, printed, ours in names["rows"][1:]:
            assert abs(ours - printed) <= 0.5 * 10 ** -len(f"{printed:.15g}".split(".")[1])


@pytest.mark.slow
class TestChalasani:
    """What notebook 3 says of Chalasani, Jha, Shehory and Sycara."""

    @pytest.fixture
    def names(self):
        return session(3)

    def test_means_and_theorem_1(self, names):
        assert np.allclose(names["printed"], [11, 7.4, 5.96])
        assert np.allclose(names["means"], [11, 9.4, 8.76])
        assert np.allclose(names["simulated"], names["means"], atol=0.06)
        assert np.abs(names["deviation"]).max() < 1e-9
        for c, (mean, variance) in names["figure_1"].items():
            assert (np.diff(mean) < 0).all() == (c > 3)
            assert (variance[-1] < variance[0]) == (c > 1 + 0.5**-1.5)

    def test_the_dynamic_programme(self, names):
        assert np.allclose(names["as_printed"][:3], [11, 7.4, 5.96])
        assert np.isclose(names["printed_programme"]({"site": names["page"]}, 61)[0], 5)
        assert np.allclose(names["corrected"][:3], [11, 9.4, 8.76])
        assert np.isclose(names["page_for_ever"], 25 / 3)
        assert (names["wrong_mean"], names["wrong_choice"]) == (1.25, ("agent", 1.0))
        by_hand = 0.5 * 1 + 0.2 * 3 + 0.3 * (3 + 7)  # one restart, at 3; at 1 it would be 0.5·1 + 0.5·(1 + 7) = 4.5
        assert np.isclose(names["three_agents"]["mean (s)"].iloc[1], by_hand)

    def test_general_laws(self, names):
        assert all((loss >= -1e-12).all() for loss in names["losses"].values())
        b = np.linspace(0, 3, 121)[1:]
        root = np.sqrt(2 / np.pi)  # the paper's g(b) − EX of the half-normal law
        printed = (1 - np.exp(-(b**2) / 2)) * root + 2 * (1 - ndtr(b)) * (b + root) - root
        assert np.allclose(names["losses"]["half-normal"], printed)
        assert names["once"].timeouts == (1.0,)
        assert np.isclose(names["once"].expected_duration, 10 / 9)
        assert np.isclose(names["step_for_ever"].expected_duration, 1)

    def test_thrashing(self, names):
        """Below the rule's share a long queue shrinks, above it grows, at the rate that the rule gives."""
        rule = 0.7 * (1 + 2 * names["shares"]) - 1
        assert np.allclose(names["growths"].mean(axis=0), rule, atol=0.04)
        assert round(names["safe"], 3) == 0.214
        ends = {name: lengths[-1] for name, (_, lengths, _) in names["runs"].items()}
        assert [length < 30 for length in ends.values()] == [True, False, True]

    def test_every_printed_number(self, names):
        summary = names["summary"]
        right = ~summary["remark"].str.startswith("erratum")
        assert summary.loc[right, "deviation"].abs().max() < 5.1e-4


@pytest.mark.slow
def test_your_own_log():
    names = session(4)
    retry = names["result"].timeout.retry
    assert [round(t) for t in retry.timeouts] == [629]
    assert [round(x) for x in (retry.expected_duration, retry.waiting)] == [403, 558]
    truth, dropped, invented, right = names["in_force"]
    assert [round(x, 1) for x in truth[1:3]] == [423.7, 359.9]
    assert dropped[1] is None
    assert round(dropped[2]) == 230
    assert dropped[3] > 1.12 * truth[3]
    assert invented[1] is None
    assert right[3] < 1.005 * truth[3]
    assert names["timed_out"].sum() == 558
    for _, true, _, interval, regret, _ in names["groups_table"]:
        low, high = map(float, interval.split(" to "))
        assert low <= true <= high
        assert regret < 0.02
        assert names["best"].timeout < true
    assert "beyond-timeout" in {warning.code for warning in names["early"].warnings}
    assert "drift" in {warning.code for warning in names["pooled"].warnings}
    assert ((names["low"] <= names["true_of_day"]) & (names["true_of_day"] <= names["high"])).sum() >= 5
    assert names["true_of_day"][0] < names["pooled"].timeout.timeout < names["true_of_day"][-1]
    assert max(names["on_time"], key=names["on_time"].get) in ("deadline:1200", "quantile:0.95")


@pytest.mark.slow
def test_strategies():
    names = session(5)
    reference, best = names["table"].reference, names["table"].best().outcome
    assert (round(reference.expected_duration), round(reference.submissions, 2)) == (375, 1.52)
    assert (round(best.policy.d), round(best.expected_duration)) == (243, 291)
    assert round(1 - best.expected_duration / reference.expected_duration, 2) == 0.22
    assert round(names["plain"]) == round(names["at_p95"]) == 1718
    assert round(names["single"].objective["value"]) <= 1313
    same = [each for each, row in zip(names["spreads"], names["log"].rows, strict=True) if row.role == "same"]
    assert all(0.89 < each.ratio_low < each.ratio_high < 0.94 for each in same)
    assert round(names["load"].safe_share, 3) == 0.214
    assert min(row.outcome.job_seconds for row in names["table"].rows) == reference.job_seconds


@pytest.mark.slow
def test_a_system_that_changes():
    names = session(6)
    assert round(names["regrets"]["tracked"], 2) == 0.02
    assert round(names["regrets"]["fixed"], 2) == 0.8
    assert names["bundled"].changes.changes == ()
    kinds = {group.key["site"]: group.changes for group in names["result"].groups}
    assert [change.kind for change in kinds["steady"].changes] == ["scale"]
    assert kinds["busy"].changes == ()
    assert kinds["busy"].daily_cycle > 2


@pytest.mark.slow
def test_research():
    names = session(7)
    best = names["best"]
    assert (best.timeout, round(best.speed_up_vs_cutoff, 2)) == (358, 2.16)
    assert [round(end) for end in best.intervals.timeout] == [323, 382]
    table = names["laws_table"]
    assert table.index[0] == "lognormal-pareto"
    assert round(table["regret on the data"].iloc[0], 3) == 0.015
    assert (table["p, refitted"] < 0.05).all()
    assert names["latex"].count(r"\\") == 1 + len(names["fits"])


@pytest.mark.slow
def test_every_erratum_is_computed():
    blocks = re.findall(r"^```python\n(.*?)^```", ERRATA.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^### ([VGC]\d+)\. ", ERRATA.read_text(), flags=re.MULTILINE)
    assert headings == [*(f"V{i}" for i in range(1, 7)), *(f"G{i}" for i in range(1, 15)), "C1", "C2", "C3"]
    assert len(blocks) == 1 + len(headings)
    session = {}
    for heading, block in zip(["", *headings], blocks, strict=True):
        assert not heading or "assert" in block, heading
        exec(compile(block, f"errata.md {heading}", "exec"), session)


def test_links_of_the_pages_lead_somewhere():
    for page in (ERRATA, METHOD):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / Path(target)).exists(), f"{page.name}: {target}"


def test_every_warning_is_explained():
    given = set()
    for path in (REPO / "latfit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = ()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Warned":
                parts = node.args
            elif path.name == "warn.py" and isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                parts = node.value.elts
            given |= {part.value for part in parts[:1] if isinstance(part, ast.Constant)}
    section = METHOD.read_text().split("## Warnings")[1].split("##")[0]
    assert given == set(re.findall(r"^\| `([a-z-]+)` \|", section, flags=re.MULTILINE))
