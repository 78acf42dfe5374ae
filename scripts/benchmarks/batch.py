"""Rows on the batch: groups against a peer's loop, one process against two, Dask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import curve_fit
from scipy.special import ndtr

from benchmarks.data import CUTOFF, Floats, observed, probes
from benchmarks.rivals import surpyval_laws
from benchmarks.timing import CallCounter, Row, duel, in_turns, seconds
from latfit.batch.engines import open_pool
from latfit.batch.rows import Row as Result
from latfit.batch.rows import chunk_rows, fit_rows
from latfit.batch.run import analyse_groups
from latfit.decision import Options
from latfit.table import Groups, ProbeTable

SIZE = 500
# as the command: rank its laws, decide, no bootstrap
RANK = partial(chunk_rows, options=Options(cutoff=CUTOFF, resamples=0, test=False))
Tables = Mapping[tuple[str, ...], ProbeTable]


def latencies(groups: int) -> Floats:
    return probes(groups * SIZE).reshape(groups, SIZE)


def groups_of(count: int) -> Tables:
    """So many groups of 500 probes, in memory as the files' reader gives them."""
    return {(f"{k:06d}",): observed(x) for k, x in enumerate(latencies(count))}


def analysed(groups: Tables, work: partial[list[list[Result]]] = RANK) -> list[Result]:
    """All cores, the pool's start included."""
    with open_pool("processes", workers=None) as pool:
        return [row for rows in analyse_groups(pool, groups, work) for row in rows]


def peer(key: str, quick: bool) -> list[Row]:
    """All cores against one loop: what a user of either gets."""
    count, few = (2000, 10) if quick else (20_000, 100)
    groups, x = groups_of(count), latencies(few)

    def judged(theirs: list[dict[str, float]], ours: list[Result]) -> tuple[bool, str]:
        a = sum(max(one, key=one.__getitem__) == "lognormal" for one in theirs)
        b = sum(row["best"] == "lognormal" for row in ours[:few])
        return b >= a, f"the true law, log-normal, ranks first in {a} and {b} of {few} groups"

    work = f"{count:.0e} groups × {SIZE} probes on all cores: rank 8 laws + decision"
    rival = f"surpyval's six laws in a loop on one core, ρ = 0, no optimum, {few} groups × {count // few}"
    theirs, rounds = (lambda: [surpyval_laws(row) for row in x]), 1
    return [duel(key, work, rival, "≥ 200 ×", theirs, lambda: analysed(groups), rounds=rounds, scale=count / few,
                 judge=judged)]  # fmt: skip


def engines(key: str, quick: bool) -> list[Row]:
    """Warm pools taking turns; the rows must be equal to the last bit."""
    count = 2000 if quick else 5000
    groups = groups_of(count)
    with (
        open_pool("processes", workers=1) as one,
        open_pool("processes", workers=2) as two,
        open_pool("dask", workers=2) as dask,
    ):
        pools = (one, two, dask)
        measured = in_turns(2, *(partial(analyse_groups, pool, groups, RANK) for pool in pools))
    rows: list[Any] = [found.result for side in measured for found in side]
    same = all(found == rows[0] for found in rows)
    answers = "rows equal bit for bit" if same else "ROWS DIFFER"
    a, b, c = map(seconds, measured)
    work = f"{count:.0e} groups × {SIZE} probes"
    return [
        Row(f"{key}/two", f"{work}: two processes", "one process", "≥ 1.8 ×", a, b, "s", same, answers),
        Row(f"{key}/dask", f"{work}: Dask, two local workers", "two processes", "≤ 1.2 ×", b, c, "s", same, answers),
    ]


def fits(key: str, quick: bool) -> list[Row]:
    """One law a group by likelihood and by least squares, with its test and its optimum; rivals only fit."""
    count, few = (2000, 20) if quick else (100_000, 200)
    groups, x = groups_of(count), latencies(few)
    rows = []
    for method, name, rival in (
        ("mle", "surpyval", partial(surpyval_laws, names=("lognormal",), lfp=True)),
        ("mle", "scipy.stats.lognorm.fit(CensoredData), ρ = 0", scipy_likelihood),
        ("ls", "scipy.optimize.curve_fit on the same grid", scipy_least_squares),
    ):
        options = Options(cutoff=CUTOFF, resamples=0, test=False, laws=("lognormal",), method=method)
        ours = partial(analysed, groups, partial(fit_rows, options=options))
        work = f"{count:.0e} groups × {SIZE} probes on all cores: log-normal by {method}, KS, optimum"
        theirs = f"{name} in a loop on one core, {few} groups × {count // few}"
        label = f"{key}/{method}/{name.split('.')[0].split(' ')[0]}"
        row = duel(label, work, theirs, "≥ 1 ×", lambda fit=rival: [fit(row) for row in x], ours, rounds=1,
                   scale=count / few)  # fmt: skip
        rates = [f"{count / side[0]:.0f}" for side in (row.ours, row.theirs) if side]
        rows.append(replace(row, answers=f"{' and '.join(rates)} groups a second" if row.theirs else row.answers))
    return rows


def scipy_likelihood(x: Floats) -> Any:
    data = stats.CensoredData(uncensored=x[x <= CUTOFF], right=np.full(np.count_nonzero(x > CUTOFF), CUTOFF))
    return stats.lognorm.fit(data, floc=0)


def scipy_least_squares(x: Floats) -> Any:
    seen = np.sort(x[x <= CUTOFF])
    t = np.linspace(seen[0], seen[-1], 10_001)
    y = np.searchsorted(seen, t, side="right") / seen.size
    return curve_fit(lambda t, mu, sigma: ndtr((np.log(t) - mu) / sigma), t, y, p0=(5.0, 1.0))[0]


def flat(key: str, quick: bool) -> list[Row]:
    """Calls of latfit's functions a group, where 0.2.0 made an object of every column of every group."""
    table = ProbeTable.concat(list(groups_of(200).values()))
    codes, counter = np.repeat(np.arange(200), SIZE), CallCounter()
    division = Groups.of_codes(codes, [(str(at),) for at in range(200)])
    try:
        counter.during(lambda: RANK(dict(zip(division.keys, table.parts(division), strict=True))))
    finally:
        counter.end()
    return [Row(key, f"200 groups × {SIZE} probes: calls a group", "latfit 0.2.0: 2026", "≤ 1 ×", [2026.0],
                [counter.count / 200], "calls")]  # fmt: skip


BENCHES = {"batch/flat": flat, "batch/peer": peer, "batch/engines": engines, "batch/fits": fits}
