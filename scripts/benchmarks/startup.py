"""Rows on starting up: what a user waits for before anything happens."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from benchmarks.timing import Row, in_turns, ran, seconds

LATFIT = Path(sys.executable).parent / "latfit"
LOG = Path(__file__).parent.parent.parent / "data" / "egee-2006.csv"


def startup(key: str, imports: str, command: list[str], target: str, rounds: int, quick: bool) -> list[Row]:
    """A command against importing what it needs."""
    code = f"import {imports}"
    runs = partial(ran, sys.executable, "-c", code), partial(ran, str(LATFIT), *command)
    a, b = in_turns(max(1, rounds // 3) if quick else rounds, *runs)
    work = " ".join(["latfit", *(Path(word).name for word in command)])
    return [Row(key, work, f'python -c "{code}"', target, seconds(a), seconds(b), "processor s")]


HEAVY = "pandas, scipy.stats, matplotlib.pyplot"
BENCHES = {
    "startup/help": partial(startup, imports="click", command=["--help"], target="≤ 1.3 ×", rounds=15),
    "startup/timeout": partial(startup, imports="pandas", command=["timeout", str(LOG)], target="≤ 1.9 ×", rounds=5),
    "startup/analyze": partial(startup, imports=HEAVY, command=["analyze", str(LOG)], target="≤ 1.2 ×", rounds=5),
}
