"""Logs that are tables with named columns: from their rows to records."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, counted, listed
from latfit.logs.cells import duration
from latfit.logs.formats import Condition, ReadOptions
from latfit.logs.records import AS_LOST, UNKNOWN, Ids, Records, shown
from latfit.logs.schema import Roles, check_named, resolve_roles, sample_rows
from latfit.logs.times import Times, has_offset, numeric, parse_times, time_format_of, without_placeholders
from latfit.logs.vocabulary import (
    CAME_BACK,
    NO_TIME,
    NOTHING,
    TIMED_OUT,
    OutcomeTally,
    attempt_column,
    by_word,
    cells_with,
    is_blank,
)
from latfit.numbers import Bools, Floats
from latfit.table import CENSORED, COMPLETED, FAILED, LOST, MEASURES
from latfit.units import in_seconds

ROWS_AT_A_TIME = 1 << 18  # of typed tables
OBJECTS_AT_A_TIME = 1 << 16
KIND_OF_EVENT = re.compile(r"(.*[._])?(msg|message|event|event_?(name|type)|action)", re.IGNORECASE)  # a column's name
MAX_KINDS_OF_EVENTS = 12  # with more, each row has a text of its own
MIN_DUMMIES = 3  # negative latencies, all of them -1, that stand for lost probes

Row = dict[str, Any]
Rows = tuple[pd.DataFrame, NDArray[np.int64], list[tuple[int, str]]]  # their lines, and refused ones with reasons


class TableReader:
    """Makes records of one table after another.

    What holds for the whole log (the unit of epoch times, the order of day and month) is settled by the first rows that
    show it. `last()` is the chunk to yield at the end: what was counted over the log. With `blank_is_lost`, a probe
    with a time of submission and no latency is lost, unless the log says otherwise what became of it. Outcomes are
    counted by the words of the column `counted_by`, or else of the status.
    """

    def __init__(
        self,
        roles: Roles,
        options: ReadOptions,
        *,
        notes: Iterable[str] = (),
        blank_is_lost: bool = False,
        counted_by: str = "",
    ) -> None:
        self.roles, self.options, self.notes, self.settled = roles, options, list(notes), False
        self.times = [name for name in (roles.submitted, roles.ended) if name is not None]
        queue = roles.measures == "queue"
        self.counted_by = counted_by or roles.status or ""
        self.words = None if roles.status is None else OutcomeTally(options, self.counted_by, queue=queue)
        self.blank_is_lost = blank_is_lost and not roles.status and not roles.ended and roles.submitted is not None
        self.as_lost: Counter[str] = Counter()
        self.minus_one = False  # whether −1 means that a probe never came back

    def records(self, frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
        if not self.settled:
            self._settle(frame)
        roles, completed = self.roles, np.full(line.size, COMPLETED, dtype=np.int8)
        records = Records(line, np.empty(0), completed, notes=list(self.notes), raw=frame)
        for name in ("unit", "unit_evidence", "has_outcomes", "measures", "columns"):
            setattr(records, name, getattr(roles, name))
        zone = self.options.timezone
        times = without_placeholders(
            [moments(frame[name], name, roles.time_formats.get(name), zone, records) for name in self.times]
        )
        if roles.submitted is not None:
            records.submitted = times[0]
        ended = times[-1] if roles.ended is not None else None
        records.latency = self._latency(frame, ended, records)
        if self.words is None:
            self._infer_status(records, ended)
        else:
            self._read_status(frame[str(roles.status)], records, ended)
        records.latency[np.isposinf(records.latency)] = np.nan
        if roles.id is not None:
            records.ids, records.id_column = self._ids(frame, roles.id), roles.id
        taken = {*MEASURES.values(), *roles.columns} - {roles.id}
        own = [str(name) for name in frame.columns if name not in taken]
        records.extras = {name: frame[name] for name in self.options.kept(own)}
        if self.words is not None:
            self.words.add(frame[self.counted_by].astype("category"), records)
        elif ended is not None and (untimed := np.isnat(times[0]) & np.isnat(ended)).any():
            records = records.take(~untimed)
            records.skipped["rows with neither a start nor an end"] += int(np.count_nonzero(untimed))
        return records

    def last(self) -> Records:
        records = Records.unusable() if self.words is None else self.words.last()
        records.as_lost = self.as_lost.total()
        submitted = " (--column submitted= refuses such rows instead)"
        for kind, verbs, what, hint in (
            ("blank", ("has", "have"), "a time of submission and no latency", submitted),
            ("failed", ("failed", "failed"), "at an unknown time", ""),
            ("never", ("says", "say"), "infinity, timeout, lost or -1 for a latency", ""),
        ):
            if count := self.as_lost[kind]:
                records.notes.append(f"{counted(count, 'row', *verbs)} {what}: {AS_LOST[count > 1]}{hint}")
        return records

    def _settle(self, frame: pd.DataFrame) -> None:
        """Decide by these rows how times are written; this is settled once every column of times had some."""
        formats = dict(self.roles.time_formats)
        for name in self.times:
            if name not in formats and (written := time_format_of(frame[name], name)):
                formats[name] = written
        with_offset = [name for name in self.times if has_offset(frame[name])]
        without = [name for name in self.times if has_offset(frame[name]) is False]
        if with_offset and without and self.options.timezone is None:
            only = f"only {with_offset[0]!r} has an offset from UTC"
            raise LogError(f"{only}; give the zone of the times in {without[0]!r}: --timezone UTC")
        if self.words is None and len(self.roles.latency) == 1:
            numbers = numeric(frame[self.roles.latency[0]])
            below = numbers[numbers < 0]
            self.minus_one = bool(MIN_DUMMIES <= below.size < numbers.size / 2 and (below == -1).all())
        self.roles = replace(self.roles, time_formats=formats)
        self.settled = all(frame[name].notna().any() for name in self.times)

    def _lose(self, rows: NDArray[np.int64], kind: str, records: Records) -> None:
        records.status[rows] = LOST
        self.as_lost[kind] += rows.size

    def _infer_status(self, records: Records, ended: Times | None) -> None:
        self._lose(np.flatnonzero(np.isposinf(records.latency)), "never", records)
        if ended is not None:  # without an end, a probe is still out
            records.status[np.isnat(ended) & (records.status == COMPLETED) & records.kept] = CENSORED
        elif self.blank_is_lost and records.submitted is not None:
            blank = np.isnan(records.latency) & ~np.isnat(records.submitted) & records.kept
            if records.raw is not None and blank.any() and not self.as_lost["blank"]:
                self._ask_about_other_events(records.raw, blank)
            self._lose(np.flatnonzero(blank), "blank", records)

    def _ask_about_other_events(self, frame: pd.DataFrame, blank: Bools) -> None:
        """An error if rows without a latency have a message or kind of their own: other events, or lost probes."""
        chosen = {*self.roles.columns, *(Condition.parse(text).column for text in self.options.where)}
        for name in map(str, frame.columns):
            if name in chosen or not KIND_OF_EVENT.fullmatch(name) or is_blank(frame[name]).any():
                continue
            without, timed = (sorted(set(frame[name][rows].astype(str))) for rows in (blank, ~blank))
            if not timed or {*without} & {*timed} or len(without) + len(timed) > MAX_KINDS_OF_EVENTS:
                continue
            kinds = f"{name}={timed[0]}" if len(timed) == 1 else f"{name}~^({'|'.join(map(re.escape, timed))})$"
            words = (f"status={name}", f"completed={','.join(timed)}", f"lost={','.join(without)}")
            column, completed, lost = map(shlex.quote, words)
            rows_without = counted(int(blank.sum()), "row")
            raise LogError(
                f"{rows_without} without a latency have a {name!r} of their own ({listed(without)}): other events, "
                "or probes that never returned. Choose one: "
                f"--where {shlex.quote(kinds)}, or --column {column} --status {completed} --status {lost}"
            )

    def _read_status(self, column: pd.Series[Any], records: Records, ended: Times | None) -> None:
        """The outcomes by the words of a column; a probe that was given up at an unknown time is lost."""
        assert self.words is not None
        records.status = self.words.statuses(column, records, None if ended is None else np.isnat(ended))
        rows = np.flatnonzero(records.status != COMPLETED)
        if not rows.size:
            return
        status, latency = records.status[rows], records.latency[rows]
        cells, kept = column.iloc[rows], records.kept[rows]
        if ended is not None:
            status[np.isnat(ended[rows]) & np.isin(status, (CENSORED, UNKNOWN)) & kept] = CENSORED
        else:  # numbers that are not latencies: −1 of what did not complete, and 0 of a timeout
            dummy = (latency == -self.roles.seconds) & (status != UNKNOWN)
            at_once = (latency == 0) & (status == CENSORED) & cells_with(cells, TIMED_OUT)
            status[(dummy & (status == CENSORED)) | at_once] = LOST
            latency[dummy | at_once] = np.nan
        unknown = np.isnan(latency) | np.isposinf(latency)
        untimed = unknown & (status == FAILED) & kept
        if records.submitted is not None:
            unknown &= np.isnat(records.submitted[rows])
        status[unknown & (status == CENSORED)] = LOST
        if ended is None:  # an answer came at a time that the log does not have
            untimed &= ~cells_with(cells, CAME_BACK)
        records.status[rows], records.latency[rows] = status, latency
        self._lose(rows[untimed], "failed", records)

    def _ids(self, frame: pd.DataFrame, name: str) -> Ids:
        """The ids of the probes, None for blank cells; if attempts are numbered, each attempt has an id of its own."""
        column, blank = frame[name], is_blank(frame[name])
        if column.dtype.kind not in "iu" and blank.any():
            column = column.astype(object).where(~blank, None)
        number = attempt_column(map(str, frame.columns))
        if number is not None and number not in self.roles.columns:
            column = column.astype("string") + "#" + frame[number].astype("string").fillna("")
        ids: Ids = column.array if isinstance(column.dtype, pd.StringDtype) else column.to_numpy()
        return ids

    def _latency(self, frame: pd.DataFrame, ended: Times | None, records: Records) -> Floats:
        if ended is not None:
            assert records.submitted is not None
            seconds = np.asarray((ended - records.submitted) / np.timedelta64(1, "s"))
            records.refuse(seconds < 0, lambda row: f"end before start: by {-seconds[row]:g} s")
            return seconds
        parts = [seconds_of(frame[name], name, self.roles.unit or "s", records) for name in self.roles.latency]
        if len(parts) > 1:
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)
        latency = parts[0].copy()
        if self.minus_one:
            latency[latency == -self.roles.seconds] = np.inf
        return latency


def moments(column: pd.Series[Any], name: str, style: str | None, timezone: str | None, records: Records) -> Times:
    """The times of a column in naive UTC, NaT for empty cells; rows with anything else are refused."""
    if column.dtype.kind not in "Mfiu":
        column = column.astype("string").mask(is_blank(column, NO_TIME))
    times, bad = parse_times(column, name, style, timezone)

    def reason(row: int) -> str:
        cell = column.iloc[row]  # a time may lie outside of what Python's calendar can write
        text = str(cell.to_datetime64() if isinstance(cell, pd.Timestamp) else cell)
        return f"unparseable {name}: {text[:40]!r}"

    records.refuse(bad, reason)
    return times


def seconds_of(column: pd.Series[Any], name: str, unit: str, records: Records) -> Floats:
    """A column of latencies in seconds: numbers in its unit, or durations with units of their own (`1m 20s`)."""
    if column.dtype.kind == "m":
        return np.asarray(column.to_numpy() / np.timedelta64(1, "s"))
    numbers = column.to_numpy(dtype=np.float64) if column.dtype.kind == "f" else numeric(column)
    with np.errstate(over="ignore"):
        seconds = in_seconds(numbers, unit)
    records.refuse(np.isinf(seconds) & np.isfinite(numbers), f"too large {name}")
    if column.dtype.kind == "f":  # a cell that is not a number would have made it text
        return seconds
    text = np.isnan(seconds) & ~is_blank(column, NOTHING)
    if text.any():
        seconds[text] = by_word(column[text].astype(str), duration, np.nan)
    records.refuse(text & np.isnan(seconds), lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return seconds


def row_tables(rows: Iterable[tuple[int, Any]], **how: Any) -> Iterator[Rows]:
    """Tables of numbered rows, made with the arguments `how` of a DataFrame.

    A text is the reason for which a row is refused; None ends a table, because the next row may take a while to come.
    """
    cells: list[Any] = []
    numbers: list[int] = []
    broken: list[tuple[int, str]] = []
    refused = 0
    for number, row in chain(rows, [(0, None)]):
        if row is None or OBJECTS_AT_A_TIME in (len(cells), len(broken)):
            yield pd.DataFrame(cells, **how), np.array(numbers, dtype=np.int64), broken
            cells, numbers, broken = [], [], []
        if isinstance(row, str):
            broken.append((number, shown(refused, row)))
            refused += 1
        elif row is not None:
            cells.append(row)
            numbers.append(number)


def records_of(
    tables: Iterable[Rows], convert: Callable[[pd.DataFrame, NDArray[np.int64]], Records]
) -> Iterator[Records]:
    """The records that `convert` makes of the rows of each table, and the lines that hold none."""
    for frame, numbers, broken in tables:
        if broken:
            yield Records.unusable(broken)
        if len(frame):
            yield convert(frame, numbers)


def read_tables(
    tables: Iterator[Rows],
    log: str,
    options: ReadOptions,
    *,
    every_line: bool = True,
    nothing: str = "no line holds a JSON object",
) -> Iterator[Records]:
    """The records of tables; the columns are judged by the first of them.

    Unless `every_line` is a probe, lines without the key of the latency are skipped, and counted. `nothing` is the
    error for a log without a row.
    """
    reader: TableReader | None = None
    names: dict[str, None] = {}  # every key so far, in order
    for frame, numbers, broken in tables:
        if broken:
            yield Records.unusable(broken)
        if not len(frame):
            continue
        new = [name for name in map(str, frame.columns) if name not in names]
        names.update(dict.fromkeys(new))
        if reader is None:
            first_rows = sample_rows(frame)
            to_come = [name for name, role in options.named_columns.items() if role != "latency" and name not in names]
            roles, notes = resolve_roles([*names, *to_come], options, log, first_rows)
            reader = TableReader(roles, options, notes=notes, blank_is_lost=True)
        elif new:
            rows = pd.concat([first_rows, sample_rows(frame)])
            later, notes = resolve_roles(list({**names, **dict.fromkeys(to_come)}), options, log, rows)
            first_roles = {role: name for name, (role, _) in roles.columns.items()}
            changes = {role: name for name, (role, _) in later.columns.items() if name not in roles.columns}
            if changes:
                line = numbers[frame[new].notna().any(axis=1).to_numpy().argmax()]
                better = listed(f"{name!r} as the {role}" for role, name in changes.items())
                as_first = " ".join(f"--column {role}={first_roles.get(role, '')}" for role in changes)
                as_later = " ".join(f"--column {role}={name}" for role, name in changes.items())
                raise LogError(
                    f"{log}: {listed(new)} first {'appears' if len(new) == 1 else 'appear'} in line {line}; the best "
                    f"reading from there on has {better}. Choose one: {as_first}, or {as_later}"
                )
            reader.notes = list(dict.fromkeys([*reader.notes, *notes]))
        for name in roles.columns.keys() - set(frame.columns):
            frame[name] = None
        if every_line:
            yield reader.records(frame, numbers)
            continue
        timed = frame[list(roles.latency)].notna().all(axis=1).to_numpy(dtype=bool)
        records = reader.records(frame[timed].reset_index(drop=True), numbers[timed])
        if not timed.all():
            records.skipped[f"lines without {listed(roles.latency)}"] = int(np.count_nonzero(~timed))
        yield records
    if reader is None:
        raise LogError(f"{log}: {nothing}")
    check_named(options, list(names), log)
    yield reader.last()
