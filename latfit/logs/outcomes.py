"""Which of a log's own words became which outcome, counted over the whole log, in one note."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import listed
from latfit.logs.records import Records
from latfit.logs.table import CENSORED, COMPLETED, LOST, STATUSES


def word_of(value: Any) -> str:
    """A status as it is compared: lower case, whole numbers without a point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()


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
