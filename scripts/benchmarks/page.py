"""The page docs/benchmarks.md, and the lines that are shown while a run goes on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import cannot, costs
from benchmarks.growth import Growth
from benchmarks.remarks import REMARKS
from benchmarks.rivals import r_versions
from benchmarks.timing import Row

PACKAGES = ("latfit", "numpy", "scipy", "pandas", "pyarrow", "distributed", "surpyval", "lifelines", "reliability",
            "fitter")  # fmt: skip
VERDICT = {True: "met", False: "**missed**", None: "–"}
INTRO = """Written by `scripts/bench`; do not edit. latfit and its rival take turns in one run on the same data.
Figures are the smallest of the rounds, with the largest in brackets, because other work on the machine can only add to
them. A ratio with ≥ is rival / latfit; one with ≤ is latfit / rival. A target counts as met only if latfit's answer is
not worse either. If the rival did only part of the work, "5 groups × 200" says which part and by what its time was
multiplied. Rows in processor seconds cover whole processes and their workers. `scripts/bench KEY…` measures some rows
(`commands`, `growth`, …), `scripts/bench --quick` whole commands up to 10⁶ rows, in a few minutes, without the rows
against other packages. Only a complete run, or `--write`, writes this page."""


def number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def measured(values: list[float]) -> str:
    """The smallest, and the largest in brackets."""
    if not values:
        return "–"
    least = number(min(values))
    return least if len(values) == 1 else f"{least} ({number(max(values))})"


def ratio(row: Row) -> str:
    return "–" if row.ratio is None else number(row.ratio)


def target(row: Row) -> str:
    return "none" if row.bound is None else row.target


def show(found: Row | Growth) -> None:
    """One row or one growth on the terminal."""
    if isinstance(found, Growth):
        print(f"{found.key}: {found.told()}")
        for n, times, peak in zip(found.sizes, found.seconds, found.peaks, strict=True):
            print(f"    {n:,}: {measured(times)} s, {peak:.0f} MiB")
        return
    verdict = VERDICT[found.met].strip("*").upper() if found.met is False else VERDICT[found.met]
    sides = f"{measured(found.theirs)} against {measured(found.ours)} {found.unit}"
    lines = [f"{found.key}: {found.work}", f"    {found.rival}: {sides}",
             f"    ratio {ratio(found)}, target {target(found)}: {verdict}. {found.answers}"]  # fmt: skip
    print("\n".join(lines), flush=True)


def machine(load: float) -> list[str]:
    """The machine, how busy it was before the run, and the versions."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown processor")
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name}: not installed")
    cores = len(os.sched_getaffinity(0))
    busy = " **Other work was running: these numbers do not count.**" if load > cores / 2 else ""
    return [f"{cpu}, {cores} cores, {platform.machine()}, Python {platform.python_version()}.",
            f"Load before the run: {load:.1f}.{busy}",
            f"{', '.join(versions)}, {r_versions()}."]  # fmt: skip


def scoreboard(rows: list[Row]) -> list[str]:
    """All rows, in the order of the targets."""
    found = ["| key | work | rival or floor | rival | latfit | unit | ratio | target | | answers |", "|---" * 10 + "|"]
    for row in rows:
        cells = (f"`{row.key}`", row.work, row.rival, measured(row.theirs), measured(row.ours), row.unit, ratio(row),
                 target(row), VERDICT[row.met], row.answers.replace("|", "/"))  # fmt: skip
        found.append("| " + " | ".join(cells) + " |")
    judged = [row for row in rows if row.agree is not None]
    worse = [row.key for row in judged if not row.agree]
    met = [row.met for row in rows if row.met is not None]
    told = f"{sum(met)} of {len(met)} targets met. latfit's answers are the same or better in "
    told += f"{len(judged) - len(worse)} of the {len(judged)} rows where they can be compared"
    return [*found, "", told + (f", worse in {', '.join(worse)}." if worse else ".")]


def growth(grown: list[Growth]) -> list[str]:
    """Times and peaks by size, and the exponents."""
    found = ["| key | work | n | time, s | peak, MiB | n per second |", "|---|---|---|---|---|---|"]
    for one in grown:
        for n, times, peak in zip(one.sizes, one.seconds, one.peaks, strict=True):
            cells = (f"`{one.key}`", one.work, f"{n:,}", measured(times), f"{peak:.0f}", f"{n / min(times):.2g}")
            found.append("| " + " | ".join(cells) + " |")
    return [*found, "", *(f"- {one.told()}." for one in grown)]


def missed(rows: list[Row]) -> list[str]:
    """By how much, why, and what would close it."""
    found = []
    for row in rows:
        if row.met is False and row.ratio is not None and row.bound is not None:
            short = row.bound / row.ratio if row.target.startswith("≥") else row.ratio / row.bound
            by = (
                f"{ratio(row)} instead of {row.target}, short by a factor of {short:.2f}"
                if short > 1
                else "worse answer"
            )
            found.append(f"- `{row.key}`, {row.work}, {row.rival}: {by}. {REMARKS.get(row.key, 'No remark yet.')}")
    return found or ["Nothing."]


def of_the_run(left: list[str], spent: dict[str, float]) -> list[str]:
    """How long the run took, what of it took longest, and what it left out."""
    slowest = sorted(spent.items(), key=lambda each: -each[1])[:8]
    parts = ", ".join(f"`{key}` {seconds:.0f} s" for key, seconds in slowest)
    keys = ", ".join(f"`{key}`" for key in left)
    took = f"The run took {sum(spent.values()) / 60:.0f} minutes; longest: {parts}."
    return [took, f"Not measured in this run: {keys}."] if left else [took]


def page(rows: list[Row], grown: list[Growth], load: float, left: list[str], spent: dict[str, float]) -> str:
    """The whole page; `spent` has the seconds that each key took."""
    sections = {
        "Machine and versions": [*machine(load), *of_the_run(left, spent)],
        "Scoreboard": scoreboard(rows),
        **({"How cost grows": growth(grown)} if grown else {}),
        "What other packages can do": cannot.table(),
        "Missed targets": missed(rows),
        "What speed costs": costs.table(),
    }
    parts = ["\n".join([f"## {title}", "", *lines]) for title, lines in sections.items()]
    return "\n\n".join(["# Benchmarks", INTRO, *parts]) + "\n"
