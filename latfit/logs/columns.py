"""Which column of a table is what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.formats import ReadOptions
from latfit.logs.times import numeric
from latfit.logs.words import is_http_column, word_of
from latfit.units import UNIT_WORDS, UNITS

# names that mean one thing only, best guess first; compared in lower case without separators
GUESSES: dict[str, tuple[str, ...]] = {
    "latency": (
        "latency", "rtt", "roundtrip", "roundtriptime", "elapsed", "elapsedtime", "duration", "responsetime",
        "response", "requesttime", "timetotal", "took", "wait", "waittime", "waitingtime", "turnaround",
        "turnaroundtime", "timetaken", "totaltime", "runtime", "delay", "upstreamresponsetime", "servicetime",
        "processingtime", "executiontime", "ttfb", "timetofirstbyte", "ping", "pingtime",
        "seconds", "milliseconds", "microseconds", "ms",
    ),
    "submitted": (
        "submitted", "submit", "submittime", "submittedat", "submissiontime", "sent", "sentat", "started", "start",
        "starttime", "starttimeunix", "startedat", "created", "createdat", "queued", "queuedat", "requested",
        "timestamp", "time", "timeunix", "ts", "date", "datetime", "checkedat", "epoch", "unixtime", "unix",
    ),
    "ended": (
        "ended", "end", "endtime", "endtimeunix", "endedat", "completedat", "completiontime", "finished", "finish",
        "finishtime", "finishedat", "returned", "returnedat", "received", "receivedat", "done", "doneat",
    ),
    "status": ("conclusion", "status", "state", "result", "outcome", "success", "ok"),
    "id": ("id", "probe", "probeid", "jobid", "requestid", "uuid", "taskid", "traceid"),
}  # fmt: skip
HTTP_NAMES = (
    "statuscode",
    "httpstatus",
    "httpstatuscode",
    "httpcode",
    "responsecode",
    "code",
)  # where the values agree
MOSTLY = 0.6  # of the cells of a column of HTTP codes hold one
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
EPOCH_UNITS = {"s": "epoch", "ms": "epoch-ms", "us": "epoch-us", "ns": "epoch-ns"}
SOME_ROWS = 50

FirstRows = Callable[[], pd.DataFrame]


@dataclass(frozen=True)
class Roles:
    """Which columns hold what; `seconds` is the unit of the latency, `sure` whether anyone said so.

    `time_formats` are those of the columns of times, where they are known.
    """

    latency: tuple[str, ...] = ()
    submitted: str | None = None
    ended: str | None = None
    status: str | None = None
    id: str | None = None
    seconds: float = 1.0
    sure: bool = True
    time_formats: Mapping[str, str] = field(default_factory=dict)

    @property
    def used(self) -> set[str]:
        """All columns that have a role."""
        single = (self.submitted, self.ended, self.status, self.id)
        return {*self.latency, *(name for name in single if name)}


def resolve_roles(
    names: list[str], options: ReadOptions, log: str, first_rows: FirstRows = pd.DataFrame
) -> tuple[Roles, list[str]]:
    """Which column is what, by the user's word or by its name, and the guesses to be said aloud.

    `first_rows` gives some rows of the log, as text; it is called where names alone do not tell.
    """
    if not names:
        raise MissingColumn(f"{log}: there is no column with a name and plain values")
    chosen = _chosen(names, options, log)
    plain = {name: plain_name(name)[0] for name in names}
    for role, guesses in GUESSES.items():
        if role not in chosen and not (role == "latency" and chosen.get("ended")):
            chosen[role] = next((name for guess in guesses for name in names if plain[name] == guess), None)
    if chosen["status"] is None and "status" not in options.columns:
        chosen["status"] = _http_column(plain, first_rows)
    latency, ended = chosen.get("latency"), chosen.get("ended")
    if latency is None and not (chosen.get("submitted") and ended):
        raise MissingColumn(
            f"{log}: no column looks like a latency, nor a pair like a submission and an end; there are: "
            f"{listed(names)}. {name_it(names, first_rows())}"
        )
    if latency is not None and "ended" not in options.columns:
        chosen["ended"] = None
    unit = options.unit or (plain_name(latency)[1] if latency is not None and "+" not in latency else None)
    roles = Roles(
        latency=tuple(latency.split("+")) if latency else (),
        submitted=chosen.get("submitted"),
        ended=chosen.get("ended") if latency is None else None,
        status=chosen.get("status"),
        id=chosen.get("id"),
        seconds=UNITS[unit or "s"],
        sure=unit is not None or latency is None,
        time_formats=_time_formats((chosen.get("submitted"), chosen.get("ended")), options, pair=latency is None),
    )
    return roles, _guesses(roles, options, unit)


def _chosen(names: list[str], options: ReadOptions, log: str) -> dict[str, str | None]:
    """The columns that the user named for a role, None for a role switched off."""
    chosen: dict[str, str | None] = {}
    for role, wanted in options.columns.items():
        for name in wanted.split("+") if role == "latency" else [wanted]:
            if wanted and name not in names:
                raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")
        chosen[role] = wanted or None
    return chosen


def _http_column(plain: Mapping[str, str], first_rows: FirstRows) -> str | None:
    """A column that is called like HTTP codes and mostly holds some; words beside them are those of a status."""
    named = [name for guess in HTTP_NAMES for name in plain if plain[name] == guess]
    rows = first_rows() if named else pd.DataFrame()
    columns = {name: column for name in named if isinstance(column := rows.get(name), pd.Series)}
    return next((name for name, column in columns.items() if _holds_codes(column)), None)


def _holds_codes(column: pd.Series[Any]) -> bool:
    words = column.dropna().map(word_of)
    numbers = words.str.fullmatch(r"\d+(\.0)?|[1-5]xx")
    return len(words) > 0 and bool(numbers.mean() > MOSTLY) and is_http_column(words.unique(), words_too=True)


def name_it(names: list[str], rows: pd.DataFrame) -> str:
    """How to name the latency's column: by the one that most looks like a measurement, where one holds numbers at all.

    Numbers, with decimals, many, and not merely counting up.
    """

    def score(name: str) -> tuple[float, ...]:
        cells = rows.get(name)
        values = pd.Series(numeric(cells)) if isinstance(cells, pd.Series) else pd.Series(dtype=float)
        known = values[np.isfinite(values)]
        if not len(known) or (known >= 1e8).mean() > 0.5:  # words, or times since 1970
            return (0.0,)
        counts_up = len(known) > 2 and bool((known.diff().dropna() > 0).all())
        return (round(len(known) / len(values), 1), not counts_up, bool((known % 1 != 0).any()), known.nunique())

    best = max(reversed(names), key=score)
    if score(best) == (0.0,):
        return "Name it: --column latency=NAME, or --column submitted=NAME --column ended=NAME"
    return f"Name it, for example: --column latency={best[:40]}"


def _time_formats(names: Iterable[str | None], options: ReadOptions, *, pair: bool) -> dict[str, str]:
    """Formats that the user gave, or that a column's name tells: `start_ms` holds milliseconds."""
    found = {}
    for name in filter(None, names):
        unit = plain_name(name)[1] or (options.unit if pair else None)
        known = options.time_format or EPOCH_UNITS.get(unit or "")
        if known:
            found[name] = known
    return found


def plain_name(name: str) -> tuple[str, str | None]:
    """A column's name without case, separators and unit, and the unit that it ends in.

    >>> plain_name("Response Time [ms]"), plain_name("rtt (µs)"), plain_name("startTimeUnixNano")
    (('responsetime', 'ms'), ('rtt', 'us'), ('starttimeunix', 'ns'))
    >>> plain_name("seconds"), plain_name("ms")  # a latency that is called by its unit
    (('seconds', 's'), ('ms', 'ms'))
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", re.sub("[µμ]", "u", name)).lower()
    words = [word for word in re.split(r"[^a-z0-9]+", spaced) if word]
    unit = UNIT_WORDS.get(words[-1]) if words else None
    words = words[:-1] if unit and len(words) > 1 else words
    if unit and len(words) > 1 and words[-1] == "in":
        words = words[:-1]
    joined = "".join(words)
    if unit is None:  # latencyms
        for ending in ("ms", "us", "ns", "sec", "seconds"):
            if joined.removesuffix(ending) != joined and joined.removesuffix(ending) in GUESSES["latency"]:
                return joined.removesuffix(ending), UNIT_WORDS[ending]
    return joined, unit


def _guesses(roles: Roles, options: ReadOptions, unit: str | None) -> list[str]:
    """The guesses made, in words; a column called just what it is needs none."""
    notes = []
    if roles.latency and "latency" not in options.columns and roles.latency != ("latency",):
        what = unit or "s (its name has no unit; change it with --unit)"
        notes.append(f"column {roles.latency[0]!r} is read as the latency in {what}")
    if roles.ended:
        notes.append(f"latency is {roles.ended!r} minus {roles.submitted!r}")
    notes += [
        f"column {name!r} is read as {kind}" for name, kind in roles.time_formats.items() if not options.time_format
    ]
    if roles.status is None and not roles.ended:
        notes.append(NO_OUTCOMES)
    for role in ("submitted", "status", "id"):
        name = getattr(roles, role)
        if name and name.lower() != role and role not in options.columns:
            hint = " (one probe each; switch off with --column id=)" if role == "id" else ""
            notes.append(f"column {name!r} is read as {role}{hint}")
    return notes
