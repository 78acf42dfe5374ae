"""The one objective: the schedule that is best in the worst world that the log supports.

Among finite schedules that end in waiting and lose at most `risk` in the worst case, the least
(1 − π) · max_w E_w/W_w + π · (1 + ℓ), w the independent world and every one that the log supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from latfit.curve import MIN_COMPLETIONS, Counts, weights_of_ended
from latfit.decision.prepare import Options
from latfit.evidence.worlds import INDEPENDENT, NEGLIGIBLE, World
from latfit.numbers import Bools, Floats, Ints
from latfit.resample import RESAMPLES, interval, resampled_curves
from latfit.restart import retry as retries
from latfit.restart.retry import Attempt, Retry, ScheduleGrid
from latfit.sample import CENSORED, COMPLETED, FAILED, LatencySample
from latfit.table import Codes

MAX_STRATA_TOGETHER = 2000  # of several logs: arrays of some ten megabytes
MAX_LOAD = 1.0  # extra submissions per job if every retry repeats the first fate: at most twice the load


@dataclass(frozen=True, eq=False)
class Strata:
    """Attempts, cut at the cutoff, in the strata of every world; the first stratum, and world, is the pool of all.

    `weight` is that of what ended: the inverse probability of not having been given up before; sums of it are
    Kaplan–Meier's. `rows` (worlds + 1, n) is the stratum of each attempt in each world; strata have `sizes`, a `span`
    and a `world`, worlds the part of the variance that is `shared`.
    """

    latency: Floats
    completed: Bools
    failed: Bools
    weight: Floats
    cutoff: float
    cost: float
    names: tuple[str, ...]
    rows: Ints
    sizes: Floats
    world: Ints
    span: Floats
    shared: Floats
    suspicion: float = 0.1  # π
    shortest: float = 0.0  # no timeout is below it: the clock's step

    @classmethod
    def of(
        cls, latency: Floats, status: Ints | Codes, cutoff: float, worlds: Sequence[World] = (), cost: float = 0.0
    ) -> Strata:
        """From latencies, ∞ or NaN for what was lost, and codes of their status."""
        latency = np.nan_to_num(latency, nan=np.inf, posinf=np.inf)
        inside = latency <= cutoff
        completed, failed = (status == COMPLETED) & inside, (status == FAILED) & inside
        early = (status == CENSORED) & (latency < cutoff)
        until = np.where(completed | failed | early, latency, np.inf)
        weight = np.where(completed | failed, weights_of_ended(until, early), 0.0)
        codes = np.stack([np.zeros(latency.size, dtype=np.int64), *(world.strata for world in worlds)])
        counts = codes.max(axis=1) + 1
        codes += np.append(0, np.cumsum(counts)[:-1])[:, None]
        sizes = np.bincount(codes.ravel()).astype(np.float64)
        present = sizes > 0
        return cls(
            np.minimum(latency, cutoff),
            completed,
            failed,
            weight,
            cutoff,
            cost,
            names=(INDEPENDENT.name, *(world.name for world in worlds)),
            rows=(np.cumsum(present) - 1)[codes],
            sizes=sizes[present],
            world=np.repeat(np.arange(counts.size), counts)[present],
            span=np.repeat([np.inf, *(world.span for world in worlds)], counts)[present],
            shared=np.array([0.0, *(world.shared for world in worlds)]),
        )

    @cached_property
    def first_timeouts(self) -> Floats:
        """The latencies that a schedule may begin with."""
        latencies = np.sort(self.latency[self.completed])
        # attempts that complete less often than once in as many as there may be cannot be worth it
        fewest = max(MIN_COMPLETIONS, -(-latencies.size // (retries.MAX_CANCELLATIONS + 1)))
        first = np.unique(latencies[fewest - 1 :])
        return first[(first >= self.shortest) & (first > 0) & (first < self.cutoff)]

    def independent(self) -> Strata:
        """The pool alone, without suspicion."""
        first = {name: getattr(self, name)[:1] for name in ("names", "rows", "sizes", "world", "span", "shared")}
        return replace(self, **first, suspicion=0.0)


def curves_of(logs: Sequence[Strata], times: Floats) -> Attempt:
    """A row for each stratum of each log, at the rising times (log, …) of its log."""
    width = times.shape[1] + 1
    sizes = np.concatenate([each.sizes for each in logs])
    first = np.append(0, np.cumsum([each.sizes.size for each in logs])[:-1]).tolist()
    before = [np.searchsorted(row, each.latency) for row, each in zip(times, logs, strict=True)]
    places = [(each.rows + row) * width + at for each, row, at in zip(logs, first, before, strict=True)]
    place = np.concatenate([each.ravel() for each in places])

    def upto(values: Sequence[Floats]) -> Floats:
        every = np.concatenate([np.tile(each, len(log.rows)) for each, log in zip(values, logs, strict=True)])
        sums = np.bincount(place, every, minlength=sizes.size * width).reshape(-1, width)[:, :-1]
        return np.asarray(np.cumsum(sums, axis=1) / sizes[:, None])

    ended = upto([each.weight for each in logs])
    completed = ended
    if any(each.failed.any() for each in logs):
        completed = upto([each.weight * each.completed for each in logs])
    out = np.clip(1 - ended, 0, 1)
    spent = upto([each.weight * each.latency for each in logs])
    limits = np.repeat(times, [each.sizes.size for each in logs], axis=0)
    return Attempt(np.clip(1 - completed, 0, 1), out, spent + limits * out)


def unlimited(logs: Sequence[Strata], timeouts: Sequence[float]) -> list[list[float]]:
    """(worlds + 1) E_w/W_w of each log under one timeout, repeated for ever; ∞ where some jobs never end."""
    if not logs:
        return []
    worlds = _Worlds(logs)
    cost, pool, sizes, limits = worlds.cost[worlds.log], worlds.pool, worlds.sizes, [np.array(timeouts), worlds.cutoff]
    curves, durations = curves_of(logs, np.stack(limits, axis=1)), []
    for at, limit in enumerate(limits):
        missed, _, spent = curves.at(at)
        shrunk = (sizes * missed + missed[pool]) / (sizes + 1)
        missed = np.where(sizes < MIN_COMPLETIONS, shrunk, missed)  # none of so few is not never
        stays = np.exp(-limit[worlds.log] / worlds.span)
        with np.errstate(divide="ignore", invalid="ignore"):
            pooled = ((spent + cost * missed) / (1 - missed))[pool]
            left = missed * (1 - stays)
            taken = (spent + cost * missed + np.where(left > 0, left * pooled, 0.0)) / (1 - missed * stays)
        durations.append(np.where(np.isnan(taken), np.inf, taken))
    here, waiting = durations
    waiting = np.where(np.isfinite(waiting), waiting, waiting[pool] * (sizes + 1))  # nothing came back: not yet
    with np.errstate(invalid="ignore"):
        ratios = np.bincount(worlds.world, sizes * here) / np.bincount(worlds.world, sizes * waiting)
    return [each.tolist() for each in np.split(ratios, worlds.first_world[1:])]


class _Worlds:
    """The strata of several logs as rows of one array; `log`, `pool` and `world` are those of each row."""

    def __init__(self, logs: Sequence[Strata]) -> None:
        rows, worlds = [each.sizes.size for each in logs], [len(each.names) for each in logs]
        self.logs, places = logs, np.arange(len(logs))
        self.log, self.log_of_world = np.repeat(places, rows), np.repeat(places, worlds)
        self.first_row, self.first_world = (np.append(0, np.cumsum(sizes)[:-1]) for sizes in (rows, worlds))
        self.pool = self.first_row[self.log]
        self.world = np.concatenate([each.world for each in logs]) + self.first_world[self.log]
        self.sizes, self.span, self.shared = (
            np.concatenate([getattr(each, name) for each in logs]) for name in ("sizes", "span", "shared")
        )
        figures = [(each.latency.size, each.cost, each.cutoff, each.suspicion) for each in logs]
        self.n, self.cost, self.cutoff, self.suspicion = np.array(figures).T

    def values(self, grid: ScheduleGrid, risk: float) -> Floats:
        """(1 − π) max_w E_w/W_w + π (1 + ℓ), ∞ beyond the limits; one more a stratum repeats (rule of succession)."""
        ratios, _, (losses, load, stakes) = self.ratios(grid, unseen=1)
        pi, n = (each[:, None, None, None] for each in (self.suspicion, self.n))
        value = (1 - pi) * np.maximum.reduceat(ratios, self.first_world) + pi * (1 + losses + stakes / n)
        return np.where((losses <= risk) & (load <= MAX_LOAD), value, np.inf)

    def ratios(self, grid: ScheduleGrid, unseen: int = 0) -> tuple[Floats, Attempt, tuple[Floats, Floats, Floats]]:
        """(worlds, *shape) E_w/W_w, with so many `unseen` attempts in each stratum that repeat; the pools' figures.

        Durations of a stratum, not its law, are shrunk towards the pool by one attempt: a job whose law was shrunk
        could escape its stratum at every retry.
        """
        curves = curves_of(self.logs, grid.times)
        pools, cost, pool = Attempt(*(values[self.first_row] for values in curves)), self.cost[self.log], self.pool
        W = pools.waiting(self.cost)
        worst = losses, _, stakes = grid.worst_case(pools, W, self.cost)
        missed, _, spent = curves.at(-1)
        stays = np.exp(-self.cutoff[self.log] / self.span)
        shrunk = (self.sizes * missed + missed[pool]) / (self.sizes + 1)
        waiting = (spent + missed * (cost + (1 - stays) * W[self.log])) / (1 - shrunk * stays)
        waiting[self.first_row] = W
        taken = grid.durations(curves, waiting, cost, log=self.log, pool=pool, span=self.span)
        share = self.sizes**2 / (self.sizes + 1) / self.n[self.log]
        share[self.first_row] = 1.0
        starts = np.flatnonzero(np.diff(self.world, prepend=-1))
        rest = 1 - np.add.reduceat(share, starts)
        pooled, log = self.first_row[self.log_of_world], self.log_of_world
        ratios = np.add.reduceat(share[:, None, None, None] * taken, starts)
        ratios += rest[:, None, None, None] * taken[pooled]
        ratios /= (np.add.reduceat(share * waiting, starts) + rest * W[log])[:, None, None, None]
        ratios += (np.bincount(self.world) * unseen / self.n[log])[:, None, None, None] * stakes[log]
        # cells drawn anew are like those seen: a part of each fate belongs to the cell
        drawn = np.flatnonzero(self.shared > 0)
        if drawn.size:
            shared, of = self.shared[drawn, None, None, None], log[drawn]
            fate = (1 - shared) * ratios[self.first_world[of]] + shared * (1 + losses[of])
            ratios[drawn] = np.maximum(ratios[drawn], fate)
        return ratios, pools, worst


@dataclass(frozen=True)
class Choice:
    """The schedule that was `judged`, the least value of the objective, E_w/W_w in each world, the world that binds.

    The worlds judge the best schedule; where that is to wait, the one that would be best if attempts were independent.
    `cost_decides` says that it is not known whether to wait: that depends on what a restart costs.
    """

    judged: Retry
    value: float
    ratios: tuple[float, ...]
    binding: str
    cost_decides: bool = False

    @property
    def retry(self) -> Retry | None:
        """What to set; None: wait."""
        return self.judged if self.value <= 1 - NEGLIGIBLE else None


def choose_schedules(logs: Sequence[Strata], *, risk: float) -> list[Choice | None]:
    """The minimiser of the objective for each of several logs, None where too few completed.

    They are worked on together as far as memory allows.
    """
    if len(logs) > 1 and sum(strata.sizes.size for strata in logs) > MAX_STRATA_TOGETHER:
        half = len(logs) // 2
        return [*choose_schedules(logs[:half], risk=risk), *choose_schedules(logs[half:], risk=risk)]
    choices: list[Choice | None] = [None] * len(logs)
    places = [at for at, strata in enumerate(logs) if strata.first_timeouts.size]
    if not places:
        return choices
    some = [logs[at] for at in places]
    best = _search(some, risk)
    # what cancelling would be best for if attempts were independent: the world that speaks against it
    waits = [row for row, schedule in enumerate(best) if schedule.value > 1 - NEGLIGIBLE]
    judged, worlds = list(best), _Worlds(some)
    for row, schedule in zip(waits, _search([some[row].independent() for row in waits], np.inf), strict=True):
        judged[row] = schedule
    grid = ScheduleGrid(np.array([schedule.timeouts[:1] for schedule in judged]), worlds.cutoff)
    ratios, attempt, _ = worlds.ratios(grid)
    for row, (at, strata) in enumerate(zip(places, some, strict=True)):
        timeouts, place, _ = judged[row]
        steps = np.append(np.searchsorted(grid.times[row], timeouts), grid.times.shape[1] - 1)
        retry = retries.retry_of(Attempt(*(part[row, steps] for part in attempt)), timeouts, strata.cost)
        of_log = ratios[worlds.log_of_world == row].reshape(len(strata.names), -1)[:, place].tolist()
        choices[at] = Choice(retry, best[row].value, tuple(of_log), strata.names[int(np.argmax(of_log))])
    return choices


def _search(logs: Sequence[Strata], risk: float) -> list[retries.Scheduled]:
    """The best schedule of each log."""

    def objective(grid: ScheduleGrid, which: Sequence[int]) -> Floats:
        return _Worlds([logs[at] for at in which]).values(grid, risk)

    cutoffs = np.array([each.cutoff for each in logs])
    return retries.search_schedules([each.first_timeouts for each in logs], cutoffs, objective)


def with_retry_intervals(
    retry: Retry, sample: LatencySample, cutoff: float, rng: np.random.Generator, options: Options
) -> Retry:
    """A schedule with the 95 % intervals of its gain and of its loss, the timeouts held fixed.

    A timeout is chosen just after a latency that was seen, where fewer seem to be still out than are: at the upper end
    of the loss 3.7 more are, as many as may be where none was seen, (1 − 3.7/n)ⁿ = 2.5 %.
    """
    limits = (*retry.timeouts, cutoff)
    duration, waiting, loss = resampled_figures(sample, limits, rng, cost=options.cost, count=options.resamples)
    unseen = -np.log(0.025) * sum(t + options.cost for t in retry.timeouts) / sample.n
    low, high = interval(np.array([1 - duration / waiting, loss / waiting, (loss + unseen) / waiting]))
    gain_interval, loss_interval = (float(low[0]), float(high[0])), (float(low[1]), float(high[2]))
    return replace(retry, gain_interval=gain_interval, loss_interval=loss_interval)


def resampled_figures(
    sample: LatencySample, limits: Sequence[float], rng: np.random.Generator, *, cost: float, count: int = RESAMPLES
) -> Floats:
    """(3, count) E, W and W ℓ on resamples of cancelling after each of `limits`; the last one is repeated."""
    drawn = []
    for curves in resampled_curves(Counts.of_sample(sample), limits, rng, count=count):
        at = [curves.at(np.full(len(curves.F), t)) for t in limits]
        F, S, spent = (np.stack(values, axis=-1) for values in zip(*at, strict=True))
        drawn.append(retries.schedule_figures(Attempt(1 - F, S, spent), limits[:-1], cost))
    return np.concatenate(drawn, axis=1)
