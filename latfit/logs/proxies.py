"""Access logs of proxies: Caddy, Traefik, Squid, Envoy (Istio's too) and HAProxy."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import APACHE_TIME, chosen
from latfit.logs.rows import Row, RowFormat, cells_at, json_line

# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP_FLAGS = {"UT", "SI", "DT", "UMSDR", "DC"}
HAPROXY_TIME = r"\[(?P<submitted>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] "
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
    """Latency is `Duration`, in nanoseconds, or the milliseconds at the end of a line. Code 499: the client gave up."""

    name = "traefik"
    description = "Traefik access log (JSON or common); latency = Duration"
    rank = 26
    unit = "ns"
    signs = (r'"DownstreamStatus":|" \d+ms$',)
    paths = (
        "latency=Duration submitted=StartUTC status=DownstreamStatus method=RequestMethod path=RequestPath "
        "router=RouterName service=ServiceName"
    )
    # 10.0.0.1 - - [02/Mar/2026:06:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" 7 "router" "http://10.0.0.2" 12ms
    line = re.compile(
        r'\S+ - \S+ \[(?P<submitted>[^\]]+)\] "(?P<method>\S+) (?P<path>\S+)[^"]*" (?P<status>\d{3}) \S+ '
        r'(?:"[^"]*" ){2}\d+ "(?P<router>[^"]*)" "(?P<service>[^"]*)" (?P<latency>\d+)ms$'
    )

    def row(self, line: str) -> Row | str | None:
        entry = json_line(line)
        row = super().row(line) if entry is None else cells_at(entry, self.paths)
        if not isinstance(row, dict) or entry is not None:
            return row if isinstance(row, dict) and row["status"] is not None else None
        try:
            when = datetime.strptime(row["submitted"], APACHE_TIME).timestamp()
        except ValueError:
            return f"unparseable time: {row['submitted'][:40]!r}"
        return {**row, "submitted": when, "latency": int(row["latency"]) * 1_000_000}


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
        gave_up = isinstance(row, dict) and re.search("ABORTED|TIMEDOUT", row["result"])
        return {**row, "status": "censored"} if isinstance(row, dict) and gave_up else row


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
class HaProxy(RowFormat):
    """Latency is the total time Tt (`--column latency=Tr`: until the answer's headers), in ms.

    The termination state says who ended it: nothing (`--`) leaves it to the HTTP code; a timeout
    (`sH`, `cD`) or a client that went away (`CD`) is censored at Tt; any other (`SC`, `PH`) failed.
    """

    name = "haproxy"
    description = "HAProxy HTTP or TCP log (or --column latency=Tr); latency = Tt"
    rank = 22
    unit = "ms"
    roles = ("latency",)
    others = "lines that are not requests sent to a server (or with termination state CR, PR, …)"
    signs = (HAPROXY_TIME + r"\S+ [^\s/]+/\S+ [-+]?\d+/",)
    line = re.compile(
        rf"(?:.* )?(?P<client>\S+):\S+ {HAPROXY_TIME}(?P<frontend>\S+) (?P<backend>[^\s/]+)/(?P<server>\S+) "
        r"(?P<timers>[-+]?\d+(?:/[-+]?\d+){2,4}) (?:(?P<status>-1|\d{3}) )?\+?\d+ (?:\S+ \S+ )?"
        r'(?P<state>[-A-Za-z]{2})\S* [\d+]+(?:/[\d+]+){4} \d+/\d+(?:[^"]*"(?P<method>\S+) (?P<path>[^\s"]+))?',
        re.ASCII,
    )

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        measured = chosen("latency", options, "Tt", TIMERS[5], "HAProxy's timers")

        def read(line: str) -> Row | str | None:
            row = self.row(line)
            if not isinstance(row, dict):
                is_request = re.search(HAPROXY_TIME, line)
                return f"not a request as HAProxy writes it: {line[:60]!r}" if is_request else None
            who, where = row.pop("state")
            if where in "RT":  # it never was complete, or was kept from every server
                return None
            timers = [int(timer) for timer in row.pop("timers").split("/")]
            times = dict(zip(TIMERS.get(len(timers), ()), timers, strict=False))
            if measured not in times:
                return f"no latency: connections have no {measured}"
            reached = measured != "Tt" and times[measured] >= 0  # else −1: it never got there, and was over at Tt
            if not reached and who not in "-L":  # nothing special, or answered by HAProxy itself
                row["status"] = "censored" if who in "cCs" else "failed"
            elif row["status"] in (None, "-1"):
                row["status"] = "failed" if row["status"] else "completed"
            when = datetime.strptime(row["submitted"], "%d/%b/%Y:%H:%M:%S.%f").isoformat()
            return {**row, "submitted": when, "latency": times[measured] if reached else times["Tt"]}

        return read
