"""Results of load generators: JMeter, ApacheBench, hey, vegeta, Gatling, k6 and Locust; summaries are refused."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import islice
from typing import ClassVar

import numpy as np
import pandas as pd

from latfit.buckets import from_cumulative
from latfit.errors import LogError
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import Format, Head, ReadOptions, register, split_record
from latfit.logs.histogram_format import HistogramFormat, Series
from latfit.logs.lines import LineFormat, Row, epoch, json_object, named
from latfit.logs.records import Records
from latfit.logs.source import Source, numbered_lines
from latfit.logs.vocabulary import by_word, cells_with, http_outcome, word_of

GAVE_UP = r"(?i)time[d-]? ?-?out|deadline exceeded|actually found (?:408|504)\b"
MESSAGES = ("responseCode", "responseMessage", "failureMessage")
OPENED = re.compile(r"<(?:httpSample|sample) ([^<>]*?)(/?)>")
CLOSED = re.compile(r"</(?:httpSample|sample)>")
K6_TIMEOUTS = ("1050", "1211")  # error codes: the request, or dialling, took longer than its timeout


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
    cells = "latency=elapsed submitted=timeStamp status=outcome"
    unit, counted_by, answers = "ms", "responseCode", True
    needed = ("timeStamp", "elapsed", "success")
    begins = (
        r"(?![{<])(?=.*\btimeStamp\b)(?=.*\belapsed\b).*\bsuccess\b|"  # a header, or a row
        r"\d{13}[,|;\t]\d+[,|;\t](?:.*[,|;\t]){2}(?i:true|false)\b"
    )

    def layout(self, head: Head) -> tuple[str, list[str], bool]:
        delimiter, fields = head.table
        if "elapsed" in fields or not re.fullmatch(r"\d{13}\n\d+", "\n".join(fields[:2])):
            return delimiter, fields, True
        names = ["timeStamp", "elapsed", "label", "responseCode"]
        names += [f"column{at}" for at in range(len(names) + 1, len(fields) + 1)]
        success = next((at for at, field in enumerate(fields) if field.lower() in ("true", "false")), 0)
        if success > 3:
            names[success] = "success"
        return delimiter, names[: len(fields)], False

    def begin(self, source: Source) -> None:
        super().begin(source)
        self.counted_by = self.counted_by if self.counted_by in self.names else "success"

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        words = {"true": "completed", "false": "failed"}
        outcome = pd.Series(by_word(frame["success"], lambda word: words.get(word_of(word), word), None), dtype=object)
        failed = np.flatnonzero(outcome == "failed")
        for name in set(MESSAGES) & set(frame) if failed.size else ():
            outcome.iloc[failed[cells_with(frame[name].iloc[failed], GAVE_UP)]] = "censored"
        codes = by_word(frame[self.counted_by], lambda code: code.removeprefix("Non HTTP response code: "), None)
        frame[self.counted_by] = codes
        return frame.assign(outcome=outcome)


@register
class JMeterXml(LineFormat):
    """Latency is `t`, in ms, of the samples; those inside another one are parts of it. Outcomes as in `jmeter`."""

    name = "jmeter-xml"
    description = "JMeter results (JTL) as XML; latency = t"
    rank = 24
    unit = "ms"
    others = "lines without a sample"
    signs = ("<testResults",)

    def begin(self, source: Source) -> None:
        self.depth = 0

    def row(self, line: str) -> Row | None:
        """`<httpSample t="268" ts="1506112408625" s="true" lb="Landing Page" rc="200" rm="OK" tn="Users 1-7"/>`."""
        match, outer = OPENED.search(line), self.depth == 0
        self.depth = max(0, self.depth + (match is not None and not match[2]) - len(CLOSED.findall(line)))
        if match is None or not outer:
            return None
        fields = {key: unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', match[1])}
        if not fields.get("t", "").isdigit():
            return None
        late = re.search(GAVE_UP, f"{fields.get('rc')} {fields.get('rm')}")
        status = "completed" if fields.get("s") == "true" else "censored" if late else "failed"
        groups = {
            column: fields.get(name)
            for column, name in named("label=lb responseCode=rc threadName=tn bytes=by").items()
        }
        return {"latency": fields["t"], "submitted": epoch(fields.get("ts")), "status": status, **groups}


@register
class ApacheBench(TableFormat):
    """Latency is ttime, in ms, from connecting to the last byte; ab sorts its rows by it, and tells no outcomes."""

    name = "ab"
    description = "ab -g; latency = ttime"
    rank = 26
    header = ("starttime", "seconds", "ctime", "dtime", "ttime", "wait")
    cells = "latency=ttime submitted=seconds"
    groups = ("ctime", "dtime", "wait")
    unit, time_style, uses = "ms", "epoch", ()


@register
class Hey(TableFormat):
    """Latency is response-time, in s; the outcome goes by status-code. Requests without an answer are not there."""

    name = "hey"
    description = "hey -o csv; latency = response-time"
    rank = 26
    roles = ("latency",)
    uses = ("statuses",)
    header = ("response-time", "status-code", "DNS+dialup")
    cells = "latency=response-time status=status-code"
    groups = ()

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        records.notes.append(
            "hey leaves requests without an answer out of its CSV: failures to connect and timeouts are not counted"
        )


@register
class Vegeta(LineFormat):
    """Latency in ns; the outcome goes by the code. Code 0 with a timeout as its error is censored, else failed."""

    name = "vegeta"
    description = "vegeta encode --to csv or --to json; latency = latency"
    rank = 19
    unit = "ns"
    begins = r'\d{19},\d{1,3},\d+,\d+,\d+,|(?=\{.*"attack")(?=.*"seq")(?=.*"latency").*"timestamp"'
    paths = "latency submitted=timestamp status=code error attack method url"

    def row(self, line: str) -> Row | Sequence[str | None] | str:
        if re.match(r"\d{19},", line):
            fields = dict(enumerate(next(csv.reader([line]))))
            at = {"latency": 2, "submitted": 0, "status": 1, "error": 5, "attack": 7, "method": 9, "url": 10}
            return self.probe({cell: fields.get(place) for cell, place in at.items()})
        return super().row(line) or f"not a result as vegeta writes it: {line[:40]!r}"

    def probe(self, cells: Row) -> Row:
        timed_out = re.search(GAVE_UP, str(cells.pop("error")))
        none = "censored" if timed_out else "failed"
        return {**cells, "status": none} if str(cells["status"]) == "0" else cells


@register
class Gatling(LineFormat):
    """Gatling's simulation.log as text (versions 2 and 3, before it became binary).

    Latency is end − start of each REQUEST, in ms. OK is completed; KO by a timeout censored, any other KO failed.
    """

    name = "gatling"
    description = "Gatling simulation.log (text); latency = end - start of requests"
    rank = 21
    cells = "submitted ended status"
    others = "lines without a request"
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

    broken = "REQUEST\t"

    def probe(self, cells: Row) -> Row:
        timed_out = re.search(GAVE_UP, cells.pop("message")) and cells["status"] == "KO"
        return {**cells, "status": "censored"} if timed_out else cells


@register
class K6(LineFormat):
    """Latency is the metric http_req_duration, in ms (`--column latency=http_req_waiting` for another).

    The outcome goes by the HTTP status. k6's error codes 1050 and 1211 are timeouts: censored. A status
    that the test expects is completed, a 2xx or 3xx that it does not expect failed. k6 writes the time of the end.
    """

    name = "k6"
    description = "k6 results as CSV; latency = the metric http_req_duration"
    rank = 24
    roles = ("latency",)
    unit = "ms"
    at_end = True
    header: ClassVar[tuple[str, ...]] = ("metric_name", "timestamp", "metric_value")
    others = "lines without a point of this metric"
    nothing = "it has no point of the metric http_req_duration, or of METRIC in --column latency=METRIC"

    def begin(self, source: Source) -> None:
        self.metric, self.fields = self.options.columns.get("latency", "http_req_duration"), list[str]()

    def row(self, line: str) -> Row | str | None:
        """A metric, a time, a value, and tags."""
        fields = next(csv.reader([line]))
        if not self.fields:
            self.fields = fields
            return None
        if len(fields) != len(self.fields):
            return f"wrong number of fields: {len(fields)} instead of {len(self.fields)}"
        row = dict(zip(self.fields, fields, strict=True))
        known = {"metric": "metric_name", "submitted": "timestamp", "latency": "metric_value"}
        return self.probe({cell: row.pop(name, None) for cell, name in known.items()} | row)

    def probe(self, cells: Row) -> Row | None:
        if cells.pop("metric") != self.metric:
            return None
        code, expected = str(cells.get("status") or "0"), cells.pop("expected_response", None)
        said = self.options.lowered_statuses
        if cells.pop("error_code", None) in K6_TIMEOUTS:
            code = "censored"
        elif code not in said and f"{code[:1]}xx" not in said:
            if expected == "true" and http_outcome(code, said) != "completed":
                code = "completed"
            elif code == "0" or (expected == "false" and code[:1] in "23"):
                code = "failed"
        tags = {name: cell for name, cell in cells.items() if name not in ("error", "check") and cell != ""}
        return {**tags, "status": code}


@register
class K6Json(K6):
    """k6's JSON lines: points with their tags, and what metrics there are."""

    name = "k6-json"
    description = "k6 results as JSON lines; latency = the metric http_req_duration"
    header = ()
    begins = r'(?=\{.*"type"\s*:\s*"(?:Metric|Point)")\{.*"metric"'
    paths = "metric type submitted=data.time latency=data.value " + " ".join(
        f"{tag}=data.tags.{tag}"
        for tag in ("status", "error_code", "expected_response", "method", "name", "url", "scenario", "group")
    )

    def row(self, line: str) -> Row | str | None:
        value = json_object(line)
        return value if isinstance(value, str) else self.cells_of(value)

    def probe(self, cells: Row) -> Row | None:
        return super().probe(cells) if cells.pop("type") == "Point" else None


@register
class Locust(HistogramFormat):
    """Locust's statistics: the percentiles of each row as buckets; rows with failures cannot be told apart."""

    name = "locust"
    description = "Locust statistics: percentiles, read as the buckets of a histogram"
    rank = 23
    header = ("Name|Timestamp", "Request Count|User Count", "Failure Count|Requests/s")
    advice = (
        "these are Locust's statistics (percentiles of many requests, also with --csv-full-history), not single "
        "requests; log each one from the locustfile: @events.request.add_listener, def log(request_type, name, "
        "response_time, exception, start_time, **_): print one CSV row of start_time, name, response_time (ms), "
        '"failed" if exception else "completed"'
    )

    def series(self, source: Source, unit: str | None, notes: dict[str, None]) -> Iterator[Series]:
        names, failed, count_of_series = Head(source.text).table[1], 0, 0
        levels = [name for name in names if re.fullmatch(r"[\d.]+%", name)]
        for _, line in islice(numbered_lines(source), 1, None):
            row = dict(zip(names, split_record(line, ",")[1], strict=False))
            try:
                count, failures = int(row["Request Count"]), int(row["Failure Count"])
                times = [float(row[level]) for level in levels]
            except (KeyError, ValueError):
                continue
            if row.get("Name", "Aggregated") == "Aggregated" or not all(map(math.isfinite, times)):
                continue
            failed += failures > 0
            if count and levels and not failures:
                # times are rounded, to 10 ms from 100 ms on and to 100 ms from 1 s on: each lies below the edge
                edges = [(t + (0.5 if t < 100 else 5.0 if t < 1000 else 50.0)) / 1000 for t in times]
                shares = [float(level.rstrip("%")) / 100 for level in levels]
                counts = dict(zip(edges, (math.floor(q * count + 1e-9) for q in shares), strict=True))
                ends = [*sorted(counts), math.inf]
                buckets = from_cumulative(ends, [counts.get(end, count) for end in ends])
                count_of_series += 1
                yield Series(row["Name"], {"type": row.get("Type", "")}, buckets)
        if not count_of_series:
            raise LogError(self.advice)
        left = f"; {failed} rows with failures are left out, whose times are among the percentiles" if failed else ""
        notes[f"Locust's percentiles are read as buckets{left}"] = None


@register
class Wrk(Format):
    """What wrk prints: always refused."""

    name = "wrk"
    description = "wrk summary: percentiles only, refused with the way to single requests"
    by_line = False
    rank = 23
    begins = r"Running \S+ test @ |Thread Stats\s+Avg\s+Stdev"

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        raise LogError(
            f"{source.name}: wrk prints a summary and keeps no single requests; measure with a tool that writes them: "
            "hey -o csv, vegeta attack | vegeta encode --to csv, or k6 run --out csv=FILE"
        )
