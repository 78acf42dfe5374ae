"""Rows on starting up: what a user waits for before anything happens."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.timing import Row, duel

LATFIT = Path(sys.executable).parent / "latfit"
LOG = Path(__file__).parent.parent.parent / "data" / "egee-2006.csv"


def startup(key: str, imports: str, command: list[str], target: str, rounds: int, quick: bool) -> list[Row]:
    """A command against importing what it needs."""
    code = f"import {imports}"
    runs = ([sys.executable, "-c", code], [str(LATFIT), *command])
    a, b = (partial(subprocess.run, run, capture_output=True, check=True) for run in runs)
    work = " ".join(["latfit", *(Path(word).name for word in command)])
    return [duel(key, work, f'python -c "{code}"', target, a, b, rounds=rounds // 3 if quick else rounds)]


HEAVY = "pandas, scipy.stats, matplotlib.pyplot"
BENCHES = {
    "startup/help": partial(startup, imports="click", command=["--help"], target="≤ 1.3 ×", rounds=15),
    "startup/analyze": partial(startup, imports=HEAVY, command=["analyze", str(LOG)], target="≤ 1.3 ×", rounds=3),
}
