"""What latfit decides on a log, as a user asks it: by the command."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

COMMAND = str(Path(sys.executable).parent / "latfit")
Schedule = tuple[float, ...]


@dataclass(frozen=True)
class Decided:
    """A decision: a schedule for all, or one a group (empty: wait); `refused` is why a log was not read."""

    refused: str | None = None
    verdict: str | None = None
    retry: Schedule = ()
    withheld: tuple[str, ...] = ()
    formula: float | None = None
    cutoff: float | None = None
    column: str | None = None
    groups: dict[str, Schedule] = field(default_factory=dict)


def called(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True)


def decided(log: Path) -> Decided:
    """The decision on a log and, if groups differ, on each group."""
    done = called(["analyze", str(log), "--json", "--resamples", "0"])
    if done.returncode:
        return Decided(refused=done.stderr.strip().splitlines()[-1].removeprefix("latfit: "))
    document = json.loads(done.stdout)
    own, evidence = document["timeout"] or {}, document.get("evidence") or {}
    plain = own.get("if_independent") or own
    column = (evidence.get("mixing") or {}).get("column")
    groups = {}
    if not own.get("retry") and column is not None:
        groups = {str(each[column]): _schedule(each.get("retry")) for each in document["groups"] if column in each}
    return Decided(
        verdict=own.get("verdict"),
        retry=_schedule(own.get("retry")),
        withheld=tuple(own.get("withheld") or ()),
        formula=plain.get("timeout"),
        cutoff=document["outliers"]["cutoff"] if document.get("outliers") else None,
        column=column,
        groups=groups,
    )


def _schedule(retry: dict[str, list[float]] | None) -> Schedule:
    return tuple(retry["timeouts"]) if retry else ()
