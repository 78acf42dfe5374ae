"""The documentation site: built with warnings as errors, every link leads somewhere, no request, nothing for axe."""

import fcntl
import functools
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import latfit
from chromium import needs_axe, needs_chromium, running, violations
from conftest import REPO

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("myst_nb") is None, reason="the extra docs is missing")]
LARGEST = 40_000_000  # bytes


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site: one build for all workers of a run."""
    folder = tmp_path_factory.getbasetemp().parent / f"site-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").exists():
            done = subprocess.run([REPO / "scripts" / "docs", folder], capture_output=True, text=True, timeout=900,
                                  env={**os.environ, "PYTHON": sys.executable})  # fmt: skip
            assert done.returncode == 0, done.stderr[-3000:]
    return folder


class Page(HTMLParser):
    """What a page links to, what can be linked to, and the tags that it has."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.tags = [], set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.add(tag)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def pages(site):
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def test_every_link_leads_somewhere(site):
    found = pages(site)
    assert len(found) > 30
    checked = 0
    for path, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.exists(), (path.name, link)
            checked += 1
            if parts.fragment and target.suffix == ".html":
                assert parts.fragment in found[target].ids, (path.name, link)
    assert checked > 1000


def test_formulas_are_mathml_and_every_notebook_is_a_page(site):
    for notebook in (REPO / "notebooks").glob("*.ipynb"):
        page = Page(site / "notebooks" / f"{notebook.stem}.html")
        assert {"img", "pre"} <= page.tags
        assert "math" in page.tags or notebook.name[0] in "467"  # the papers' have formulas
    assert not list(site.rglob("*mathjax*"))


def test_the_reference_has_every_public_name_and_command(site):
    from latfit.cli import main

    for name in latfit.__all__:
        path = site / "generated" / "api" / f"latfit.{name}.html"
        assert path.exists(), name
        assert f"latfit.{name}" in Page(path).ids
    for name in main.modules:
        assert (site / "generated" / "commands" / f"{name}.html").exists(), name


def test_the_first_page_shows_the_decision_of_the_readme(site):
    text = re.sub("<[^>]*>", "", (site / "index.html").read_text(encoding="utf-8"))
    assert "Resubmit after 358 s" in text
    assert "647 s → 309 s a job" in text
    assert (site / "live-report.html").stat().st_size < 150_000


def test_it_is_not_large(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < LARGEST


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        """Nothing is printed."""


@pytest.fixture
def served(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


VISITED = [("index", "light"), ("howto-grid", "dark"), ("settings", "light"), ("notebooks/3-chalasani-agents", "light"),
           ("notebooks/4-your-own-log", "dark"), ("errata", "light")]  # fmt: skip


def visited(browser, base, name, scheme):
    """What is wrong with a page on a phone: errors, requests that leave, pages that are not there, what axe finds."""
    wrong = []
    tab = browser.new_context(viewport={"width": 375, "height": 800}, color_scheme=scheme).new_page()
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda one: wrong.append(one.url) if not one.url.startswith((base, "data:")) else None)
    tab.on("response", lambda one: wrong.append(one.url) if one.status >= 400 else None)
    tab.goto(f"{base}{name}.html")
    if tab.evaluate("document.documentElement.scrollWidth") > 375:
        wrong.append("wider than a phone")
    return [(name, one) for one in [*wrong, *violations(tab)]]


@needs_axe
@needs_chromium
def test_in_a_browser_no_request_leaves_and_axe_finds_nothing(served):
    with running() as browser:
        assert [fault for name, scheme in VISITED for fault in visited(browser, served, name, scheme)] == []
