"""Which of a log's own words became which outcome, counted over the whole log, in one note."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import listed
from latfit.logs.formats import ReadOptions
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.vocabulary import ABSENT, SUGGESTED, TIMED_OUT, OutcomeWords, http_outcome, is_blank, word_of
from latfit.table import CENSORED, COMPLETED, LOST, STATUSES

CAME_BACK = r"refused|reset|reject|unavailable|unreachable|denied|http"
CHANGE = "; change it with --status, for example --status failed=4xx"
MOST_WORDS = 8  # that a message lists


class OutcomeTally:
    """Counts of the log's words (HTTP codes, states of jobs) and of the outcomes that were made of them.

    `answers` says that a word is what was answered, and not what became of the probe: asked again, it is the same.
    Blocks of a log may be counted in several threads. `last()` is the chunk without rows, that a reader
    yields when it is through, to say it.
    """

    def __init__(self, what: str, *, change: str = "", answers: bool = False) -> None:
        self.what, self.change, self.answers = what, change, answers
        self.counts: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()

    def add(self, words: pd.Series[Any], records: Records) -> None:
        """Count the words of the rows that were not refused so far, and will not be for want of a latency.

        Where the words are answers (200, 404), a completed one keeps its own as the column `log_status`.
        """
        timed = (records.latency >= 0) | (np.isnan(records.latency) & np.isin(records.status, (CENSORED, LOST)))
        kept = records.kept & (records.status >= 0) & timed
        codes, names = pd.factorize(words[kept], use_na_sentinel=False)
        pairs, counts = np.unique(codes * len(STATUSES) + records.status[kept], return_counts=True)
        with self.lock:
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
                at, status = divmod(pair, len(STATUSES))
                word = "none" if pd.isna(names[at]) else str(names[at]).strip() or "none"
                self.counts[word, STATUSES[status]] += count
        if self.answers:
            found = words.astype("category").cat
            told = np.array([*map(word_of, found.categories), ""], dtype=object)[found.codes.to_numpy()]
            records.answer = pd.Series(told, dtype="str").where(kept & (records.status == COMPLETED))

    def note(self) -> str | None:
        """For example: `HTTP code: 200 (2358), 404 (2604) completed; 502 (2) failed`."""
        parts = []
        for status in STATUSES:
            found = sorted((word, n) for (word, outcome), n in self.counts.items() if outcome == status)
            if found:
                parts.append(f"{listed(f'{word[:40]} ({n})' for word, n in found)} {status}")
        return f"{self.what}: {'; '.join(parts)}{self.change}" if parts else None

    def last(self) -> Records:
        """A chunk without rows that says what was counted."""
        records = Records.unusable({})
        note = self.note()
        records.notes += [note] if note else []
        return records


class HttpOutcomes(OutcomeTally):
    """The outcomes of a log's HTTP codes, by the table and the user's word, with the counts of each."""

    def __init__(self, options: ReadOptions, what: str = "outcomes by HTTP code") -> None:
        super().__init__(what, change=CHANGE, answers=True)
        self.said = options.lowered_statuses

    def statuses(self, codes: pd.Series[str], records: Records) -> NDArray[np.int8]:
        """The status of each row; rows without a code that can be read are refused."""
        words = codes.astype("string").fillna("-").astype("category")
        known = [http_outcome(str(word), self.said) for word in words.cat.categories]
        table = np.array([UNKNOWN if status is None else STATUSES.index(status) for status in known], dtype=np.int8)
        found = table[words.cat.codes.to_numpy()] if len(words) else np.empty(0, dtype=np.int8)
        hint = "say what it means: --status completed|failed|censored|lost=CODE"
        records.refuse(found == UNKNOWN, lambda row: f"unknown HTTP code: {str(words.iloc[row])[:40]!r}; {hint}")
        return np.asarray(found)

    def said_of(self, codes: pd.Series[str]) -> NDArray[np.bool_]:
        """Which codes, or their classes, the user has given an outcome."""
        words = codes.astype("string").str.strip().str.lower()
        classes = words.str.replace(r"^(\d)\d\d$", r"\1xx", regex=True)
        return (words.isin(list(self.said)) | classes.isin(list(self.said))).to_numpy(dtype=bool, na_value=False)


class StatusWords(OutcomeTally, OutcomeWords):
    """The outcomes of a status column: by the user's word, by known words, by HTTP codes; unknown words are counted.

    A column that is called so may hold yes and no, errors in words (empty where there is none), or exit codes.
    """

    def __init__(self, name: str, options: ReadOptions) -> None:
        OutcomeTally.__init__(self, f"outcomes by {name!r}")
        OutcomeWords.__init__(self, name, options.lowered_statuses)
        self.answers = self.has_grpc
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

    def settle(self, words: Iterable[Any]) -> None:
        """Look whether these are HTTP codes."""
        super().settle(map(word_of, words))
        if self.is_http:
            self.answers, self.change = True, CHANGE

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
            f"--status {SUGGESTED.get(word_of(word), 'completed|failed|censored|lost')}={str(word)[:40]}"
            for word, _ in common
        )
        return [f"unknown status words: {shown}{f' and {more} more' if more else ''}; say what each means: {options}"]
