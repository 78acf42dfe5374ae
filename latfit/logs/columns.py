"""Which column of a table is what."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LatfitError, MissingColumn, listed
from latfit.logs.formats import ReadOptions
from latfit.logs.retried import attempt_column, comes_back
from latfit.logs.telling import choose
from latfit.logs.times import MOMENT, MONTHS, numeric, parse_times, time_format_of
from latfit.logs.words import NOTHING, is_blank, name_words
from latfit.numbers import Floats
from latfit.units import UNIT_WORDS, UNITS, parse_duration

# names that mean one thing only, best guess first; compared in lower case without separators
GUESSES: dict[str, tuple[str, ...]] = {
    "latency": (
        "latency", "rtt", "roundtrip", "roundtriptime", "elapsed", "elapsedtime", "duration", "dur", "rt", "jobruntime",
        "responsetime",
        "response", "requesttime", "timetotal", "took", "wait", "waittime", "waitingtime", "turnaround",
        "turnaroundtime", "timetaken", "totaltime", "runtime", "delay", "upstreamresponsetime", "servicetime",
        "processingtime", "executiontime", "ttfb", "timetofirstbyte", "ping", "pingtime", "walltime", "wallclock",
        "wallclocktime", "queuetime", "queuewait",
        "seconds", "milliseconds", "microseconds", "ms",
    ),
    "submitted": (
        "submitted", "submit", "submittime", "submittedat", "submissiontime", "sent", "sentat", "started", "start",
        "starttime", "starttimeunix", "startedat", "created", "createdat", "queued", "queuedat", "requested",
        "timestamp", "time", "timeunix", "ts", "date", "datetime", "checkedat", "epoch", "unixtime", "unix", "when",
        "datecreated", "startdate", "creationdate", "creationtimestamp", "enqueued", "enqueuedat",
    ),
    "ended": (
        "ended", "end", "endtime", "endtimeunix", "endedat", "completedat", "completiontime", "finished", "finish",
        "finishtime", "finishedat", "returned", "returnedat", "received", "receivedat", "done", "doneat", "stop",
        "stopped", "stoppedat", "stoptime", "stopdate", "enddate", "datedone",
    ),
    "status": ("conclusion", "status", "state", "result", "outcome", "success", "ok"),
    "id": ("id", "probe", "probeid", "jobid", "requestid", "uuid", "taskid", "traceid"),
}  # fmt: skip
BEGUN = ("started", "start", "starttime", "startedat", "startdate")
QUEUED = ("queued", "queuedat", "queueddttm", "enqueued", "enqueuedat", "created", "createdat", "creationtimestamp")
NO_OUTCOMES = "there is no status column: every row with a latency is taken as completed"
EPOCH_UNITS = {"s": "epoch", "ms": "epoch-ms", "us": "epoch-us", "ns": "epoch-ns"}
SOME_ROWS = 200
LONG = 80  # characters of a cell that are looked at
FEW = 20  # cells that tell how times are written
WRITTEN_DATE = r"(?i)(\d{1,2}[/.-]\d{1,2}[/.-]\d{4}|.*\b(" + "|".join(MONTHS) + r")[a-z]*\b.*)\D+\d{1,2}:\d\d.*"
DAY = r"\d{4}-\d\d-\d\d[T ]00:00(:00(\.0+)?)?(Z|[+]00:?00)?"  # a date alone, as some readers give it
SUMMARY = re.compile(  # of many probes, or what was set
    r"p\d+|max|min|avg|mean|median|std|stdev|stddev|sum|timeout|limit|interval|ttl|cutoff|deadline|age|uptime|offset|budget"
)
NUMBERED = re.compile("id|code|port|pid|ttl|offset|count|size|length|bytes|retries|level|version|number|line|lag")
REPEATED = 0.5  # the share of different values below which a column is no id
KNOWN_UNITS = {"@duration": "ms"}  # of CloudWatch
AGREE = 0.1  # within which a latency is an end minus a submission
TIMELIKE = re.compile("time|latency|duration|elapsed|rtt|wait|delay|response|took|dur|rt|lag")
EPOCHS = 1e8  # numbers from here on are times since 1970


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
            f"{listed(names)}{_first_line(names)}. {name_it(names, rows)}"
        )
    unit = options.unit or (plain_name(latency)[1] if latency is not None and "+" not in latency else None)
    unit = unit or (_unit_by_ends(latency, chosen, rows, options) if latency else None)
    if latency is not None and "ended" not in options.columns:
        chosen["ended"] = None
    spelled = unit is None and latency in rows and _says_units(rows[latency])
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
    cells = {name: column for name in names if isinstance(column := rows.get(name), pd.Series)}
    when = chosen["submitted"]
    if chosen.get("latency") is None and not chosen.get("ended") and "latency" not in options.columns:
        chosen["latency"] = _measured_column(cells)
        when = None if when == chosen["latency"] and "submitted" not in options.columns else when
    if (
        when in cells
        and "submitted" not in options.columns
        and _all_match(cells[when], r"\d?\d:\d\d(:\d\d([.,]\d+)?)?")
    ):
        notes.append(f"column {when!r} holds times of day without a date: it is not used; join it with the date")
        when = None
    elif when is None and "submitted" not in options.columns:
        when, told = _time_column(plain, cells)
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
    if own in cells and "id" not in options.columns and _repeats(cells[own]):
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


def _measured_column(cells: Mapping[str, pd.Series[Any]]) -> str | None:
    """The only column that holds durations with units, or that is called by one and holds numbers that do not rise."""
    found = []
    for name, column in cells.items():
        words = name_words(name)
        single = not any(map(SUMMARY.fullmatch, words))
        if _is_value(name):
            continue
        if single and _says_units(column):
            found += [name] if len(column) < 3 or len(column.unique()) > 1 else []
            continue
        values = _numbers(column)
        known = values[np.isfinite(values)]
        rises = known.size > 2 and bool((np.diff(known) >= 0).all())
        if single and len(words) > 1 and plain_name(name)[1] and known.size and known.max() < EPOCHS and not rises:
            found.append(name)
    whole = [name for name in found if "total" in name_words(name)]  # of parts of which each has its own
    found = whole if len(whole) == 1 else found
    return found[0] if len(found) == 1 else None


def _numbers(column: pd.Series[Any]) -> Floats:
    """The numbers of a column, with a decimal comma too, NaN for what is none."""
    values = numeric(column)
    if np.isnan(values).all() and column.dtype.kind not in "Mmfiub":
        values = numeric(column.astype("string").str.replace(",", ".", regex=False))
    return values


def _says_units(column: pd.Series[Any]) -> bool:
    """Whether the first cells that hold something are durations with units of their own, such as `12.3ms`."""
    if column.dtype.kind in "Mmfiub":
        return False
    some = column.mask(is_blank(column, NOTHING)).dropna().head(FEW).astype(str)
    return len(some) > 0 and all(map(has_unit, some))


def _is_value(name: str) -> bool:
    """Whether what stands in the place of a name is none: the first row was taken as the header."""
    return re.match(rf"{MOMENT}|[\d.]+$", name.strip()) is not None or has_unit(name)


def has_unit(text: str) -> bool:
    """Whether a text is a duration with a unit."""
    try:
        parse_duration(text)
    except LatfitError:
        return False
    return re.search("[a-zµμ] *$", text, re.IGNORECASE) is not None


def _unit_by_ends(
    latency: str, chosen: Mapping[str, str | None], rows: pd.DataFrame, options: ReadOptions
) -> str | None:
    """The unit of a latency without one, where it has to agree with an end minus a submission, or a name is known."""
    if latency in KNOWN_UNITS:
        return KNOWN_UNITS[latency]
    begun, ended = chosen.get("submitted"), chosen.get("ended")
    if not begun or not ended or not {begun, ended, latency} <= set(rows.columns):
        return None
    try:
        times = [parse_times(rows[name], name, time_format_of(rows[name], name), options.timezone)[0]
                 for name in (begun, ended)]  # fmt: skip
    except LatfitError:
        return None
    spent, numbers = (times[1] - times[0]) / np.timedelta64(1, "s"), numeric(rows[latency])
    known = (spent > 0) & (numbers > 0) & np.isfinite(numbers)
    if np.count_nonzero(known) < 3:
        return None
    ratio = float(np.median(numbers[known] / spent[known]))
    return next((unit for unit in ("s", "ms", "us", "ns", "min") if abs(ratio * UNITS[unit] - 1) < AGREE), None)


def _unreadable(column: pd.Series[Any], name: str, options: ReadOptions) -> str | None:
    """The first cell of a column of times of which none can be read."""
    known = column.mask(is_blank(column, NOTHING)).dropna().head(FEW)
    if not len(known) or options.time_format or re.match(rf"\s*({MOMENT}|\d+(\.\d+)?$)", str(known.iloc[0])):
        return None
    formats = _time_formats([name], options, pair=False)
    _, bad = parse_times(known, name, formats.get(name) or time_format_of(known, name), options.timezone)
    return str(known.iloc[0])[:40] if bad.all() else None


def _repeats(column: pd.Series[Any]) -> bool:
    """Whether most cells hold what another one holds."""
    some = column.dropna().astype(str)
    return bool(some.nunique() < REPEATED * len(some))


def _all_match(column: pd.Series[Any], pattern: str) -> bool:
    """Whether every cell that holds something matches."""
    some = [text for cell in column.dropna() if (text := str(cell)[:LONG].strip())]
    return bool(some) and all(re.fullmatch(pattern, text) for text in some)


def _time_column(plain: Mapping[str, str], cells: Mapping[str, pd.Series[Any]]) -> tuple[str | None, list[str]]:
    """The only column that holds dates with a time of day, and is not called like an end; why another is not used."""
    others = {name: column for name, column in cells.items() if plain[name] not in GUESSES["ended"]}
    found = [
        name for name, column in others.items() if _all_match(column, MOMENT + ".*") and not _all_match(column, DAY)
    ]
    if not found:
        found = [name for name, column in others.items() if _all_match(column.head(FEW), WRITTEN_DATE)]
    if len(found) != 1:
        return None, []
    try:
        time_format_of(cells[found[0]], found[0])
    except LatfitError as error:
        return None, [f"{error} (it is not used)"]
    return found[0], []


def _first_line(names: list[str]) -> str:
    """What to say where the names of columns are no names."""
    data = any(_is_value(name) or re.match(r"column\d+$", name) for name in names)
    return " (the first line seems to hold data: there is no header that names the columns)" if data else ""


def name_it(names: list[str], rows: pd.DataFrame) -> str:
    """How to name the latency's column: by the one that most looks like a measurement, where one holds numbers at all.

    Numbers, with decimals, many, and not merely counting up.
    """

    def score(name: str) -> tuple[float, ...]:
        cells = rows.get(name)
        values = pd.Series(_numbers(cells)) if isinstance(cells, pd.Series) else pd.Series(dtype=float)
        known = values[np.isfinite(values)]
        named = name_words(name)[-1:]
        if _is_value(name):
            return (0.0,)
        if isinstance(cells, pd.Series) and _says_units(cells):
            return (1.0, True, True, cells.nunique())
        if (
            not len(known) or (known >= EPOCHS).mean() > 0.5 or NUMBERED.fullmatch("".join(named))
        ):  # or times since 1970
            return (0.0,)
        counts_up = len(known) > 2 and bool((known.diff().dropna() > 0).all())
        decimals = bool((known % 1 != 0).any())
        words = name_words(name)
        if any(map(SUMMARY.fullmatch, words)) or not (
            decimals or plain_name(name)[1] or any(map(TIMELIKE.search, words))
        ):
            return (0.0,)
        return (round(len(known) / len(values), 1), not counts_up, decimals, known.nunique())

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
    words = name_words(name)
    words = words[:-3] if words[-3:] == ["hh", "mm", "ss"] else words
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
