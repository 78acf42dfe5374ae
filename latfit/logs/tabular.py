"""Logs that are tables with named columns: which column is what, and what its words mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import MissingColumn, listed
from latfit.logs.formats import UNITS, ReadOptions
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.table import CENSORED, COMPLETED, LOST, STATUSES
from latfit.logs.times import epoch_format, parse_times

# names that mean one thing only, best guess first; compared in lower case without separators
GUESSES: dict[str, tuple[str, ...]] = {
    "latency": (
        "latency", "rtt", "roundtrip", "roundtriptime", "elapsed", "elapsedtime", "duration", "responsetime",
        "response", "wait", "waittime", "turnaround", "timetaken", "totaltime", "runtime", "delay",
    ),
    "submitted": (
        "submitted", "submit", "submittime", "submittedat", "submissiontime", "sent", "sentat", "started", "start",
        "starttime", "startedat", "created", "createdat", "queued", "queuedat", "requested", "timestamp", "time", "ts",
        "date", "datetime", "checkedat",
    ),
    "ended": (
        "ended", "end", "endtime", "endedat", "completedat", "completiontime", "finished", "finish", "finishtime",
        "finishedat", "returned", "returnedat", "received", "receivedat", "done", "doneat",
    ),
    "status": ("status", "state", "result", "outcome", "success", "ok"),
    "id": ("id", "probe", "probeid", "job", "jobid", "requestid", "uuid", "taskid", "traceid"),
}  # fmt: skip
UNIT_WORDS = {
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "ms": "ms", "msec": "ms", "millis": "ms",
    "milliseconds": "ms", "us": "us", "usec": "us", "micros": "us", "microseconds": "us", "ns": "ns", "nanos": "ns",
    "nanoseconds": "ns", "min": "min", "minutes": "min", "h": "h", "hours": "h",
}  # fmt: skip
WORDS = {
    "completed": ("completed", "complete", "ok", "success", "succeeded", "successful", "done", "finished",
                  "returned", "true"),
    "failed": ("failed", "fail", "failure", "error", "false"),
    "censored": ("censored", "timeout", "timedout", "timed_out", "timed out", "cancelled", "canceled",
                 "pending", "queued"),
    "lost": ("lost", "outlier", "never"),
}  # fmt: skip
KNOWN_WORDS = {word: status for status, words in WORDS.items() for word in words}


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `seconds` is the unit of the latency, `sure` whether anyone said so."""

    latency: tuple[str, ...] = ()
    submitted: str | None = None
    ended: str | None = None
    status: str | None = None
    id: str | None = None
    seconds: float = 1.0
    sure: bool = True

    @property
    def used(self) -> set[str]:
        """All columns that have a role."""
        single = (self.submitted, self.ended, self.status, self.id)
        return {*self.latency, *(name for name in single if name)}


def resolve_roles(names: list[str], options: ReadOptions, log: str) -> tuple[Roles, list[str]]:
    """Which column is what, by the user's word or by its name, and the guesses to be said aloud."""
    chosen: dict[str, str | None] = {}
    for role, wanted in options.columns.items():
        for name in wanted.split("+") if role == "latency" else [wanted]:
            if wanted and name not in names:
                raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")
        chosen[role] = wanted or None
    units = {}
    for role, guesses in GUESSES.items():
        plain = {name: _plain(name) for name in names}
        if role in chosen or (role == "latency" and chosen.get("ended")):
            continue
        chosen[role], units[role] = _first_match(plain, guesses)
    latency, ended = chosen.get("latency"), chosen.get("ended")
    if latency is None and not (chosen.get("submitted") and ended):
        raise MissingColumn(
            f"{log}: no column looks like a latency, nor a pair like a submission and an end; there are: "
            f"{listed(names)}. Name it, for example: --column latency={names[-1][:40]}"
        )
    if latency is not None and "ended" not in options.columns:
        chosen["ended"] = None
    unit = options.unit or units.get("latency")
    if unit is None and latency is not None and "+" not in latency:
        unit = _plain(latency)[1]
    roles = Roles(
        latency=tuple(latency.split("+")) if latency else (),
        submitted=chosen.get("submitted"),
        ended=chosen.get("ended") if latency is None else None,
        status=chosen.get("status"),
        id=chosen.get("id"),
        seconds=UNITS[unit or "s"],
        sure=unit is not None,
    )
    return roles, _guesses(roles, options, unit)


def _plain(name: str) -> tuple[str, str | None]:
    """A column's name without case, separators and unit, and the unit that it ends in."""
    words = [w for w in re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if w]
    unit = UNIT_WORDS.get(words[-1]) if len(words) > 1 else None
    return "".join(words[:-1] if unit else words), unit


def _first_match(plain: Mapping[str, tuple[str, str | None]], guesses: Iterable[str]) -> tuple[str | None, str | None]:
    for guess in guesses:
        for name, (word, unit) in plain.items():
            if word == guess:
                return name, unit
    return None, None


def _guesses(roles: Roles, options: ReadOptions, unit: str | None) -> list[str]:
    """The guesses made, in words; a column called just what it is needs none."""
    notes = []
    if roles.latency and "latency" not in options.columns and roles.latency != ("latency",):
        what = unit or "s (its name has no unit; change it with --unit)"
        notes.append(f"column {roles.latency[0]!r} is read as the latency in {what}")
    if roles.ended:
        notes.append(f"latency is {roles.ended!r} minus {roles.submitted!r}")
    for role in ("submitted", "status", "id"):
        name = getattr(roles, role)
        if name and name.lower() != role and role not in options.columns:
            hint = " (one probe each; switch off with --column id=)" if role == "id" else ""
            notes.append(f"column {name!r} is read as {role}{hint}")
    return notes


def settle_times(frame: pd.DataFrame, roles: Roles, options: ReadOptions) -> ReadOptions:
    """The options with the unit of epoch times decided once for the whole log, by its first rows."""
    if options.time_format is not None or roles.submitted is None:
        return options
    return replace(options, time_format=epoch_format(frame[roles.submitted]))


def to_records(frame: pd.DataFrame, line: NDArray[np.int64], roles: Roles, options: ReadOptions) -> Records:
    """The records of a table with these roles."""
    records = Records(line, np.empty(0), np.empty(0, dtype=np.int8), unit_is_sure=roles.sure)
    if roles.submitted is not None:
        records.submitted = _times(frame, roles.submitted, records, options)
    records.latency = _latency(frame, roles, records, options)
    if roles.status is not None:
        records.status = _statuses(frame[roles.status], records, options)
    else:
        records.status = np.full(line.size, COMPLETED, dtype=np.int8)
        records.status[np.isposinf(records.latency)] = LOST
    if roles.ended is not None:  # submitted, and never seen again
        open_ended = frame[roles.ended].isna().to_numpy() & np.isin(records.status, (COMPLETED, CENSORED, UNKNOWN))
        records.status[open_ended & records.kept] = CENSORED
    records.latency[np.isposinf(records.latency)] = np.nan
    if roles.id is not None:
        records.refuse(frame[roles.id].isna().to_numpy(), "no id")
        records.ids = (
            frame[roles.id].to_numpy()
            if frame[roles.id].dtype.kind in "iu"
            else frame[roles.id].astype(str).to_numpy(dtype=object)
        )
    keep = roles.used - ({roles.id} if roles.id else set())
    records.extras = {str(name): frame[name] for name in frame.columns if name not in keep}
    return records


def _times(frame: pd.DataFrame, name: str, records: Records, options: ReadOptions) -> NDArray[np.datetime64]:
    column = frame[name]
    times, bad = parse_times(column, name, options.time_format, options.timezone)
    records.refuse(bad, lambda row: f"unparseable {name}: {str(column.iloc[row])[:40]!r}")
    return times


def _latency(frame: pd.DataFrame, roles: Roles, records: Records, options: ReadOptions) -> NDArray[np.float64]:
    if roles.ended is not None:
        assert records.submitted is not None
        span = _times(frame, roles.ended, records, options) - records.submitted
        seconds = span / np.timedelta64(1, "s")
        records.refuse(seconds < 0, lambda row: f"end before start: by {-seconds[row]:g} s")
        return seconds
    total = np.zeros(len(frame))
    for name in roles.latency:
        column = frame[name]
        if column.dtype.kind == "m":
            total += column.to_numpy() / np.timedelta64(1, "s") / roles.seconds
            continue
        numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        bad = np.isnan(numbers) & ~_blank(column)
        records.refuse(bad, lambda row, c=column, n=name: f"unparseable {n}: {str(c.iloc[row])[:40]!r}")  # type: ignore[misc]
        total += numbers
    return total / round(1 / roles.seconds) if roles.seconds < 1 else total * roles.seconds


def _blank(column: pd.Series[Any]) -> NDArray[np.bool_]:
    blank = column.isna()
    if not pd.api.types.is_numeric_dtype(column.dtype):
        blank |= column.astype("string").str.strip().str.lower().isin(["", "nan", "na", "null", "none"]).fillna(False)
    return blank.to_numpy(dtype=bool)


def _statuses(column: pd.Series[Any], records: Records, options: ReadOptions) -> NDArray[np.int8]:
    """The codes of a column of words; each distinct word is looked up once."""
    words = column.astype("category")
    table = {**KNOWN_WORDS, **options.lowered_statuses}
    codes = np.full(len(words.cat.categories) + 1, UNKNOWN, dtype=np.int8)
    used = np.bincount(words.cat.codes.to_numpy() + 1, minlength=codes.size)[1:] > 0
    for at, word in enumerate(words.cat.categories):
        status = table.get(str(word).strip().lower())
        if status is not None:
            codes[at] = STATUSES.index(status)
            if used[at] and str(word).strip().lower() not in (status, *options.lowered_statuses):
                records.notes.append(f"status {str(word)!r} is read as {status}")
    found = codes[words.cat.codes.to_numpy()]
    unknown = (found == UNKNOWN) & (words.cat.codes.to_numpy() >= 0)
    records.refuse(
        unknown,
        lambda row: f"unknown status: {str(column.iloc[row])[:40]!r}; say what it means: --status completed=WORD",
    )
    return found
