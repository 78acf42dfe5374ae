"""JMeter result files (JTL) written as CSV or as XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from latfit.errors import LogError, listed
from latfit.logs.delimited import head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import chosen, contains, set_statuses
from latfit.logs.records import Records
from latfit.logs.rows import Row, RowFormat
from latfit.logs.schema import Roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader
from latfit.logs.vocabulary import OutcomeTally
from latfit.table import CENSORED, FAILED

GAVE_UP = r"(?i)time[d-]? ?-?out"
NEEDED = {"timeStamp", "elapsed", "success"}
MESSAGES = ("responseCode", "responseMessage", "failureMessage")
OPENED = re.compile(r"<(?:httpSample|sample) ([^<>]*?)(/?)>")
CLOSED = re.compile(r"</(?:httpSample|sample)>")


@register
class JMeter(Format):
    """Latency is `elapsed`, in ms.

    A sample that the client's own timeout ended is censored: the client gave up. One that was refused, reset, had
    no response or any other error is known to be dead: it failed.
    """

    name = "jmeter"
    description = "JMeter results (JTL) as CSV, with any delimiter and without a header too; latency = elapsed"
    rank = 25
    roles = ("latency",)
    uses = ("unit", "time_format", "timezone")

    def sniff(self, head: str) -> bool:
        return set(_layout(head)[1]) >= NEEDED

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        delimiter, names, header = _layout(source.text)
        if not set(names) >= NEEDED:
            raise LogError(f"{source.name}: line 1 must name timeStamp, elapsed and success; it has: {listed(names)}")
        measured = chosen("latency", options, "elapsed", names, source.name)
        formats = {"timeStamp": options.time_format} if options.time_format else {}
        roles = Roles((measured,), "timeStamp", unit=options.unit or "ms", time_formats=formats)
        types = dict.fromkeys(("timeStamp", "success", *MESSAGES), pa.string()) | {measured: pa.float64()}
        table, tally = TableReader(roles, options), OutcomeTally("outcomes by responseCode", answers=True)

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            records = table.records(frame, line)
            success = frame["success"].astype("string").str.strip().str.lower()
            set_statuses(records, success, {"true": "completed", "false": "failed"}, "status: success is")
            for name in set(MESSAGES) & set(frame):
                records.status[(records.status == FAILED) & contains(frame[name], GAVE_UP)] = CENSORED
            if "responseCode" in frame:
                tally.add(frame["responseCode"].str.removeprefix("Non HTTP response code: "), records)
            return records

        yield from read_delimited(
            source, delimiter, names, types, convert, header=header, settled=lambda: table.settled
        )
        yield tally.last()


def _layout(head: str) -> tuple[str, list[str], bool]:
    first = head.lstrip().split("\n", 1)[0]
    delimiter = max(",|;\t", key=first.count)
    fields = head_fields(head, delimiter)
    if set(fields) >= NEEDED or not re.fullmatch(r"\d{13}", fields[0]) or not fields[1:2] or not fields[1].isdigit():
        return delimiter, fields, True
    names = ["timeStamp", "elapsed", "label", "responseCode"]
    names += [f"column{at}" for at in range(len(names) + 1, len(fields) + 1)]
    success = next((at for at, field in enumerate(fields) if field.lower() in ("true", "false")), None)
    if success is not None and success > 3:
        names[success] = "success"
    return delimiter, names[: len(fields)], False


@register
class JMeterXml(RowFormat):
    """Latency is `t`, in ms, of the samples; those inside another one are parts of it. Outcomes as in `jmeter`."""

    name = "jmeter-xml"
    description = "JMeter results (JTL) as XML; latency = t"
    rank = 24
    unit = "ms"
    others = "lines that are not samples, or parts of one"
    signs = ("<testResults",)

    def row(self, line: str) -> Row | None:
        """`<httpSample t="268" ts="1506112408625" s="true" lb="Landing Page" rc="200" rm="OK" tn="Users 1-7"/>`."""
        return self.rows()(line)

    def rows(self) -> Callable[[str], Row | None]:
        depth = 0

        def read(line: str) -> Row | None:
            nonlocal depth
            match = OPENED.search(line)
            outer = depth == 0
            depth = max(0, depth + (match is not None and not match[2]) - len(CLOSED.findall(line)))
            if match is None or not outer:
                return None
            fields = {key: unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', match[1])}
            if not fields.get("t", "").isdigit():
                return None
            late = re.search(GAVE_UP, f"{fields.get('rc', '')} {fields.get('rm', '')}")
            status = "completed" if fields.get("s") == "true" else "timeout" if late else "failed"
            sent = int(fields["ts"]) / 1e3 if fields.get("ts", "").isdigit() else None
            names = {"label": "lb", "responseCode": "rc", "threadName": "tn", "bytes": "by"}
            groups = {column: fields.get(name) for column, name in names.items()}
            return {"latency": fields["t"], "submitted": sent, "status": status, **groups}

        return read
