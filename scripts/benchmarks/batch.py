"""Rows on the batch: groups a second against a peer's loop, one process against two, Dask, growth and memory."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.fitting import CUTOFF, compared, probes, sample_of, surpyval_laws
from benchmarks.timing import Row, in_process, in_turns, median, seconds, spread
from latfit.batch.engines import Pool, open_pool
from latfit.batch.rows import Options
from latfit.batch.rows import Row as Result
from latfit.batch.run import analyse_groups
from latfit.fitting import CLASSICAL
from latfit.sample import LatencySample

SIZE = 500
FEW = 5  # the peer's loop is measured on so many groups
RANK = Options(cutoff=CUTOFF, laws=CLASSICAL, resamples=0, test=False)  # rank 6 laws, exact optimum, no bootstrap

GROWN = """
from benchmarks.batch import analysed, groups_of
groups = groups_of({groups})
"""


def latencies(groups: int) -> np.ndarray[Any, Any]:
    return probes(groups * SIZE).reshape(groups, SIZE)


def groups_of(count: int) -> dict[tuple[str, ...], LatencySample]:
    """So many groups of 500 probes, in memory as `read_samples` gives them."""
    return {(f"{k:06d}",): sample_of(x) for k, x in enumerate(latencies(count))}


def analysed(groups: dict[tuple[str, ...], LatencySample], workers: int | None = None) -> list[Result]:
    with open_pool("processes", workers=workers) as pool:
        return analyse_groups(pool, groups, RANK)


def peer_row(count: int) -> Row:
    """All cores against one loop: what a user of either gets."""
    groups, x = groups_of(count), latencies(FEW)

    def theirs() -> Any:
        return [surpyval_laws(row) for row in x]

    def told(peer: Any, ours: list[Result]) -> str:
        best = [max(one, key=one.get) for one in peer]
        return f"extrapolated from {FEW} groups; best laws {best[:2]} and {[row['best'] for row in ours[:2]]}"

    work = f"{count:.0e} groups × {SIZE} probes: rank 6 laws + optimum"
    rival = "surpyval's own six in a loop, ρ = 0, no optimum"
    return compared(work, "≥ 300 ×", rival, theirs, lambda: analysed(groups), rounds=1, note=told, scale=count / FEW)


def timed(pool: Pool, groups: dict[tuple[str, ...], LatencySample], kept: list[Any]) -> float:
    return seconds(lambda: kept.append(analyse_groups(pool, groups, RANK)))


def engine_rows(count: int, rounds: int) -> list[Row]:
    """Warm pools taking turns; the rows must be equal to the last bit."""
    groups, rows = groups_of(count), list[Any]()
    with (
        open_pool("processes", workers=1) as one,
        open_pool("processes", workers=2) as two,
        open_pool("dask", workers=2) as dask,
    ):
        warm = dict(list(groups.items())[:600])
        for pool in (two, dask):
            timed(pool, warm, [])
        measured = in_turns(rounds, *(lambda pool=pool: timed(pool, groups, rows) for pool in (one, two, dask)))
    a, b, c = map(median, measured)
    same = "rows equal bit for bit" if all(found == rows[0] for found in rows) else "ROWS DIFFER"
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {same}"
    rates = [
        f"{count / took:.0f} groups/s, {spread(all_)} s; {load}"
        for took, all_ in zip((b, c), measured[1:], strict=True)
    ]
    work, local = f"{count:.0e} groups × {SIZE} probes", "Dask, two local workers"
    return [
        Row(f"{work}: two processes", "one process", a, b, "s", "≥ 1.8 ×", a / b, rates[0]),
        Row(f"{work}: {local}", "two processes", b, c, "s", "≤ 1.3 ×", c / b, rates[1]),
    ]


def growth_row(largest: int) -> Row:
    """Time and the parent's peak memory, all cores, from 100 groups on."""
    counts = [10**k for k in range(2, round(np.log10(largest)) + 1)]
    measured = [in_process(GROWN.format(groups=count), "analysed(groups)") for count in counts]
    exponent = float(np.polyfit(np.log(counts[-2:]), np.log([m[0] for m in measured[-2:]]), 1)[0])
    each = zip(counts, measured, strict=True)
    note = "; ".join(f"{n:.0e}: {t:.3g} s, {n / t:.0f} groups/s, {m:.0f} MiB" for n, (t, m) in each)
    work = f"growth: groups of {SIZE} probes, 10²…{largest:.0e}"
    return Row(work, "linear growth", 1.0, exponent, "exponent", "none", exponent, note)


def rows(quick: bool) -> list[Row]:
    """All rows on the batch."""
    count = 10**4 if quick else 10**5
    return [peer_row(count), *engine_rows(count // 5, 3), growth_row(count)]
