"""Access logs of proxies: Caddy, Traefik, Squid, Envoy (Istio's too) and HAProxy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import (
    LineFormat,
    Parsed,
    absent,
    chosen,
    floats,
    json_object,
    moments,
    plain_text,
    request_parts,
)
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, epoch, json_line, plain_path, sent_at
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED, FAILED

SQUID_LINE = re.compile(
    r"(?P<ended>\d{9,11}\.\d{3}) +(?P<latency>-?\d+) (?P<client>\S+) (?P<result>[A-Z_]+)/(?P<code>\d{3}) "
    r"(?P<bytes>\d+) (?P<method>[A-Z_]+) (?P<url>\S+) \S+ (?P<peer>[A-Z_]+)/\S+ (?P<type>\S+)"
)
# [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
ENVOY_LINE = re.compile(
    r'\[(?P<start_time>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<request>[^"]*)" (?P<response_code>\d+) (?P<response_flags>\S+) '
    r'(?:(?P<details>\S+) \S+ "[^"]*" )?(?P<received>\d+|-) (?P<sent>\d+|-) (?P<duration>\d+|-) (?P<rest>.*)'
)
JSON_NAMES = {"authority": ("authority", ":authority", "host"), "upstream_host": ("upstream_host", "upstream_cluster")}
# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP_FLAGS = {"UT", "SI", "DT", "UMSDR", "DC"}
WHEN = re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d+)?)\] ", re.ASCII)
HAPROXY_LINE = re.compile(
    r"(?P<frontend>\S+) (?P<backend>[^\s/]+)/(?P<server>\S+) (?P<timers>[-+]?\d+(?:/[-+]?\d+){2,4}) "
    r"(?:(?P<code>-1|\d{3}) )?\+?(?P<bytes>\d+) (?:\S+ \S+ )?(?P<state>[-A-Za-z]{2}(?:..)?) "
    r"(?P<actconn>[\d+]+(?:/[\d+]+){4}) (?P<queues>\d+/\d+)(?P<rest>.*)",
    re.ASCII,
)
TIMERS = {5: ("Tq", "Tw", "Tc", "Tr", "Tt"), 3: ("Tw", "Tc", "Tt")}


@register
class Caddy(RowFormat):
    """Latency is `duration`, in seconds; requests are logged when they end."""

    name = "caddy"
    description = "Caddy access log (JSON or console); latency = duration"
    rank = 26

    def row(self, line: str) -> Row | None:
        """An object, or a time, a level, a logger, a message and an object with tabs between them."""
        entry = json_line(line)
        moment = entry and entry.get("ts")
        if entry is None and line.endswith("}") and "\t" in line:
            moment, *rest = line.split("\t")
            entry = json_line(rest[-1])
        if entry is None or not isinstance(entry.get("request"), dict) or "status" not in entry:
            return None
        latency, request = entry.get("duration"), entry["request"]
        if not isinstance(latency, (int, float)):
            return None
        groups = {"method": request.get("method"), "host": request.get("host"), "path": plain_path(request.get("uri"))}
        answer = {"bytes": entry.get("size"), "protocol": request.get("proto"), "server": entry.get("logger")}
        submitted = sent_at(epoch(moment), latency)
        return {"latency": latency, "submitted": submitted, "status": entry["status"], **groups, **answer}


@register
class Traefik(RowFormat):
    """Latency is `Duration`, in nanoseconds. Code 499: the client gave up."""

    name = "traefik"
    description = "Traefik access log (JSON); latency = Duration"
    rank = 26
    unit = "ns"

    def row(self, line: str) -> Row | None:
        entry = json_line(line)
        if entry is None or not {"Duration", "DownstreamStatus"} <= entry.keys():
            return None
        cells = {"latency": entry["Duration"], "submitted": entry.get("StartUTC"), "status": entry["DownstreamStatus"]}
        groups = {"router": entry.get("RouterName"), "service": entry.get("ServiceName")}
        path = plain_path(entry.get("RequestPath"))
        return {**cells, "method": entry.get("RequestMethod"), "path": path, **groups}


@register
class Squid(RowFormat):
    """Latency is the elapsed time in ms; requests are logged when they end. ABORTED: the client gave up."""

    name = "squid"
    description = "Squid access log (native); latency = elapsed"
    rank = 27
    unit = "ms"

    def row(self, line: str) -> Row | None:
        """`1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://a.org/ - DIRECT/10.0.0.1 text/plain`."""
        match = SQUID_LINE.match(line)
        if match is None:
            return None
        fields = match.groupdict()
        ended, latency, code, url = (fields.pop(name) for name in ("ended", "latency", "code", "url"))
        status = "cancelled" if "ABORTED" in fields["result"] else code
        submitted = sent_at(float(ended), max(0, int(latency)) / 1e3)
        return {"latency": latency, "submitted": submitted, "status": status, "url": plain_path(url), **fields}


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


@register
class HaProxy(LineFormat):
    """Latency is the total time Tt (`--column latency=Tr`: until the answer's headers), in ms.

    The termination state says who ended it: nothing (`--`) leaves it to the HTTP code; a timeout
    (`sH`, `cD`) or a client that went away (`CD`) is censored at Tt; any other (`SC`, `PH`) failed.
    """

    name = "haproxy"
    description = "HAProxy HTTP or TCP log; latency = Tt (or --column latency=Tr)"
    rank = 22
    roles = ("latency",)
    uses = ("statuses", "timezone")
    names = ("client", "when", "frontend", "backend", "server", "code", "state", "request", *TIMERS[5])
    groups = ("frontend", "backend", "server", "client", "method", "path")
    unit, submitted_is = "ms", "the accept date"
    http = True
    outcomes = "outcomes by code and termination state"
    not_probes = "requests that were never sent to a server (termination state CR, PR, …)"

    def begin(self, source: Source) -> None:
        self.measured = chosen("latency", self.options, "Tt", TIMERS[5], source.name)

    def parse(self, line: str) -> Parsed:
        when = WHEN.search(line)
        if when is None:
            return None
        match = HAPROXY_LINE.match(line, when.end())
        if match is None:
            return f"not a request as HAProxy writes it: {line[when.end() : when.end() + 40]!r}"
        timers = match["timers"].split("/")
        if len(timers) not in TIMERS:
            return f"wrong number of timers: {match['timers'][:40]!r}"
        times = dict(zip(TIMERS[len(timers)], timers, strict=True))
        request = match["rest"].partition('"')[2] if '"' in match["rest"] else None
        client = line[: when.start()].rstrip().rsplit(" ", 1)[-1].rsplit(":", 1)[0]
        fields = match.group("frontend", "backend", "server", "code", "state")
        return [client, when[1], *fields, request, *map(times.get, TIMERS[5])]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        """Requests that never were complete (R), or were kept from every server (T), by the state's second letter."""
        return frame["state"].str[1].isin(("R", "T")).to_numpy()

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        total, part = (floats(frame[name], name, records) / 1000 for name in ("Tt", self.measured))
        reached = part >= 0 if self.measured != "Tt" else np.zeros(total.size, dtype=bool)
        records.latency = np.where(reached, part, total)  # −1: it never got there, and it was over at Tt
        records.refuse(records.latency < 0, "no latency: Tt is -1")
        records.refuse(np.isnan(part), f"no latency: connections have no {self.measured}")
        has_code = frame["code"].notna().to_numpy()
        records.status[has_code] = self.tally.statuses(frame["code"].where(has_code, "200"), records)[has_code]
        who = frame["state"].str[0]
        cut = ~reached & ~who.isin(("-", "L")).to_numpy()  # not: nothing special, or answered by HAProxy itself
        gave_up = who.isin(("c", "C", "s")).to_numpy()  # a timeout, or the client's end
        records.status[cut & gave_up] = CENSORED
        records.status[cut & ~gave_up] = FAILED
        fraction = ".%f" if frame["when"].str.contains(".", regex=False).any() else ""
        style = f"%d/%b/%Y:%H:%M:%S{fraction}"
        records.submitted = moments(frame["when"], "accept date", style, self.options.timezone, records)
        self.tally.add(frame["code"].fillna("TCP") + " " + frame["state"], records)
        records.extras |= request_parts(frame["request"])
