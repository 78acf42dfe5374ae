"""What the words of a log mean: `vocabulary.toml`, and how names of columns and cells are looked up in it."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import listed
from latfit.logs.records import UNKNOWN, Records
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED, LOST, STATUSES
from latfit.units import UNIT_WORDS

if TYPE_CHECKING:
    from latfit.logs.formats import ReadOptions

VOCABULARY: dict[str, Any] = tomllib.loads(resources.files("latfit.logs").joinpath("vocabulary.toml").read_text())
WEIGHTS: dict[str, dict[str, float]] = {
    section: {word: float(weight) for weight, words in by_weight.items() for word in words}
    for section, by_weight in VOCABULARY["names"].items()
}
USUAL_UNITS = {word: unit for unit, words in VOCABULARY["usual_units"].items() for word in words}
OUTCOME_WORDS = {word: outcome for outcome, words in VOCABULARY["outcomes"].items() for word in words}
OUTCOME_PATTERNS = {outcome: re.compile(pattern) for outcome, pattern in VOCABULARY["outcome_patterns"].items()}
SUGGESTED: dict[str, str] = VOCABULARY["suggested"]
TIMED_OUT = "time.?out|timed.?out|deadline"
NEVER = {word for word, outcome in OUTCOME_WORDS.items() if outcome in ("censored", "lost")}  # in place of a latency
KIND_NAMES = {kind: re.compile(known["names"]) for kind, known in VOCABULARY["kinds"].items()}
FLAG_NAMES = {re.compile(names): meaning for names, meaning in VOCABULARY["flags"].items()}
YES, NO = ("true", "yes", "y", "t", "1"), ("false", "no", "n", "f", "0")
ABSENT = ("", "nan", "na", "n/a", "null", "none", "nat")  # words for an absent value
NOTHING = (*ABSENT, "-", "--", "*", "?", "<none>", "\\n")  # and what stands in place of a number or a time
NO_TIME = (*NOTHING, "unknown", "never", "0000-00-00", "0000-00-00 00:00:00")  # and in place of a time
NO_ANSWER = ("0", "000", "-", "-1", "")  # in place of an HTTP code: refused, reset, unknown host, so failed at once
HTTP_CODE = re.compile(r"([1-5])(?:\d\d|xx)(?:\.0+)?", re.ASCII)
# codes that no exit status or signal is (255, 137): they prove a column of HTTP codes
HTTP_PROOF = re.compile(r"20[0-8]|30[0-8]|4[0-4]\d|45[01]|50[0-9]|51[01]|52\d|[2-5]xx", re.ASCII)
CODE_AND_WORDS = re.compile(r"(?:http/[\d.]+ +)?([1-5]\d\d)(?: +[a-z].*)?")  # HTTP/1.1 504 Gateway Timeout
# an answer came, or the connection was refused: the client knew at once
CAME_BACK = r"^[1-5]\d\d(?:\.0)?$|refused|reset|reject|unavailable|unreachable|denied|http"
CHANGE = "; change it with --status, for example --status failed=4xx"
MAX_UNKNOWN_WORDS = 8  # that a message lists
LONGEST_PHRASE = 4  # words of a name that are looked up together
MOST_NAME_WORDS, LONGEST_COMPOUND = 16, 40  # words of a name that are looked at, from its end, and letters of one


def by_word(column: pd.Series[Any], meaning: Callable[[Any], Any], blank: Any) -> NDArray[Any]:
    """What each cell means, asked once for each distinct word of the column."""
    words = column.astype("category")
    return np.array([*map(meaning, words.cat.categories), blank])[words.cat.codes.to_numpy()]


def is_blank(column: pd.Series[Any], absent: tuple[str, ...] = ABSENT) -> Bools:
    """Which cells hold nothing, or a word for it."""
    if column.dtype.kind in "Mmfiub":
        return column.isna().to_numpy(dtype=bool)
    words = column.astype("string").str.strip().str.lower()
    return (words.isna() | words.isin(absent)).to_numpy(dtype=bool)


def cells_with(column: pd.Series[Any], pattern: str) -> Bools:
    """Which cells match a regular expression, in lower case; empty cells do not."""
    return by_word(column, lambda word: re.search(pattern, str(word).strip().lower()) is not None, False)


def name_words(name: str) -> list[str]:
    """The words of a column's name, in lower case.

    >>> name_words("http.response.statusCode [ms]"), name_words("HTTPStatus")
    (['http', 'response', 'status', 'code', 'ms'], ['http', 'status'])
    """
    # where the words of resultCode, HTTPStatus and latencyp50 begin
    begins = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[a-z]{3})(?=p\d\d)"
    spaced = re.sub(begins, "_", re.sub("[µμ]", "u", name)).lower()
    return [word for word in re.split(r"[^a-z0-9]+", spaced) if word]


@lru_cache(maxsize=4096)
def split_name(name: str) -> tuple[tuple[str, ...], str | None]:
    """The words of a name without its unit, joined words taken apart, and the unit that it ends in.

    >>> split_name("Response Time [ms]"), split_name("latencyms"), split_name("startTimeUnixNano")
    ((('response', 'time'), 'ms'), (('latency',), 'ms'), (('start', 'time', 'unix'), 'ns'))
    """
    words = [part for word in name_words(name)[-MOST_NAME_WORDS:] for part in _apart(word)]
    unit = UNIT_WORDS.get(words[-1]) if words else None
    if unit and len(words) > 1:
        words = words[:-2] if words[-2] == "in" and len(words) > 2 else words[:-1]
    return tuple(words), unit


def _apart(word: str) -> list[str]:
    if word in KNOWN_WORDS or not 4 <= len(word) <= LONGEST_COMPOUND:
        return [word]
    best: dict[int, list[str]] = {0: []}
    for end in range(2, len(word) + 1):
        parts = [
            [*best[start], word[start:end]]
            for start in range(end - 1)
            if start in best and word[start:end] in KNOWN_WORDS
        ]
        if parts:
            best[end] = min(parts, key=len)
    return best.get(len(word), [word])


KNOWN_WORDS = {
    *(word for weights in WEIGHTS.values() for word in weights if len(word) > 1),
    *(word for system in VOCABULARY["systems"].values() for word in system["words"] if len(word) > 1),
    *(word for word in UNIT_WORDS if len(word) > 1),
    "is",
}


def phrases(words: Sequence[str]) -> Iterator[tuple[slice, str]]:
    """All runs of up to four words, the longest first: their place, and the words joined."""
    for size in range(min(LONGEST_PHRASE, len(words)), 0, -1):
        for at in range(len(words) - size + 1):
            yield slice(at, at + size), "".join(words[at : at + size])


def weigh(section: str, words: Sequence[str]) -> tuple[float, str]:
    """The weight of a name's words in a section of the vocabulary, and the word that counts most.

    Longer phrases stand for the words in them: `response time` is not a `response`.
    """
    weights, free, matches = WEIGHTS[section], [True] * len(words), []
    for place, phrase in phrases(words):
        if phrase in weights and all(free[place]):
            free[place] = [False] * len(free[place])
            matches.append((weights[phrase], phrase))
    if not matches:
        return 0.0, ""
    matches.sort(key=lambda match: abs(match[0]), reverse=True)
    return matches[0][0] + VOCABULARY["decide"]["further"] * sum(weight for weight, _ in matches[1:]), matches[0][1]


def job_columns(names: Iterable[str]) -> list[str]:
    """The columns that may name the job of an attempt, the surest first.

    >>> job_columns(["Request-ID", "latency", "job"]), attempt_column(["retryNumber", "latency"])
    (['job', 'Request-ID'], 'retryNumber')
    """
    return _named("job", names)


def attempt_column(names: Iterable[str]) -> str | None:
    """The column that numbers the attempts of a job."""
    return next(iter(_named("attempt", names)), None)


def _named(section: str, names: Iterable[str]) -> list[str]:
    order = list(WEIGHTS[section])
    plain = {name: "".join(name_words(name)) for name in names}
    return sorted((name for name in plain if plain[name] in order), key=lambda name: order.index(plain[name]))


def ends_in(name: str, names: re.Pattern[str]) -> bool:
    """Whether a column's name, or its last words, are one of the names."""
    words = split_name(name)[0][-8:]
    return any(names.fullmatch("".join(words[at:])) for at in range(len(words)))


def word_of(value: Any) -> str:
    """A status as it is compared: lower case, whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()


def http_outcome(code: str, by_user: Mapping[str, str] | None = None) -> str | None:
    """The outcome of a request that was answered with `code`, such as 200 or 5xx; None if it is not an HTTP code.

    `by_user` maps codes (`404`) and classes (`4xx`), in lower case, to outcomes; a code goes before its class, and
    both before the vocabulary.

    >>> http_outcome("200"), http_outcome("504"), http_outcome("404", {"4xx": "failed"}), http_outcome("soon")
    ('completed', 'censored', 'failed', None)
    """
    by_user, word = by_user or {}, code.strip().lower()
    match = HTTP_CODE.fullmatch(word)
    if match is None:
        return by_user.get(word) or ("failed" if word in NO_ANSWER else None)
    plain, family, usual = word.split(".", 1)[0], f"{match[1]}xx", VOCABULARY["http"]
    return by_user.get(plain) or by_user.get(family) or usual.get(plain) or str(usual[family])


def is_http_column(words: Iterable[str]) -> bool:
    """Whether every number among these words can be an HTTP code, and at least one cannot be anything else."""
    numbers = {word.removesuffix(".0") for word in words if re.fullmatch(r"-?\d+(\.0)?|[1-5]xx", word)}
    can_be = all(HTTP_CODE.fullmatch(word) or word in NO_ANSWER for word in numbers)
    return can_be and any(HTTP_PROOF.fullmatch(word) for word in numbers)


class OutcomeWords:
    """What the words of a column mean: by the user's options, by known words and codes, by the column's name.

    By its name a column may hold yes and no, error messages (empty if there is no error), or exit codes. If the
    latency is a wait in a `queue`, a running job has completed it.
    """

    def __init__(
        self, name: str, by_user: Mapping[str, str], words: Iterable[str] = (), *, queue: bool = False
    ) -> None:
        self.by_user = by_user
        self.kinds = {kind for kind, names in KIND_NAMES.items() if ends_in(name, names)}
        yes, no = next((meaning for names, meaning in FLAG_NAMES.items() if ends_in(name, names)), (None, None))
        self.flags = {**dict.fromkeys(YES, yes), **dict.fromkeys(NO, no)} if yes else {}
        self.table: dict[str, str] = {**OUTCOME_WORDS, **self.flags}
        if "grpc" in self.kinds:  # Go writes NotFound
            self.table |= {word.replace("_", ""): outcome for word, outcome in OUTCOME_WORDS.items()}
        for known in [VOCABULARY["kinds"][kind] for kind in self.kinds] + [VOCABULARY["begun"]] * queue:
            self.table |= {word: outcome for outcome in STATUSES for word in known.get(outcome, ())}
        self.table |= by_user
        self.is_http = is_http_column(word for word in words if word not in self.table)

    def outcome(self, word: str) -> str | None:
        status = self.table.get(word)
        if status is None and self.is_http and word:
            status = http_outcome(word, self.by_user)
        if status is None and "exits" in self.kinds and re.fullmatch(r"-?\d+(:\d+)?", word):
            status = self.table.get(word.split(":")[0], "failed")
        if status is None and (code := CODE_AND_WORDS.fullmatch(word)) and not word.isdigit():
            status = http_outcome(code[1], self.by_user)
        if status is None:
            status = next((outcome for outcome, known in OUTCOME_PATTERNS.items() if known.search(word)), None)
        return "failed" if status is None and "errors" in self.kinds and word else status


class OutcomeTally(OutcomeWords):
    """The outcomes of the words in a column (HTTP codes, states of jobs), and the counts of both.

    `answers` says that a word is what the system answered (asked again, it would answer the same), and not what became
    of the probe. `last()` is a chunk without rows, with a note of the counts.
    """

    def __init__(self, options: ReadOptions, column: str, *, queue: bool = False) -> None:
        super().__init__(column, options.lowered_statuses, queue=queue)
        self.column, self.answers = column, "grpc" in self.kinds
        self.counts: Counter[tuple[str, str]] = Counter()
        self.unknown: Counter[str] = Counter()

    def statuses(self, column: pd.Series[Any], records: Records, out: Bools | None = None) -> NDArray[np.int8]:
        """The status codes of a column of words; rows that are `out` have no end, and may have an unknown word."""
        cells = column.astype("category")
        used = np.bincount(cells.cat.codes + 1, minlength=len(cells.cat.categories) + 1)[1:] > 0
        words = map(word_of, cells.cat.categories[used])
        if self.is_http or is_http_column(word for word in words if word not in self.table):
            self.is_http = self.answers = True

        def code(word: Any) -> int:
            text = word_of(word)
            outcome = self.outcome("" if text in ABSENT else text)
            return UNKNOWN if outcome is None else STATUSES.index(outcome)

        status = by_word(cells, code, code("")).astype(np.int8)
        if (status == UNKNOWN).any():
            unknown = (status == UNKNOWN) & ~is_blank(column) & (True if out is None else ~out)
            self.unknown.update(cells[unknown])
            records.refuse(unknown, lambda row: f"unknown status: {str(column.iloc[row])[:40]!r}")
        return status

    def add(self, words: pd.Series[Any], records: Records) -> None:
        """Count the words of the rows that are not refused, neither so far nor for lack of a latency."""
        out = np.isin(records.status, (CENSORED, LOST))
        kept = records.kept & (records.status >= 0) & ((records.latency >= 0) | (np.isnan(records.latency) & out))
        cells = words.astype("category").cat
        names = [*cells.categories, "none"]
        pairs = (cells.codes.to_numpy().astype(np.int64) % len(names)) * len(STATUSES) + records.status
        counts = np.bincount(pairs[kept], minlength=len(names) * len(STATUSES))
        for pair in np.flatnonzero(counts).tolist():
            name, status = names[pair // len(STATUSES)], STATUSES[pair % len(STATUSES)]
            self.counts[str(name).strip() or "none", status] += int(counts[pair])
        if self.answers:
            answers = by_word(words, word_of, "").astype(object)
            records.answer = pd.Series(answers, dtype="str").where(kept & (records.status == COMPLETED))

    def last(self) -> Records:
        """For example: `outcomes by 'code': 200 (2358), 404 (2604) completed; 502 (2) failed`; unknown words, too."""
        records, parts = Records.unusable(), []
        for status in STATUSES:
            words = sorted((word, count) for (word, outcome), count in self.counts.items() if outcome == status)
            if words:
                parts.append(f"{listed(f'{word[:40]} ({count})' for word, count in words)} {status}")
        if any(word.lower() != status for word, status in self.counts):
            change = CHANGE if self.is_http else ""
            records.notes.append(f"outcomes by {self.column!r}: {'; '.join(parts)}{change}")
        if self.unknown:
            common = [(str(word)[:40], count) for word, count in self.unknown.most_common(MAX_UNKNOWN_WORDS)]
            unknown = listed(f"{word!r} ({count})" for word, count in common)
            unknown += f" and {len(self.unknown) - len(common)} more" if len(self.unknown) > len(common) else ""
            meanings = ((SUGGESTED.get(word_of(word), "completed|failed|censored|lost"), word) for word, _ in common)
            options = " ".join(f"--status {meaning}={word}" for meaning, word in meanings)
            records.advice.append(f"unknown status words: {unknown}; say what each means: {options}")
        return records
