"""The page as text: one file under a limit, its own script only, what came from a log escaped."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import latfit
from latfit.laws import Empirical
from latfit.plots.draw import round_values
from latfit.report.page import kept_sums, to_html
from latfit.report.sections import advice
from latfit.restart import expected_duration
from latfit.sample import LatencySample
from pages import HOSTILE, LOGS, analysed, page


class Read(HTMLParser):
    """Which tags a page has with which attributes, and the text of each kind."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.open = [], {}, []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, text):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(text)


def read(name):
    found = Read()
    found.feed(page(name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_one_file_with_its_own_script_only(name):
    text, found = page(name), read(name)
    assert len(text.encode()) < 150_000
    (policy,) = (a["content"] for tag, a in found.tags if tag == "meta" and "http-equiv" in a)
    for tag in ("script", "style"):
        inside = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(inside) == 1
        digest = base64.b64encode(hashlib.sha256(inside[0].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    for tag, attributes in found.tags:
        assert tag not in ("img", "iframe", "link", "object", "form", "base")
        assert not {"src", "style"} & set(attributes), (tag, attributes)
        assert attributes.get("href", "#").startswith("#")
        assert not any(key.startswith("on") for key in attributes)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_ids_are_unique_and_headings_are_in_order(name):
    found = read(name)
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    levels = [int(tag[1]) for tag, _ in found.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_hostile_names_stay_text():
    found = read("hostile")
    assert not any("onerror" in a or "onload" in a for _, a in found.tags)
    assert any(HOSTILE[:12] in text for text in found.texts["td"])
    assert "\x1b" not in page("hostile")
    assert "\u202e" not in page("hostile")


def test_the_decision_comes_first():
    found = read("bundled")
    headline = f"{found.texts['h1'][0].strip()} {found.texts['b'][0]}".replace("\u00a0", " ")
    assert headline == advice(analysed("bundled")).headline
    assert "358 s" in headline


def test_a_withheld_decision_says_what_to_do_instead():
    text = page("mixed")
    assert analysed("mixed").timeout.withheld == ("mixed",)
    assert "endpoint" in " ".join(advice(analysed("mixed")).reasons)
    assert 'id="apply"' not in text
    assert "Resubmit after" not in re.sub("<script.*", "", text, flags=re.DOTALL)
    assert text.index("By group") < text.index("If attempts were independent")


def test_too_few_probes_have_a_page_without_a_curve():
    assert advice(analysed("few")).headline == "Collect more probes first"
    assert 'id="curve"' not in page("few")


@pytest.mark.slow
def test_groups_that_do_not_fit_are_counted():
    rows = page("many").split("<h2>By group</h2>")[1].split("</table>")[0].count("<tr>") - 2  # but for head and all
    text = re.sub(r"\s", " ", page("many"))
    counts = [re.search(words, text) for words in (r"(\d+) groups? (?:is|are) not shown", r"decision: (\d+) group")]
    assert rows + sum(int(found[1]) for found in counts if found) == len(analysed("many").groups)


def test_kept_times_are_exact_and_few():
    rng = np.random.default_rng(3)
    values = rng.lognormal(3, 1, 20_000)
    law = Empirical.of(LatencySample.of(values, failed=rng.lognormal(2, 1, 2000), lost=500))
    sums, steps = kept_sums(law, (law.jumps[777],))
    t, F, M, G, H = (sums[name] for name in "tFMGH")
    assert t.size <= 900
    assert not steps
    assert law.jumps[777] in t
    used = F > 0
    E = (M + H + 7 * G + (1 - F - G) * (t + 7))[used] / F[used]
    np.testing.assert_allclose(E, expected_duration(law, t[used], cost=7.0), rtol=1e-12)
    assert np.diff(F).max() < 0.006


@pytest.mark.parametrize(("low", "high"), [(1e-6, 3e-6), (0.002, 0.403), (104, 10_000), (1, 4e6), (99, 101)])
def test_ticks_are_inside_and_not_crowded(low, high):
    for log in (True, False):
        shown = round_values(low, high, log=log, times=True)
        assert all(low * 0.999 <= value <= high * 1.001 for value in shown)
        assert 2 <= len(shown) <= 7


def test_jobs_that_fail_visibly_have_their_curve():
    assert "resubmitted after" in page("failures")


def data(name):
    return re.search(r'<script type="application/json" id="data">(.*?)</script>', page(name), re.DOTALL)[1]


def test_dates_keep_their_digits():
    (chart,) = (chart for chart in json.loads(data("bundled"))["charts"] if chart["x"]["kind"] == "date")
    assert len(set(chart["lines"][0]["x"])) == len(chart["lines"][0]["x"]) > 10


def test_snippets_have_lines():
    snippets = re.findall("<pre[^>]*>(.*?)</pre>", page("bundled"), re.DOTALL)
    assert len(snippets) > 3
    assert all("\\n" not in text and text.count("\n") > 1 for text in snippets)


def test_data_cannot_end_its_block():
    block = data("hostile")
    assert not set("<>&") & set(block)
    assert json.loads(block)["law"]["steps"] is True


def test_slow_spells_have_one_figure_over_time():
    """The reason and a figure of the statistics may be the same chart."""
    slow = np.repeat(np.random.default_rng(5).random(40) < 0.3, 25)
    latency = np.random.default_rng(6).lognormal(np.where(slow, 2.0, 0.0), 0.2)
    when = pd.date_range("2026-01-01", periods=1000, freq="s", tz="UTC")
    log = latfit.from_frame(pd.DataFrame({"latency": latency, "submitted": when}))
    text = to_html(latfit.analyze(log, resamples=0, test=False, laws=["lognormal"]))
    headings = re.findall(r'<(h[23]) class="figure">(.*?)</', text)
    assert [tag for tag, title in headings if "time" in title and "timeout" not in title] == ["h2"]
