"""Does 95 % mean 95 %? `scripts/calibrate [ROUNDS] [--quick] [PART…]`; a full run writes docs/calibration.md."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from calibration.cases import Row, Task
from calibration.harm import summary
from calibration.ratios import error

PARTS = ("ratios", "parameters", "timeouts", "pvalues", "regret", "harm", "tracking")
ROUNDS, QUICK = 400, 10
HERE = Path(__file__).parent
PAGE, TARGET = HERE / "page.md", HERE.parent.parent / "docs" / "calibration.md"


def run(part: str, number: int, rounds: int) -> tuple[list[Row], float]:
    """One task of a part, with a seed of its own: the same figures in any order and any number of processes."""
    task: Task = importlib.import_module(f"calibration.{part}").tasks()[number]
    rng = np.random.default_rng([PARTS.index(part), number])
    start = time.perf_counter()
    found = task.run(rng, max(2, int(rounds * task.weight)), *task.arguments)
    return (found if isinstance(found, list) else [found]), time.perf_counter() - start


def results(parts: list[str], rounds: int, jobs: int) -> Iterator[Row]:
    """The rows of all tasks in order, with progress on stderr."""
    work = [
        (part, number, rounds)
        for part in parts
        for number in range(len(importlib.import_module(f"calibration.{part}").tasks()))
    ]
    harmed: list[Row] = []
    with ProcessPoolExecutor(jobs) if jobs > 1 else nullcontext() as pool:
        done = pool.map(run, *zip(*work, strict=True)) if pool else (run(*each) for each in work)
        for row in _told(work, done):
            if row.table == "harm":  # one system; the page has their shares
                harmed.append(row)
            else:
                yield row
    yield from summary(harmed)


def _told(work: list[tuple[str, int, int]], done: Iterator[tuple[list[Row], float]]) -> Iterator[Row]:
    for at, ((part, *_), (rows, took)) in enumerate(zip(work, done, strict=True), start=1):
        text = " · ".join([*rows[0].case.values(), *rows[0].cells.values()])
        print(f"{at}/{len(work)} {part} {took:.1f} s: {text}", file=sys.stderr, flush=True)
        yield from rows


def tables(rows: list[Row]) -> dict[str, str]:
    """Each table as Markdown, by name."""
    return {name: _table([row for row in rows if row.table == name]) for name in dict.fromkeys(r.table for r in rows)}


def _table(rows: list[Row]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in (*row.case, *row.cells)))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join((row.case | row.cells).get(key, "") for key in columns) + " |")
    return "\n".join(lines)


def page(rows: list[Row], rounds: int) -> str:
    """The report: page.md with the tables in place of {{name}}."""
    text = PAGE.read_text()
    figures = {"rounds": str(rounds), "many": str(4 * rounds), "few": str(rounds // 2)}
    figures |= {f"error {weight:g}": f"{error(weight * rounds):.1f}" for weight in (0.5, 1, 4)}
    for name, value in (tables(rows) | figures).items():
        text = text.replace("{{" + name + "}}", value)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/calibrate", description=__doc__)
    told = f"ROUNDS is how many samples a case has, default {ROUNDS}; PART is one of {', '.join(PARTS)}, default all"
    parser.add_argument("what", nargs="*", metavar="ROUNDS or PART", help=told)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} samples a case: does it run?")
    parser.add_argument("--jobs", type=int, default=1, help="processes, default 1")
    options = parser.parse_args()
    numbers = [int(each) for each in options.what if each.isdigit()]
    parts = [each for each in options.what if not each.isdigit()]
    rounds = numbers[0] if numbers else QUICK if options.quick else ROUNDS
    unknown = set(parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    rows = list(results(parts or list(PARTS), rounds, options.jobs))
    if parts or options.quick:
        print("\n\n".join(f"{name}\n\n{table}" for name, table in tables(rows).items()))
    else:
        TARGET.write_text(page(rows, rounds))
        print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
