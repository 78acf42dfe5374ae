"""The CSV of the load generator hey (`hey -o csv`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from latfit.errors import LogError, listed
from latfit.logs.delimited import Chunk, head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.http import HttpOutcomes
from latfit.logs.lines import chosen, floats, told
from latfit.logs.records import Records
from latfit.logs.source import Source

NEEDED = ("response-time", "status-code")
UNSEEN = "hey leaves requests without an answer out of its CSV: failures to connect and timeouts are not counted here"


@register
class Hey(Format):
    """Latency is response-time, in s; the outcome goes by status-code. Requests without an answer are not there."""

    name = "hey"
    description = "hey -o csv; latency = response-time"
    rank = 26
    roles = ("latency",)
    uses = ("statuses",)

    def sniff(self, head: str) -> bool:
        """By hey's column names."""
        return {*NEEDED, "DNS+dialup"} <= set(head_fields(head, ","))

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the answers."""
        names = head_fields(source.text, ",")
        if not set(NEEDED) <= set(names):
            raise LogError(f"{source.name}: line 1 must name {' and '.join(NEEDED)}; it has: {listed(names)}")
        measured = chosen("latency", options, "response-time", names, source.name)
        outcomes = HttpOutcomes(options)
        note = told(f"{measured} in s", "unknown (offset counts from the start of the run)", ())

        def convert(chunk: Chunk) -> Records:
            records = Records(chunk.line, np.empty(0), np.empty(0, dtype=np.int8))
            records.latency = floats(chunk.frame[measured], measured, records)
            records.status = outcomes.statuses(chunk.frame["status-code"], records)
            outcomes.add(chunk.frame["status-code"], records)
            records.raw = chunk.frame
            records.notes += [note, UNSEEN]
            return records

        types = {measured: pa.float64(), "status-code": pa.string()}
        yield from read_delimited(source, ",", names, types, convert, header=True)
        yield outcomes.last()
