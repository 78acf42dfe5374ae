"""HAProxy's HTTP and TCP logs, behind a syslog prefix or not."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, floats, moments, request_parts
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED, FAILED

WHEN = re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d(?:\.\d+)?)\] ", re.ASCII)
HAPROXY_LINE = re.compile(
    r"(?P<frontend>\S+) (?P<backend>[^\s/]+)/(?P<server>\S+) (?P<timers>[-+]?\d+(?:/[-+]?\d+){2,4}) "
    r"(?:(?P<code>-1|\d{3}) )?\+?(?P<bytes>\d+) (?:\S+ \S+ )?(?P<state>[-A-Za-z]{2}(?:..)?) "
    r"(?P<actconn>[\d+]+(?:/[\d+]+){4}) (?P<queues>\d+/\d+)(?P<rest>.*)",
    re.ASCII,
)
TIMERS = {5: ("Tq", "Tw", "Tc", "Tr", "Tt"), 3: ("Tw", "Tc", "Tt")}


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
        """The fields of a request or a connection; other lines are HAProxy's own messages."""
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
