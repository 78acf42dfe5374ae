"""The page in a real browser: dragging, keys, sliders, sorting, dark, print, a phone, no script, hostile names."""

import json
import re

import numpy as np
import pytest

from chromium import needs_axe, needs_chromium, running, violations
from latfit.laws import Empirical
from latfit.restart import completion_quantile, expected_duration
from pages import analysed, page

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    with running() as one:
        yield one


@pytest.fixture
def shown(browser, tmp_path):
    """Open the page of one of the logs; whatever it asks for or complains of fails the test."""
    contexts, wrong = [], []

    def open_(name, **options):
        path = tmp_path / f"{name}.html"
        path.write_text(page(name), encoding="utf-8")
        context = browser.new_context(**{"viewport": {"width": 1000, "height": 800}, **options})
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda message: wrong.append(message.text))
        tab.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
        tab.on("dialog", lambda dialog: wrong.append(dialog.message))
        tab.goto(path.as_uri())
        return tab

    yield open_
    for context in contexts:
        context.close()
    assert not wrong


def state(tab):
    return json.loads(tab.evaluate("JSON.stringify(window.latfit)"))


def test_the_model_in_the_browser_is_the_librarys(shown):
    tab = shown("bundled")
    law = Empirical.of(analysed("bundled").decision.sample)
    assert state(tab)["E"] == pytest.approx(float(expected_duration(law, 358.0)), rel=1e-9)
    rng = np.random.default_rng(2)
    for slider, values in (("t", rng.uniform(300, 900, 4)), ("c", rng.uniform(0, 1000, 3)), ("rho", [0, 300, 700])):
        for value in values:
            tab.locator(f"#s-{slider}").fill(str(float(value)))
            now = state(tab)
            rho = now["state"]["rho"]
            here = law if rho == pytest.approx(law.rho, abs=1e-15) else law.rescaled(rho)
            wanted = expected_duration(here, now["state"]["t"], cost=now["state"]["c"])
            assert now["E"] == pytest.approx(float(wanted), rel=1e-9)


def test_dragging_the_curve(shown):
    tab = shown("bundled")
    tab.locator("#curve .chart").scroll_into_view_if_needed()
    box = tab.locator("#curve .chart").bounding_box()
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + 0.4 * box["width"], middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.8 * box["width"], middle, steps=4)
    dragged = state(tab)["state"]["t"]
    tab.mouse.up()
    tab.mouse.move(box["x"] + 0.2 * box["width"], middle)
    assert dragged > 1000
    assert state(tab)["state"]["t"] == dragged
    tab.click("#to-best")
    assert state(tab)["state"]["t"] == 358
    assert "358" in tab.locator("#said").text_content()
    assert tab.evaluate("getSelection().toString()") == ""  # dragging selects nothing


def test_keys_move_the_handle(shown):
    tab = shown("bundled")
    handle = tab.locator("#curve [role=slider]")
    handle.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    more = state(tab)["state"]["t"]
    assert more > 358
    assert tab.locator("#curve [role=slider]").get_attribute("aria-valuetext").startswith(f"{more:.0f} s")
    tab.keyboard.press("Home")
    assert state(tab)["state"]["t"] == 104
    tab.keyboard.press("End")
    assert state(tab)["state"]["t"] == pytest.approx(10_000)


def test_a_deadline_and_quantiles_are_those_of_the_library(shown):
    tab = shown("bundled")
    law = Empirical.of(analysed("bundled").decision.sample)
    wanted = float(completion_quantile(law, 0.95, 358.0))
    assert tab.locator("#yours-q95").text_content() == f"{wanted:.0f} s"
    assert tab.locator("#yours-D").text_content() == "95.0 %"  # the deadline begins at the 95 % quantile


def test_a_cost_moves_the_minimum(shown):
    tab = shown("bundled")
    tab.locator("#s-c").fill("900")
    assert tab.locator("#least-t").text_content() != "358 s"
    tab.click("#as-logged")
    assert tab.locator("#least-t").text_content() == "358 s"


def test_groups_sort_by_number(shown):
    tab = shown("many")
    table = tab.locator("section", has=tab.get_by_role("heading", name="By group")).locator("table")
    for direction in ("ascending", "descending"):
        table.get_by_role("button", name="probes").click()
        numbers = [int(text) for text in table.locator("tbody td:nth-child(2)").all_text_contents()]
        assert numbers == sorted(numbers, reverse=direction == "descending")
        assert table.locator("th[aria-sort]").get_attribute("aria-sort") == direction


def test_hostile_names_run_nothing(shown):
    tab = shown("hostile")
    assert tab.evaluate("window.hacked") is None
    assert tab.locator("img").count() == 0
    assert state(tab)["E"] > 0


@pytest.mark.slow
def test_a_phone_need_not_scroll_sideways(shown):
    for name in ("bundled", "mixed", "failures", "hostile"):
        tab = shown(name, viewport={"width": 375, "height": 700})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 375, name
        assert tab.locator("figure .chart").first.bounding_box()["width"] <= 345


def test_dark_is_dark(shown):
    for scheme, dark in (("light", False), ("dark", True)):
        tab = shown("bundled", color_scheme=scheme)
        colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", colour))) < 60) == dark


def test_text_and_tables_work_without_javascript(shown):
    tab = shown("bundled", java_script_enabled=False)
    assert tab.locator("h1").is_visible()
    assert tab.locator("table").count() > 2
    assert not tab.locator("#controls").is_visible()
    assert tab.locator("noscript").count() == 1


def test_print_to_pdf(shown, tmp_path):
    document = shown("bundled").pdf()
    assert document.startswith(b"%PDF")
    assert 1 <= document.count(b"/Type /Page\n") <= 2


def test_hovering_reads_values(shown):
    tab = shown("bundled")
    tab.locator("#curve .chart").hover(position={"x": 300, "y": 100})
    assert re.search(r"A timeout of .* s, repeated: \d+ s a job", tab.locator("#read-curve").text_content())
    tab.locator("#statistics summary").first.click()
    figure = tab.locator("#statistics figure").first
    figure.locator(".chart").hover(position={"x": 200, "y": 80})
    assert "%" in figure.locator(".readout").text_content()
    figure.locator(".chart").focus()
    tab.keyboard.press("ArrowRight")
    assert "%" in figure.locator(".readout").text_content()


def test_nothing_is_drawn_outside_the_plot(shown):
    for name in ("bundled", "mixed", "failures"):
        tab = shown(name)
        marks = "#curve .dot, figure .small"
        assert tab.evaluate(
            """(marks) => [...document.querySelectorAll(marks)].every((one) => {
              const dot = one.getBoundingClientRect(), box = one.closest("svg").getBoundingClientRect();
              return !dot.width || (dot.left >= box.left && dot.right <= box.right + 1 && dot.top >= box.top - 1
                && dot.bottom <= box.bottom); })""",
            marks,
        ), name


def test_groups_are_searched(shown):
    tab = shown("mixed")
    tab.locator("input[type=search]").fill("rep")
    rows = tab.locator("#by-group tbody tr:visible")
    assert rows.count() == 1
    assert "/report" in rows.first.text_content()
    assert tab.locator("#by-group .dots").count() == 2


def test_the_risk_slider_shows_schedules(shown):
    tab = shown("bundled")
    assert "358" in tab.locator("#risk-says").text_content().replace("\u00a0", " ")
    tab.locator("#s-risk").fill("0")
    assert tab.locator("#o-risk").text_content() == "0 %"
    assert tab.locator("#risk-says").text_content().startswith("Wait")


def test_a_histogram_has_its_page(shown):
    tab = shown("histogram")
    assert tab.locator("#chart-0 .chart path").count() >= 2
    assert "500" in tab.locator("h1").text_content()


@needs_axe
@pytest.mark.parametrize(
    ("name", "scheme"), [("bundled", "light"), ("bundled", "dark"), ("mixed", "light"), ("few", "dark")]
)
def test_axe_finds_nothing(shown, name, scheme):
    tab = shown(name, color_scheme=scheme)
    assert violations(tab) == []
