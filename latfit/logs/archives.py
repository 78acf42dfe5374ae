"""Archives of public logs: the Standard and the Grid Workload Format, and algorithm runs of ASlib (ARFF)."""

from __future__ import annotations

import csv
import re
from typing import ClassVar

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Head, register
from latfit.logs.lines import EPOCH_FROM, LineFormat, chosen, either
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED

NUMBER = r"[-+]?[\d.]+(?:[eE][-+]?\d+)?"
CANCELLED, PARTIAL = 5, ("2", "3", "4")  # statuses; partial executions are of a job that has a line of its own
EPOCH_TO = 1e11

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)
CUTOFF = re.compile(r"^algorithm_cutoff_time:\s*([\d.eE+]+)\s*$", re.MULTILINE)
RUN_STATUSES = {"ok": "completed", "timeout": "censored", "memout": "failed", "crash": "failed", "other": "failed"}
MIN_PENALTY = 2.0  # times the cutoff
MAX_DESCRIPTION = 1 << 20  # characters in which the cutoff is looked for


def _first_row(fields: int, comment: str) -> str:
    """The pattern of a log whose first row, below comments, has so many fields, or of a header alone."""
    row = rf"(?:[;#].*\n|\s)*+(?:{NUMBER}[ \t]+){{5}}(?:\S+[ \t]+){{{fields - 6}}}\S"
    return rf"{row}|(?={comment})(?=(?:.*\n)*?[;#]\s*\w+:)(?:[;#].*(?:\n|\Z)|\s)+\Z"


class Workload(LineFormat):
    """Logs of jobs with fields separated by white space, −1 for what is missing.

    Latency is the wait in the queue (`--column latency=wait+run` for the whole time in the system).
    A job that started is completed, whatever became of it; one cancelled before it ran is censored.
    """

    kind, queue = "jobs", True
    roles, uses = ("latency",), ()
    cells = "latency submitted status=outcome id"
    time_style = "epoch"
    others = ""
    nothing = "there is a header but no job below it"
    not_probes = "executions of a part of a job"
    fields: ClassVar[tuple[str, ...]]
    added: ClassVar[int] = 0  # how many fields beyond its own a line may have that are columns too

    def begin(self, source: Source) -> None:
        self.parts, self.jobs, self.waits = self.options.columns.get("latency", "wait").split("+"), 0, 0
        for name in self.parts:
            if name not in self.fields:
                raise MissingColumn(f"{source.name}: there is no field {name!r}; there are: {', '.join(self.fields)}")
        start = re.search(r"UnixStartTime:\s*(\d{1,10})\b", source.text)
        self.start = int(start[1]) if start else 0  # without one, times are relative: the log begins in 1970
        rows = (line.split() for line in Head(source.text).lines if line.lstrip()[:1] not in (";", "#"))
        added = range(len(self.fields), min(max(map(len, rows), default=0), len(self.fields) + self.added))
        self.names = [*self.fields, *(f"field{at + 1}" for at in added)]
        self.groups = [name for name in self.names if name not in (*self.parts, "submit")]
        self.latency_is = f"{'+'.join(self.parts)} in s"

    def row(self, line: str) -> list[str] | str | None:
        fields, width = line.split(), len(self.names)
        if fields[0].startswith((";", "#")):
            return None
        self.jobs += 1
        if len(fields) < len(self.fields):
            return f"wrong number of fields: {len(fields)} instead of {len(self.fields)}"
        return [*fields[:width], *[""] * (width - len(fields))]

    def left_out(self, frame: pd.DataFrame) -> Bools:
        return frame["status"].isin(PARTIAL).to_numpy()

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        self.numbers = numbers = {name: numeric(frame[name]) for name in ("status", "run", "submit", *self.parts)}
        submit = np.where((numbers["submit"] >= 0) & (numbers["submit"] < EPOCH_TO), numbers["submit"], np.nan)
        cancelled = (numbers["status"] == CANCELLED) & (numbers["run"] <= 0)
        return frame.assign(
            latency=np.sum([numbers[name] for name in self.parts], axis=0),
            submitted=submit if (submit > EPOCH_FROM).any() else submit + self.start,
            outcome=either(cancelled, "censored", "completed"),
            id=frame["id"].where(frame["id"] != "-1"),
        )

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
        for name, values in self.numbers.items():
            for row in np.flatnonzero(~np.isfinite(values)):
                records.reasons.setdefault(int(row), f"unparseable {name}: {frame[name].iloc[row][:40]!r}")
        for name in self.parts:
            records.refuse(self.numbers[name] == -1, f"missing {name}: it is -1")
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
    added = 3
    begins = _first_row(18, ";")
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
    begins = _first_row(29, "#")
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
    roles, uses = ("latency",), ("statuses",)
    cells = "latency status=outcome"
    outcomes = RUN_STATUSES
    others = "lines of header or comments"
    not_probes = "runs with the status not applicable"
    signs = (r"(?i)^[ \t]*@attribute[ \t]+['\"]?algorithm['\"\s]", r"(?i)^[ \t]*@attribute[ \t]+['\"]?runstatus['\"\s]")

    def begin(self, source: Source) -> None:
        header = re.split(r"^\s*@data\s*$", source.text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[0]
        matches = (ATTRIBUTE.match(line.strip()) for line in header.split("\n"))
        self.names = names = [str(match[1]).strip("'\"") for match in matches if match]
        by_word = {name.lower(): name for name in reversed(names)}
        usual = next((by_word[w] for w in ("runtime", "time", "solver_time", "par10") if w in by_word), "runtime")
        self.columns["latency"] = measured = chosen("latency", self.options, usual, names, source.name)
        if "runstatus" not in by_word or len(set(names)) < len(names):
            raise MissingColumn(
                f"{source.name}: runs need an attribute runstatus, and names of their own: {listed(names)}"
            )
        self.status, self.cutoff = by_word["runstatus"], _cutoff(source)
        self.counted_by = self.status
        self.groups = [name for name in names if name not in (measured, self.status)]
        cut = "as it is: no description is beside the log" if np.isinf(self.cutoff) else f"cut at {self.cutoff:g} s"
        self.latency_is = f"{measured} in s, {cut}"
        self.below_header = False
        self.longest, self.shortest = 0.0, np.inf  # run time of those that are ok, of those that ran into the cutoff

    def row(self, line: str) -> list[str | None] | str | None:
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

    def adjust(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A run that was stopped was out at the cutoff, whatever was written for it."""
        measured, words = self.columns["latency"], frame[self.status].str.strip().str.lower()
        failed = words.isin([word for word, outcome in RUN_STATUSES.items() if outcome == "failed"])
        stopped = (words == "timeout") | (failed & (numeric(frame[measured]) > self.cutoff))
        cut = stopped & np.isfinite(self.cutoff)
        return frame.assign(
            outcome=words.mask(stopped, "timeout"), **{measured: frame[measured].mask(cut, str(self.cutoff))}
        )

    def amend(self, records: Records, frame: pd.DataFrame) -> None:
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
