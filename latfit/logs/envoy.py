"""Envoy's access log, in its default text (Istio's too) or as JSON lines."""

from __future__ import annotations

import re

import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, absent, floats, json_object, moments, plain_text
from latfit.logs.records import Records
from latfit.table import CENSORED

# [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
LINE = re.compile(
    r'\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<request>[^"]*)" (?P<response_code>\d+) (?P<response_flags>\S+) '
    r'(?:(?P<details>\S+) \S+ "[^"]*" )?(?P<received>\d+|-) (?P<sent>\d+|-) (?P<duration>\d+|-) (?P<rest>.*)'
)
BEGINS = re.compile(r"\[\d{4}-\d\d-\d\dT")
JSON_NAMES = {"authority": ("authority", ":authority", "host"), "upstream_host": ("upstream_host", "upstream_cluster")}
QUOTED = re.compile(r'"([^"]*)"')
# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP = {"UT", "SI", "DT", "UMSDR", "DC"}


@register
class Envoy(LineFormat):
    """Latency is the duration, in ms.

    The outcome goes by the HTTP code; the flags UT, SI, DT, UMSDR (a timeout of Envoy's) and DC (the
    client went away) say that it was given up: censored.
    """

    name = "envoy"
    description = "Envoy or Istio access log, text or JSON lines; latency = duration"
    rank = 18
    uses = ("statuses", "timezone")
    names = (
        "start_time",
        "method",
        "path",
        "protocol",
        "response_code",
        "response_flags",
        "duration",
        "authority",
        "upstream_host",
    )
    groups = ("method", "path", "authority", "upstream_host")
    http = True
    outcomes = "outcomes by code and flags"
    latency_is, submitted_is = "duration in ms", "start_time"
    sniffed = 20

    def parse(self, line: str) -> Parsed:
        """The fields of a request; other lines are Envoy's own messages."""
        if line.startswith("{"):
            return self._object(line)
        match = LINE.match(line)
        if match is None:
            return f"not a request as Envoy writes it: {line[:40]!r}" if BEGINS.match(line) and '" ' in line else None
        method, path, protocol = (*match["request"].split(" "), "-", "-", "-")[:3]
        quoted = QUOTED.findall(match["rest"])  # forwarded for, agent, request id, authority, upstream host
        authority, upstream = (*quoted[3:5], None, None)[:2] if len(quoted) > 3 else (None, None)
        path = path.split("?", 1)[0]
        code, flags, duration = match["response_code"], match["response_flags"], match["duration"]
        return [match["start_time"], method, path, protocol, code, flags, duration, authority, upstream]

    def _object(self, line: str) -> Parsed:
        value = json_object(line)
        if isinstance(value, str):
            return value
        if "response_flags" not in value or "duration" not in value:
            return None
        row = []
        for name in self.names:
            keys = JSON_NAMES.get(name, (name,))
            row.append(plain_text(next((value[key] for key in keys if value.get(key) is not None), None)))
        row[2] = row[2].split("?", 1)[0] if row[2] else row[2]
        return row

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By code and flags."""
        records.latency = floats(frame["duration"], "duration", records) / 1000
        flags = frame["response_flags"].fillna("-").replace("", "-")
        # a connection has no code; without flags it ended as it should
        plain = (
            (absent(frame["response_code"]) | (frame["response_code"] == "0"))
            & (flags == "-")
            & absent(frame["method"])
        )
        records.status = self.tally.statuses(frame["response_code"].mask(plain, "200"), records)
        gave_up = flags.map({word: bool(GAVE_UP & set(word.split(","))) for word in flags.unique()})
        records.status[gave_up.to_numpy(dtype=bool) & (records.status >= 0)] = CENSORED
        records.submitted = moments(frame["start_time"], "start_time", "iso", self.options.timezone, records)
        self.tally.add(frame["response_code"].fillna("none") + " " + flags, records)
