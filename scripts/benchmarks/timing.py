"""Measuring: rounds in which latfit and its rival take turns, medians, and the peak memory of a process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard; `ratio` is rival / latfit for speed-ups (`≥` targets), latfit / rival otherwise."""

    work: str
    rival: str
    rival_value: float | None
    latfit_value: float | None
    unit: str
    target: str
    ratio: float | None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is reached, None where there is nothing to compare with."""
        if self.ratio is None or not self.target.startswith(("≥", "≤")):
            return None
        bound = float(self.target.split()[1])
        return self.ratio >= bound if self.target.startswith("≥") else self.ratio <= bound


def seconds(run: Callable[[], Any]) -> float:
    """Wall-clock time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def in_turns(rounds: int, *runs: Callable[[], float]) -> list[list[float]]:
    """What each run measured, the runs taking turns so that the machine's moods hit all alike."""
    measured: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for values, run in zip(measured, runs, strict=True):
            values.append(run())
    return measured


def median(values: list[float]) -> float:
    """The median of what was measured."""
    return statistics.median(values)


def spread(values: list[float]) -> str:
    """Smallest to largest, for the note."""
    return f"{min(values):.3g}–{max(values):.3g}"


MEASURE = """
import json, pathlib, time
{setup}
start = time.perf_counter()
{work}
elapsed = time.perf_counter() - start
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps([elapsed, int(status.split("VmHWM:")[1].split()[0]) / 1024]))
"""


def in_process(setup: str, work: str) -> tuple[float, float]:
    """Seconds and peak MiB of some code in a process of its own; imports are in the peak, not in the time."""
    code = MEASURE.format(setup=setup, work=work)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    elapsed, peak = json.loads(done.stdout.splitlines()[-1])
    return elapsed, peak
