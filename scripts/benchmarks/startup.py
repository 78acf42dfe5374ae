"""Rows on starting up: what a user waits for before anything happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.timing import Row, in_turns, median, seconds, spread

LATFIT = Path(sys.executable).parent / "latfit"
LOG = Path(__file__).parent.parent.parent / "data" / "egee-2006.csv"


def _run(*command: object) -> float:
    return seconds(lambda: subprocess.run([*map(str, command)], capture_output=True, check=True))


def _row(work: str, rival: str, target: str, rounds: int, theirs: list[object], ours: list[object]) -> Row:
    rival_times, latfit_times = in_turns(rounds, lambda: _run(*theirs), lambda: _run(*ours))
    a, b = median(rival_times), median(latfit_times)
    return Row(work, rival, a, b, "s", target, b / a, f"latfit {spread(latfit_times)} s, rival {spread(rival_times)} s")


def rows(quick: bool) -> list[Row]:
    """`latfit --help` against importing click, and the main job against importing what it needs."""
    click = "import click"
    heavy = "import pandas, scipy.stats, matplotlib.pyplot"
    rounds = 3 if quick else 9
    return [
        _row("latfit --help", f'python -c "{click}"', "≤ 1.5 ×", rounds, [sys.executable, "-c", click],
             [LATFIT, "--help"]),
        _row("latfit analyze, bundled log", f'python -c "{heavy}"', "none", 3,
             [sys.executable, "-c", heavy], [LATFIT, "analyze", LOG]),
    ]  # fmt: skip
