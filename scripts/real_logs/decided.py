"""What a version of latfit decides on a log, as a user asks it: by the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "latfit")


@dataclass(frozen=True)
class Decided:
    """A decision: a timeout for all, one a group, or none with the reasons; `refused` is why a log was not read."""

    refused: str | None = None
    verdict: str | None = None
    timeout: float | None = None
    basis: str | None = None
    withheld: tuple[str, ...] = ()
    formula: float | None = None
    claimed: float | None = None
    cutoff: float | None = None
    column: str | None = None
    groups: dict[str, float | None] = field(default_factory=dict)
    said: str = ""

    @property
    def timeouts(self) -> dict[str, float]:
        """The timeout of each group that has one of its own."""
        return {name: t for name, t in self.groups.items() if t is not None}


def called(arguments: list[str], tree: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command, of another checkout where one is given."""
    environment = os.environ | ({} if tree is None else {"PYTHONPATH": str(tree)})
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, env=environment)


def decided(log: Path, options: list[str], tree: Path | None = None) -> Decided:
    """The decision on a log; with its first sentences where it is that of this version."""
    done = called(["analyze", str(log), "--json", "--resamples", "0", *options], tree)
    if done.returncode:
        return Decided(refused=done.stderr.strip().splitlines()[-1].removeprefix("latfit: "))
    document = json.loads(done.stdout)
    if tree is not None:
        return _of(document, "")
    column = _told_apart_by(document)
    if column is not None and not document["groups"]:  # too many for the report: as it says, with --by
        by = called(["analyze", str(log), "--json", "--resamples", "0", "--by", column, *options])
        document["groups"] = json.loads(by.stdout)["groups"]
    return _of(document, _first_sentences(called(["analyze", str(log), *options]).stdout))


def _told_apart_by(document: dict[str, Any]) -> str | None:
    """The column by which the decision says to decide."""
    mixed = "mixed" in ((document["timeout"] or {}).get("withheld") or ())
    return document["evidence"]["mixing"]["column"] if mixed and document["evidence"]["mixing"] else None


def _of(document: dict[str, Any], said: str) -> Decided:
    own, evidence = document["timeout"] or {}, document.get("evidence") or {}
    plain = own.get("if_independent") or own
    column = (evidence.get("mixing") or {}).get("column")
    by = _told_apart_by(document)
    groups = {str(one[by]): one["timeout"] for one in document.get("groups") or []} if by else {}
    cutoff = document["outliers"]["cutoff"] if document.get("outliers") else None
    claimed = plain.get("speed_up_vs_cutoff") or plain.get("speed_up")
    return Decided(verdict=own.get("verdict"), timeout=own.get("timeout"), basis=own.get("basis"),
                   withheld=tuple(own.get("withheld") or ()), formula=plain.get("timeout"), claimed=claimed,
                   cutoff=cutoff, column=column, groups=groups, said=said)  # fmt: skip


def _first_sentences(text: str) -> str:
    """The first two sentences of the decision."""
    plain = re.sub(r"\s+", " ", re.split(r"\n\n|\n  worst regret", text.removeprefix("DECISION"))[0]).strip()
    return " ".join(re.split(r"(?<=\.) (?=[A-Z])", plain)[:2])
