"""The worlds that a log supports: in which a retry meets again what the first attempt met.

The formula takes a retry as a new draw from the pool. Every way in which that fails is one thing: an attempt resembles
its neighbours, those of the same cell of a column or of a pair of columns, of the same job, or near in time. A world is
a partition of the attempts into strata in which a retry meets its own stratum again, for ever or, in time, for a while.
A world counts if attempts resemble their neighbours in it more than chance allows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import bdtrc, ndtr, ndtri, pdtrc

from latfit.evidence.probes import evenly
from latfit.numbers import Bools, Floats, Ints, finite
from latfit.table import CENSORED, COMPLETED, OWN_STATUS, Column, ProbeTable

BEYOND_CHANCE = 2.5  # standard deviations; divided among the columns, and among the pairs, that are looked at
RANK_QUANTILES = np.array([0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98])  # where strata are cut and what counts as slow begins
NEIGHBOURS = (1, 4, 16, 64)  # in time, on either side
SAME_QUANTITY = 0.99  # |rank correlation| from which a column is the latency under another name
SAME_OUTCOME = 0.95  # share of the rarer outcome that a column tells, from which it is the outcome under another name
# what JMeter measures with each sample: no log can tell such a consequence of a hang from its cause
MEASURED_WITH_THE_LATENCY = {"jmeter": ("Latency", "Connect", "IdleTime", "bytes", "sentBytes")}
NEGLIGIBLE = 0.02  # a gain below it is none: the answer is to wait; a share of variance below it is not worth a word
NO_STRATA = np.empty(0, dtype=np.int64)
MAX_WORLDS_OF_A_KIND = 12  # the strongest; columns of the same content make many alike


@dataclass(frozen=True, eq=False)
class World:
    """A partition of the attempts: `strata` is a code from 0 for each.

    A retry stays in its stratum with the chance e^(−elapsed/span). `z` says how far beyond chance attempts resemble
    their neighbours, `shared` which part of the variance of ranks lies between the cells, seen and unseen.
    Once judged, it has no strata but the `ratio` of duration to waiting at the schedule that was looked at, and the
    same at the formula's timeout repeated for ever, `unlimited`: ∞ where some jobs never end, None where unknown.
    """

    name: str
    kind: str  # column, pair, cell, job, time or spell; independent where there is no partition
    strata: Ints = field(repr=False)
    z: float
    span: float = np.inf
    shared: float = 0.0
    ratio: float | None = None
    unlimited: float | None = None

    def judged(self, ratio: float | None, unlimited: float | None) -> World:
        return replace(self, strata=NO_STRATA, ratio=ratio, unlimited=unlimited)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "z": finite(self.z), "ratio": finite(self.ratio)}


INDEPENDENT = World("independent", "independent", NO_STRATA, np.nan)


@dataclass(frozen=True, eq=False)
class Survey:
    """The worlds that a log supports, the columns that were looked at, and the others with the reason.

    `fresh` is the number of attempts of jobs that have several and show no sign of being sticky.
    """

    worlds: Sequence[World] = ()
    used: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    fresh: int = 0


def survey(probes: ProbeTable, cutoff: float = np.inf) -> Survey:
    """What a log in its order says, with its columns, jobs and times; without times, in the order of the file."""
    completed = (probes.status == COMPLETED) & (probes.latency <= cutoff)
    rank = ranks(probes, completed, (probes.status == CENSORED) & (probes.latency < cutoff))
    codes = {name: column.codes - min(int(column.codes.min()), 0) for name, column in probes.columns.items()}
    if OWN_STATUS in codes and completed.any():  # what did not complete might have said what others of this log do
        words = codes[OWN_STATUS]
        codes[OWN_STATUS] = np.where(completed, words, np.random.default_rng(0).choice(words[completed], words.size))
    by_format = MEASURED_WITH_THE_LATENCY.get(probes.facts.format.split("-")[0], ())
    measured = [name for name in by_format if name in codes]
    some = evenly(rank.size)
    candidates = {name: codes[name][some] for name in codes if name not in measured}
    own = codes[OWN_STATUS][some] if OWN_STATUS in codes else None
    looked_at, left_out = choose_columns(candidates, rank[some], completed[some], own, probes.facts.outcome_columns)
    used = {name: codes[name] for name in looked_at}
    left_out |= dict.fromkeys(measured, "is measured with the latency")
    timed = probes.submitted is not None and bool(np.isfinite(probes.submitted).all())
    when = probes.submitted if timed else None
    worlds = find_worlds(rank, used, job=probes.job, submitted=when, in_file_order=not timed)
    for at, world in enumerate(worlds):
        name, _, cell = world.name.rpartition("=")
        if world.kind == "cell" and name in probes.columns:
            worlds[at] = replace(world, name=f"{name}={probes.columns[name].labels[int(cell)]}")
    several = 0 if probes.job is None else int((np.bincount(probes.job)[probes.job] > 1).sum())
    return Survey(worlds, tuple(used), left_out, 0 if any(world.kind == "job" for world in worlds) else several)


def ranks(probes: ProbeTable, completed: Bools, censored: Bools) -> Floats:
    """From 0 to 1: what did not complete ranks last, what was given up early in the middle of all that took longer."""
    n, done = probes.n, int(np.count_nonzero(completed))
    result = (2 * np.where(completed, probes.ranks, (done + 1 + n) / 2) - 1) / (2 * n)
    if censored.any():
        times = np.sort(probes.latency[completed])
        result[censored] = (np.searchsorted(times, probes.latency[censored], side="right") / n + 1) / 2
    return result


def choose_columns(
    columns: Mapping[str, Ints],
    rank: Floats,
    completed: Bools,
    words: Ints | None = None,
    may_tell: Collection[str] = (),
) -> tuple[dict[str, Ints], dict[str, str]]:
    """The columns to use, and why not the others; `words` are the log's own codes for the outcome of what completed.

    A column is the latency if ranks cut into its sizes are the same cells. It is the outcome if it tells what
    completed, or by its name and cells `may_tell` outcomes, and says no more of what completed than the words do.
    """
    used: dict[str, Ints] = {}
    left_out: dict[str, str] = {}
    by_rank = np.argsort(rank, kind="stable")
    words = np.zeros(rank.size, dtype=np.int64) if words is None else words
    for name, codes in columns.items():
        sizes = np.bincount(codes)
        present = int(np.count_nonzero(sizes))
        alike = np.empty_like(codes)
        alike[by_rank] = np.repeat(np.arange(sizes.size), sizes)
        if present < 2:
            left_out[name] = "has one value"
        elif present == codes.size:
            left_out[name] = "differs in every row"
        elif present > 2 and abs(_correlation(codes, alike)) > SAME_QUANTITY:
            left_out[name] = "is the latency"
        elif (
            not completed.all()
            and completed.any()
            and (name in may_tell or _tells_outcome(codes, completed))
            and _agreement(words[completed], codes[completed]) >= SAME_OUTCOME
        ):  # what answers of those that completed say is kept: a page that is not there is not there the next time
            left_out[name] = "is the outcome"
        else:
            used[name] = codes
    return used, left_out


def find_worlds(
    rank: Floats,
    columns: Mapping[str, Ints],
    *,
    job: Ints | None = None,
    submitted: Floats | None = None,
    in_file_order: bool = False,
) -> list[World]:
    """The worlds beyond chance; without `submitted`, neighbours in time only `in_file_order`, and these for ever."""
    pairs: dict[str, Ints] = {}
    asked = [(name, codes) for name, codes in columns.items() if name != OWN_STATUS]  # which only completions have
    for (a, first), (b, second) in combinations(asked, 2):
        width = int(second.max()) + 1
        if (int(first.max()) + 1) * width <= rank.size:
            pairs[f"{a} × {b}"] = first * width + second
    worlds = [*_column_worlds(rank, columns, "column"), *_column_worlds(rank, pairs, "pair")]
    worlds += [] if job is None else _column_worlds(rank, {"job": job}, "job")
    worlds += [] if submitted is None and not in_file_order else _time_worlds(rank, submitted)
    strongest = sorted(range(len(worlds)), key=lambda at: -worlds[at].z)
    kept = [[at for at in strongest if worlds[at].kind == kind] for kind in {world.kind for world in worlds}]
    return [worlds[at] for at in sorted(at for kind in kept for at in kind[:MAX_WORLDS_OF_A_KIND])]


def _correlation(a: Ints | Floats, b: Ints | Floats) -> float:
    """Pearson's; of ranks it is Spearman's."""
    x, y = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / scale if scale > 0 else 0.0


def _tells_outcome(codes: Ints, completed: Bools) -> bool:
    """Whether a column tells what completed from what did not."""
    rarer = min(np.count_nonzero(completed), np.count_nonzero(~completed)) / completed.size
    alone = (np.bincount(codes)[codes] == 1) & (completed != (completed.mean() > 0.5))  # which one row cannot tell
    agreement = _agreement(codes, completed.astype(np.int64)) - alone.mean()
    return bool(agreement >= 1 - (1 - SAME_OUTCOME) * rarer)


def _agreement(cells: Ints, values: Ints) -> float:
    """The share of rows that have the commonest value of their cell."""
    width = int(values.max()) + 1
    pairs, counts = np.unique(cells.astype(np.int64) * width + values, return_counts=True)
    starts = np.flatnonzero(np.diff(pairs // width, prepend=-1))
    return float(np.maximum.reduceat(counts, starts).sum()) / values.size


def _column_worlds(rank: Floats, columns: Mapping[str, Ints], kind: str) -> Iterator[World]:
    level = ndtr(-BEYOND_CHANCE) / max(len(columns), 1)
    enough = -ndtri(level)
    for name, codes in columns.items():
        sizes = np.bincount(codes)
        z, shared = _within_cells(rank, codes, sizes)
        if z > enough:
            yield World(name, kind, _strata_of_cells(rank, codes, sizes), z, shared=shared)
        if kind != "job":
            yield from _slow_cells(rank, codes, sizes, name, level)


def _within_cells(rank: Floats, codes: Ints, sizes: Ints) -> tuple[float, float]:
    """How far attempts of the same cell resemble each other: z, and the share of variance between cells.

    U = Σ_cells Σ_{i≠k} d_i d_k / (size − 1) / σ², d the deviation from the mean rank, has the first two moments of a
    centred χ² with Σ size/(size − 1) − 1 degrees of freedom if cells do not matter; the cube root of Wilson and
    Hilferty (1931) makes it normal. The share is that of an analysis of variance.
    """
    n, deviation = rank.size, rank - rank.mean()
    total = float((deviation**2).sum())
    several = sizes > 1
    cells = int(np.count_nonzero(sizes))
    if cells < 2 or cells >= n or not several.any() or total <= 0:
        return 0.0, 0.0
    sums = np.bincount(codes, deviation)
    squares = np.bincount(codes, deviation**2)[several]
    m = sizes[several]
    U = float(((sums[several] ** 2 - squares) / (m - 1)).sum()) / (total / (n - 1))
    degrees = max(float((m / (m - 1)).sum()) - 1, 1.0)
    chi_square = degrees + U + float(m.sum()) / (n - 1)
    spread = 2 / (9 * degrees)
    z = (np.cbrt(max(chi_square, 0.0) / degrees) - (1 - spread)) / np.sqrt(spread)
    between = float((sums**2 / np.maximum(sizes, 1)).sum())
    within = (total - between) / (n - cells)
    typical = (n - float((sizes.astype(np.float64) ** 2).sum()) / n) / (cells - 1)
    excess = max((between / (cells - 1) - within) / typical, 0.0)
    return float(z), excess / (excess + within) if excess > 0 else 0.0


def _strata_of_cells(rank: Floats, codes: Ints, sizes: Ints) -> Ints:
    """Whole cells by mean rank, shrunk by one attempt of rank ½, cut at quantiles; few cells are strata themselves."""
    if sizes.size <= RANK_QUANTILES.size + 1:
        return codes
    # cut by a score that leaves the attempt itself out, a cell would be cut by its own outcomes
    mean = (np.bincount(codes, rank) + 0.5) / (sizes + 1)
    order = np.argsort(mean, kind="stable")
    middle = (np.cumsum(sizes[order]) - sizes[order] / 2) / rank.size
    label = np.empty(sizes.size, dtype=np.int64)
    label[order] = np.searchsorted(RANK_QUANTILES, middle)
    return label[codes]


def _slow_cells(rank: Floats, codes: Ints, sizes: Ints, name: str, level: float) -> Iterator[World]:
    """Cells with more slow attempts than a binomial allows, each a stratum of its own: strata dilute rare ones."""
    chance = np.ones(sizes.size)
    for quantile in RANK_QUANTILES:
        slow = rank > quantile
        share = float(slow.mean())
        count = np.bincount(codes, slow)
        if 0 < share < 1:
            chance = np.minimum(chance, np.where(count > 0, bdtrc(np.maximum(count - 1, 0), sizes, share), 1.0))
    cells = np.flatnonzero(chance * np.count_nonzero(sizes) * RANK_QUANTILES.size < level)
    if cells.size:
        label = np.zeros(sizes.size, dtype=np.int64)
        label[cells] = np.arange(1, cells.size + 1)
        worst = cells[np.argmin(chance[cells])]
        yield World(f"{name}={worst}", "cell", label[codes], float(-ndtri(max(float(chance[worst]), 1e-300))))


def _time_worlds(rank: Floats, submitted: Floats | None) -> Iterator[World]:
    n, ordered, when = rank.size, rank, submitted
    place: Ints | slice = slice(None)
    if submitted is not None and (np.diff(submitted) < 0).any():
        order = np.argsort(submitted, kind="stable")
        place, ordered, when = np.argsort(order), rank[order], submitted[order]
    if n < 3 or abs(_correlation(np.arange(n), ordered)) > SAME_QUANTITY:  # sorted by latency
        return
    below = np.append(0.0, np.cumsum(ordered))
    for count in (count for count in NEIGHBOURS if 4 * count + 2 <= n):
        first, last = np.maximum(np.arange(n) - count, 0), np.minimum(np.arange(n) + count + 1, n)
        score = (below[last] - below[first] - ordered) / (last - first - 1)
        z = float(np.sqrt(n / 2)) * _correlation(ordered, score)  # each pair counts twice: √n r has variance 2
        if z > BEYOND_CHANCE:
            span = np.inf if when is None else max(float(np.median(when[count:] - when[:-count])), 1e-9)
            strata = np.searchsorted(np.quantile(score, RANK_QUANTILES), score)[place]
            yield World(f"time, {count} neighbours", "time", strata, z, span)
    for quantile in RANK_QUANTILES:
        slow = ordered > quantile
        several, pairs = np.count_nonzero(slow), np.count_nonzero(slow[1:] & slow[:-1])
        if not pairs or not 3 <= several < n:
            continue
        z = float(-ndtri(max(float(pdtrc(pairs - 1, (several - 1) * several / n)), 1e-300)))
        if z > BEYOND_CHANCE:
            inside = slow & (np.append(slow[1:], False) | np.append(False, slow[:-1]))
            edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
            span = np.inf
            if when is not None:
                lasted = np.mean(when[edges[1::2] - 1] - when[edges[::2]]) + np.median(np.diff(when))
                span = max(float(lasted), 1e-9)
            name = f"spells beyond the {100 * quantile:g} % quantile"
            yield World(name, "spell", inside.astype(np.int64)[place], z, span)


@dataclass(frozen=True)
class Mixing:
    """The column that explains most of the latencies, and the share of their rank variance between its groups.

    `groups` is how many there are. `worst_cost` is by which share one timeout for all is slower than waiting in the
    world of this column (∞: some jobs never end, negative: faster), `harmed` what is slower, None where nothing is.
    """

    column: Column
    share: float
    groups: int
    p_value: float
    worst_cost: float | None = None
    harmed: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "column": self.column.name}


def mixing(
    probes: ProbeTable, worlds: Sequence[World] | None = None, unlimited: Mapping[str, float | None] | None = None
) -> Mixing | None:
    """The column with the largest share of rank variance; `unlimited`: one timeout for ever over waiting, by world."""
    candidates = survey(probes).worlds if worlds is None else worlds
    columns = [world for world in candidates if world.kind == "column" and world.shared >= NEGLIGIBLE]
    if not columns:
        return None
    strongest = max(columns, key=lambda world: world.shared)
    column, ratio = probes.columns[strongest.name], (unlimited or {}).get(strongest.name)
    costs = (None, None) if ratio is None else (ratio - 1, f"some {column.name}" if ratio > 1 else None)
    return Mixing(column, strongest.shared, int(np.unique(column.codes).size), float(ndtr(-strongest.z)), *costs)
