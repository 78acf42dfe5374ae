"""Any program as a probe: its latency is its run time, its exit status the outcome."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latfit.errors import ProbeError
from latfit.measure.targets import Attempt, Outcome, Probe, Target, argument, called, option, register


@register
@dataclass(frozen=True)
class Command(Target):
    """A program, run without a shell; exit status 0 is completed, any other failed.

    At the cutoff its whole process group gets SIGTERM and, two seconds later, SIGKILL. `cancel` removes what the
    program submits elsewhere.
    """

    name = "command"
    summary = "Run a program; its exit status 0 is completed, any other failed."
    example = "latfit probe command -o probes.jsonl --in-flight 5 -- ssh node7 hostname"
    same = ("program",)

    words: tuple[str, ...] = argument("CMD...")
    cancel: str | None = option(
        None, "A program, without a shell, that removes what CMD submitted elsewhere, such as 'scancel --name {probe}'."
    )

    def __post_init__(self) -> None:
        if not self.words:
            raise ProbeError("there is no program to run; write it after --, for example: -- /bin/hostname")

    @asynccontextmanager
    async def open(self, run: str) -> AsyncIterator[Probe]:
        for program in (self.words[0], *(shlex.split(self.cancel)[:1] if self.cancel else ())):
            if shutil.which(program) is None:
                raise ProbeError(f"{program}: there is no such program to run, or it is not executable")
        with ThreadPoolExecutor(8192, "latfit-probe") as pool:  # a thread per program; more than are ever in flight

            async def probe(attempt: Attempt) -> Outcome:
                loop = asyncio.get_running_loop()
                program = _Program(list(map(attempt.fill, self.words)), attempt.environment)
                end = loop.run_in_executor(pool, program.run)
                try:
                    return await asyncio.shield(end)
                except asyncio.CancelledError:
                    await asyncio.gather(loop.run_in_executor(pool, program.stop), self.cancelled(attempt))
                    await end
                    raise

            yield probe

    def shown(self, attempt: Attempt) -> str:
        return shlex.join(attempt.fill(word) for word in self.words)

    def public(self) -> dict[str, Any]:
        """The program alone: its arguments may hold a password."""
        return {"program": self.words[0], "cancel": shlex.split(self.cancel)[0] if self.cancel else None}

    async def clear(self, left: Sequence[Attempt], runs: Sequence[str]) -> int:
        """End the processes of the runs, found by their environment, and cancel the probes without an end."""
        ended = await asyncio.to_thread(end_processes_of, runs)
        for attempt in left if self.cancel else ():
            await self.cancelled(attempt)
        return ended + (len(left) if self.cancel else 0)

    async def cancelled(self, attempt: Attempt) -> None:
        if self.cancel:
            await called(*map(attempt.fill, shlex.split(self.cancel)), environment=attempt.environment)


class _Program:
    """A program in its own process group; started, timed and reaped in one thread, stopped from another."""

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self.words, self.environment = words, environment
        self.lock = threading.Lock()
        self.stopped = False
        self.group: int | None = None  # until the leader is reaped, its number cannot be used again

    def run(self) -> Outcome:
        null = subprocess.DEVNULL
        with self.lock:
            if self.stopped:
                return Outcome("censored", 0.0, "stopped")
            start = time.monotonic()
            try:
                process = subprocess.Popen(
                    self.words, stdin=null, stdout=null, stderr=null, env=self.environment, start_new_session=True
                )
            except OSError as error:
                return Outcome("failed", time.monotonic() - start, f"cannot be run: {error.strerror}")
            self.group = process.pid
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        latency = time.monotonic() - start
        with self.lock:
            code = process.wait()
            if not self.stopped:
                self.group = None
        detail = f"exit {code}" if code >= 0 else f"signal {-code}"
        return Outcome("completed" if code == 0 else "failed", latency, detail)

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            group = self.group
            if group is not None:
                _signal(group, signal.SIGTERM)
        if group is not None and not _until(lambda: not _signal(group, 0)):
            _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group; returns whether the group exists."""
    with suppress(PermissionError):  # it exists, but belongs to another user
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return False
    return True


def _until(over: Callable[[], bool]) -> bool:
    """Wait for at most two seconds until something is over; returns whether it is."""
    end, nap = time.monotonic() + 2.0, 0.005
    while not over():
        if time.monotonic() > end:
            return False
        time.sleep(nap)
        nap = min(2 * nap, 0.1)
    return True


def _processes_of(runs: Sequence[str]) -> list[int]:
    """The processes whose environment names one of the runs; none without /proc."""
    wanted = {f"LATFIT_RUN={run}".encode() for run in runs}
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if wanted.intersection((entry / "environ").read_bytes().split(b"\0")) and int(entry.name) != os.getpid():
                pids.append(int(entry.name))
    return pids


def end_processes_of(runs: Sequence[str]) -> int:
    """End the processes whose environment names one of the runs; returns how many there were."""
    pids = _processes_of(runs)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _processes_of(runs):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if _until(lambda: not _processes_of(runs)):
            break
    return len(pids)
