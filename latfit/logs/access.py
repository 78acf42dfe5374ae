"""Access logs of web servers: nginx and Apache with a request time, IIS and CloudFront (W3C extended)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Head, register
from latfit.logs.lines import APACHE_TIME, EPOCH_FROM, LineFormat, Row, chosen
from latfit.logs.source import Source
from latfit.logs.vocabulary import NOTHING, is_blank
from latfit.numbers import Bools
from latfit.units import UNIT_WORDS, in_seconds

# a list such as `0.010, 0.020`, a quoted text (perhaps after `name=`), a time in brackets, a word
TOKEN = re.compile(r'[^\s",\[]+(?:(?:,| :) [^\s",\[]+)+|[\w.$]*[=:]?"(?:[^"\\]|\\.)*"|\[[^\[\]]*\]|\S+')
ACCESS_TIME = r"\[?(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*?)\]?"
REQUEST = r'"[A-Z]{3,10} [^"\s]+ HTTP/[\d.]+" (?:\w+=)?\d{3}\b'
NAMED = re.compile(r"([A-Za-z_]\w*)([=:])(.*)", re.DOTALL)
TIMES = (
    "request_time requesttime rt reqtime request_duration duration time_taken response_time responsetime resp_time "
    "total_time elapsed latency took upstream_response_time urt"
).split()
# as nginx writes its times, with decimals, whole, Apache's %T/%D
NUMBERS = {"milliseconds": r"\d+\.\d{3}", "decimals": r"\d+\.\d+", "whole": r"\d+", "both": r"\d+/\d+"}
A_MILLISECOND, A_TENTH = 1e3, 1e5  # in µs: what whole numbers must reach to be taken for µs
W3C_NEEDED = {"date", "time", "sc-status"}
# outcomes, times, and ids of requests
NO_COLUMN = re.compile(r"sc-(?:status|substatus|win32-status)$|time|date$|x-edge-.*(?:result|request)")


@register
class AccessLog(LineFormat):
    """Latency is the request time: a field by its name (`rt=0.123`), with decimals (nginx), or Apache's %D (µs)."""

    name = "access"
    description = "nginx or Apache access log with a request time"
    rank = 45
    roles = ("latency",)
    uses = ("statuses", "unit", "timezone")
    others = "lines without a request"
    begins = rf"(?a)(?!{{|\[\s*{{)(?:.*\n){{0,49}}?(?=.*{ACCESS_TIME}).*{REQUEST}"

    def begin(self, source: Source) -> None:
        log = source.name
        lines = Head(source.text).lines[:200]
        rows = [TOKEN.findall(line) for line in lines if re.search(ACCESS_TIME, line, re.ASCII)]
        if not rows:
            raise LogError(f"{log}: no line holds a time such as [29/Jun/2017:03:50:22 +0300]: this is no access log")
        width = Counter(map(len, rows)).most_common(1)[0][0]
        columns = list(zip(*(row for row in rows if len(row) == width), strict=True))
        names, code = _names(columns)
        values = {name: [_value(token) for token in column] for name, column in zip(names, columns, strict=True)}
        kinds = {name: _number_kind(cells) for name, cells in values.items()}
        after = names[names.index(code) + 2 :] if code else names
        usual = "" if "latency" in self.options.columns else _find(values, kinds, after, log)
        measured = chosen("latency", self.options, usual, names, log)
        self.unit = self.options.unit or _unit(measured, kinds[measured], values[measured], log)
        example = next((value for value in values[measured] if value not in NOTHING), "-")
        place = f"field {names.index(measured) + 1} of {width}, such as {example[:20]}"
        self.names, self.latency_is = names, f"{measured} ({place}) in {self.unit}"
        self.not_probes = f"requests without {measured}"
        time = "time" if "time" in names else ""
        self.columns = {"latency": measured, **({"status": code} if code else {})} | (
            {"submitted": time} if time else {}
        )
        if time:
            self.time_style = "iso" if any(re.match(r"\d{4}-", cell) for cell in values["time"]) else APACHE_TIME
            self.at_end = kinds[measured] == "milliseconds" and self.unit == "s"  # nginx writes the time of the answer
        # all fields that are not parts of the latency
        apart = {measured, time, code, "request"}
        known = [name for name in names if name not in apart and kinds[name] in (None, "whole")]
        self.groups = [*known, "method", "path"]

    def row(self, line: str) -> list[str] | str | None:
        tokens = TOKEN.findall(line)
        if len(tokens) == len(self.names):
            return [_value(token) for token in tokens]
        wrong = f"wrong number of fields: {len(tokens)} instead of {len(self.names)}"
        return wrong if re.search(ACCESS_TIME, line, re.ASCII) else None

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return is_blank(frame[self.columns["latency"]], NOTHING)

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Of `0.010, 0.020` (one for each server tried) the latency is the sum, of `0/12345` the second."""
        measured = self.columns["latency"]
        text = frame[measured].str.replace(r"^\d+/(?=\d+$)", "", regex=True)
        several = text.str.contains(r",| :", regex=True, na=False)
        text[several] = text[several].map(_sum_of_parts)
        frame[measured] = text
        if "request" in frame:
            request = frame["request"].str.extract(r"^(?P<method>\S+) (?P<path>[^\s?]+)")  # without its query
            frame = frame.assign(method=request["method"], path=request["path"])
        return frame


def _sum_of_parts(text: str) -> str:
    try:
        return str(sum(0.0 if part.strip() == "-" else float(part) for part in re.split(r",| :", text)))
    except ValueError:
        return text


def _value(token: str) -> str:
    named = NAMED.fullmatch(token)
    if named and (named[2] == "=" or named[1].lower() in TIMES):
        token = named[3]
    quoted = len(token) > 1 and token[0] + token[-1] in ('""', "[]")
    return token[1:-1] if quoted else token


def _names(columns: list[tuple[str, ...]]) -> tuple[list[str], str]:
    names = [f"field{at + 1}" for at in range(len(columns))]
    for at, column in enumerate(columns):
        if _mostly(ACCESS_TIME, column) and "time" not in names:
            names[at] = "time"
        elif (key := _shared_name(column)) and key not in names:
            names[at] = key
    for at in range(1, len(columns)):
        if _mostly(r"[1-5]\d\d", [_value(token) for token in columns[at]]) and _mostly('".*"', columns[at - 1]):
            usual = {0: "remote", at - 1: "request", at: "code", at + 1: "bytes"}
            quoted = [i for i in (at + 2, at + 3) if i < len(columns) and _mostly('".*"', columns[i])]
            usual |= dict(zip(quoted, ("referer", "agent"), strict=False))
            names = [usual.get(i, name) if name.startswith("field") else name for i, name in enumerate(names)]
            return names, names[at]
    return names, "status" if "status" in names else ""


def _mostly(pattern: str, values: Sequence[str]) -> bool:
    """Whether a field is of a kind in most lines: a few may be damaged."""
    matches = sum(re.fullmatch(pattern, value, re.ASCII | re.DOTALL) is not None for value in values)
    return bool(values) and matches >= 0.8 * len(values)


def _shared_name(column: Sequence[str]) -> str:
    """The name that a field has in most lines, as in `rt=0.123`; with a colon only names of times are taken for one."""
    matches = filter(None, map(NAMED.fullmatch, column))
    names = Counter(match[1] for match in matches if match[2] == "=" or match[1].lower() in TIMES)
    name, count = names.most_common(1)[0] if names else ("", 0)
    return name if count >= 0.8 * len(column) else ""


def _number_kind(values: list[str]) -> str | None:
    there = [value.split(",")[0] for value in values if value not in NOTHING]
    return next((kind for kind, pattern in NUMBERS.items() if _mostly(pattern, there)), None)


def _find(values: dict[str, list[str]], kinds: dict[str, str | None], after: list[str], log: str) -> str:
    """The field of the latency: by its name, else the longest with decimals, else the only whole number at the end."""
    for word in TIMES:
        for name in filter(kinds.get, values):
            if "_".join(part for part in name.lower().split("_") if part not in UNIT_WORDS) == word:
                return name
    for kind in ("milliseconds", "decimals"):
        spent = {name: _sum(values[name]) for name in values if kinds[name] == kind}
        spent = {name: total for name, total in spent.items() if total < EPOCH_FROM}
        if spent:
            # the whole is always there, and no shorter than a server's part of it, but for the clock's steps
            missing = {name: sum(value in NOTHING for value in values[name]) for name in spent}
            always = [name for name in spent if missing[name] == min(missing.values())]
            return next(name for name in always if spent[name] >= 0.95 * max(spent[each] for each in always))
    at_end = [name for name in after if kinds[name] in ("whole", "both") and name not in ("bytes", "code")]
    if len(at_end) == 1:
        return at_end[0]
    if at_end:
        raise LogError(
            f"{log}: several whole numbers may be the request time: {listed(at_end)}; choose one, and its unit, "
            f"for example --column latency={at_end[-1]} --unit us"
        )
    raise LogError(
        f"{log}: this access log has no request time; add one to its format (nginx: $request_time, Apache: %D), "
        f"or name the field: {listed(values)}"
    )


def _sum(values: list[str]) -> float:
    return sum(float(number[0]) for value in values if (number := re.match(NUMBERS["decimals"], value, re.ASCII)))


def _unit(name: str, kind: str | None, values: list[str], log: str) -> str:
    """The unit of the latency: by the field's name, seconds if it has decimals, µs if that is plausible."""
    by_name = UNIT_WORDS.get(name.lower().rsplit("_", 1)[-1]) if "_" in name else None
    if by_name or kind in ("milliseconds", "decimals"):
        return by_name or "s"
    there = [float(value) for value in values if re.fullmatch(r"\d+", value, re.ASCII)]
    if kind == "both" or (there and (np.median(there) >= A_MILLISECOND or max(there) >= A_TENTH)):
        return "us"
    raise LogError(
        f"{log}: {name} holds whole numbers, and the log does not say in which unit; "
        "give --unit us (Apache's %D), ms (%{ms}T) or s (%T)"
    )


@register
class W3c(LineFormat):
    """Latency is `time-taken`: in ms where whole (IIS), in s with decimals (CloudFront); times are of the answer."""

    name = "w3c"
    description = "IIS or CloudFront (W3C extended) log; latency = time-taken"
    rank = 16
    roles = ("latency",)
    uses = ("statuses", "unit", "timezone")
    others = "directives"
    at_end = True
    begins, signs = "#", (r"^#Fields:(?=.*\sdate(?!\S))(?=.*\stime(?!\S)).*\ssc-status(?!\S)",)

    def begin(self, source: Source) -> None:
        self.fields: list[str] = []
        self.measured, self.written_in = self.options.columns.get("latency", "time-taken"), self.options.unit
        self.unit = "s"  # into which rows are converted

    def row(self, line: str) -> Row | str | None:
        if line.startswith("#"):
            if line.startswith("#Fields:"):
                self._set_names(line.removeprefix("#Fields:").split())
            return None
        row = line.split("\t" if "\t" in line else " ")
        if len(row) != len(self.fields):
            return f"wrong number of fields: {len(row)} instead of {len(self.fields)}"
        cells = dict(zip(self.fields, row, strict=True))
        taken = cells.pop(self.measured)
        if not re.fullmatch(r"\d+(\.\d+)?", taken, re.ASCII):
            return "no latency" if taken in NOTHING else f"unparseable {self.measured}: {taken[:40]!r}"
        self.written_in = self.written_in or ("s" if "." in taken else "ms")
        spent = {"latency": in_seconds(float(taken), self.written_in), "status": cells["sc-status"]}
        groups = {name: cell for name, cell in cells.items() if not NO_COLUMN.match(name) and cell not in NOTHING}
        return {"submitted": f"{cells['date']}T{cells['time']}", **spent, **groups}

    def _set_names(self, names: list[str]) -> None:
        if len(set(names)) < len(names) or not set(names) >= W3C_NEEDED:
            raise LogError(f"#Fields must name date, time and sc-status once; it has: {listed(names)}")
        if self.measured not in names:
            raise MissingColumn(f"the log has no {self.measured}: choose that field in the server's logging")
        self.fields = names
