"""The scoreboard: `scripts/bench [ROW…] [--quick]`; a full run writes docs/benchmarks.md."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import benchmarks
from benchmarks.timing import Row

TARGET = Path(__file__).parent.parent.parent / "docs" / "benchmarks.md"
PACKAGES = (
    "latfit",
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "surpyval",
    "lifelines",
    "reliability",
    "fitter",
    "distributed",
)
VERDICT = {True: "met", False: "**missed**", None: "–"}


def groups() -> list[str]:
    """The groups of rows: the modules here that have a function `rows`."""
    names = (module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
    return [name for name in names if hasattr(importlib.import_module(f"benchmarks.{name}"), "rows")]


def cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def show(row: Row) -> None:
    numbers = f"{cell(row.rival_value)} {row.unit} against {cell(row.latfit_value)} {row.unit}"
    verdict = VERDICT[row.met].strip("*").upper() if row.met is False else VERDICT[row.met]
    print(
        f"{row.work}\n    {row.rival}: {numbers}; ratio {cell(row.ratio)}, target {row.target}: {verdict}. {row.note}",
        flush=True,
    )


def markdown(rows: list[Row]) -> str:
    """The scoreboard as a page, with the machine and the versions."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "",
    )
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name}: not installed")
    machine = f"{platform.machine()}, {cpu or 'unknown processor'}, Python {platform.python_version()}"
    lines = [
        "# Benchmarks",
        "",
        "Measured by `scripts/bench`: latfit and its rival take turns in one run; medians; answers are compared too.",
        "A ratio with a target of ≥ is rival / latfit, one with ≤ is latfit / rival.",
        "",
        f"Machine: {machine}. {', '.join(versions)}.",
        "",
        "| work | rival or floor | rival | latfit | unit | ratio | target | | notes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.work,
            row.rival,
            cell(row.rival_value),
            cell(row.latfit_value),
            row.unit,
            cell(row.ratio),
            row.target,
        )
        lines.append("| " + " | ".join((*cells, VERDICT[row.met], row.note.replace("|", "/"))) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure latfit against its rivals.")
    parser.add_argument(
        "rows", nargs="*", metavar="ROW", help=f"which groups of rows: {', '.join(groups())} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look; writes nothing")
    asked = parser.parse_args()
    found = []
    for name in asked.rows or groups():
        for row in importlib.import_module(f"benchmarks.{name}").rows(asked.quick):
            show(row)
            found.append(row)
    if not asked.rows and not asked.quick:
        TARGET.write_text(markdown(found), encoding="utf-8")
        print(f"\nwritten to {TARGET}")


if __name__ == "__main__":
    main()
