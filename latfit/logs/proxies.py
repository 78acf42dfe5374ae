"""Access logs of proxies: Caddy, Traefik, Squid, Envoy (Istio's too) and HAProxy."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, floats, moments, request_parts
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, cells_at, json_line
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED, FAILED

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
    others = "lines that are not requests which a handler took"
    at_end = True
    paths = (
        "latency=duration submitted=ts status method=request.method host=request.host path=request.uri "
        "protocol=request.proto server=logger bytes=size"
    )

    def row(self, line: str) -> Row | str | None:
        """An object, or a time, a level, a logger, a message and an object with tabs between them."""
        before, _, entry = line.rpartition("\t")
        row = super().row(entry)
        if not isinstance(row, dict) or None in (row["status"], row["method"]):
            return None
        if row["status"] == 0:
            if '"msg":"NOP"' in entry or before.endswith("NOP"):  # no handler took it
                return None
            row["status"] = "cancelled"  # the client went away before there was a code
        return {**row, "submitted": before.split("\t")[0]} if before else row


@register
class Traefik(RowFormat):
    """Latency is `Duration`, in nanoseconds. Code 499: the client gave up."""

    name = "traefik"
    description = "Traefik access log (JSON); latency = Duration"
    rank = 26
    unit = "ns"
    signs = ('"DownstreamStatus":',)
    paths = (
        "latency=Duration submitted=StartUTC status=DownstreamStatus method=RequestMethod path=RequestPath "
        "router=RouterName service=ServiceName"
    )


@register
class Squid(RowFormat):
    """Latency is the elapsed time in ms; requests are logged when they end. ABORTED: the client gave up."""

    name = "squid"
    description = "Squid access log (native); latency = elapsed"
    rank = 27
    unit = "ms"
    at_end = True
    # 1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://a.org/ - DIRECT/10.0.0.1 text/plain
    line = re.compile(
        r"(?P<submitted>\d{9,11}\.\d{3}) +(?P<latency>-?\d+) (?P<client>\S+) (?P<result>[A-Z_]+)/(?P<status>\d{3}) "
        r"(?P<bytes>\d+) (?P<method>[A-Z_]+) (?P<url>\S+) \S+ (?P<peer>[A-Z_]+)/\S+ (?P<type>\S+)"
    )

    def row(self, line: str) -> Row | str | None:
        row = super().row(line)
        return {**row, "status": "cancelled"} if isinstance(row, dict) and "ABORTED" in row["result"] else row


@register
class Envoy(RowFormat):
    """Latency is the duration, in ms.

    The outcome goes by the HTTP code; the flags UT, SI, DT, UMSDR (a timeout of Envoy's) and DC (the
    client went away) say that it was given up: censored.
    """

    name = "envoy"
    description = "Envoy or Istio access log, text or JSON lines; latency = duration"
    rank = 18
    unit = "ms"
    others = "lines that are not requests"
    # [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
    # … "forwarded for" "agent" "request id" "authority" "upstream host"
    line = re.compile(
        r'\[(?P<submitted>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<method>[^" ]*) ?(?P<path>[^" ]*)[^"]*" (?P<status>\d+) '
        r'(?P<flags>\S+) (?:\S+ \S+ "[^"]*" )?(?:\d+|-) (?:\d+|-) (?P<latency>\d+|-) [^"]*'
        r'(?:(?:"[^"]*" ){3}"(?P<authority>[^"]*)" "(?P<upstream_host>[^"]*)")?'
    )
    signs = (r'^\[\d{4}-\d\d-\d\dT[^\]\s]+\] "[^"]*" \d{1,3} [-A-Z,]+ |^\{.*"response_flags"\s*:',)
    paths = (
        "latency=duration submitted=start_time status=response_code flags=response_flags method path authority "
        "upstream_host"
    )

    def row(self, line: str) -> Row | str | None:
        entry = json_line(line)
        row = super().row(line) if entry is None else cells_at(entry, self.paths)
        if not isinstance(row, dict):
            is_request = re.match(r'\[\d{4}-\d\d-\d\dT.*" ', line)
            return f"not a request as Envoy writes it: {line[:40]!r}" if is_request else None
        flags = str(row.pop("flags") or "-")
        if GAVE_UP_FLAGS & set(flags.split(",")):
            row["status"] = "censored"
        elif str(row["status"]) in ("None", "0", "-"):  # a connection has no code; without flags it ended as it should
            row["status"] = "completed" if flags == "-" and row["method"] in (None, "", "-") else "failed"
        return row


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
