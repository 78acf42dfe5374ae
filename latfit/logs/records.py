"""From a format's raw columns to checked probes: the rules that hold for every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.numbers import Bools
from latfit.table import (
    CANONICAL,
    CENSORED,
    LOST,
    OWN_STATUS,
    SHOWN_REFUSALS,
    Column,
    LogFacts,
    ProbeTable,
    Refusal,
    Refusals,
)
from latfit.units import out_of_range

UNKNOWN = -1
A_CENTURY = 100 * 365.25 * 86400
AS_LOST = ("it is read as a lost probe", "they are read as lost probes")  # one row, several

Ids = NDArray[np.generic] | pd.api.extensions.ExtensionArray


@dataclass
class Records:
    """A chunk of records as a format understood them; `refuse` marks the rows that cannot be used.

    `latency` is NaN if the record has none; `status` holds the codes of `STATUSES`; a censored record without a
    latency was still out when the log ended. `submitted` is naive UTC. `extras` are the log's own columns, `raw` all
    columns as they were read. `answer` is the log's own word for completed records; it becomes a column unless another
    has its name. `notes` say what was guessed, `advice` what to do about refused rows.
    """

    line: NDArray[np.int64]
    latency: NDArray[np.float64]
    status: NDArray[np.int8]
    submitted: NDArray[np.datetime64] | None = None
    ids: Ids | None = None
    id_column: str | None = None  # that the ids came from, where the user may switch it off
    extras: dict[str, pd.Series] = field(default_factory=dict)
    last_seen: np.datetime64 | None = None
    unit: str | None = None  # of the latencies as logged, and what says so; see LogFacts
    unit_evidence: str = ""
    columns: dict[str, tuple[str, str]] = field(default_factory=dict)  # with a role: what it is, and why
    has_outcomes: bool = True
    measures: str = ""  # `queue` or `work`, where the names of columns say that; see LogFacts
    as_lost: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    raw: pd.DataFrame | None = None
    answer: pd.Series | None = None

    @classmethod
    def unusable(cls, refused: Sequence[tuple[int, str]] = ()) -> Records:
        """Lines that could not even be split into fields, with the reasons."""
        n = len(refused)
        lines = np.array([line for line, _ in refused], dtype=np.int64)
        records = cls(lines, np.full(n, np.nan), np.full(n, UNKNOWN, np.int8))
        records.reasons = dict(enumerate(reason for _, reason in refused))
        return records

    def refuse(self, rows: Bools, reason: str | Callable[[int], str]) -> None:
        """Mark rows as refused; the first reason for a row stays, and only the first rows have a detail."""
        text = ""
        for at, row in enumerate(row for row in np.flatnonzero(rows).tolist() if row not in self.reasons):
            if at <= SHOWN_REFUSALS:
                text = shown(at, reason if isinstance(reason, str) else reason(row))
            self.reasons[row] = text

    @property
    def kept(self) -> Bools:
        kept = np.ones(self.line.size, dtype=bool)
        kept[list(self.reasons)] = False
        return kept

    def check(self) -> None:
        """Refuse rows that cannot be probes: no status, no latency, or an implausible one."""
        if self.answer is not None and "status" not in self.extras:  # which would have the same name
            self.extras.setdefault(OWN_STATUS, self.answer)
        if self.submitted is not None:  # the end minus the latency may lie before every calendar
            self.refuse(self.submitted < np.datetime64("0001-01-01"), "implausible time: it lies before the year 1")
        self.refuse(self.status == UNKNOWN, "no status")
        x = self.latency
        implausible = out_of_range(x)
        if not implausible.any():
            return
        x = self.latency = np.where(np.isinf(x), np.nan, x)
        absent = np.isnan(x) & (self.status != LOST)
        if self.submitted is not None:
            absent &= (self.status != CENSORED) | np.isnat(self.submitted)  # the others were out when the log ended
        self.refuse(x < 0, lambda row: f"negative latency: {x[row]:g} s")
        self.refuse(implausible & ~np.isnan(x), lambda row: f"implausible latency: {x[row]:g} s")
        self.refuse(absent, "no latency")

    def take(self, rows: Bools) -> Records:
        if rows.all():
            return self
        place = np.cumsum(rows) - 1
        taken: dict[str, Any] = {}
        for name in ("line", "latency", "status", "submitted", "ids"):
            array = getattr(self, name)
            taken[name] = None if array is None else array[rows]
        return replace(
            self,
            **taken,
            extras={name: column[rows] for name, column in self.extras.items()},
            reasons={int(place[row]): reason for row, reason in self.reasons.items() if rows[row]},
            raw=None,
            answer=None,
        )

    def facts(self, log: LogFacts, unchosen: int) -> LogFacts:
        reasons = Counter(reason.split(":", 1)[0] for reason in self.reasons.values())
        first = (Refusal(int(self.line[row]), self.reasons[row], log.path) for row in sorted(self.reasons))
        return replace(
            log,
            refused=Refusals(len(self.reasons), dict(reasons), tuple(islice(first, SHOWN_REFUSALS))),
            skipped=dict(self.skipped),
            notes=tuple(self.notes),
            advice=tuple(self.advice),
            unchosen=unchosen,
            queue=log.queue or self.measures == "queue",
            work=log.work or self.measures == "work",
            **{name: getattr(self, name) for name in ("has_outcomes", "as_lost", "unit", "unit_evidence", "columns")},
        )

    def table(self, facts: LogFacts) -> ProbeTable:
        """The probes as plain arrays; the only place where times become seconds."""
        submitted = None
        if self.submitted is not None and not np.isnat(self.submitted).all():
            micro = self.submitted.astype("datetime64[us]")
            submitted = np.where(np.isnat(micro), np.nan, micro.astype(np.int64) / 1e6)
        columns = {}
        for name, cells in self.extras.items():
            own_name = name
            while own_name in CANONICAL or (own_name != name and own_name in self.extras):
                own_name = f"log_{own_name}"
            columns[own_name] = Column.of(own_name, cells)
        return ProbeTable(latency=self.latency, status=self.status, submitted=submitted, columns=columns, facts=facts)


def shown(earlier: int, reason: str) -> str:
    """A reason with its detail for the first refusals, which are shown; millions of details would fill the memory."""
    return reason if earlier < SHOWN_REFUSALS else reason.partition(": ")[0]


def checked(
    chunks: Iterator[Records], facts: LogFacts, choose: Callable[[Records], tuple[Records, int]] | None = None
) -> Iterator[tuple[Records, LogFacts]]:
    """The probes and facts of every chunk; what was still out when the log ended comes last.

    The end of the log is the last time in it, also in rows that `choose` leaves out.
    """
    repeated, pending, end = RepeatedIds(), [], None
    for records in chunks:
        records.check()
        end = latest(end, records)
        records, unchosen = (records, 0) if choose is None else choose(records)
        if records.ids is not None:
            ids = records.ids
            again = repeated.among(ids, records.kept)
            records.refuse(again, lambda row, ids=ids: f"duplicate id: {ids[row]}")  # type: ignore[misc]
            if again.any() and records.id_column is not None:
                records.advice.append(
                    f"--column id= takes rows that repeat an id (column {records.id_column!r}) as probes of their own"
                )
        kept = records.kept
        out = kept & (records.status == CENSORED) & np.isnan(records.latency)
        if out.any():
            pending.append(records.take(out))
        yield records.take(kept & ~out), records.facts(facts, unchosen)
    for records in pending:
        assert records.submitted is not None
        assert end is not None
        records.latency = (end - records.submitted) / np.timedelta64(1, "s")
        when = end.astype("datetime64[s]")
        note = f"probes without an end were still out when the log ended, at {when}Z: {records.line.size} censored then"
        yield records, replace(facts, notes=(note,))


def latest(end: np.datetime64 | None, records: Records) -> np.datetime64 | None:
    """The latest time so far: `end`, what the records say themselves, or when the last kept one returned."""
    times = [time for time in (end, records.last_seen) if time is not None]
    if records.submitted is not None:
        known = records.kept & ~np.isnat(records.submitted)
        if known.any():
            spent = np.where(np.isfinite(records.latency), records.latency, 0.0)[known]
            ends = records.submitted[known] + (np.minimum(spent, A_CENTURY) * 1e6).astype("timedelta64[us]")
            times.append(ends.max())
    return max(times) if times else None


class RepeatedIds:
    """Finds ids that repeat an earlier one; their keys of 64 bits are in sorted runs."""

    def __init__(self) -> None:
        self.runs: list[NDArray[np.uint64]] = []

    def among(self, ids: Ids, rows: Bools) -> Bools:
        """Which of the `rows` repeat an id of an earlier kept row, here or in an earlier chunk."""
        repeated = rows & ~np.asarray(pd.isna(ids))
        keys = _keys(ids)[repeated]
        rises = bool((keys[1:] > keys[:-1]).all())  # as most do
        again = np.zeros(keys.size, dtype=bool) if rises else pd.Series(keys).duplicated().to_numpy()
        for run in self.runs:
            if keys.size and keys.min() <= run[-1] and run[0] <= keys.max():
                again = again | (run[np.minimum(np.searchsorted(run, keys), run.size - 1)] == keys)
        repeated[repeated] = again
        fresh = keys[~again] if rises else np.sort(keys[~again])
        while fresh.size and self.runs and self.runs[-1].size < 2 * fresh.size and self.runs[-1][-1] > fresh[0]:
            fresh = np.sort(np.concatenate([self.runs.pop(), fresh]))
        self.runs += [fresh] if fresh.size else []
        return repeated


def _keys(ids: Ids) -> NDArray[np.uint64]:
    """Whole numbers as they are, also those written as text (1, but not 01); the hashes of any other ids."""
    if ids.dtype.kind in "iu":
        return np.asarray(ids).astype(np.uint64)
    text = pd.Series(ids, dtype="str")
    keys = pd.util.hash_pandas_object(text, index=False, categorize=False).to_numpy(copy=True)
    plain = text.str.fullmatch("0|[1-9][0-9]{0,17}", na=False).to_numpy(dtype=bool)
    keys[plain] = text[plain].astype("int64")
    return np.asarray(keys, dtype=np.uint64)
