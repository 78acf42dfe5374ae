"""The log of a measurement: append-only JSON lines that survive a kill at any moment.

A run begins with a header, `{"latfit": "probe", "run": …}`. Each probe has a line when it is submitted,
`{"probe": 7, "job": 7, "attempt": 1, "submitted": "…Z", "t": 1.25}`, and one when it ends,
`{"end": 7, "status": "completed", "latency": 0.2, "detail": "exit 0", "t": 1.45}`; `t` is in seconds since the header,
by a monotonic clock. Every few seconds a beat, `{"beat": …}`, records how late the measuring process itself is. A run
that was not killed ends with `{"finished": …}`; `{"cleared": RUN}` says that the rest of a killed run was removed.
Each line is one `write`, so it is complete or absent. `latfit.logs.probe` reads the log.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from latfit._system import write_all
from latfit.errors import ProbeError
from latfit.measure.targets import Attempt, Outcome


def new_run() -> str:
    """An id for a run, from its time and random digits; it can be part of a job's name."""
    return f"{datetime.now(UTC):%Y%m%dt%H%M%S}-{token_hex(3)}"


@dataclass
class Earlier:
    """What a log already contains: the last numbers, the headers, and the probes without an end in unfinished runs."""

    probes: int = 0
    jobs: int = 0
    headers: list[dict[str, Any]] = field(default_factory=list)
    unfinished: dict[str, dict[int, Attempt]] = field(default_factory=dict)

    @property
    def left(self) -> list[Attempt]:
        return [attempt for probes in self.unfinished.values() for attempt in probes.values()]


class Journal:
    """The log of one run, open for appending; `write` adds a line."""

    def __init__(self, file: int, path: Path, run: str) -> None:
        self.file, self.path, self.run = file, path, run
        self.start = time.monotonic()

    @property
    def t(self) -> float:
        """Seconds since the run began."""
        return round(time.monotonic() - self.start, 6)

    def write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        write_all(self.file, text.encode(errors="replace"), self.path)

    def submitted(self, attempt: Attempt) -> None:
        numbers = {"probe": attempt.probe, "job": attempt.job, "attempt": attempt.attempt}
        self.write({**numbers, "submitted": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}", "t": self.t})

    def ended(self, attempt: Attempt, outcome: Outcome) -> None:
        result = {"status": outcome.status, "latency": round(outcome.latency, 6), "detail": outcome.detail[:200]}
        self.write({"end": attempt.probe, **result, "t": self.t})


@contextmanager
def open_journal(path: Path, run: str, *, resume: bool) -> Iterator[tuple[Journal, Earlier]]:
    """The log for a new run, and what earlier runs wrote there; only one process at a time may write it."""
    if path.is_dir() or not path.parent.is_dir():
        raise ProbeError(f"{path}: {'this is a directory' if path.is_dir() else 'there is no such folder'}")
    created = not path.exists()
    if not resume and not created and path.stat().st_size:
        raise ProbeError(f"{path}: this log exists; continue it with --resume, or name another file")
    if path.is_symlink():
        raise ProbeError(f"{path}: this is a link; a log is not written through one: name the file itself")
    try:
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise ProbeError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(file).st_nlink:
                raise OSError("removed by the process that created it and had nothing to write")
        except OSError as error:
            created = False
            message = f"{path}: another latfit is writing this log; wait for it, or name another file"
            raise ProbeError(message) from error
        earlier, torn = _read(path)
        if torn:
            os.write(file, b"\n")
        yield Journal(file, path, run), earlier
        os.fsync(file)
    finally:
        if created and not os.fstat(file).st_size:  # nothing was measured: the target is not there
            path.unlink(missing_ok=True)
        os.close(file)


def _read(path: Path) -> tuple[Earlier, bool]:
    """The content of the log, and whether its last line is incomplete."""
    earlier, run, line = Earlier(), "", b"\n"
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and not line.startswith(b'{"latfit": "probe"'):
                raise ProbeError(f"{path}: line 1 is not one of a log of latfit probe; name another file")
            with suppress(ValueError, KeyError, TypeError, RecursionError):  # incomplete: the disk was full
                run = _note(earlier, json.loads(line), run)
    return earlier, not line.endswith(b"\n")


def _note(earlier: Earlier, line: dict[str, Any], run: str) -> str:
    """Take a line into account; returns the run that the next lines belong to."""
    if "latfit" in line:
        run = str(line["run"])
        if not re.fullmatch("[0-9A-Za-z][0-9A-Za-z-]{0,63}", run):  # it becomes an argument of commands
            return ""
        _ = line["kind"], line["target"]  # a header has both
        earlier.unfinished[run] = {}
        earlier.headers.append(line)
    elif "probe" in line:
        numbers = [line[name] for name in ("probe", "job", "attempt")]
        if run and all(type(number) is int for number in numbers):
            earlier.unfinished.setdefault(run, {})[numbers[0]] = Attempt(run, *numbers)
            earlier.probes, earlier.jobs = max(earlier.probes, numbers[0]), max(earlier.jobs, numbers[1])
    elif "end" in line:
        earlier.unfinished.get(run, {}).pop(line["end"], None)
    elif "finished" in line or "cleared" in line:
        earlier.unfinished.pop(line.get("cleared", run), None)
    return run
