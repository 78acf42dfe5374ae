"""Algorithm runs of ASlib: ARFF with the run time and the status of every run."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, floats
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED, FAILED

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)
CUTOFF = re.compile(r"^algorithm_cutoff_time:\s*([\d.eE+]+)\s*$", re.MULTILINE)
MEASURES = ("runtime", "time", "solver_time", "par10")
OUTCOMES = {"ok": COMPLETED, "timeout": CENSORED, "memout": FAILED, "crash": FAILED, "other": FAILED}
NOT_APPLICABLE = "not_applicable"
PAR = 2.0  # penalties are at least this many times the cutoff
HEADER = "lines of the header, and comments"
LARGEST_DESCRIPTION = 1 << 20  # characters in which the cutoff is looked for


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
    others = HEADER
    not_probes = "runs that do not apply"
    measured: str
    status: str
    cutoff: float
    below_header: bool
    longest: float  # run time of those that are ok
    shortest: float  # of those that ran into the cutoff

    def sniff(self, head: str) -> bool:
        """ARFF, with attributes for an algorithm and a status."""
        names = [name.lower() for name in _attributes(head)]
        return "algorithm" in names and "runstatus" in names

    def begin(self, source: Source) -> None:
        """The attributes, and the cutoff from the description beside the log."""
        self.names = names = _attributes(source.text)
        lowered = [name.lower() for name in names]
        usual = next((names[lowered.index(word)] for word in MEASURES if word in lowered), "runtime")
        self.measured = chosen("latency", self.options, usual, names, source.name)
        if "runstatus" not in lowered or len(set(names)) < len(names):
            raise MissingColumn(
                f"{source.name}: runs need an attribute runstatus, and names of their own: {listed(names)}"
            )
        self.status, self.cutoff = names[lowered.index("runstatus")], _cutoff(source)
        self.groups = [name for name in names if name not in (self.measured, self.status)]
        cut = "as it is: no description is beside the log" if np.isinf(self.cutoff) else f"cut at {self.cutoff:g} s"
        self.latency_is, self.submitted_is = f"{self.measured} in s, {cut}", "unknown"
        self.below_header, self.longest, self.shortest = False, 0.0, np.inf

    def parse(self, line: str) -> Parsed:
        """The fields of a line below @DATA."""
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
        """Runs that do not apply."""
        return (frame[self.status].str.strip().str.lower() == NOT_APPLICABLE).to_numpy(dtype=bool)

    def fill(self, records: Records, frame: pd.DataFrame) -> None:
        """By the word of runstatus; what was stopped was out at the cutoff."""
        records.status[:] = UNKNOWN
        latency = floats(frame[self.measured].where(frame[self.measured].notna(), "-"), self.measured, records)
        words = frame[self.status].str.strip().str.lower()
        for word, outcome in OUTCOMES.items():
            records.status[(words == word).to_numpy(dtype=bool)] = outcome
        records.refuse(
            records.status == UNKNOWN, lambda row: f"unknown runstatus: {str(frame[self.status].iloc[row])[:40]!r}"
        )
        beyond = (records.status == FAILED) & (latency > self.cutoff)
        records.status[beyond] = CENSORED
        # a run that was stopped was out at the cutoff, whatever was written for it
        known = np.isfinite(self.cutoff)
        records.latency = np.where((records.status == CENSORED) & known, self.cutoff, latency)
        self.tally.add(words, records)
        self.longest = max(self.longest, records.latency[records.status == COMPLETED].max(initial=0.0))
        self.shortest = min(self.shortest, records.latency[records.status == CENSORED].min(initial=np.inf))

    def finish(self, source: Source) -> None:
        """Refuse penalties that stand in place of run times."""
        if np.isinf(self.cutoff) and self.longest < self.shortest / PAR < np.inf:
            raise LogError(
                f"{source.name}: runs that timed out are recorded with {self.shortest:g} s and more, others with at "
                f"most {self.longest:g} s: this is a penalty such as PAR10, not a run time. Put the scenario's "
                "description.txt, with its algorithm_cutoff_time, beside the log: the runs are censored there"
            )


def _attributes(head: str) -> list[str]:
    """The names of the attributes, up to the data."""
    names = []
    for line in head.split("\n"):
        if line.strip().lower() == "@data":
            break
        if match := ATTRIBUTE.match(line.strip()):
            names.append(match[1].strip("'\""))
    return names


def _cutoff(source: Source) -> float:
    """The cutoff of the scenario, from the description beside the log; infinite where there is none."""
    for path in _descriptions(source.path):
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as file:
                found = CUTOFF.search(file.read(LARGEST_DESCRIPTION))
            if found and (cutoff := numeric(pd.Series([found[1]]))[0]) > 0:
                return float(cutoff)
    return np.inf


def _descriptions(path: Path | None) -> list[Path]:
    """Where the description may be: `description.txt`, or the log's own name with `.description.txt`."""
    if path is None:
        return []
    stem = path.name.split(".arff", 1)[0]
    return [path.with_name("description.txt"), path.with_name(f"{stem}.description.txt")]
