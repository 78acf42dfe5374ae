"""The fast ways through a log, against plain ones: repeated ids, blanks, categories of several blocks, groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from latfit import from_frame
from latfit.logs.records import RepeatedIds
from latfit.logs.vocabulary import ABSENT, is_blank
from latfit.table import ProbeLog, ProbeTable

WORDS = ["a", "aa", "a\0", "site-1", "é" * 9, "x" * 7, "x" * 8, "x" * 9, "y" * 64, "0", "00", "-1", "Ω", " ", "a b"]


def plainly(chunks):
    """Which rows repeat an id of an earlier kept row, one id after the other."""
    seen, found = set(), []
    for ids, rows in chunks:
        again = []
        for one, row in zip(ids, rows, strict=True):
            known = row and one is not None
            again.append(known and one in seen)
            seen |= {one} if known else set()
        found.append(again)
    return found


@pytest.mark.parametrize("distinct", [5, 200, 100_000])
@pytest.mark.parametrize("kind", ["text", "numbers", "objects"])
def test_repeated_ids_are_those_of_a_set(distinct, kind):
    rng = np.random.default_rng(distinct)
    chunks, repeated = [], RepeatedIds()
    for size in (1, 50, 400, 0, 300):
        numbers = rng.integers(0, distinct, size)
        ids = numbers.tolist() if kind == "numbers" else [f"{WORDS[n % 15]}{n}" if n % 7 else None for n in numbers]
        chunks.append((ids, rng.random(size) < 0.9))
    for (ids, rows), again in zip(chunks, plainly(chunks), strict=True):
        array = pd.Series(ids, dtype={"text": "str", "numbers": "int64", "objects": "object"}[kind])
        given = array.array if kind == "text" else array.to_numpy()
        assert repeated.among(given, rows).tolist() == again


@pytest.mark.parametrize("text", [None, "{}", "job-{:06d}", "é{}"])
@pytest.mark.parametrize("last", [[900, 950, 20], [299, 900], [900, 900], [901, 902, 903]])
def test_ids_that_rose_until_now(last, text):
    rng, repeated = np.random.default_rng(len(last)), RepeatedIds()
    chunks = [(list(range(first, first + 100)), rng.random(100) < 0.9) for first in (0, 100, 200)]
    chunks += [
        ([], np.zeros(0, dtype=bool)),
        (last, np.ones(len(last), dtype=bool)),
        ([5, 901], np.ones(2, dtype=bool)),
    ]
    for (ids, rows), again in zip(chunks, plainly(chunks), strict=True):
        given = np.array(ids, dtype=np.int64) if text is None else pd.array(list(map(text.format, ids)), dtype="str")
        assert repeated.among(given, rows).tolist() == again


def test_blanks_are_those_of_python():
    cells = [
        *ABSENT,
        *(f" {word.upper()}\t" for word in ABSENT),
        "0",
        "nann",
        "none of it",
        None,
        "n /a",
        "\u2003",
        "x",
    ]
    for dtype in ("str", "category", "object"):
        found = is_blank(pd.Series(cells, dtype=dtype))
        assert found.tolist() == [cell is None or cell.strip().lower() in ABSENT for cell in cells]


def log(frame):
    return from_frame(frame, latency="latency", status="status")


def test_blocks_with_different_words_stay_categories():
    frame = pd.DataFrame({"latency": np.arange(1.0, 9.0), "status": "ok", "site": list("bbacddab")})
    parts = [frame[:3], frame[3:5], frame[5:]]
    blocks = [log(part.reset_index(drop=True).astype({"site": "category"})) for part in parts]
    whole = ProbeLog(ProbeTable.concat([block.table for block in blocks])).frame["site"]
    assert isinstance(whole.dtype, pd.CategoricalDtype)
    assert whole.astype(str).tolist() == frame["site"].tolist()


@pytest.mark.parametrize("dtype", ["category", "str", "object"])
def test_groups_are_those_of_pandas(dtype):
    rng = np.random.default_rng(4)
    n = 400
    words = np.array(["b", "a", "unknown", "ab", "Z", "é"])
    frame = pd.DataFrame({"latency": rng.lognormal(3, 1, n), "status": "ok"})
    for name, some in (("site", 6), ("kind", 3)):
        column = pd.Series(words[rng.integers(0, some, n)]).mask(rng.random(n) < 0.1)
        frame[name] = column.astype(dtype)
    groups = log(frame).table.group_by(["site", "kind"])
    text = frame[["site", "kind"]].astype(object).fillna("unknown")
    plain = {key: list(index) for key, index in text.groupby(["site", "kind"]).groups.items()}
    assert groups.keys == sorted(plain)
    assert {key: mine.tolist() for key, mine in zip(groups.keys, groups, strict=True)} == plain
