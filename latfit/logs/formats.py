"""What a format is, the options that every format takes, and the registry that makes a new one one new file."""

from __future__ import annotations

import csv
import io
import re
import shlex
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd

from latfit.errors import LatfitError, LogError, MissingColumn, UnknownFormat, listed
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.vocabulary import ABSENT, attempt_column, by_word, job_columns, split_name, weigh, word_of
from latfit.table import ONLY_COMPLETED, OWN_STATUS, STATUSES
from latfit.units import UNITS, parse_duration

NUMBER = r"[0-9]+(?:\.[0-9]+)?"
SPENT = r"(?:[0-9][0-9.]* ?(?:h|m|min(?:utes?)?|[nuµμm]?s|msec|(?:milli)?sec(?:ond)?s?) ?)+"
DURATION = re.compile(rf"(\b[A-Za-z_]{{2,20}})?([\"']?[ =:]+(?:in )?|[(\[])(?:({SPENT})\b|{NUMBER}(?![\w.]|:[0-9]))")
NO_SUBMISSIONS = "the log does not say when its probes were submitted: --since and --until cannot choose"
SNIFFED_LINES = 50
DELIMITERS = (",", "\t", ";", "|")
ROLES = ("latency", "submitted", "ended", "status", "id")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log; everything absent is guessed, and the guess is noted.

    `columns` maps a role (latency, submitted, ended, status, id) to a column's name; an empty name
    switches the role off; `latency` may be a sum such as `wait+run`. `statuses` maps the log's own
    words to completed, failed, censored or lost. `time_format` is iso, epoch, epoch-ms, epoch-us,
    epoch-ns or a strptime pattern; `timezone` is that of times without an offset (default UTC);
    `year` that of the first event of a log that does not write years. `where` are conditions on columns
    (`site=ce1`, `method!=GET`, `url~^/api/`) that all must hold; `since` and `until` choose by the time of
    submission: an ISO time, or a duration before the end of the log (`7d`). `pattern` is a regular expression
    that finds a probe in a line of text; its named groups are the columns. Without `own_columns`, only those of the
    log's own columns are kept that `where` names, and those that number attempts.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    time_format: str | None = None
    timezone: str | None = None
    year: int | None = None
    where: Sequence[str] = ()
    since: str | None = None
    until: str | None = None
    pattern: str | None = None
    own_columns: bool = True

    def __post_init__(self) -> None:
        for role in self.columns:
            if role not in ROLES:
                raise LogError(f"{role!r} is not a role of a column; choose from {', '.join(ROLES)}")
        for word, status in self.statuses.items():
            if status not in STATUSES:
                raise LogError(f"{word!r} cannot be read as {status!r}; choose from {', '.join(STATUSES)}")
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (ZoneInfoNotFoundError, ValueError, OSError) as error:
                raise LogError(
                    f"{self.timezone!r} is not a time zone known here; write for example Europe/Paris"
                ) from error
        if self.unit is not None and self.unit not in UNITS:
            raise LogError(f"{self.unit!r} is not a unit of time; choose from {', '.join(UNITS)}")
        if self.pattern is not None and not regular_expression(self.pattern).groupindex:
            raise LogError(f"{self.pattern!r} names no column: write for example 'took (?P<latency>[0-9.]+ms)'")

    def kept(self, names: Iterable[str]) -> list[str]:
        """Which of the log's own columns are kept."""
        names = list(names)
        if self.own_columns:
            return names
        asked = {Condition.parse(text).column for text in self.where}
        attempts = attempt_column(names)
        return [name for name in names if name in asked or (attempts and name in (attempts, *job_columns(names)))]

    def as_flags(self) -> str:
        """The options as they are written on a command line."""
        words = [("column", f"{role}={name}") for role, name in self.columns.items()]
        words += [("status", f"{status}={word}") for word, status in self.statuses.items()]
        words += [("where", condition) for condition in self.where]
        single = ("unit", "time_format", "timezone", "year", "since", "until", "pattern")
        words += [(name.replace("_", "-"), str(value)) for name in single if (value := getattr(self, name)) is not None]
        return " ".join(f"--{name} {shlex.quote(value)}" for name, value in words)

    @property
    def named_columns(self) -> dict[str, str]:
        """The columns that the user named, with their roles."""
        parts = {role: name.split("+") if role == "latency" else [name] for role, name in self.columns.items()}
        return {name: role for role, names in parts.items() for name in names if name}

    @property
    def lowered_statuses(self) -> dict[str, str]:
        return {word.strip().lower(): status for word, status in self.statuses.items()}


@dataclass(frozen=True)
class Condition:
    """What a cell of a column must be: `=` equal to a value, `!=` different, or `~` matching a regular expression."""

    column: str
    operator: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """From text such as `site=ce1`, `method!=GET` or `url~^/api/`; an empty value means an empty cell.

        >>> Condition.parse("method!=GET")
        Condition(column='method', operator='!=', value='GET')
        """
        match = re.fullmatch(r"(.+?)(!=|=|~)(.*)", text, re.DOTALL)
        if match is None:
            raise LogError(f"{text!r} is not a condition; write COLUMN=VALUE, COLUMN!=VALUE or COLUMN~REGEX")
        condition = cls(match[1].strip(), match[2], match[3].strip())
        if condition.operator == "~":
            regular_expression(condition.value)
        return condition

    def is_met(self, value: Any) -> bool:
        empty = value is None or word_of(value) in ABSENT
        if self.operator == "~":
            return not empty and re.search(self.value, str(value)) is not None
        same = empty if not self.value else not empty and self.value in (str(value).strip(), word_of(value))
        return same == (self.operator == "=")


class RowFilter:
    """Picks the rows that `where`, `since` and `until` ask for, chunk by chunk; all rows if these are empty."""

    def __init__(self, options: ReadOptions, log_end: Callable[[], np.datetime64 | None]) -> None:
        self.conditions = [Condition.parse(text) for text in options.where]
        zone = options.timezone or "UTC"
        self.since, self.until = (_moment(text, zone, log_end) for text in (options.since, options.until))
        self.missing = {condition.column for condition in self.conditions}
        if OWN_STATUS in self.missing:
            raise LogError(ONLY_COMPLETED)
        self.columns: dict[str, None] = {}

    def __call__(self, records: Records) -> tuple[Records, int]:
        """The wanted rows, and how many others there were; lines that could not be split stay and are refused later."""
        if not records.line.size or (records.raw is None and not records.extras and records.submitted is None):
            return records, 0
        wanted = np.ones(records.line.size, dtype=bool)
        for condition in self.conditions:
            wanted &= by_word(self._column(condition.column, records), condition.is_met, condition.is_met(None))
        if self.since is not None or self.until is not None:
            if records.submitted is None:
                raise LogError(NO_SUBMISSIONS)
            wanted &= ~np.isnat(records.submitted)
            if self.since is not None:
                wanted &= records.submitted >= self.since
            if self.until is not None:
                wanted &= records.submitted < self.until
        return records.take(wanted), int(np.count_nonzero(~wanted))

    def finish(self, log: str) -> None:
        if self.missing and self.columns:
            name = sorted(self.missing)[0]
            raise MissingColumn(f"{log}: there is no column {name!r} for --where; there are: {listed(self.columns)}")

    def _column(self, name: str, records: Records) -> pd.Series[Any]:
        raw = {} if records.raw is None else {str(column): records.raw[column] for column in records.raw}
        columns: dict[str, pd.Series[Any]] = {**records.extras, **raw}
        self.columns.update(dict.fromkeys(name for name in columns if name != OWN_STATUS))
        if name == "status" and name not in columns:
            columns[name] = pd.Series(pd.Categorical.from_codes(records.status, categories=pd.Index(STATUSES)))
        if name not in columns:
            return pd.Series([None] * records.line.size, dtype=object)  # a key that other objects may have
        self.missing.discard(name)
        return columns[name]


def _moment(text: str | None, zone: str, log_end: Callable[[], np.datetime64 | None]) -> np.datetime64 | None:
    if not text:
        return None
    if re.match(r"\s*\d{4}-\d\d", text):
        try:
            when = pd.Timestamp(text)
            utc = when.tz_localize(zone) if when.tzinfo is None else when
            return np.datetime64(utc.tz_convert("UTC").tz_localize(None).to_pydatetime(), "us")
        except (ValueError, OverflowError) as error:
            raise LogError(f"{text!r} is not a time ({error})") from error
    try:
        seconds = None if re.fullmatch(r"[\s\d.]+", text) else parse_duration(text)
    except LatfitError:
        seconds = None
    if seconds is None:
        raise LogError(
            f"{text!r} is neither a time (2026-03-01, 2026-03-01T12:00:00Z) nor a duration before the log's end "
            "with its unit (6h, 7d)"
        )
    end = log_end()
    if end is None:
        raise LogError(NO_SUBMISSIONS)
    return end - np.timedelta64(round(min(seconds, 1e11) * 1e6), "us")


def regular_expression(text: str) -> re.Pattern[str]:
    """A regular expression that a user wrote."""
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # [a&&b] may come to mean another
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise LogError(f"{text!r} is not a regular expression ({error})") from error


class Head(str):
    """The beginning of a log, with cached properties that several formats use."""

    @cached_property
    def start(self) -> str:
        return self.lstrip()

    @cached_property
    def lines(self) -> list[str]:
        """The lines that are not blank, without the last, which may be cut in the middle."""
        return [line for line in self.split("\n")[:-1] or [self] if line.strip()]

    @cached_property
    def table(self) -> tuple[str, list[str]]:
        """The most frequent delimiter of the first line, and its fields."""
        delimiter = max(DELIMITERS, key=self.start.split("\n", 1)[0].count)
        return delimiter, head_fields(self, delimiter)


def split_record(text: str, delimiter: str, *, quoting: int = csv.QUOTE_MINIMAL) -> tuple[int, list[str]]:
    """How many lines the first record of a text takes, and its fields."""
    if text and not any(mark in text for mark in '"\n\r'):
        return 1, text.split(delimiter)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
    try:
        fields = next(reader, [])
        return reader.line_num, fields
    except csv.Error:
        return 1, text.split(delimiter)


def head_fields(head: str, delimiter: str) -> list[str]:
    """The fields of a log's first line that is not blank."""
    return [field.strip() for field in split_record(head.lstrip().split("\n", 1)[0], delimiter)[1]]


class Format(ABC):
    """A log format: how to recognise it, and how to turn its lines into records."""

    name: ClassVar[str]
    description: ClassVar[str]
    rank: ClassVar[int] = 50  # formats of lower rank are asked first
    begins: ClassVar[str] = ""  # a pattern that its logs begin with, but for white space
    signs: ClassVar[tuple[str, ...]] = ()  # patterns that are all found in the first lines of its logs
    most_lines: ClassVar[str] = ""  # a pattern that at least half of the first lines begin with
    header: ClassVar[tuple[str, ...]] = ()  # columns that the first line names; `a|b` is either
    roles: ClassVar[tuple[str, ...]] = ()  # the columns that the user may choose
    uses: ClassVar[tuple[str, ...]] = ()  # the other options that mean something for it
    kind: ClassVar[str] = "probes"  # what a row is: a probe (or request), or one of the `jobs` of a batch system
    by_line: ClassVar[bool] = True  # whether lines that are appended can be read without those before them
    queue: ClassVar[bool] = False  # whether the latency is a wait in a queue, where resubmitting loses the place
    work: ClassVar[bool] = False  # whether it is the run time of work that a retry does again

    def check(self, options: ReadOptions) -> None:
        """Refuse options that would be ignored."""
        for role in options.columns:
            if role not in self.roles:
                raise LogError(f"{self.name} logs have their own {role}: --column {role}=… does not apply to them")
        for name in ("statuses", "unit", "time_format", "timezone", "year", "pattern"):
            if getattr(options, name) and name not in self.uses:
                flag = {"statuses": "status"}.get(name, name).replace("_", "-")
                raise LogError(f"--{flag} does not apply to {self.name} logs")

    def waits_in_queue(self, head: str) -> bool:
        """Whether the latencies of a log that begins with `head` contain waits in a queue."""
        return self.queue

    def recognises(self, head: Head) -> bool:
        """Whether a log that begins with `head` is in this format, by all declarations of the format and `sniff`."""
        some = head.lines[:SNIFFED_LINES]
        return (
            re.match(self.begins, head.start) is not None
            and all(re.search(sign, head, re.MULTILINE) for sign in self.signs)
            and all(not set(names.split("|")).isdisjoint(head.table[1]) for names in self.header)
            and (
                not self.most_lines or 2 * sum(bool(re.match(self.most_lines, line)) for line in some) >= len(some) > 0
            )
            and self.sniff(head)
        )

    def sniff(self, head: Head) -> bool:
        """What declarations cannot express; a format without declarations needs a `sniff` of its own."""
        return bool(self.begins or self.signs or self.most_lines or self.header)

    @abstractmethod
    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """The records of the log, in chunks."""

    def read_appended(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """The records of a log's head and of lines that were appended since, for `latfit watch`."""
        return self.read(source, options)


class InferredFormat(Format):
    """A format of named values: the user's options, or else names and cells, determine the roles of columns."""

    roles: ClassVar[tuple[str, ...]] = ROLES
    uses: ClassVar[tuple[str, ...]] = ("statuses", "unit", "time_format", "timezone")


FORMATS: dict[str, Format] = {}


def register(kind: type[Format]) -> type[Format]:
    """Class decorator: make a format known to the reader, the command line and the tests."""
    FORMATS[kind.name] = kind()
    return kind


def suggested_pattern(text: str) -> str | None:
    r"""The option that reads the durations in these lines of text; None if few lines hold one.

    The word before a duration, or the end of the line, identifies it; one that never varies does not count. A number
    without a unit keeps its name, from which its unit may be inferred.

    >>> suggested_pattern("job 1 took 12\njob 2 took 9\nidle\n")
    "--pattern 'took\\W+(?P<took>[0-9]+(?:\\.[0-9]+)?)'"
    """
    lines = [line[:1000].rstrip() for line in text.split("\n")]
    candidates: Counter[tuple[bool, str]] = Counter()
    for line in lines:
        for match in DURATION.finditer(line):
            word, link, spent = match.groups(default="")
            says_so = weigh("latency", split_name(word)[0])[0] > 0
            if weigh("other", split_name(word)[0])[0] > 0 and not says_so:  # an average, a limit, an uptime
                continue
            link = re.escape(link) if link in ("(", "[") else r"\W+in " if link.endswith("in ") else r"\W+"
            if spent and not word and match.end() == len(line):
                candidates[says_so, rf"\W(?P<latency>{SPENT})$"] += 1
            elif spent:
                candidates[says_so, rf"{word}{link}(?P<latency>{SPENT})\b"] += 1
            elif says_so:
                candidates[says_so, f"{word}{link}(?P<{word}>{NUMBER})"] += 1
    best, most = None, 1
    for (says_so, pattern), _ in candidates.most_common(30):  # free text has ever more of them
        values = [hit[1] for hit in (re.search(pattern, line) for line in lines) if hit]
        score = (3 if says_so else 1) * len(values)
        if len(set(values)) > 1 and score > most:
            best, most = f"--pattern '{pattern}'", score
    return best


def find_format(source: Source, name: str | None = None, *, pattern: str | None = None) -> Format:
    """The format called `name`, the one for a `pattern`, or the first that recognises the content."""
    name = name or ("pattern" if pattern else None)
    ordered = sorted(FORMATS.values(), key=lambda f: f.rank)
    if name is not None:
        if name not in FORMATS:
            raise UnknownFormat(f"{name!r} is not a log format; choose from {', '.join(f.name for f in ordered)}")
        return FORMATS[name]
    head = Head(source.text)
    for candidate in ordered:
        if candidate.recognises(head):
            return candidate
    advice = "; see `latfit formats`, or describe its lines with --pattern, for example 'took (?P<latency>[0-9.]+ms)'"
    if option := suggested_pattern(head):
        advice = f", but some of its first lines hold a duration; read those with: {option}"
    first = head.start.split("\n", 1)[0][:60]
    raise UnknownFormat(f"{source.name}: no format recognises this content (it begins {first!r}){advice}")
