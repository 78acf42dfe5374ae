"""Archives of public logs: the Standard and the Grid Workload Format, and algorithm runs of ASlib (ARFF)."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import EPOCH_FROM, LineFormat, Parsed, chosen, set_statuses
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.tabular import seconds_of
from latfit.logs.times import numeric, parse_times
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED, FAILED

NUMBER = re.compile(r"^[-+]?[\d.]+(?:[eE][-+]?\d+)?$")
CANCELLED, PARTIAL = 5, (2, 3, 4)  # statuses; partial executions are of a job that has a line of its own
EPOCH_TO = 1e11

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)
CUTOFF = re.compile(r"^algorithm_cutoff_time:\s*([\d.eE+]+)\s*$", re.MULTILINE)
RUN_STATUSES = {"ok": "completed", "timeout": "censored", "memout": "failed", "crash": "failed", "other": "failed"}
MIN_PENALTY = 2.0  # times the cutoff
MAX_DESCRIPTION = 1 << 20  # characters in which the cutoff is looked for


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
        start = re.search(r"UnixStartTime:\s*(\d{1,10})\b", source.text)
        self.start = int(start[1]) if start else 0  # without one, times are relative: the log begins in 1970
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
        submit = number("submit")
        submit = np.where((submit >= 0) & (submit < EPOCH_TO), submit, np.nan)
        start = 0 if (submit > EPOCH_FROM).any() else self.start
        records.submitted = parse_times(pd.Series(submit + start), "submit", "epoch", None)[0]
        records.ids = frame["id"].where(frame["id"] != "-1").to_numpy(dtype=object)
        self.waits += int(np.count_nonzero(records.latency >= 0))

    def finish(self, source: Source) -> None:
        if self.jobs and not self.waits:
            raise LogError(
                f"{source.name}: every {'+'.join(self.parts)} is missing (-1), so the log has no latencies; "
                "measure another column, for example --column latency=run"
            )


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


@register
class Aslib(LineFormat):
    """Latency is the run time in s: ok is completed, timeout censored at the cutoff, any other end failed.

    The cutoff is `algorithm_cutoff_time` of the description beside the log. A run that ended otherwise with
    more than the cutoff (PAR10 writes ten times the cutoff) is censored at the cutoff, too. Without a
    description a run that timed out is censored at its run time, unless that looks like PAR10: an error.
    """

    name = "aslib"
    by_line = False
    description = "ASlib algorithm runs (ARFF); latency = runtime, cutoff from the description beside it"
    rank = 10
    roles = ("latency",)
    outcomes = "outcomes by runstatus"
    others = "lines of the header, and comments"
    not_probes = "runs that do not apply"
    signs = (r"(?i)^[ \t]*@attribute[ \t]+['\"]?algorithm['\"\s]", r"(?i)^[ \t]*@attribute[ \t]+['\"]?runstatus['\"\s]")

    def begin(self, source: Source) -> None:
        header = re.split(r"^\s*@data\s*$", source.text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0]
        matches = (ATTRIBUTE.match(line.strip()) for line in header.split("\n"))
        self.names = names = [str(match[1]).strip("'\"") for match in matches if match]
        by_word = {name.lower(): name for name in reversed(names)}
        usual = next((by_word[w] for w in ("runtime", "time", "solver_time", "par10") if w in by_word), "runtime")
        self.measured = chosen("latency", self.options, usual, names, source.name)
        if "runstatus" not in by_word or len(set(names)) < len(names):
            raise MissingColumn(
                f"{source.name}: runs need an attribute runstatus, and names of their own: {listed(names)}"
            )
        self.status, self.cutoff = by_word["runstatus"], _cutoff(source)
        self.groups = [name for name in names if name not in (self.measured, self.status)]
        cut = "as it is: no description is beside the log" if np.isinf(self.cutoff) else f"cut at {self.cutoff:g} s"
        self.latency_is = f"{self.measured} in s, {cut}"
        self.below_header = False
        self.longest, self.shortest = 0.0, np.inf  # run time of those that are ok, of those that ran into the cutoff

    def parse(self, line: str) -> Parsed:
        stripped = line.strip()
        if stripped.startswith("%") or not self.below_header:
            self.below_header = self.below_header or stripped.lower() == "@data"
            return None
        try:
            fields = next(csv.reader([stripped], quotechar="'", escapechar="\\", skipinitialspace=True))
        except (csv.Error, StopIteration) as error:
            return f"unparseable line: {error}"
        if len(fields) != len(self.names):
            return f"wrong number of fields: {len(fields)} instead of {len(self.names)}"
        return [None if field.strip() == "?" else field for field in fields]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return (frame[self.status].str.strip().str.lower() == "not_applicable").to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        latency = seconds_of(frame[self.measured].fillna("-"), self.measured, "s", records)
        words = frame[self.status].str.strip().str.lower()
        set_statuses(records, words, RUN_STATUSES, "runstatus")
        records.status[(records.status == FAILED) & (latency > self.cutoff)] = CENSORED
        # a run that was stopped was out at the cutoff, whatever was written for it
        stopped = (records.status == CENSORED) & np.isfinite(self.cutoff)
        records.latency = np.where(stopped, self.cutoff, latency)
        self.tally.add(words, records)
        self.longest = max(self.longest, records.latency[records.status == COMPLETED].max(initial=0.0))
        self.shortest = min(self.shortest, records.latency[records.status == CENSORED].min(initial=np.inf))

    def finish(self, source: Source) -> None:
        if np.isinf(self.cutoff) and self.longest < self.shortest / MIN_PENALTY < np.inf:
            raise LogError(
                f"{source.name}: runs that timed out are recorded with {self.shortest:g} s and more, others with at "
                f"most {self.longest:g} s: this is a penalty such as PAR10, not a run time. Put the scenario's "
                "description.txt, with its algorithm_cutoff_time, beside the log: the runs are censored there"
            )


def _cutoff(source: Source) -> float:
    """The cutoff of the scenario, from `description.txt` or `LOG.description.txt` beside it; infinite without one."""
    stem = source.path.name.split(".arff", 1)[0] if source.path else ""
    for name in ("description.txt", f"{stem}.description.txt"):
        if source.path and (path := source.path.with_name(name)).is_file():
            with path.open(encoding="utf-8", errors="replace") as file:
                match = CUTOFF.search(file.read(MAX_DESCRIPTION))
            if match and (cutoff := numeric(pd.Series([match[1]]))[0]) > 0:
                return float(cutoff)
    return np.inf
