"""Rows on reading: a probe CSV to a sample, against pandas reading the same file."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.timing import Row, in_process, median, spread

LATFIT = "latfit.read_samples({path!r}).sample"


def _write(path: Path, rows: int, *, timestamps: bool) -> None:
    """Probes with millisecond latencies, 2.5 % of them cut off at 10 000 s."""
    rng = np.random.default_rng(7)
    step = 1_000_000
    for first in range(0, rows, step):
        n = min(step, rows - first)
        latency = np.round(rng.lognormal(5.5, 1, n), 3)
        out = (rng.random(n) < 0.025) | (latency > 10_000)
        frame = pd.DataFrame(
            {"latency": np.where(out, 10_000.0, latency), "status": np.where(out, "censored", "completed")}
        )
        if timestamps:
            when = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(np.arange(first, first + n), unit="s")
            frame.insert(0, "submitted", when.strftime("%Y-%m-%dT%H:%M:%SZ"))
        frame.to_csv(path, index=False, mode="w" if first == 0 else "a", header=first == 0)


def rows(quick: bool) -> list[Row]:
    """10⁷ rows (10⁶ with --quick), without and with ISO timestamps."""
    n = 10**6 if quick else 10**7
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for timestamps in (False, True):
            path = Path(folder) / "probes.csv"
            _write(path, n, timestamps=timestamps)
            parse = ", parse_dates=['submitted']" if timestamps else ""
            rival, ours = [], []
            for _ in range(3):
                rival.append(in_process("import pandas as pd", f"frame = pd.read_csv({str(path)!r}{parse})"))
                ours.append(in_process("import latfit, latfit.logs", LATFIT.format(path=str(path))))
            name = f"{n:.0e}-row CSV to sample" + (", ISO timestamps" if timestamps else "")
            told = "pandas.read_csv (C engine)"
            times = [median([pair[0] for pair in side]) for side in (rival, ours)]
            peaks = [median([pair[1] for pair in side]) for side in (rival, ours)]
            target = "≤ 0.3 ×" if timestamps else "≤ 1 ×"
            note = f"latfit {spread([p[0] for p in ours])} s, pandas {spread([p[0] for p in rival])} s"
            found.append(Row(name, told, times[0], times[1], "s", target, times[1] / times[0], note))
            found.append(Row(name + ", peak memory", told, peaks[0], peaks[1], "MiB", "≤ 0.3 ×", peaks[1] / peaks[0]))
    return found
