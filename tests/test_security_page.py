"""docs/security.md names a test for every promise; these tests exist."""

import re

import pytest

from conftest import REPO

PAGE = (REPO / "docs" / "security.md").read_text(encoding="utf-8")


def names_of_tests(folder):
    """The names of all tests."""
    return {
        name for path in folder.rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 30
    assert named - names_of_tests(REPO / "tests") == set()


@pytest.mark.parametrize("heading", ["Logs", "Files that latfit keeps for itself", "Probes", "The report page"])
def test_every_promise_has_a_test(heading):
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert rows
    assert all("`test_" in row for row in rows), [row for row in rows if "`test_" not in row]
