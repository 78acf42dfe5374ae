"""Algorithm runs of ASlib: ARFF with the run time and the status of every run."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from latfit.errors import LogError, MissingColumn, listed
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.lines import Parsed, chosen, floats, read_lines, told
from latfit.logs.outcomes import OutcomeTally
from latfit.logs.records import UNKNOWN, Records
from latfit.logs.source import Source
from latfit.logs.table import CENSORED, COMPLETED, FAILED
from latfit.logs.times import numeric

ATTRIBUTE = re.compile(r"@attribute\s+('(?:[^'\\]|\\.)*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)
CUTOFF = re.compile(r"^algorithm_cutoff_time:\s*([\d.eE+]+)\s*$", re.MULTILINE)
MEASURES = ("runtime", "time", "solver_time", "par10")
OUTCOMES = {"ok": COMPLETED, "timeout": CENSORED, "memout": FAILED, "crash": FAILED, "other": FAILED}
NOT_APPLICABLE = "not_applicable"
PAR = 2.0  # penalties are at least this many times the cutoff
HEADER = "lines of the header, and comments"
LARGEST_DESCRIPTION = 1 << 20  # characters in which the cutoff is looked for


@register
class Aslib(Format):
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

    def sniff(self, head: str) -> bool:
        """ARFF, with attributes for an algorithm and a status."""
        names = [name.lower() for name in _attributes(head)]
        return "algorithm" in names and "runstatus" in names

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the runs."""
        names = _attributes(source.text)
        lowered = [name.lower() for name in names]
        usual = next((names[lowered.index(known)] for known in MEASURES if known in lowered), "runtime")
        measured = chosen("latency", options, usual, names, source.name)
        if "runstatus" not in lowered or len(set(names)) < len(names):
            raise MissingColumn(
                f"{source.name}: runs need an attribute runstatus, and names of their own: {listed(names)}"
            )
        status = names[lowered.index("runstatus")]
        cutoff = _cutoff(source)
        outcomes = OutcomeTally("outcomes by runstatus")
        groups = [name for name in names if name not in (measured, status)]
        cut = "as it is: no description is beside the log" if np.isinf(cutoff) else f"cut at {cutoff:g} s"
        note = told(f"{measured} in s, {cut}", "unknown", groups)
        parse = _Rows(names)
        longest, shortest = 0.0, np.inf  # run times that are ok, and that ran into the cutoff

        def convert(frame: pd.DataFrame, line: NDArray[np.int64]) -> Records:
            nonlocal longest, shortest
            apart = frame[status].str.strip().str.lower() == NOT_APPLICABLE
            kept = ~apart.to_numpy(dtype=bool)
            records = _records(frame[kept].reset_index(drop=True), line[kept], measured, status, cutoff, outcomes)
            records.extras = {name: frame[name][kept].reset_index(drop=True) for name in groups}
            records.raw = frame[kept].reset_index(drop=True)
            records.notes.append(note)
            longest = max(longest, records.latency[records.status == COMPLETED].max(initial=0.0))
            shortest = min(shortest, records.latency[records.status == CENSORED].min(initial=np.inf))
            if apart.any():
                records.skipped["runs that do not apply"] = int(apart.sum())
            return records

        yield from read_lines(source, names, parse, convert, others=HEADER)
        if np.isinf(cutoff) and longest < shortest / PAR < np.inf:
            raise LogError(
                f"{source.name}: runs that timed out are recorded with {shortest:g} s and more, others with at most "
                f"{longest:g} s: this is a penalty such as PAR10, not a run time. Put the scenario's description.txt, "
                "with its algorithm_cutoff_time, beside the log: the runs are censored there"
            )
        yield outcomes.last()


class _Rows:
    """Takes the lines below @DATA apart."""

    def __init__(self, names: list[str]) -> None:
        self.width, self.below = len(names), False

    def __call__(self, line: str) -> Parsed:
        stripped = line.strip()
        if stripped.startswith("%") or not self.below:
            self.below = self.below or stripped.lower() == "@data"
            return None
        try:
            fields = next(csv.reader([stripped], quotechar="'", escapechar="\\", skipinitialspace=True))
        except (csv.Error, StopIteration) as error:
            return f"unparseable line: {error}"
        if len(fields) != self.width:
            return f"wrong number of fields: {len(fields)} instead of {self.width}"
        return [None if field.strip() == "?" else field for field in fields]


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


def _records(
    frame: pd.DataFrame, line: NDArray[np.int64], measured: str, status: str, cutoff: float, outcomes: OutcomeTally
) -> Records:
    records = Records(line, np.empty(0), np.full(line.size, UNKNOWN, dtype=np.int8))
    latency = floats(frame[measured].where(frame[measured].notna(), "-"), measured, records)
    words = frame[status].str.strip().str.lower()
    for word, outcome in OUTCOMES.items():
        records.status[(words == word).to_numpy(dtype=bool)] = outcome
    records.refuse(records.status == UNKNOWN, lambda row: f"unknown runstatus: {str(frame[status].iloc[row])[:40]!r}")
    beyond = (records.status == FAILED) & (latency > cutoff)
    records.status[beyond] = CENSORED
    # a run that was stopped was out at the cutoff, whatever was written for it
    known = np.isfinite(cutoff)
    records.latency = np.where((records.status == CENSORED) & known, cutoff, latency)
    outcomes.add(words, records)
    return records
