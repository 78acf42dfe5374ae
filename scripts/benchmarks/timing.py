"""Measuring: rounds in which latfit and its rival take turns, and the peak memory of a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import latfit

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # latfit must be compiled once, as an installed package is

Run = Callable[[], Any]
PACKAGE = str(Path(latfit.__file__).parent)
Judge = Callable[[Any, Any], tuple[bool | None, str]]


@dataclass(frozen=True)
class Row:
    """One line of the scoreboard: what both sides measured, round by round, and whether their answers agree.

    A target is "≥ 15 ×" (rival / latfit), "≤ 1.2 ×" (latfit / rival), or the sign alone where none was set.
    `agree`: latfit's answer is the same or better; None where the two answers cannot be compared.
    """

    key: str
    work: str
    rival: str
    target: str
    theirs: list[float]
    ours: list[float]
    unit: str = "s"
    agree: bool | None = None
    answers: str = ""

    @property
    def bound(self) -> float | None:
        """The number of the target."""
        return float(self.target.split()[1]) if " " in self.target else None

    @property
    def ratio(self) -> float | None:
        """Of the smallest figures: other work on the machine can only add. None where the rival was not measured."""
        if not self.theirs:
            return None
        theirs, ours = min(self.theirs), min(self.ours)
        return theirs / ours if self.target.startswith("≥") else ours / theirs

    @property
    def met(self) -> bool | None:
        """Whether the target is reached without a worse answer, None where there is nothing to compare with."""
        if self.ratio is None or self.bound is None:
            return None
        reached = self.ratio >= self.bound if self.target.startswith("≥") else self.ratio <= self.bound
        return reached and self.agree is not False


class Timed(NamedTuple):
    """How long something took and what came out; work that knows its own time better returns one of these."""

    seconds: float
    result: Any


def timed(run: Run) -> Timed:
    """One call with its wall-clock time."""
    start = time.perf_counter()
    result = run()
    elapsed = time.perf_counter() - start
    return result if isinstance(result, Timed) else Timed(elapsed, result)


def in_turns(rounds: int, *runs: Run) -> list[list[Timed]]:
    """What each run measured, the runs taking turns so that the machine's moods hit all alike.

    Where there are three rounds or more, one goes before them to warm up.
    """
    measured: list[list[Timed]] = [[] for _ in runs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds + (rounds > 2)):
            for found, run in zip(measured, runs, strict=True):
                found.append(timed(run))
    return [found[-rounds:] for found in measured]


def seconds(measured: list[Timed], scale: float = 1.0) -> list[float]:
    """The times alone, times `scale`."""
    return [scale * one.seconds for one in measured]


def duel(key: str, work: str, rival: str, target: str, theirs: Run, ours: Run, *, rounds: int = 5,
         scale: float = 1.0, judge: Judge | None = None) -> Row:  # fmt: skip
    """One row; `scale` multiplies the rival's time where it did only a part of the work.

    `judge` says whether latfit's answer is as good, and how the two compare. A rival that is missing or fails is
    listed with the reason.
    """
    try:
        a, b = in_turns(rounds, theirs, ours)
    except Exception as problem:
        told = f"not measured: {type(problem).__name__}: {str(problem).splitlines()[0]}"
        return Row(key, work, rival, target, [], seconds(in_turns(rounds, ours)[0]), answers=told[:200])
    agree, told = judge(a[-1].result, b[-1].result) if judge else (None, "")
    return Row(key, work, rival, target, seconds(a, scale), seconds(b), agree=agree, answers=told)


def never_worse(gaps: list[float], what: str) -> tuple[bool, str]:
    """What the judge says of log-likelihoods, latfit's minus the rival's."""
    ok = min(gaps) >= -1e-6
    told = "never worse" if ok else "WORSE"
    return ok, f"{what} {told}: latfit − rival {min(gaps):+.1e} to {max(gaps):+.1e} in {len(gaps)} fits"


MEASURE = """
import json, pathlib, time
{setup}
start = time.perf_counter()
{work}
elapsed = time.perf_counter() - start
status = pathlib.Path("/proc/self/status").read_text()
peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
print(json.dumps([elapsed, peak, {answer}]))
"""


class Cost(NamedTuple):
    """Peak memory of a process in MiB, and the answer that it printed."""

    peak: float
    answer: Any


def in_process(setup: str, work: str, answer: str = "None") -> Timed:
    """The time of some code in a process of its own, with its `Cost`; imports are in the peak, not in the time."""
    code = MEASURE.format(setup=setup, work=work, answer=answer)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    elapsed, peak, found = json.loads(done.stdout.splitlines()[-1])
    return Timed(elapsed, Cost(peak, found))


LAUNCH = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
_, code, used = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(code)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
sys.exit(child.returncode)
"""  # a small process of its own: a child begins with the peak memory of the one that started it


def ran(*words: str) -> Timed:
    """The processor time and the peak memory of a process, those that it waited for included."""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", LAUNCH, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-300:])
    spent, peak = map(float, done.stdout.split())
    return Timed(spent, Cost(peak, None))


class CallCounter:
    """Counts the calls of latfit's functions while it is `on`, also in threads started after it was made."""

    def __init__(self) -> None:
        self.count, self.on = 0, False
        threading.setprofile(self)
        sys.setprofile(self)

    def __call__(self, frame: Any, event: str, _: Any) -> None:
        self.count += self.on and event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    def during(self, run: Run) -> Any:
        self.on = True
        result = run()
        self.on = False
        return result

    def end(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)
