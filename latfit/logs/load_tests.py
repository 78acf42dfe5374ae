"""Results of load generators: ApacheBench, hey, vegeta and Gatling; and summaries that hold percentiles only."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import ClassVar

import pandas as pd
import pyarrow as pa

from latfit.errors import LogError
from latfit.logs.delimited import TableFormat, head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import LineFormat, Parsed, contains, first_lines, floats, json_object, moments, plain_text
from latfit.logs.records import Records
from latfit.logs.schema import NO_OUTCOMES, Roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader
from latfit.table import CENSORED, FAILED

AB_NAMES = ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]
VEGETA_ROW = re.compile(r"\d{19},\d{1,3},\d+,\d+,\d+,", re.ASCII)
VEGETA_TIMEOUT = r"(?i)time[d-]? ?-?out|deadline exceeded"
GATLING_KINDS = ("RUN", "USER", "REQUEST", "GROUP", "ACTION", "ASSERTION", "ERROR")
GATLING_TIMEOUT = r"(?i)time[d-]? ?-?out|actually found (?:408|504)\b"
MILLISECONDS = re.compile(r"\d{9,16}", re.ASCII)
LOCUST = ({"Name", "Request Count", "Failure Count"}, {"Timestamp", "User Count", "Requests/s"})


@register
class ApacheBench(Format):
    """Latency is ttime, in ms, from connecting to the last byte; ab sorts its rows by it."""

    name = "ab"
    description = "ab -g; latency = ttime"
    rank = 26

    def sniff(self, head: str) -> bool:
        return head_fields(head, "\t") == AB_NAMES

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        roles = Roles(("ttime",), "seconds", unit="ms", time_formats={"seconds": "epoch"})
        table = TableReader(roles, options)
        for records in read_delimited(
            source, "\t", AB_NAMES, {}, table.records, header=True, settled=lambda: table.settled
        ):
            records.notes += [NO_OUTCOMES, "latency is ttime, in ms; ab tells no outcome of a request"]
            records.has_outcomes = False
            records.extras.pop("starttime", None)  # the seconds, in words
            yield records


@register
class Hey(TableFormat):
    """Latency is response-time, in s; the outcome goes by status-code. Requests without an answer are not there."""

    name = "hey"
    description = "hey -o csv; latency = response-time"
    rank = 26
    roles = ("latency",)
    uses = ("statuses",)
    needed = ("response-time", "status-code")
    marks = ("DNS+dialup",)
    measured, code = needed
    http = True
    submitted_is = "unknown (offset counts from the start of the run)"

    def types(self) -> dict[str, pa.DataType]:
        return {self.measured: pa.float64(), self.code: pa.string()}

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        records.notes.append(
            "hey leaves requests without an answer out of its CSV: failures to connect and timeouts are not counted"
        )


@register
class Vegeta(LineFormat):
    """Latency in ns; the outcome goes by the code. Code 0 with a timeout as its error is censored, else failed."""

    name = "vegeta"
    description = "vegeta encode --to csv or --to json; latency in ns"
    rank = 19
    uses = ("statuses",)
    names = ("timestamp", "code", "latency", "error", "attack", "method", "url")
    groups = ("attack", "method", "url")
    measured, unit, submitted_is = "latency", "ns", "timestamp"
    http = True
    sniffed = 1

    def parse(self, line: str) -> Parsed:
        if line.startswith("{"):
            value = json_object(line)
            if isinstance(value, str):
                return value
            if all(key in value for key in ("attack", "seq", "code", "timestamp", "latency")):
                return [plain_text(value.get(name)) for name in self.names]
        if not VEGETA_ROW.match(line):
            return f"not a result as vegeta writes it: {line[:40]!r}"
        try:
            fields = next(csv.reader([line]))
        except csv.Error as error:
            return f"unparseable line: {error}"
        return [fields[at] if at < len(fields) else None for at in (0, 1, 2, 5, 7, 9, 10)]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)  # the latency alone
        records.status = self.tally.statuses(frame["code"], records)
        timed_out = contains(frame["error"], VEGETA_TIMEOUT) & (frame["code"] == "0").to_numpy(dtype=bool)
        records.status[timed_out & (records.status >= 0)] = CENSORED
        records.submitted = moments(frame["timestamp"], "timestamp", None, None, records)
        self.tally.add(frame["code"].mask(timed_out, "0 (timeout)"), records)


@register
class Gatling(LineFormat):
    """Gatling's simulation.log as text (versions 2 and 3, before it became binary).

    Latency is end − start of each REQUEST, in ms. OK is completed; KO by a timeout censored, any other KO failed.
    """

    name = "gatling"
    description = "Gatling simulation.log (text); latency = end - start of requests"
    rank = 21
    names = ("name", "groups", "start", "end", "status", "message")
    groups = ("name", "groups")
    outcomes = "outcomes by Gatling's status"
    latency_is, submitted_is = "end - start in ms", "start"

    def sniff(self, head: str) -> bool:
        lines = first_lines(head)
        return bool(lines) and lines[0].split("\t", 1)[0] in GATLING_KINDS and super().sniff(head)

    def parse(self, line: str) -> Parsed:
        """A request's fields: their number differs by version, but start, end and OK or KO follow each other."""
        fields = line.split("\t")
        if fields[0] != "REQUEST":
            return None
        for at in range(3, len(fields)):
            start, end, status = fields[at - 2], fields[at - 1], fields[at].strip()
            if status in ("OK", "KO") and MILLISECONDS.fullmatch(end) and MILLISECONDS.fullmatch(start):
                message = "\t".join(fields[at + 1 :]).strip()
                return [fields[at - 3], fields[at - 4] if at > 4 else "", start, end, status, message]
        return f"not a request as Gatling writes it: {line[:40]!r}"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        start, end = (floats(frame[name], name, records) for name in ("start", "end"))
        records.latency = (end - start) / 1000
        failed = (frame["status"] == "KO").to_numpy(dtype=bool)
        timed_out = failed & contains(frame["message"], GATLING_TIMEOUT)
        records.status[failed] = FAILED
        records.status[timed_out] = CENSORED
        records.submitted = moments(frame["start"], "start", "epoch-ms", None, records)
        self.tally.add(frame["status"].mask(timed_out, "KO (timeout)"), records)


class _Summary(Format):
    """A summary of a load test, with percentiles of many requests: always refused, with the way to single requests."""

    by_line = False
    rank = 23
    advice: ClassVar[str]

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        raise LogError(f"{source.name}: {self.advice}")


@register
class Locust(_Summary):
    """Locust's statistics and their history."""

    name = "locust"
    description = "Locust statistics: percentiles only, refused with the way to single requests"
    advice = (
        "these are Locust's statistics (percentiles of many requests, also with --csv-full-history), not single "
        "requests; log each one from the locustfile: @events.request.add_listener, def log(request_type, name, "
        "response_time, exception, start_time, **_): print one CSV row of start_time, name, response_time (ms), "
        '"failed" if exception else "completed"'
    )

    def sniff(self, head: str) -> bool:
        names = set(head_fields(head, ","))
        return any(names >= needed for needed in LOCUST)


@register
class Wrk(_Summary):
    """What wrk prints."""

    name = "wrk"
    description = "wrk summary: percentiles only, refused with the way to single requests"
    advice = (
        "wrk prints a summary and keeps no single requests; measure with a tool that writes them: "
        "hey -o csv, vegeta attack | vegeta encode --to csv, or k6 run --out csv=FILE"
    )
    begins = r"Running \S+ test @ |Thread Stats\s+Avg\s+Stdev"
