"""Does 95 % mean 95 %? `scripts/calibrate [ROUNDS] [--quick] [PART…]`; a full run writes docs/calibration.md.

With --journal FILE every finished task is kept there, and a task of the same part, number and rounds is not run again:
a run that was stopped goes on, and parts may be run one after the other.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from calibration.cases import Row, Task
from calibration.claims import claims
from calibration.harm import summary
from calibration.ratios import error
from calibration.timeouts import UNSEEN, WRITTEN_FIRST

PARTS = ("ratios", "parameters", "timeouts", "pvalues", "regret", "harm", "tracking")
ROUNDS, QUICK = 200, 10
HERE = Path(__file__).parent
Work = tuple[str, int, int]  # a part, the number of the task in it, the rounds
PAGE, TARGET = HERE / "page.md", HERE.parent.parent / "docs" / "calibration.md"


def run(part: str, number: int, rounds: int) -> Done:
    """One task of a part, with a seed of its own: the same figures in any order and any number of processes."""
    task: Task = importlib.import_module(f"calibration.{part}").tasks()[number]
    rng = np.random.default_rng([PARTS.index(part), number])
    start = time.process_time()
    found = task.run(rng, max(2, int(rounds * task.weight)), *task.arguments)
    return Done(part, number, rounds, found if isinstance(found, list) else [found], time.process_time() - start)


@dataclass(frozen=True)
class Done:
    """A task that was run: its rows, and the seconds of processor time that it took."""

    part: str
    number: int
    rounds: int
    rows: list[Row]
    took: float

    @property
    def key(self) -> Work:
        return self.part, self.number, self.rounds

    @classmethod
    def of_json(cls, line: str) -> Done:
        told = json.loads(line)
        return cls(**{**told, "rows": [Row(**row) for row in told["rows"]]})


def results(parts: list[str], rounds: int, jobs: int, journal: Path | None = None) -> list[Done]:
    """All tasks in order, with progress on stderr; those that the journal has are taken from it."""
    work = [
        (part, number, rounds)
        for part in parts
        for number in range(len(importlib.import_module(f"calibration.{part}").tasks()))
    ]
    known = {} if journal is None or not journal.exists() else _read(journal)
    missing = [each for each in work if each not in known]
    with ProcessPoolExecutor(jobs) if jobs > 1 and missing else nullcontext() as pool:
        done = pool.map(run, *zip(*missing, strict=True)) if pool else (run(*each) for each in missing)
        for at, one in enumerate(done, start=1):
            text = " · ".join([*one.rows[0].case.values(), *one.rows[0].cells.values()])
            print(f"{at}/{len(missing)} {one.part} {one.took:.1f} s: {text}", file=sys.stderr, flush=True)
            known[one.key] = one
            if journal is not None:
                with journal.open("a") as file:
                    file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
    return [known[each] for each in work]


def _read(journal: Path) -> dict[Work, Done]:
    found = [Done.of_json(line) for line in journal.read_text().splitlines()]
    return {one.key: one for one in found}


def rows_of(done: list[Done]) -> list[Row]:
    """The rows of the page: of systems one by one only their shares."""
    rows = [row for one in done for row in one.rows]
    return [row for row in rows if row.table != "harm"] + summary([row for row in rows if row.table == "harm"])


def tables(rows: list[Row]) -> dict[str, str]:
    """Each table as Markdown, by name."""
    return {name: _table([row for row in rows if row.table == name]) for name in dict.fromkeys(r.table for r in rows)}


def _table(rows: list[Row]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in (*row.case, *row.cells)))
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        lines.append("| " + " | ".join((row.case | row.cells).get(key, "") for key in columns) + " |")
    return "\n".join(lines)


def page(done: list[Done], rounds: int) -> str:
    """The report: page.md with the tables in place of {{name}}."""
    text, rows = PAGE.read_text(), rows_of(done)
    figures = {"rounds": str(rounds), "many": str(4 * rounds), "few": str(rounds // 2)}
    figures["minutes"] = f"{sum(one.took for one in done) / 60:.0f}"
    figures |= {
        "first": str(len(WRITTEN_FIRST)),
        "unseen": str(len(UNSEEN)),
        "written": str(len(WRITTEN_FIRST + UNSEEN)),
    }
    figures |= {f"error {weight:g}": f"{error(weight * rounds):.1f}" for weight in (0.5, 1, 4)}
    for name, value in (tables(rows) | figures | claims(rows)).items():
        text = text.replace("{{" + name + "}}", value)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/calibrate", description=__doc__)
    told = f"ROUNDS is how many samples a case has, default {ROUNDS}; PART is one of {', '.join(PARTS)}, default all"
    parser.add_argument("what", nargs="*", metavar="ROUNDS or PART", help=told)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} samples a case: does it run?")
    parser.add_argument("--jobs", type=int, default=1, help="processes, default 1")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="keep what is done there, and go on from it")
    options = parser.parse_intermixed_args()
    numbers = [int(each) for each in options.what if each.isdigit()]
    parts = [each for each in options.what if not each.isdigit()]
    rounds = numbers[0] if numbers else QUICK if options.quick else ROUNDS
    unknown = set(parts) - set(PARTS)
    if unknown:
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    done = results(parts or list(PARTS), rounds, options.jobs, options.journal)
    if parts or options.quick:
        print("\n\n".join(f"{name}\n\n{table}" for name, table in tables(rows_of(done)).items()))
    else:
        TARGET.write_text(page(done, rounds))
        print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
