"""Logs of proxies and of AWS: Caddy, Traefik, Squid, Envoy (Istio's too), HAProxy, load balancers, and Lambda."""

from __future__ import annotations

import re

from latfit.errors import MissingColumn
from latfit.logs.formats import register
from latfit.logs.lines import APACHE_TIME, LineFormat, Row, chosen, epoch
from latfit.logs.source import Source

# upstream request, stream idle, downstream and stream duration timeouts; the client went away
GAVE_UP_FLAGS = {"UT", "SI", "DT", "UMSDR", "DC"}
HAPROXY_TIME = r"\[(?P<submitted>\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{1,6})\] "
TIMERS = {5: ("Tq", "Tw", "Tc", "Tr", "Tt"), 3: ("Tw", "Tc", "Tt")}
PARTS = ("request_processing_time", "target_processing_time", "response_processing_time")
CREATED = re.compile(r' \d+ (\d{4}-\d\d-\d\dT\S+) "', re.ASCII)  # the rule's priority, then when the request came
REPORT = r"REPORT RequestId: (?P<id>[\w-]+)\s+Duration: (?P<latency>[\d.]+) ms"
REPORT_FIELD = re.compile(r"(Memory Size|Init Duration|Status): ([\w.]+)")
REPORT_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b\d{13}\b")


@register
class Caddy(LineFormat):
    """Latency is `duration`, in seconds; requests are logged when they end."""

    name = "caddy"
    description = "Caddy access log (JSON or console); latency = duration"
    rank = 26
    others = "lines without a request that a handler took"
    at_end = True
    paths = (
        "latency=duration submitted=ts status method=request.method host=request.host path=request.uri "
        "protocol=request.proto server=logger bytes=size received=bytes_read"
    )
    most_lines = r'(?:\S.*\t)?\{(?=.*"request":\s*\{.*"method":)(?=.*"duration":).*"status":'

    def row(self, line: str) -> Row | str | None:
        """An object, or a time, a level, a logger, a message and an object with tabs between them."""
        before, _, text = line.rpartition("\t")
        row = super().row(text)
        if not isinstance(row, dict) or None in (row["status"], row["method"]):
            return None
        if row["status"] == 0:
            if '"msg":"NOP"' in text or before.endswith("NOP"):  # no handler took it
                return None
            row["status"] = "cancelled"  # the client went away before there was a code
        moment = before.split("\t")[0] if before else row["submitted"]
        return {**row, "submitted": epoch(moment, self.options.timezone)}


@register
class Traefik(LineFormat):
    """Latency is `Duration`, in nanoseconds, or the milliseconds at the end of a line. Code 499: the client gave up."""

    name = "traefik"
    description = "Traefik access log (JSON or common); latency = Duration"
    rank = 26
    unit = "ns"
    signs = (r'"DownstreamStatus":|" \d+ms$',)
    paths = (
        "latency=Duration submitted=StartUTC status=DownstreamStatus method=RequestMethod path=RequestPath "
        "router=RouterName service=ServiceName bytes=DownstreamContentSize received=RequestContentSize"
    )
    # 10.0.0.1 - - [02/Mar/2026:06:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl" 7 "router" "http://10.0.0.2" 12ms
    line = re.compile(
        r'\S+ - \S+ \[(?P<submitted>[^\]]+)\] "(?P<method>\S+) (?P<path>\S+)[^"]*" (?P<status>\d{3}) (?P<bytes>\S+) '
        r'(?:(?:"[^"]*"|-) ){2}\d+ "(?P<router>[^"]*)" "(?P<service>[^"]*)" (?P<latency>\d+ms)$'
    )

    def begin(self, source: Source) -> None:
        self.time_style = None if '"DownstreamStatus":' in source.text else APACHE_TIME


@register
class Squid(LineFormat):
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
    most_lines = line.pattern

    def probe(self, cells: Row) -> Row:
        gave_up = re.search("ABORTED|TIMEDOUT", cells["result"])
        return {**cells, "status": "censored"} if gave_up else cells


@register
class Envoy(LineFormat):
    """Latency is the duration, in ms.

    The outcome goes by the HTTP code; the flags UT, SI, DT, UMSDR (a timeout of Envoy's) and DC (the
    client went away) say that it was given up: censored.
    """

    name = "envoy"
    description = "Envoy or Istio access log, text or JSON lines; latency = duration"
    rank = 18
    unit = "ms"
    others = "lines without a request"
    # [%START_TIME%] "%METHOD% %PATH% %PROTOCOL%" %CODE% %FLAGS% (Istio: details) %RECEIVED% %SENT% %DURATION% …
    # … "forwarded for" "agent" "request id" "authority" "upstream host"
    line = re.compile(
        r'\[(?P<submitted>\d{4}-\d\d-\d\dT[^\]\s]+)\] "(?P<method>[^" ]*) ?(?P<path>[^" ]*)[^"]*" (?P<status>\d+) '
        r'(?P<flags>\S+) (?:\S+ \S+ "[^"]*" )?(?P<received>\d+|-) (?P<bytes>\d+|-) (?P<latency>\d+|-) [^"]*'
        r'(?:(?:"[^"]*" ){3}"(?P<authority>[^"]*)" "(?P<upstream_host>[^"]*)")?'
    )
    signs = (r'^\[\d{4}-\d\d-\d\dT[^\]\s]+\] "[^"]*" \d{1,3} [-A-Z,]+ |^\{.*"response_flags"\s*:',)
    paths = (
        "latency=duration submitted=start_time status=response_code flags=response_flags method path authority "
        "upstream_host received=bytes_received bytes=bytes_sent"
    )

    broken = r'\[\d{4}-\d\d-\d\dT.*" '

    def probe(self, cells: Row) -> Row:
        flags = str(cells.pop("flags") or "-")
        if GAVE_UP_FLAGS & set(flags.split(",")):
            cells["status"] = "censored"
        elif str(cells["status"]) in ("None", "0", "-"):  # connections have no code; without flags all was well
            is_connection = flags == "-" and cells["method"] in (None, "", "-")
            cells["status"] = "completed" if is_connection else "failed"
        return cells


@register
class HaProxy(LineFormat):
    """Latency is the total time Tt (`--column latency=Tr`: until the answer's headers), in ms.

    The termination state says who ended it: nothing (`--`) leaves it to the HTTP code; a timeout
    (`sH`, `cD`) or a client that went away (`CD`) is censored at Tt; any other (`SC`, `PH`) failed.
    """

    name = "haproxy"
    description = "HAProxy HTTP or TCP log (or --column latency=Tr); latency = Tt"
    rank = 22
    unit = "ms"
    roles = ("latency",)
    others = "lines without a request sent to a server (or with termination state CR, PR, …)"
    time_style = "%d/%b/%Y:%H:%M:%S.%f"
    signs = (HAPROXY_TIME + r"\S+ [^\s/]+/\S+ (?:\S+ ){0,2}?[-+]?\d+/",)
    line = re.compile(
        rf"(?:.* )?(?P<client>\S+):\S+ {HAPROXY_TIME}(?P<frontend>\S+) (?P<backend>[^\s/]+)/(?P<server>\S+) "
        r"(?:\S+ ){0,2}?(?P<timers>[-+]?\d+(?:/[-+]?\d+){2,4}) (?:(?P<status>-1|\d{3}) )?"
        r"\+?(?P<bytes>\d+) (?:\S+ \S+ )?"
        r'(?P<state>[-A-Za-z]{2})\S* [\d+]+(?:/[\d+]+){4} \d+/\d+(?:[^"]*"(?P<method>\S+) (?P<path>[^\s"]+))?',
        re.ASCII,
    )

    def begin(self, source: Source) -> None:
        self.measured = chosen("latency", self.options, "Tt", TIMERS[5], "HAProxy's timers")

    broken = f".*{HAPROXY_TIME}"

    def probe(self, cells: Row) -> Row | str | None:
        who, where = cells.pop("state")
        if where in "RT":  # it never was complete, or was kept from every server
            return None
        timers = [int(timer) for timer in cells.pop("timers").split("/")]
        times = dict(zip(TIMERS.get(len(timers), ()), timers, strict=False))
        if self.measured not in times:
            return f"no latency: connections have no {self.measured}"
        reached = self.measured != "Tt" and times[self.measured] >= 0  # else −1: it never got there, and was over at Tt
        if not reached and who not in "-L":  # nothing special, or answered by HAProxy itself
            cells["status"] = "censored" if who in "cCs" else "failed"
        elif cells["status"] in (None, "-1"):
            cells["status"] = "failed" if cells["status"] else "completed"
        return {**cells, "latency": times[self.measured] if reached else times["Tt"]}


@register
class AwsLoadBalancer(LineFormat):
    """Latency is the sum of the three processing times, in s (one alone: `--column latency=target_processing_time`).

    −1 says that no answer came: the latency is then the time from the request's creation to the entry
    in the log, and the balancer's code the outcome (460, 504: given up, so censored; 502, 503: failed).
    """

    name = "alb"
    description = "AWS load balancer access log; latency = sum of the three times"
    rank = 17
    roles = ("latency",)
    others = "lines without a request"
    begins = broken = r"(?:[a-z0-9]{2,5} )?\d{4}-\d\d-\d\dT\S+ \S+ \S+:\d+ "
    line = re.compile(
        r"(?:(?P<type>http|https|h2|grpcs|ws|wss|tcp|ssl) )?(?P<time>\d{4}-\d\d-\d\dT\S+) (?P<elb>\S+) \S+ "
        r"(?P<target>\S+) (?P<times>(?:-?\d+(?:\.\d+)? ){3})(?P<status>\d{3}|-|0) "
        r'\S+ (?P<received>-?\d+) (?P<bytes>-?\d+) "(?P<method>\S+) (?P<path>\S+)[^"]*"(?P<rest>.*)',
        re.ASCII,
    )

    def begin(self, source: Source) -> None:
        self.parts = self.options.columns.get("latency", "+".join(PARTS)).split("+")
        for name in set(self.parts) - set(PARTS):
            raise MissingColumn(f"there is no time {name!r}; there are: {', '.join(PARTS)}")

    def probe(self, cells: Row) -> Row | str:
        ended, created = epoch(cells.pop("time")), CREATED.search(cells.pop("rest"))
        sent = epoch(created[1]) if created else None
        times = dict(zip(PARTS, map(float, cells.pop("times").split()), strict=True))
        latency: float | None = round(sum(times[name] for name in self.parts), 6)
        answered = all(times[name] >= 0 for name in self.parts)
        if not answered:
            latency = None if sent is None or ended is None else round(ended - sent, 6)
        if latency is None:
            return "no latency: a time is -1, and the time of the request is unknown"
        if sent is None and ended is not None:  # a classic balancer, without types, writes when the request came
            sent = ended if cells["type"] is None else round(ended - latency, 6)
        if cells["status"] in ("-", "0"):  # connections have no code
            cells["status"] = "completed" if answered else "failed"
        return {**cells, "latency": latency, "submitted": sent}


@register
class Lambda(LineFormat):
    """Latency is Duration, in ms; `Status: timeout` is censored, `Status: error` failed. Other lines are left out."""

    name = "lambda"
    description = "AWS Lambda REPORT lines, also as CloudWatch exports; latency = Duration"
    rank = 22
    unit = "ms"
    at_end = True
    cells = "latency submitted status id"
    others = "lines without a REPORT"
    # a time where there is one, then REPORT RequestId: … Duration: 19.14 ms Billed Duration: 20 ms …
    signs = (REPORT,)

    def row(self, line: str) -> Row | None:
        report = re.search(REPORT, line)
        if report is None:
            return None
        moment = REPORT_TIME.search(line, 0, report.start())
        fields = dict(REPORT_FIELD.findall(line, report.end()))
        groups = {"memory_mb": fields.get("Memory Size"), "cold_start": "yes" if "Init Duration" in fields else "no"}
        status = {"submitted": moment and moment[0], "status": fields.get("Status", "completed")}
        return {**report.groupdict(), **status, **groups}
