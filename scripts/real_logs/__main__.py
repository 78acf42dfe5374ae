"""Every real log: what is decided on it, and a plain loop that checks the decision."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from real_logs.decided import Decided, Schedule, called, decided
from real_logs.own import Outcome, drawn, follow, groups_of, ordered
from real_logs.page import Checked, Row, page

REPO = Path(__file__).resolve().parents[2]
STALL = 2e-3  # seconds
FEWEST = 40  # rows with a time of submission that a replay needs
NO_LOGS = ("README.md", "sat18-exp.description.txt")
ASKED_FOR = {"otel-spans.jsonl.gz": "name", "aws-alb.log": "path", "access.ltsv": "uri"}  # what a probe asks for


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


def checked(rows: pd.DataFrame, now: Decided, sparse: bool | None = None) -> Checked:
    """The schedule advised, waiting, and the formula's timeout repeated for ever, each followed by the plain loop."""
    cutoff = now.cutoff or float(rows["latency"].max())
    names = sorted(rows["group"].unique())
    bins = now.groups and not set(now.groups) & set(names)
    groups = dict(zip(names, now.groups.values(), strict=False)) if bins else now.groups
    timed = ordered(rows, gaps=sparse is None)  # where every moment is known there are none
    replayable = len(timed) >= FEWEST and timed["at"].iloc[0] < timed["at"].iloc[-1]
    rows = timed if replayable else rows

    def under(timeouts: dict[str, Schedule]) -> Outcome:
        return follow(rows, timeouts, cutoff, sparse) if replayable else drawn(rows, timeouts, cutoff)

    own = {name: (*timeouts, cutoff) for name, timeouts in groups.items() if timeouts}
    if now.retry:
        own = dict.fromkeys(names, (*now.retry, cutoff))
    waiting = under({})
    able = waiting.jobs["done"]  # what would not be done by waiting either says nothing of a timeout
    policies = (
        waiting,
        under(own) if own else None,
        None if now.formula is None or own else under(dict.fromkeys(names, (now.formula,))),
    )
    return Checked(*(None if each is None else each.only(able) for each in policies), len(rows), replayable)


def row_of(log: Path, folder: Path) -> Row:
    """A row of the table."""
    now = decided(log)
    rows = None if now.refused else rows_of(log, folder)
    if rows is None:
        return Row(log.name, now, None)
    column = now.column or ASKED_FOR.get(log.name)
    sparse = False if log.suffix == ".hlog" else None  # in a stall every moment is known
    column = column if column in rows else None
    return Row(log.name, now, checked(rows.assign(group=groups_of(rows, column)), now, sparse))


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/real-logs", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=REPO.parent / "shared" / "data", metavar="FOLDER",
                        help="the logs, also those in folders of it, default ../shared/data")  # fmt: skip
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="only logs whose name begins so; prints the table"
    )
    given = parser.parse_args()
    if not given.folder.is_dir():
        sys.exit(f"scripts/real-logs: no folder {given.folder}: the logs are not part of this repository; name theirs")
    logs = [path for path in sorted(given.folder.rglob("*")) if path.is_file() and path.name not in NO_LOGS]
    if given.only:
        logs = [path for path in logs if path.name.startswith(tuple(given.only))]
    with tempfile.TemporaryDirectory() as place:
        rows = []
        for log in logs:
            rows.append(row_of(log, Path(place)))
            print(rows[-1].line(), file=sys.stderr, flush=True)
    if given.only:
        print(page(rows))
    else:
        (REPO / "docs" / "real-logs.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
