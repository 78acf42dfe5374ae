"""LSF accounting: the JOB_FINISH events of lsb.acct."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd

from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, first_lines, floats, moments
from latfit.logs.records import Records
from latfit.table import CENSORED

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
MAX_TIME = 1e11


@register
class Lsf(LineFormat):
    """Latency is start − submission, in s. One that finished without a start (start 0) is censored then."""

    name = "lsf"
    description = "LSF lsb.acct; latency = start - submission of JOB_FINISH events"
    rank = 11
    kind = "jobs"
    queue = True
    names = (*FIELDS, *AFTER_HOSTS)
    groups = ("user", "queue", "project", "from_host", "processors")
    others = "events that are not JOB_FINISH"
    latency_is, submitted_is = "start - submission in s (fields 11 and 8)", "field 8"

    def sniff(self, head: str) -> bool:
        """A quoted event, its version and its time."""
        lines = first_lines(head, 3)
        return any((match := EVENT.match(line)) and match[1] == "JOB_FINISH" for line in lines) or (
            bool(lines) and bool(EVENT.match(lines[0])) and '"JOB_FINISH" ' in head
        )

    def parse(self, line: str) -> Parsed:
        """The fields of a JOB_FINISH event."""
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

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """From three times since 1970, 0 where there is none."""
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
        records.extras |= {name: frame[name] for name in ("job_number", "index", "job_name")}


def _after_hosts(fields: list[str]) -> list[str | None]:
    """The fields that stand behind two lists of hosts, as far as these can be counted."""
    at = ASKED_HOSTS
    for _ in range(2):
        count = fields[at] if at < len(fields) else ""
        if not count.isascii() or not count.isdigit() or len(count) > 6:
            return [None] * len(AFTER_HOSTS)
        at += 1 + int(count)
    return [fields[at + later] if at + later < len(fields) else None for later in AFTER_HOSTS.values()]
