"""The log of `latfit probe`: a header for each run, a line when a probe is submitted, a line when it ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Source
from latfit.table import CENSORED, STATUSES


@register
class Probe(Format):
    """Columns: run; job and attempt for jobs and pairs. No end: censored at the last time known of its run."""

    name = "probe"
    description = "log of latfit probe; latency by a monotonic clock"
    rank = 12
    begins = r'\{"latfit": "probe"'

    def waits_in_queue(self, head: str) -> bool:
        """A batch system was probed: who resubmits goes to the end of its queue."""
        return '"target": "slurm"' in head.lstrip().split("\n", 1)[0]

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        runs = _Runs()
        yield from runs.blocks(source)
        runs.close()
        if not runs.run:
            raise LogError(f"{source.name}: there is no header of a run in this log")
        last = runs.records()
        last.notes += runs.notes
        if runs.censored:
            unended = f"probes without an end: {runs.censored}"
            last.notes.append(f"{unended}, censored at the last time that the log knows of their run")
        if runs.details:
            most = ", ".join(f"{count} × {detail}" for detail, count in runs.details.most_common(8))
            last.notes.append(f"failed: {most}")
        yield last

    def read_appended(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the ends alone: each has its status and latency, and what is on its way will have its own."""
        return _Runs(ends_alone=True).blocks(source)


@dataclass
class _Probe:
    """What is known of a probe so far; `t` is in seconds since its run began."""

    line: int
    run: str
    number: int
    t: float
    job: int = 0
    attempt: int = 1
    submitted: str = ""
    latency: float = np.nan
    status: int = CENSORED


class _Runs:
    def __init__(self, *, ends_alone: bool = False) -> None:
        self.run, self.kind, self.t, self.censored = "", "probes", 0.0, 0
        self.ends_alone = ends_alone  # whether an end may stand without the line of its submission
        self.out: dict[int, _Probe] = {}
        self.ended: list[_Probe] = []
        self.details: Counter[str] = Counter()
        self.notes: dict[str, None] = {}

    def blocks(self, source: Source) -> Iterator[Records]:
        for block in source.blocks():
            broken: dict[int, str] = {}
            for number, line in enumerate(block.lines(), start=block.first_line):
                try:
                    if line.strip():
                        self._add(json.loads(line), number)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
                    broken[number] = shown(len(broken), "unparseable line", f"{line[:60]!r}")
            if broken:
                yield Records.unusable(broken)
            if self.ended:
                yield self.records()

    def close(self) -> None:
        """End a run: whatever is on its way is censored at the last time that the log knows."""
        for probe in self.out.values():
            probe.latency = max(0.0, self.t - probe.t)
            self.ended.append(probe)
        self.censored += len(self.out)
        self.out = {}

    def _add(self, line: dict[str, Any], number: int) -> None:
        if "latfit" in line:
            self.close()
            self.run, self.kind, self.t = str(line["run"]), str(line["kind"]), 0.0
            if line.get("arrivals") == "closed":
                note = (
                    f"measured in a closed loop of {int(line['in_flight'])} at a time: slowness that all share is "
                    "understated, up to threefold; --arrivals poisson shows it"
                )
                self.notes[note] = None
        elif "probe" in line:
            job, attempt = (int(np.int64(int(line[name]))) for name in ("job", "attempt"))  # beyond that it overflows
            t, key = float(line["t"]), int(line["probe"])
            self.out[key] = _Probe(number, self.run, key, t, job, attempt, str(line["submitted"]))
            self.t = max(self.t, t)
        elif "end" in line:
            status, latency, t = STATUSES.index(line["status"]), float(line["latency"]), float(line["t"])
            key = int(line["end"])
            probe = _Probe(number, self.run, key, t) if self.ends_alone else self.out.pop(key)
            probe.status, probe.latency = status, latency
            self.ended.append(probe)
            self.t = max(self.t, t)
            if line["status"] == "failed":
                self.details[str(line.get("detail", ""))] += 1
        elif "beat" in line or "finished" in line:
            self.t = max(self.t, float(line["t"] if "t" in line else line["beat"]))

    def records(self) -> Records:
        if not self.ended:
            return Records.unusable({})
        frame, self.ended = pd.DataFrame([vars(probe) for probe in self.ended]), []
        submitted = pd.to_datetime(frame["submitted"].astype("str"), errors="coerce", utc=True, format="ISO8601")
        records = Records(
            line=frame["line"].to_numpy(np.int64),
            latency=frame["latency"].to_numpy(np.float64),
            status=frame["status"].to_numpy(np.int8),
            submitted=submitted.dt.tz_localize(None).to_numpy().astype("datetime64[us]"),
            ids=(frame["run"] + "." + frame["number"].astype("str")).to_numpy(dtype=object),
        )
        names = ("run",) if self.kind == "probes" else ("run", "job", "attempt")
        records.extras = {name: frame[name] for name in names}
        return records
