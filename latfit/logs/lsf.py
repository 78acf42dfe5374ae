"""LSF accounting: the JOB_FINISH events of lsb.acct."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import Parsed, first_lines, floats, moments, read_lines, told
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED

EVENT = re.compile(r'"([A-Z_]+)" "[^"]*" \d+ ', re.ASCII)
# positions from 0, by the manual of lsb.acct
FIELDS = {
    "finished": 2,
    "job_number": 3,
    "processors": 6,
    "submit": 7,
    "start": 10,
    "user": 11,
    "queue": 12,
    "from_host": 16,
}
ASKED_HOSTS = 22  # how many names of hosts follow, then how many hosts ran it, then these
AFTER_HOSTS = {"state": 0, "job_name": 2, "project": 24, "exit_status": 25, "index": 29}
NAMES = (*FIELDS, *AFTER_HOSTS)
GROUPS = ("user", "queue", "project", "from_host", "processors")
OTHERS = "events that are not JOB_FINISH"
MAX_TIME = 1e11


@register
class Lsf(Format):
    """Latency is start − submission, in s. One that finished without a start (start 0) is censored then."""

    name = "lsf"
    description = "LSF lsb.acct; latency = start - submission of JOB_FINISH events"
    rank = 11
    kind = "jobs"
    queue = True

    def sniff(self, head: str) -> bool:
        """A quoted event, its version and its time."""
        lines = first_lines(head, 3)
        return any((match := EVENT.match(line)) and match[1] == "JOB_FINISH" for line in lines) or (
            bool(lines) and bool(EVENT.match(lines[0])) and '"JOB_FINISH" ' in head
        )

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the jobs that finished."""
        yield from read_lines(source, NAMES, _parse, _records, others=OTHERS)


def _parse(line: str) -> Parsed:
    event = EVENT.match(line)
    if event is None or event[1] != "JOB_FINISH":
        return None if event or line.startswith("#") else f"not an event of LSF: {line[:40]!r}"
    try:
        fields = next(csv.reader([line], delimiter=" "))  # a quote within quotes is doubled
    except csv.Error as error:
        return f"unparseable line: {error}"
    if len(fields) <= max(FIELDS.values()):
        return f"wrong number of fields: {len(fields)}"
    return [*(fields[at] for at in FIELDS.values()), *_after_hosts(fields)]


def _after_hosts(fields: list[str]) -> list[str | None]:
    """The fields that stand behind two lists of hosts, as far as these can be counted."""
    at = ASKED_HOSTS
    for _ in range(2):
        count = fields[at] if at < len(fields) else ""
        if not count.isascii() or not count.isdigit() or len(count) > 6:
            return [None] * len(AFTER_HOSTS)
        at += 1 + int(count)
    return [fields[at + later] if at + later < len(fields) else None for later in AFTER_HOSTS.values()]


def _records(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, COMPLETED, dtype=np.int8))
    times = {name: floats(frame[name], name, records) for name in ("submit", "start", "finished")}
    for name, values in times.items():
        records.refuse(~(values < MAX_TIME), f"{name} is no time since 1970")
    submit, start, finished = times.values()
    never = ~(start > 0)
    records.status[never] = CENSORED
    records.refuse(~(submit > 0), "no submission time")
    records.latency = np.where(never, finished, start) - submit
    records.submitted = moments(frame["submit"], "submit", "epoch", None, records)
    index = frame["index"].fillna("0")
    # a job that was requeued finishes more than once: the first start is the wait
    records.ids = (frame["job_number"] + "[" + index + "] " + frame["submit"]).to_numpy(dtype=object)
    records.raw = frame
    records.extras = {name: frame[name] for name in (*GROUPS, "job_number", "index", "job_name")}
    records.notes.append(told("start - submission in s (fields 11 and 8)", "field 8", GROUPS))
    return records
