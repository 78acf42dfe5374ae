"""k6 results, as CSV (`--out csv=`) or JSON lines (`--out json=`): of many metrics one is the latency."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.delimited import Chunk, head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import (
    Parsed,
    first_lines,
    floats,
    json_object,
    moments,
    plain_text,
    read_lines,
    seconds_before,
    told,
)
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED, FAILED

HEADER = {"metric_name", "timestamp", "metric_value"}
USUAL = "http_req_duration"
TAGS = ("status", "error", "error_code", "expected_response", "method", "name", "url", "scenario", "group")
NAMES = ("metric", "time", "value", *TAGS)
TIMEOUTS = ("1050", "1211")  # k6's error codes: the request, or dialling, took longer than its timeout
TOLD = ("status", "error", "error_code", "expected_response", "check")  # known with the answer: no groups
OTHERS = "points of other metrics"


class _K6(Format):
    """Latency is the metric http_req_duration, in ms (`--column latency=http_req_waiting` for another).

    The outcome goes by the HTTP status. k6's error codes 1050 and 1211 are timeouts: censored. A status
    that the test expects is completed, a 2xx or 3xx that it does not expect failed.
    """

    rank = 24
    roles = ("latency",)
    uses = ("statuses",)

    def _records(self, frame: pd.DataFrame, line: NDArray[np.int64], metric: str, outcomes: HttpOutcomes) -> Records:
        """The records of the points of one metric."""
        records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
        records.latency = floats(frame["value"], metric, records) / 1000
        when = moments(frame["time"], "time", None, None, records)
        records.submitted = seconds_before(when, records.latency)
        if "status" in frame:
            status = frame["status"].astype("string")
            records.status = outcomes.statuses(status, records)
            expected = np.where(outcomes.said_of(status), "", _word(frame, "expected_response"))
            records.status[(expected == "true") & (records.status >= 0)] = COMPLETED
            plain = status.str.match(r"[23]", na=False).to_numpy(dtype=bool)
            records.status[(expected == "false") & plain] = FAILED
            code = _word(frame, "error_code")
            records.status[np.isin(code, TIMEOUTS)] = CENSORED
            told_by = pd.Series(np.where(code == "", "", " error " + code.astype(object)), dtype="str")
            outcomes.add(status.fillna("none").astype("str") + told_by, records)
        records.raw = frame
        rest = [str(name) for name in frame.columns if name not in ("metric", "time", "value", *TOLD)]
        records.extras = {name: frame[name] for name in rest}
        what = f"{metric} in ms" + (", from sending to the last byte, without connecting" if metric == USUAL else "")
        records.notes.append(told(what, "the point's time, less the latency (k6 writes the end)", rest))
        return records


def _word(frame: pd.DataFrame, name: str) -> NDArray[np.str_]:
    """A column of words in lower case, empty where it is not there."""
    if name not in frame:
        return np.full(len(frame), "", dtype=str)
    return frame[name].astype("string").fillna("").str.strip().str.lower().to_numpy(dtype=str)


@register
class K6Csv(_K6):
    """k6's CSV: one row for every metric of every request."""

    name = "k6"
    description = "k6 results as CSV; latency = the metric http_req_duration"

    def sniff(self, head: str) -> bool:
        """By k6's column names."""
        return set(head_fields(head, ",")) >= HEADER

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the points of one metric; the others are skipped and counted."""
        names = head_fields(source.text, ",")
        if not set(names) >= HEADER:
            raise LogError(f"{source.name}: line 1 must name {', '.join(sorted(HEADER))}; it has: {listed(names)}")
        metric = options.columns.get("latency", USUAL)
        outcomes = HttpOutcomes(options)
        seen: list[set[str]] = []

        def convert(chunk: Chunk) -> Records:
            metrics = chunk.frame["metric_name"].astype("string")
            seen.append(set(metrics.dropna().unique()))
            wanted = (metrics == metric).fillna(False).to_numpy(dtype=bool)
            frame = chunk.frame[wanted].reset_index(drop=True)
            frame = frame.rename(columns={"metric_name": "metric", "timestamp": "time", "metric_value": "value"})
            records = self._records(frame, chunk.line[wanted], metric, outcomes)
            if not wanted.all():
                records.skipped[OTHERS] = int((~wanted).sum())
            return records

        types = {"metric_value": pa.float64(), "timestamp": pa.string()}
        yield from read_delimited(source, ",", names, types, convert, header=True)
        if not any(metric in some for some in seen):
            raise LogError(
                f"{source.name}: there is no metric {metric!r}; there are: {listed(sorted(set().union(*seen)))}"
            )
        yield outcomes.last()


@register
class K6Json(_K6):
    """k6's JSON lines: points with their tags, and what metrics there are."""

    name = "k6-json"
    description = "k6 results as JSON lines; latency = the metric http_req_duration"

    def sniff(self, head: str) -> bool:
        """The first line is a metric or a point of k6's."""
        lines = first_lines(head, 1)
        value = json_object(lines[0]) if lines else None
        return isinstance(value, dict) and value.get("type") in ("Metric", "Point") and "metric" in value

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the points of one metric; the other lines are skipped and counted."""
        metric = options.columns.get("latency", USUAL)
        outcomes = HttpOutcomes(options)

        def parse(line: str) -> Parsed:
            value = json_object(line)
            if isinstance(value, str):
                return value
            if value.get("type") != "Point" or value.get("metric") != metric:
                return None
            data = value.get("data")
            if not isinstance(data, dict):
                return "a point without data"
            tags = data.get("tags")
            tags = tags if isinstance(tags, dict) else {}
            return [
                metric,
                plain_text(data.get("time")),
                plain_text(data.get("value")),
                *(plain_text(tags.get(t)) for t in TAGS),
            ]

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            return self._records(frame, line, metric, outcomes)

        yield from read_lines(source, NAMES, parse, convert, others=OTHERS)
        yield outcomes.last()
