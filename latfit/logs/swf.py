"""The Standard Workload Format of the Parallel Workloads Archive, and the Grid Workload Format of the Grid's."""

from __future__ import annotations

import re
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn
from latfit.logs.formats import register
from latfit.logs.lines import EPOCH_FROM, LineFormat, Parsed
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import parse_times
from latfit.numbers import Bools
from latfit.table import CENSORED

NUMBER = re.compile(r"^[-+]?[\d.]+(?:[eE][-+]?\d+)?$")
CANCELLED, PARTIAL = 5, (2, 3, 4)  # statuses; partial executions are of a job that has a line of its own
EPOCH_TO = 1e11


class Workload(LineFormat):
    """Logs of jobs with fields separated by white space, −1 for what is missing.

    Latency is the wait in the queue (`--column latency=wait+run` for the whole time in the system).
    A job that started is completed, whatever became of it; one cancelled before it ran is censored.
    """

    kind, queue = "jobs", True
    roles = ("latency",)
    others = ""
    nothing = "there is a header but no job below it"
    not_probes = "partial executions of jobs"
    fields: ClassVar[tuple[str, ...]]
    comment: ClassVar[str]
    added: ClassVar[int] = 0  # how many fields beyond its own a line may have that are columns too

    def sniff(self, head: str) -> bool:
        rows = [line for line in head.split("\n")[:-1] or [head] if line.strip() and not line.startswith((";", "#"))]
        if not rows:
            commented = head.lstrip().startswith(self.comment)
            return commented and bool(re.search(r"^[;#]\s*\w+:", head, re.MULTILINE))
        first = rows[0].split()
        return len(first) >= len(self.fields) and all(NUMBER.match(field) for field in first[:5])

    def begin(self, source: Source) -> None:
        self.parts, self.jobs, self.waits = self.options.columns.get("latency", "wait").split("+"), 0, 0
        for name in self.parts:
            if name not in self.fields:
                raise MissingColumn(f"{source.name}: there is no field {name!r}; there are: {', '.join(self.fields)}")
        start = re.search(r"UnixStartTime:\s*(\d{1,11})\b", source.text)
        self.start = int(start[1]) if start else None
        rows = (line.split() for line in source.text.split("\n")[:-1] if line.lstrip()[:1] not in ("", ";", "#"))
        width = max((len(row) for row in rows), default=0)
        added = range(len(self.fields) + 1, min(width, len(self.fields) + self.added) + 1)
        self.names = [*self.fields, *(f"field{number}" for number in added)]
        self.groups = [name for name in self.names if name not in (*self.parts, "submit")]

    def parse(self, line: str) -> Parsed:
        fields, width = line.split(), len(self.names)
        if fields[0].startswith((";", "#")):
            return None
        self.jobs += 1
        if len(fields) < len(self.fields):
            return f"wrong number of fields: {len(fields)} instead of {len(self.fields)}"
        return [*fields[:width], *[""] * (width - len(fields))]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return pd.to_numeric(frame["status"], errors="coerce").isin(PARTIAL).to_numpy()

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        def number(name: str) -> NDArray[np.float64]:
            values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=np.float64)
            records.refuse(~np.isfinite(values), lambda row: f"unparseable {name}: {frame[name].iloc[row][:40]!r}")
            return values

        status, run = number("status"), number("run")
        parts = {name: number(name) for name in self.parts}
        for name, values in parts.items():
            records.refuse(values == -1, f"missing {name}: it is -1")
        records.latency = np.sum(list(parts.values()), axis=0)
        records.status[(status == CANCELLED) & (run <= 0)] = CENSORED
        records.submitted = _submitted(number("submit"), self.start)
        records.ids = frame["id"].where(frame["id"] != "-1").to_numpy(dtype=object)
        self.waits += int(np.count_nonzero(records.latency >= 0))

    def finish(self, source: Source) -> None:
        if self.jobs and not self.waits:
            raise LogError(
                f"{source.name}: every {'+'.join(self.parts)} is missing (-1), so the log has no latencies; "
                "measure another column, for example --column latency=run"
            )


def _submitted(submit: NDArray[np.float64], start: int | None) -> NDArray[np.datetime64] | None:
    known = np.isfinite(submit) & (submit >= 0) & (submit < EPOCH_TO)
    if not known.any():
        return None
    if np.median(submit[known]) > EPOCH_FROM:
        start = 0
    if start is None or start > EPOCH_TO:
        return None
    return parse_times(pd.Series(np.where(known, submit + start, np.nan)), "submit", "epoch", None)[0]


@register
class Swf(Workload):
    """SWF, 18 fields; up to three more (19 to 21) are columns of their own."""

    name = "swf"
    description = "Standard Workload Format (Parallel Workloads Archive); latency = wait"
    rank = 40
    comment = ";"
    added = 3
    fields = tuple(
        "id submit wait run procs avgcpu mem reqprocs reqtime reqmem status uid gid exe queue partition prev "
        "think".split()
    )


@register
class Gwf(Workload):
    """GWF, 29 fields."""

    name = "gwf"
    description = "Grid Workload Format (Grid Workloads Archive); latency = wait"
    rank = 30
    comment = "#"
    fields = tuple(
        "id submit wait run procs usedcpu mem reqprocs reqtime reqmem status user group exe queue partition origsite "
        "lastsite structure structureparams network disk resources reqplatform reqnetwork reqdisk reqresources vo "
        "project".split()
    )
