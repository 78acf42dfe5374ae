"""The table of ApacheBench (`ab -g FILE`): one row a request."""

from __future__ import annotations

from collections.abc import Iterator

from latfit.logs.delimited import head_fields, read_delimited
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records
from latfit.logs.schema import NO_OUTCOMES, Roles
from latfit.logs.source import Source
from latfit.logs.tabular import TableReader

NAMES = ["starttime", "seconds", "ctime", "dtime", "ttime", "wait"]
UNSEEN = "latency is ttime, in ms; ab tells no outcome of a request"


@register
class ApacheBench(Format):
    """Latency is ttime, in ms, from connecting to the last byte; ab sorts its rows by it."""

    name = "ab"
    description = "ab -g; latency = ttime"
    rank = 26

    def sniff(self, head: str) -> bool:
        """By ab's column names."""
        return head_fields(head, "\t") == NAMES

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the requests."""
        reader = TableReader(Roles(("ttime",), "seconds", unit="ms", time_formats={"seconds": "epoch"}), options)
        for records in read_delimited(
            source, "\t", NAMES, {}, reader.records, header=True, settled=lambda: reader.settled
        ):
            records.notes += [NO_OUTCOMES, UNSEEN]
            records.has_outcomes = False
            records.extras.pop("starttime", None)  # the seconds, in words
            yield records
