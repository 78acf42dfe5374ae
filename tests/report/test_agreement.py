"""The page, the text and the JSON of an analysis make the same statements, on every kind of log."""

import html
import json
import re

import numpy as np
import pytest

import golden_logs
import latfit
from latfit.report import to_html, to_markdown, to_text
from latfit.units import times_in_words
from pages import LOGS, analysed

SPACE = re.compile(r"\s+")


def plain(text):
    """Text without tags, and with every space alike."""
    return SPACE.sub(" ", html.unescape(re.sub("<[^>]*>", "", text))).strip()


def disagreements(result):
    """What the page or the text says of a decision that its JSON does not, and the other way round."""
    document, page = result.to_dict(), to_html(result)
    text = SPACE.sub(" ", to_text(result, full=True))  # in which a name from the log may look like a tag
    (headline,) = map(plain, re.findall("<h1>(.*?)</h1>", page, re.DOTALL))
    retry = document["timeout"]["retry"]
    wanted = "" if retry is None else f"Resubmit after {times_in_words(retry['timeouts'])}, then wait"
    if headline != wanted if retry else headline.startswith("Resubmit"):
        yield f"the page says {headline!r}, the JSON {wanted!r}"
    if headline not in text:
        yield f"the text lacks {headline!r}"
    statements = map(plain, re.findall("<dd>(.*?)</dd>", page, re.DOTALL))
    warnings = [warning["message"] for warning in document["warnings"]]
    for statement in (*statements, *warnings):
        if SPACE.sub(" ", statement) not in text:
            yield f"the text lacks {statement!r}"
    model = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    formula = document["timeout"]["if_independent"] or document["timeout"]
    if "law" in model and model["timeout"] != formula["timeout"]:
        yield f"the curve begins at {model['timeout']}, the JSON has {formula['timeout']}"
    chosen = [at["says"] for at in model.get("risks", ()) if at["chosen"]]
    if any(times_in_words(retry["timeouts"]) not in says for says in chosen if retry):
        yield f"the slider says {chosen}, the JSON {retry['timeouts']}"
    for group in document["groups"]:
        schedule = group.get("retry")
        if schedule and times_in_words(schedule["timeouts"]) not in plain(to_markdown(result)):
            yield f"no schedule of {group} in Markdown"


@pytest.mark.slow
@pytest.mark.parametrize("name", LOGS)
def test_pages_agree(name):
    assert not list(disagreements(analysed(name)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "failing", "mixed", "slow_hours", "drifting", "jobs"])
def test_kinds_of_logs_agree(kind):
    frame = getattr(golden_logs, kind)(np.random.default_rng(7))
    result = latfit.analyze(latfit.from_frame(frame), resamples=19, test=False, laws=[])
    assert not list(disagreements(result))
