"""JMeter result files (JTL) written as CSV or as XML."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pandas as pd
import pyarrow as pa

from latfit.logs.delimited import TableFormat, head_fields
from latfit.logs.formats import ReadOptions, register
from latfit.logs.lines import contains, set_statuses
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat, epoch
from latfit.logs.source import Source
from latfit.table import CENSORED, FAILED

GAVE_UP = r"(?i)time[d-]? ?-?out"
MESSAGES = ("responseCode", "responseMessage", "failureMessage")
OPENED = re.compile(r"<(?:httpSample|sample) ([^<>]*?)(/?)>")
CLOSED = re.compile(r"</(?:httpSample|sample)>")


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
            records.status[(records.status == FAILED) & contains(frame[name], GAVE_UP)] = CENSORED
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
