"""The log of `latfit probe`: a header for each run, a line when a probe is submitted, a line when it ends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from latfit.errors import LogError
from latfit.logs.formats import Format, ReadOptions, register
from latfit.logs.records import Records, shown
from latfit.logs.source import Source
from latfit.table import CENSORED, STATUSES

SHOWN_DETAILS = 8
CLOSED = (
    "measured in a closed loop of {n} at a time: slowness that all share is understated, up to threefold; "
    "--arrivals poisson shows it"
)


@dataclass
class _Probe:
    """What the log has told of a probe so far; `t` is in seconds since its run began."""

    line: int
    run: str
    number: int
    job: int
    attempt: int
    submitted: str
    t: float
    latency: float = np.nan
    status: int = CENSORED


@dataclass
class _State:
    """The run that is being read, and the probes of it that are on their way."""

    run: str = ""
    kind: str = "probes"
    t: float = 0.0
    out: dict[int, _Probe] = field(default_factory=dict)
    ended: list[_Probe] = field(default_factory=list)
    details: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    censored: int = 0
    ends_alone: bool = False  # whether an end may stand without the line of its submission

    def close(self) -> None:
        """End a run: whatever is on its way is censored at the last time that the log knows."""
        for probe in self.out.values():
            probe.latency = max(0.0, self.t - probe.t)
            self.ended.append(probe)
        self.censored += len(self.out)
        self.out = {}


@register
class Probe(Format):
    """Columns: run; job and attempt for jobs and pairs. No end: censored at the last time known of its run."""

    name = "probe"
    description = "log of latfit probe; latency by a monotonic clock"
    rank = 12

    def sniff(self, head: str) -> bool:
        """By the header of its first run."""
        return head.lstrip().startswith('{"latfit": "probe"')

    def waits_in_queue(self, head: str) -> bool:
        """A batch system was probed: who resubmits goes to the end of its queue."""
        return '"target": "slurm"' in head.lstrip().split("\n", 1)[0]

    def read(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the probes as they end."""
        state = _State()
        yield from _blocks(source, state)
        state.close()
        if not state.run:
            raise LogError(f"{source.name}: there is no header of a run in this log")
        last = _records(state)
        last.notes += [*state.notes, *_told(state)]
        yield last

    def read_appended(self, source: Source, options: ReadOptions) -> Iterator[Records]:
        """Records of the ends alone: each tells its status and latency, and what is on its way will tell its own."""
        return _blocks(source, _State(ends_alone=True))


def _blocks(source: Source, state: _State) -> Iterator[Records]:
    """The probes that ended, block by block, and lines that cannot be read."""
    for block in source.blocks():
        broken: dict[int, str] = {}
        for number, line in enumerate(block.lines(), start=block.first_line):
            try:
                if line.strip():
                    _note(state, json.loads(line), number)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
                broken[number] = shown(len(broken), "unparseable line", f"{line[:60]!r}")
        if broken:
            yield Records.unusable(broken)
        if state.ended:
            yield _records(state)


def _note(state: _State, line: dict[str, Any], number: int) -> None:
    """Take a line into account."""
    if "latfit" in line:
        state.close()
        state.run, state.kind, state.t = str(line["run"]), str(line["kind"]), 0.0
        if line.get("arrivals") == "closed":
            state.notes[CLOSED.format(n=int(line["in_flight"]))] = None
        return
    if "probe" in line:
        job, attempt = (int(np.int64(int(line[name]))) for name in ("job", "attempt"))  # beyond that it overflows
        t = float(line["t"])
        state.out[int(line["probe"])] = _Probe(
            number, state.run, int(line["probe"]), job, attempt, str(line["submitted"]), t
        )
        state.t = max(state.t, t)
    elif "end" in line:
        status, latency, t = STATUSES.index(line["status"]), float(line["latency"]), float(line["t"])
        number_of = int(line["end"])
        if state.ends_alone:
            state.out[number_of] = _Probe(number, state.run, number_of, 0, 1, "", t)
        probe = state.out.pop(number_of)
        probe.status, probe.latency = status, latency
        state.ended.append(probe)
        state.t = max(state.t, t)
        if line["status"] == "failed":
            state.details[str(line.get("detail", ""))] += 1
    elif "beat" in line or "finished" in line:
        state.t = max(state.t, float(line["t"] if "t" in line else line["beat"]))


def _told(state: _State) -> Iterator[str]:
    """What to say of the log beside its probes."""
    if state.censored:
        yield f"probes without an end: {state.censored}, censored at the last time that the log knows of their run"
    if state.details:
        most = ", ".join(f"{count} × {detail}" for detail, count in state.details.most_common(SHOWN_DETAILS))
        yield f"failed: {most}"


def _records(state: _State) -> Records:
    probes, state.ended = state.ended, []
    times = pd.Series([p.submitted for p in probes], dtype="str")
    submitted = pd.to_datetime(times, errors="coerce", utc=True, format="ISO8601")
    records = Records(
        line=np.array([p.line for p in probes], dtype=np.int64),
        latency=np.array([p.latency for p in probes], dtype=np.float64),
        status=np.array([p.status for p in probes], dtype=np.int8),
        submitted=submitted.dt.tz_localize(None).to_numpy().astype("datetime64[us]"),
        ids=np.array([f"{p.run}.{p.number}" for p in probes], dtype=object),
    )
    records.extras = {"run": pd.Series([p.run for p in probes], dtype="str")}
    if state.kind != "probes":
        records.extras["job"] = pd.Series([p.job for p in probes], dtype="int64")
        records.extras["attempt"] = pd.Series([p.attempt for p in probes], dtype="int64")
    return records
