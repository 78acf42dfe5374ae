"""Every real log: what 0.1.0 decided, what is decided now, and a plain loop that checks both."""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from real_logs.decided import Decided, called, decided
from real_logs.own import Outcome, drawn, follow, groups_of, ordered
from real_logs.page import Checked, Row, page

REPO = Path(__file__).resolve().parents[2]
FIRST_VERSION = "9e2fd0e"  # the last commit of 0.1.0
STALL = 2e-3  # seconds
FEWEST = 40  # rows with a time of submission that a replay needs
NO_LOGS = ("README.md", "sat18-exp.description.txt")
SUGGESTED = {"uptime-probes.csv.gz": ["--status", "completed=up", "--status", "lost=down"]}  # by 0.1.0's own message
ASKED_FOR = {"otel-spans.jsonl.gz": "name", "aws-alb.log": "path", "access.ltsv": "uri"}  # what a probe asks for


def first_version(folder: Path) -> Path | None:
    """The tree of 0.1.0 out of the repository's history, None where that is not here."""
    done = subprocess.run(["git", "-C", REPO, "archive", FIRST_VERSION, "latfit"], capture_output=True)
    if done.returncode:
        print(f"0.1.0 ({FIRST_VERSION}) is not in this repository's history: its column stays empty", file=sys.stderr)
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tree:
        tree.extractall(folder, filter="data")
    return folder


def rows_of(log: Path, folder: Path) -> pd.DataFrame | None:
    """One row a probe: submitted, latency, status and the log's columns; None for what has no probes."""
    if log.suffix == ".hlog":
        return intervals(log)
    made = folder / f"{log.name}.csv"
    done = called(["convert", str(log), "-o", str(made)])
    return pd.read_csv(made, low_memory=False) if done.returncode == 0 else None


def intervals(log: Path) -> pd.DataFrame:
    """The values of a jHiccup log in their order: it writes a stall as what each millisecond of it had still to wait.

    All values of a stall, those beyond 2 ms, end together, at the end of their interval; the others are spread over it.
    """
    from hdrh.histogram import HdrHistogram

    parts = []
    for line in log.read_text().splitlines():
        if line[:1].isdigit():
            start, length, _, payload = line.split(",")
            items = [(item.value_iterated_to / 1e9, item.count_at_value_iterated_to)
                     for item in HdrHistogram.decode(payload).get_recorded_iterator()]  # fmt: skip
            took = np.repeat([value for value, _ in items], [count for _, count in items])
            stalled = took[-1] if took[-1] > STALL else 0.0
            even = float(start) + (float(length) - stalled) * np.linspace(0, 1, took.size, endpoint=False)
            at = np.where(took > STALL, float(start) + float(length) - took, even)
            parts.append(pd.DataFrame({"submitted": pd.to_datetime(at, unit="s", utc=True), "latency": took}))
    return pd.concat(parts, ignore_index=True).assign(status="completed")


def checked(rows: pd.DataFrame, now: Decided, old: Decided | None, sparse: bool | None = None) -> Checked:
    """The policies of both versions, waiting, and the formula's timeout, each followed by the plain loop."""
    cutoff = now.cutoff or float(rows["latency"].max())
    names = sorted(rows["group"].unique())
    bins = now.groups and not set(now.groups) & set(names)
    groups = dict(zip(names, now.groups.values(), strict=True)) if bins else now.groups
    timed = ordered(rows)
    replayable = len(timed) >= FEWEST and timed["at"].iloc[0] < timed["at"].iloc[-1]
    rows = timed if replayable else rows

    def under(timeouts: dict[str, float]) -> Outcome:
        return follow(rows, timeouts, cutoff, sparse) if replayable else drawn(rows, timeouts, cutoff)

    def all_at(t: float | None) -> Outcome | None:
        return None if t is None else under(dict.fromkeys(names, t))

    own = {name: t for name, t in groups.items() if t is not None}
    waiting = under({})
    able = waiting.jobs["done"]  # what would not be done by waiting either says nothing of a timeout
    policies = (waiting, all_at(now.timeout) or (under(own) if own else None), all_at(now.formula),
                all_at(old.timeout if old else None))  # fmt: skip
    return Checked(*(None if one is None else one.only(able) for one in policies), len(rows), replayable)


def row_of(log: Path, folder: Path, tree: Path | None) -> Row:
    """A row of the table."""
    old = decided(log, SUGGESTED.get(log.name, []), tree) if tree else None
    now = decided(log, [])
    rows = None if now.refused else rows_of(log, folder)
    if rows is None:
        return Row(log.name, old, now, None)
    column = now.column or ASKED_FOR.get(log.name)
    sparse = False if log.suffix == ".hlog" else None  # in a stall every moment is known
    return Row(log.name, old, now, checked(rows.assign(group=groups_of(rows, column)), now, old, sparse), column)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/real-logs", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=REPO.parent / "shared" / "data", metavar="FOLDER",
                        help="the logs, default ../shared/data")  # fmt: skip
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only logs whose name begins so; prints the table"
    )
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"scripts/real-logs: no folder {given.folder}: the logs are not part of this repository; name theirs")
    logs = [path for path in sorted(given.folder.iterdir()) if path.name not in NO_LOGS]
    if given.only:
        logs = [path for path in logs if path.name.startswith(tuple(given.only))]
    with tempfile.TemporaryDirectory() as place:
        tree = first_version(Path(place) / "0.1.0")
        found = []
        for log in logs:
            found.append(row_of(log, Path(place), tree))
            print(found[-1].line(), file=sys.stderr, flush=True)
    if given.only:
        print(page(found))
    else:
        (REPO / "docs" / "real-logs.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
