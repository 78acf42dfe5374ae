"""The scoreboard: `scripts/bench [ROW…] [--quick]`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks
from benchmarks.timing import Row


def groups() -> list[str]:
    """The groups of rows: the modules here that have a function `rows`."""
    names = (module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    return [name for name in names if hasattr(importlib.import_module(f"benchmarks.{name}"), "rows")]


def cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def show(row: Row) -> None:
    verdict = {True: "met", False: "MISSED", None: "no rival"}[row.met]
    numbers = f"{cell(row.rival_value)} {row.unit} against {cell(row.latfit_value)} {row.unit}"
    print(
        f"{row.work}\n    {row.rival}: {numbers}; ratio {cell(row.ratio)}, target {row.target} — {verdict}. {row.note}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure latfit against its rivals.")
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"which groups of rows: {', '.join(groups())} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    asked = parser.parse_args()
    for name in asked.rows or groups():
        for row in importlib.import_module(f"benchmarks.{name}").rows(asked.quick):
            show(row)


if __name__ == "__main__":
    main()
