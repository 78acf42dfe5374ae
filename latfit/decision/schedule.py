"""The one objective: the schedule that is best in the worst world that the log supports.

Among finite schedules that end in waiting and lose at most `risk` in the worst case, the least
(1 − π) · max_w E_w/W_w + π · (1 + ℓ), w the independent world and every one that the log supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from latfit.curve import MIN_COMPLETIONS, Counts, survival
from latfit.decision.prepare import Options
from latfit.evidence.worlds import NEGLIGIBLE, World
from latfit.numbers import Bools, Floats, Ints
from latfit.resample import RESAMPLES, interval, resampled_curves
from latfit.restart import retry as retries
from latfit.restart.retry import Attempt, Retry, ScheduleGrid
from latfit.sample import CENSORED, COMPLETED, FAILED, LatencySample
from latfit.table import Codes

INDEPENDENT = "independent"
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

    @classmethod
    def of(
        cls, latency: Floats, status: Ints | Codes, cutoff: float, worlds: Sequence[World] = (), cost: float = 0.0
    ) -> Strata:
        """From latencies, ∞ or NaN for what was lost, and codes of their status."""
        latency = np.nan_to_num(latency, nan=np.inf, posinf=np.inf)
        inside = latency <= cutoff
        completed, failed = (status == COMPLETED) & inside, (status == FAILED) & inside
        early = (status == CENSORED) & (latency < cutoff)
        weight = np.ones(latency.size)
        if early.any():
            until = np.where(completed | failed | early, latency, np.inf)
            order = np.lexsort((early, until))  # what ended at a time was still at risk of being given up there
            with np.errstate(divide="ignore", invalid="ignore"):
                kept = survival(early[order] / np.arange(latency.size, 0, -1))
                weight[order] = 1 / np.concatenate([[1.0], kept[:-1]])
        weight = np.where(completed | failed, weight, 0.0)
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
            names=(INDEPENDENT, *(world.name for world in worlds)),
            rows=(np.cumsum(present) - 1)[codes],
            sizes=sizes[present],
            world=np.repeat(np.arange(counts.size), counts)[present],
            span=np.repeat([np.inf, *(world.span for world in worlds)], counts)[present],
            shared=np.array([0.0, *(world.shared for world in worlds)]),
        )

    def independent(self) -> Strata:
        first = {name: getattr(self, name)[:1] for name in ("names", "rows", "sizes", "world", "span", "shared")}
        return replace(self, **first)

    def curves(self, grid: ScheduleGrid) -> Attempt:
        width = grid.times.size + 1
        place = (self.rows * width + np.searchsorted(grid.times, self.latency)).ravel()

        def upto(values: Floats) -> Floats:
            every = np.broadcast_to(values, self.rows.shape).ravel()
            sums = np.bincount(place, every, minlength=self.sizes.size * width).reshape(-1, width)[:, :-1]
            return np.cumsum(sums, axis=1) / self.sizes[:, None]

        ended = upto(self.weight)
        missed = np.clip(1 - (upto(self.weight * self.completed) if self.failed.any() else ended), 0, 1)
        out = np.clip(1 - ended, 0, 1)
        return Attempt(missed, out, upto(self.weight * self.latency) + grid.times * out)

    def values(self, grid: ScheduleGrid, risk: float, suspicion: float) -> Floats:
        """(1 − π) max_w E_w/W_w + π (1 + ℓ), ∞ beyond the limits; one more a stratum repeats (rule of succession)."""
        ratios, _, (losses, load, stakes) = self.ratios(grid, unseen=1)
        value = (1 - suspicion) * ratios.max(axis=0) + suspicion * (1 + losses + stakes / self.latency.size)
        return np.where((losses <= risk) & (load <= MAX_LOAD), value, np.inf)

    def ratios(self, grid: ScheduleGrid, unseen: int = 0) -> tuple[Floats, Attempt, tuple[Floats, Floats, Floats]]:
        """(worlds + 1, *shape) E_w/W_w, with so many `unseen` attempts in each stratum that repeat; the pool's figures.

        Durations of a stratum, not its law, are shrunk towards the pool by one attempt: a job whose law was shrunk
        could escape its stratum at every retry.
        """
        curves = self.curves(grid)
        pool = Attempt(*(values[0] for values in curves))
        W = float(pool.waiting(self.cost))
        losses, load, stakes = grid.worst_case(pool, W, self.cost)
        missed, _, spent = curves.at(-1)
        stays = np.exp(-self.cutoff / self.span)
        shrunk = (self.sizes * missed + pool.missed[-1]) / (self.sizes + 1)
        waiting = (spent + missed * (self.cost + (1 - stays) * W)) / (1 - shrunk * stays)
        waiting[0] = W
        timed = self.span if np.isfinite(self.span).any() else None
        taken = grid.durations(curves, waiting, self.cost, span=timed).reshape(self.sizes.size, -1)
        share = self.sizes**2 / (self.sizes + 1) / self.latency.size
        share[0] = 1.0
        weight = np.zeros((self.shared.size, self.sizes.size))
        weight[self.world, np.arange(self.sizes.size)] = share
        rest = 1 - weight.sum(axis=1)
        ratios = (weight @ taken + np.outer(rest, taken[0])) / (weight @ waiting + rest * W)[:, None]
        ratios += np.outer(np.bincount(self.world), stakes) * (unseen / self.latency.size)
        # cells drawn anew are like those seen: a part of each fate belongs to the cell
        shared = self.shared[:, None]
        ratios = np.maximum(ratios, np.where(shared > 0, (1 - shared) * ratios[0] + shared * (1 + losses.ravel()), 0.0))
        return ratios.reshape(-1, *grid.shape), pool, (losses, load, stakes)

    def unlimited(self, timeout: float) -> Floats:
        """(worlds + 1) E_w/W_w under one timeout, repeated for ever; ∞ where some jobs never end."""
        grid = ScheduleGrid(np.array([timeout]), self.cutoff)
        curves = self.curves(grid)
        durations = []
        for at, limit in ((int(np.searchsorted(grid.times, timeout)), timeout), (-1, self.cutoff)):
            missed, _, spent = curves.at(at)
            shrunk = (self.sizes * missed + missed[0]) / (self.sizes + 1)
            missed = np.where(self.sizes < MIN_COMPLETIONS, shrunk, missed)  # none of so few is not never
            stays = np.exp(-limit / self.span)
            with np.errstate(divide="ignore", invalid="ignore"):
                pool = (spent[0] + self.cost * missed[0]) / (1 - missed[0])
                left = missed * (1 - stays)
                taken = (spent + self.cost * missed + np.where(left > 0, left * pool, 0.0)) / (1 - missed * stays)
            durations.append(np.where(np.isnan(taken), np.inf, taken))
        here, waiting = durations
        waiting = np.where(np.isfinite(waiting), waiting, waiting[0] * (self.sizes + 1))  # nothing came back: not yet
        with np.errstate(invalid="ignore"):
            totals = [np.bincount(self.world, self.sizes * values) for values in (here, waiting)]
        return np.asarray(totals[0] / totals[1])


@dataclass(frozen=True)
class Choice:
    """The schedule, None for waiting; what each world makes of it; and the world that binds.

    `ratios` are E_w/W_w, the independent world first, at the schedule, or where that is None at the one that would be
    best if attempts were independent (`refused`).
    """

    retry: Retry | None
    refused: Retry | None
    value: float
    ratios: tuple[float, ...]
    binding: str


def choose_schedule(
    strata: Strata, *, risk: float = 0.3, suspicion: float = 0.1, shortest: float = 0.0
) -> Choice | None:
    """The minimiser of the objective, no timeout below `shortest` (the clock's step); None: too few completed."""
    latencies, cutoff = np.sort(strata.latency[strata.completed]), strata.cutoff
    # attempts that complete less often than once in as many as there may be cannot be worth it
    fewest = max(MIN_COMPLETIONS, -(-latencies.size // (retries.MAX_CANCELLATIONS + 1)))
    first = np.unique(latencies[fewest - 1 :])
    first = first[(first >= shortest) & (first > 0) & (first < cutoff)]
    if not first.size:
        return None
    grid, best, value = retries.search_schedules(first, cutoff, lambda grid: strata.values(grid, risk, suspicion))
    kept = value <= 1 - NEGLIGIBLE
    if not kept:  # what cancelling would be best for if attempts were independent: the world that speaks against it
        pool = strata.independent()
        grid, best, _ = retries.search_schedules(first, cutoff, lambda grid: pool.values(grid, np.inf, 0.0))
    timeouts = grid.schedule(best)
    best //= grid.shape[-1]
    grid = ScheduleGrid(np.array(timeouts[:1]), cutoff)
    every, attempt, _ = strata.ratios(grid)
    ratios = every.reshape(len(every), -1)[:, best]
    at = np.append(np.searchsorted(grid.times, timeouts), grid.times.size - 1)
    retry = retries.retry_of(attempt.at(at), timeouts, strata.cost)
    binding = strata.names[int(np.argmax(ratios))]
    return Choice(retry if kept else None, None if kept else retry, value, tuple(ratios.tolist()), binding)


def with_retry_intervals(
    retry: Retry, sample: LatencySample, cutoff: float, rng: np.random.Generator, *, options: Options
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
