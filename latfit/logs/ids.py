"""Ids that come again: found in arrays, over all chunks of a log."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.numbers import Bools

Hashes = NDArray[np.uint64]
# of splitmix64 (Steele, Lea and Flood 2014), whose two multiplications spread every bit over all others
STEP, FIRST, SECOND = (np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
WORD = 8


class SeenIds:
    """The ids met so far, as sorted 64-bit hashes, to find the ones that come again."""

    def __init__(self) -> None:
        self.runs: list[Hashes] = []

    def again(self, ids: NDArray[np.generic] | pd.api.extensions.ExtensionArray, rows: Bools) -> Bools:
        """Which rows repeat an id of an earlier kept row, here or in an earlier chunk."""
        rows = rows & ~np.asarray(pd.isna(ids))
        hashes = hashed(ids)
        new = np.sort(hashes[rows])
        if not any(self._in(run, new).any() for run in self.runs) and (new[1:] != new[:-1]).all():
            self._remember(new)
            return np.zeros(hashes.size, dtype=bool)
        repeated = np.zeros(hashes.size, dtype=bool)
        for run in self.runs:
            repeated |= self._in(run, hashes)
        candidates = np.flatnonzero(rows & ~repeated)
        distinct, first = np.unique(hashes[candidates], return_index=True)
        fresh = np.zeros(hashes.size, dtype=bool)
        fresh[candidates[first]] = True
        self._remember(distinct)
        return rows & ~fresh

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


def hashed(ids: NDArray[np.generic] | pd.api.extensions.ExtensionArray) -> Hashes:
    """One 64-bit hash for each id; text is hashed as its bytes, eight at a time, for all ids at once."""
    if ids.dtype.kind in "iu":
        return _mixed(np.asarray(ids).astype(np.uint64))
    made = pa.array(pd.Series(ids, dtype="str"), type=pa.large_string(), from_pandas=True)
    text = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    _, offsets, data = text.buffers()
    start = np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
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
