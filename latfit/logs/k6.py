"""k6 results, as CSV (`--out csv=`) or JSON lines (`--out json=`): of many metrics one is the latency."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.delimited import TableFormat
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, RecordFormat, json_object, plain_text
from latfit.logs.records import Records
from latfit.logs.rows import inside
from latfit.logs.source import Source
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED, FAILED

K6_METRIC = "http_req_duration"
TAGS = ("status", "error", "error_code", "expected_response", "method", "name", "url", "scenario", "group")
K6_TIMEOUTS = ("1050", "1211")  # error codes: the request, or dialling, took longer than its timeout
NOT_GROUPS = ("metric", "time", "value", "status", "error", "error_code", "expected_response", "check")
RENAMED = {"metric_name": "metric", "timestamp": "time", "metric_value": "value"}


class _K6(RecordFormat):
    """Latency is the metric http_req_duration, in ms (`--column latency=http_req_waiting` for another).

    The outcome goes by the HTTP status. k6's error codes 1050 and 1211 are timeouts: censored. A status
    that the test expects is completed, a 2xx or 3xx that it does not expect failed.
    """

    rank = 24
    roles = ("latency",)
    uses = ("statuses",)
    measured, unit, time, at_end = "value", "ms", "time", True
    submitted_is = "the point's time, less the latency (k6 writes the end)"
    http = True

    def begin(self, source: Source) -> None:
        self.metric = self.options.columns.get("latency", K6_METRIC)
        self.latency_is = f"{self.metric} in ms"
        if self.metric == K6_METRIC:
            self.latency_is += ", from sending to the last byte, without connecting"
        self.groups = [name for name in self.names if RENAMED.get(name, name) not in NOT_GROUPS]

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        super().fill(records, frame)
        if "status" not in frame:
            return
        status = frame["status"].astype("string")
        records.status = self.tally.statuses(status, records)
        expected = np.where(self.tally.said_of(status), "", _words(frame, "expected_response"))
        records.status[(expected == "true") & (records.status >= 0)] = COMPLETED
        plain = status.str.match(r"[23]", na=False).to_numpy(dtype=bool)
        records.status[(expected == "false") & plain] = FAILED
        code = _words(frame, "error_code")
        records.status[np.isin(code, K6_TIMEOUTS)] = CENSORED
        error = pd.Series(np.where(code == "", "", " error " + code.astype(object)), dtype="str")
        self.tally.add(status.fillna("none").astype("str") + error, records)


def _words(frame: pd.DataFrame, name: str) -> NDArray[np.str_]:
    if name not in frame:
        return np.full(len(frame), "", dtype=str)
    return frame[name].astype("string").fillna("").str.strip().str.lower().to_numpy(dtype=str)


@register
class K6Csv(_K6, TableFormat):
    """k6's CSV: one row for every metric of every request."""

    name = "k6"
    description = "k6 results as CSV; latency = the metric http_req_duration"
    needed = ("metric_name", "metric_value", "timestamp")
    not_probes = "points of other metrics"

    def begin(self, source: Source) -> None:
        super().begin(source)
        self.metrics: set[str] = set()  # that came, to name them where the one asked for did not

    def types(self) -> dict[str, pa.DataType]:
        return {"metric_value": pa.float64(), "timestamp": pa.string()}

    def left_out(self, frame: pd.DataFrame) -> Bools:
        metrics = frame["metric_name"].astype("string")
        self.metrics.update(metrics.dropna().unique())
        return ~(metrics == self.metric).fillna(False).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        records.raw = frame.rename(columns=RENAMED)
        super().fill(records, records.raw)

    def finish(self, source: Source) -> None:
        if self.metric not in self.metrics:
            metrics = listed(sorted(self.metrics))
            raise LogError(f"{source.name}: there is no metric {self.metric!r}; there are: {metrics}")


@register
class K6Json(_K6, LineFormat):
    """k6's JSON lines: points with their tags, and what metrics there are."""

    name = "k6-json"
    description = "k6 results as JSON lines; latency = the metric http_req_duration"
    names = ("metric", "time", "value", *TAGS)
    others = "points of other metrics"
    begins = r'(?=\{.*"type"\s*:\s*"(?:Metric|Point)")\{.*"metric"'

    def parse(self, line: str) -> Parsed:
        value = json_object(line)
        if isinstance(value, str):
            return value
        if value.get("type") != "Point" or value.get("metric") != self.metric:
            return None
        data = value.get("data")
        if not isinstance(data, dict):
            return "a point without data"
        tags = (inside(data, f"tags.{tag}") for tag in TAGS)
        return [self.metric, *map(plain_text, (data.get("time"), data.get("value"), *tags))]
