"""Debian's Chromium under playwright, and axe-core for what people with disabilities would stumble over."""

import shutil
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None, reason="chromium or playwright is not installed"
)
needs_axe = pytest.mark.skipif(find_spec("axe_core_python") is None, reason="axe-core-python is not installed")


@contextmanager
def running():
    """A browser of our own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def violations(tab):
    """What axe finds on a page: rule, impact, the first element; the rules that it checked must be many."""
    tab.evaluate((files("axe_core_python") / "axe.min.js").read_text())
    passed, found = tab.evaluate("""axe.run().then((r) => [r.passes.length,
        r.violations.map((v) => [v.id, v.impact, v.nodes[0].html])])""")
    assert passed > 10
    return found
