"""The one objective: the schedule that is best in the worst world that the log supports.

Among finite schedules that end in waiting and lose at most `risk` in the worst case, the least
(1 − π) · max_w E_w/W_w + π · (1 + ℓ), w the independent world and every one that the log supports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from latfit.curve import Counts, survival
from latfit.decision.options import Options
from latfit.evidence.worlds import NEGLIGIBLE, World
from latfit.numbers import Bools, Floats, Ints
from latfit.resample import interval, resampled_curves
from latfit.restart.retry import (
    MAX_CANCELLATIONS,
    Attempt,
    Retry,
    ScheduleGrid,
    retry_of,
    schedule_figures,
    search_schedules,
)
from latfit.sample import LatencySample

MIN_COMPLETIONS = 5  # at or below the first timeout
INDEPENDENT = "independent"


@dataclass(frozen=True, eq=False)
class Attempts:
    """Attempts as plain arrays, cut at the cutoff: when each ended, whether it completed or failed visibly.

    What did neither was still out at the cutoff, was given up before it (`censored`), or is lost.
    """

    latency: Floats
    completed: Bools
    failed: Bools
    cutoff: float
    weight: Floats
    """Of what ended: inverse probability of not having been given up before; sums of it are Kaplan–Meier's."""

    @classmethod
    def of(cls, latency: Floats, completed: Bools, failed: Bools, censored: Bools, cutoff: float) -> Attempts:
        """Cut at the cutoff; `censored` were given up after `latency`, all others that did not end are lost."""
        inside = latency <= cutoff
        done, gone = completed & inside, failed & inside
        early = censored & (latency < cutoff)
        weight = np.ones(latency.size)
        if early.any():
            until = np.where(done | gone | early, latency, np.inf)
            order = np.lexsort((early, until))  # what ended at a time was still at risk of being given up there
            at_risk = np.arange(latency.size, 0, -1)
            with np.errstate(divide="ignore", invalid="ignore"):
                kept = survival(early[order] / at_risk)
                weight[order] = 1 / np.concatenate([[1.0], kept[:-1]])
        weight = np.where(done | gone, weight, 0.0)
        return cls(np.minimum(latency, cutoff), done, gone, cutoff, weight)

    def curves(self, grid: ScheduleGrid, rows: Ints, sizes: Floats) -> Attempt:
        """One row of curves for each stratum; `rows` (k, n) holds k strata of each attempt."""
        width = grid.times.size + 1
        place = (rows * width + np.searchsorted(grid.times, self.latency)).ravel()

        def upto(values: Floats) -> Floats:
            every = np.broadcast_to(values, rows.shape).ravel()
            sums = np.bincount(place, every, minlength=sizes.size * width).reshape(-1, width)[:, :-1]
            return np.cumsum(sums, axis=1) / sizes[:, None]

        ended = upto(self.weight)
        missed = np.clip(1 - (upto(self.weight * self.completed) if self.failed.any() else ended), 0, 1)
        out = np.clip(1 - ended, 0, 1)
        return Attempt(missed, out, upto(self.weight * self.latency) + grid.times * out)


@dataclass(frozen=True)
class Choice:
    """The schedule, None for waiting; what each world makes of it; and the world that binds.

    `ratios` are E_w/W_w, the independent world first, at the schedule, or where that is None at the one that would be
    best if attempts were independent (`refused`). `waiting` is W.
    """

    retry: Retry | None
    refused: Retry | None
    waiting: float
    value: float
    ratios: tuple[float, ...]
    binding: str


def unlimited_ratios(
    attempts: Attempts, worlds: Sequence[World], timeout: float, cost: float = 0.0
) -> tuple[float, ...]:
    """E_w/W_w of the independent world and of each other under one timeout, repeated for ever."""
    return tuple(_Judge.of(attempts, worlds, 0.0, cost).unlimited(timeout).tolist())


def choose_schedule(
    attempts: Attempts,
    worlds: Sequence[World] = (),
    *,
    risk: float = 0.3,
    suspicion: float = 0.1,
    cost: float = 0.0,
    shortest: float = 0.0,
) -> Choice | None:
    """The minimiser of the objective; None where too few attempts completed.

    Parameters
    ----------
    attempts
        What was observed.
    worlds
        Those that the log supports, over the same attempts.
    risk
        The largest loss allowed if every retry takes as long as the first attempt would have.
    suspicion
        π: how much that case weighs whatever the log says.
    cost
        Seconds that each resubmission costs.
    shortest
        No timeout is below it (the resolution of the log's clock).

    """
    latencies = np.sort(attempts.latency[attempts.completed])
    if latencies.size < MIN_COMPLETIONS:
        return None
    # attempts that complete less often than once in as many as there may be cannot be worth it
    fewest = max(MIN_COMPLETIONS, -(-latencies.size // (MAX_CANCELLATIONS + 1)))
    first = np.unique(latencies[fewest - 1 :])
    first = first[(first >= shortest) & (first > 0) & (first < attempts.cutoff)]
    if not first.size:
        return None
    judge = _Judge.of(attempts, worlds, suspicion, cost)
    grid, best, value = search_schedules(first, attempts.cutoff, lambda grid: judge.values(grid, risk))
    kept = value <= 1 - NEGLIGIBLE
    if not kept:  # what cancelling would be best for if attempts were independent: the world that speaks against it
        alone = _Judge.of(attempts, (), 0.0, cost)
        grid, best, _ = search_schedules(first, attempts.cutoff, lambda grid: alone.values(grid, np.inf))
    pool = judge.pool(grid)
    ratios = judge.ratios(grid)[0].reshape(len(worlds) + 1, -1)[:, best]
    timeouts = grid.schedule(best)
    at = np.append(np.searchsorted(grid.times, timeouts), grid.times.size - 1)
    retry = retry_of(pool.at(at), timeouts, cost)
    names = [INDEPENDENT, *(world.name for world in worlds)]
    return Choice(
        retry if kept else None,
        None if kept else retry,
        retry.waiting,
        value,
        tuple(ratios.tolist()),
        names[int(np.argmax(ratios))],
    )


def with_retry_intervals(
    retry: Retry, sample: LatencySample, cutoff: float, rng: np.random.Generator, *, options: Options
) -> Retry:
    """A schedule with the 95 % intervals of its gain and of its loss, the timeouts held fixed."""
    gains, losses = [], []
    for curves in resampled_curves(Counts.of_sample(sample), rng, count=options.resamples):
        at = [curves.at(np.full(len(curves.F), t)) for t in (*retry.timeouts, cutoff)]
        F, S, W = (np.stack(values, axis=-1) for values in zip(*at, strict=True))
        duration, waiting, loss = schedule_figures(Attempt(1 - F, S, W), retry.timeouts, options.cost)
        gains.append(1 - duration / waiting)
        losses.append(loss / waiting)
    ends = [interval(np.concatenate(values)).tolist() for values in (gains, losses)]
    return replace(retry, gain_interval=tuple(ends[0]), loss_interval=tuple(ends[1]))


@dataclass(frozen=True, eq=False)
class _Judge:
    """The strata of all worlds as rows of one array; the first row is the pool."""

    attempts: Attempts
    suspicion: float
    cost: float
    rows: Ints
    sizes: Floats
    world: Ints
    """The world of each row."""
    span: Floats
    shared: Floats
    """Of each world."""

    @classmethod
    def of(cls, attempts: Attempts, worlds: Sequence[World], suspicion: float, cost: float) -> _Judge:
        codes = np.stack([np.zeros(attempts.latency.size, dtype=np.int64), *(world.strata for world in worlds)])
        counts = codes.max(axis=1) + 1
        codes += np.append(0, np.cumsum(counts)[:-1])[:, None]
        sizes = np.bincount(codes.ravel()).astype(np.float64)
        present = sizes > 0
        rows = (np.cumsum(present) - 1)[codes]
        spans = np.repeat([np.inf, *(world.span for world in worlds)], counts)[present]
        world = np.repeat(np.arange(counts.size), counts)[present]
        shared = np.array([0.0, *(world.shared for world in worlds)])
        return cls(attempts, suspicion, cost, rows, sizes[present], world, spans, shared)

    def pool(self, grid: ScheduleGrid) -> Attempt:
        curves = self.attempts.curves(grid, self.rows[:1], self.sizes[:1])
        return Attempt(*(values[0] for values in curves))

    def values(self, grid: ScheduleGrid, risk: float) -> Floats:
        """(1 − π) max_w E_w/W_w + π (1 + ℓ) of every schedule of a grid, ∞ beyond the risk.

        Under suspicion one more attempt is still out than was seen (the rule of succession).
        """
        ratios, pool, waiting, losses = self.ratios(grid)
        suspected = grid.losses(pool, waiting, self.cost, unseen=1 / self.attempts.latency.size)
        value = (1 - self.suspicion) * ratios.max(axis=0) + self.suspicion * (1 + suspected)
        return np.where(losses <= risk, value, np.inf)

    def unlimited(self, timeout: float) -> Floats:
        """(worlds + 1) E_w/W_w under one timeout, repeated for ever; ∞ where some jobs never end."""
        grid = ScheduleGrid(np.array([timeout]), self.attempts.cutoff)
        curves = self.attempts.curves(grid, self.rows, self.sizes)
        durations = []
        for at, limit in ((int(np.searchsorted(grid.times, timeout)), timeout), (-1, self.attempts.cutoff)):
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
        share = self.sizes / self.attempts.latency.size
        with np.errstate(invalid="ignore"):
            totals = [np.bincount(self.world, share * values) for values in (here, waiting)]
        return np.asarray(totals[0] / totals[1])

    def ratios(self, grid: ScheduleGrid) -> tuple[Floats, Attempt, float, Floats]:
        """(worlds + 1, *shape) E_w/W_w; the pool, W and ℓ.

        Durations of a stratum, not its law, are shrunk towards the pool by one attempt: a job whose law was shrunk
        could escape its stratum at every retry.
        """
        curves = self.attempts.curves(grid, self.rows, self.sizes)
        pool = Attempt(*(values[0] for values in curves))
        W = float(pool.waiting(self.cost))
        losses = grid.losses(pool, W, self.cost)
        missed, _, spent = curves.at(-1)
        stays = np.exp(-self.attempts.cutoff / self.span)
        shrunk = (self.sizes * missed + pool.missed[-1]) / (self.sizes + 1)
        waiting = (spent + missed * (self.cost + (1 - stays) * W)) / (1 - shrunk * stays)
        waiting[0] = W
        timed = self.span if np.isfinite(self.span).any() else None
        taken = grid.durations(curves, waiting, self.cost, span=timed).reshape(self.sizes.size, -1)
        share = self.sizes**2 / (self.sizes + 1) / self.attempts.latency.size
        share[0] = 1.0
        weight = np.zeros((self.shared.size, self.sizes.size))
        weight[self.world, np.arange(self.sizes.size)] = share
        rest = 1 - weight.sum(axis=1)
        ratios = (weight @ taken + np.outer(rest, taken[0])) / (weight @ waiting + rest * W)[:, None]
        # cells drawn anew are like those seen: a part of each fate belongs to the cell
        shared = self.shared[:, None]
        ratios = np.maximum(ratios, np.where(shared > 0, (1 - shared) * ratios[0] + shared * (1 + losses.ravel()), 0.0))
        return ratios.reshape(-1, *grid.shape), pool, W, losses
