"""Results of load generators: JMeter, ApacheBench, hey, vegeta and Gatling; and summaries, which are refused."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator
from html import unescape
from itertools import islice
from typing import ClassVar

import pandas as pd
import pyarrow as pa

from latfit.buckets import from_cumulative
from latfit.errors import LogError
from latfit.logs.delimited import TableFormat, head_fields, split_record
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.lines import set_statuses
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, cells_at, epoch, json_line
from latfit.logs.schema import NO_OUTCOMES
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import cells_with
from latfit.table import CENSORED, FAILED

GAVE_UP = r"(?i)time[d-]? ?-?out|deadline exceeded|actually found (?:408|504)\b"
MESSAGES = ("responseCode", "responseMessage", "failureMessage")
OPENED = re.compile(r"<(?:httpSample|sample) ([^<>]*?)(/?)>")
CLOSED = re.compile(r"</(?:httpSample|sample)>")
LOCUST = ({"Name", "Request Count", "Failure Count"}, {"Timestamp", "User Count", "Requests/s"})


@register
class JMeter(TableFormat):
    """Latency is `elapsed`, in ms.

    `success` says what became of a sample, whatever its code: a test may expect a 404, or refuse a 200. One that the
    client's own timeout ended is censored: the client gave up. Any other that has no success has failed.
    """

    name = "jmeter"
    description = "JMeter results (JTL) as CSV, with any delimiter and without a header too; latency = elapsed"
    rank = 25
    roles = ("latency",)
    uses = ("unit", "time_format", "timezone")
    needed = ("timeStamp", "elapsed", "success")
    measured, unit, time, submitted_is = "elapsed", "ms", "timeStamp", "timeStamp"
    outcomes = "outcomes by success and responseCode"

    def layout(self, head: str) -> tuple[str, list[str], bool]:
        delimiter = max(",|;\t", key=head.lstrip().split("\n", 1)[0].count)
        fields = head_fields(head, delimiter)
        if set(fields) >= set(self.needed) or not re.fullmatch(r"\d{13}\n\d+", "\n".join(fields[:2])):
            return delimiter, fields, True
        names = ["timeStamp", "elapsed", "label", "responseCode"]
        names += [f"column{at}" for at in range(len(names) + 1, len(fields) + 1)]
        success = next((at for at, field in enumerate(fields) if field.lower() in ("true", "false")), 0)
        if success > 3:
            names[success] = "success"
        return delimiter, names[: len(fields)], False

    def begin(self, source: Source) -> None:
        super().begin(source)
        self.unit, self.time_style = self.options.unit or self.unit, self.options.time_format
        self.tally.answers = True
        self.groups = [name for name in self.names if name not in (self.measured, self.time)]

    def types(self) -> dict[str, pa.DataType]:
        return dict.fromkeys((*self.needed, *MESSAGES), pa.string()) | {self.measured: pa.float64()}

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        success = frame["success"].str.strip().str.lower()
        set_statuses(records, success, {"true": "completed", "false": "failed"}, "status: success is")
        for name in set(MESSAGES) & set(frame):
            records.status[(records.status == FAILED) & cells_with(frame[name], GAVE_UP)] = CENSORED
        if "responseCode" in frame:
            self.tally.add(frame["responseCode"].str.removeprefix("Non HTTP response code: "), records)


@register
class JMeterXml(RowFormat):
    """Latency is `t`, in ms, of the samples; those inside another one are parts of it. Outcomes as in `jmeter`."""

    name = "jmeter-xml"
    description = "JMeter results (JTL) as XML; latency = t"
    rank = 24
    unit = "ms"
    others = "lines that are not samples, or parts of one"
    signs = ("<testResults",)

    def rows(self, options: ReadOptions) -> Callable[[str], Row | str | None]:
        depth = 0

        def read(line: str) -> Row | None:
            """`<httpSample t="268" ts="1506112408625" s="true" lb="Landing Page" rc="200" rm="OK" tn="Users 1-7"/>`."""
            nonlocal depth
            match = OPENED.search(line)
            outer = depth == 0
            depth = max(0, depth + (match is not None and not match[2]) - len(CLOSED.findall(line)))
            if match is None or not outer:
                return None
            fields = {key: unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', match[1])}
            if not fields.get("t", "").isdigit():
                return None
            late = re.search(GAVE_UP, f"{fields.get('rc')} {fields.get('rm')}")
            status = "completed" if fields.get("s") == "true" else "censored" if late else "failed"
            names = {"label": "lb", "responseCode": "rc", "threadName": "tn", "bytes": "by"}
            groups = {column: fields.get(name) for column, name in names.items()}
            return {"latency": fields["t"], "submitted": epoch(fields.get("ts")), "status": status, **groups}

        return read


@register
class ApacheBench(TableFormat):
    """Latency is ttime, in ms, from connecting to the last byte; ab sorts its rows by it, and tells no outcomes."""

    name = "ab"
    description = "ab -g; latency = ttime"
    rank = 26
    delimiter = "\t"
    needed = ("starttime", "seconds", "ctime", "dtime", "ttime", "wait")
    groups = ("ctime", "dtime", "wait")
    measured, unit, time, time_style = "ttime", "ms", "seconds", "epoch"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        records.notes.append(NO_OUTCOMES)
        records.has_outcomes = False


@register
class Hey(TableFormat):
    """Latency is response-time, in s; the outcome goes by status-code. Requests without an answer are not there."""

    name = "hey"
    description = "hey -o csv; latency = response-time"
    rank = 26
    roles = ("latency",)
    uses = ("statuses",)
    needed = ("response-time", "status-code", "DNS+dialup")
    measured, code, http = "response-time", "status-code", True
    submitted_is = "unknown (offset counts from the start of the run)"

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        records.notes.append(
            "hey leaves requests without an answer out of its CSV: failures to connect and timeouts are not counted"
        )


@register
class Vegeta(RowFormat):
    """Latency in ns; the outcome goes by the code. Code 0 with a timeout as its error is censored, else failed."""

    name = "vegeta"
    description = "vegeta encode --to csv or --to json; latency = latency"
    rank = 19
    unit = "ns"
    begins = r'\d{19},\d{1,3},\d+,\d+,\d+,|(?=\{.*"attack")(?=.*"seq")(?=.*"latency").*"timestamp"'
    paths = "latency submitted=timestamp status=code error attack method url"

    def row(self, line: str) -> Row | str | None:
        entry = json_line(line)
        row = None if entry is None else cells_at(entry, self.paths)
        if entry is None and re.match(self.begins, line):
            fields = dict(enumerate(next(csv.reader([line]))))
            at = {"latency": 2, "submitted": 0, "status": 1, "error": 5, "attack": 7, "method": 9, "url": 10}
            row = {cell: fields.get(place) for cell, place in at.items()}
        if row is None:
            return f"not a result as vegeta writes it: {line[:40]!r}"
        timed_out = re.search(GAVE_UP, str(row.pop("error")))
        none = "censored" if timed_out else "failed"
        return row | {"submitted": epoch(row["submitted"])} | ({"status": none} if str(row["status"]) == "0" else {})


@register
class Gatling(RowFormat):
    """Gatling's simulation.log as text (versions 2 and 3, before it became binary).

    Latency is end − start of each REQUEST, in ms. OK is completed; KO by a timeout censored, any other KO failed.
    """

    name = "gatling"
    description = "Gatling simulation.log (text); latency = end - start of requests"
    rank = 21
    cells = ("submitted", "ended", "status")
    others = "lines that are not requests"
    begins, signs = (
        r"(?:RUN|USER|REQUEST|GROUP|ACTION|ASSERTION|ERROR)\t",
        (r"^REQUEST\t.*\t\d{9,16}\t\d{9,16}\t[OK]{2}",),
    )
    # the number of fields differs by version, but start, end and OK or KO follow each other
    line = re.compile(
        r"REQUEST\t(?:.*?\t)??(?:(?P<groups>[^\t]*)\t)?(?P<name>[^\t]*)\t(?P<submitted>\d{9,16})\t(?P<ended>\d{9,16})\t"
        r"(?P<status>OK|KO)\s*(?P<message>.*)",
        re.ASCII,
    )

    def row(self, line: str) -> Row | str | None:
        row = super().row(line)
        if not isinstance(row, dict):
            return f"not a request as Gatling writes it: {line[:40]!r}" if line.startswith("REQUEST\t") else None
        timed_out = re.search(GAVE_UP, row.pop("message"))
        status = "completed" if row["status"] == "OK" else "censored" if timed_out else "failed"
        return {**row, "submitted": epoch(row["submitted"]), "ended": epoch(row["ended"]), "status": status}


class _Summary(Format):
    """A summary of a load test, with percentiles of many requests: always refused, with the way to single requests."""

    by_line = False
    rank = 23
    advice: ClassVar[str]

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        raise LogError(f"{source.name}: {self.advice}")


@register
class Locust(HistogramFormat):
    """Locust's statistics: the percentiles of each row as buckets; rows with failures cannot be told apart."""

    name = "locust"
    description = "Locust statistics: percentiles, read as the buckets of a histogram"
    rank = 23
    advice = (
        "these are Locust's statistics (percentiles of many requests, also with --csv-full-history), not single "
        "requests; log each one from the locustfile: @events.request.add_listener, def log(request_type, name, "
        "response_time, exception, start_time, **_): print one CSV row of start_time, name, response_time (ms), "
        '"failed" if exception else "completed"'
    )

    def sniff(self, head: str) -> bool:
        names = set(head_fields(head, ","))
        return any(names >= needed for needed in LOCUST)

    def parse(self, source: Source, unit: str | None) -> HistogramLog:
        names, series, failed = head_fields(source.text, ","), list[Series](), 0
        levels = [name for name in names if re.fullmatch(r"[\d.]+%", name)]
        for _, line in islice(numbered_lines(source), 1, None):
            row = dict(zip(names, split_record(line, ",")[1], strict=False))
            if "Request Count" not in row or row.get("Name", "Aggregated") == "Aggregated":
                continue
            try:
                count, failures = int(row["Request Count"]), int(row["Failure Count"])
                times = [float(row[level]) for level in levels]
            except (KeyError, ValueError):
                continue
            if not all(map(math.isfinite, times)):
                continue
            failed += failures > 0
            if count and levels and not failures:
                # times are rounded, to 10 ms from 100 ms on and to 100 ms from 1 s on: each lies below the edge
                edges = [(t + (0.5 if t < 100 else 5.0 if t < 1000 else 50.0)) / 1000 for t in times]
                shares = [float(level.rstrip("%")) / 100 for level in levels]
                counts = dict(zip(edges, (math.floor(q * count + 1e-9) for q in shares), strict=True))
                ends = [*sorted(counts), math.inf]
                buckets = from_cumulative(ends, [counts.get(end, count) for end in ends])
                series.append(Series(row["Name"], {"type": row.get("Type", "")}, buckets))
        if not series:
            raise LogError(f"{source.name}: {self.advice}")
        left = f"; {failed} rows with failures are left out, whose times are among the percentiles" if failed else ""
        return HistogramLog(
            source.name, self.name, tuple(series), notes=(f"Locust's percentiles are read as buckets{left}",)
        )


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
