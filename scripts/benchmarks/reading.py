"""Rows on reading: a probe CSV to a sample, against pandas reading the same file."""

from __future__ import annotations

from functools import partial

from benchmarks.data import probe_csv
from benchmarks.timing import Row, in_process, in_turns, seconds

SETUP = "import latfit, latfit.logs"
READ = "sample = latfit.read_log({path!r}).sample()"
COUNTED = "[sample.completed.total, sample.censored.total, float(sample.completed.values @ sample.completed.counts)]"
PANDAS_COUNTED = (
    "[int((frame.status == 'completed').sum()), int((frame.status == 'censored').sum()),"
    " float(frame.latency[frame.status == 'completed'].sum())]"
)


def reading(key: str, timestamps: bool, quick: bool) -> list[Row]:
    """10⁷ rows (10⁶ with --quick): time, and peak memory of the process."""
    n = 10**6 if quick else 10**7
    path = str(probe_csv(n, timestamps=timestamps))
    parse = ", parse_dates=['submitted']" if timestamps else ""
    theirs, ours = in_turns(
        3,
        partial(in_process, "import pandas as pd", f"frame = pd.read_csv({path!r}{parse})", PANDAS_COUNTED),
        partial(in_process, SETUP, READ.format(path=path), COUNTED),
    )
    a, b = theirs[-1].result.answer, ours[-1].result.answer
    same = a[:2] == b[:2] and abs(a[2] - b[2]) <= 1e-9 * a[2]
    answers = f"{b[0]} completed, {b[1]} censored, total {b[2]:.6g} s: " + ("the same" if same else f"pandas {a}")
    work, rival = f"{n:.0e}-row CSV to sample" + ", ISO timestamps" * timestamps, "pandas.read_csv (C engine)"
    wanted, peaks = (
        "≤",
        [[one.result.peak for one in side] for side in (theirs, ours)],
    )
    return [
        Row(f"{key}/time", work, rival, wanted, seconds(theirs), seconds(ours), "s", same, answers),
        Row(f"{key}/memory", f"{work}, peak memory", rival, "≤", *peaks, "MiB", same, "the same runs"),
    ]


BENCHES = {"csv/plain": partial(reading, timestamps=False), "csv/iso": partial(reading, timestamps=True)}
