"""Results of load generators: ApacheBench, hey, vegeta and Gatling; and summaries that hold percentiles only."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

import pandas as pd

from latfit.buckets import from_cumulative
from latfit.errors import LogError
from latfit.logs.delimited import TableFormat, head_fields, split_record
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.histogram_format import HistogramFormat, HistogramLog, Series
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, cells_at, epoch, json_line
from latfit.logs.schema import NO_OUTCOMES
from latfit.logs.source import Source, numbered_lines

GAVE_UP = re.compile(r"(?i)time[d-]? ?-?out|deadline exceeded|actually found (?:408|504)\b")
LOCUST = ({"Name", "Request Count", "Failure Count"}, {"Timestamp", "User Count", "Requests/s"})


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
        timed_out = GAVE_UP.search(str(row.pop("error")))
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
        timed_out = GAVE_UP.search(row.pop("message"))
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
            except ValueError:
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
