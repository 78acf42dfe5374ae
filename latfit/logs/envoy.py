"""Envoy's access log, in its default text (Istio's too) or as JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import Parsed, absent, first_lines, floats, json_object, moments, plain_text, read_lines, told
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED

# [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
LINE = re.compile(
    r'\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<request>[^"]*)" (?P<response_code>\d+) (?P<response_flags>\S+) '
    r'(?:(?P<details>\S+) \S+ "[^"]*" )?(?P<received>\d+|-) (?P<sent>\d+|-) (?P<duration>\d+|-) (?P<rest>.*)'
)
BEGINS = re.compile(r"\[\d{4}-\d\d-\d\dT")
NAMES = ("start_time", "method", "path", "protocol", "response_code", "response_flags", "duration", "authority",
         "upstream_host")  # fmt: skip
JSON_NAMES = {"authority": ("authority", ":authority", "host"), "upstream_host": ("upstream_host", "upstream_cluster")}
QUOTED = re.compile(r'"([^"]*)"')
# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP = {"UT", "SI", "DT", "UMSDR", "DC"}
GROUPS = ("method", "path", "authority", "upstream_host")


@register
class Envoy(Format):
    """Latency is the duration, in ms.

    The outcome goes by the HTTP code; the flags UT, SI, DT, UMSDR (a timeout of Envoy's) and DC (the
    client went away) say that it was given up: censored.
    """

    name = "envoy"
    description = "Envoy or Istio access log, text or JSON lines; latency = duration"
    rank = 18
    uses = ("statuses", "timezone")

    def sniff(self, head: str) -> bool:
        """A line as Envoy writes it, or an object with a duration and Envoy's flags."""
        return any(isinstance(_parse(line), list) for line in first_lines(head, 20))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests and connections."""
        outcomes = HttpOutcomes(options, "outcomes by code and flags")
        note = told("duration in ms", "start_time", GROUPS)

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            records = _records(frame, line, options, outcomes)
            records.notes.append(note)
            return records

        yield from read_lines(source, NAMES, _parse, convert)
        yield outcomes.last()


def _parse(line: str) -> Parsed:
    """The fields of a request; other lines are Envoy's own messages."""
    if line.startswith("{"):
        return _parse_json(line)
    match = LINE.match(line)
    if match is None:
        return f"not a request as Envoy writes it: {line[:40]!r}" if BEGINS.match(line) and '" ' in line else None
    method, path, protocol = (*match["request"].split(" "), "-", "-", "-")[:3]
    quoted = QUOTED.findall(match["rest"])  # forwarded for, agent, request id, authority, upstream host
    authority, upstream = (*quoted[3:5], None, None)[:2] if len(quoted) > 3 else (None, None)
    path = path.split("?", 1)[0]
    code, flags, duration = match["response_code"], match["response_flags"], match["duration"]
    return [match["start_time"], method, path, protocol, code, flags, duration, authority, upstream]


def _parse_json(line: str) -> Parsed:
    value = json_object(line)
    if isinstance(value, str):
        return value
    if "response_flags" not in value or "duration" not in value:
        return None
    row = []
    for name in NAMES:
        keys = JSON_NAMES.get(name, (name,))
        row.append(plain_text(next((value[key] for key in keys if value.get(key) is not None), None)))
    row[2] = row[2].split("?", 1)[0] if row[2] else row[2]
    return row


def _records(frame: pd.DataFrame, line: NDArray[np.int64], options: ReadOptions, outcomes: HttpOutcomes) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    records.latency = floats(frame["duration"], "duration", records) / 1000
    flags = frame["response_flags"].fillna("-").replace("", "-")
    # a connection has no code; without flags it ended as it should
    plain = (
        (absent(frame["response_code"]) | (frame["response_code"] == "0")) & (flags == "-") & absent(frame["method"])
    )
    records.status = outcomes.statuses(frame["response_code"].mask(plain, "200"), records)
    gave_up = flags.map({word: bool(GAVE_UP & set(word.split(","))) for word in flags.unique()})
    records.status[gave_up.to_numpy(dtype=bool) & (records.status >= 0)] = CENSORED
    records.submitted = moments(frame["start_time"], "start_time", "iso", options.timezone, records)
    outcomes.add(frame["response_code"].fillna("none") + " " + flags, records)
    records.raw = frame
    records.extras = {name: frame[name] for name in GROUPS}
    return records
