"""What the words of a status column mean, and what is said of those that mean nothing here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from latfit.logs.formats import ReadOptions
from latfit.logs.http import CHANGE, CODE, NO_ANSWER, http_outcome
from latfit.logs.outcomes import OutcomeTally, word_of
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.table import STATUSES

WORDS = {
    "completed": ("completed", "complete", "ok", "success", "succeeded", "successful", "done", "finished",
                  "returned", "true", "passed", "pass", "delivered",
                  "not_found", "already_exists", "invalid_argument", "permission_denied", "unauthenticated",
                  "failed_precondition", "out_of_range", "unimplemented",  # of gRPC: answers, as 4xx of HTTP are
                  "client_error", "erfolg", "erfolgreich", "succès", "réussi"),
    "failed": ("failed", "fail", "failure", "error", "errored", "err", "ko", "nok", "not_ok", "not ok", "false",
               "aborted", "rejected", "refused", "econnrefused", "econnreset", "exception", "crashed", "killed",
               "fatal", "critical", "node_fail", "boot_fail", "out_of_memory", "preempted", "revoked", "retry",
               "up_for_retry", "unavailable", "internal", "data_loss", "resource_exhausted", "server_error",
               "fehler", "fehlgeschlagen", "échec", "erreur"),
    "censored": ("censored", "timeout", "timedout", "timed_out", "timed out", "cancelled", "canceled",
                 "etimedout", "pending", "queued", "in_progress", "running", "started", "deadline_exceeded",
                 "zeitüberschreitung", "délai dépassé"),
    "lost": ("lost", "outlier", "never"),
}  # fmt: skip
KNOWN_WORDS = {word: status for status, words in WORDS.items() for word in words}
TIMED_OUT = re.compile(r"time.?out|timed.?out|deadline")
GAVE_UP = re.compile(rf"{TIMED_OUT.pattern}|^cancell?ed\b")
PATTERNS = (
    (GAVE_UP, "censored"),
    (re.compile(r"(?<!not)[_\W](ok|success|succeeded)$"), "completed"),
    (
        re.compile(r"(connection|conn|socket|stream|peer)\b.*\b(reset|refused|closed|aborted|broken)|unreachable"),
        "failed",
    ),
)
CAME_BACK = r"refused|reset|reject|unavailable|unreachable|denied|http"
CODE_AND_WORDS = re.compile(r"(?:http/[\d.]+ +)?([1-5]\d\d)(?: +[a-z].*)?")  # HTTP/1.1 504 Gateway Timeout
NEVER = {*WORDS["censored"], *WORDS["lost"]}  # in place of a latency
YES, NO = ("true", "yes", "y", "t", "1"), ("false", "no", "n", "f", "0")
# by the last words of a column's name: what yes means in it, and what no means
FLAGS = (
    (re.compile("(is)?(ok|success|successful|succeeded|passed|completed)"), "completed", "failed"),
    (re.compile("(is|has)?(failed|failure|error|errored|err|exception)"), "failed", "completed"),
    (re.compile("(is)?(timedout|cancelled|canceled|expired)|(is|has|hit|was)timeout"), "censored", "completed"),
    (re.compile("(is)?(lost|dropped)"), "lost", "completed"),
)
# empty, or 0, where all is well
ERRORS = re.compile(
    "(error|err|exc|exception|failure)(result|info|details?)?(message|msg|reason|text|type|class|name|code|no)?|sqlstate"
)
EXITS = re.compile("(exit|return|ret)(code|status|value|val)|exit|rc")
GRPC_OF = re.compile("grpc(status(code)?|code)")
GRPC_CODES = {**dict.fromkeys(("0", "3", "5", "6", "7", "9", "11", "12", "16"), "completed"),
              **dict.fromkeys(("2", "8", "10", "13", "14", "15"), "failed"),
              **dict.fromkeys(("1", "4"), "censored")}  # fmt: skip
EXIT_CODES = {"0": "completed", "124": "censored"}  # timeout(1) of the GNU coreutils ends with 124
LEVELS_OF = re.compile("(log)?level|lvl|severity")
LEVELS = {**dict.fromkeys(("trace", "debug", "info", "notice", "warn", "warning", "10", "20", "30", "40"), "completed"),
          **dict.fromkeys(("alert", "emergency", "panic", "dpanic", "50", "60"), "failed")}  # fmt: skip
STATUSES_OF = re.compile("status|state|result|outcome|conclusion|phase|verdict|success|ok")
CODES_OF = re.compile("(http|response|resp|rsp|reply)?(status)?code|status")
# names that may tell an outcome, but not which
MAYBE = re.compile("(is)?(up|alive|reachable|healthy)|killed|lost|dropped|(packet)?loss|code")
# offered to the user to paste, never taken without a word: a site that is down may come back, or not
OFFERED = {"up": "completed", "good": "completed", "down": "lost", "bad": "failed",
           "skipped": "censored", "unknown": "censored"}  # fmt: skip
ABSENT = ("", "nan", "na", "n/a", "null", "none", "nat")  # words for an absent value
NOTHING = (*ABSENT, "-", "--", "*", "?", "<none>", "\\n")  # and what stands in place of a number or a time
# codes that no exit status or signal is (255, 137): they prove a column of HTTP codes
PROOF = re.compile(r"20[0-8]|30[0-8]|4[0-4]\d|45[01]|50[0-9]|51[01]|52\d|[2-5]xx", re.ASCII)
MOST_WORDS = 8
LONGEST_NAME = 8  # words of a column's name that are looked at, from its end


def is_blank(column: pd.Series[Any], absent: tuple[str, ...] = ABSENT) -> NDArray[np.bool_]:
    """Which cells hold nothing, or a word for it."""
    if column.dtype.kind in "Mmfiub":
        return column.isna().to_numpy(dtype=bool)
    if isinstance(column.dtype, pd.StringDtype):
        text = pa.array(column)
        blank = pc.is_in(pc.utf8_lower(pc.utf8_trim_whitespace(text)), value_set=pa.array(absent, type=text.type))
        return np.asarray(pc.or_(blank, text.is_null()))
    try:
        words = column.astype("category")
    except TypeError:  # lists, and what else has no hash
        return column.isna().to_numpy(dtype=bool)
    empty = np.array([str(word).strip().lower() in absent for word in words.cat.categories] + [True])
    return np.asarray(empty[words.cat.codes.to_numpy()])


def is_http_column(values: Iterable[Any], *, words_too: bool = False) -> bool:
    """Whether these are HTTP codes: every number can be one, and at least one is nothing else.

    With `words_too` there may be words among them, that some other rule knows.
    """
    words = {word_of(value) for value in values} - set(ABSENT)
    numbers = {word.removesuffix(".0") for word in words if re.fullmatch(r"-?\d+(\.0)?|[1-5]xx", word)}
    if len(numbers) < len(words) and not words_too:
        return False
    can_be = all(CODE.fullmatch(word) or word in NO_ANSWER for word in numbers)
    return can_be and any(PROOF.fullmatch(word) for word in numbers)


def words_apart(name: str) -> str:
    """A name with underscores where its words begin: resultCode is result_Code."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)


def name_words(name: str) -> list[str]:
    """The words of a column's name, in lower case.

    >>> name_words("http.response.statusCode [ms]")
    ['http', 'response', 'status', 'code', 'ms']
    """
    spaced = words_apart(re.sub("[µμ]", "u", name)).lower()
    return [word for word in re.split(r"[^a-z0-9]+", spaced) if word]


def ends_in(name: str, names: re.Pattern[str]) -> bool:
    """Whether a column's name, or its last words, are one of the names."""
    words = name_words(name)[-LONGEST_NAME:]
    return any(names.fullmatch("".join(words[at:])) for at in range(len(words)))


def flag_words(name: str) -> dict[str, str]:
    """What yes and no mean in a column of this name; nothing where its name does not tell."""
    yes, no = next(((yes, no) for names, yes, no in FLAGS if ends_in(name, names)), ("", ""))
    return {**dict.fromkeys(YES, yes), **dict.fromkeys(NO, no)} if yes else {}


class StatusWords(OutcomeTally):
    """The outcomes of a status column: by the user's word, by known words, by HTTP codes; unknown words are counted.

    A column that is called so may hold yes and no, errors in words (empty where there is none), or exit codes.
    """

    def __init__(self, name: str, options: ReadOptions) -> None:
        super().__init__(f"outcomes by {name!r}")
        self.said = options.lowered_statuses
        self.has_errors, self.has_exits = ends_in(name, ERRORS), ends_in(name, EXITS)
        by_name = {**flag_words(name), **(EXIT_CODES if self.has_exits else {})}
        if ends_in(name, LEVELS_OF):
            by_name |= LEVELS
        if ends_in(name, GRPC_OF):  # Go writes NotFound
            by_name |= {**GRPC_CODES, **{word.replace("_", ""): status for word, status in KNOWN_WORDS.items()}}
            by_name["unknown"], self.answers = "failed", True
        if self.has_errors:
            by_name |= dict.fromkeys(("", "0", "00000"), "completed")
        self.table = {**KNOWN_WORDS, **by_name, **self.said}
        self.is_http = False
        self.unknown: Counter[str] = Counter()

    def statuses(
        self, column: pd.Series[Any], records: Records, out: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int8]:
        """The codes of a column of words; each distinct word is looked up once.

        Rows that are `out` have no end: whatever their word is, it is not needed to know what became of them.
        """
        words = column.astype("category")
        at = words.cat.codes.to_numpy()
        used = np.bincount(at + 1, minlength=len(words.cat.categories) + 1)[1:]
        self.settle([word for word, count in zip(words.cat.categories, used, strict=True) if count])
        codes = np.full(used.size + 1, self._code(""), dtype=np.int8)
        for row, word in enumerate(words.cat.categories):
            codes[row] = self._code(word)
        found = np.asarray(codes[at])
        if (found == UNKNOWN).any():
            told = (found == UNKNOWN) & ~is_blank(column) & (True if out is None else ~out)
            with self.lock:
                self.unknown.update(words[told].value_counts(sort=False).loc[lambda n: n > 0].to_dict())
            records.refuse(told, lambda row: f"unknown status: {str(column.iloc[row])[:40]!r}")
        return found

    def answered(self, column: pd.Series[Any]) -> NDArray[np.bool_]:
        """Which of these words say that an answer came, or the connection was refused: the client knew at once."""
        words = column.astype("string").str.strip().str.lower()
        said = words.str.fullmatch(r"[1-5]\d\d(\.0)?") | words.str.contains(CAME_BACK)
        return said.fillna(False).to_numpy(dtype=bool)

    def timed_out(self, column: pd.Series[Any]) -> NDArray[np.bool_]:
        """Which of these words say that a timeout ended the wait."""
        said = column.astype("string").str.strip().str.lower().str.contains(TIMED_OUT)
        return said.fillna(False).to_numpy(dtype=bool)

    def settle(self, words: list[Any]) -> None:
        """Look whether these are HTTP codes."""
        if not self.is_http and is_http_column(
            (word for word in words if word_of(word) not in self.table), words_too=True
        ):
            self.is_http, self.answers, self.change = True, True, CHANGE

    def outcome(self, word: str) -> str | None:
        """What a word means, None where that is not known."""
        status = self.table.get(word)
        if status is None and self.is_http and word:
            status = http_outcome(word, self.said)
        if status is None and self.has_exits and re.fullmatch(r"-?\d+(:\d+)?", word):
            status = self.table.get(word.split(":")[0], "failed")
        if status is None and (code := CODE_AND_WORDS.fullmatch(word)) and not word.isdigit():
            status = http_outcome(code[1], self.said)
        if status is None:
            status = next((meaning for pattern, meaning in PATTERNS if pattern.search(word)), None)
        return "failed" if status is None and self.has_errors else status

    def meant(self, value: Any) -> str | None:
        """What became of a probe whose cell holds this, None where that is not known."""
        word = word_of(value)
        return self.outcome("" if word in ABSENT else word)

    def _code(self, value: Any) -> int:
        status = self.meant(value)
        return UNKNOWN if status is None else STATUSES.index(status)

    def note(self) -> str | None:
        """Which word became which outcome, unless they are the same."""
        return super().note() if any(word.lower() != status for word, status in self.counts) else None

    def advice(self) -> list[str]:
        """What to say of the words that mean nothing here, with the options to paste."""
        if not self.unknown:
            return []
        common = self.unknown.most_common(MOST_WORDS)
        shown = ", ".join(f"{str(word)[:40]!r} ({count})" for word, count in common)
        more = len(self.unknown) - len(common)
        options = " ".join(
            f"--status {OFFERED.get(word_of(word), 'completed|failed|censored|lost')}={str(word)[:40]}"
            for word, _ in common
        )
        return [f"unknown status words: {shown}{f' and {more} more' if more else ''}; say what each means: {options}"]
