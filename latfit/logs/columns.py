"""Which column of a table is what, and what its words mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from latfit.errors import MissingColumn, listed
from latfit.logs.formats import UNITS, ReadOptions

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
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
EPOCH_UNITS = {"s": "epoch", "ms": "epoch-ms", "us": "epoch-us", "ns": "epoch-ns"}
KNOWN_WORDS = {word: status for status, words in WORDS.items() for word in words}


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


def resolve_roles(names: list[str], options: ReadOptions, log: str) -> tuple[Roles, list[str]]:
    """Which column is what, by the user's word or by its name, and the guesses to be said aloud."""
    if not names:
        raise MissingColumn(f"{log}: there is no column with a name and plain values")
    chosen: dict[str, str | None] = {}
    for role, wanted in options.columns.items():
        for name in wanted.split("+") if role == "latency" else [wanted]:
            if wanted and name not in names:
                raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")
        chosen[role] = wanted or None
    plain = {name: _plain(name)[0] for name in names}
    for role, guesses in GUESSES.items():
        if role not in chosen and not (role == "latency" and chosen.get("ended")):
            chosen[role] = next((name for guess in guesses for name in names if plain[name] == guess), None)
    latency, ended = chosen.get("latency"), chosen.get("ended")
    if latency is None and not (chosen.get("submitted") and ended):
        raise MissingColumn(
            f"{log}: no column looks like a latency, nor a pair like a submission and an end; there are: "
            f"{listed(names)}. Name it, for example: --column latency={names[-1][:40]}"
        )
    if latency is not None and "ended" not in options.columns:
        chosen["ended"] = None
    unit = options.unit or (_plain(latency)[1] if latency is not None and "+" not in latency else None)
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


def _time_formats(names: Iterable[str | None], options: ReadOptions, *, pair: bool) -> dict[str, str]:
    """Formats that the user gave, or that a column's name tells: `start_ms` holds milliseconds."""
    found = {}
    for name in filter(None, names):
        unit = _plain(name)[1] or (options.unit if pair else None)
        known = options.time_format or EPOCH_UNITS.get(unit or "")
        if known:
            found[name] = known
    return found


def _plain(name: str) -> tuple[str, str | None]:
    """A column's name without case, separators and unit, and the unit that it ends in."""
    words = [w for w in re.split(r"[^a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if w]
    unit = UNIT_WORDS.get(words[-1]) if len(words) > 1 else None
    return "".join(words[:-1] if unit else words), unit


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
