"""Algorithm runs of ASlib: ARFF with the run time and the status of every run."""

from __future__ import annotations

import csv
import re

import numpy as np
import pandas as pd

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import register
from latfit.logs.lines import LineFormat, Parsed, chosen, floats, set_statuses
from latfit.logs.records import Records
from latfit.logs.source import Source
from latfit.logs.times import numeric
from latfit.numbers import Bools
from latfit.table import CENSORED, COMPLETED, FAILED

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)
CUTOFF = re.compile(r"^algorithm_cutoff_time:\s*([\d.eE+]+)\s*$", re.MULTILINE)
RUN_STATUSES = {"ok": "completed", "timeout": "censored", "memout": "failed", "crash": "failed", "other": "failed"}
MIN_PENALTY = 2.0  # times the cutoff
MAX_DESCRIPTION = 1 << 20  # characters in which the cutoff is looked for


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
    signs = (r"(?i)^\s*@attribute\s+['\"]?algorithm['\"\s]", r"(?i)^\s*@attribute\s+['\"]?runstatus['\"\s]")

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
        latency = floats(frame[self.measured].fillna("-"), self.measured, records)
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
