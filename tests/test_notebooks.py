"""The notebooks run from scratch and are committed with clean output; the pages compute and list what they say."""

import ast
import re
import runpy
from pathlib import Path

import nbformat
import pytest

from conftest import REPO

NOTEBOOKS = sorted((REPO / "notebooks").glob("*.ipynb"))
ERRATA, METHOD = REPO / "docs" / "errata.md", REPO / "docs" / "method.md"
LARGEST, ALL = 1_500_000, 4_000_000


def by_name(path):
    return path.stem


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS[2:4], ids=by_name)
def test_runs_from_scratch(path):
    """As `scripts/notebooks` runs them all: an error or a warning in a cell raises."""
    executed = runpy.run_path(str(REPO / "scripts" / "notebooks"))["executed"]
    fresh, kept = executed(nbformat.read(path, as_version=4)), nbformat.read(path, as_version=4)
    assert [outputs(cell) for cell in fresh.cells] == [outputs(cell) for cell in kept.cells]


def outputs(cell):
    """The kinds of a cell's output: what must not change when numbers in the last digit do."""
    return [(each.output_type, sorted(each.get("data", {}))) for each in cell.get("outputs", [])]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=by_name)
def test_is_committed_with_clean_output(path):
    notebook, text = nbformat.read(path, as_version=4), path.read_text()
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    shown = [output for cell in code for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in shown) >= 1
    assert not [output for output in shown if output.output_type == "error" or output.get("name") == "stderr"]
    assert not re.search(r"/home/|/root/|/tmp/|/work/|/Users/|[A-Z]:\\\\\\\\", text)
    assert len(text) < LARGEST


def test_are_numbered_and_small():
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3", "4", "5", "6"]
    assert sum(path.stat().st_size for path in NOTEBOOKS) < ALL


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
    calls = [
        node
        for path in (REPO / "latfit").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Warned"
    ]
    given = {call.args[0].value for call in calls if call.args and isinstance(call.args[0], ast.Constant)}
    section = METHOD.read_text().split("## Warnings")[1].split("##")[0]
    assert given == set(re.findall(r"^\| `([a-z-]+)` \|", section, flags=re.MULTILINE))
