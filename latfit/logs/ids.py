"""Ids that come again: found in arrays, over all chunks of a log."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from latfit.numbers import Bools

Hashes = NDArray[np.uint64]
# of splitmix64 (Steele, Lea and Flood 2014), whose two multiplications spread every bit over all others
STEP, FIRST, SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
WORD = 8


Ids = NDArray[np.generic] | pd.api.extensions.ExtensionArray
Place = tuple[int, int, str]  # numbers before text; by size, or by length and then by what is written


class SeenIds:
    """The ids met so far, as 64-bit hashes, to find the ones that come again.

    Ids that only rise cannot repeat: as long as all do, their hashes are not sorted.
    """

    def __init__(self) -> None:
        self.runs: list[Hashes] = []
        self.rising: list[Hashes] = []
        self.last: Place | None = (0, -1 << 63, "")

    def again(self, ids: Ids, rows: Bools) -> Bools:
        """Which rows repeat an id of an earlier kept row, here or in an earlier chunk."""
        rows = rows & ~np.asarray(pd.isna(ids))
        hashes = hashed(ids)
        repeated = np.zeros(hashes.size, dtype=bool)
        if self._rises(ids[rows], hashes[rows]):
            return repeated
        new = np.sort(hashes[rows])
        if not any(self._in(run, new).any() for run in self.runs) and (new[1:] != new[:-1]).all():
            self._remember(new)
            return repeated
        for run in self.runs:
            repeated |= self._in(run, hashes)
        candidates = np.flatnonzero(rows & ~repeated)
        distinct, first = np.unique(hashes[candidates], return_index=True)
        fresh = np.zeros(hashes.size, dtype=bool)
        fresh[candidates[first]] = True
        self._remember(distinct)
        return rows & ~fresh

    def _rises(self, ids: Ids, hashes: Hashes) -> bool:
        """Whether every id so far is above the one before it; from the first that is not, sorted hashes are needed."""
        if self.last is None:
            return False
        if not len(ids):
            return True
        found = _rising(ids)
        if found is not None and found[0] > self.last:
            self.last = found[1]
            self.rising.append(hashes)
            return True
        if self.rising:
            self._remember(np.sort(np.concatenate(self.rising)))
        self.rising, self.last = [], None
        return False

    @staticmethod
    def _in(run: Hashes, hashes: Hashes) -> Bools:
        return np.asarray(run[np.minimum(np.searchsorted(run, hashes), run.size - 1)] == hashes)

    def _remember(self, run: Hashes) -> None:
        """Keep the runs few: merge as long as the last is not much larger."""
        if not run.size:
            return
        while self.runs and self.runs[-1].size < 2 * run.size:
            run = np.sort(np.concatenate([self.runs.pop(), run]))
        self.runs.append(run)


def _rising(ids: Ids) -> tuple[Place, Place] | None:
    """The first and the last of ids, if each is above the one before it."""
    if ids.dtype.kind in "iu":
        numbers = np.asarray(ids)
        rises = bool((numbers[1:] > numbers[:-1]).all())
        return ((0, int(numbers[0]), ""), (0, int(numbers[-1]), "")) if rises else None
    text = _text(ids)
    longer = np.diff(np.diff(_starts(text)))
    above = pc.greater(text[1:], text[:-1]).to_numpy(zero_copy_only=False)
    if not ((longer > 0) | ((longer == 0) & above)).all():
        return None
    first, last = (str(text[at]) for at in (0, -1))
    return (1, len(first.encode()), first), (1, len(last.encode()), last)


def _text(ids: Ids) -> pa.LargeStringArray:
    made = pa.array(pd.Series(ids, dtype="str"), type=pa.large_string(), from_pandas=True)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _starts(text: pa.LargeStringArray) -> NDArray[np.int64]:
    """Where each text starts in its buffer, and where the last ends."""
    return np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]


def hashed(ids: Ids) -> Hashes:
    """One 64-bit hash for each id; text is hashed as its bytes, eight at a time, for all ids at once."""
    if ids.dtype.kind in "iu":
        return _mixed(np.asarray(ids).astype(np.uint64))
    text = _text(ids)
    data, start = text.buffers()[2], _starts(text)
    length = np.diff(start)
    found = _mixed(length.astype(np.uint64))
    raw = np.zeros((data.size if data else 0) + WORD, dtype=np.uint8)
    raw[:-WORD] = np.frombuffer(data, np.uint8) if data else 0
    words = np.ndarray(raw.size - WORD + 1, np.dtype("<u8"), raw, strides=(1,))  # the eight bytes from each byte on
    left, at = length, start[:-1]
    rows = np.flatnonzero(left > 0)
    while rows.size:
        word = words[at[rows]]
        short = left[rows] < WORD
        word[short] &= (np.uint64(1) << (8 * left[rows][short]).astype(np.uint64)) - np.uint64(1)
        found[rows] = _mixed(found[rows] ^ word)
        left, at = left - WORD, at + WORD
        rows = rows[left[rows] > 0]
    return found


def _mixed(values: Hashes) -> Hashes:
    """The finaliser of splitmix64: one to one, and any bit of the value changes half of the result."""
    z = values + STEP
    z = (z ^ (z >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))
