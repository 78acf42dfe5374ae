"""Which column of a table is what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from latfit.errors import MissingColumn, listed
from latfit.logs.cells import (
    FEW,
    all_match,
    first_line,
    measured_column,
    name_it,
    repeats,
    says_units,
    time_column,
    unit_by_ends,
)
from latfit.logs.formats import ReadOptions
from latfit.logs.names import GUESSES, plain_name
from latfit.logs.retried import attempt_column, comes_back
from latfit.logs.telling import choose
from latfit.logs.times import MOMENT, parse_times, time_format_of
from latfit.logs.words import NOTHING, is_blank
from latfit.units import UNITS

BEGUN = ("started", "start", "starttime", "startedat", "startdate")
QUEUED = ("queued", "queuedat", "queueddttm", "enqueued", "enqueuedat", "created", "createdat", "creationtimestamp")
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
EPOCH_UNITS = {"s": "epoch", "ms": "epoch-ms", "us": "epoch-us", "ns": "epoch-ns"}
SOME_ROWS = 200


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


def resolve_roles(names: list[str], options: ReadOptions, log: str, rows: pd.DataFrame) -> tuple[Roles, list[str]]:
    """Which column is what, by the user's word, by its name or by what the first rows hold, and the guesses to say."""
    if not names:
        raise MissingColumn(f"{log}: there is no column with a name and plain values")
    chosen = _chosen(names, options, log)
    plain = {name: plain_name(name)[0] for name in names}
    for role, guesses in GUESSES.items():
        if role not in chosen and not (role == "latency" and chosen.get("ended")):
            chosen[role] = next((name for guess in guesses for name in names if plain[name] == guess), None)
    more = _by_their_cells(chosen, names, options, rows)
    latency, ended = chosen.get("latency"), chosen.get("ended")
    if latency is None and not (chosen.get("submitted") and ended):
        raise MissingColumn(
            f"{log}: no column looks like a latency, nor a pair like a submission and an end; there are: "
            f"{listed(names)}{first_line(names)}. {name_it(names, rows)}"
        )
    unit = options.unit or (plain_name(latency)[1] if latency is not None and "+" not in latency else None)
    unit = unit or (unit_by_ends(latency, chosen, rows, options) if latency else None)
    if latency is not None and "ended" not in options.columns:
        chosen["ended"] = None
    spelled = unit is None and latency in rows and says_units(rows[latency])
    roles = Roles(
        latency=tuple(latency.split("+")) if latency else (),
        submitted=chosen.get("submitted"),
        ended=chosen.get("ended") if latency is None else None,
        status=chosen.get("status"),
        id=chosen.get("id"),
        seconds=UNITS[unit or "s"],
        sure=unit is not None or latency is None or spelled,
        time_formats=_time_formats((chosen.get("submitted"), chosen.get("ended")), options, pair=latency is None),
    )
    said = _guesses(roles, options, "the units that it says itself" if spelled else unit, attempt_column(names))
    return roles, [*said, *more]


def _chosen(names: list[str], options: ReadOptions, log: str) -> dict[str, str | None]:
    """The columns that the user named for a role, None for a role switched off."""
    chosen: dict[str, str | None] = {}
    for role, wanted in options.columns.items():
        for name in wanted.split("+") if role == "latency" else [wanted]:
            if wanted and name not in names:
                raise MissingColumn(f"{log}: there is no column {name!r} for {role}; there are: {listed(names)}")
        chosen[role] = wanted or None
    return chosen


def _by_their_cells(
    chosen: dict[str, str | None], names: list[str], options: ReadOptions, rows: pd.DataFrame
) -> list[str]:
    """Choose columns by what they hold, where names do not tell; what is to be said of those that are not used."""
    plain, notes = {name: plain_name(name)[0] for name in names}, []
    cells = {name: column for name in names if name and isinstance(column := rows.get(name), pd.Series)}
    when = chosen["submitted"]
    if chosen.get("latency") is None and not chosen.get("ended") and "latency" not in options.columns:
        chosen["latency"] = measured_column(cells)
        when = None if when == chosen["latency"] and "submitted" not in options.columns else when
    if when in cells and "submitted" not in options.columns and all_match(cells[when], r"\d?\d:\d\d(:\d\d([.,]\d+)?)?"):
        notes.append(f"column {when!r} holds times of day without a date: it is not used; join it with the date")
        when = None
    elif when is None and "submitted" not in options.columns:
        when, told = time_column(plain, cells)
        notes += told
    if chosen.get("latency") and when and "submitted" not in options.columns and plain[when] in BEGUN:
        when = next((name for name in names if plain[name] in QUEUED), when)  # what began had waited
    if when in cells and chosen.get("latency") and "submitted" not in {plain[when], *options.columns}:
        first = _unreadable(cells[when], when, options)
        if first is not None:
            notes.append(f"column {when!r} is not used: {first!r} is no time that can be read without --time-format")
            when = None
    chosen["submitted"] = when
    own = chosen.get("id")
    if own in cells and "id" not in options.columns and repeats(cells[own]):
        notes.append(f"column {own!r} repeats its values: it is no id of probes")
        chosen["id"] = None
    elif own in cells and when in cells and _is_tried_again(own, when, cells, options):
        notes.append(f"column {own!r} comes back at other times: they are attempts of one job, each a probe")
        chosen["id"] = None
    if "status" not in options.columns:
        used = {when, chosen.get("latency"), chosen.get("ended"), chosen.get("id")}
        free = {name: column for name, column in cells.items() if name not in used}
        named = chosen["status"]
        chosen["status"], others = choose(named, free, options)
        if named not in (None, chosen["status"]):
            notes.append(f"column {named!r} says that all is well with every probe, {chosen['status']!r} does not")
        if others:
            are = "is" if len(others) == 1 else "are"
            notes.append(f"{listed(others)} may tell what became of a probe, and {are} not used: --column status=NAME")
    return notes


def _is_tried_again(own: str, when: str, cells: Mapping[str, pd.Series[Any]], options: ReadOptions) -> bool:
    """Whether what looks like an id names jobs with several attempts, which no column numbers."""
    return "id" not in options.columns and attempt_column(cells) is None and comes_back(cells[own], cells[when])


def _unreadable(column: pd.Series[Any], name: str, options: ReadOptions) -> str | None:
    """The first cell of a column of times of which none can be read."""
    known = column.mask(is_blank(column, NOTHING)).dropna().head(FEW)
    if not len(known) or options.time_format or re.match(rf"\s*({MOMENT}|\d+(\.\d+)?$)", str(known.iloc[0])):
        return None
    formats = _time_formats([name], options, pair=False)
    _, bad = parse_times(known, name, formats.get(name) or time_format_of(known, name), options.timezone)
    return str(known.iloc[0])[:40] if bad.all() else None


def _time_formats(names: Iterable[str | None], options: ReadOptions, *, pair: bool) -> dict[str, str]:
    """Formats that the user gave, or that a column's name tells: `start_ms` holds milliseconds."""
    found = {}
    for name in filter(None, names):
        unit = plain_name(name)[1] or (options.unit if pair else None)
        known = options.time_format or EPOCH_UNITS.get(unit or "")
        if known:
            found[name] = known
    return found


def _guesses(roles: Roles, options: ReadOptions, unit: str | None, attempts: str | None) -> list[str]:
    """The guesses made, in words; a column called just what it is needs none.

    `attempts` is the column that numbers the attempts of what an id names.
    """
    notes = []
    if roles.latency and "latency" not in options.columns and roles.latency != ("latency",):
        what = unit or "s (its name has no unit; change it with --unit)"
        notes.append(f"column {roles.latency[0]!r} is read as the latency in {what}")
    if roles.ended:
        notes.append(f"latency is {roles.ended!r} minus {roles.submitted!r}")
    notes += [
        f"column {name!r} is read as {kind}" for name, kind in roles.time_formats.items() if not options.time_format
    ]
    if roles.status is None and not roles.ended and "status" not in options.columns:
        notes.append(NO_OUTCOMES)
    for role in ("submitted", "status", "id"):
        name = getattr(roles, role)
        if role == "id" and name and attempts is not None:
            notes.append(f"each attempt is a probe: column {name!r} names the job, {attempts!r} numbers its attempts")
        elif name and name.lower() != role and role not in options.columns:
            hint = " (one probe each; switch off with --column id=)" if role == "id" else ""
            notes.append(f"column {name!r} is read as {role}{hint}")
    return notes
