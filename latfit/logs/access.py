"""Access logs of nginx and Apache that have a request time; the layout is found from the first lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import (
    ABSENT,
    APACHE_TIME,
    LineFormat,
    Parsed,
    absent,
    first_lines,
    moments,
    request_parts,
    seconds_before,
)
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.units import UNIT_WORDS, in_seconds

# a list such as `0.010, 0.020`, a quoted text (perhaps after `name=`), a time in brackets, a word
TOKEN = re.compile(r'[^\s",\[]+(?:(?:,| :) [^\s",\[]+)+|[\w.$]*[=:]?"(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|\S+')
TIME = re.compile(
    r"\[?(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*?)\]?", re.ASCII
)
REQUEST = re.compile(r'"[A-Z]{3,10} [^"\s]+ HTTP/[\d.]+" (?:\w+=)?\d{3}\b', re.ASCII)
NAMED = re.compile(r"([A-Za-z_]\w*)([=:])(.*)", re.DOTALL)
TIMES = (
    "request_time", "requesttime", "rt", "reqtime", "request_duration", "duration", "time_taken", "response_time",
    "responsetime", "resp_time", "total_time", "elapsed", "latency", "took", "upstream_response_time", "urt",
)  # fmt: skip
MILLISECONDS = re.compile(r"\d+\.\d{3}", re.ASCII)  # as nginx writes its times
DECIMALS = re.compile(r"\d+\.\d+", re.ASCII)
WHOLE = re.compile(r"\d+", re.ASCII)
CODE = re.compile(r"[1-5]\d\d", re.ASCII)
QUOTED = re.compile(r'".*"', re.DOTALL)
BOTH = re.compile(r"\d+/\d+", re.ASCII)  # Apache's %T/%D
SPENT = ("milliseconds", "decimals", "both")  # numbers that are parts of the latency, most likely
MOST = 0.8  # of the first lines must agree on what a field is
WHOLE_SHARE = 0.95
EPOCH_FROM = 5e8  # numbers of this size are points in time
A_MILLISECOND, A_TENTH = 1e3, 1e5  # in µs: what whole numbers must reach to be taken for µs


@dataclass(frozen=True)
class Layout:
    """The names of a line's fields, and which of them is the latency, in which unit."""

    names: tuple[str, ...]
    latency: str
    unit: str
    found: str  # in words, for the note
    time: str | None
    code: str | None
    at_end: bool  # the time in the line is that of the answer, as nginx writes it
    groups: tuple[str, ...]  # fields that are known before the answer


@register
class AccessLog(LineFormat):
    """Latency is the request time: a field by its name (`rt=0.123`), with decimals (nginx), or Apache's %D (µs)."""

    name = "access"
    description = "nginx or Apache access log with a request time"
    rank = 45
    roles = ("latency",)
    uses = ("statuses", "unit", "timezone")
    http = True
    layout: Layout

    def sniff(self, head: str) -> bool:
        """A quoted request and its code in one of the first lines, and a time."""
        if head.lstrip()[:1] in ("{", "["):
            return False
        return any(REQUEST.search(line) and TIME.search(line) for line in first_lines(head))

    def begin(self, source: Source) -> None:
        """The layout, by the first lines."""
        layout = self.layout = _layout(first_lines(source.text, 200), self.options, source.name)
        self.names, self.groups = layout.names, [*layout.groups, "method", "path"]
        self.latency_is, self.submitted_is = layout.found, "its time" if layout.time else "unknown"
        if layout.time and layout.at_end:
            self.submitted_is += ", less the latency (nginx writes the time of the answer)"
        self.not_probes = f"requests without {layout.latency}"

    def parse(self, line: str) -> Parsed:
        """The values of a line with as many fields as the layout has."""
        tokens = TOKEN.findall(line)
        if len(tokens) == len(self.names):
            return [_value(token) for token in tokens]
        return f"wrong number of fields: {len(tokens)} instead of {len(self.names)}" if TIME.search(line) else None

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Requests without a time."""
        return absent(frame[self.layout.latency])

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the code, where the layout has one."""
        layout = self.layout
        numbers = _numbers(frame[layout.latency])
        records.refuse(
            np.isnan(numbers), lambda row: f"unparseable {layout.latency}: {frame[layout.latency].iloc[row][:40]!r}"
        )
        records.latency = in_seconds(numbers, layout.unit)
        if layout.code is not None:
            records.status = self.tally.statuses(frame[layout.code], records)
        if layout.time is not None:
            written = frame[layout.time]
            style = "iso" if written.str.match(r"\d{4}-", na=False).any() else APACHE_TIME
            when = moments(written, "time", style, self.options.timezone, records)
            records.submitted = seconds_before(when, records.latency) if layout.at_end else when
        if layout.code is not None:
            self.tally.add(frame[layout.code], records)
        if "request" in frame:
            records.extras |= request_parts(frame["request"])


def _value(token: str) -> str:
    """What a field holds: without its name, quotes and brackets."""
    named = NAMED.fullmatch(token)
    if named and (named[2] == "=" or named[1].lower() in TIMES):
        token = named[3]
    quoted = len(token) > 1 and token[0] + token[-1] in ('""', "[]")
    return token[1:-1] if quoted else token


def _layout(lines: list[str], options: ReadOptions, log: str) -> Layout:
    """The layout that most of the first lines have."""
    rows = [TOKEN.findall(line) for line in lines if TIME.search(line)]
    if not rows:
        raise LogError(f"{log}: no line holds a time such as [29/Jun/2017:03:50:22 +0300]: this is no access log")
    width = Counter(map(len, rows)).most_common(1)[0][0]
    columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
    names, code = _names(columns)
    values = {name: [_value(token) for token in column] for name, column in zip(names, columns, strict=True)}
    time = "time" if "time" in names else None
    after = names[names.index(code) + 2 :] if code in names else names
    if wanted := options.columns.get("latency"):
        if wanted not in names:
            raise MissingColumn(f"{log}: there is no field {wanted!r}; there are: {listed(names)}")
        latency, kind = wanted, _kind(values[wanted])
    else:
        latency, kind = _find(values, after, log)
    unit = options.unit or _unit(latency, kind, values[latency], log)
    example = next((value for value in values[latency] if value not in ABSENT), "-")
    found = f"{latency} (field {names.index(latency) + 1} of {width}, such as {example[:20]}) in {unit}"
    at_end = kind == "milliseconds" and unit == "s"
    apart = {latency, time, code, "request", "bytes"}
    groups = tuple(name for name in names if name not in apart and _kind(values[name]) not in SPENT)
    return Layout(tuple(names), latency, unit, found, time, code, at_end, groups)


def _names(columns: list[tuple[str, ...]]) -> tuple[list[str], str | None]:
    """Names for the fields, and that of the HTTP code."""
    names = [f"field{at + 1}" for at in range(len(columns))]
    for at, column in enumerate(columns):
        if _mostly(TIME, column) and "time" not in names:
            names[at] = "time"
        elif (key := _shared_name(column)) and key not in names:
            names[at] = key
    for at in range(1, len(columns)):
        if _mostly(CODE, [_value(token) for token in columns[at]]) and _mostly(QUOTED, columns[at - 1]):
            usual = {at - 1: "request", at: "code", at + 1: "bytes"}
            quoted = [i for i in (at + 2, at + 3) if i < len(columns) and _mostly(QUOTED, columns[i])]
            usual |= dict(zip(quoted, ("referer", "agent"), strict=False))
            names = [usual.get(i, name) if name.startswith("field") else name for i, name in enumerate(names)]
            if names[0] == "field1":
                names[0] = "remote"
            return names, names[at]
    return names, "status" if "status" in names else None


def _mostly(pattern: re.Pattern[str], values: Sequence[str]) -> bool:
    """Whether a field is of a kind: a few lines may be damaged."""
    return bool(values) and sum(map(bool, map(pattern.fullmatch, values))) >= MOST * len(values)


def _shared_name(column: Sequence[str]) -> str | None:
    """The name that a field has in most lines, as in `rt=0.123`; with a colon only names of times are taken for one."""
    found = Counter(
        match[1]
        for token in column
        if (match := NAMED.fullmatch(token)) and (match[2] == "=" or match[1].lower() in TIMES)
    )
    name, count = found.most_common(1)[0] if found else ("", 0)
    return name if name and count >= MOST * len(column) else None


def _kind(values: list[str]) -> str | None:
    """What sort of numbers a field holds, where it holds any."""
    there = [value.split(",")[0] for value in values if value not in ABSENT]
    kinds = {"milliseconds": MILLISECONDS, "decimals": DECIMALS, "whole": WHOLE, "both": BOTH}
    return next((kind for kind, pattern in kinds.items() if _mostly(pattern, there)), None)


def _find(values: dict[str, list[str]], after: list[str], log: str) -> tuple[str, str | None]:
    """The field of the latency: by its name, else the longest with decimals, else the only whole number at the end."""
    kinds = {name: _kind(column) for name, column in values.items()}
    plain = {name: "_".join(w for w in name.lower().split("_") if w not in UNIT_WORDS) for name in values}
    for known in TIMES:
        for name in values:
            if plain[name] == known and kinds[name]:
                return name, kinds[name]
    for kind in ("milliseconds", "decimals"):
        spent = {name: _sum(values[name]) for name in values if kinds[name] == kind}
        spent = {name: total for name, total in spent.items() if total < EPOCH_FROM}
        if spent:
            # a server's part is no longer than the whole, but for the clock's steps; the whole is always there
            about = [name for name in spent if spent[name] >= WHOLE_SHARE * max(spent.values())]
            return min(about, key=lambda name: sum(value in ABSENT for value in values[name])), kind
    at_end = [name for name in after if kinds[name] in ("whole", "both") and name not in ("bytes", "code")]
    if len(at_end) == 1:
        return at_end[0], kinds[at_end[0]]
    if at_end:
        raise LogError(
            f"{log}: several whole numbers may be the request time: {listed(at_end)}; say which, and its unit, "
            f"for example --column latency={at_end[-1]} --unit us"
        )
    raise LogError(
        f"{log}: this access log has no request time; add one to its format (nginx: $request_time, Apache: %D), "
        f"or name the field: {listed(values)}"
    )


def _sum(values: list[str]) -> float:
    return sum(float(number[0]) for value in values if (number := DECIMALS.match(value)))


def _unit(name: str, kind: str | None, values: list[str], log: str) -> str:
    """The unit of the latency: by the field's name, seconds if it has decimals, µs if that is plausible."""
    by_name = UNIT_WORDS.get(name.lower().rsplit("_", 1)[-1]) if "_" in name else None
    if by_name or kind in ("milliseconds", "decimals"):
        return by_name or "s"
    if kind == "both":
        return "us"
    there = [float(value) for value in values if WHOLE.fullmatch(value)]
    if there and (np.median(there) >= A_MILLISECOND or max(there) >= A_TENTH):
        return "us"
    raise LogError(
        f"{log}: {name} holds whole numbers, and nothing says in which unit; "
        "give --unit us (Apache's %D), ms (%{ms}T) or s (%T)"
    )


def _numbers(column: pd.Series[str]) -> NDArray[np.float64]:
    """The numbers of a field; of `0.010, 0.020` (one for each server tried) the sum, of `0/12345` the second."""
    text = column.str.replace(r"^\d+/(?=\d+$)", "", regex=True)
    several = text.str.contains(r",| :", regex=True, na=False).to_numpy(dtype=bool)
    numbers = np.array(numeric(text.mask(several)))
    for row in np.flatnonzero(several).tolist():
        parts = pd.Series(re.split(r",| :", text.iloc[row])).str.strip().replace("-", "0")
        numbers[row] = numeric(parts).sum()
    return numbers
