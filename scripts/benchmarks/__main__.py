"""The scoreboard: `scripts/bench [ROW…] [--quick]`; a full run writes docs/benchmarks.md.

On two idle cores, commands take about 4 minutes, those on 10⁷ rows 1, start-up 1, growth of commands 4 and the other
growth 10; the rows against other packages take 20, most of it for the packages.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from benchmarks import batch, bootstrap, commands, fitting, growth, hybrid, optimum, pvalue, reading, startup, tracking
from benchmarks.growth import Growth
from benchmarks.page import page, show

TARGET = Path(__file__).parent.parent.parent / "docs" / "benchmarks.md"
MODULES = (
    commands,
    optimum,
    fitting,
    pvalue,
    hybrid,
    bootstrap,
    batch,
    reading,
    startup,
    tracking,
    growth,
)  # in the order of the targets
BENCHES = {key: run for module in MODULES for key, run in module.BENCHES.items()}
QUICK = ("commands", "objective", "batch/flat", "startup", "tracking",
         *(key for key in BENCHES if key.startswith("growth/command")))  # fmt: skip


def within(key: str, asked: str) -> bool:
    """Whether a key is what was asked for or in that group."""
    return f"{key}/".startswith(f"{asked}/")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure latfit against its rivals.",
        epilog=f"Keys: {', '.join(BENCHES)}.",
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="keys of rows, or the first part of keys (default: all)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="whole commands up to 10⁶ rows, one round; other rows, if named, on less; writes nothing",
    )
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md whatever was measured")
    options = parser.parse_args()
    asked = options.rows or list(QUICK if options.quick else BENCHES)
    unknown = [word for word in asked if not any(within(key, word) or within(word, key) for key in BENCHES)]
    if unknown:
        parser.error(f"there is no row {', '.join(unknown)}; see --help for the keys")
    rows, grown, load, spent = [], [], os.getloadavg()[0], {}
    write = options.write or (not options.rows and not options.quick)
    for key, run in BENCHES.items():
        if any(within(key, word) or within(word, key) for word in asked):
            start = time.perf_counter()
            found = run(key, quick=options.quick)
            spent[key] = time.perf_counter() - start
            print(f"[{key}: {spent[key]:.0f} s]")
            for one in [found] if isinstance(found, Growth) else found:
                if any(within(one.key, word) for word in asked):
                    show(one)
                    (grown if isinstance(one, Growth) else rows).append(one)
            if write:  # after each row: a long run that is stopped has told what it found
                left = [key for key in BENCHES if not any(within(one.key, key) for one in (*rows, *grown))]
                TARGET.write_text(page(rows, grown, load, left, spent), encoding="utf-8")
    if write:
        print(f"\nwritten to {TARGET}")


if __name__ == "__main__":
    main()
