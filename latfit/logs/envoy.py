"""Envoy's access log, in its default text (Istio's too) or as JSON lines."""

from __future__ import annotations

import re

import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, absent, json_object, plain_text
from latfit.logs.records import Records
from latfit.table import CENSORED

# [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
ENVOY_LINE = re.compile(
    r'\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<request>[^"]*)" (?P<response_code>\d+) (?P<response_flags>\S+) '
    r'(?:(?P<details>\S+) \S+ "[^"]*" )?(?P<received>\d+|-) (?P<sent>\d+|-) (?P<duration>\d+|-) (?P<rest>.*)'
)
JSON_NAMES = {"authority": ("authority", ":authority", "host"), "upstream_host": ("upstream_host", "upstream_cluster")}
# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP_FLAGS = {"UT", "SI", "DT", "UMSDR", "DC"}


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
    groups = ("method", "path", "authority", "upstream_host")
    names = ("start_time", "protocol", "response_code", "response_flags", "duration", *groups)
    measured, unit, time, time_style = "duration", "ms", "start_time", "iso"
    http = True
    outcomes = "outcomes by code and flags"
    sniffed = 20

    def parse(self, line: str) -> Parsed:
        """The fields of a request; other lines are Envoy's own messages."""
        if line.startswith("{"):
            return self._object(line)
        match = ENVOY_LINE.match(line)
        if match is None:
            is_request = re.match(r"\[\d{4}-\d\d-\d\dT", line) and '" ' in line
            return f"not a request as Envoy writes it: {line[:40]!r}" if is_request else None
        method, path, protocol = (*match["request"].split(" "), "-", "-", "-")[:3]
        # forwarded for, agent, request id, authority, upstream host
        *_, authority, upstream = (*re.findall(r'"([^"]*)"', match["rest"])[:5], None, None, None, None, None)[:5]
        start, code, flags, duration = match.group("start_time", "response_code", "response_flags", "duration")
        return [start, protocol, code, flags, duration, method, path.split("?", 1)[0], authority, upstream]

    def _object(self, line: str) -> Parsed:
        value = json_object(line)
        if isinstance(value, str):
            return value
        if "response_flags" not in value or "duration" not in value:
            return None
        row = {}
        for name in self.names:
            keys = JSON_NAMES.get(name, (name,))
            row[name] = plain_text(next((value[key] for key in keys if value.get(key) is not None), None))
        row["path"] = row["path"] and row["path"].split("?", 1)[0]
        return list(row.values())

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        flags, code = frame["response_flags"].fillna("-").replace("", "-"), frame["response_code"]
        # a connection has no code; without flags it ended as it should
        plain = (absent(code) | (code == "0")) & (flags == "-") & absent(frame["method"])
        records.status = self.tally.statuses(code.mask(plain, "200"), records)
        gave_up = flags.map({word: bool(GAVE_UP_FLAGS & set(word.split(","))) for word in flags.unique()})
        records.status[gave_up.to_numpy(dtype=bool) & (records.status >= 0)] = CENSORED
        self.tally.add(code.fillna("none") + " " + flags, records)
