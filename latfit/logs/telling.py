"""Which column of a table tells what became of the probes: by its name, and by what its first cells hold."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from latfit.logs.formats import ReadOptions
from latfit.logs.outcomes import word_of
from latfit.logs.words import (
    ABSENT,
    CODES_OF,
    ERRORS,
    EXITS,
    GRPC_CODES,
    GRPC_OF,
    LEVELS_OF,
    MAYBE,
    NO,
    STATUSES_OF,
    YES,
    StatusWords,
    ends_in,
    flag_words,
    is_http_column,
)

FEW_WORDS = 12  # a column of outcomes has no more
MOSTLY = 0.6  # of the cells of a column of HTTP codes hold one
NAMED, UNNAMED = 0.8, 0.95  # the share of known words in a column that is called a status, and in any other
MEASURES = re.compile("tokens?|bytes|size|len|length|count|total|number|ms|us|ns|secs?|seconds|port")  # no codes
USUAL = {"200", "201", "202", "204", "206", "301", "302", "304"}  # what most requests are answered with


@dataclass(frozen=True)
class Telling:
    """What a column tells: whether it is one of outcomes `surely`, and whether any is bad; the least rank first."""

    name: str
    surely: bool
    bad: bool
    rank: int = 0


def telling(name: str, cells: pd.Series[Any], options: ReadOptions) -> Telling | None:
    """What a column tells of outcomes, None where it tells nothing."""
    counts = Counter(map(word_of, cells.dropna()))
    for word in ABSENT:
        counts.pop(word, None)
    if len(counts) > FEW_WORDS and not (ends_in(name, ERRORS) or ends_in(name, CODES_OF) or ends_in(name, EXITS)):
        return None
    table = StatusWords(name, options)
    table.settle(list(counts))
    meant = {word: table.outcome(word) for word in counts}
    bad = any(meaning not in (None, "completed") for meaning in meant.values())
    if _by_name(name, set(counts)) or _codes(name, counts):
        return Telling(name, True, bad)
    if ends_in(name, LEVELS_OF):
        return Telling(name, None not in meant.values(), bad, rank=1) if bad else None
    known = sum(counts[word] for word, meaning in meant.items() if meaning) / max(1, counts.total())
    spelled = any(re.search("[a-z]", word) for word in counts)  # numbers need a name
    if spelled and len(counts) <= FEW_WORDS and not set(counts) <= {*YES, *NO}:
        good = "completed" in meant.values()
        if (known >= NAMED and (ends_in(name, STATUSES_OF) or ends_in(name, GRPC_OF))) or (
            known >= UNNAMED and good and bad
        ):
            return Telling(name, True, bad)
    maybe = ends_in(name, MAYBE) or ends_in(name, STATUSES_OF)
    return Telling(name, False, bad) if maybe and 1 < len(counts) <= FEW_WORDS else None


def _by_name(name: str, words: set[str]) -> bool:
    """Whether it holds what its name promises: exit codes, errors in words, or yes and no."""
    if ends_in(name, GRPC_OF):
        return bool(words) and words <= set(GRPC_CODES)
    if ends_in(name, EXITS):
        return bool(words) and all(re.fullmatch(r"-?\d{1,5}(:\d+)?", word) for word in words)
    if ends_in(name, ERRORS):  # but not what a measurement may be off by
        return not any(re.fullmatch(r"[-+]?\d*\.\d+(e[-+]?\d+)?", word) for word in words)
    flags = flag_words(name)
    numbers = {"0", "1"} if flags.get("1") == "lost" else set()  # how many were, perhaps
    return bool(words) and words <= flags.keys() - numbers


def _codes(name: str, counts: Counter[str]) -> bool:
    """Whether it mostly holds HTTP codes; words beside them are those of a status."""
    numbers = sum(many for word, many in counts.items() if re.fullmatch(r"\d+(\.0)?|[1-5]xx", word))
    if not is_http_column(counts, words_too=True) or numbers <= MOSTLY * counts.total():
        return False
    if ends_in(name, MEASURES):
        return False
    usual = sum(many for word, many in counts.items() if word.removesuffix(".0") in USUAL)
    return ends_in(name, CODES_OF) or (len(counts) <= FEW_WORDS and usual > MOSTLY * counts.total())


def choose(
    named: str | None, columns: Mapping[str, pd.Series[Any]], options: ReadOptions
) -> tuple[str | None, list[str]]:
    """The column of outcomes, and others that may tell them too: that which is `named` so, unless all is well in it."""
    found = [one for name, cells in columns.items() if (one := telling(name, cells, options))]
    own = next((one for one in found if one.name == named), None)
    sure = sorted((one for one in found if one.surely), key=lambda one: one.rank)
    chosen = named
    if named is None or (own is not None and own.surely and not own.bad):
        best = next((one for one in sure if one.bad), None) or (sure[0] if sure and named is None else None)
        chosen = best.name if best else named
    return chosen, [one.name for one in found if one.name != chosen and (one.bad or not one.surely)]
